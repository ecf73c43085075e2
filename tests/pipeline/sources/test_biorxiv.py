"""bioRxiv and medRxiv: a month is walked over, and what mentions the query is kept."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.papers import Query
from pipeline.sources import MalformedError, Page
from source_helpers import source

DAY = datetime.date(2026, 9, 1)
QUERY = Query("q1", "Sleep of mice")
EVERYTHING = Query(
    "all", "the", keywords=("we", "our", "study", "by", "reliably", "immunological", "frank-starling")
)  # every record mentions one


def answer(*records: dict[str, Any], total: int | str | None = None, status: str = "ok") -> bytes:
    message = {"status": status} | ({} if total is None else {"total": str(total), "count": len(records)})
    return json.dumps({"messages": [message], "collection": list(records)}).encode()


def record(doi: str = "10.1101/1", version: int = 1, title: str = "Sleep in mice", **more: Any) -> dict[str, Any]:
    return {"doi": doi, "version": str(version), "title": title, "date": f"2026-08-{version:02d}", **more}


def read(body: bytes, query: Query = QUERY, limit: int = 100, name: str = "biorxiv", cursor: int = 0) -> Page:
    request = source(name).search(query, DAY, limit)
    return source(name).read(body, replace(request, state=replace(request.state, cursor=cursor)))


def test_the_month_before_is_asked_for_whatever_the_query() -> None:
    query = Query("q", 'A AND: "(ü) & 睡眠 /../?')
    assert source("biorxiv").search(query, DAY, 10).url == (
        "https://api.biorxiv.org/details/biorxiv/2026-08-02/2026-09-01/0/json"
    )
    assert source("medrxiv", base_url="http://127.0.0.1:9/x/").search(query, DAY, 10).url == (
        "http://127.0.0.1:9/x/details/medrxiv/2026-08-02/2026-09-01/0/json"
    )


def test_the_cursor_steps_by_the_records_received_and_the_filter_counts_after() -> None:
    first = source("biorxiv").search(QUERY, DAY, 5)
    records = [record(f"10.1101/{n}", title="Sleep in mice" if n == 1 else "Wings of bees") for n in range(3)]
    page = source("biorxiv").read(answer(*records, total="4"), first)
    assert [paper.paper_id for paper in page.papers] == ["biorxiv:10.1101/1"]
    assert (page.received, page.declared) == (3, 4)
    assert page.following is not None
    assert page.following.url.endswith("/2026-08-02/2026-09-01/3/json")
    assert source("biorxiv").read(answer(record("10.1101/9"), total="4"), page.following).following is None


def test_a_walk_goes_on_over_pages_that_hold_nothing_wanted() -> None:
    page = read(answer(record(title="Wings of bees"), total=2))
    assert page.papers == ()
    assert page.following is not None


@pytest.mark.parametrize("text", ["?!", "To be or not to be"])
def test_a_query_without_telling_words_is_not_walked_for(text: str) -> None:
    page = read(answer(record(), total=4000), query=Query("q", text))
    assert page == Page((), None, declared=4000, received=1)


def test_without_a_total_the_walk_goes_on_until_there_are_no_posts() -> None:
    assert read(answer(record())).following is not None
    assert read(answer(status="no posts found"), cursor=1) == Page((), None, declared=None, received=0)


def test_a_record_that_has_moved_to_the_next_page_is_not_brought_twice() -> None:
    first = source("biorxiv").search(QUERY, DAY, 5)
    page = source("biorxiv").read(answer(record("10.1101/1"), total=9), first)
    assert page.following is not None
    again = source("biorxiv").read(answer(record("10.1101/1"), record("10.1101/1", 2), total=9), page.following)
    assert [paper.publication_date for paper in again.papers] == ["2026-08-02"]  # version 2 is news


def test_the_highest_version_on_a_page_is_kept() -> None:
    page = read(answer(record(version=9), record(version=10), record(version=2)))
    assert [paper.url for paper in page.papers] == ["https://www.biorxiv.org/content/10.1101/1v10"]


def test_a_record_is_mapped_field_by_field() -> None:
    body = answer(
        {
            "doi": "10.64898/2026.08.01.123456",
            "title": "Sleep &amp; mice",
            "authors": "du Bois, E.; Meyer, p. ;",
            "date": "2026-08-01",
            "version": "3",
            "type": "new results",
            "category": "neuroscience",
            "abstract": "BackgroundMice sleep 12{+/-}1 h.\nResultsTGF{beta} rose.",
            "published": "10.1234/J.X",
            "server": "bioRxiv",
        }
    )
    (paper,) = read(body).papers
    assert (paper.paper_id, paper.source) == ("biorxiv:10.64898/2026.08.01.123456", "biorxiv")
    assert (paper.doi, paper.published_as) == ("10.64898/2026.08.01.123456", "10.1234/j.x")
    assert paper.title == "Sleep & mice"
    assert paper.abstract == "Background: Mice sleep 12±1 h. Results: TGFβ rose."
    assert paper.authors == ("du Bois, E.", "Meyer, p.")
    assert (paper.publication_date, paper.year) == ("2026-08-01", 2026)
    assert (paper.document_type, paper.publication_type) == ("preprint", "new results")
    assert (paper.venue, paper.journal_name, paper.disciplines) == ("bioRxiv", None, ("neuroscience",))
    assert paper.url == "https://www.biorxiv.org/content/10.64898/2026.08.01.123456v3"
    assert paper.pdf_url == "https://www.biorxiv.org/content/10.64898/2026.08.01.123456v3.full.pdf"
    assert (paper.is_open_access, paper.pdf_available, paper.citation_count) == (True, True, None)


def test_marks_of_the_server_leave_the_text() -> None:
    abstract = "AO_SCPLOWBSTRACTC_SCPLOW\n\nHighlightsO_LIFirst.\nC_LIO_LISecond {nothing known}.\nC_LI"
    (paper,) = read(answer(record(abstract=abstract))).papers
    assert paper.abstract == "ABSTRACT Highlights First. Second {nothing known}."


@pytest.mark.parametrize("odd", [None, 7, [], {}, "x", {"doi": None, "title": "Sleep in mice"}, {"doi": ["10.1101/2"]}])
def test_a_record_that_is_none_does_not_lose_the_page(odd: Any) -> None:
    sparse = {
        "doi": "10.1101/1",
        "title": "Sleep in mice",
        "authors": None,
        "abstract": 7,
        "category": {},
        "date": "soon",
    }
    page = read(answer(odd, sparse | {"published": "NA", "version": None}))
    (paper,) = page.papers
    assert (paper.authors, paper.abstract, paper.disciplines, paper.published_as) == ((), "", (), None)
    assert (paper.url, paper.pdf_url, paper.pdf_available, paper.year) == (None, None, None, None)
    assert page.received == 2


def test_an_empty_page_before_the_total_is_malformed() -> None:
    with pytest.raises(MalformedError, match="empty page at 30 of 100"):
        read(answer(total=100), cursor=30)
    assert read(answer(total=100), cursor=100).following is None


@pytest.mark.parametrize(
    "body", [b"", b"<html></html>", b"[]", b"{}", b'{"messages": []}', answer(status="error: too busy"), answer()[:-3]]
)
def test_what_is_no_answer_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedError):
        read(body)


@pytest.mark.parametrize(
    ("name", "counts", "ids"),
    [
        ("biorxiv", (14, 14), ("10.1101/001768", "10.1101/092619")),
        ("medrxiv", (15, 13), ("10.1101/2019.12.26.19014274", "10.1101/2019.12.31.19015966")),
    ],
)
def test_recorded_pages_follow_each_other(
    shared_responses: Path, name: str, counts: tuple[int, int], ids: tuple[str, str]
) -> None:
    bodies = [
        (shared_responses / name / f"details_interval_{part}.json").read_bytes() for part in ("cursor0", "cursor_next")
    ]
    first = source(name).read(bodies[0], source(name).search(EVERYTHING, DAY, 1000))
    assert first.following is not None
    assert first.following.url.endswith(f"/{counts[0]}/json")
    second = source(name).read(bodies[1], first.following)
    assert (first.received, second.received) == counts
    assert second.following is not None
    assert second.following.url.endswith(f"/{sum(counts)}/json")
    assert (first.papers[0].doi, second.papers[-1].doi) == ids
    assert first.declared == {"biorxiv": 152918, "medrxiv": 47826}[name]
    assert all(paper.document_type == "preprint" for paper in first.papers)


def test_recorded_versions_of_a_preprint_are_told_apart(shared_responses: Path) -> None:
    folder = shared_responses / "biorxiv"
    first = read((folder / "details_interval_cursor0.json").read_bytes(), EVERYTHING)
    urls = [str(paper.url).rpartition("/")[2] for paper in first.papers]
    assert len(urls) == 12  # 14 records, two of them older versions
    assert {"008326v4", "058511v4", "066688v4", "006965v13"} <= set(urls)
    second = read((folder / "details_interval_cursor_next.json").read_bytes(), EVERYTHING)
    assert [str(paper.url).rpartition("/")[2] for paper in second.papers][:3] == ["066688v5", "067736v10", "069971v7"]
    assert (second.papers[0].published_as, second.papers[1].published_as) == ("10.1093/ve/veaa105", None)


def test_a_query_keeps_what_mentions_it(shared_responses: Path) -> None:
    page = read(
        (shared_responses / "medrxiv/details_interval_cursor0.json").read_bytes(),
        Query("q", "Early screening of autism spectrum"),
    )
    assert [paper.doi for paper in page.papers] == ["10.1101/2019.12.28.19016022"]
    assert page.received == 15
    assert page.papers[0].publication_type == "PUBLISHAHEADOFPRINT"


@pytest.mark.parametrize(
    ("file", "n", "published_as", "url_end"),
    [
        ("biorxiv/doi_2020_06_11_145425", 1, "10.1016/j.patter.2020.100123", "2020.06.11.145425v1"),
        ("biorxiv/doi_2022_04_11_487927", 1, "10.1093/chemse/bjad018", "2022.04.11.487927v1"),
        ("biorxiv/doi_2022_08_02_502236", 1, None, "2022.08.02.502236v1"),
        ("biorxiv/doi_2021_09_30_462652", 2, None, "2021.09.30.462652v2"),
        ("biorxiv/doi_2021_09_15_460567", 1, None, "2021.09.15.460567v1"),
        ("medrxiv/doi_2021_12_05_21267037", 1, "10.3389/fpsyt.2022.954703", "2021.12.05.21267037v1"),
        ("medrxiv/doi_2021_07_13_21260449", 1, None, "2021.07.13.21260449v1"),
        ("medrxiv/doi_2020_07_29_20164814", 1, "10.1016/j.ijmedinf.2020.104340", "2020.07.29.20164814v1"),
    ],
)
def test_recorded_look_ups_are_mapped(
    shared_responses: Path, file: str, n: int, published_as: str | None, url_end: str
) -> None:
    name = file.partition("/")[0]
    page = read((shared_responses / f"{file}.json").read_bytes(), EVERYTHING, name=name)
    (paper,) = page.papers
    assert (page.received, page.declared) == (n, None)
    assert (paper.published_as, paper.pdf_url) == (
        published_as,
        f"https://www.{name}.org/content/10.1101/{url_end}.full.pdf",
    )


def test_the_recorded_shape_of_2026_is_mapped(shared_responses: Path) -> None:
    page = read((shared_responses / "biorxiv/details_interval_2026_new_prefix.json").read_bytes(), EVERYTHING)
    (paper,) = page.papers
    assert (paper.doi, paper.disciplines) == ("10.64898/2026.07.31.741992", ("animal behavior and cognition",))
    assert (page.declared, page.received) == (109, 1)
    assert page.following is not None
    assert page.following.url.endswith("/1/json")  # although its message tells of 30 records


def test_recorded_troubles_are_told_apart(shared_responses: Path) -> None:
    folder = shared_responses / "biorxiv"
    assert read((folder / "no_posts_found.json").read_bytes()) == Page((), None, declared=None, received=0)
    for name in ("empty_body_200.json", "html_page_instead_of_json.html"):
        with pytest.raises(MalformedError, match="sent no JSON"):
            read((folder / name).read_bytes())


def test_a_page_that_comes_again_is_told():
    biorxiv = source("biorxiv")
    answer = {"messages": [{"status": "ok", "total": "90"}], "collection": [{"doi": "10.1101/1", "version": "1"}]}
    first = biorxiv.read(json.dumps(answer).encode(), biorxiv.search(Query("q", "cells"), DAY, 10))
    with pytest.raises(MalformedError, match="sent the page before again at 1"):
        biorxiv.read(json.dumps(answer).encode(), first.following)
