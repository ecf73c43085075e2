"""Show how far slow work has come: a bar on a terminal, a plain line now and then in a log."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm

log = logging.getLogger(__name__)

_SECONDS_BETWEEN_LINES = 15.0


@contextmanager
def progress(total: int, what: str) -> Iterator[Callable[[int], object]]:
    """Give a function to call with the number of items just done, out of ``total``."""
    if sys.stderr.isatty():
        with tqdm(total=total, desc=what, leave=False) as bar:
            yield bar.update
        return
    done, told = 0, time.monotonic()

    def step(n: int) -> None:
        nonlocal done, told
        done += n
        if time.monotonic() - told > _SECONDS_BETWEEN_LINES:
            told = time.monotonic()
            log.info("%s: %d of %d", what, done, total)

    yield step
