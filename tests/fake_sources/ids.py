"""What the sources call a paper, made from its number."""

from __future__ import annotations

import hashlib
import string

from fake_sources.records import PER_SEED, MadeUp

OSF_PREFIXES = {"psyarxiv": "10.31234", "socarxiv": "10.31235", "edarxiv": "10.35542"}
_DIGITS = string.digits + string.ascii_lowercase


def preprint_doi(source: str, paper: MadeUp) -> str:
    """Return the DOI that a preprint server registers for a paper, without version, in lower case."""
    if source == "arxiv":
        return f"10.48550/arxiv.{arxiv_id(paper)}"
    if source in OSF_PREFIXES:
        return f"{OSF_PREFIXES[source]}/osf.io/{osf_id(paper)}"
    first = 20_000_000 if source == "medrxiv" else 100_000
    prefix = "10.64898" if paper.year > 2025 else "10.1101"
    return f"{prefix}/{paper.date:%Y.%m.%d}.{first + paper.number}"


def arxiv_id(paper: MadeUp) -> str:
    """Return an id of the month; the factors keep papers of different seeds apart in five digits."""
    seed, i = divmod(paper.number, PER_SEED)
    return f"{paper.date:%y%m}.{(37 * i + 7919 * seed) % 100_000:05d}"


def osf_id(paper: MadeUp) -> str:
    number, text = 2_000_000 + paper.number, ""
    while number:
        number, digit = divmod(number, 36)
        text = _DIGITS[digit] + text
    return text.rjust(5, "a")


def pmid(paper: MadeUp) -> str:
    return str(10_000_000 + paper.number)


def number_of_pmid(text: str) -> int:
    return int(text) - 10_000_000


def hexadecimal(source: str, paper: MadeUp, length: int) -> str:
    return hashlib.sha1(f"{source} {paper.number}".encode()).hexdigest()[:length]
