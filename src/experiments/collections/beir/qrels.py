"""Judgments from a qrels table: one header line, columns split by tabs."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from experiments.collections.beir.files import TextFile, shown
from experiments.collections.beir.records import Record
from experiments.judgments import GRADES, Judgments

COLUMNS = ("query-id", "corpus-id", "score")
_EXPECTED = f"expected {', '.join(COLUMNS)}, split by tabs"
_GRADES = {str(grade): grade for grade in GRADES}


def read_judgments(
    file: TextFile, queries: Mapping[str, Record], papers: Container[str], *, is_complete: bool = True
) -> Judgments:
    """Return the grades of every query, in the order of queries and lines; if complete, each query has at least one."""
    grades: dict[str, dict[str, int]] = {query_id: {} for query_id in queries}
    first_lines: dict[tuple[str, str], int] = {}
    for line, query_id, paper_id, score in _read_rows(file):
        if query_id not in queries:
            raise file.error(line, f"judgment for an unknown query {shown(query_id)}; expected an _id of queries.jsonl")
        if paper_id not in papers:
            raise file.error(line, f"judgment for an unknown paper {shown(paper_id)}; expected an _id of corpus.jsonl")
        if score not in _GRADES:
            raise file.error(line, f"score is {shown(score)}; expected one of {', '.join(_GRADES)}")
        first = first_lines.setdefault((query_id, paper_id), line)
        if first != line:
            pair = f"query {shown(query_id)} and paper {shown(paper_id)}"
            raise file.error(line, f"{pair} are already on line {first}; expected every pair once")
        grades[query_id][paper_id] = _GRADES[score]
    for query_id, record in queries.items():
        if is_complete and not grades[query_id]:
            raise record.error(f"query {shown(query_id)} has no judgment; expected at least one in {file.path}")
    return Judgments(grades)


def _read_rows(file: TextFile) -> Iterator[tuple[int, str, str, str]]:
    lines = file.lines()
    number, header = next(lines)
    names = header.split("\t")
    missing = [column for column in COLUMNS if column not in names]
    if missing:
        raise file.error(number, f"no column {', '.join(missing)} in the header {shown(header)}; {_EXPECTED}")
    query, paper, score = (names.index(column) for column in COLUMNS)
    for number, line in lines:
        cells = line.split("\t")
        if len(cells) != len(names):
            raise file.error(number, f"{len(cells)} cells in {shown(line)}; {_EXPECTED} ({len(names)} in the header)")
        yield number, cells[query], cells[paper], cells[score]
