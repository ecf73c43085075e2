"""Bodies as servers send them: plain or gzipped, whole or not, too big or packed otherwise."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc

import httpx
import pytest

from endpoint import Reply
from pages_server import PagesServer
from pipeline.unpacking import BodyError, TooBigError, read_body

BODY = b"Bees fly farther after rain than before. " * 500  # 20 500 bytes
GZIP = {"Content-Encoding": "gzip"}


def body_of(reply: Reply, most_mb: float = 1.0) -> bytes:
    """The body of this reply as it is read."""
    server = PagesServer(lambda path: reply)

    async def run() -> bytes:
        async with (
            httpx.AsyncClient(trust_env=False) as client,
            client.stream("GET", f"http://127.0.0.1:{server.port}/") as answer,
        ):
            return await read_body(answer, most_mb)

    try:
        return asyncio.run(run())
    finally:
        server.stop()


@pytest.mark.parametrize("packing", ["", "identity", " Identity "])
def test_a_plain_body_comes_as_it_is(packing: str) -> None:
    assert body_of(Reply(BODY, headers={"Content-Encoding": packing})) == BODY


@pytest.mark.parametrize("packing", ["gzip", "x-gzip", "GZIP"])
def test_a_gzipped_body_is_unpacked(packing: str) -> None:
    assert body_of(Reply(gzip.compress(BODY), headers={"Content-Encoding": packing})) == BODY


def test_a_body_without_a_length_is_read_to_its_end() -> None:
    assert body_of(Reply(BODY, headers={"Content-Length": ""})) == BODY
    assert body_of(Reply(gzip.compress(BODY), headers={**GZIP, "Content-Length": ""})) == BODY


def test_an_empty_body_is_empty_packed_or_not() -> None:
    assert body_of(Reply(b"")) == body_of(Reply(gzip.compress(b""), headers=GZIP)) == b""
    assert body_of(Reply(b"", headers=GZIP)) == b""


def test_half_a_gzip_is_no_body() -> None:
    half = gzip.compress(BODY)[:-9]
    with pytest.raises(BodyError, match="gzip that ends too early"):
        body_of(Reply(half, headers=GZIP))
    with pytest.raises(BodyError, match="gzip that ends too early"):
        body_of(Reply(half, headers={**GZIP, "Content-Length": ""}))


def test_a_length_that_cuts_a_gzip_is_told() -> None:
    packed = gzip.compress(BODY)
    with pytest.raises(BodyError, match="gzip that ends too early"):
        body_of(Reply(packed, headers={**GZIP, "Content-Length": str(len(packed) - 9)}))


def test_a_body_shorter_than_its_length_is_a_broken_connection() -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        body_of(Reply(BODY, cut_after=1_000))


@pytest.mark.parametrize("body", [b"<html>no gzip at all</html>", gzip.compress(BODY)[:20] + b"\xff" * 200])
def test_what_is_no_gzip_is_told(body: bytes) -> None:
    with pytest.raises(BodyError, match="gzip that cannot be unpacked"):
        body_of(Reply(body, headers=GZIP))


@pytest.mark.parametrize("packing", ["br", "deflate", "gzip, gzip", "compress"])
def test_other_packings_are_refused_by_name(packing: str) -> None:
    with pytest.raises(BodyError, match=f"packed as '{packing}', not gzip"):
        body_of(Reply(BODY, headers={"Content-Encoding": packing}))


@pytest.mark.parametrize("headers", [{}, {"Content-Length": ""}, GZIP])
def test_the_limit_holds_for_what_was_unpacked(headers: dict[str, str]) -> None:
    body = b"a" * 10_000
    reply = Reply(gzip.compress(body) if headers is GZIP else body, headers=headers)
    assert body_of(reply, most_mb=0.01) == body
    with pytest.raises(TooBigError, match=r"^more than 0\.0099 MB$"):
        body_of(reply, most_mb=0.0099)


def test_a_length_above_the_limit_is_believed_before_anything_is_read() -> None:
    with pytest.raises(TooBigError, match="more than 1 MB"):
        body_of(Reply(b"", headers={"Content-Length": "1000001"}))


def test_a_bomb_is_not_unpacked_beyond_the_limit() -> None:
    bomb = gzip.compress(bytes(100_000_000))
    assert len(bomb) < 100_000
    tracemalloc.start()
    try:
        with pytest.raises(TooBigError, match="more than 1 MB"):
            body_of(Reply(bomb, headers=GZIP))
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
