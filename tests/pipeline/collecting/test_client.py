from __future__ import annotations

import asyncio
import gzip
import html
import itertools
import json
import logging
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import pytest

import fake_sources as fake
from collecting_helpers import DAY, FOREVER, QUERY, NoWaiting, Numbers, ask, numbers, quick, recent_papers, set_keys
from endpoint import Reply
from fake_sources import FakeSources, Fault
from pages_server import PagesServer
from pipeline.collecting.client import Client, Clock, Patience, _is_same_place
from pipeline.collecting.reports import SourceFault, Stop
from pipeline.errors import UserError
from pipeline.sources import Credential, Request
from source_helpers import source

PAPERS = recent_papers(3)
FIRST = Request("placeholder")


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys(monkeypatch)


@pytest.fixture
def pages() -> Iterator[Callable[..., PagesServer]]:
    """Start a server whose replies are told: one for all, or by path."""
    servers: list[PagesServer] = []

    def start(reply: Reply | Callable[[str], Reply]) -> PagesServer:
        servers.append(PagesServer((lambda path: reply) if isinstance(reply, Reply) else reply))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def at(server: PagesServer, path: str = "/list", **settings: Any) -> Numbers:
    return Numbers(base_url=f"http://127.0.0.1:{server.port}{path}", **settings)


def get(server: PagesServer, path: str = "/list", **patience: Any) -> Any:
    reader = at(server, path)
    return ask(reader, reader.search(QUERY, DAY, 10), **patience)


def fault_of(server: PagesServer, path: str = "/list", **patience: Any) -> SourceFault:
    with pytest.raises(SourceFault) as caught:
        get(server, path, **patience)
    return caught.value


def search(name: str, *faults: Fault, **patience: Any) -> tuple[Any, FakeSources]:
    """The first page of a fake source with these faults, or the fault that became of them; and the server."""
    with FakeSources({name: PAPERS}, faults={name: faults}) as server:
        reader = source(name, base_url=server.base_urls[name], interval_s=0.0)
        try:
            _, got = ask(reader, reader.search(QUERY, DAY, 10), **patience)
        except SourceFault as fault:
            got = fault
    assert server.errors == []
    return got, server


# Retries


def test_waits_as_long_as_asked_and_backs_off_with_jitter_on_top() -> None:
    waiting = NoWaiting()
    faults = (fake.too_many_requests(7).at(0), fake.too_many_requests().at(1))
    page, server = search("arxiv", *faults, clock=waiting.clock, backoff_s=1.0)
    assert len(page.papers) == 3
    first, second = waiting.waits
    assert 7 + 0.5 * 1 <= first <= 7 + 1
    assert 0.5 * 2 <= second <= 2
    assert [seen.headers["user-agent"] for seen in server.requests] == ["litgrade/1"] * 3


def test_waits_of_two_walks_differ() -> None:
    waits = []
    for _ in range(2):
        waiting = NoWaiting()
        search("arxiv", fake.server_errors().at(0), clock=waiting.clock, backoff_s=1.0)
        waits += waiting.waits
    assert waits[0] != waits[1]


def test_a_wait_beyond_the_budget_ends_at_once_as_rate_limited() -> None:
    waiting = NoWaiting()
    deadline = waiting.time + 7
    fault, server = search("arxiv", fake.too_many_requests(7), clock=waiting.clock, deadline=deadline)
    assert fault.stop == Stop.RATE_LIMITED
    assert "429 Too Many Requests" in str(fault)
    assert "to wait 7 s more would pass the budget" in str(fault)
    assert waiting.waits == []
    assert len(server.requests) == 1


def test_attempts_before_the_budget_ended_are_told() -> None:
    waiting = NoWaiting()
    faults = (fake.server_errors(503).at(0, 2), fake.too_many_requests(60).at(2))
    fault, _ = search("arxiv", *faults, clock=waiting.clock, deadline=waiting.time + 30, attempts=9)
    assert (fault.stop, "; 3 attempts; to wait 60 s more" in str(fault)) == (Stop.RATE_LIMITED, True)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 422])
def test_an_error_that_cannot_get_better_is_asked_once(status: int) -> None:
    fault, server = search("crossref", fake.reply(status, b'{"message": "not so"}'))
    assert fault.stop == Stop.HTTP_ERROR
    assert str(fault) == f'HTTP {status}: \'{{"message": "not so"}}\''
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_an_error_that_may_get_better_is_asked_again(status: int) -> None:
    page, server = search("crossref", fake.reply(status).at(0, 2))
    assert len(page.papers) == 3
    assert len(server.requests) == 3


def test_a_source_may_call_too_many_requests_a_422() -> None:
    slow_down = fake.reply(422, b'{"error": true, "message": "Too many requests, slow down"}')
    with FakeSources({}, unpaywall=PAPERS, faults={"unpaywall": [slow_down.at(0)]}) as server:
        reader = source("unpaywall", base_url=server.base_urls["unpaywall"], interval_s=0.0)
        _, page = ask(reader, reader.lookup([PAPERS[0].doi]))
        assert [paper.doi for paper in page.papers] == [PAPERS[0].doi]
        assert len(server.requests) == 2


def test_a_422_that_never_slows_down_is_rate_limited_and_any_other_is_an_error() -> None:
    for body, stop, n in ((b"Too many requests", Stop.RATE_LIMITED, 3), (b"Use your own", Stop.HTTP_ERROR, 1)):
        with FakeSources({}, faults={"unpaywall": [fake.reply(422, body)]}) as server:
            reader = source("unpaywall", base_url=server.base_urls["unpaywall"], interval_s=0.0)
            with pytest.raises(SourceFault) as caught:
                ask(reader, reader.lookup(["10.5555/1"]))
        assert (caught.value.stop, len(server.requests)) == (stop, n)


def test_a_spent_budget_of_a_day_is_not_asked_again() -> None:
    fault, server = search("openalex", fake.reply(429, b"{}", headers={"X-RateLimit-Remaining": "0"}))
    assert (fault.stop, len(server.requests)) == (Stop.RATE_LIMITED, 1)


SHORT_S = 1.5
WHAT_GOES_WRONG = {
    "server error": (fake.server_errors(), Stop.HTTP_ERROR, "HTTP 500: '500 Server Error"),
    "too many requests": (fake.too_many_requests(), Stop.RATE_LIMITED, "HTTP 429: '429 Too Many Requests"),
    "reset": (fake.connection_reset(), Stop.UNREACHABLE, "the connection failed: "),
    "hang": (fake.hang(), Stop.UNREACHABLE, f"no whole answer within {SHORT_S} s"),
    "drip": (fake.slow_drip(0.05), Stop.UNREACHABLE, f"no whole answer within {SHORT_S} s"),
    "half a gzip": (fake.truncated_gzip(), Stop.MALFORMED, "sent gzip that ends too early"),
    "cut": (fake.cut_body(), Stop.MALFORMED, ""),
    "page for people": (fake.html_page(), Stop.MALFORMED, "'Welcome. Down for maintenance"),
    "nothing": (fake.empty_body(), Stop.MALFORMED, "but nothing"),
}


def time_for(what: str) -> float:
    """A server that is slow is waited for briefly; from any other the answer comes, on a busy machine too."""
    return SHORT_S if what in {"hang", "drip"} else 15.0


@pytest.mark.parametrize("name", ["crossref", "arxiv"])  # JSON and XML
@pytest.mark.parametrize("what", WHAT_GOES_WRONG)
def test_what_stays_wrong_is_named_and_counted(what: str, name: str) -> None:
    wrong, stop, words = WHAT_GOES_WRONG[what]
    fault, server = search(name, wrong, timeout_s=time_for(what))
    assert fault.stop == stop
    assert words in str(fault)
    assert str(fault).endswith("; 3 attempts")
    assert "\n" not in str(fault)
    assert len(server.requests) == 3


@pytest.mark.parametrize("name", ["crossref", "arxiv"])
@pytest.mark.parametrize("what", WHAT_GOES_WRONG)
def test_what_gets_right_in_the_end_is_read(what: str, name: str) -> None:
    page, server = search(name, WHAT_GOES_WRONG[what][0].at(0, 2), timeout_s=time_for(what))
    assert len(page.papers) == 3
    assert len(server.requests) == 3


@pytest.mark.parametrize("name", ["crossref", "arxiv", "openalex", "doaj", "wos", "scopus", "semantic_scholar"])
def test_an_error_told_with_status_200_is_a_fault(name: str) -> None:
    fault, _ = search(name, fake.error_inside_200())
    assert fault.stop in {Stop.REFUSED, Stop.MALFORMED}
    assert str(fault)


@pytest.mark.parametrize("name", ["crossref", "arxiv"])
def test_the_encoding_that_a_header_declares_is_not_believed(name: str) -> None:
    with FakeSources({name: recent_papers(80)}, faults={name: [fake.wrong_charset()]}) as server:
        reader = source(name, base_url=server.base_urls[name], interval_s=0.0)
        _, page = ask(reader, reader.search(QUERY, DAY, 100))
    told = {paper.title for paper in recent_papers(80)}
    assert {paper.title for paper in page.papers} <= told
    assert any("ï" in paper.title or "ö" in paper.title for paper in page.papers)


def test_a_server_that_is_not_there_is_unreachable() -> None:
    gone = PagesServer(lambda path: numbers(1))
    gone.stop()
    fault = fault_of(gone)
    assert (fault.stop, str(fault)) == (
        Stop.UNREACHABLE,
        "the connection failed: All connection attempts failed; 3 attempts",
    )


# Size


def peak_of(do: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        do()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


PACKED = {"Content-Encoding": "gzip"}


@pytest.mark.parametrize("is_packed", [False, True])
def test_an_answer_that_is_too_large_is_refused_before_it_is_in_memory(
    pages: Callable[..., PagesServer], is_packed: bool
) -> None:
    body = b'{"ids": []' + b" " * 50_000_000 + b"}"
    server = pages(Reply(gzip.compress(body, 1), headers=PACKED) if is_packed else Reply(body))
    faults = []
    peak = peak_of(lambda: faults.append(fault_of(server, max_mb=2)))
    assert (faults[0].stop, str(faults[0])) == (
        Stop.MALFORMED,
        "sent more than 2 MB (sources.patience.max_mb)",
    )
    assert len(server.asked) == 1
    assert peak < 12_000_000


def test_a_gzip_bomb_does_not_go_off(pages: Callable[..., PagesServer]) -> None:
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join([*(packer.compress(bytes(10_000_000)) for _ in range(50)), packer.flush()])  # 500 MB in 0.5
    server = pages(Reply(bomb, headers=PACKED))
    peak = peak_of(lambda: fault_of(server, max_mb=2))
    assert len(bomb) < 1_000_000
    assert peak < 12_000_000


@pytest.mark.parametrize("packing", ["gzip, gzip", "zstd", "br", "deflate"])
def test_no_other_packing_is_taken(pages: Callable[..., PagesServer], packing: str) -> None:
    server = pages(Reply(gzip.compress(gzip.compress(bytes(1000))), headers={"Content-Encoding": packing}))
    fault = fault_of(server)
    assert (fault.stop, str(fault)) == (Stop.MALFORMED, f"sent packed as '{packing}', not gzip; 3 attempts")
    assert server.asked[0].headers["Accept-Encoding"] == "gzip"


def test_what_is_no_gzip_is_malformed(pages: Callable[..., PagesServer]) -> None:
    fault = fault_of(pages(Reply(b'{"ids": []}', headers=PACKED)))
    assert (fault.stop, str(fault)) == (Stop.MALFORMED, "sent gzip that cannot be unpacked; 3 attempts")


def test_an_answer_as_large_as_is_allowed_is_read(pages: Callable[..., PagesServer]) -> None:
    body = b'{"ids": [1]' + b" " * (1_000_000 - 12) + b"}"
    assert len(body) == 1_000_000
    response, page = get(pages(Reply(gzip.compress(body), headers=PACKED)), max_mb=1)
    assert (response.body, len(page.papers)) == (body, 1)


def test_a_refused_429_may_say_gzip_of_nothing(pages: Callable[..., PagesServer]) -> None:
    fault = fault_of(pages(Reply(b"", status=429, headers=PACKED)))
    assert (fault.stop, str(fault)) == (Stop.RATE_LIMITED, "HTTP 429: nothing; 3 attempts")


# Redirects


def moved(to: str) -> Reply:
    return Reply(b"", status=302, headers={"Location": to})


def test_a_redirect_on_the_same_host_is_followed_with_the_keys(
    pages: Callable[..., PagesServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBERS_KEY", "key-12345")
    server = pages(lambda path: moved("/new?page=1") if path.startswith("/old") else numbers(1))
    reader = at(server, "/old", credentials=(Credential(("NUMBERS_KEY",), header="X-Key"),))
    response, page = ask(reader, reader.search(QUERY, DAY, 10))
    assert len(page.papers) == 1
    assert response.request.endswith("/old?page=1")
    assert [asked.headers["X-Key"] for asked in server.asked] == ["key-12345"] * 2


def test_a_key_in_the_name_of_another_host_is_not_told(
    pages: Callable[..., PagesServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBERS_KEY", "key-12345")
    reader = at(pages(moved("http://key-12345.example/")), credentials=(Credential(("NUMBERS_KEY",), param="k"),))
    with pytest.raises(SourceFault, match=r"redirected elsewhere, to http://\*\*\*\.example"):
        ask(reader, reader.search(QUERY, DAY, 10))


def test_another_host_is_not_asked(pages: Callable[..., PagesServer], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBERS_KEY", "key-12345")
    other = pages(numbers(1))
    for place in (f"http://localhost:{other.port}", f"http://127.0.0.1:{other.port}"):
        server = pages(moved(f"{place}/list"))
        reader = at(server, credentials=(Credential(("NUMBERS_KEY",), header="X-Key"),))
        with pytest.raises(SourceFault) as caught:
            ask(reader, reader.search(QUERY, DAY, 10))
        assert (caught.value.stop, str(caught.value)) == (Stop.REFUSED, f"redirected elsewhere, to {place}")
        assert len(server.asked) == 1
    assert other.asked == []


@pytest.mark.parametrize(
    ("url", "target", "is_same"),
    [
        ("https://api.example/a", "https://api.example/b", True),
        ("https://api.example/a", "https://api.example:443/b", True),
        ("http://api.example/a", "https://api.example/a", True),
        ("https://api.example/a", "http://api.example/a", False),
        ("https://api.example/a", "https://api.example:8443/a", False),
        ("https://api.example/a", "https://api.example.evil.example/a", False),
        ("https://api.example/a", "ftp://api.example/a", False),
    ],
)
def test_keys_never_go_from_tls_to_plain_text(url: str, target: str, is_same: bool) -> None:
    assert _is_same_place(httpx.URL(url), httpx.URL(target)) is is_same


def test_five_redirects_are_followed_and_no_more(pages: Callable[..., PagesServer]) -> None:
    def respond(path: str) -> Reply:
        n = int(urlsplit(path).path.removeprefix("/"))
        return moved(f"/{n - 1}") if n else numbers(1)

    server = pages(respond)
    assert len(get(server, "/5")[1].papers) == 1
    server.asked.clear()
    fault = fault_of(server, "/6")
    assert (fault.stop, str(fault)) == (Stop.REFUSED, "redirected more than 5 times")
    assert len(server.asked) == 6


def test_a_redirect_to_itself_ends() -> None:
    fault, server = search("doaj", fake.redirect_to_itself())
    assert (fault.stop, len(server.requests)) == (Stop.REFUSED, 6)


def test_a_redirect_to_nowhere_ends(pages: Callable[..., PagesServer]) -> None:
    assert fault_of(pages(moved("http://[::1"))).stop == Stop.UNREACHABLE


# Secrets

HEADER_KEY, PARAM_KEY, CONTACT = 'h3+a/d=e&r<k>"y', "p4ra~m%k!ey", "me+papers@flutter.example"
CREDENTIALS = (
    Credential(("HEADER_KEY",), header="Authorization", prefix="Bearer "),
    Credential(("PARAM_KEY",), param="api_key"),
    Credential(("UNSET_KEY", "CONTACT"), param="mailto"),
)


@pytest.fixture
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"HEADER_KEY": HEADER_KEY, "PARAM_KEY": PARAM_KEY, "CONTACT": CONTACT}.items():
        monkeypatch.setenv(name, value)


def spellings(value: str) -> set[str]:
    """How servers repeat what they were sent."""
    encoded = quote(value, safe="")
    in_json = json.dumps(value)[1:-1]
    return {
        value,
        encoded,
        encoded.replace("%2B", "%2b").replace("%2F", "%2f"),
        quote(encoded, safe=""),
        quote(value),
        str(httpx.QueryParams({"q": value}))[2:],
        in_json,
        in_json.replace("/", "\\/"),
        value.replace("&", "\\u0026").replace("+", "\\u002b").replace("@", "\\u0040").replace("<", "\\u003C"),
        html.escape(value),
        value.replace("@", "&#64;").replace("+", "&#x2b;"),
    }


ECHOES = sorted(set().union(*map(spellings, (HEADER_KEY, PARAM_KEY, CONTACT))))
ALNUM_PARTS = ("h3", "p4ra", "papers")  # of every spelling of each


def echo() -> bytes:
    lines = "\n".join(f"next?key={spelled}&page=2" for spelled in ECHOES)
    return f"{lines}\n".encode()


@pytest.mark.usefixtures("_secrets")
def test_keys_are_sent_in_header_and_address(pages: Callable[..., PagesServer]) -> None:
    server = pages(numbers(1))
    reader = at(server, credentials=CREDENTIALS)
    response, _ = ask(reader, reader.search(QUERY, DAY, 10))
    asked = server.asked[0]
    assert asked.headers["Authorization"] == f"Bearer {HEADER_KEY}"
    params = httpx.URL(f"http://x{asked.path}").params
    assert dict(params) == {"page": "1", "api_key": PARAM_KEY, "mailto": CONTACT}
    assert response.request == f"http://127.0.0.1:{server.port}/list?page=1"


@pytest.mark.usefixtures("_secrets")
def test_no_key_that_is_repeated_is_kept(pages: Callable[..., PagesServer], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    body = b'{"ids": [1], "echo": %b}' % json.dumps(echo().decode()).encode()
    server = pages(Reply(body, headers={"X-Echo": PARAM_KEY}))
    reader = at(server, credentials=CREDENTIALS)
    response, page = ask(reader, reader.search(QUERY, DAY, 10))
    kept = response.body.decode()
    assert len(page.papers) == 1
    assert kept.count("***") == len(ECHOES)
    for text in (kept, response.request, caplog.text):
        assert not any(part in text for part in ALNUM_PARTS)


@pytest.mark.usefixtures("_secrets")
@pytest.mark.parametrize("status", [200, 403, 429, 500])
def test_no_key_is_in_a_report_or_a_log(
    pages: Callable[..., PagesServer], caplog: pytest.LogCaptureFixture, status: int
) -> None:
    caplog.set_level(logging.DEBUG)
    for spelled in ECHOES:
        server = pages(Reply(f"unknown key {spelled}, see help".encode(), status=status, headers={"X-Echo": PARAM_KEY}))
        reader = at(server, credentials=CREDENTIALS)
        with pytest.raises(SourceFault) as caught:
            ask(reader, reader.search(QUERY, DAY, 10), attempts=2)
        assert "unknown key ***, see help" in str(caught.value)
        causes = [str(caught.value), repr(caught.value.__cause__), repr(caught.value.__context__), caplog.text]
        assert not any(part in text for part in ALNUM_PARTS for text in causes)


@pytest.mark.usefixtures("_secrets")
def test_no_key_is_told_where_the_connection_fails(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    gone = PagesServer(lambda path: numbers(1))
    gone.stop()
    reader = at(gone, credentials=CREDENTIALS)
    with pytest.raises(SourceFault) as caught:
        ask(reader, reader.search(QUERY, DAY, 10))
    assert not any(part in f"{caught.value}{caplog.text}" for part in ALNUM_PARTS)
    assert "again in" in caplog.text  # the log is there at all


def test_of_two_keys_the_longer_is_blotted_out_whole(
    pages: Callable[..., PagesServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHORT", "abcde")
    monkeypatch.setenv("LONG", "abcdefgh")
    server = pages(Reply(b'{"ids": [], "keys": "abcdefgh abcde"}'))
    reader = at(server, credentials=(Credential(("SHORT",), header="A"), Credential(("LONG",), header="B")))
    response, _ = ask(reader, reader.search(QUERY, DAY, 10))
    assert response.body == b'{"ids": [], "keys": "*** ***"}'


@pytest.mark.parametrize("value", ["abc\ndef12", "abc\r\nX-Other: 1", "schlüssel", "key\u200b123", "a\x00b"])
def test_a_key_with_strange_characters_is_one_clear_error(
    pages: Callable[..., PagesServer], monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setattr("os.environ", {"NUMBERS_KEY": value})
    server = pages(numbers(1))
    reader = at(server, credentials=(Credential(("NUMBERS_KEY",), header="X-Key"),))
    with pytest.raises(UserError, match=r"^the value of NUMBERS_KEY holds characters that no key") as caught:
        ask(reader, reader.search(QUERY, DAY, 10))
    assert "\n" not in str(caught.value)
    assert value not in str(caught.value)
    assert server.asked == []


def test_blanks_around_a_key_are_none_of_it(pages: Callable[..., PagesServer], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMPTY_KEY", " \n")
    monkeypatch.setenv("NUMBERS_KEY", " key-12345\n")
    server = pages(numbers(1))
    reader = at(server, credentials=(Credential(("EMPTY_KEY", "NUMBERS_KEY"), header="X-Key"),))
    ask(reader, reader.search(QUERY, DAY, 10))
    assert server.asked[0].headers["X-Key"] == "key-12345"


@pytest.mark.parametrize(
    ("contact", "agent"),
    [(None, "litgrade/1"), ("  ", "litgrade/1"), ("me@uni.example", "litgrade/1 (mailto:me@uni.example)")],
)
def test_the_user_agent_has_the_contact_address_that_is_set(
    pages: Callable[..., PagesServer], monkeypatch: pytest.MonkeyPatch, contact: str | None, agent: str
) -> None:
    monkeypatch.setenv("CROSSREF_MAILTO", "other@uni.example")
    if contact is not None:
        monkeypatch.setenv("LITGRADE_MAILTO", contact)
    server = pages(numbers(1))
    get(server)
    assert server.asked[0].headers["User-Agent"] == agent


def test_a_contact_address_with_a_line_break_is_one_clear_error(
    pages: Callable[..., PagesServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITGRADE_MAILTO", "me@uni.example\r\nX-Other: 1")
    server = pages(numbers(1))
    with pytest.raises(UserError, match=r"^the value of LITGRADE_MAILTO"):
        get(server)
    assert server.asked == []


def test_a_contact_address_that_a_server_repeats_from_the_user_agent_is_blotted_out(
    pages: Callable[..., PagesServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITGRADE_MAILTO", "me@uni.example")
    response, _ = get(pages(Reply(b'{"ids": [], "agent": "litgrade/1 (mailto:me@uni.example)"}')))
    assert response.body == b'{"ids": [], "agent": "litgrade/1 (mailto:***)"}'


# Pace


def starts_of(readers: list[Numbers], clock: NoWaiting, server: PagesServer) -> list[float]:
    """When each of these requests, all made at once, came to the server, on the clock of the test."""
    starts: list[float] = []
    respond = server.respond

    def note(path: str) -> Reply:
        starts.append(clock.time)
        return respond(path)

    server.respond = note

    async def fetch_all() -> None:
        async with Client(quick(), "1", clock.clock) as client:
            await asyncio.gather(*(client.fetch(reader, reader.search(QUERY, DAY, 10), FOREVER) for reader in readers))

    asyncio.run(fetch_all())
    return starts


def gaps(times: list[float]) -> list[float]:
    return [round(later - earlier, 6) for earlier, later in itertools.pairwise(times)]


def test_requests_start_as_far_apart_as_promised(pages: Callable[..., PagesServer]) -> None:
    server, clock = pages(numbers(1)), NoWaiting()
    assert gaps(starts_of([at(server, interval_s=3.0)] * 4, clock, server)) == [3.0, 3.0, 3.0]


def test_a_burst_may_come_faster_once(pages: Callable[..., PagesServer]) -> None:
    server, clock = pages(numbers(1)), NoWaiting()
    starts = starts_of([at(server, interval_s=10.0, burst=3)] * 6, clock, server)
    assert gaps(starts) == [0.0, 0.0, 10.0, 10.0, 10.0]


def test_a_burst_fills_again_while_nothing_is_asked(pages: Callable[..., PagesServer]) -> None:
    server, clock = pages(numbers(1)), NoWaiting()
    reader = at(server, interval_s=10.0, burst=2)
    waits: list[int] = []

    async def fetch_now_and_then() -> None:
        async with Client(quick(), "1", clock.clock) as client:
            for pause in (0, 0, 20, 0, 0):  # two at once, two more after twenty seconds, a fifth too early
                clock.time += pause
                await client.fetch(reader, reader.search(QUERY, DAY, 10), FOREVER)
                waits.append(len(clock.waits))

    asyncio.run(fetch_now_and_then())
    assert waits == [0, 0, 0, 0, 1]
    assert clock.waits == [10.0]


def test_sources_of_one_host_share_its_pace_and_others_do_not(pages: Callable[..., PagesServer]) -> None:
    server, clock = pages(numbers(1)), NoWaiting()
    of_one_host = [at(server, name=name, host="osf", interval_s=5.0) for name in ("a", "b", "c")]
    assert gaps(starts_of(of_one_host, clock, server)) == [5.0, 5.0]
    server, clock = pages(numbers(1)), NoWaiting()
    others = [replace(reader, base_url=at(server).base_url, host=None) for reader in of_one_host]
    assert gaps(starts_of(others, clock, server)) == [0.0, 0.0]


def test_retries_keep_the_pace(pages: Callable[..., PagesServer]) -> None:
    server, clock = pages(lambda path: numbers(1) if len(server.asked) == 3 else Reply(b"", status=503)), NoWaiting()
    assert all(gap >= 4.0 for gap in gaps(starts_of([at(server, interval_s=4.0)], clock, server)))
    assert len(server.asked) == 3


def test_a_retry_that_the_pace_leaves_no_time_for_tells_of_the_fault(pages: Callable[..., PagesServer]) -> None:
    clock, server = NoWaiting(), pages(Reply(b"Oops", status=500))
    reader = at(server, interval_s=36.0)
    with pytest.raises(SourceFault) as caught:
        ask(reader, reader.search(QUERY, DAY, 10), clock=clock.clock, deadline=clock.time + 30)
    assert (caught.value.stop, str(caught.value)) == (Stop.HTTP_ERROR, "HTTP 500: 'Oops'; then time was up")
    assert len(server.asked) == 1


def test_what_a_request_met_is_forgotten_once_it_is_told(pages: Callable[..., PagesServer]) -> None:
    reader = at(pages(Reply(b"Oops", status=500)))

    async def trouble_afterwards() -> SourceFault | None:
        async with Client(quick(), "1") as client:
            with pytest.raises(SourceFault, match="3 attempts"):
                await client.fetch(reader, reader.search(QUERY, DAY, 10), FOREVER)
            return client.trouble_of(reader)

    assert asyncio.run(trouble_afterwards()) is None


@pytest.mark.parametrize(
    ("limit", "interval", "gap"),
    [("1", "2s", 2.0), ("4", "1", 0.25), ("50", "1s", 0.1), ("0", "1s", 0.1), ("²", "1s", 0.1), ("many", "1s", 0.1)],
)
def test_headers_can_slow_the_pace_down_but_not_speed_it_up(
    pages: Callable[..., PagesServer], limit: str, interval: str, gap: float
) -> None:
    headers = {"X-Rate-Limit-Limit": limit, "X-Rate-Limit-Interval": interval}
    server, clock = pages(replace(numbers(1), headers=headers)), NoWaiting()
    starts = starts_of([at(server, interval_s=0.1)] * 4, clock, server)
    assert gaps(starts)[1:] == [gap, gap]


def test_a_request_that_gives_up_waiting_takes_no_turn(pages: Callable[..., PagesServer]) -> None:
    server, clock = pages(numbers(1)), NoWaiting()
    reader = at(server, interval_s=36.0, concurrency=9)

    async def sleep(seconds: float) -> None:
        if len(clock.waits) < 5:
            clock.waits.append(seconds)
            await asyncio.Event().wait()  # until it is cancelled
        await clock.sleep(seconds)

    async def fetch_some() -> float:
        async with Client(quick(), "1", Clock(clock.now, sleep)) as client:
            await client.fetch(reader, reader.search(QUERY, DAY, 10), FOREVER)
            began = clock.time
            for _ in range(5):
                waiting = asyncio.create_task(client.fetch(reader, reader.search(QUERY, DAY, 10), FOREVER))
                await asyncio.sleep(0)
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)
            await client.fetch(reader, reader.search(QUERY, DAY, 10), FOREVER)
            return clock.time - began

    assert asyncio.run(fetch_some()) == 36.0


@pytest.mark.parametrize("concurrency", [1, 3])
def test_no_more_requests_are_under_way_than_allowed(concurrency: int) -> None:
    with FakeSources({"crossref": PAPERS}, latency_s=0.02) as server:
        reader = source("crossref", base_url=server.base_urls["crossref"], interval_s=0.0, concurrency=concurrency)

        async def fetch_many() -> None:
            async with Client(quick(), "1") as client:
                await asyncio.gather(
                    *(client.fetch(reader, reader.lookup([f"10.5555/{i}"]), FOREVER) for i in range(9))
                )

        asyncio.run(fetch_many())
    assert max(seen.under_way for seen in server.requests) == concurrency
    assert len(server.requests) == 9


def test_concurrency_is_shared_by_the_sources_of_a_host() -> None:
    names = ("psyarxiv", "socarxiv", "edarxiv")
    with FakeSources({}, latency_s=0.02) as server:
        readers = [source(name, base_url=server.base_urls[name], interval_s=0.0, concurrency=1) for name in names]

        async def fetch_many() -> None:
            async with Client(quick(), "1") as client:
                await asyncio.gather(
                    *(client.fetch(reader, reader.search(QUERY, DAY, 10), FOREVER) for reader in readers * 3)
                )

        asyncio.run(fetch_many())
    times = [seen.time for seen in server.requests]
    assert len(times) == 9
    assert min(later - earlier for earlier, later in itertools.pairwise(times)) >= 0.02  # one after the other


def test_patience_is_checked() -> None:
    with pytest.raises(ValueError, match="attempts"):
        Patience(attempts=0)
