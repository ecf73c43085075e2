from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from pathlib import Path

import pytest
from pydantic.dataclasses import dataclass

import fake_sources as fake
from collecting_helpers import (
    DAY,
    QUERY,
    SEARCHABLE,
    Numbers,
    collect,
    collect_into,
    numbers,
    recent_papers,
    set_keys,
    walk_of,
)
from endpoint import Reply
from fake_sources import FakeSources
from pages_server import PagesServer
from pipeline.collecting.collector import replay
from pipeline.collecting.reports import Report, Stop
from pipeline.collecting.responses import Response, Responses
from pipeline.collecting.walk import Limits, Walk
from pipeline.errors import UserError
from pipeline.sources import STRICT, Credential, Page, Request

PAPERS = {name: recent_papers(130, seed) for seed, name in enumerate(SEARCHABLE)}
BUDGET_S = 8.0  #: far more than the healthy sources need


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys(monkeypatch)


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Buggy(Numbers):
    """A source whose own code fails on the page of this number."""

    bad_page: int = 1

    def read(self, body: bytes, request: Request) -> Page:
        if request.params["page"] == str(self.bad_page):
            raise KeyError("title")
        return super().read(body, request)


def walk_at(server: PagesServer, kind: type[Numbers] = Numbers, **settings: object) -> Walk:
    return Walk(kind(base_url=f"http://127.0.0.1:{server.port}/list", **settings), QUERY, DAY, Limits(100, 100))


def by_source(reports: list[Report]) -> dict[str, Report]:
    return {report.source: report for report in reports}


# Budget


def test_whatever_fails_the_others_are_complete_and_all_ends_in_time(tmp_path: Path) -> None:
    faults = {
        "arxiv": [fake.hang()],
        "biorxiv": [fake.slow_drip(0.05)],
        "medrxiv": [fake.server_errors()],
        "psyarxiv": [fake.too_many_requests(60)],
        "crossref": [fake.hang().at(1, times=99)],
        "openalex": [fake.connection_reset()],
        "semantic_scholar": [fake.html_page()],
        "doaj": [fake.cut_body().at(1, times=99)],
        "pubmed": [fake.empty_body()],
        "scopus": [fake.endless(), fake.huge_body(30)],
    }
    with FakeSources(PAPERS, faults=faults) as server:
        walks = [walk_of(name, server, page_size=50) for name in SEARCHABLE]
        started = time.monotonic()
        reports = by_source(collect(walks, tmp_path / "r.sqlite", BUDGET_S, timeout_s=30.0))
        took = time.monotonic() - started
    assert took < BUDGET_S + 1
    assert list(reports) == list(SEARCHABLE)
    assert {name: report.stop for name, report in reports.items()} == {
        "arxiv": Stop.UNREACHABLE,  # no answer at all
        "biorxiv": Stop.UNREACHABLE,
        "medrxiv": Stop.HTTP_ERROR,
        "psyarxiv": Stop.RATE_LIMITED,
        "socarxiv": Stop.DONE,
        "edarxiv": Stop.DONE,
        "crossref": Stop.BUDGET,
        "openalex": Stop.UNREACHABLE,
        "semantic_scholar": Stop.MALFORMED,
        "doaj": Stop.PARTIAL,
        "pubmed": Stop.MALFORMED,
        "scopus": Stop.MALFORMED,
        "wos": Stop.DONE,
    }
    records = {name: report.records for name, report in reports.items() if report.records}
    assert reports["arxiv"].detail == "no answer within the budget"
    assert records == {"socarxiv": 130, "edarxiv": 130, "crossref": 50, "doaj": 50, "wos": 130}


def test_a_budget_that_is_spent_is_no_failure_and_keeps_what_came(responses: Responses) -> None:
    with FakeSources({"openalex": PAPERS["openalex"]}, faults={"openalex": [fake.hang().at(2, times=99)]}) as server:
        walk = walk_of("openalex", server, page_size=50)
        (report,) = asyncio.run(collect_into([walk], responses, 3.0, timeout_s=30.0))
        assert (report.stop, report.stop.is_failure) == (Stop.BUDGET, False)
        assert (report.pages, report.records, report.declared) == (2, 100, 130)
        assert replay(walk_of("openalex", server, page_size=50), responses).papers == walk.papers


def test_a_page_that_repeats_others_is_not_kept(responses: Responses) -> None:
    with FakeSources({"openalex": PAPERS["openalex"]}, faults={"openalex": [fake.repeating()]}) as server:
        (report,) = asyncio.run(collect_into([walk_of("openalex", server, page_size=50)], responses))
    assert (report.stop, report.records) == (Stop.PARTIAL, 50)
    kept = [responses.get("search/q1/openalex", f"{n:06d}") is not None for n in range(3)]
    assert kept == [True, False, False]


def test_waiting_for_a_turn_counts_in_the_budget(tmp_path: Path) -> None:
    with FakeSources(PAPERS) as server:
        names = ("psyarxiv", "socarxiv", "edarxiv")
        walks = [walk_of(name, server, interval_s=60.0, burst=4) for name in names]
        reports = collect(walks, tmp_path / "r.sqlite", 20.0)
    assert len(server.requests) == 4
    assert [report.stop for report in reports] == [Stop.BUDGET] * 3
    assert sum(report.records for report in reports) > 0


def test_a_fault_of_our_own_hits_its_source_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    server = PagesServer(lambda path: numbers(1, 2, following=2) if path.endswith("page=1") else numbers(3))
    walks = [
        walk_at(server, Buggy, name="buggy"),
        walk_at(server, Buggy, name="later", bad_page=2),
        walk_at(server, name="fine"),
    ]
    reports = by_source(collect(walks, tmp_path / "r.sqlite"))
    server.stop()
    assert (reports["buggy"].stop, reports["buggy"].records) == (Stop.MALFORMED, 0)
    assert (reports["later"].stop, reports["later"].records) == (Stop.PARTIAL, 2)
    assert (reports["fine"].stop, reports["fine"].records) == (Stop.DONE, 3)
    assert reports["buggy"].detail == reports["later"].detail == "litgrade cannot read it: 'title'"
    assert "buggy: a fault of litgrade, not of the source" in caplog.text


def test_a_source_without_its_key_is_not_asked_and_tells_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SCOPUS_API_KEY")
    monkeypatch.setenv("WOS_API_KEY", " ")
    with FakeSources(PAPERS) as server:
        walks = [walk_of(name, server) for name in ("scopus", "wos", "doaj")]
        scopus, wos, doaj = collect(walks, tmp_path / "r.sqlite")
    assert (scopus.stop, scopus.detail) == (Stop.NO_KEY, "set the environment variable SCOPUS_API_KEY")
    assert (wos.stop, wos.detail) == (Stop.NO_KEY, "set the environment variable WOS_API_KEY")
    assert doaj.records == 130
    assert {seen.source for seen in server.requests} == {"doaj"}


def test_a_bad_key_ends_all_with_one_error_and_no_noise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("WOS_API_KEY", "wos\nkey")
    with FakeSources(PAPERS, latency_s=0.05) as server:
        walks = [walk_of(name, server) for name in SEARCHABLE]
        with pytest.raises(UserError, match=r"^the value of WOS_API_KEY holds characters"):
            collect(walks, tmp_path / "r.sqlite")
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


# Resuming


def test_a_finished_collection_asks_nothing_again(tmp_path: Path) -> None:
    with FakeSources(PAPERS, faults={"medrxiv": [fake.server_errors()]}) as server:
        first = collect([walk_of(name, server) for name in SEARCHABLE], tmp_path / "r.sqlite")
        asked = len(server.requests)
        again = collect([walk_of(name, server) for name in SEARCHABLE], tmp_path / "r.sqlite")
        assert len(server.requests) == asked
    assert again == first


async def killed_at(walk: Walk, path: Path, server: FakeSources, n_requests: int) -> None:
    """Collect until so many requests have come, then stop as a killed process does: with no report."""
    responses = Responses(path)
    collecting = asyncio.create_task(collect_into([walk], responses, timeout_s=30.0))
    while len(server.requests) < n_requests and not collecting.done():
        await asyncio.sleep(0.005)
    collecting.cancel()
    await asyncio.gather(collecting, return_exceptions=True)
    assert responses.report(walk.name) is None
    responses.close()


@pytest.mark.parametrize("name", SEARCHABLE)
def test_a_walk_that_was_killed_goes_on_in_its_middle(name: str, tmp_path: Path) -> None:
    first = 3 if name in {"pubmed", "scopus"} else 2  # the request that hangs is for the third page of records
    with FakeSources({name: PAPERS[name]}) as server:
        whole = walk_of(name, server, page_size=25)
        collect([whole], tmp_path / "whole.sqlite")
        n_whole = len(server.requests)
    with FakeSources({name: PAPERS[name]}, faults={name: [fake.hang().at(first)]}) as server:
        path = tmp_path / "r.sqlite"
        settings = {"page_size": 25, "base_url": server.base_urls[name]}
        asyncio.run(killed_at(walk_of(name, server, **settings), path, server, first + 1))
        walk = walk_of(name, server, **settings)
        (report,) = collect([walk], path)
        asked = Counter((seen.path, *sorted(seen.params.items())) for seen in server.requests)
    assert report.stop == Stop.DONE
    assert [paper.paper_id for paper in walk.papers] == [paper.paper_id for paper in whole.papers]
    assert len(server.requests) == n_whole + 1  # the one that hung
    assert sorted(asked.values())[-2:] == [1, 2]


def test_an_answer_is_kept_before_the_next_is_asked_for(responses: Responses) -> None:
    kept: list[bool] = []

    def respond(path: str) -> Reply:
        reader = Responses(responses.path, is_read_only=True)
        kept.append(reader.get("search/q1/numbers", "000000") is not None)
        reader.close()
        return numbers(len(kept), following=len(kept) + 1 if len(kept) < 3 else None)

    server = PagesServer(respond)
    asyncio.run(collect_into([walk_at(server)], responses))
    server.stop()
    assert kept == [False, True, True]


def test_answers_of_another_configuration_are_not_taken_for_ours(tmp_path: Path) -> None:
    with FakeSources({"doaj": PAPERS["doaj"]}, faults={"doaj": [fake.hang().at(1)]}) as server:
        asyncio.run(killed_at(walk_of("doaj", server, page_size=25), tmp_path / "r.sqlite", server, 2))
        with pytest.raises(UserError, match=r"doaj was asked http.*pageSize=25, but this configuration asks") as error:
            collect([walk_of("doaj", server, page_size=50)], tmp_path / "r.sqlite")
    assert str(error.value).endswith("collect into a new snapshot")


# Replay


@pytest.mark.parametrize("name", SEARCHABLE)
def test_a_replay_gives_what_the_walk_gave(name: str, responses: Responses) -> None:
    with FakeSources({name: PAPERS[name]}) as server:
        live = walk_of(name, server, page_size=25)
        asyncio.run(collect_into([live], responses))
        asked = len(server.requests)
    again = replay(walk_of(name, server, page_size=25), responses)
    assert again.papers == live.papers
    assert len({paper.paper_id for paper in live.papers}) == 130
    assert again.report(0) == live.report(0)
    assert live.pages == asked


def test_the_view_that_scopus_refused_is_part_of_the_replay(responses: Responses) -> None:
    with FakeSources({"scopus": PAPERS["scopus"]}) as server:
        live = walk_of("scopus", server)
        asyncio.run(collect_into([live], responses))
    assert [seen.params["view"] for seen in server.requests] == ["COMPLETE", "STANDARD"]
    kept = responses.get("search/q1/scopus", "000000")
    assert kept is not None
    assert (kept.status, "view=COMPLETE" in kept.request) == (401, True)
    assert replay(walk_of("scopus", server), responses).papers == live.papers
    assert len(live.papers) == 130


def test_a_replay_goes_as_far_as_the_answers(responses: Responses) -> None:
    with FakeSources({"doaj": PAPERS["doaj"]}, faults={"doaj": [fake.server_errors().at(2, times=99)]}) as server:
        walk = walk_of("doaj", server, page_size=50)
        asyncio.run(collect_into([walk], responses))
        assert replay(walk_of("doaj", server, page_size=50), responses).papers == walk.papers
    assert len(walk.papers) == 100
    assert replay(walk_of("wos", server), responses).papers == []


def test_an_answer_that_can_no_longer_be_read_is_told(responses: Responses) -> None:
    with FakeSources({"doaj": PAPERS["doaj"]}) as server:
        walk = walk_of("doaj", server)
        first = str(walk.requests().__next__().url)
        responses.add(walk.name, walk.step, Response(f"{first}?page=1&pageSize=100", 200, b"<html>"))
        with pytest.raises(UserError, match="an answer of doaj cannot be read any more: sent no JSON but"):
            replay(walk, responses)


def test_the_report_of_a_walk_is_kept(responses: Responses) -> None:
    with FakeSources({"doaj": PAPERS["doaj"]}) as server:
        walk = walk_of("doaj", server)
        (report,) = asyncio.run(collect_into([walk], responses))
    known = responses.report(walk.name)
    assert known == report
    assert known is not None
    assert isinstance(known.stop, Stop)


def test_credentials_are_asked_for_by_name_of_their_first_variable(tmp_path: Path) -> None:
    server = PagesServer(lambda path: numbers(1))
    credentials = (Credential(("A_KEY", "B_KEY"), header="A", required=True), Credential(("C",), header="C"))
    (report,) = collect([walk_at(server, credentials=credentials)], tmp_path / "r.sqlite")
    server.stop()
    assert report.detail == "set the environment variable A_KEY"
    assert server.asked == []
