"""Completing merged papers: look-ups by DOI, impact of venues, and the open pages of papers that still lack a text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass as pydantic_dataclass

from pipeline.collecting.client import Client
from pipeline.collecting.collector import together
from pipeline.collecting.lookups import Lookups, ask, batches
from pipeline.collecting.reports import Report
from pipeline.collecting.responses import Responses
from pipeline.impact import ImpactFrom, impacts_at_hand
from pipeline.merging.merge import Merge, merge_papers
from pipeline.merging.titles import could_be_same
from pipeline.papers import Paper
from pipeline.scraping.open_pages import WALK, complete_from_pages, lacking, read_pages
from pipeline.scraping.scraper import Scraper, Scraping
from pipeline.sources import STRICT, Request, SourceByDoi

_NOT_FOUND_BY_DOI = "10.48550/"  # arXiv registers with another agency than journals do


@pydantic_dataclass(frozen=True, config=STRICT)
class Enrich:
    """What is completed, and in what time."""

    by_doi: bool = True  #: ask the chosen sources that can be asked by DOI
    impact: ImpactFrom = "openalex"
    impact_csv: Path | None = None  #: for ``impact=csv``
    scrape: bool = True
    scraping: Scraping = field(default_factory=Scraping)
    budget_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] = (
        30.0  #: a query, for look-ups, and once more for pages
    )

    @model_validator(mode="after")
    def _has_its_table(self) -> Enrich:
        if self.impact == "csv" and self.impact_csv is None:
            raise ValueError("impact=csv needs the table: give enrich.impact_csv=FILE with columns issn, value")
        return self


@dataclass
class Enrichment:
    """Completes papers. Without a client nothing is asked: only what is kept counts."""

    settings: Enrich
    merge: Merge
    sources: Mapping[str, Any]  #: all that are configured
    names: Sequence[str]  #: those that were chosen
    responses: Responses
    budget_s: float  #: for all queries together: by DOI, then for venues, then for pages
    ranks: Mapping[str, int]  #: record -> its best place in a source's answers: who comes first when time is short
    client: Client | None = None
    reports: list[Report] = field(default_factory=list)

    async def complete(self, papers: Sequence[Paper]) -> tuple[Paper, ...]:
        """Return the papers completed; ``reports`` then tells what became of every kind of look-up."""
        completed = tuple(papers)
        if self.settings.by_doi:
            completed = await self._by_doi(completed)
        if self.settings.impact != "none":
            completed = await self._with_impact(completed)
        if self.settings.scrape:
            completed = await self._with_pages(completed)
        return completed

    async def _by_doi(self, papers: tuple[Paper, ...]) -> tuple[Paper, ...]:
        chosen = [source for name in self.names if isinstance(source := self.sources[name], SourceByDoi)]
        ranked = self._by_rank(papers)
        asked = [Lookups(f"{source.name} by DOI", source, _requests_by_doi(source, ranked)) for source in chosen]
        await together(self._ask(lookups) for lookups in asked)
        by_doi = {doi: paper for paper in papers for doi in (paper.doi, *paper.preprints) if doi}
        found: list[Paper] = []
        for lookups in asked:
            records = [paper for _, _, page in lookups.pages(self.responses) for paper in page.papers]
            same = [r for r in records if r.doi in by_doi and _is_about(by_doi[r.doi], r)]
            self._tell(lookups.walk, len(same), len(records) - len(same))
            found += same
        return merge_papers([*papers, *found], self.merge)

    async def _with_impact(self, papers: tuple[Paper, ...]) -> tuple[Paper, ...]:
        issns = sorted({issn for paper in papers if paper.impact_factor is None for issn in _issns(paper)})
        impacts = await self._impacts(issns)
        return tuple(_with_impact(paper, impacts, self.settings.impact) for paper in papers)

    async def _impacts(self, issns: Sequence[str]) -> Mapping[str, float]:
        """Return ISSN -> impact; what a table or package said is kept as well, because it may say otherwise later."""
        if self.settings.impact == "openalex":
            openalex = self.sources["openalex"]
            requests = [openalex.venues(some) for some in batches(issns, openalex.issns_a_request)]
            lookups = Lookups("openalex venues", openalex, requests)
            await self._ask(lookups)
            found: dict[str, float] = {}
            for _, body, _ in lookups.pages(self.responses):
                found |= openalex.read_venues(body)
            self._tell(lookups.walk, len(found))
            return found
        known: dict[str, float] | None = self.responses.fact("impacts")
        if known is None and self.client is None:
            raise self.responses.unfinished()
        if known is None:
            known = impacts_at_hand(self.settings.impact, self.settings.impact_csv, issns)
            self.responses.set_fact("impacts", known)
        return known

    async def _with_pages(self, papers: tuple[Paper, ...]) -> tuple[Paper, ...]:
        wanted = lacking(self._by_rank(papers))
        if self.client is not None and self.responses.report(WALK) is None:
            async with Scraper(self.settings.scraping, self.client.user_agent) as scraper:
                report = await read_pages(wanted, scraper, self.responses, self.budget_s)
            self.responses.set_report(WALK, report)
        completed = complete_from_pages(papers, self.responses)
        self._tell(WALK, sum(new != old for new, old in zip(completed, papers, strict=True)))
        return completed

    def _by_rank(self, papers: Iterable[Paper]) -> list[Paper]:
        last = len(self.ranks)
        return sorted(papers, key=lambda p: (min(self.ranks.get(record, last) for record in p.records), p.paper_id))

    async def _ask(self, lookups: Lookups) -> None:
        if self.client is not None and self.responses.report(lookups.walk) is None:
            report = await ask(lookups, self.client, self.responses, self.budget_s)
            self.responses.set_report(lookups.walk, report)

    def _tell(self, walk: str, n_used: int, n_other: int = 0) -> None:
        known = self.responses.report(walk)
        if known is None:
            raise self.responses.unfinished()
        if self.responses.count(walk) < known.pages:
            raise self.responses.incomplete(f"answers of {walk}")
        report = replace(known, records=n_used)
        if n_other:
            left_out = f"{n_other} answers left out: about another title or year"
            report = replace(report, detail="; ".join(filter(None, [report.detail, left_out])))
        self.reports.append(report)


def _requests_by_doi(source: SourceByDoi, papers: Iterable[Paper]) -> list[Request]:
    """Return the look-ups of papers that lack something the source has, and that it has not been asked for."""
    dois = [
        paper.doi
        for paper in papers
        if paper.doi and not paper.doi.startswith(_NOT_FOUND_BY_DOI)
        if not any(record.startswith(f"{source.name}:") for record in paper.records)
        if any(getattr(paper, name) in {None, "", ()} for name in source.fills)
        if source.can_look_up(paper.doi)
    ]
    return [source.lookup(some) for some in batches(dois, source.dois_a_request)]


def _is_about(paper: Paper, found: Paper) -> bool:
    """Whether a record found by DOI is about this paper: sources give wrong DOIs at times."""
    is_near = paper.year is None or found.year is None or abs(paper.year - found.year) <= 1
    return is_near and could_be_same(paper.title, found.title)


def _issns(paper: Paper) -> list[str]:
    return paper.issn.split(", ") if paper.issn else []


def _with_impact(paper: Paper, impacts: Mapping[str, float], where: str) -> Paper:
    issn = next((issn for issn in _issns(paper) if issn in impacts), None)
    if paper.impact_factor is not None or issn is None:
        return paper
    return replace(
        paper, impact_factor=impacts[issn], provenance={**paper.provenance, "impact_factor": f"{where}:{issn}"}
    )


def open_enrichment_reports(responses: Responses) -> None:
    """Let look-ups be asked again: there are papers that they have not seen."""
    responses.forget_reports("enrich/")
    responses.forget_facts("impacts")
