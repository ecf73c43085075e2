from __future__ import annotations

import asyncio
import re
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

import fake_sources as fake
from collecting_helpers import Numbers, numbers, quick, recent_papers, set_keys
from endpoint import Reply
from fake_sources import FakeSources
from pages_server import PagesServer
from pipeline.collecting.client import Client
from pipeline.collecting.lookups import Lookups, ask
from pipeline.collecting.reports import Report, Stop
from pipeline.collecting.responses import Responses
from pipeline.sources import Page, Request
from source_helpers import source

PAPERS = recent_papers(60)


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys(monkeypatch)


def looked_up(lookups: Lookups, responses: Responses, budget_s: float = 30.0, **patience: Any) -> Report:
    async def run() -> Report:
        async with Client(quick(**patience), "1") as client:
            return await ask(lookups, client, responses, budget_s)

    return asyncio.run(run())


def of_unpaywall(server: FakeSources, dois: list[str], **settings: Any) -> Lookups:
    reader = source("unpaywall", base_url=server.base_urls["unpaywall"], interval_s=0.0, **settings)
    return Lookups("unpaywall by DOI", reader, [reader.lookup([doi]) for doi in dois])


def dois_found(lookups: Lookups, responses: Responses) -> list[str | None]:
    return [paper.doi for _, _, page in lookups.pages(responses) for paper in page.papers]


def test_what_is_looked_up_comes_in_the_order_of_the_requests(responses: Responses) -> None:
    dois = [paper.doi for paper in PAPERS]
    with FakeSources({}, unpaywall=PAPERS, latency_s=0.002) as server:
        lookups = of_unpaywall(server, dois)
        report = looked_up(lookups, responses)
    assert (report.source, report.stop, report.pages, report.declared) == ("unpaywall by DOI", Stop.DONE, 60, 60)
    assert dois_found(lookups, responses) == dois
    assert 1 < max(seen.under_way for seen in server.requests) <= 4


def test_what_is_absent_is_kept_and_not_asked_again(responses: Responses) -> None:
    with FakeSources({}, unpaywall=PAPERS[:1]) as server:
        lookups = of_unpaywall(server, [PAPERS[0].doi, "10.5555/none", "10.5555/neither"])
        assert looked_up(lookups, responses).stop == Stop.DONE
        again = looked_up(lookups, responses)
        assert len(server.requests) == 3
    assert (again.stop, again.detail, again.pages, again.declared) == (Stop.DONE, "", 3, 3)
    assert [len(page.papers) for _, _, page in lookups.pages(responses)] == [1, 0, 0]


def test_a_place_that_is_wrong_is_not_taken_for_an_absent_record(responses: Responses) -> None:
    with FakeSources({}, faults={"unpaywall": [fake.reply(404, b"<html>no such page</html>")]}) as server:
        lookups = of_unpaywall(server, ["10.5555/1"])
        report = looked_up(lookups, responses)
    assert (report.stop, report.pages) == (Stop.HTTP_ERROR, 0)


def test_five_faults_are_enough(responses: Responses) -> None:
    dois = [f"10.5555/{i}" for i in range(100)]
    with FakeSources({}, faults={"unpaywall": [fake.reply(403, b"no")]}) as server:
        report = looked_up(of_unpaywall(server, dois), responses)
        n_asked = len(server.requests)
    assert report.stop == Stop.HTTP_ERROR
    assert re.fullmatch(r"[5-8] look-ups failed, 9[2-5] were not asked: HTTP 403: 'no'", report.detail)
    assert 5 <= n_asked <= 5 + 3  # three others were under way
    assert report.pages == 0


def test_fewer_faults_leave_the_others(responses: Responses) -> None:
    dois = [paper.doi for paper in PAPERS]
    faults = {"unpaywall": [fake.reply(403, b"no").at(10, times=4)]}
    with FakeSources({}, unpaywall=PAPERS, faults=faults) as server:
        report = looked_up(of_unpaywall(server, dois), responses)
        assert (report.stop, report.pages) == (Stop.HTTP_ERROR, 56)
        assert report.detail == "4 look-ups failed: HTTP 403: 'no'"
        assert looked_up(of_unpaywall(server, dois), responses).pages == 60
        assert len(server.requests) == 60 + 4  # none that was answered is asked again


def test_what_always_fails_holds_up_the_others_in_one_run_alone(responses: Responses) -> None:
    server = PagesServer(lambda path: numbers(1) if int(path.split("=")[1]) > 4 else Reply(b"<html>", status=404))
    reader = Numbers(base_url=f"http://127.0.0.1:{server.port}")
    lookups = Lookups("numbers", reader, [Request(reader.base_url, {"page": str(n)}) for n in range(60)])
    kept = [looked_up(lookups, responses).pages for _ in range(3)]
    server.stop()
    assert kept == [0, 55, 55]


def test_single_failures_do_not_add_up(responses: Responses) -> None:
    dois = [paper.doi for paper in PAPERS]
    faults = [fake.reply(403, b"no").at(n) for n in range(0, 60, 6)]
    with FakeSources({}, unpaywall=PAPERS, faults={"unpaywall": faults}) as server:
        report = looked_up(of_unpaywall(server, dois, concurrency=1), responses)
    assert (report.pages, report.detail) == (50, "10 look-ups failed: HTTP 403: 'no'")


def test_a_budget_ends_look_ups_and_keeps_what_came(responses: Responses) -> None:
    dois = [paper.doi for paper in PAPERS]
    faults = {"unpaywall": [fake.hang().at(20, times=99)]}
    with FakeSources({}, unpaywall=PAPERS, faults=faults) as server:
        report = looked_up(of_unpaywall(server, dois), responses, budget_s=3.0, timeout_s=30.0)
    assert (report.stop, report.pages, report.declared) == (Stop.BUDGET, 20, 60)
    assert report.seconds < 6


def test_too_many_requests_told_as_422_are_asked_again(responses: Responses) -> None:
    slow_down = fake.reply(422, b'{"error": true, "message": "Too many requests"}')
    with FakeSources({}, unpaywall=PAPERS, faults={"unpaywall": [slow_down.at(0, times=2)]}) as server:
        lookups = of_unpaywall(server, [PAPERS[0].doi], concurrency=1)
        assert looked_up(lookups, responses).stop == Stop.DONE
        assert len(server.requests) == 3
    assert dois_found(lookups, responses) == [PAPERS[0].doi]


def test_without_an_address_nothing_is_asked(responses: Responses, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UNPAYWALL_EMAIL")
    with FakeSources({}) as server:
        report = looked_up(of_unpaywall(server, ["10.5555/1"]), responses)
    assert (report.stop, report.detail) == (Stop.NO_KEY, "set the environment variable UNPAYWALL_EMAIL")
    assert server.requests == []


def test_nothing_to_look_up_is_done(responses: Responses) -> None:
    with FakeSources({}) as server:
        report = looked_up(of_unpaywall(server, []), responses)
    assert (report.stop, report.pages, report.declared) == (Stop.DONE, 0, 0)


def test_a_fault_of_our_own_ends_these_look_ups_alone(responses: Responses, caplog: pytest.LogCaptureFixture) -> None:
    class Buggy(Numbers):
        def read(self, body: bytes, request: Request) -> Page:
            raise KeyError("title")

    server = PagesServer(lambda path: numbers(1))
    reader = Buggy(base_url=f"http://127.0.0.1:{server.port}")
    report = looked_up(Lookups("numbers", reader, [Request(reader.base_url, {"page": "1"})]), responses)
    server.stop()
    assert (report.stop, report.detail) == (Stop.MALFORMED, "litgrade cannot read it: 'title'")
    assert "a fault of litgrade" in caplog.text


STRANGE_DOIS = [
    "10.5555/a,b",
    "10.5555/(sici)1097-4571(199806)49:8<693::aid-asi4>3.0.co;2-o",
    "10.5555/x[1]{2}",
    "10.5555/100%25sure",
    "10.5555/50%",
    "10.5555/übung-日本",
    "10.5555/a?b=c&d#e",
    "10.5555/a+b;c",
    "10.5555/a/b//c",
]


@pytest.mark.parametrize("doi", STRANGE_DOIS)
def test_a_doi_arrives_in_a_path_as_it_is(responses: Responses, doi: str) -> None:
    server = PagesServer(lambda path: Reply(b'{"doi": "10.5555/1"}'))
    reader = source("unpaywall", base_url=f"http://127.0.0.1:{server.port}/v2", interval_s=0.0)
    looked_up(Lookups("u", reader, [reader.lookup([doi])]), responses)
    server.stop()
    url = urlsplit(server.asked[0].path)
    assert unquote(url.path) == f"/v2/{doi}"
    assert parse_qs(url.query) == {"email": ["me@flutter.example"]}


def test_dois_arrive_in_a_filter_as_they_are(responses: Responses) -> None:
    server = PagesServer(lambda path: Reply(b'{"status": "ok", "message": {"items": []}}'))
    reader = source("crossref", base_url=f"http://127.0.0.1:{server.port}/works", interval_s=0.0)
    askable = [doi for doi in STRANGE_DOIS if reader.can_look_up(doi)]
    assert {doi for doi in STRANGE_DOIS if doi not in askable} == {doi for doi in STRANGE_DOIS if "," in doi}
    looked_up(Lookups("c", reader, [reader.lookup(askable)]), responses)
    server.stop()
    params = parse_qs(urlsplit(server.asked[0].path).query)
    assert params["filter"][0].split(",") == [f"doi:{doi}" for doi in askable]
    assert params["rows"] == [str(len(askable))]
