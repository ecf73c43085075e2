"""One paper made of all records of it: the fullest is the base, the others fill its gaps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from typing import Any

from pipeline.identifiers import normalize_doi
from pipeline.merging.author_names import read_name, same_person
from pipeline.merging.same_paper import is_preprint, is_published
from pipeline.papers import Paper

_RECORD_ID = re.compile(r"(?!doi:|https?:)\w+:", re.IGNORECASE)  # of a version without a DOI
_OF_ALL = {"doi", "document_type", "preprints", "published_as"}  # of these it counts what the other records are
_FIELDS = [f.name for f in fields(Paper) if f.name not in {"paper_id", "records", "provenance"}]
_TAKEN = [name for name in _FIELDS if name not in _OF_ALL]


def combine_records(records: Iterable[Paper]) -> Paper:
    """Return the paper of these records, in whatever order they come; of one merged paper it is that paper.

    The base is a published record before a preprint, then the fullest. ``provenance`` names the record of each field.
    """
    ordered = _in_order([_tidy(record) for record in records])
    of_doi = _with_the_doi(ordered)
    origins = {name: _origin(name, ordered) for name in _TAKEN}
    origins |= {"document_type": _with_the_type(ordered), "doi": of_doi, "published_as": _linked_outwards(ordered)}
    origins["publication_date"] = _with_the_date(ordered, origins["year"])
    values: dict[str, Any] = {name: getattr(origin, name) for name, origin in origins.items() if origin}
    sources = {name: _source_of(name, origin) for name, origin in origins.items() if origin}
    if preprints := _preprints(ordered, of_doi):
        values["preprints"], sources["preprints"] = tuple(preprints), next(iter(preprints.values()))
    ids = sorted({record_id for record in ordered for record_id in record_ids(record)})
    paper_id = f"doi:{of_doi.doi}" if of_doi else ids[0]
    return Paper(paper_id, **values, records=tuple(ids), provenance=sources)


def record_ids(paper: Paper) -> tuple[str, ...]:
    """Return the ids of the records a paper was merged from, its own where it is a record itself."""
    return paper.records or (paper.paper_id,)


def _tidy(record: Paper) -> Paper:
    return replace(
        record,
        doi=normalize_doi(record.doi),
        preprints=tuple(dict.fromkeys(map(_tidy_link, record.preprints))),
        published_as=_tidy_link(record.published_as) if record.published_as else None,
    )


def _tidy_link(link: str) -> str:
    return link if _RECORD_ID.match(link) else normalize_doi(link) or link


def _in_order(records: Sequence[Paper]) -> list[Paper]:
    """Put published before preprints, then the fullest first; of the preprints of one source the latest version."""
    if len(records) == 1:
        return list(records)
    fullest: dict[str, int] = {}
    for record in records:
        fullest[_source(record)] = max(_fullness(record), fullest.get(_source(record), 0))

    def place(record: Paper) -> tuple[Any, ...]:
        last = (-_fullness(record), record_ids(record), _spelled_out(record))
        if is_published(record):
            return (0, *last)
        return (1, -fullest[_source(record)], _source(record), _latest_first(record.publication_date), *last)

    return sorted(records, key=place)


def _source(record: Paper) -> str:
    return record.source or record_ids(record)[0].partition(":")[0]


def _fullness(record: Paper) -> int:
    return sum(_is_filled(getattr(record, name)) for name in _FIELDS)


def _latest_first(date: str | None) -> tuple[int, ...]:
    numbers = [-int(number) for number in re.findall(r"\d+", date or "")][:3]
    return tuple(numbers + [0] * (3 - len(numbers)))


def _spelled_out(record: Paper) -> str:
    """Return a text that differs where records differ in anything, so that each has its place."""
    return repr((replace(record, provenance={}), sorted(record.provenance.items())))


def _is_filled(value: object) -> bool:
    return value is not None and value not in ("", ())


def _origin(name: str, ordered: Sequence[Paper]) -> Paper | None:
    having = [record for record in ordered if _is_filled(getattr(record, name))]
    return _CHOICES.get(name, _first)(having) if having else None


def _source_of(name: str, record: Paper) -> str:
    return record.provenance.get(name, record_ids(record)[0])


def _first(having: Sequence[Paper]) -> Paper:
    return having[0]


def _most_cited(having: Sequence[Paper]) -> Paper:
    return max(having, key=lambda record: record.citation_count or 0)


def _open(having: Sequence[Paper]) -> Paper:
    return next((record for record in having if record.is_open_access), having[0])


def _with_pdf(having: Sequence[Paper]) -> Paper:
    return next((record for record in having if record.pdf_available), having[0])


def _not_cut(having: Sequence[Paper]) -> Paper:
    """Take a longer list that begins with the same person where the first holds one author: it may be cut."""
    if len(having[0].authors) > 1:
        return having[0]
    only = read_name(having[0].authors[0])
    longer = (record for record in having if len(record.authors) > 1)
    return next((record for record in longer if same_person(only, read_name(record.authors[0]))), having[0])


_CHOICES: dict[str, Callable[[Sequence[Paper]], Paper]] = {
    "authors": _not_cut,
    "citation_count": _most_cited,
    "is_open_access": _open,
    "pdf_url": _with_pdf,
    "pdf_available": _with_pdf,
}


def _with_the_doi(ordered: Sequence[Paper]) -> Paper | None:
    """Return the record whose DOI is the paper's: the article's own before that of a preprint."""
    having = [record for record in ordered if record.doi is not None]
    dois = {record.doi for record in having}
    of_preprints = {doi for record in ordered for doi in record.preprints}
    own = (
        record
        for record in having
        if is_published(record) and record.doi not in of_preprints and record.published_as not in dois - {record.doi}
    )
    return next(own, having[0] if having else None)


def _with_the_type(ordered: Sequence[Paper]) -> Paper | None:
    """Of preprints alone, a source that calls one an article is wrong; an article is no preprint because one is."""
    having = [record for record in ordered if record.document_type]
    if not is_published(ordered[0]):
        return next((record for record in having if record.document_type == "preprint"), having[0] if having else None)
    has_versions = len({record.doi for record in ordered if record.doi}) > 1
    return next((record for record in having if record.document_type != "preprint" or not has_versions), None)


def _with_the_date(ordered: Sequence[Paper], of_year: Paper | None) -> Paper | None:
    """Return the record whose date is the paper's: one that is in the paper's year, not that of a preprint before."""
    having = [record for record in ordered if record.publication_date]
    if of_year is None:
        return having[0] if having else None
    return next((r for r in having if r is of_year or (r.publication_date or "").startswith(str(of_year.year))), None)


def _preprints(ordered: Sequence[Paper], of_doi: Paper | None) -> dict[str, str]:
    """Return the DOIs of all other versions, each with the record it is from.

    Where an article's own DOI is unknown, that of its preprint is the paper's, and stands here as well to say so.
    """
    inside = _names(ordered) - {record.doi for record in ordered}
    found: dict[str, str] = {}
    for record in ordered:
        for link in record.preprints:
            if link not in inside:
                found.setdefault(link, _source_of("preprints", record))
    stands_in = of_doi is not None and is_preprint(of_doi) and is_published(ordered[0])
    for record in ordered:
        if record.doi is not None and of_doi is not None and (stands_in or record.doi != of_doi.doi):
            found.setdefault(record.doi, _source_of("doi", record))
    return found


def _linked_outwards(ordered: Sequence[Paper]) -> Paper | None:
    """Return the first record that was published as something beyond these records."""
    inside = _names(ordered)
    return next((record for record in ordered if record.published_as and record.published_as not in inside), None)


def _names(records: Iterable[Paper]) -> set[str | None]:
    return {name for record in records for name in (record.doi, record.paper_id, *record_ids(record))}
