"""DOIs, arXiv ids and ISSNs in one spelling each."""

from __future__ import annotations

import re
from urllib.parse import unquote

from pipeline.cleaning import unescaped

_DOI = re.compile(r"(?<!\d)10\.\d{4,9}(?:\.\d+)*/\S+", re.ASCII)
_TRAILING = ".,;:'\"\u2019\u201d"
_ISSN = re.compile(r"(\d{4})[-\u2010-\u2015]?(\d{3}[\dXx])", re.ASCII)
_NO_ISSN = "0000-0000"  # its check digit is right, but it only fills a place
_ARXIV = re.compile(r"(\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7})(?:v(\d+))?", re.IGNORECASE | re.ASCII)
#: DOIs of arXiv, bioRxiv and medRxiv, and OSF. An id of OSF may itself end in "v2", its version comes after "_".
_VERSIONED = re.compile(r"(10\.48550/arxiv\.\S+?|10\.(?:1101|64898)/[\d.]+|10\.\d+/osf\.io/[a-z0-9]+_)v\d+", re.ASCII)

#: Servers whose versions have DOIs of their own: Research Square, Preprints.org, ChemRxiv.
_VERSION_OF_ITS_OWN = re.compile(
    r"(10\.21203/rs\.\S+/|10\.20944/preprints[\d.]+\.|10\.26434/chemrxiv[-.]\S+[-.])v\d+|(10\.26434/chemrxiv[-.]\S+)",
    re.ASCII,
)
_MOST_LAYERS, _LONGEST_DOI = 5, 2_000  # of encodings; in characters, prefixes included


def normalize_doi(text: object) -> str | None:
    """Return a DOI bare and in lower case, None where there is none.

    Prefixes (``https://doi.org/``, ``doi:``), percent-encoding, entities, trailing punctuation and the version of a
    preprint (``10.48550/arXiv.2101.00001v2``) go.
    """
    if not isinstance(text, str) or len(text) > _LONGEST_DOI:
        return None
    for _ in range(_MOST_LAYERS):
        decoded = unescaped(unquote(text)).strip()
        if decoded == text:
            break
        text = decoded
    found = _DOI.search(text.lower())
    doi = found.group() if found else ""
    while (shorter := _trimmed(doi)) != doi:
        doi = shorter
    return doi if doi.partition("/")[2] else None


def _trimmed(doi: str) -> str:
    """Without punctuation of the sentence around it, without a bracket that closes nothing, without a version."""
    doi = doi.rstrip(_TRAILING)
    for opening, closing in ("()", "[]", "{}", "<>"):
        if doi.endswith(closing) and doi.count(closing) > doi.count(opening):
            doi = doi[:-1]
    versioned = _VERSIONED.fullmatch(doi)
    return versioned.group(1).rstrip("_") if versioned else doi


def work_doi(doi: str) -> str:
    """Return what the DOIs of all versions of a preprint have in common; any other DOI as it is."""
    found = _VERSION_OF_ITS_OWN.fullmatch(doi)
    return (found.group(1) or found.group(2)).rstrip("/.-") if found else doi


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
    issn = f"{digits[:4]}-{digits[4:]}"
    return issn if total % 11 == 0 and issn != _NO_ISSN else None


def join_issns(*texts: object) -> str | None:
    """Return the valid ISSNs in these texts, each once, joined by a comma and a blank."""
    words = [word for text in texts if isinstance(text, str) for word in re.split(r"[\s,;]+", text)]
    return ", ".join(dict.fromkeys(issn for word in words if (issn := normalize_issn(word)))) or None
