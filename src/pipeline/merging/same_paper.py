"""Whether two records can be of one paper, or of two versions of one work, judged by these two alone."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipeline.merging.author_names import Name, read_name, same_person
from pipeline.merging.title_keys import TitleKey, differ_by_a_slip, plain_words, read_title
from pipeline.merging.titles import could_be_same
from pipeline.papers import Paper

#: Servers that register DOIs for nothing but preprints. Sources at times call what is there an article.
_PREPRINT_DOI = re.compile(
    r"10\.(?:48550/arxiv\.|1101/(?:\d{6}$|20\d\d\.)|64898/|\d+/osf\.io/|2139/ssrn\.|21203/rs\.|20944/preprints"
    r"|26434/chemrxiv|36227/techrxiv|22541/(?:au|essoar)\.)"
)
_NOTICES = frozenset({"erratum", "retraction"})
_NO_VERSIONS = frozenset({"dataset", "dissertation"})  # may have an article's title and authors, and are none
_NEXT_YEARS = range(-1, 2)  # online first, or as sources tell it
_FIRST_TO_LAST = range(-1, 4)  # years from a preprint to its article


@dataclass(frozen=True, slots=True)
class Traits:
    """All of a paper that tells whether it is the same as another."""

    title: TitleKey | None
    author: Name | None  #: the first; lists may be cut
    year: int | None
    doi: str | None  #: its own, not that of a preprint which is all that is known of an article
    document_type: str | None
    is_preprint: bool
    is_published: bool  #: as far as known; neither: unknown
    is_notice: bool
    volume: str | None  #: where the page is known too
    page: str | None  #: the first; where the volume is known too, or the title needs it
    venues: frozenset[str]  #: where the title needs them


def read_traits(paper: Paper) -> Traits:
    """Return what tells whether a paper is the same as another."""
    title = read_title(paper.title)
    needs_place = title is not None and title.is_weak
    volume, page = _first_number(paper.journal_volume), _first_number(paper.journal_pages)
    venues = (paper.journal_name, paper.conference_name, paper.venue)
    return Traits(
        title=title,
        author=read_name(paper.authors[0]) if paper.authors else None,
        year=paper.year,
        doi=None if paper.doi in paper.preprints else paper.doi,
        document_type=paper.document_type,
        is_preprint=is_preprint(paper),
        is_published=is_published(paper),
        is_notice=paper.document_type in _NOTICES or (title is not None and title.is_notice),
        volume=volume if page else None,
        page=page if volume or needs_place else None,
        venues=frozenset(plain_words(venue) for venue in venues if venue) if needs_place else frozenset(),
    )


def is_preprint(paper: Paper) -> bool:
    """Whether a paper says so, or has the DOI of a preprint server as its own."""
    if paper.document_type == "preprint":
        return True
    return paper.doi is not None and paper.doi not in paper.preprints and _PREPRINT_DOI.match(paper.doi) is not None


def is_published(paper: Paper) -> bool:
    """Whether a paper is known to be more than a preprint; one without type and DOI may be either."""
    return not is_preprint(paper) and (paper.document_type is not None or paper.doi is not None)


def same_record(a: Traits, b: Traits) -> bool:
    """Whether two records without a DOI in common are of one paper: the same title, and nothing speaks against it."""
    if (a.doi and b.doi and a.doi != b.doi) or _stand_elsewhere(a, b):
        return False
    if not _within(a.year, b.year, _NEXT_YEARS) or _are_of_different_kinds(a, b):
        return False
    if (a.is_preprint and b.is_published) or (b.is_preprint and a.is_published):
        return False  # two versions
    if a.title and b.title and a.title.key == b.title.key and a.title.is_weak:
        return _share_author_and_place(a, b)
    return _share_title(a, b)


def are_versions(preprint: Traits, article: Traits) -> bool:
    """Whether these are, without any link, a preprint and its published article."""
    return (
        preprint.is_preprint
        and article.is_published
        and not _are_of_different_kinds(preprint, article)
        and article.document_type not in _NO_VERSIONS
        and _within(preprint.year, article.year, _FIRST_TO_LAST)
        and not (preprint.title is not None and preprint.title.is_weak)
        and _share_title(preprint, article)
    )


def may_be_linked(a: Traits, b: Traits) -> bool:
    """Whether a link that says these are two versions is to be believed: people enter wrong DOIs."""
    if a.is_notice != b.is_notice:
        return False
    if same_person(a.author, b.author):
        return True
    if a.title is None or b.title is None:
        return same_person(a.author, b.author) is None
    return a.title.key == b.title.key or could_be_same(a.title.text, b.title.text)


def _share_title(a: Traits, b: Traits) -> bool:
    """Equal titles are enough where authors are unknown; titles that differ by a slip need a known author and year."""
    if a.title is None or b.title is None:
        return False
    if a.title.key == b.title.key:
        return same_person(a.author, b.author) is not False
    if a.title.is_weak or b.title.is_weak or a.year is None or b.year is None:
        return False
    return differ_by_a_slip(a.title, b.title) and same_person(a.author, b.author) is True


def _share_author_and_place(a: Traits, b: Traits) -> bool:
    if a.year is None or a.year != b.year or not same_person(a.author, b.author):
        return False
    return bool(a.venues & b.venues) or (a.page is not None and a.page == b.page)


def _are_of_different_kinds(a: Traits, b: Traits) -> bool:
    if a.is_notice != b.is_notice:
        return True
    if a.document_type is None or b.document_type is None or a.document_type == b.document_type:
        return False
    return a.document_type in _NO_VERSIONS or b.document_type in _NO_VERSIONS


def _stand_elsewhere(a: Traits, b: Traits) -> bool:
    """Whether volume or page differ; the page of a known author says nothing, being an article number at times."""
    if a.volume is None or b.volume is None or a.page is None or b.page is None:
        return False
    return a.volume != b.volume or (a.page != b.page and same_person(a.author, b.author) is not True)


def _within(earlier: int | None, later: int | None, years: range) -> bool:
    return earlier is None or later is None or later - earlier in years


def _first_number(text: str | None) -> str | None:
    """Return the first number of a volume or of pages ("e123" of "e123-e130"), without leading zeros."""
    found = re.search(r"([a-z]?)0*(\d+)", text.lower()) if text else None
    return found.group(1) + found.group(2) if found else None
