"""A real web server on this machine whose every page and fault a test decides."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from endpoint import Reply


@dataclass(frozen=True)
class Asked:
    path: str
    headers: dict[str, str]


class PagesServer:
    """Keeps what it is asked. ``respond`` gets the path; the body of its reply is bytes, HTML unless a header says."""

    def __init__(self, respond: Callable[[str], Reply], tls: ssl.SSLContext | None = None) -> None:
        self.respond = respond
        self.asked: list[Asked] = []
        self.n_connections = 0
        self.stopped = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"owner": self}))
        self._http.daemon_threads = True
        if tls:
            self._http.socket = tls.wrap_socket(self._http.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def port(self) -> int:
        return self._http.server_port

    def stop(self) -> None:
        self.stopped.set()
        self._http.shutdown()
        self._http.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are kept where the client wants it
    owner: PagesServer

    def handle(self) -> None:
        self.owner.n_connections += 1
        try:
            super().handle()
        except OSError:
            self.close_connection = True  # the client has gone, or refused the certificate

    def do_GET(self) -> None:
        self.owner.asked.append(Asked(self.path, dict(self.headers)))
        reply = self.owner.respond(self.path)
        self.owner.stopped.wait(reply.delay)
        if reply.reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
            return
        self.send_response(reply.status)
        headers = {"Content-Type": "text/html", "Content-Length": str(len(reply.payload)), **reply.headers}
        for name, value in headers.items():
            if value:  # an empty one leaves the header out
                self.send_header(name, value)
        self.end_headers()
        step = 1 if reply.drip else 65_536
        payload = reply.payload[: reply.cut_after]
        for start in range(0, len(payload), step):
            self.wfile.write(payload[start : start + step])
            if self.owner.stopped.wait(reply.drip):
                break
        if reply.cut_after is not None or not headers["Content-Length"]:
            self.close_connection = True

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""
