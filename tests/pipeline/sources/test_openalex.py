"""OpenAlex: requests, walks, what becomes of a record, and the impact of venues."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest

from pipeline.papers import Paper, Query
from pipeline.sources import MalformedError, Page, RefusedError, Request
from source_helpers import source

DAY = datetime.date(2026, 9, 1)
ONE = Request("http://127.0.0.1/works/W1")


def body(*works: Any, **meta: Any) -> bytes:
    return json.dumps({"meta": {"count": len(works), **meta}, "results": list(works)}).encode()


def read(*works: Any) -> Page:
    page: Page = source("openalex").read(body(*works), ONE)
    return page


def paper(**work: Any) -> Paper:
    (only,) = read({"id": "https://openalex.org/W1", "title": "Bees", **work}).papers
    return only


def test_a_search_asks_for_any_of_the_words_and_phrases_with_a_new_cursor() -> None:
    request = source("openalex").search(Query("q", "The dance of honey-bees", ("waggle dance",)), DAY, limit=250)
    assert request.url == "https://api.openalex.org/works"
    assert request.params == {
        "search": 'dance OR "honey-bees" OR "waggle dance"',
        "per-page": "100",
        "cursor": "*",
    }


@pytest.mark.parametrize(
    ("text", "search"),
    [
        ('bees AND "wasps": (ants) [NOT] & flies', "bees OR wasps OR ants OR flies"),
        ("Über Bienen", "über OR bienen"),
        ("深度学习", "深度学习"),
        ('"to be" OR (NOT to be)', '"to be or not to be"'),
    ],
)
def test_no_sign_of_a_query_can_become_an_operator(text: str, search: str) -> None:
    assert source("openalex").search(Query("q", text), DAY, limit=8).params["search"] == search


def test_addresses_follow_the_base_url() -> None:
    here = source("openalex", base_url="http://127.0.0.1:1/x")
    assert here.search(Query("q", "bees"), DAY, limit=8).url == "http://127.0.0.1:1/x/works"
    assert here.venues(["0028-0836"]).url == "http://127.0.0.1:1/x/sources"


def walk_step(n: int, *, limit: int = 10, **meta: Any) -> Page:
    openalex = source("openalex", page_size=2)
    works = [{"id": f"https://openalex.org/W{i}", "title": "Bees"} for i in range(n)]
    page: Page = openalex.read(body(*works, **meta), openalex.search(Query("q", "bees"), DAY, limit))
    return page


def test_a_walk_goes_on_with_the_next_cursor() -> None:
    following = walk_step(2, count=9, next_cursor="Ab=").following
    assert following is not None
    assert following.params == {"search": "bees", "per-page": "2", "cursor": "Ab="}


def test_no_page_is_larger_than_what_is_wanted() -> None:
    assert source("openalex").search(Query("q", "bees"), DAY, 3).params["per-page"] == "3"


@pytest.mark.parametrize(
    ("n", "meta"),
    [
        (2, {"count": 9, "next_cursor": None}),
        (2, {"count": 2, "next_cursor": "Ab="}),
        (0, {"count": 0, "next_cursor": "Ab="}),
        (0, {"count": 9, "next_cursor": None}),
        (2, {"count": 9}),
    ],
)
def test_a_walk_ends_without_a_cursor_and_at_the_count(n: int, meta: dict[str, Any]) -> None:
    assert walk_step(n, **meta).following is None


def test_an_empty_page_in_the_middle_of_a_walk_is_malformed() -> None:
    with pytest.raises(MalformedError, match="empty page at 0 of 9"):
        walk_step(0, count=9, next_cursor="Ab=")


@pytest.mark.parametrize("sent", [b"", b"<html>429</html>", b'{"meta": {"cou', b"[]", b"{}", b'{"results": null}'])
def test_a_body_that_is_no_answer_is_malformed(sent: bytes) -> None:
    with pytest.raises(MalformedError):
        source("openalex").read(sent, ONE)


def test_an_error_told_inside_an_answer_is_a_refusal() -> None:
    with pytest.raises(RefusedError, match="Invalid query"):
        source("openalex").read(b'{"error": "Invalid query parameters error.", "message": "x"}', ONE)


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (429, {"X-RateLimit-Remaining": "0"}, False),
        (429, {"x-ratelimit-remaining": "0.0", "Retry-After": "1"}, False),
        (429, {"X-RateLimit-Remaining": "12", "Retry-After": "1"}, None),
        (429, {}, None),
        (503, {"X-RateLimit-Remaining": "0"}, None),
    ],
)
def test_only_a_429_of_an_empty_budget_is_final(status: int, headers: dict[str, str], expected: bool | None) -> None:
    assert source("openalex").retries(status, headers, b"") is expected


def test_every_field_of_an_article_finds_its_place() -> None:
    place = {
        "is_oa": True,
        "landing_page_url": "https://doi.org/10.1000/a",
        "pdf_url": "https://bees.example/a.pdf?id=1&copy=2",
        "source": {
            "display_name": "Journal of Bees",
            "type": "journal",
            "issn_l": "0028-0836",
            "issn": ["1476-4687", "0028-0836"],
        },
    }
    article = paper(
        doi="https://doi.org/10.1000/A",
        title="Bees &amp; <i>Apis</i>",
        abstract_inverted_index={"dance.": [3], "Bees": [0], "and": [1], "they": [2]},
        publication_year=2021,
        publication_date="2021-03-14",
        type="article",
        authorships=[{"author": {"display_name": "Eva Lind"}}, {"author": {}, "raw_author_name": "B. Li"}],
        primary_location=place,
        best_oa_location=place,
        biblio={"volume": "12", "first_page": "3", "last_page": "9"},
        cited_by_count=0,
        referenced_works=["https://openalex.org/W2", "https://openalex.org/W2"],
        primary_topic={
            "display_name": "Bee Dances",
            "subfield": {"display_name": "Insect Science"},
            "field": {"display_name": "Agriculture"},
            "domain": {"display_name": "Life Sciences"},
        },
        keywords=[{"display_name": "Apis"}],
        open_access={"is_oa": True},
    )
    assert article == Paper(
        paper_id="openalex:W1",
        title="Bees & Apis",
        abstract="Bees and they dance.",
        year=2021,
        authors=("Eva Lind", "B. Li"),
        citation_count=0,
        disciplines=("Life Sciences", "Agriculture", "Insect Science", "Bee Dances"),
        document_type="article",
        journal_name="Journal of Bees",
        journal_volume="12",
        journal_pages="3-9",
        publication_type="article",
        venue="Journal of Bees",
        publication_date="2021-03-14",
        is_open_access=True,
        pdf_url="https://bees.example/a.pdf?id=1&copy=2",
        pdf_available=True,
        url="https://doi.org/10.1000/a",
        doi="10.1000/a",
        keywords=("Apis",),
        source="openalex",
        issn="0028-0836, 1476-4687",
        references=("W2",),
    )


def test_what_is_not_told_stays_unknown() -> None:
    assert paper() == Paper("openalex:W1", title="Bees", url="https://openalex.org/W1", source="openalex")
    assert paper(primary_location={"source": None}, best_oa_location=None, doi=None, biblio=None) == paper()


@pytest.mark.parametrize("work", [{"is_paratext": True}, {"type": "paratext"}, {"type": "peer-review"}])
def test_paratext_is_no_paper(work: dict[str, Any]) -> None:
    page = read({"id": "https://openalex.org/W1", "title": "Front matter", **work})
    assert (page.papers, page.received) == ((), 1)


def test_the_first_of_january_stands_for_a_year() -> None:
    assert paper(publication_date="2021-01-01").publication_date == "2021"


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        ({"type": "book-chapter"}, "book chapter"),
        ({"type": "erratum"}, "erratum"),
        ({"type": "standard"}, "other"),
        ({"type": "article", "is_retracted": True}, "retraction"),
        ({"type": "article", "type_crossref": "proceedings-article"}, "conference paper"),
        ({"type": "article", "primary_location": {"raw_type": "proceedings-article"}}, "conference paper"),
        ({"type": "article", "primary_location": {"source": {"type": "conference"}}}, "conference paper"),
        ({}, None),
    ],
)
def test_types_are_put_in_our_words(work: dict[str, Any], expected: str | None) -> None:
    assert paper(**work).document_type == expected


def test_a_conference_and_a_repository_are_no_journals() -> None:
    conference = paper(primary_location={"source": {"display_name": "BeeConf", "type": "conference"}})
    assert (conference.conference_name, conference.journal_name, conference.venue) == ("BeeConf", None, "BeeConf")
    repository = paper(primary_location={"source": {"display_name": "arXiv", "type": "repository"}})
    assert (repository.conference_name, repository.journal_name, repository.venue) == (None, None, "arXiv")


@pytest.mark.parametrize(
    ("biblio", "expected"),
    [
        ({"first_page": "3", "last_page": "3"}, "3"),
        ({"first_page": "e12", "last_page": None}, "e12"),
        ({"first_page": None, "last_page": None}, None),
    ],
)
def test_pages_are_as_many_as_are_told(biblio: dict[str, Any], expected: str | None) -> None:
    assert paper(biblio=biblio).journal_pages == expected


def test_a_pdf_is_free_only_where_its_place_is_open() -> None:
    closed = {"is_oa": False, "pdf_url": "https://a.example/closed.pdf"}
    open_ = {"is_oa": True, "pdf_url": "https://a.example/open.pdf"}
    known = paper(primary_location=closed, locations=[closed, open_], open_access={"is_oa": True})
    assert (known.pdf_url, known.pdf_available) == ("https://a.example/open.pdf", True)
    shut = paper(primary_location=closed, open_access={"is_oa": False})
    assert (shut.pdf_url, shut.pdf_available) == ("https://a.example/closed.pdf", False)
    assert paper(open_access={"is_oa": True}).pdf_available is None


def test_a_copy_on_arxiv_is_the_preprint_of_an_article_with_another_doi() -> None:
    copies = [
        {"landing_page_url": "http://arxiv.org/abs/2101.00001v2"},
        {"landing_page_url": "https://doi.org/10.48550/arXiv.2101.00001"},
        {"landing_page_url": "https://hal.science/hal-1"},
    ]
    article = paper(doi="https://doi.org/10.1000/a", locations=copies)
    assert article.preprints == ("10.48550/arxiv.2101.00001",)
    assert paper(doi="https://doi.org/10.48550/arxiv.2101.00001", type="preprint", locations=copies).preprints == ()


def test_older_answers_tell_broad_concepts_in_place_of_a_topic() -> None:
    concepts = [{"display_name": "Biology", "level": 0}, {"display_name": "Prime (order theory)", "level": 2}]
    assert paper(concepts=concepts).disciplines == ("Biology",)


def test_a_work_needs_a_title_or_a_doi() -> None:
    page = read({"id": "https://openalex.org/W1", "title": None}, {"doi": "https://doi.org/10.1000/a"}, None)
    assert [paper.paper_id for paper in page.papers] == ["openalex:10.1000/a"]
    assert page.received == 3


@pytest.mark.parametrize("junk", [None, 7, "x", [], {}, [[]], [None, 7], {"a": [1]}, {"a": ["b"]}, True])
def test_a_field_of_another_kind_than_expected_never_loses_the_page(junk: object) -> None:
    keys = (
        "doi display_name abstract_inverted_index publication_year publication_date type type_crossref authorships "
        "primary_location best_oa_location locations biblio cited_by_count referenced_works primary_topic concepts "
        "keywords open_access is_paratext is_retracted"
    ).split()
    works = [{"id": f"https://openalex.org/W{i}", "title": "Bees", key: junk} for i, key in enumerate(keys)]
    kept = read(*works, {"id": junk, "title": junk}).papers
    assert {f"openalex:W{i}" for i, key in enumerate(keys) if key != "is_paratext"} <= {
        paper.paper_id for paper in kept
    }


# The impact of venues.


def test_many_venues_are_asked_for_at_once() -> None:
    request = source("openalex").venues(["0028-0836", "1476-4687"])
    assert request.params == {
        "filter": "issn:0028-0836|1476-4687",
        "select": "id,issn,issn_l,summary_stats",
        "per-page": "100",
    }
    assert source("openalex").issns_a_request == 50


def test_every_issn_of_a_venue_has_its_impact() -> None:
    nature = {"issn_l": "0028-0836", "issn": ["0028-0836", "1476-4687"], "summary_stats": {"2yr_mean_citedness": 18.5}}
    new = {"issn_l": "2666-979X", "issn": None, "summary_stats": {"2yr_mean_citedness": 0}}
    assert source("openalex").read_venues(body(nature, new)) == {
        "0028-0836": 18.5,
        "1476-4687": 18.5,
        "2666-979X": 0.0,
    }


def test_a_venue_without_impact_has_none() -> None:
    issns = {"issn_l": "0028-0836", "issn": ["0028-0836"]}
    stats = [None, {}, {"2yr_mean_citedness": None}, {"2yr_mean_citedness": "3"}, {"2yr_mean_citedness": float("nan")}]
    assert source("openalex").read_venues(body(None, *({**issns, "summary_stats": stat} for stat in stats))) == {}


def test_of_two_venues_with_one_issn_the_first_counts() -> None:
    venues = [{"issn_l": "0028-0836", "summary_stats": {"2yr_mean_citedness": value}} for value in (2.0, 1.0)]
    assert source("openalex").read_venues(body(*venues)) == {"0028-0836": 2.0}


@pytest.mark.parametrize("sent", [b"", b"<html>", b"{}", b'{"error": "x"}'])
def test_venues_of_a_body_that_is_no_answer_are_malformed(sent: bytes) -> None:
    with pytest.raises(MalformedError):
        source("openalex").read_venues(sent)


# The recorded answers.


def recorded(shared_responses: Any, name: str, request: Request = ONE) -> tuple[dict[str, Paper], Page]:
    page = source("openalex").read((shared_responses / "openalex" / name).read_bytes(), request)
    return {paper.paper_id.removeprefix("openalex:"): paper for paper in page.papers}, page


def test_the_recorded_walk_by_cursor(shared_responses: Any) -> None:
    openalex = source("openalex", page_size=4)
    request = openalex.search(Query("q", "deep learning"), DAY, limit=100)
    page = openalex.read((shared_responses / "openalex" / "works_cursor_page1.json").read_bytes(), request)
    assert (len(page.papers), page.declared) == (4, 65899)
    assert page.following.params["cursor"].endswith("=")
    end = openalex.read((shared_responses / "openalex" / "works_cursor_end.json").read_bytes(), page.following)
    assert (end.papers, end.following, end.declared) == ((), None, 65899)


def test_the_recorded_pages(shared_responses: Any) -> None:
    first, page = recorded(shared_responses, "works_search_page1.json")
    assert (len(first), page.received, page.declared) == (14, 14, 65899)
    information = first["W4313388731"]
    assert (information.doi, information.journal_name, information.issn) == (
        "10.3390/info14010028",
        "Information",
        "2078-2489",
    )
    assert (information.journal_volume, information.journal_pages) == ("14", "28")
    assert information.pdf_url == "https://www.mdpi.com/2078-2489/14/1/28/pdf?version=1673431639"
    preprint = first["W4313483589"]
    assert (preprint.document_type, preprint.doi) == ("preprint", "10.48550/arxiv.2301.00236")
    assert (preprint.journal_name, preprint.venue, preprint.preprints) == (None, "arXiv (Cornell University)", ())
    assert first["W4319781388"].document_type == "book chapter"
    assert first["W4319781388"].pdf_available is False
    assert (first["W4313333446"].document_type, first["W4313333446"].abstract) == ("editorial", "")
    assert first["W4320016815"].doi == "10.56578/ataiml010201"
    second, _ = recorded(shared_responses, "works_search_page2.json")
    assert len(second) == 13
    assert second["W4323027532"].document_type == "conference paper"
    assert second["W4319054680"].venue.startswith("Zenodo")
    assert second["W4389404277"].doi == "10.47363/jaicc/2022(1)143"
    assert second["W4381429144"].journal_volume is None
    assert second["W4319998349"].document_type == "book chapter"


def test_the_recorded_single_works(shared_responses: Any) -> None:
    article = recorded(shared_responses, "work_xgen_2025.json")[0]["W4408732759"]
    assert (article.year, len(article.authors), len(article.references)) == (2025, 6, 59)
    assert (article.is_open_access, article.pdf_url, article.pdf_available) == (True, None, None)
    assert article.keywords == ("High-Throughput Screening",)
    report = recorded(shared_responses, "work_no_author.json")[0]["W4381738344"]
    assert (report.authors, report.abstract, report.pdf_available) == ((), "", False)
    assert report.issn == "0114-9954, 1179-2051"
    review = recorded(shared_responses, "work_addr_2015.json")[0]["W2033425827"]
    assert (review.document_type, review.citation_count, review.journal_pages) == ("review", 750, "46-51")
    assert review.abstract.startswith("Pharmacokinetic properties of oligonucleotides")
    copper, page = recorded(shared_responses, "works_title_filter_1.json")
    assert (copper["W2277923667"].doi, page.declared) == ("10.1063/1.4938384", 1)
    selected = recorded(shared_responses, "select_not_oa.json")[0]["10.1002/wrna.1370"]
    assert (selected.is_open_access, selected.pdf_available, selected.title) == (False, False, "")


def test_the_recorded_search_without_hits(shared_responses: Any) -> None:
    request = source("openalex").search(Query("q", "bees"), DAY, limit=25)
    papers, page = recorded(shared_responses, "works_no_hits.json", request)
    assert (papers, page.declared, page.following) == ({}, 0, None)


def test_the_recorded_errors(shared_responses: Any) -> None:
    for name in ("error_404.html", "error_html_rate_limit.html"):
        with pytest.raises(MalformedError):
            recorded(shared_responses, name)
    with pytest.raises(RefusedError, match="Pagination"):
        recorded(shared_responses, "error_400_pagination.json")
