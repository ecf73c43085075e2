from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pipeline.collecting.lookups import batches
from pipeline.errors import MissingError, UserError
from pipeline.impact import impacts_at_hand, package_impacts, read_table
from pipeline.sources import MalformedError
from source_helpers import source


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "impacts.csv"


def told(table: Path, content: bytes | str) -> str:
    """The error that this table is, on one line."""
    table.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError) as error:
        read_table(table)
    assert "\n" not in str(error.value)
    assert str(error.value).startswith(str(table))
    return str(error.value).removeprefix(str(table))


# A table


def test_a_table_gives_impacts_by_issn_in_one_spelling(table: Path) -> None:
    table.write_text("journal,issn,value\nNature,00280836,64.8\nother,1332-098x,0\n")
    assert read_table(table) == {"0028-0836": 64.8, "1332-098X": 0.0}


def test_of_several_years_the_latest_counts_wherever_it_stands(table: Path) -> None:
    table.write_text("issn,year,value\n0028-0836,2020,1\n0028-0836,2022,2\n0028-0836,2021,3\n1332-098X,,4\n")
    assert read_table(table) == {"0028-0836": 2.0, "1332-098X": 4.0}


def test_a_table_of_a_spreadsheet_is_read(table: Path) -> None:
    table.write_bytes(b'\xef\xbb\xbfissn,value\r\n"0028-0836","64.8"\r\n\r\n')
    assert read_table(table) == {"0028-0836": 64.8}


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("", ":1: no column issn and value; expected issn, value[, year]"),
        ("issn;value\n", ":1: no column issn and value; expected issn, value[, year]"),
        ("issn,impact\n", ":1: no column value; expected issn, value[, year]"),
        ("issn,value\n0028-0836,1\n0028-0837,1\n", ":3: issn is '0028-0837'; expected eight digits with a valid"),
        ("issn,value\n0028-0836,1\n\n,1\n", ":4: issn is ''; expected eight digits"),
        ("issn,value\n0028-0836,high\n", ":2: could not convert string to float: 'high'; expected numbers in value"),
        ("issn,value\n0028-0836,\n", ":2: could not convert string to float: ''; expected numbers in value"),
        ("issn,value\n0028-0836\n", ":2: float() argument must be"),
        ("issn,value\n0028-0836,nan\n", ":2: value is nan; expected an impact, 0 or more"),
        ("issn,value\n0028-0836,inf\n", ":2: value is inf; expected an impact, 0 or more"),
        ("issn,value\n0028-0836,-1\n", ":2: value is -1; expected an impact, 0 or more"),
        ("issn,year,value\n0028-0836,last,1\n", ":2: invalid literal for int() with base 10: 'last'; expected numbers"),
        (b"issn,value\n\xe9,1\n", ": not UTF-8; expected a CSV file saved as UTF-8"),
        ('issn,value\n0028-0836,"1' + 200_000 * "\n", ": field larger than field limit (131072); expected a CSV file"),
    ],
)
def test_what_is_wrong_in_a_table_is_told_with_its_line(table: Path, content: bytes | str, fault: str) -> None:
    assert told(table, content).startswith(fault)


def test_a_table_that_is_missing_is_told(table: Path) -> None:
    with pytest.raises(UserError, match=r"No such file or directory; expected the file of enrich.impact_csv"):
        read_table(table)


def test_only_the_issns_that_are_asked_for_and_known_have_an_impact(table: Path) -> None:
    table.write_text("issn,value\n0028-0836,64.8\n1332-098X,0.5\n")
    assert impacts_at_hand("csv", table, ["0028-0836", "1234-5679"]) == {"0028-0836": 64.8}


# The package


def test_without_the_package_one_line_tells_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "impact_factor", None)
    monkeypatch.setitem(sys.modules, "impact_factor.core", None)
    with pytest.raises(MissingError) as error:
        package_impacts(["0028-0836"])
    assert "pip install 'litgrade[impact-factor]'" in str(error.value)
    assert str(error.value).startswith("enrich.impact=impact_factor: ")
    assert "\n" not in str(error.value)


def test_the_package_gives_what_it_knows_and_nothing_for_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    class Factor:
        """Answers as the package does: a list of records, empty where it knows none."""

        def search(self, issn: str) -> list[dict[str, Any]]:
            factors = {"0028-0836": 64.8, "1332-098X": None}
            return [{"journal": "Bees", "factor": factors[issn]}] if issn in factors else []

    package, core = ModuleType("impact_factor"), ModuleType("impact_factor.core")
    core.Factor = Factor  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "impact_factor", package)
    monkeypatch.setitem(sys.modules, "impact_factor.core", core)
    issns = ["0028-0836", "1332-098X", "1234-5679"]
    assert impacts_at_hand("impact_factor", None, issns) == {"0028-0836": 64.8}


# OpenAlex


def test_venues_are_asked_for_fifty_at_a_time() -> None:
    openalex = source("openalex")
    issns = [f"{i:04d}-0000" for i in range(120)]
    requests = [openalex.venues(some) for some in batches(issns, openalex.issns_a_request)]
    assert [request.params["filter"].count("|") + 1 for request in requests] == [50, 50, 20]
    assert all(request.url.endswith("/sources") for request in requests)
    assert batches([], openalex.issns_a_request) == []


def test_a_venue_has_its_impact_under_every_issn() -> None:
    body = b"""{"results": [
        {"issn_l": "0028-0836", "issn": ["0028-0836", "1476-4687"], "summary_stats": {"2yr_mean_citedness": 20.5}},
        {"issn_l": "1332-098X", "issn": null, "summary_stats": {"2yr_mean_citedness": null}},
        {"issn_l": "1234-5679", "issn": ["1234-5679"], "summary_stats": null}]}"""
    assert source("openalex").read_venues(body) == {"0028-0836": 20.5, "1476-4687": 20.5}


def test_a_spent_budget_is_as_final_for_venues_as_for_works() -> None:
    assert source("openalex").retries(429, {"x-ratelimit-remaining": "0"}, b"") is False


def test_an_answer_without_venues_is_malformed() -> None:
    openalex = source("openalex")
    with pytest.raises(MalformedError):
        openalex.read(b'{"error": "Invalid query parameters"}', openalex.venues(["0028-0836"]))
