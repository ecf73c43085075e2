"""Bodies of answers to JSON and XML, with what is no answer told apart, and the values in them by their types."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from xml.etree.ElementTree import Element, ParseError  # types only: defusedxml parses

from defusedxml import DefusedXmlException
from defusedxml import ElementTree as DefusedTree

from pipeline.cleaning import clean_text
from pipeline.sources import MalformedError

_HALF = re.compile(rb"\\ud[89a-f]|\xed[\xa0-\xbf]", re.IGNORECASE)  #: of a surrogate pair, or a whole one


def parse_object(body: bytes) -> Mapping[str, Any]:
    """Return the JSON object of a body, whatever its headers say of type and encoding."""
    try:
        value = json.loads(body)
        if _HALF.search(body):
            value = _without_halves(value)
    except (ValueError, RecursionError):
        raise MalformedError(f"sent no JSON but {shown(body)}") from None
    if not isinstance(value, dict):
        raise MalformedError(f"sent no JSON object but {shown(body)}")
    return value


def _without_halves(value: object) -> object:
    """Return a value of JSON without halves of surrogate pairs, which can stand in no file."""
    if isinstance(value, str):
        return value.encode("utf-8", "ignore").decode()
    if isinstance(value, list):
        return [_without_halves(entry) for entry in value]
    if isinstance(value, dict):
        return {_without_halves(key): _without_halves(entry) for key, entry in value.items()}
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


def objects(value: object) -> list[Mapping[str, Any]]:
    """Return a list of JSON as objects, an empty one in place of each that is none."""
    return [mapping(entry) for entry in listing(value)]


def values_of(entries: object, key: str) -> list[Any]:
    """Return what stands under a key in each object of a list of JSON; None where nothing does."""
    return [entry.get(key) for entry in objects(entries)]


def flag(value: object) -> bool | None:
    """Return a truth value of JSON, None for null and for anything else."""
    return value if isinstance(value, bool) else None


def web_address(*values: object) -> str | None:
    """Return the first of these that is a web address."""
    texts = (value.strip() for value in values if isinstance(value, str))
    return next((text for text in texts if text.startswith(("http://", "https://"))), None)
