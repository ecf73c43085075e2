"""One server on 127.0.0.1 that is all the sources, each below its own name."""

from __future__ import annotations

import contextlib
import gzip
import re
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from fake_sources import arxiv, crossref, doaj, openalex, osf, pubmed, rxiv, scopus, semantic_scholar, unpaywall, wos
from fake_sources.answers import Answer, Ask, Shelf
from fake_sources.faults import Fault
from fake_sources.records import MadeUp

_SETTINGS = Path(__file__).resolve().parents[2] / "conf" / "source"


class _Family(Protocol):
    def answer(self, ask: Ask, shelf: Shelf) -> Answer: ...
    def failure(self, ask: Ask) -> Answer: ...


#: Every source and the module that speaks for it.
FAMILIES: Mapping[str, _Family] = {
    "arxiv": arxiv,
    "biorxiv": rxiv,
    "medrxiv": rxiv,
    "psyarxiv": osf,
    "socarxiv": osf,
    "edarxiv": osf,
    "crossref": crossref,
    "openalex": openalex,
    "semantic_scholar": semantic_scholar,
    "doaj": doaj,
    "pubmed": pubmed,
    "scopus": scopus,
    "wos": wos,
    "unpaywall": unpaywall,
}


@dataclass
class Seen:
    """A request that was received."""

    source: str
    path: str  #: as it came, behind the name of the source
    params: dict[str, str]
    headers: dict[str, str]  #: names in lower case
    time: float  #: of arrival, ``time.monotonic()``
    under_way: int  #: requests of this source that were not answered yet, with this one
    status: int | None = None  #: None as long as it is not answered, and if it never is
    is_under_way: bool = True  #: whether its answer has not gone out yet


class FakeSources:
    """Serves each source its papers; a context manager. A source that is not named has none."""

    def __init__(
        self,
        papers: Mapping[str, Sequence[MadeUp]],
        *,
        latency_s: float = 0.0,
        faults: Mapping[str, Sequence[Fault]] | None = None,
        unpaywall: Sequence[MadeUp] = (),
        venues: Mapping[str, float] | None = None,
    ) -> None:
        if unknown := sorted({*papers, *(faults or {})} - FAMILIES.keys()):
            raise ValueError(f"no such source: {', '.join(unknown)}; there are {', '.join(FAMILIES)}")
        held = {"unpaywall": unpaywall, **papers}
        self.latency_s = latency_s
        self.faults = {name: tuple(of_source) for name, of_source in (faults or {}).items()}
        self.shelves = {name: Shelf(tuple(held.get(name, ())), venues or {}) for name in FAMILIES}
        self.requests: list[Seen] = []  #: everything received, in order
        self.errors: list[BaseException] = []  #: raised in this server; a test that sees one has found a fault here
        self.lock = threading.Lock()
        self.received: Counter[str] = Counter()
        self.under_way: Counter[str] = Counter()
        self.stopped = threading.Event()
        self._http = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"owner": self}))
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> None:
        self.stopped.set()
        self._http.shutdown()
        self._http.server_close()
        self._http.close_connections()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    def base_urls(self) -> dict[str, str]:
        """The address of every source that conf/source/ configures: ours, with the path that the real one has."""
        return {name: f"{self.url}/{name}{path}" for name in FAMILIES if (path := _path_of(name)) is not None}

    @property
    def overrides(self) -> list[str]:
        """Hydra overrides that send every source here, without pauses between requests."""
        return [
            f"sources.available.{name}.{setting}"
            for name, url in self.base_urls.items()
            for setting in (f"base_url={url}", "interval_s=0")
        ]

    def answer(self, ask: Ask, n: int) -> Answer:
        """Return the answer to the ``n``-th request of a source, with all the faults that hit it."""
        faults = [fault for fault in self.faults.get(ask.source, ()) if fault.hits(n)]
        if any(fault.is_failure for fault in faults):
            return FAMILIES[ask.source].failure(ask)
        answer = Answer() if any(fault.replaces for fault in faults) else self._true_answer(ask, faults)
        for fault in faults:
            answer = fault.spoil(answer)
        return answer

    def _true_answer(self, ask: Ask, faults: Sequence[Fault]) -> Answer:
        shelf = self.shelves[ask.source]
        for fault in faults:
            shelf = replace(shelf, pages=fault.pages) if fault.pages != "whole" else shelf
        try:
            return FAMILIES[ask.source].answer(ask, shelf)
        except ValueError as error:  # a parameter that should be a number
            return Answer(f"Bad Request: {error}".encode(), "text/plain", 400)


def _path_of(name: str) -> str | None:
    """Return the path of a source's base URL; without a YAML parser, so that no package is needed."""
    file = _SETTINGS / f"{name}.yaml"
    found = re.search(r"^\s+base_url:\s*[\"']?([^\s\"']+)", file.read_text("utf-8"), re.M) if file.exists() else None
    return urlsplit(found[1]).path if found else None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self.connections: set[socket.socket] = set()

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        self.connections.add(request)
        super().process_request_thread(request, client_address)
        self.connections.discard(request)

    def close_connections(self) -> None:
        """End what is kept open or hangs."""
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that go away."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are kept, as real sources do
    disable_nagle_algorithm = True
    owner: FakeSources

    def do_GET(self) -> None:
        owner, url = self.owner, urlsplit(self.path)
        source, _, rest = url.path.lstrip("/").partition("/")
        if owner.stopped.is_set() or source not in FAMILIES:
            return self._send(Answer(b"no such source", "text/plain", 404))
        headers = {name.lower(): value for name, value in self.headers.items()}
        params = dict(parse_qsl(url.query, keep_blank_values=True))
        with owner.lock:
            n = owner.received[source]
            owner.received[source] += 1
            owner.under_way[source] += 1
            seen = Seen(source, f"/{rest}", params, headers, time.monotonic(), owner.under_way[source])
            owner.requests.append(seen)
        try:
            owner.stopped.wait(owner.latency_s)
            self._finish(owner.answer(Ask(source, f"/{unquote(rest)}", params, headers), n), seen)
        except OSError:
            self.close_connection = True  # the client has gone
        except BaseException as error:  # noqa: BLE001 (kept, so that a test can tell)
            owner.errors.append(error)
            self.close_connection = True
        finally:
            self._leave(seen)
        return None

    def _finish(self, answer: Answer, seen: Seen) -> None:
        self.close_connection = self.close_connection or answer.connection != "kept"
        if answer.connection == "silent":
            self.owner.stopped.wait()
        elif answer.connection == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        else:
            seen.status = answer.status
            self._send(answer, seen)

    def _leave(self, seen: Seen) -> None:
        """Count a request as answered; before its last byte goes out, so that the client's next comes later."""
        with self.owner.lock:
            self.owner.under_way[seen.source] -= seen.is_under_way
            seen.is_under_way = False

    def _send(self, answer: Answer, seen: Seen | None = None) -> None:
        answer = self._packed(answer)
        self.send_response(answer.status)
        for name, value in {"Content-Type": answer.content_type, **answer.headers}.items():
            self.send_header(name, value or self.path)  # an empty Location is the request's own
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        n_dripped = max(0, len(answer.body) - 1) if answer.drip_s else 0
        for i in range(n_dripped):
            self.wfile.write(answer.body[i : i + 1])
            self.owner.stopped.wait(answer.drip_s)
        if answer.moves_on and not answer.is_damaged:
            answer.moves_on()
        if seen:
            self._leave(seen)
        self.wfile.write(answer.body[n_dripped:])

    def _packed(self, answer: Answer) -> Answer:
        """Return the answer as gzip where the client takes it."""
        takes_gzip = "gzip" in self.headers.get("Accept-Encoding", "")
        if not takes_gzip or "Content-Encoding" in answer.headers or not answer.body:
            return answer
        headers = {**answer.headers, "Content-Encoding": "gzip"}
        return replace(answer, body=gzip.compress(answer.body, compresslevel=1), headers=headers)

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""
