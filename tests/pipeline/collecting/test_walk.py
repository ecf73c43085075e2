from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

import fake_sources as fake
from collecting_helpers import DAY, QUERY, SEARCHABLE, Numbers, collect, recent_papers, set_keys, walk_of
from endpoint import Reply
from fake_sources import FakeSources, MadeUp
from pages_server import PagesServer
from pipeline.collecting.reports import Report, Stop
from pipeline.collecting.walk import Limits, Walk
from pipeline.papers import Paper
from pipeline.sources import Page, Request
from source_helpers import source


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys(monkeypatch)


# The walk alone, its pages made by hand


def paper(n: int, date: str | None = None) -> Paper:
    return Paper(f"numbers:{n}", f"Number {n}", publication_date=date)


def page(*ids: int, is_last: bool = False, declared: int | None = None) -> Page:
    return Page(tuple(map(paper, ids)), None if is_last else Request("http://x"), declared)


def walked(pages: Sequence[Page], records: int = 100, most_pages: int = 100) -> Walk:
    walk = Walk(Numbers(base_url="http://x"), QUERY, DAY, Limits(records, most_pages))
    requests = walk.requests()
    next(requests)
    try:
        for one in pages:
            requests.send(one)
    except StopIteration:
        return walk
    raise AssertionError("asks for more")


def ids(walk: Walk) -> list[int]:
    return [int(paper.paper_id.removeprefix("numbers:")) for paper in walk.papers]


def test_a_walk_ends_with_the_last_page() -> None:
    walk = walked([page(1, 2), page(3, is_last=True)])
    assert (ids(walk), walk.stop, walk.pages) == ([1, 2, 3], Stop.DONE, 2)


def test_a_page_of_nothing_does_not_end_a_walk() -> None:
    walk = walked([page(1), page(), page(2, is_last=True)])
    assert (ids(walk), walk.stop) == ([1, 2], Stop.DONE)


def test_a_record_that_comes_again_counts_once() -> None:
    walk = walked([page(1, 2), page(2, 3, is_last=True)])
    assert ids(walk) == [1, 2, 3]


def test_a_later_version_of_a_record_is_kept_beside_the_first() -> None:
    first, later = paper(1, "2026-09-01"), paper(1, "2026-09-10")
    walk = walked([Page((first,), Request("http://x")), Page((first, later))])
    assert walk.papers == [first, later]


def test_a_page_that_comes_again_is_named() -> None:
    walk = walked([page(1, 2), page(3), page(1, 2)])
    assert (ids(walk), walk.stop) == ([1, 2, 3], Stop.PARTIAL)
    assert walk.detail == "page 3 repeats records of earlier pages"


@pytest.mark.parametrize(
    ("last", "stop"),
    [
        (page(3, 4, is_last=True), Stop.CAP),  # the fourth is cut off
        (page(3), Stop.CAP),
        (page(3, is_last=True, declared=9), Stop.CAP),
        (page(3, is_last=True, declared=3), Stop.DONE),
        (page(3, is_last=True), Stop.DONE),
        (Page((paper(3),), None, declared=9, received=7), Stop.DONE),  # the others were filtered
    ],
)
def test_no_more_records_than_wanted_are_kept(last: Page, stop: Stop) -> None:
    walk = walked([page(1, 2), last], records=3)
    assert (ids(walk), walk.stop) == ([1, 2, 3], stop)


def test_a_walk_that_a_source_ends_too_early_is_short_however_many_records_were_filtered() -> None:
    walk = walked([Page((paper(1),), Request("http://x"), declared=90, received=40), page(is_last=True)], records=30)
    assert (ids(walk), walk.stop, walk.detail) == ([1], Stop.SHORT, "declared 90 records, gave 40")


def test_the_most_pages_end_a_walk() -> None:
    walk = walked([page(1), page(2)], most_pages=2)
    assert (ids(walk), walk.stop, walk.detail) == ([1, 2], Stop.CAP, "2 pages (sources.max_pages)")


def test_a_walk_that_ends_with_the_most_pages_is_done() -> None:
    walk = walked([page(1), page(2, is_last=True)], most_pages=2)
    assert (walk.stop, walk.detail) == (Stop.DONE, "")


def test_what_a_source_says_it_has_is_kept_from_the_page_that_says_it() -> None:
    assert walked([page(1, declared=7), page(2, is_last=True)]).declared == 7
    assert walked([page(1), page(2, is_last=True)]).declared is None


def test_the_report_tells_query_source_pages_and_records() -> None:
    walk = walked([page(1, 2, declared=2), page(3, is_last=True)])
    assert walk.report(1.239) == Report("q1", "numbers", Stop.DONE, "", 2, 3, 2, 1.24)


# Whole walks over a server


def collected(walk: Walk, path: Path) -> Report:
    (report,) = collect([walk], path / "responses.sqlite")
    return report


@pytest.mark.parametrize("limit", [1, 120])
@pytest.mark.parametrize("name", SEARCHABLE)
def test_a_limit_is_a_total_for_every_source(name: str, limit: int, tmp_path: Path) -> None:
    with FakeSources({name: recent_papers(200)}) as server:
        walk = walk_of(name, server, records=limit)
        report = collected(walk, tmp_path)
    assert server.errors == []
    assert (report.records, report.stop) == (limit, Stop.CAP)
    assert len(server.requests) <= 2 + limit / 20  # and no more is asked
    assert len({(paper.paper_id, paper.publication_date) for paper in walk.papers}) == limit


@pytest.mark.parametrize("name", SEARCHABLE)
def test_all_of_every_source_arrives_where_no_limit_is_near(name: str, tmp_path: Path) -> None:
    papers = recent_papers(130)
    with FakeSources({name: papers}) as server:
        walk = walk_of(name, server)
        report = collected(walk, tmp_path)
    assert server.errors == []
    assert (report.stop, report.detail, report.records) == (Stop.DONE, "", len(walk.papers))
    assert len({paper.paper_id for paper in walk.papers}) == 130
    n_later_versions = len(walk.papers) - 130
    assert (n_later_versions > 0) == (name in {"biorxiv", "medrxiv"})


@pytest.mark.parametrize("name", SEARCHABLE)
def test_a_source_that_never_ends_is_cut_at_the_limit(name: str, tmp_path: Path) -> None:
    with FakeSources({name: recent_papers(5)}, faults={name: [fake.endless()]}) as server:
        walk = walk_of(name, server, records=250)
        report = collected(walk, tmp_path)
    assert server.errors == []
    assert (report.stop, report.records, len(walk.papers)) == (Stop.CAP, 250, 250)


@pytest.mark.parametrize("name", [name for name in SEARCHABLE if name != "pubmed"])  # asked by number, it cannot repeat
def test_a_source_that_repeats_its_first_page_is_named(name: str, tmp_path: Path) -> None:
    with FakeSources({name: recent_papers(300)}, faults={name: [fake.repeating()]}) as server:
        report = collected(walk_of(name, server, records=900), tmp_path)
    assert report.stop in {Stop.PARTIAL, Stop.MALFORMED}
    assert "repeats records of earlier pages" in report.detail or "the page before again" in report.detail
    assert report.pages <= 3
    assert 0 < report.records <= 300


#: The number of the request for the second page: PubMed's first gives ids, Scopus refuses the view that is asked first.
SECOND_PAGE = dict.fromkeys(SEARCHABLE, 1) | {"pubmed": 2, "scopus": 2}


@pytest.mark.parametrize("fault", [fake.cut_body(), fake.html_page(), fake.empty_body()], ids=["cut", "html", "empty"])
@pytest.mark.parametrize("name", SEARCHABLE)
def test_a_page_in_the_middle_that_never_comes_whole_leaves_the_earlier_ones(
    name: str, fault: fake.Fault, tmp_path: Path
) -> None:
    papers = recent_papers(130)
    with FakeSources({name: papers}, faults={name: [fault.at(SECOND_PAGE[name], times=99)]}) as server:
        walk = walk_of(name, server, page_size=25)
        report = collected(walk, tmp_path)
    assert report.stop == Stop.PARTIAL
    assert report.detail.endswith("; 3 attempts")
    assert report.records == len(walk.papers)
    assert len({paper.paper_id for paper in walk.papers}) >= 20
    assert report.records < 130


def test_an_empty_page_in_the_middle_is_asked_again_and_then_told(tmp_path: Path) -> None:
    with FakeSources({"arxiv": recent_papers(250)}, faults={"arxiv": [fake.empty_page().at(1, times=99)]}) as server:
        report = collected(walk_of("arxiv", server, page_size=100), tmp_path)
    assert (report.stop, report.records, report.declared) == (Stop.PARTIAL, 100, 250)
    assert report.detail == "sent an empty page at 100 of 250; 3 attempts"
    assert len(server.requests) == 1 + 3


def test_an_empty_page_in_the_middle_that_comes_whole_in_the_end_does_no_harm(tmp_path: Path) -> None:
    with FakeSources({"arxiv": recent_papers(250)}, faults={"arxiv": [fake.empty_page().at(1, times=2)]}) as server:
        report = collected(walk_of("arxiv", server, page_size=100), tmp_path)
    assert (report.stop, report.records) == (Stop.DONE, 250)


def test_fewer_records_than_declared_are_no_failure(tmp_path: Path) -> None:
    def respond(path: str) -> Reply:
        offset = int(parse_qs(urlsplit(path).query)["offset"][0])
        data = [{"paperId": f"p{i}", "title": f"Number {i}"} for i in range(offset, min(offset + 100, 346))]
        following = {"next": offset + 100} if offset < 300 else {}
        return Reply(json.dumps({"total": 422, "offset": offset, "data": data, **following}).encode())

    server = PagesServer(respond)
    s2 = source("semantic_scholar", base_url=f"http://127.0.0.1:{server.port}", interval_s=0.0)
    report = collected(Walk(s2, QUERY, DAY, Limits(1000, 100)), tmp_path)
    server.stop()
    assert (report.stop, report.declared, report.records, report.pages) == (Stop.SHORT, 422, 346, 4)


def without_mention(papers: list[MadeUp], title: str) -> list[MadeUp]:
    """The same papers, their texts about something else but for one word in the title."""
    return [dataclasses.replace(p, title=f"{title} {p.number}", abstract="Of bees.", keywords=()) for p in papers]


@pytest.mark.parametrize("name", ["biorxiv", "medrxiv"])
def test_pages_of_postings_about_other_things_do_not_end_a_walk(name: str, tmp_path: Path) -> None:
    others = without_mention(recent_papers(200), "Bees")
    wanted = [dataclasses.replace(p, date=DAY) for p in recent_papers(203)[200:] if p.number % 4]  # the last page
    with FakeSources({name: [*others, *wanted]}) as server:
        walk = walk_of(name, server)
        report = collected(walk, tmp_path)
    assert sorted(paper.title for paper in walk.papers) == sorted(paper.title for paper in wanted)
    assert (report.stop, report.pages > 5) == (Stop.DONE, True)


def test_pages_of_titles_with_one_word_alone_do_not_end_a_walk(tmp_path: Path) -> None:
    others, wanted = without_mention(recent_papers(200), "Programming bees"), recent_papers(203)[200:]
    with FakeSources({"psyarxiv": [*others, *wanted]}) as server:
        walk = walk_of("psyarxiv", server)
        report = collected(walk, tmp_path)
    assert sorted(paper.title for paper in walk.papers) == sorted(paper.title for paper in wanted)
    assert (report.stop, report.records) == (Stop.DONE, 3)


@pytest.mark.parametrize("name", SEARCHABLE)
def test_no_source_is_asked_for_more_pages_than_allowed(name: str, tmp_path: Path) -> None:
    with FakeSources({name: recent_papers(300)}) as server:
        walk = walk_of(name, server, pages=3, page_size=25)
        report = collected(walk, tmp_path)
    assert (report.stop, report.detail, report.pages) == (Stop.CAP, "3 pages (sources.max_pages)", 3)
    assert len(server.requests) == 3
    assert 0 < report.records < 300
