"""Bodies of answers to JSON and XML, with what is no answer told apart, and the page after a numbered one."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any
from xml.etree.ElementTree import Element, ParseError  # types only: defusedxml parses

from defusedxml import DefusedXmlException
from defusedxml import ElementTree as DefusedTree

from pipeline.cleaning import clean_text
from pipeline.sources import MalformedError, Request


def parse_object(body: bytes) -> Mapping[str, Any]:
    """Return the JSON object of a body, whatever its headers say of type and encoding."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise MalformedError(f"sent no JSON but {shown(body)}") from None
    if not isinstance(value, dict):
        raise MalformedError(f"sent no JSON object but {shown(body)}")
    return value


def parse_xml(body: bytes) -> Element:
    """Return the root of a body in XML; entities and external files are never resolved."""
    try:
        root: Element = DefusedTree.fromstring(body)
    except (ParseError, DefusedXmlException, ValueError, LookupError):
        raise MalformedError(f"sent no whole XML but {shown(body)}") from None
    return root


def shown(body: bytes) -> str:
    """Return the beginning of a body for an error, on one line and without markup."""
    text = body[:2000].decode("utf-8", "replace")
    plain = clean_text(re.sub(r"<(style|script)\b.*?</\1>|<[^<>]*>", " ", text, flags=re.DOTALL | re.IGNORECASE))
    return repr(plain[:80] or text[:80]) if body else "nothing"


def mapping(value: object) -> Mapping[str, Any]:
    """Return an object of JSON, an empty one for null and for anything else."""
    return value if isinstance(value, dict) else {}


def listing(value: object) -> list[Any]:
    """Return a list of JSON, an empty one for null and for anything else."""
    return value if isinstance(value, list) else []


def next_page(request: Request, received: int, total: int, size_param: str, reach: int | None = None) -> Request | None:
    """Return the request for the next page of a source that numbers its pages; None where the walk ends.

    It ends with all ``total`` records, with those that can be reached, or with the wanted ones: the state of the
    request holds how many came before this page and how many are wanted. Raises ``MalformedError`` for an empty page
    in the middle.
    """
    page, size = int(request.params["page"]), int(request.params[size_param])
    before, wanted = request.state
    if not received and (page - 1) * size < total:
        raise MalformedError(f"sent an empty page at {(page - 1) * size} of {total}")
    seen = before + received
    if seen >= wanted or page * size >= total or (reach is not None and (page + 1) * size > reach):
        return None
    return dataclasses.replace(request, params={**request.params, "page": str(page + 1)}, state=(seen, wanted))
