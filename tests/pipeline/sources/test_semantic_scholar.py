"""Semantic Scholar: requests, walks, and the many shapes of its answers."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest

from pipeline.papers import Paper, Query
from pipeline.sources import MalformedError, Page, RefusedError, Request
from source_helpers import source

DAY = datetime.date(2026, 9, 1)
ONE = Request("http://127.0.0.1/paper/a1")


def read(answer: Any, request: Request = ONE) -> Page:
    page: Page = source("semantic_scholar").read(json.dumps(answer).encode(), request)
    return page


def paper(**record: Any) -> Paper:
    (only,) = read({"paperId": "a1", "title": "Bees", **record}).papers
    return only


def search(text: str, limit: int = 250, **settings: Any) -> Request:
    request: Request = source("semantic_scholar", **settings).search(Query("q", text, ("waggle dance",)), DAY, limit)
    return request


def test_a_search_asks_for_plain_words_and_all_fields() -> None:
    request = search("The dance of honey-bees")
    assert request.url == "https://api.semanticscholar.org/graph/v1/paper/search"
    assert {name: value for name, value in request.params.items() if name != "fields"} == {
        "query": "dance honey bees",
        "offset": "0",
        "limit": "100",
    }
    assert request.params["fields"].split(",") == [
        "paperId", "externalIds", "title", "abstract", "authors", "year", "publicationDate", "venue", "journal",
        "publicationVenue", "publicationTypes", "citationCount", "fieldsOfStudy", "s2FieldsOfStudy", "isOpenAccess",
        "openAccessPdf", "url",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('bees AND "wasps": (ants) [NOT] & flies', "bees wasps ants flies"),
        ("Über Bienen", "über bienen"),
        ("深度学习", "深度学习"),
        ("to be or not to-be", "to be"),
        ("to be or not", "to be or not"),
    ],
)
def test_no_sign_of_a_query_can_break_a_search(text: str, words: str) -> None:
    assert search(text).params["query"] == words


def walk_step(answer: dict[str, Any], offset: int = 0, limit: int = 100) -> Page:
    request = search("bees")
    params = {**request.params, "offset": str(offset), "limit": str(limit)}
    return read(answer, Request(request.url, params))


def some(n: int) -> list[dict[str, str]]:
    return [{"paperId": f"a{i}", "title": "Bees"} for i in range(n)]


def test_a_walk_goes_on_at_the_offset_that_is_told() -> None:
    page = walk_step({"total": 500, "offset": 0, "next": 100, "data": some(100)})
    assert page.following is not None
    assert (page.following.params["offset"], page.following.params["limit"]) == ("100", "100")
    assert (page.declared, page.received) == (500, 100)
    after = walk_step({"total": 500, "offset": 100, "next": 200, "data": some(100)}, offset=100)
    assert after.following is not None
    assert (after.following.params["offset"], after.following.params["limit"]) == ("200", "100")


@pytest.mark.parametrize(
    ("answer", "offset"),
    [
        ({"total": 422, "offset": 300, "data": some(46)}, 300),
        ({"total": 422, "offset": 346}, 346),
        ({"total": 5000, "offset": 900, "next": 1000, "data": some(100)}, 900),
        ({"total": 500, "offset": 100, "next": 100, "data": some(100)}, 100),
        ({"total": 0, "offset": 0}, 0),
        ({"total": 0, "offset": 0, "data": None}, 0),
    ],
)
def test_a_walk_ends_without_a_next_offset_and_at_1000(answer: dict[str, Any], offset: int) -> None:
    assert walk_step(answer, offset=offset).following is None


def test_the_last_page_stays_below_1000() -> None:
    page = walk_step({"total": 5000, "offset": 850, "next": 950, "data": some(100)}, offset=850)
    assert page.following is not None
    assert page.following.params["limit"] == "50"


@pytest.mark.parametrize(
    "answer", [{"total": 500, "offset": 0, "data": []}, {"total": 500, "next": 100, "data": []}, {"total": 9}]
)
def test_an_empty_page_that_should_hold_papers_is_malformed(answer: dict[str, Any]) -> None:
    with pytest.raises(MalformedError, match="empty page at 0"):
        walk_step(answer)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"<html>502</html>",
        b'{"total": 5, "da',
        b"[{",
        b"7",
        b"{}",
        b'{"message": "Too Many Requests", "code": "429"}',
    ],
)
def test_a_body_that_is_no_answer_is_malformed(sent: bytes) -> None:
    with pytest.raises(MalformedError):
        source("semantic_scholar").read(sent, ONE)


def test_an_error_told_inside_an_answer_is_a_refusal() -> None:
    with pytest.raises(RefusedError, match="unsupported fields"):
        read({"error": "Unrecognized or unsupported fields: [unknown]"})


@pytest.mark.parametrize(
    "answer",
    [
        {"paperId": "a1", "title": "Bees"},
        {"data": [{"paperId": "a1", "title": "Bees", "matchScore": 1.0}]},
        {"total": 1, "token": "T", "data": [{"paperId": "a1", "title": "Bees"}]},
        [None, {"paperId": "a1", "title": "Bees"}],
        {"offset": 0, "next": 1, "data": [{"citedPaper": {"paperId": "a1", "title": "Bees"}, "intents": []}]},
        {"offset": 0, "data": [{"citingPaper": {"paperId": "a1", "title": "Bees"}}]},
        {"citedPaper": {"paperId": "a1", "title": "Bees"}, "contexts": []},
    ],
)
def test_papers_are_found_in_an_answer_of_any_shape(answer: Any) -> None:
    page = read(answer)
    assert [paper.paper_id for paper in page.papers] == ["semantic_scholar:a1"]
    assert page.following is None


def test_every_field_of_an_article_finds_its_place() -> None:
    article = paper(
        externalIds={"DOI": "10.1000/A", "ArXiv": "2101.00001", "CorpusId": 7},
        title="Bees &amp; dance",
        abstract="They dance.",
        authors=[{"authorId": None, "name": "E. Lind"}, {"name": "B. Li"}],
        year=2021,
        publicationDate="2021-03-14",
        venue="J. Bees",
        journal={"name": "Journal of Bees", "volume": "12", "pages": "\n   3 - 9\n  "},
        publicationVenue={"type": "journal", "issn": "0028-0836", "alternate_issns": ["1476-4687"]},
        publicationTypes=["JournalArticle"],
        citationCount=0,
        fieldsOfStudy=["Biology"],
        s2FieldsOfStudy=[
            {"category": "Biology", "source": "external"},
            {"category": "Biology"},
            {"category": "Physics"},
        ],
        isOpenAccess=True,
        openAccessPdf={"url": "https://bees.example/a.pdf?a=1&copy=2", "status": "GOLD"},
        url="https://www.semanticscholar.org/paper/a1",
    )
    assert article == Paper(
        paper_id="semantic_scholar:a1",
        title="Bees & dance",
        abstract="They dance.",
        year=2021,
        authors=("E. Lind", "B. Li"),
        citation_count=0,
        disciplines=("Biology", "Physics"),
        document_type="article",
        journal_name="Journal of Bees",
        journal_volume="12",
        journal_pages="3-9",
        publication_type="JournalArticle",
        venue="Journal of Bees",
        publication_date="2021-03-14",
        is_open_access=True,
        pdf_url="https://bees.example/a.pdf?a=1&copy=2",
        pdf_available=True,
        url="https://www.semanticscholar.org/paper/a1",
        doi="10.1000/a",
        source="semantic_scholar",
        issn="0028-0836, 1476-4687",
        preprints=("10.48550/arxiv.2101.00001",),
    )


def test_what_is_not_told_stays_unknown() -> None:
    bare = Paper("semantic_scholar:a1", title="Bees", source="semantic_scholar")
    assert paper() == bare
    nothing = dict.fromkeys(search("bees").params["fields"].split(","))
    assert (
        paper(**nothing | {"paperId": "a1", "title": "Bees", "venue": "", "journal": {"name": "", "volume": ""}})
        == bare
    )


def test_under_the_doi_of_arxiv_or_none_an_arxiv_paper_is_a_preprint() -> None:
    journal = {"name": "ArXiv", "volume": "abs/2101.00001"}
    for ids in ({"ArXiv": "2101.00001", "DOI": "10.48550/arXiv.2101.00001"}, {"ArXiv": "2101.00001"}):
        preprint = paper(externalIds=ids, journal=journal, venue="arXiv.org", publicationTypes=["JournalArticle"])
        assert (preprint.doi, preprint.document_type) == ("10.48550/arxiv.2101.00001", "preprint")
        assert (preprint.journal_name, preprint.journal_volume, preprint.venue) == (None, None, "arXiv.org")
        assert preprint.preprints == ()


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (["Review", "JournalArticle"], "review"),
        (["JournalArticle", "Conference"], "conference paper"),
        (["Conference", "Review"], "conference paper"),
        (["LettersAndComments"], "letter"),
        (["News"], "other"),
        ([], None),
        (None, None),
    ],
)
def test_of_several_types_the_one_that_says_most_counts(types: list[str] | None, expected: str | None) -> None:
    assert paper(publicationTypes=types).document_type == expected


def test_proceedings_are_a_conference_and_no_journal() -> None:
    talk = paper(
        journal={"name": "2021 BeeConf (BC)", "pages": "1-6"}, venue="Bee Conference", publicationTypes=["Conference"]
    )
    assert (talk.conference_name, talk.journal_name, talk.venue) == ("Bee Conference", None, "Bee Conference")
    assert talk.journal_pages == "1-6"


@pytest.mark.parametrize(
    ("record", "pdf_url", "is_available"),
    [
        ({"isOpenAccess": True, "openAccessPdf": {"url": "", "status": None}}, None, None),
        ({"isOpenAccess": False, "openAccessPdf": {"url": "", "status": "CLOSED"}}, None, False),
        ({"isOpenAccess": False, "openAccessPdf": {"url": "", "status": None}}, None, None),
        ({"isOpenAccess": True, "openAccessPdf": {"url": "https://doi.org/10.1/a", "status": "GOLD"}}, None, None),
        ({"isOpenAccess": True, "openAccessPdf": {"url": "http://dx.doi.org/10.1/a", "status": "GOLD"}}, None, None),
        ({"isOpenAccess": True, "openAccessPdf": {"url": "https://a.example/x.pdf"}}, "https://a.example/x.pdf", True),
        ({"openAccessPdf": None}, None, None),
    ],
)
def test_the_address_of_a_doi_is_no_pdf(record: dict[str, Any], pdf_url: str | None, is_available: bool | None) -> None:
    assert (paper(**record).pdf_url, paper(**record).pdf_available) == (pdf_url, is_available)


def test_a_record_needs_an_id_and_a_title_or_a_doi() -> None:
    page = read(
        [
            {"paperId": "a1", "title": None},
            {"paperId": None, "title": "An unresolved reference"},
            {"paperId": None, "title": "", "externalIds": {"DOI": "10.1000/a"}},
            {"paperId": "a2", "title": "Bees"},
            None,
        ]
    )
    assert [paper.paper_id for paper in page.papers] == ["semantic_scholar:10.1000/a", "semantic_scholar:a2"]
    assert page.received == 5


@pytest.mark.parametrize("junk", [None, 7, "x", [], {}, [[]], [None, 7], {"a": [1]}, True])
def test_a_field_of_another_kind_than_expected_never_loses_the_page(junk: object) -> None:
    keys = [*search("bees").params["fields"].split(",")[3:], "externalIds"]
    records = [{"paperId": f"a{i}", "title": "Bees", key: junk} for i, key in enumerate(keys)]
    assert len(read([*records, {"paperId": junk, "title": []}]).papers) == len(keys)


# The recorded answers.


def recorded(shared_responses: Any, name: str, request: Request = ONE) -> tuple[dict[str, Paper], Page]:
    page = source("semantic_scholar").read((shared_responses / "semantic_scholar" / name).read_bytes(), request)
    return {paper.paper_id.removeprefix("semantic_scholar:")[:8]: paper for paper in page.papers}, page


def test_the_recorded_walk(shared_responses: Any) -> None:
    papers, page = recorded(shared_responses, "search_page1.json", search("machine learning", page_size=14))
    assert (len(papers), page.declared) == (14, 11626)
    assert page.following is not None
    assert page.following.params["offset"] == "14"
    focus = papers["9ab808ae"]
    assert (focus.journal_pages, focus.journal_volume, focus.journal_name) == ("E7", "52 4", "Neurosurgical focus")
    assert papers["cb991711"].journal_pages == "1120-1130"
    assert papers["a403facd"].doi == "10.56578/ataiml010201"
    assert papers["39d8cc72"].document_type == "conference paper"
    assert (papers["96a85f6b"].doi, papers["96a85f6b"].venue, papers["96a85f6b"].document_type) == (None, None, None)
    assert (papers["35df7522"].is_open_access, papers["35df7522"].pdf_url) == (True, None)
    papers, page = recorded(shared_responses, "search_page2_last.json", page.following)
    assert (len(papers), page.following) == (14, None)
    assert (papers["ebdb02f9"].doi, papers["ebdb02f9"].document_type) == ("10.48550/arxiv.2106.07410", "preprint")
    assert papers["d38d5de7"].journal_pages == "277-289"
    assert papers["d38d5de7"].disciplines == ("Medicine", "Computer Science")
    assert papers["f0018ee7"].doi == "10.31234/osf.io/293kt"


def test_recorded_bulk_pages(shared_responses: Any) -> None:
    papers, page = recorded(shared_responses, "bulk_page1.json")
    assert (len(papers), page.declared, page.following) == (16, 8269, None)
    assert (papers["00445562"].doi, papers["00445562"].preprints) == ("10.48550/arxiv.2208.14493", ())
    assert papers["00445562"].pdf_url == "http://arxiv.org/pdf/2208.14493"
    assert papers["00480c39"].doi == "10.1111/jnu.12852"
    papers, _ = recorded(shared_responses, "bulk_last_page.json")
    assert len(papers) == 12
    assert (papers["006eb3ab"].authors, papers["006eb3ab"].publication_date) == ((), None)
    assert papers["006ede6a"].authors[0] == "Taiqi He"


def test_recorded_answers_without_hits(shared_responses: Any) -> None:
    for name, declared in (("search_no_hits.json", 0), ("match_empty_data.json", None)):
        papers, page = recorded(shared_responses, name)
        assert (papers, page.declared, page.received) == ({}, declared, 0)
    assert recorded(shared_responses, "search_no_hits.json", search("bees"))[1].following is None


def test_recorded_references_and_citations(shared_responses: Any) -> None:
    papers, page = recorded(shared_responses, "references_offset0.json")
    assert (len(papers), page.received) == (40, 50)  # ten were never resolved
    papers, page = recorded(shared_responses, "references_offset50_last.json")
    assert (len(papers), page.received) == (4, 17)
    papers, _ = recorded(shared_responses, "citations_offset0.json")
    assert (len(papers), papers["279d374e"].title[:21]) == (25, "Innovative Strategies")
    papers, _ = recorded(shared_responses, "reference_item_full.json")
    icml = papers["331f0fb3"]
    assert (icml.conference_name, icml.journal_name) == ("International Conference on Machine Learning", None)
    assert (icml.doi, icml.journal_pages) == ("10.48550/arxiv.1402.0030", "1791-1799")


def test_recorded_match_batch_and_single_papers(shared_responses: Any) -> None:
    papers, _ = recorded(shared_responses, "match_hit.json")
    copper = papers["4187800a"]
    assert (copper.doi, copper.pdf_available, copper.document_type) == ("10.1063/1.4938384", False, None)
    papers, page = recorded(shared_responses, "batch_with_null.json")
    assert (len(papers), page.received) == (3, 4)
    assert papers["c31c87c5"].citation_count == 10670
    assert (papers["0f40b1f0"].citation_count, papers["0f40b1f0"].publication_date) == (0, None)
    papers, page = recorded(shared_responses, "paper_null_values.json")
    assert (papers, page.received) == ({}, 1)
    article = recorded(shared_responses, "paper_xgen_2025.json")[0]["7e5d4466"]
    assert (article.journal_name, article.venue, article.year) == ("Cell Genomics", "Cell Genomics", 2024)
    review = recorded(shared_responses, "paper_addr_2015.json")[0]["b6c4e9f2"]
    assert (review.journal_pages, review.pdf_url, review.document_type) == ("46-51", None, "review")
    report = recorded(shared_responses, "paper_no_authors.json")[0]["e0d2719e"]
    assert (report.authors, report.citation_count, report.journal_pages) == ((), 0, "145-145")


def test_recorded_errors(shared_responses: Any) -> None:
    for name in ("error_400_fields.json", "error_404_title_match.json"):
        with pytest.raises(RefusedError):
            recorded(shared_responses, name)
    for name in ("error_403.json", "error_429.json"):
        with pytest.raises(MalformedError):
            recorded(shared_responses, name)
