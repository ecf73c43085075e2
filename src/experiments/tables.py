"""Tables as Markdown, LaTeX and CSV. Cells are text or numbers; escaping is done here."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from experiments.files import replacing
from experiments.statistics import Comparison

Rows = Sequence[Sequence[str]]


def markdown(header: Sequence[str], rows: Rows) -> str:
    """Return a Markdown table with columns aligned, readable as plain text too."""
    table = [[cell.replace("|", r"\|").replace("\n", " ") for cell in row] for row in [header, *rows]]
    widths = [max(len(row[i]) for row in table) for i in range(len(header))]
    lines = ["| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) + " |" for row in table]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]])


def latex(header: Sequence[str], rows: Rows) -> str:
    """Return a LaTeX tabular (booktabs) with special characters escaped."""
    lines = [r"\begin{tabular}{l" + "c" * (len(header) - 1) + "}", r"\toprule"]
    lines += [_latex_row(header), r"\midrule", *(_latex_row(row) for row in rows), r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines)


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(_latex_text(cell) for cell in cells) + r" \\"


def _latex_text(text: str) -> str:
    special = {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
        "—": "---",
    }
    special |= {c: f"\\{c}" for c in "&%$#_{}"}
    return "".join(special.get(character, character) for character in text)


def mean_text(mean: float | None, sd: float | None) -> str:
    """Return ``0.512 ± 0.103``; without the second part where there is no sd, and a dash where there is no mean."""
    return "—" if mean is None else f"{mean:.3f}" + ("" if sd is None else f" ± {sd:.3f}")


def signed(value: float) -> str:
    """Return ``+0.012``; never ``-0.000``."""
    return f"{round(value, 3) + 0.0:+.3f}"


#: What ``comparison_cells`` returns.
COMPARISON_HEADER = ("difference", "95% interval", "W", "queries that differ", "p", "p (Holm)")


def comparison_cells(comparison: Comparison, p_holm: float) -> list[str]:
    """Return a comparison as a reader wants it, with its p-value after Holm's correction."""
    c = comparison
    interval = "—" if c.interval is None else " to ".join(map(signed, c.interval))
    numbers = [signed(c.mean_difference), interval, f"{c.w:g}", f"{c.n_nonzero} of {c.n_queries}"]
    return [*numbers, f"{c.p_value:.3g}", f"{p_holm:.3g}"]


def comparison_legend(of: str) -> str:
    """Return what the cells are, for p-values corrected over the arms or the runs of a metric."""
    return (
        "paired Wilcoxon signed-rank test over queries (normal approximation, as in the paper), Holm-corrected over "
        f"the {of} of a metric. Interval: paired bootstrap, stratified by area."
    )


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file; a missing value is an empty cell.

    A text that a spreadsheet would run as a formula gets an apostrophe before it, as OWASP advises for CSV injection;
    ``read_csv`` takes it off again. Lines within a cell end in a newline.
    """
    with replacing(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([_harmless(cell) for cell in header])
        writer.writerows([_harmless(cell) for cell in row] for row in rows)


def read_csv(path: Path) -> list[dict[str, str]]:
    """Return the rows of a file of ``write_csv``, every cell the text that it was."""
    with path.open(encoding="utf-8", newline="") as file:
        return [{_as_given(key): _as_given(cell) for key, cell in row.items()} for row in csv.DictReader(file)]


_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
_FORMULA = re.compile(r"'*[=+\-@\t\n]")  # with apostrophes, so that one more can be told from those of the text


def _harmless(cell: object) -> object:
    if not isinstance(cell, str):
        return cell
    text = cell.replace("\r\n", "\n").replace("\r", "\n")  # Python 3.11 puts no quotes around a \r, which ends a row
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def _as_given(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
