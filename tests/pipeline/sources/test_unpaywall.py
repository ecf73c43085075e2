"""Unpaywall: look-ups, and where a work is free to read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipeline.papers import Paper
from pipeline.sources import MalformedError, Page, RefusedError, Request
from source_helpers import source

REQUEST = Request("http://127.0.0.1/v2/10.1000/a")


def read(answer: Any) -> Page:
    page: Page = source("unpaywall").read(json.dumps(answer).encode(), REQUEST)
    return page


def paper(**work: Any) -> Paper:
    (only,) = read({"doi": "10.1000/a", **work}).papers
    return only


@pytest.mark.parametrize(
    ("doi", "path"),
    [
        ("10.1000/a", "10.1000/a"),
        ("10.1000/(sici)1:2<3::aid>4.0;co#5?", "10.1000/%28sici%291%3A2%3C3%3A%3Aaid%3E4.0%3Bco%235%3F"),
        ("10.1000/größe", "10.1000/gr%C3%B6%C3%9Fe"),
    ],
)
def test_a_doi_is_a_part_of_the_path_whatever_its_signs(doi: str, path: str) -> None:
    request = source("unpaywall").lookup([doi])
    assert (request.url, request.params) == (f"https://api.unpaywall.org/v2/{path}", {})
    assert source("unpaywall").dois_a_request == 1


def test_a_contact_address_is_required() -> None:
    (contact,) = source("unpaywall").credentials
    assert contact.env == ("UNPAYWALL_EMAIL", "LITGRADE_MAILTO")
    assert (contact.param, contact.required) == ("email", True)


def test_every_field_finds_its_place() -> None:
    place = {"url_for_pdf": "https://bees.example/a.pdf?a=1&copy=2", "url_for_landing_page": "https://bees.example/a"}
    article = paper(
        doi="10.1000/A",
        doi_url="https://doi.org/10.1000/a",
        title="Bees &amp; <i>Apis</i>",
        genre="journal-article",
        year=2021,
        published_date="2021-03-14",
        journal_name="Journal of Bees",
        journal_issns="0028-0836,1476-4687",
        journal_issn_l="0028-0836",
        is_oa=True,
        best_oa_location=place,
        oa_locations=[place],
        z_authors=[{"given": "Eva", "family": "Lind"}, {"raw_author_name": "B. Li"}, {"name": "Bee Group"}],
    )
    assert article == Paper(
        paper_id="unpaywall:10.1000/A",
        title="Bees & Apis",
        year=2021,
        authors=("Eva Lind", "B. Li", "Bee Group"),
        document_type="article",
        journal_name="Journal of Bees",
        publication_type="journal-article",
        venue="Journal of Bees",
        publication_date="2021-03-14",
        is_open_access=True,
        pdf_url="https://bees.example/a.pdf?a=1&copy=2",
        pdf_available=True,
        url="https://bees.example/a",
        doi="10.1000/a",
        source="unpaywall",
        issn="0028-0836, 1476-4687",
    )


def test_what_is_not_told_stays_unknown() -> None:
    bare = Paper("unpaywall:10.1000/a", doi="10.1000/a", source="unpaywall")
    assert paper() == bare
    assert paper(title=None, z_authors=None, best_oa_location=None, journal_issns=None, year=None) == bare


def test_the_pdf_of_another_place_counts_where_the_best_has_none() -> None:
    best, other = {"url_for_pdf": None}, {"url_for_pdf": "https://bees.example/b.pdf"}
    article = paper(is_oa=True, best_oa_location=best, oa_locations=[best, other])
    assert (article.pdf_url, article.pdf_available) == ("https://bees.example/b.pdf", True)


@pytest.mark.parametrize(("is_oa", "expected"), [(True, None), (False, False), (None, None)])
def test_without_a_pdf_only_a_closed_paper_is_known_to_have_none(is_oa: bool | None, expected: bool | None) -> None:
    article = paper(is_oa=is_oa, oa_locations=[], best_oa_location=None)
    assert (article.is_open_access, article.pdf_url, article.pdf_available) == (is_oa, None, expected)


def test_a_copy_on_arxiv_is_the_preprint() -> None:
    places = [{"url_for_landing_page": "http://arxiv.org/abs/1304.1068"}, {"url_for_landing_page": None}]
    assert paper(oa_locations=places).preprints == ("10.48550/arxiv.1304.1068",)


def test_proceedings_are_a_conference_and_no_journal() -> None:
    talk = paper(genre="proceedings-article", journal_name="BeeConf")
    assert (talk.document_type, talk.conference_name, talk.journal_name) == ("conference paper", "BeeConf", None)


@pytest.mark.parametrize("work", [{"is_paratext": True}, {"genre": "component"}, {"doi": None}])
def test_what_is_no_paper_is_dropped(work: dict[str, Any]) -> None:
    page = read({"doi": "10.1000/a", "title": "Front matter", **work})
    assert (page.papers, page.received) == ((), 1)


def test_the_hits_of_a_title_search_are_read_too() -> None:
    page = read({"results": [{"response": {"doi": "10.1000/a", "title": "Bees"}, "score": 1}, {"response": None}]})
    assert [paper.title for paper in page.papers] == ["Bees"]
    assert page.received == 2


@pytest.mark.parametrize("sent", [b"", b"<html>500</html>", b'{"doi": "10.1', b"[]", b"{}"])
def test_a_body_that_is_no_answer_is_malformed(sent: bytes) -> None:
    with pytest.raises(MalformedError):
        source("unpaywall").read(sent, REQUEST)


def test_an_error_told_inside_an_answer_is_a_refusal() -> None:
    with pytest.raises(RefusedError, match="own email"):
        read({"error": True, "message": "Please use your own email address"})


@pytest.mark.parametrize(
    ("status", "sent", "expected"),
    [
        (422, b'{"message": "Too many requests per second for this email address"}', True),
        (422, b'{"message": "Please use your own email address"}', None),
        (429, b'{"message": "Too many requests"}', None),
        (404, b'{"message": "not in Unpaywall"}', None),
    ],
)
def test_only_a_422_that_asks_to_slow_down_is_asked_again(status: int, sent: bytes, expected: bool | None) -> None:
    assert source("unpaywall").retries(status, {}, sent) is expected


@pytest.mark.parametrize(
    ("status", "sent", "expected"),
    [
        (404, b'{"HTTP_status_code": 404, "error": true, "message": "x"}', True),
        (404, b"<html>no such page</html>", False),
        (422, b'{"HTTP_status_code": 422, "error": true}', False),
    ],
)
def test_an_unknown_doi_is_told_from_a_wrong_address(status: int, sent: bytes, expected: bool) -> None:
    assert source("unpaywall").is_absent(status, sent) is expected


@pytest.mark.parametrize("junk", [None, 7, "x", [], {}, [[]], [None, 7], {"a": [1]}, True])
def test_a_field_of_another_kind_than_expected_never_loses_the_record(junk: object) -> None:
    keys = (
        "title genre year published_date journal_name journal_issns journal_issn_l is_oa best_oa_location oa_locations "
        "z_authors doi_url"
    ).split()
    assert [paper(**{key: junk}).doi for key in keys] == ["10.1000/a"] * len(keys)


# The recorded answers.


def recorded(shared_responses: Any, name: str) -> Page:
    page: Page = source("unpaywall").read((shared_responses / "unpaywall" / name).read_bytes(), REQUEST)
    return page


def test_recorded_objects_of_2025(shared_responses: Any) -> None:
    (gold,) = recorded(shared_responses, "doi_xgen_2025.json").papers
    assert (gold.is_open_access, gold.pdf_url, gold.pdf_available) == (True, None, None)
    assert (gold.authors[0], len(gold.authors), gold.issn) == ("Michael Herger", 6, "2666-979X")
    (closed,) = recorded(shared_responses, "doi_closed_no_authors.json").papers
    assert (closed.is_open_access, closed.pdf_available, closed.authors) == (False, False, ())
    assert closed.issn == "0114-9954, 1179-2051"
    (hybrid,) = recorded(shared_responses, "doi_addr_2015.json").papers
    assert (hybrid.year, hybrid.publication_date, hybrid.authors[-1]) == (2015, "2015-02-07", "C. Frank Bennett")


def test_recorded_objects_of_2020(shared_responses: Any) -> None:
    (nature,) = recorded(shared_responses, "doi_2020_nature12373.json").papers
    assert nature.pdf_url.endswith("/1/12285462/1/Nanometer-Scale%20Thermometry.pdf")
    assert (nature.authors[0], nature.issn) == ("G. Kucsko", "0028-0836, 1476-4687")
    assert nature.preprints == ("10.48550/arxiv.1304.1068",)
    (bronze,) = recorded(shared_responses, "doi_2020_j_tmaid_2020_101663.json").papers
    assert (bronze.is_open_access, bronze.pdf_url) == (True, None)
    assert bronze.url == "https://doi.org/10.1016/j.tmaid.2020.101663"
    (named,) = recorded(shared_responses, "doi_2020_j_jns_2020_116832.json").papers
    assert (named.pdf_url, named.url) == ("https://doi.org/10.1016/j.jns.2020.116832",) * 2
    assert named.authors == ("Ali A. Asadi-Pooya", "Leila Simani")


def test_recorded_title_searches(shared_responses: Any) -> None:
    (copper,) = recorded(shared_responses, "search_one.json").papers
    assert (copper.doi, copper.pdf_available, copper.year) == ("10.1063/1.4938384", False, 2015)
    none = recorded(shared_responses, "search_none.json")
    assert (none.papers, none.received) == ((), 0)


def test_recorded_errors(shared_responses: Any) -> None:
    folder, unpaywall = shared_responses / "unpaywall", source("unpaywall")
    assert unpaywall.is_absent(404, (folder / "error_404.json").read_bytes()) is True
    assert unpaywall.retries(422, {}, (folder / "error_422_email.json").read_bytes()) is None
