"""arXiv: what is asked, and what its feeds mean."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.papers import Query
from pipeline.sources import MalformedError, Page, RefusedError, Request
from source_helpers import source

DAY = datetime.date(2026, 9, 1)
QUERY = Query("q1", "Testing of software")


def feed(*entries: str, total: int | None = None) -> bytes:
    n = len(entries) if total is None else total
    return f"""<?xml version="1.0" encoding="UTF-8"?>
        <feed xmlns="http://www.w3.org/2005/Atom" xmlns:arxiv="http://arxiv.org/schemas/atom"
              xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/">
          <opensearch:totalResults>{n}</opensearch:totalResults>{"".join(entries)}
        </feed>""".encode()


def entry(identifier: str, title: str = "A title", more: str = "") -> str:
    return f"<entry>{more}<title>{title}</title><id>http://arxiv.org/abs/{identifier}</id></entry>"


def asked(start: int, limit: int) -> Request:
    first = source("arxiv").search(QUERY, DAY, limit)
    return replace(first, params={**first.params, "start": str(start)})


def read(body: bytes, start: int = 0, limit: int = 100) -> Page:
    return source("arxiv").read(body, asked(start, limit))


def test_any_word_may_stand_anywhere_and_the_most_relevant_come_first() -> None:
    request = source("arxiv").search(Query("q", "Deep learning", keywords=("protein folding",)), DAY, 30)
    assert request.url == "https://export.arxiv.org/api/query"
    assert request.params == {
        "search_query": 'all:deep OR all:learning OR all:"protein folding"',
        "start": "0",
        "max_results": "30",
        "sortBy": "relevance",
        "sortOrder": "descending",
    }


@pytest.mark.parametrize(
    ("text", "search"),
    [
        ('A AND B: "graphs" (and) R&D', "all:b OR all:graphs OR all:r OR all:d"),
        ("Über ANDNOT submittedDate:[2020 TO 2021]", "all:über OR all:submitteddate OR all:2020 OR all:2021"),
        ("To be or not to be", 'all:"to be or not to be"'),
        ("图神经网络 综述", "all:图神经网络 OR all:综述"),
        ("self-supervised", 'all:"self-supervised"'),
    ],
)
def test_no_text_can_break_the_search(text: str, search: str) -> None:
    assert source("arxiv").search(Query("q", text), DAY, 10).params["search_query"] == search


def test_a_page_is_no_larger_than_what_is_wanted() -> None:
    assert source("arxiv").search(QUERY, DAY, 1000).params["max_results"] == "100"
    assert source("arxiv").search(QUERY, DAY, 7).params["max_results"] == "7"


def test_the_next_page_starts_after_the_records_received() -> None:
    first = source("arxiv", page_size=2).search(QUERY, DAY, 30)
    second = source("arxiv", page_size=2).read(feed(entry("2101.00001v1"), entry("2101.00002v1"), total=9), first)
    assert second.following is not None
    assert (second.following.params["start"], second.following.params["max_results"]) == ("2", "2")
    last = source("arxiv", page_size=2).read(feed(entry("2101.00003v1"), total=3), second.following)
    assert last.following is None  # 3 of 3


def test_a_walk_ends_with_the_total_and_where_the_server_goes_no_deeper() -> None:
    assert read(feed(entry("2101.00001v1"), total=1)).following is None
    assert read(feed(entry("2101.00001v1"), total=90_000), start=29_998).following is not None
    assert read(feed(entry("2101.00001v1"), total=90_000), start=29_999).following is None


def test_an_empty_feed_is_an_end_only_where_the_total_is_reached() -> None:
    assert read(feed(total=20), start=20).following is None
    with pytest.raises(MalformedError, match="empty page at 10 of 20"):
        read(feed(total=20), start=10)


def test_the_highest_version_on_a_page_is_kept_in_its_place() -> None:
    page = read(
        feed(entry("2101.1v1"), *(entry(f"2101.00001v{v}", f"Version {v}") for v in (2, 10, 9)), entry("2101.00002v1"))
    )
    assert [(paper.paper_id, paper.title) for paper in page.papers] == [
        ("arxiv:2101.00001", "Version 10"),
        ("arxiv:2101.00002", "A title"),
    ]
    assert page.received == 5  # one of them has no id of arXiv


def test_an_entry_is_mapped_field_by_field() -> None:
    more = """<published>2021-03-14T09:26:53Z</published><updated>2022-01-01T00:00:00Z</updated>
        <summary>  Two
          lines with $x^2$. </summary>
        <author><name>Ada  Lovelace</name><arxiv:affiliation>London</arxiv:affiliation></author>
        <author><name>Émilie du Châtelet</name></author>
        <category term="cs.LG"/><category term="stat.ML"/><arxiv:primary_category term="stat.ML"/>
        <arxiv:doi>10.1234/ABC</arxiv:doi><arxiv:journal_ref>J. Tests 3:1-9</arxiv:journal_ref>
        <link rel="alternate" href="https://arxiv.org/abs/2103.01234v2"/>
        <link rel="related" title="pdf" href="https://arxiv.org/pdf/2103.01234v2"/>"""
    (paper,) = read(feed(entry("2103.01234v2", more=more))).papers
    assert (paper.paper_id, paper.source, paper.doi) == ("arxiv:2103.01234", "arxiv", "10.48550/arxiv.2103.01234")
    assert paper.published_as == "10.1234/abc"
    assert paper.abstract == "Two lines with $x^2$."
    assert paper.authors == ("Ada Lovelace", "Émilie du Châtelet")
    assert paper.disciplines == ("stat.ML", "cs.LG")
    assert (paper.publication_date, paper.year) == ("2021-03-14", 2021)
    assert (paper.document_type, paper.venue, paper.journal_name) == ("preprint", "arXiv", None)
    assert (paper.pdf_url, paper.url) == ("https://arxiv.org/pdf/2103.01234v2", "https://arxiv.org/abs/2103.01234v2")
    assert (paper.is_open_access, paper.pdf_available) == (True, True)
    assert (paper.citation_count, paper.issn, paper.keywords, paper.records) == (None, None, (), ())


def test_what_an_entry_lacks_stays_unknown() -> None:
    (paper,) = read(feed(entry("2103.01234v1"))).papers
    assert (paper.abstract, paper.year, paper.pdf_url, paper.pdf_available, paper.url) == ("", None, None, None, None)
    assert paper.published_as is None


def test_an_error_told_in_a_feed_is_no_paper() -> None:
    error = "<entry><id>http://arxiv.org/api/errors#x</id><title>Error</title><summary>bad start</summary></entry>"
    with pytest.raises(RefusedError, match="bad start"):
        read(feed(error))


@pytest.mark.parametrize("body", [b"", b"Rate exceeded.", b"<html><body>Busy</body></html>", feed(entry("1"))[:-20]])
def test_what_is_no_whole_feed_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedError):
        read(body)


def test_recorded_pages_follow_each_other(shared_responses: Path) -> None:
    source_of_ten = source("arxiv", page_size=10)
    first = (shared_responses / "arxiv/search_testing_start40.xml").read_bytes()
    second = (shared_responses / "arxiv/search_testing_start50.xml").read_bytes()
    page = source_of_ten.read(first, asked(40, 10))
    assert page.following is not None
    assert (page.declared, page.following.params["start"], page.following.params["max_results"]) == (214881, "50", "10")
    last = source_of_ten.read(second, page.following)
    ids = [paper.paper_id for paper in (*page.papers, *last.papers)]
    assert len(set(ids)) == len(ids) == 20
    assert (ids[0], ids[10], ids[11]) == ("arxiv:1704.08347", "arxiv:1709.03221", "arxiv:cs/0503050")
    assert last.papers[0].published_as == "10.1145/3106237.3106277"
    assert last.papers[3].journal_name is None  # although it has a journal_ref


def test_a_recorded_empty_page_in_the_middle_is_malformed(shared_responses: Path) -> None:
    with pytest.raises(MalformedError, match="empty page at 60 of 214881"):
        read((shared_responses / "arxiv/search_unexpected_empty_page.xml").read_bytes(), start=60)


def test_recorded_search_results_are_mapped(shared_responses: Path) -> None:
    page = read((shared_responses / "arxiv/search_testing_start10.xml").read_bytes(), start=10)
    assert [len(page.papers), page.received, page.declared] == [10, 10, 214881]
    first = page.papers[0]
    assert (first.paper_id, first.year, first.publication_date) == ("arxiv:2403.16981", 2024, "2024-03-25")
    assert first.disciplines == ("math.ST", "cs.IT", "stat.ML")
    assert first.pdf_url == "https://arxiv.org/pdf/2403.16981v2"
    assert page.papers[8].published_as == "10.1145/3679006.3685071"


def test_a_recorded_search_by_date_has_dates_of_the_first_version(shared_responses: Path) -> None:
    page = read((shared_responses / "arxiv/search_ml_nlp_2020_2022.xml").read_bytes())
    assert (len(page.papers), page.declared) == (23, 96778)
    assert {paper.year for paper in page.papers} == {2022}
    assert page.papers[0].doi == "10.48550/arxiv.2301.00306"
    assert sum(paper.published_as is not None for paper in page.papers) == 5
    assert page.following is not None
    assert page.following.params["start"] == "23"


def test_recorded_look_ups_are_mapped(shared_responses: Path) -> None:
    folder = shared_responses / "arxiv"
    (proceedings,) = read((folder / "id_list_one_invalid_dropped.xml").read_bytes()).papers
    assert (proceedings.paper_id, len(proceedings.authors)) == ("arxiv:1707.08567", 34)
    (old,) = read((folder / "id_old_style_affiliation.xml").read_bytes()).papers
    assert (old.paper_id, old.doi) == ("arxiv:astro-ph/0601001", "10.48550/arxiv.astro-ph/0601001")
    assert old.authors == ("Andrew Gould", "Susan Dorsher", "B. Scott Gaudi", "Andrzej Udalski")
    (zero,) = read((folder / "id_title_is_zero.xml").read_bytes()).papers
    assert (zero.paper_id, zero.title) == ("arxiv:2104.12255", "0")
    assert read((folder / "id_list_unknown_empty.xml").read_bytes()) == Page((), None, declared=0, received=0)


def test_recorded_errors_are_told_apart(shared_responses: Path) -> None:
    with pytest.raises(RefusedError, match="incorrect id format"):
        read((shared_responses / "arxiv/error_bad_id_format_400.xml").read_bytes())
    with pytest.raises(MalformedError, match="Rate exceeded"):
        read((shared_responses / "arxiv/error_429.html").read_bytes())
