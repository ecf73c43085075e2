"""Scopus: two views, an entry that is none, five thousand records."""

import datetime
import json

import pytest

from pipeline.papers import Paper, Query
from pipeline.sources import MalformedError, RefusedError
from source_helpers import source

DAY = datetime.date(2026, 1, 1)


def search(text="deep cats", limit=100, keywords=(), **settings):
    return source("scopus", **settings).search(Query("q", text, keywords=keywords), DAY, limit)


def read(answer, request=None):
    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    return source("scopus").read(body, request or search())


def results(*entries, total=None):
    declared = len(entries) if total is None else total
    return {"search-results": {"opensearch:totalResults": str(declared), "entry": list(entries)}}


def records(n, start=0):
    return [{"dc:identifier": f"SCOPUS_ID:{start + i}", "dc:title": "T"} for i in range(n)]


def only(**entry) -> Paper:
    [paper] = read(results({"dc:identifier": "SCOPUS_ID:1", "dc:title": "T", **entry})).papers
    return paper


def test_titles_abstracts_and_keywords_are_searched_for_any_word():
    request = search('R&D: cats AND NOT (dogs) W/3 "x{y} Ärzte 中文', keywords=("deep learning", "OR"))
    assert request.url == "https://api.elsevier.com/content/search/scopus"
    assert request.params == {
        "query": 'TITLE-ABS-KEY(r OR d OR cats OR dogs OR w OR 3 OR x OR y OR ärzte OR 中文 OR "deep learning")',
        "view": "COMPLETE",
        "sort": "relevancy",
        "httpAccept": "application/json",
        "start": "0",
        "count": "25",
    }


def test_a_text_of_stop_words_is_asked_as_a_phrase():
    assert search("and not or").params["query"] == 'TITLE-ABS-KEY("and not or")'


def test_the_other_view_can_be_asked_first():
    assert search(view="STANDARD", limit=300).params["count"] == "200"
    assert search(view="STANDARD", limit=30).params["count"] == "30"


def test_keys_go_into_headers():
    key, token = source("scopus").credentials
    assert (key.env, key.header, key.required) == (("SCOPUS_API_KEY",), "X-ELS-APIKey", True)
    assert (token.env, token.header, token.required) == (("SCOPUS_INSTTOKEN",), "X-ELS-Insttoken", False)


COMPLETE = {
    "@_fa": "true",
    "link": [{"@ref": "self", "@href": "https://api/1"}, {"@ref": "scopus", "@href": "https://www/1?a=1&scp=1"}],
    "dc:identifier": "SCOPUS_ID:85124241875",
    "eid": "2-s2.0-85124241875",
    "dc:title": "Of <inf>Felis</inf><sup>†</sup>",
    "dc:creator": "Bo A.",
    "dc:description": "We count &lt;cats&gt;.",
    "prism:publicationName": "Cats &amp; Dogs",
    "prism:issn": "00280836",
    "prism:eIssn": "14764687",
    "prism:isbn": [{"@_fa": "true", "$": "[9783110750508]"}],
    "prism:volume": "5",
    "prism:pageRange": None,
    "article-number": "33",
    "prism:coverDate": "2023-01-01",
    "prism:coverDisplayDate": "2023",
    "prism:doi": "10.1000/ABC",
    "citedby-count": "0",
    "prism:aggregationType": "Journal",
    "subtype": "re",
    "subtypeDescription": "Review",
    "author": [
        {"@seq": "1", "authid": "1", "authname": "Bo A.", "surname": "Bo", "given-name": "Ann"},
        {"@seq": "2", "authid": "2", "authname": "De C.", "surname": "De", "given-name": None},
    ],
    "authkeywords": "cat | wild cat",
    "openaccess": "1",
    "openaccessFlag": True,
}


def test_every_field_of_the_complete_view():
    [paper] = read(results(COMPLETE)).papers
    assert paper == Paper(
        paper_id="scopus:85124241875",
        title="Of Felis†",
        abstract="We count <cats>.",
        year=2023,
        authors=("Ann Bo", "De C."),
        citation_count=0,
        document_type="review",
        journal_name="Cats & Dogs",
        journal_volume="5",
        journal_pages="33",
        publication_type="Review",
        venue="Cats & Dogs",
        publication_date="2023",
        is_open_access=True,
        url="https://www/1?a=1&scp=1",
        doi="10.1000/abc",
        keywords=("cat", "wild cat"),
        source="scopus",
        issn="0028-0836, 1476-4687",
    )


def test_the_standard_view_knows_the_first_author_only():
    assert only(**{"dc:creator": "Bo A."}).authors == ("Bo A.",)


def test_what_a_record_lacks_stays_unknown():
    assert only() == Paper("scopus:1", title="T", source="scopus")


def test_a_record_without_identifier_is_known_by_its_eid():
    [paper] = read(results({"eid": "2-s2.0-77", "dc:title": "T"})).papers
    assert paper.paper_id == "scopus:77"


@pytest.mark.parametrize(
    ("cover", "printed", "date"),
    [
        ("2020-02-15", "15 February 2020", "2020-02-15"),
        ("2020-01-01", "2020", "2020"),
        ("2020-03-01", "March 2020", "2020-03"),
        ("2020-01-01", "January-March 2020", "2020"),
        ("2020-01-01", "January - March 2020", "2020"),
        ("2020-12-01", "Winter 2020", "2020"),
        ("2027-01-01", "1 January 2027", "2027-01-01"),  # issues to come are listed too
        ("2020-02-15", None, "2020-02-15"),
        ("2020-02-15", "2021", "2020-02-15"),
        (None, "2021", None),
    ],
)
def test_a_date_is_as_precise_as_the_cover_prints_it(cover, printed, date):
    paper = only(**{"prism:coverDate": cover, "prism:coverDisplayDate": printed})
    assert paper.publication_date == date


@pytest.mark.parametrize(
    ("subtype", "kind"),
    [
        ("ar", "article"),
        ("cp", "conference paper"),
        ("ch", "book chapter"),
        ("tb", "retraction"),
        ("cr", "other"),
        ("", None),
    ],
)
def test_types(subtype, kind):
    assert only(subtype=subtype).document_type == kind


@pytest.mark.parametrize(
    ("aggregation", "journal", "conference"),
    [("Journal", "V", None), ("Conference Proceeding", None, "V"), ("Book Series", None, None), (None, None, None)],
)
def test_venues(aggregation, journal, conference):
    paper = only(**{"prism:publicationName": "V", "prism:aggregationType": aggregation})
    assert (paper.venue, paper.journal_name, paper.conference_name) == ("V", journal, conference)


@pytest.mark.parametrize(
    ("told", "is_open"),
    [
        ({"openaccess": "1", "openaccessFlag": True}, True),
        ({"openaccess": "0", "openaccessFlag": False}, False),
        ({"openaccess": "1"}, True),
        ({"openaccess": "2"}, None),
        ({"openaccessFlag": None}, None),
    ],
)
def test_open_access(told, is_open):
    paper = only(**told)
    assert paper.is_open_access is is_open
    assert paper.pdf_available is None


def test_the_entry_that_says_there_is_none_is_no_paper():
    page = read(results({"@_fa": "true", "error": "Result set was empty"}, total=0))
    assert (page.papers, page.declared, page.received, page.following) == ((), 0, 0, None)


def test_a_record_needs_a_title_or_a_doi():
    page = read(results({"eid": "1"}, {"eid": "2", "prism:doi": "10.1000/a"}, None, {"dc:title": "no id"}))
    assert [paper.paper_id for paper in page.papers] == ["scopus:2"]
    assert page.received == 4


def test_pages_start_where_the_records_so_far_end():
    first = search(limit=60)
    second = read(results(*records(25), total=14501), first).following
    assert (second.params["start"], second.params["count"]) == ("25", "25")
    third = read(results(*records(25, 25), total=14501), second).following
    assert (third.params["start"], third.params["count"]) == ("50", "25")
    assert read(results(*records(10, 50), total=60), third).following is None
    assert read(results(*records(25), total=25), first).following is None


def test_no_record_beyond_five_thousand_is_asked():
    request, last = search(limit=9000, view="STANDARD", page_size=190), None
    while request is not None:
        last = request.params
        request = read(results(*records(int(last["count"])), total=14501), request).following
    assert (int(last["start"]), int(last["count"])) == (4940, 60)


def test_an_empty_page_in_the_middle_is_malformed():
    second = read(results(*records(25), total=14501)).following
    with pytest.raises(MalformedError, match="empty page at 25 of 14501"):
        read(results({"error": "Result set was empty"}, total=14501), second)


def test_a_view_that_is_not_licensed_is_replaced_by_the_other_at_the_same_place():
    asked = read(results(*records(25), total=14501), search(limit=300)).following
    error = b'{"service-error": {"status": {"statusCode": "AUTHORIZATION_ERROR", "statusText": "no"}}}'
    other = source("scopus").instead(401, error, asked)
    assert other.params == {**asked.params, "view": "STANDARD", "count": "200"}
    assert other.params["start"] == "25"
    assert source("scopus").instead(401, error, other) is None
    following = read(results(*records(200), total=14501), other).following
    assert (following.params["view"], following.params["start"], following.params["count"]) == (
        "STANDARD",
        "225",
        "200",
    )


def test_a_wrong_key_is_replaced_by_nothing():
    error = b'{"service-error": {"status": {"statusCode": "AUTHENTICATION_ERROR"}}}'
    assert source("scopus").instead(401, error, search()) is None


def test_a_page_too_large_for_the_service_level_is_asked_in_smaller_ones():
    error = b'{"service-error": {"status": {"statusText": "Exceeds the maximum number allowed for the service level"}}}'
    asked = search(view="STANDARD", limit=100)
    smaller = source("scopus").instead(400, error, asked)
    assert (asked.params["count"], smaller.params["count"]) == ("100", "25")
    assert source("scopus").instead(400, error, smaller) is None
    assert read(results(*records(25), total=90), smaller).following.params["count"] == "25"
    assert source("scopus").instead(400, b"Error translating query", asked) is None


def test_a_used_up_quota_is_not_asked_again():
    used_up = b'{"service-error": {"status": {"statusCode": "QUOTA_EXCEEDED"}}}'
    assert source("scopus").retries(429, {}, used_up) is False
    assert source("scopus").retries(429, {}, b'{"error-response": {"error-code": "TOO_MANY_REQUESTS"}}') is None


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"service-error": {"status": {"statusCode": "INVALID_INPUT", "statusText": "Bad"}}}, "INVALID_INPUT: Bad"),
        ({"error-response": {"error-code": "QUOTA_EXCEEDED", "error-message": "Wait"}}, "QUOTA_EXCEEDED: Wait"),
    ],
)
def test_errors_in_place_of_results_are_refused(answer, reason):
    with pytest.raises(RefusedError, match=reason):
        read(answer)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"{}",
        b'{"search-results": null}',
        b'{"search-results": {"opensearch:totalResults": "3"}}',
        b'{"service-error": {"status": {"statusCode": "GENERAL_SYSTEM_ERROR"}}}',
        b'<?xml version="1.0"?><search-results xmlns="http://www.w3.org/2005/Atom"><entry/></search-results>',
    ],
)
def test_what_is_no_answer_is_malformed(body):
    with pytest.raises(MalformedError):
        read(body)


def test_real_pair_of_pages_is_walked(shared_responses):
    first = search(view="STANDARD", page_size=8, limit=15)
    page = read((shared_responses / "scopus" / "search_start0.json").read_bytes(), first)
    assert (page.declared, page.received, page.following.params["start"]) == (14501, 8, "8")
    assert page.following.params["count"] == "8"
    rest = read((shared_responses / "scopus" / "search_start8.json").read_bytes(), page.following)
    assert (rest.received, rest.following.params["start"]) == (7, "15")
    papers = [*page.papers, *rest.papers]
    assert len({paper.paper_id for paper in papers}) == 15
    assert all(paper.doi and paper.year == 2022 and len(paper.authors) == 1 and not paper.abstract for paper in papers)


def test_real_records_of_the_standard_view(shared_responses):
    book, article, *_ = read((shared_responses / "scopus" / "search_start0.json").read_bytes()).papers
    assert (book.paper_id, book.document_type, book.issn) == ("scopus:85145343459", "book", None)
    assert (book.journal_name, book.is_open_access, book.citation_count) == (None, False, 5)
    assert book.url.endswith("&scp=85145343459&origin=inward")
    assert (article.doi, article.issn, article.citation_count) == ("10.31202/ecjse.1135868", "2148-3736", 0)
    assert (article.authors, article.publication_date) == (("Mert F.",), "2022-12-31")
    assert (article.is_open_access, article.journal_pages, article.journal_volume) == (True, "1484-1494", "9")


def test_real_letter_and_article_number(shared_responses):
    papers = read((shared_responses / "scopus" / "search_start8.json").read_bytes()).papers
    assert [paper.document_type for paper in papers[:3]] == ["book chapter", "article", "letter"]
    assert (papers[3].journal_pages, papers[3].doi) == ("33", "10.1145/3558391")


def test_real_page_of_two_of_three(shared_responses):
    page = read((shared_responses / "scopus" / "search_three_hits_2020.json").read_bytes())
    assert (page.declared, page.received) == (3, 2)
    assert (page.following.params["start"], page.following.params["count"]) == ("2", "25")
    proceedings, journal = page.papers
    assert (proceedings.document_type, proceedings.doi, proceedings.publication_date) == (
        "conference paper",
        None,
        "2020",
    )
    assert proceedings.conference_name.startswith("Proceedings of the 2018")
    assert proceedings.journal_name is None
    assert (journal.journal_name, journal.issn) == ("Bioinformatics", "1367-4803, 1460-2059")
    assert (journal.doi, journal.publication_date) == ("10.1093/bioinformatics/btz682", "2020-02-15")


def test_real_search_without_hits(shared_responses):
    page = read((shared_responses / "scopus" / "search_empty.json").read_bytes())
    assert (page.papers, page.declared, page.following) == ((), 0, None)


@pytest.mark.parametrize("name", ["search_complete_view.xml", "search_empty.xml"])
def test_real_answer_in_xml_is_malformed(shared_responses, name):
    with pytest.raises(MalformedError, match="no JSON"):
        read((shared_responses / "scopus" / name).read_bytes())


def test_real_error_of_a_view_that_is_not_licensed(shared_responses):
    error = (shared_responses / "scopus" / "error_401_view.json").read_bytes()
    assert source("scopus").instead(401, error, search()).params["view"] == "STANDARD"
    assert source("scopus").retries(401, {}, error) is None


def test_real_error_of_a_used_up_quota(shared_responses):
    error = (shared_responses / "scopus" / "error_429_quota.json").read_bytes()
    assert source("scopus").retries(429, {}, error) is False
    with pytest.raises(RefusedError, match="QUOTA_EXCEEDED"):
        read(error)
