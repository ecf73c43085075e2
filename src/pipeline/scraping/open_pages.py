"""Abstracts and keywords from open pages and PDFs of papers that lack them; what a page said is kept, not the page."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from pipeline.collecting.collector import together
from pipeline.collecting.reports import Report, Stop
from pipeline.collecting.responses import Response, Responses
from pipeline.merging.titles import could_be_same, holds_title
from pipeline.papers import Paper
from pipeline.progress import progress
from pipeline.scraping.scraper import PassingError, ScrapeError, Scraper

log = logging.getLogger(__name__)

WALK = "enrich/pages"
_READ, _REFUSED = 200, 0  # status of what is kept


def lacking(papers: Sequence[Paper]) -> list[Paper]:
    """Return the papers that are free to read and lack an abstract or keywords, those without an abstract first.

    The pages of preprint servers hold no keywords.
    """
    free = [
        paper
        for paper in papers
        if (paper.is_open_access or paper.pdf_available)
        and not (paper.abstract and (paper.keywords or paper.document_type == "preprint"))
    ]
    return sorted((paper for paper in free if any(_places(paper))), key=lambda paper: bool(paper.abstract))


def _places(paper: Paper) -> Iterator[str]:
    """Yield where a paper can be read: its page, which tells more and is smaller, then its PDF."""
    yield from dict.fromkeys(url for url in (paper.url, paper.pdf_url) if url)


async def read_pages(papers: Sequence[Paper], scraper: Scraper, responses: Responses, budget_s: float) -> Report:
    """Read the pages of these papers, as many as the time allows, and keep what they say."""
    loop = asyncio.get_running_loop()
    started, stop = loop.time(), Stop.DONE
    waiting, faults = iter(papers), Counter[str]()

    async def read(paper: Paper) -> None:
        for place in _places(paper):
            if responses.get(WALK, place) is None and (answer := await _read(scraper, place, faults)) is not None:
                responses.add(WALK, place, answer)
            if _said(paper, place, responses).get("keywords" if paper.abstract else "abstract"):
                return

    with progress(len(papers), "pages") as step:

        async def work() -> None:
            for paper in waiting:
                await read(paper)
                step(1)

        try:
            async with asyncio.timeout_at(started + budget_s):
                await together(work() for _ in range(scraper.settings.concurrency))
        except TimeoutError:
            stop = Stop.BUDGET
    answers = [kept for paper in papers for place in _places(paper) if (kept := responses.get(WALK, place))]
    n_read = sum(kept.status == _READ for kept in answers)
    if faults and not n_read:  # no page at all, for reasons that may be gone another time
        stop = Stop.UNREACHABLE
    faults.update(kept.body.decode() for kept in answers if kept.status == _REFUSED)
    detail = ", ".join(f"{n} {reason}" for reason, n in faults.most_common(3))
    return Report("", "pages", stop, detail, n_read, 0, len(papers), round(loop.time() - started, 2))


async def _read(scraper: Scraper, place: str, faults: Counter[str]) -> Response | None:
    """Return what is to be kept; a fault that may be gone another time is only counted."""
    try:
        scraped = await scraper.scrape(place)
    except PassingError as error:
        faults[str(error)] += 1
        return None
    except ScrapeError as error:
        return Response(place, _REFUSED, str(error).encode())
    except Exception:  # whatever it is, the other pages are read
        log.exception("%s: a fault of litgrade, not of the page", place)
        return None
    return Response(place, _READ, json.dumps(asdict(scraped), ensure_ascii=False).encode("utf-8", "ignore"))


def complete_from_pages(papers: Sequence[Paper], responses: Responses) -> tuple[Paper, ...]:
    """Return all papers, completed by what their pages said, as far as it was kept."""
    return tuple(_completed(paper, responses) for paper in papers)


def _completed(paper: Paper, responses: Responses) -> Paper:
    for place in _places(paper) if lacking([paper]) else ():
        said = _said(paper, place, responses)
        if not paper.abstract and said.get("abstract"):
            paper = replace(paper, abstract=said["abstract"], provenance=_from_page(paper, "abstract", place))
        if not paper.keywords and said.get("keywords"):
            paper = replace(paper, keywords=tuple(said["keywords"]), provenance=_from_page(paper, "keywords", place))
    return paper


def _from_page(paper: Paper, name: str, place: str) -> dict[str, str]:
    return {**paper.provenance, name: f"page:{place}"}


def _said(paper: Paper, place: str, responses: Responses) -> dict[str, Any]:
    """Return what a page says of this paper; nothing where it does not show that it is about it."""
    kept = responses.get(WALK, place)
    if kept is None or kept.status != _READ:
        return {}
    found: dict[str, Any] = json.loads(kept.body)["found"]
    return found if _is_about(paper, found) else {}


def _is_about(paper: Paper, found: dict[str, Any]) -> bool:
    """Whether DOI or title of a page are the paper's. A page may be that of a login, a PDF that of another paper."""
    doi, title, beginning = found.get("doi"), found.get("title"), found.get("beginning")
    if doi and paper.doi and doi not in {paper.doi, paper.published_as, *paper.preprints}:
        return False
    if beginning and holds_title(beginning, paper.title):  # whatever the properties of the file say
        return True
    if title:
        return bool(paper.title) and could_be_same(paper.title, title)
    return bool(doi and paper.doi)
