"""From one page of a source to the next."""

from __future__ import annotations

import dataclasses

from pipeline.sources import MalformedError, Request


def next_page(request: Request, received: int, total: int, size_param: str, reach: int | None = None) -> Request | None:
    """Return the request for the next page of a source that numbers its pages; None where the walk ends.

    It ends with all ``total`` records or with those that can be reached. Raises ``MalformedError`` for an empty page in
    the middle.
    """
    page, size = int(request.params["page"]), int(request.params[size_param])
    check_not_empty(received, (page - 1) * size, total)
    if page * size >= total or (reach is not None and (page + 1) * size > reach):
        return None
    return dataclasses.replace(request, params={**request.params, "page": str(page + 1)})


def check_not_empty(received: int, start: int, total: int | None) -> None:
    """Raise ``MalformedError`` for a page without records where more than ``start`` were promised."""
    if not received and start < (total or 0):
        raise MalformedError(f"sent an empty page at {start} of {total}")
