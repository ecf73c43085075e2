"""A real HTTP server on this machine that speaks chat completions, whose every answer and fault a test decides."""

from __future__ import annotations

import json
import math
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Reply:
    """What the server sends, and how badly."""

    body: Any = b""  #: bytes as they are, anything else as JSON
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0  #: seconds before anything is sent
    drip: float = 0.0  #: seconds between one byte of the body and the next
    cut_after: int | None = None  #: bytes of the body after which the connection is closed
    reset: bool = False  #: close the connection with nothing sent

    @property
    def payload(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


class Server:
    """Counts and keeps what it receives. ``respond`` gets the number of a request, from 0, and its JSON body."""

    def __init__(self, respond: Callable[[int, dict[str, Any]], Reply]) -> None:
        self.respond = respond
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.times: list[float] = []
        self.answered: list[dict[str, Any]] = []  #: bodies of the requests whose reply was sent in full, with a 200
        self.under_way = self.most_under_way = 0
        self.errors: list[BaseException] = []  #: raised by ``respond``
        self.lock = threading.Lock()
        self.stopped = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"owner": self}))
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    @property
    def received(self) -> int:
        return len(self.bodies)

    def stop(self) -> None:
        self.stopped.set()
        self._http.shutdown()
        self._http.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are kept, as real endpoints do
    owner: Server

    def do_POST(self) -> None:
        owner = self.owner
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with owner.lock:
            n = len(owner.bodies)
            owner.bodies.append(body)
            owner.headers.append(dict(self.headers))
            owner.times.append(time.monotonic())
            owner.under_way += 1
            owner.most_under_way = max(owner.most_under_way, owner.under_way)
        try:
            reply = owner.respond(n, body) if self.path == "/v1/chat/completions" else Reply(status=404)
            owner.stopped.wait(reply.delay)
            with owner.lock:  # before the client can hear of it and send the next
                owner.under_way -= 1
                if reply.status == 200 and reply.cut_after is None and not reply.reset:
                    owner.answered.append(body)
            self._send(reply)
        except OSError:
            self.close_connection = True  # the client has gone
        except BaseException as error:  # noqa: BLE001 (told by the fixture at the end of the test)
            owner.errors.append(error)
            self.close_connection = True

    def _send(self, reply: Reply) -> None:
        if reply.reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
            return
        payload = reply.payload
        self.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        for part in [payload[i : i + 1] for i in range(len(payload))] if reply.drip else [payload[: reply.cut_after]]:
            self.wfile.write(part)
            self.owner.stopped.wait(reply.drip)
        if reply.cut_after is not None:
            self.close_connection = True

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


def completion(content: str | None, *, cost: float | None = None, logprobs: Any = None, **fields: Any) -> dict:
    """The JSON of a normal answer of 100 input and 10 output tokens; ``fields`` go where an endpoint has them."""
    message = {"role": "assistant", "content": content, "refusal": fields.pop("refusal", None)}
    finish_reason = fields.pop("finish_reason", "stop")
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110} | (
        {} if cost is None else {"cost": cost}
    )
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "m-0001",
        "system_fingerprint": "fp_1",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason, "logprobs": logprobs}],
        "usage": usage,
    } | fields


def label(category: str | None, explanation: str = "Same topic.") -> str:
    """The content of an answer that grades and explains."""
    return json.dumps({"category": category, "explanation": explanation})


def logprobs_for(shares: Mapping[str, float], before: Sequence[str] = ()) -> dict[str, Any]:
    """Token probabilities of an answer that is one token, the likeliest of these; sure tokens may come before it."""

    def position(shares: Mapping[str, float]) -> dict[str, Any]:
        top = [{"token": token, "logprob": math.log(share)} for token, share in shares.items()]
        return {**max(top, key=lambda entry: entry["logprob"]), "top_logprobs": top}

    return {"content": [*(position({token: 1.0}) for token in before), position(shares)]}
