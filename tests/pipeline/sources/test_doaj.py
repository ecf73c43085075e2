"""DOAJ: the query in the path, a thousand records, open access throughout."""

import datetime
import json
from urllib.parse import unquote, urlsplit

import pytest

from pipeline.papers import Paper, Query
from pipeline.sources import MalformedError, RefusedError
from source_helpers import source

DAY = datetime.date(2026, 1, 1)


def search(text="deep cats", limit=50, keywords=(), **settings):
    return source("doaj", **settings).search(Query("q", text, keywords=keywords), DAY, limit)


def read(answer, request=None):
    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    return source("doaj").read(body, request or search())


def results(*articles, total=None):
    records = [{"id": f"id{i}", "bibjson": article} for i, article in enumerate(articles)]
    return {"total": len(records) if total is None else total, "page": 1, "results": records}


def only(article) -> Paper:
    [paper] = read(results(article)).papers
    return paper


def test_the_query_is_one_percent_encoded_segment_of_the_path():
    request = search('R&D: a/b AND "c?" #5% Ärzte 中文', keywords=("large (language) models",))
    path = request.url.removeprefix("https://doaj.org/api/search/articles/")
    assert path.isascii()
    assert not set(path) & set('/?#& "')
    assert unquote(path) == 'r OR d OR b OR c OR 5 OR ärzte OR 中文 OR "large language models"'


def test_a_text_of_stop_words_is_asked_as_a_phrase():
    assert search("To be or not to be").url.endswith("/%22to%20be%20or%20not%20to%20be%22")


def test_another_address_is_taken_from_the_settings():
    assert urlsplit(search(base_url="http://127.0.0.1:9/x").url).netloc == "127.0.0.1:9"


@pytest.mark.parametrize(("limit", "page_size", "asked"), [(30, 100, "30"), (500, 100, "100")])
def test_a_page_is_as_large_as_wanted_and_configured(limit, page_size, asked):
    assert search(limit=limit, page_size=page_size).params == {"page": "1", "pageSize": asked}


ARTICLE = {
    "title": "Of <i>Felis</i>",
    "abstract": "<p>We count cats.</p>",
    "year": "2020",
    "month": "March",
    "start_page": "1",
    "end_page": "6",
    "identifier": [
        {"type": "doi", "id": "10.1000/ABC "},
        {"type": "pissn", "id": "0028-0836"},
        {"type": "eissn", "id": "1476-4687"},
    ],
    "journal": {"title": "Cats", "volume": "11", "number": "1", "issns": ["1476-4687"]},
    "author": [{"name": "Ann  Bo", "affiliation": "X"}, {"name": "Cem Dé"}],
    "subject": [{"scheme": "LCC", "term": "Zoology", "code": "QL"}],
    "keywords": ["cat", " wild cat"],
    "link": [
        {"type": "fulltext", "content_type": "HTML", "url": "https://a.org/1"},
        {"type": "fulltext", "content_type": "application/PDF", "url": "https://a.org/1/pdf"},
    ],
}


def test_every_field_of_an_article():
    assert only(ARTICLE) == Paper(
        paper_id="doaj:id0",
        title="Of Felis",
        abstract="We count cats.",
        year=2020,
        authors=("Ann Bo", "Cem Dé"),
        disciplines=("Zoology",),
        document_type="article",
        journal_name="Cats",
        journal_volume="11",
        journal_pages="1-6",
        venue="Cats",
        publication_date="2020-03",
        is_open_access=True,
        pdf_url="https://a.org/1/pdf",
        pdf_available=True,
        url="https://a.org/1",
        doi="10.1000/abc",
        keywords=("cat", "wild cat"),
        source="doaj",
        issn="0028-0836, 1476-4687",
    )


def test_what_an_article_lacks_stays_unknown():
    assert only({"title": "T"}) == Paper(
        "doaj:id0",
        title="T",
        document_type="article",
        is_open_access=True,
        url="https://doaj.org/article/id0",
        source="doaj",
    )


def test_a_link_to_a_file_pdf_is_a_pdf_even_without_a_type():
    paper = only({"title": "T", "link": [{"type": "fulltext", "url": "http://a.org/1.PDF"}]})
    assert (paper.pdf_url, paper.url) == ("http://a.org/1.PDF", "https://doaj.org/article/id0")


def test_other_links_are_left_out():
    assert (
        only({"title": "T", "link": [{"type": "homepage", "content_type": "pdf", "url": "http://a.org"}]}).pdf_url
        is None
    )


def test_a_last_page_alone_is_no_page_to_begin_at():
    assert only({"title": "T", "start_page": "7"}).journal_pages == "7"
    assert only({"title": "T", "end_page": "7"}).journal_pages is None


def test_an_article_needs_a_title_or_a_doi():
    doi = [{"type": "doi", "id": "10.1000/a"}]
    page = read(results({"title": ""}, {"identifier": doi}, {"title": "N/A"}, None))
    assert [(paper.title, paper.doi) for paper in page.papers] == [("", "10.1000/a")]
    assert page.received == 4


def test_pages_follow_until_all_records_came():
    first = search(limit=900)
    page = read(results(*[ARTICLE] * 100, total=900), first)
    assert (page.declared, page.received) == (900, 100)
    second = page.following
    assert second.url == first.url
    assert second.params == {"page": "2", "pageSize": "100"}
    third = read(results(*[ARTICLE] * 100, total=300), second).following
    assert third.params["page"] == "3"
    assert read(results(*[ARTICLE] * 100, total=300), third).following is None


def test_no_page_beyond_a_thousand_records_is_asked():
    request, asked = search(limit=5000), []
    while request is not None:
        asked.append(request.params["page"])
        request = read(results(*[ARTICLE] * 100, total=5_000_000), request).following
    assert asked == [str(n) for n in range(1, 11)]


def test_an_empty_page_in_the_middle_is_malformed():
    second = read(results(*[ARTICLE] * 50, total=120), search(limit=120, page_size=50)).following
    with pytest.raises(MalformedError, match="empty page at 50 of 120"):
        read(results(total=120), second)


@pytest.mark.parametrize(
    "body", [b"", b"<html>503 Service Unavailable</html>", b'{"total": 3}', b'{"results": []}', b"[]"]
)
def test_what_is_no_answer_is_malformed(body):
    with pytest.raises(MalformedError):
        read(body)


def test_an_error_in_place_of_results_is_refused():
    with pytest.raises(RefusedError, match="cannot be"):
        read({"status": "bad_request", "error": "The query cannot be read (ref: 1)"})


def test_real_page(shared_responses):
    page = read((shared_responses / "doaj" / "search_page1.json").read_bytes(), search(limit=200))
    assert (page.declared, page.received, len(page.papers)) == (5412874, 8, 8)
    assert page.following.params["page"] == "2"
    assert [paper.doi is None for paper in page.papers] == [False, True, False, False, True, False, False, True]
    assert [paper.journal_pages for paper in page.papers] == [
        "1-6",
        "431-440",
        None,
        "1737-1740",
        None,
        None,
        None,
        "399-418",
    ]
    assert [paper.publication_date for paper in page.papers[:4]] == ["2020-04", "2013-01", "2017-03", "2015-10"]
    assert [bool(paper.pdf_url) for paper in page.papers] == [False, True, False, True, False, False, False, False]
    assert all(paper.is_open_access and paper.document_type == "article" and paper.abstract for paper in page.papers)
    first, second, *_, last = page.papers
    assert first.paper_id == "doaj:00000b689df5492bb15d3ec8927a4f6d"
    assert (first.doi, first.issn, first.disciplines) == ("10.1038/s41467-020-15686-y", "2041-1723", ("Science",))
    assert (len(first.authors), first.journal_name, first.journal_volume) == (9, "Nature Communications", "11")
    assert (second.issn, len(second.keywords)) == ("0101-3335, 1984-7726", 6)
    assert last.authors == ("Sultan GÜÇLÜ", "Meral UYSAL")
    assert last.keywords[1] == "health education"


def test_real_page_of_two(shared_responses):
    page = read((shared_responses / "doaj" / "search_pagesize2.json").read_bytes(), search(limit=2))
    assert [paper.paper_id[:14] for paper in page.papers] == ["doaj:00000b689", "doaj:00000d914"]
    assert page.following.params == {"page": "2", "pageSize": "2"}


def test_real_single_article(shared_responses):
    page = read((shared_responses / "doaj" / "article_single.json").read_bytes())
    [paper] = page.papers
    assert (paper.doi, paper.year, paper.publication_date) == ("10.3389/neuro.11.009.2007", 2008, "2008-04")
    assert (paper.abstract, len(paper.authors), paper.issn, paper.journal_pages) == ("", 2, "1662-5196", None)
    assert (page.declared, page.following) == (1, None)


def test_real_search_without_hits(shared_responses):
    page = read((shared_responses / "doaj" / "search_empty.json").read_bytes())
    assert (page.papers, page.declared, page.following) == ((), 0, None)


def test_real_error_of_a_page_too_deep(shared_responses):
    with pytest.raises(RefusedError, match="beyond 1000 records"):
        read((shared_responses / "doaj" / "error_400_deep_page.json").read_bytes())
