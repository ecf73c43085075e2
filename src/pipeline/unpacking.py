"""The body of an answer, unpacked up to a limit: httpx unpacks without one, and takes half a body for a whole."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx


class BodyError(Exception):
    """A body that is not what its headers say, or too big."""


class TooBigError(BodyError):
    """A body above the limit."""


async def read_body(answer: httpx.Response, most_mb: float) -> bytes:
    """Return the body of an answer that is streamed, plain or gzipped; raise ``BodyError`` for any other."""
    limit, packing = int(most_mb * 1e6), answer.headers.get("content-encoding", "").strip().lower()
    if packing not in {"", "identity", "gzip", "x-gzip"}:
        raise BodyError(f"packed as {packing[:40]!r}, not gzip")
    if (length := answer.headers.get("content-length", "")).isdigit() and int(length) > limit:
        raise TooBigError(f"more than {most_mb:g} MB")
    unpacker = zlib.decompressobj(wbits=31) if "gzip" in packing else None
    body, is_empty = bytearray(), True
    async for part in answer.aiter_raw():
        is_empty = is_empty and not part
        body += _unpacked(unpacker, part, limit + 1 - len(body)) if unpacker else part
        if len(body) > limit:
            raise TooBigError(f"more than {most_mb:g} MB")
        if unpacker and unpacker.eof:  # what follows would be kept aside without a limit
            break
    if unpacker and not is_empty and not unpacker.eof:
        raise BodyError("gzip that ends too early")
    return bytes(body)


def _unpacked(unpacker: zlib._Decompress, part: bytes, most: int) -> bytes:
    try:
        return unpacker.decompress(part, most)
    except zlib.error:
        raise BodyError("gzip that cannot be unpacked") from None
