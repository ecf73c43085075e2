"""Web of Science: citations of free keys are unknown, an open page range ends nowhere."""

import datetime
import json

import pytest

from pipeline.papers import Paper, Query
from pipeline.sources import MalformedError, RefusedError
from source_helpers import source

DAY = datetime.date(2026, 1, 1)


def search(text="deep cats", limit=20, keywords=(), **settings):
    return source("wos", **settings).search(Query("q", text, keywords=keywords), DAY, limit)


def read(answer, request=None):
    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    return source("wos").read(body, request or search())


def hits(*records, total=None):
    return {"metadata": {"total": len(records) if total is None else total}, "hits": list(records)}


def only(**record) -> Paper:
    [paper] = read(hits({"uid": "WOS:1", "title": "T", **record})).papers
    return paper


def test_the_topic_is_searched_for_any_word_best_first():
    request = search('R&D: cats NOT (dogs) NEAR/3 "same* Ärzte 中文', keywords=("deep learning", "AND"), limit=80)
    assert request.url == "https://api.clarivate.com/apis/wos-starter/v1/documents"
    assert request.params == {
        "q": 'TS=(r OR d OR cats OR dogs OR 3 OR ärzte OR 中文 OR "deep learning")',
        "db": "WOS",
        "sortField": "RS+D",
        "limit": "50",
        "page": "1",
    }


def test_a_text_of_stop_words_is_asked_as_a_phrase():
    assert search("NOT this OR that").params["q"] == 'TS=("not this or that")'


def test_the_key_goes_into_a_header():
    [key] = source("wos").credentials
    assert (key.env, key.header, key.param, key.required) == (("WOS_API_KEY",), "X-ApiKey", None, True)


def test_every_field_of_a_record():
    paper = only(
        title="Of <i>Felis</i>",
        types=["Article"],
        sourceTypes=["Article", "Early Access"],
        source={
            "sourceTitle": "CATS",
            "publishYear": 2017,
            "publishMonth": "FEB 15",
            "volume": "64",
            "pages": {"range": "935-947", "begin": "935", "end": "947", "count": 13},
        },
        names={"authors": [{"displayName": "Bo, Ann", "wosStandard": "Bo, A"}, {"wosStandard": "DE, C"}]},
        links={"record": "https://a.org/WOS:1", "references": "https://a.org/refs"},
        citations=[{"db": "MEDLINE", "count": 5}, {"db": "WOS", "count": 7}],
        identifiers={"doi": "10.1000/ABC", "issn": "0028-0836", "eissn": "1476-4687"},
        keywords={"authorKeywords": ["cat", "wild cat"]},
    )
    assert paper == Paper(
        paper_id="wos:WOS:1",
        title="Of Felis",
        year=2017,
        authors=("Bo, Ann", "DE, C"),
        citation_count=7,
        document_type="article",
        journal_name="CATS",
        journal_volume="64",
        journal_pages="935-947",
        publication_type="Article; Early Access",
        venue="CATS",
        publication_date="2017-02-15",
        url="https://a.org/WOS:1",
        doi="10.1000/abc",
        keywords=("cat", "wild cat"),
        source="wos",
        issn="0028-0836, 1476-4687",
    )


def test_what_a_record_lacks_stays_unknown():
    assert only() == Paper("wos:WOS:1", title="T", source="wos")


@pytest.mark.parametrize(
    ("citations", "count"),
    [
        ([], None),
        (None, None),
        ([{"db": "BCI", "count": 9}], None),
        ([{"db": "WOS", "count": 0}], 0),
        ([{"db": "WOS"}], None),
    ],
)
def test_only_citations_of_the_core_collection_count(citations, count):
    assert only(citations=citations).citation_count == count


@pytest.mark.parametrize(
    ("source_", "pages"),
    [
        ({"pages": {"range": "211-&", "begin": "211", "end": "&", "count": 0}}, "211"),
        ({"pages": {"range": "1-9"}, "articleNumber": "42"}, "1-9"),
        ({"pages": {}, "articleNumber": "42"}, "42"),
        ({}, None),
    ],
)
def test_pages_or_the_number_of_the_article(source_, pages):
    assert only(source=source_).journal_pages == pages


@pytest.mark.parametrize(
    ("month", "date"),
    [("FEB", "2017-02"), ("MAR 01", "2017-03-01"), ("OCT-DEC", "2017"), ("SPR", "2017"), (None, "2017"), (2, "2017")],
)
def test_a_month_is_taken_where_it_is_one(month, date):
    assert only(source={"publishYear": 2017, "publishMonth": month}).publication_date == date


@pytest.mark.parametrize(
    ("types", "kind", "venue_field"),
    [
        (["Article"], "article", "journal_name"),
        (["Review"], "review", "journal_name"),
        (["Proceedings Paper"], "conference paper", "conference_name"),
        (["Article", "Proceedings Paper"], "conference paper", "journal_name"),
        (["Article", "Book Chapter"], "book chapter", "venue"),
        (["Article", "Retracted Publication"], "retraction", "journal_name"),
        (["Correction"], "erratum", "journal_name"),
        (["Meeting Abstract"], "other", "journal_name"),
        ([], None, "journal_name"),
    ],
)
def test_types_and_venues(types, kind, venue_field):
    paper = only(types=types, source={"sourceTitle": "S"})
    assert paper.document_type == kind
    assert getattr(paper, venue_field) == "S"
    assert [paper.journal_name, paper.conference_name].count("S") == (venue_field != "venue")


def test_a_record_needs_a_title_or_a_doi():
    page = read(hits({"uid": "1"}, {"uid": "2", "identifiers": {"doi": "10.1000/a"}}, None, {"title": "no id"}))
    assert [paper.paper_id for paper in page.papers] == ["wos:2"]
    assert page.received == 4


def test_pages_of_one_size_follow_until_all_records_came():
    records = [{"uid": f"WOS:{i}", "title": "T"} for i in range(50)]
    page = read(hits(*records, total=305), search(limit=80))
    assert (page.declared, page.following.params["page"], page.following.params["limit"]) == (305, "2", "50")
    assert read(hits(*records, total=100), page.following).following is None
    assert read(hits(*records, total=50), search(limit=80)).following is None


def test_an_empty_page_in_the_middle_is_malformed():
    with pytest.raises(MalformedError, match="empty page at 0 of 305"):
        read(hits(total=305))


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b'{"hits": []}', b'{"metadata": {"total": 3}}', b'{"metadata": null, "hits": [{}]}']
)
def test_what_is_no_answer_is_malformed(body):
    with pytest.raises(MalformedError):
        read(body)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"error": {"status": 400, "title": "Bad query", "details": "No tag"}}, "Bad query: No tag"),
        ({"error": "invalid_request", "error_description": "Missing key"}, "invalid_request: Missing key"),
    ],
)
def test_errors_of_both_shapes_are_told(answer, reason):
    with pytest.raises(RefusedError, match=reason):
        read(answer)


def test_real_page_with_citations(shared_responses):
    page = read((shared_responses / "wos" / "documents_topic_page1.json").read_bytes(), search(limit=100))
    [paper] = page.papers
    assert page.declared == 317468
    assert page.following.params["page"] == "2"
    assert (paper.paper_id, paper.year, paper.citation_count) == ("wos:WOS:A1959WX53200001", 1959, 1976)
    assert (paper.doi, paper.issn, paper.journal_pages) == ("10.1147/rd.33.0210", "0018-8646", "211")
    assert paper.authors == ("SAMUEL, AL",)
    assert paper.title.startswith("SOME STUDIES IN MACHINE")  # capitals stay
    assert (paper.keywords, paper.abstract, paper.is_open_access) == ((), "", None)
    assert paper.url.endswith("DestApp=WOS_CPL")
    assert "&KeyUT=WOS:A1959WX53200001&" in paper.url


def test_real_record_with_empty_lists_for_links_and_citations(shared_responses):
    [paper] = read((shared_responses / "wos" / "documents_no_citations.json").read_bytes()).papers
    assert (paper.paper_id, paper.url, paper.citation_count) == ("wos:WOS:A1991KR78500001", None, None)
    assert (paper.publication_date, paper.journal_pages, paper.doi) == ("1991", "461-508", "10.1207/s15516709cog1504_1")


def test_real_record_of_a_free_key(shared_responses):
    page = read((shared_responses / "wos" / "document_citations_empty.json").read_bytes())
    [paper] = page.papers
    assert (paper.paper_id, paper.citation_count, paper.doi) == ("wos:WOS:000395826100006", None, None)
    assert (paper.publication_date, paper.authors[1]) == ("2017-02", "Rodriguez, Jose")
    assert (page.declared, page.following) == (1, None)


def test_real_search_without_hits(shared_responses):
    page = read((shared_responses / "wos" / "documents_empty.json").read_bytes())
    assert (page.papers, page.declared, page.following) == ((), 0, None)


def test_real_error(shared_responses):
    with pytest.raises(RefusedError, match="couldn't be found"):
        read((shared_responses / "wos" / "error_404.json").read_bytes())
