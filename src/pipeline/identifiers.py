"""DOIs, arXiv ids and ISSNs in one spelling each."""

from __future__ import annotations

import re
from urllib.parse import unquote

_DOI = re.compile(r"10\.\d{4,9}(?:\.\d+)*/\S+")
_ISSN = re.compile(r"(\d{4})-?(\d{3}[\dXx])")
_ARXIV = re.compile(r"(\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7})(?:v(\d+))?", re.IGNORECASE)
_VERSIONED = re.compile(
    r"^(10\.(?:48550/arxiv\.\S+?|1101/\S+?|64898/\S+?|31234/osf\.io/\w+?|31235/osf\.io/\w+?|31219/osf\.io/\w+?|35542/osf\.io/\w+?))_?v\d+$"
)


def normalize_doi(text: object) -> str | None:
    """Return a DOI bare and in lower case, None where there is none.

    Prefixes (``https://doi.org/``, ``doi:``), percent-encoding, trailing punctuation and the version of a preprint
    (``10.48550/arXiv.2101.00001v2``) go.
    """
    if not isinstance(text, str):
        return None
    decoded = unquote(text) if "%" in text else text
    found = _DOI.search("".join(decoded.split()))
    if not found:
        return None
    doi = found.group().lower().rstrip(".,;:'\"")
    for opening, closing in ("()", "[]", "{}", "<>"):
        while doi.endswith(closing) and doi.count(closing) > doi.count(opening):
            doi = doi[:-1].rstrip(".,;:'\"")
    versioned = _VERSIONED.match(doi)
    return versioned.group(1) if versioned else doi


def arxiv_id(text: object) -> tuple[str, int | None] | None:
    """Return an arXiv id without its version, and the version; None where the text holds no id."""
    if not isinstance(text, str):
        return None
    bare = re.sub(r"^(?:https?://)?(?:\w+\.)?arxiv\.org/(?:abs|pdf)/|^arxiv:\s*", "", text.strip(), flags=re.IGNORECASE)
    found = _ARXIV.fullmatch(bare.removesuffix(".pdf"))
    return (found.group(1), int(found.group(2)) if found.group(2) else None) if found else None


def arxiv_doi(identifier: str) -> str:
    """Return the DOI that arXiv registers for an id without version, in lower case."""
    return f"10.48550/arxiv.{identifier}".lower()


def normalize_issn(text: object) -> str | None:
    """Return an ISSN as ``1234-567X``, None where there is none or its check digit is wrong (ISO 3297)."""
    found = _ISSN.fullmatch(text.strip()) if isinstance(text, str) else None
    if not found:
        return None
    digits = (found.group(1) + found.group(2)).upper()
    total = sum(
        weight * (10 if digit == "X" else int(digit)) for weight, digit in zip(range(8, 0, -1), digits, strict=True)
    )
    return f"{digits[:4]}-{digits[4:]}" if total % 11 == 0 else None


def join_issns(*texts: object) -> str | None:
    """Return the valid ISSNs among these, each once, joined by a comma and a blank."""
    return ", ".join(dict.fromkeys(issn for text in texts if (issn := normalize_issn(text)))) or None
