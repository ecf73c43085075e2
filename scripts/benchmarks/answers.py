"""Asking a language model: one thing at a time, eight at a time, out of the recording."""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from benchmarks.measuring import row
from pipeline.llm.chat import open_chat
from pipeline.llm.requests import make_request
from pipeline.llm.settings import Llm

N_ANSWERS, ANSWER_S = 200, 0.02


class SlowModel(BaseHTTPRequestHandler):
    """Answers every chat completion after the same time."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Wait, then answer."""
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(ANSWER_S)
        answer = b'{"choices": [{"message": {"content": "{}"}}]}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


def rows() -> list[list[str]]:
    """Ask a slow model one thing at a time and eight at a time, then again out of the recording."""
    import openai  # noqa: F401 (its import is not what is measured)

    server = ThreadingHTTPServer(("127.0.0.1", 0), SlowModel)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    async def ask(concurrency: int, file: Path) -> None:
        url = f"http://127.0.0.1:{server.server_port}/v1"
        llm = Llm(model="m", base_url=url, mode="record", recording=file, prices=(), concurrency=concurrency)
        requests = [make_request(llm, [{"role": "user", "content": str(i)}], str(i)) for i in range(N_ANSWERS)]
        async with open_chat(llm) as chat:
            await chat.answer_all(requests, "asking", check=bool)

    with tempfile.TemporaryDirectory() as folder:
        times = []
        for name, concurrency in (("one", 1), ("eight", 8), ("eight", 8)):
            started = time.perf_counter()
            asyncio.run(ask(concurrency, Path(folder) / name))
            times.append(time.perf_counter() - started)
    server.shutdown()
    what = f"{N_ANSWERS} answers of a model that takes {1000 * ANSWER_S:.0f} ms, s"
    return [row(f"{what}: eight at a time", "one at a time", *times[:2]), row(f"{what}: recorded", "asked", *times[1:])]
