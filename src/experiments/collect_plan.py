"""What a collection asks, and whether what was kept was asked in the same way."""

from __future__ import annotations

import datetime
import importlib.metadata
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

from pydantic import TypeAdapter, ValidationError

from experiments.collect_config import CollectConfig, build_sources
from experiments.explain import explain_validation
from experiments.tracking import flatten
from pipeline.collecting.client import Patience, missing_keys
from pipeline.collecting.reports import Report, Stop
from pipeline.collecting.responses import Responses
from pipeline.collecting.walk import Limits, Walk
from pipeline.enrich import Enrich, open_enrichment_reports
from pipeline.errors import UserError
from pipeline.merging.merge import Merge
from pipeline.papers import Query
from pipeline.sources import SearchedSource, SourceSettings

_PACKAGES = ("litgrade", "rapidfuzz", "trafilatura", "pypdf")


@dataclass(frozen=True)
class _Asked:
    """A query as it is kept."""

    day: datetime.datetime
    query: Query


@dataclass(frozen=True)
class _KeptSources:
    """Settings of sources that are kept with their answers."""

    names: list[str]
    limit: int
    max_pages: int
    available: dict[str, dict[str, Any]]
    budget_s: float
    patience: Patience


@dataclass(frozen=True)
class _KeptSettings:
    """All settings that are kept with the answers."""

    sources: _KeptSources
    merge: Merge
    enrich: Enrich


@dataclass(frozen=True)
class Plan:
    """What is asked: settings as they are kept with the answers, and the queries with the day of each."""

    settings: Mapping[str, Any]
    queries: Sequence[Query]
    days: Mapping[str, str]  #: query id -> when it was first asked, ISO

    @cached_property
    def sources(self) -> dict[str, SourceSettings]:
        """All that are configured, by name."""
        return build_sources(self.settings["sources"]["available"])

    def walks(self, query: Query) -> list[Walk]:
        """Return the walks of a query: one for each chosen source that can be searched."""
        chosen = self.settings["sources"]
        limits = Limits(chosen["limit"], chosen["max_pages"])
        day = datetime.datetime.fromisoformat(self.days[query.query_id]).date()
        searched = [source for name in chosen["names"] if isinstance(source := self.sources[name], SearchedSource)]
        return [Walk(source, query, day, limits) for source in searched]


def begin(config: CollectConfig, queries: Sequence[Query], responses: Responses) -> Plan:
    """Return the plan of a collection that begins or goes on; what was kept must have been asked in the same way."""
    settings = config.model_dump(
        mode="json", include={"merge": True, "enrich": True, "sources": {one.name for one in fields(_KeptSources)}}
    )
    chosen = {*config.sources.names, *(["openalex"] if config.enrich.impact == "openalex" else [])}
    available = settings["sources"]["available"]
    settings["sources"]["available"] = {name: of for name, of in available.items() if name in chosen}
    known = _kept_settings(responses)
    if known is None:
        responses.set_fact("versions", package_versions())
    old, new = _what_counts(known or settings), _what_counts(settings)
    if key := next((key for key in [*new, *old] if old.get(key) != new.get(key)), None):
        raise UserError(
            f"{responses.path.parent} was begun with {key}={old.get(key)}, now it is {new.get(key)}; set it as it was, "
            "or collect into a new snapshot"
        )
    responses.set_fact("settings", settings)
    _add_queries(queries, responses)
    plan = resume(responses)
    _ask_again_what_failed(plan, responses)
    return plan


def package_versions() -> dict[str, str]:
    """Return the versions of what merged papers and read pages hang on."""
    return {name: importlib.metadata.version(name) for name in _PACKAGES}


def _ask_again_what_failed(plan: Plan, responses: Responses) -> None:
    """Forget the reports of failures, so that the same command, run again, mends what can be mended."""
    walks = [walk for query in plan.queries for walk in plan.walks(query)]
    failed = [walk for walk in walks if _can_be_mended(responses.report(walk.name), walk.source)]
    for walk in failed:
        responses.forget_reports(f"{walk.name}/")
    look_ups = responses.reports("enrich/")
    if failed or any(_can_be_mended(report, plan.sources.get(report.source.split()[0])) for report in look_ups):
        open_enrichment_reports(responses)  # what one finds, the next are asked about


def _can_be_mended(report: Report | None, source: SourceSettings | None) -> bool:
    if report is None or not report.stop.is_failure:
        return False
    return report.stop != Stop.NO_KEY or (source is not None and not missing_keys(source))


_PACE_AND_WORDS = re.compile(
    r"\.(budget_s|patience\.\w+|scraping\.(concurrency|timeout_s)|interval_s|burst|concurrency|host|kind|gives)$"
)


def _what_counts(settings: Mapping[str, Any]) -> dict[str, object]:
    """Return the settings that answers and papers hang on, in one level."""
    return {key: value for key, value in flatten(settings).items() if not _PACE_AND_WORDS.search(key)}


def _add_queries(queries: Sequence[Query], responses: Responses) -> None:
    known, asked = responses.fact("queries") or {}, _asked(responses)
    for query in queries:
        if query.query_id in asked and asked[query.query_id].query != query:
            raise UserError(
                f"{responses.path.parent} holds another query {query.query_id}; give this one another id, or collect "
                "into a new snapshot"
            )
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        known.setdefault(query.query_id, {"day": now, "query": asdict(query)})
    if known != responses.fact("queries"):
        open_enrichment_reports(responses)  # there will be papers that look-ups have not seen
        responses.set_fact("queries", known)


def resume(responses: Responses) -> Plan:
    """Return the plan that is kept with the answers."""
    settings, asked = _kept_settings(responses), _asked(responses)
    if settings is None or not asked:
        raise UserError(f"{responses.path}: holds no collection")
    days = {query_id: one.day.isoformat() for query_id, one in asked.items()}
    return Plan(settings, [one.query for one in asked.values()], days)


def _kept_settings(responses: Responses) -> Any:
    """Return the settings that are kept, as they are written; None where there are none."""
    settings = responses.fact("settings")
    if settings is not None:
        chosen = _checked(_KeptSettings, settings, responses).sources
        if gone := sorted({*chosen.names} - {*chosen.available}):
            raise UserError(f"{responses.path}: source {gone[0]} has no settings; collect into a new snapshot")
    return settings


def _asked(responses: Responses) -> dict[str, _Asked]:
    """Return the queries that are kept, by id."""
    asked: dict[str, _Asked] = _checked(dict[str, _Asked], responses.fact("queries") or {}, responses)
    return asked


def _checked(kind: Any, kept: object, responses: Responses) -> Any:
    """Return what is kept; raise ``UserError`` for what another release or somebody's hand has made of it."""
    try:
        return TypeAdapter(kind).validate_python(kept)
    except ValidationError as error:
        fault = explain_validation(error).splitlines()[0]
        raise UserError(f"{responses.path}: {fault}; collect into a new snapshot") from error
