"""Impact of venues, by ISSN: from a table of the user's own, from the impact-factor package, or from OpenAlex.

OpenAlex's 2yr_mean_citedness is open and made like a journal impact factor, but it is not the same number.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pipeline.errors import MissingError, UserError
from pipeline.identifiers import normalize_issn

ImpactFrom = Literal["none", "csv", "impact_factor", "openalex"]


def impacts_at_hand(impact: ImpactFrom, table: Path | None, issns: Iterable[str]) -> dict[str, float]:
    """Return ISSN -> impact of the user's table or of the package, for these ISSNs."""
    if impact == "impact_factor":
        return package_impacts(issns)
    known = read_table(table) if table is not None else {}
    return {issn: known[issn] for issn in issns if issn in known}


def read_table(path: Path) -> dict[str, float]:
    """Return ISSN -> impact of a CSV file with the columns issn and value; of several years the latest counts.

    A column ``year`` is optional. Raises ``UserError`` with the line of what is wrong.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            if missing := {"issn", "value"} - set(rows.fieldnames or ()):
                raise UserError(f"{path}:1: no column {' and '.join(sorted(missing))}; expected issn, value[, year]")
            dated: dict[str, tuple[int, float]] = {}
            for row in rows:
                issn, year, value = _entry(row, f"{path}:{rows.line_num}")
                dated[issn] = max(dated.get(issn, (year, value)), (year, value))
    except csv.Error as error:
        raise UserError(f"{path}: {error}; expected a CSV file") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8; expected a CSV file saved as UTF-8") from error
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; expected the file of enrich.impact_csv") from error
    return {issn: value for issn, (_, value) in dated.items()}


def _entry(row: dict[str, str], where: str) -> tuple[str, int, float]:
    issn = normalize_issn(row["issn"])
    if issn is None:
        raise UserError(f"{where}: issn is {row['issn']!r}; expected eight digits with a valid check digit")
    try:
        year, value = int(row.get("year") or 0), float(row["value"])
    except (TypeError, ValueError) as error:
        raise UserError(f"{where}: {error}; expected numbers in value and year") from error
    if not 0 <= value < math.inf:
        raise UserError(f"{where}: value is {row['value']}; expected an impact, 0 or more")
    return issn, year, value


def package_impacts(issns: Iterable[str]) -> dict[str, float]:
    """Return ISSN -> impact factor of the impact-factor package, which the paper used, for those that it knows."""
    try:
        from impact_factor.core import Factor
    except ImportError as error:
        raise MissingError(
            f"enrich.impact=impact_factor: {error}; pip install 'litgrade[impact-factor]' brings it, or use openalex"
        ) from error
    factor = Factor()
    found = {}
    for issn in issns:
        values = [entry["factor"] for entry in factor.search(issn) or () if entry.get("factor") is not None]
        if values:
            found[issn] = float(values[0])
    return found
