"""An event loop whose look-ups of names hold up nothing.

Those of asyncio share a few threads, which are waited for at the end: a name server that does not answer would starve
healthy sources and outlast every budget.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from threading import Thread
from typing import Any


class EventLoop(asyncio.SelectorEventLoop):
    """Give every look-up a thread of its own, which nobody waits for."""

    async def getaddrinfo(self, host: Any, port: Any, **hints: Any) -> Any:
        """Return what ``socket.getaddrinfo`` returns, and raise what it raises."""
        found: asyncio.Future[Any] = self.create_future()

        def look_up() -> None:
            answer, error = None, None
            try:
                answer = socket.getaddrinfo(host, port, **hints)
            except (OSError, UnicodeError) as fault:
                error = fault
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody wants to know any more
                self.call_soon_threadsafe(_settle, found, answer, error)

        Thread(target=look_up, name=f"look-up of {host!r}", daemon=True).start()
        return await found


def _settle(found: asyncio.Future[Any], answer: Any, error: Exception | None) -> None:
    if found.done():  # cancelled
        return
    if error is None:
        found.set_result(answer)
    else:
        found.set_exception(error)
