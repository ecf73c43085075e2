"""What a collection asks, and whether what was kept was asked in the same way."""

from __future__ import annotations

import datetime
import importlib.metadata
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from pydantic import TypeAdapter

from experiments.collect_config import CollectConfig, build_sources
from experiments.tracking import flatten
from pipeline.collecting.client import missing_keys
from pipeline.collecting.collector import kept_report
from pipeline.collecting.reports import Report, Stop
from pipeline.collecting.responses import Responses
from pipeline.collecting.walk import Limits, Walk
from pipeline.enrich import open_enrichment_reports
from pipeline.errors import UserError
from pipeline.papers import Query
from pipeline.sources import SearchedSource, SourceSettings

_PACKAGES = ("litgrade", "rapidfuzz", "trafilatura", "pypdf")


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
    settings = config.model_dump(mode="json", include={"merge": True, "enrich": True, "sources": _KEPT_SETTINGS})
    chosen = {*config.sources.names, *(["openalex"] if config.enrich.impact == "openalex" else [])}
    available = settings["sources"]["available"]
    settings["sources"]["available"] = {name: of for name, of in available.items() if name in chosen}
    known = responses.fact("settings")
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
    failed = [walk for walk in walks if _can_be_mended(kept_report(walk, responses), walk.source)]
    for walk in failed:
        responses.forget_facts(f"report/{walk.name}")
    if failed:
        open_enrichment_reports(responses)
    for name, report in responses.facts("report/enrich/").items():
        source = plan.sources.get(str(report["source"]).split()[0])
        if _can_be_mended(Report.of_fact(report), source):
            responses.forget_facts(name)


def _can_be_mended(report: Report | None, source: SourceSettings | None) -> bool:
    if report is None or not report.stop.is_failure:
        return False
    return report.stop != Stop.NO_KEY or (source is not None and not missing_keys(source))


_KEPT_SETTINGS = {"names", "limit", "max_pages", "available", "budget_s", "patience"}
_PACE_AND_WORDS = re.compile(
    r"\.(budget_s|patience\.\w+|scraping\.(concurrency|timeout_s)|interval_s|burst|concurrency|host|kind|gives)$"
)


def _what_counts(settings: Mapping[str, Any]) -> dict[str, object]:
    """Return the settings that answers and papers hang on, in one level."""
    return {key: value for key, value in flatten(settings).items() if not _PACE_AND_WORDS.search(key)}


def _add_queries(queries: Sequence[Query], responses: Responses) -> None:
    known: dict[str, Any] = responses.fact("queries") or {}
    for query in queries:
        entry = asdict(query)
        if query.query_id in known and _query(known[query.query_id]["query"]) != query:
            raise UserError(
                f"{responses.path.parent} holds another query {query.query_id}; give this one another id, or collect "
                "into a new snapshot"
            )
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        known.setdefault(query.query_id, {"day": now, "query": entry})
    if known != responses.fact("queries"):
        open_enrichment_reports(responses)  # there will be papers that look-ups have not seen
        responses.set_fact("queries", known)


def resume(responses: Responses) -> Plan:
    """Return the plan that is kept with the answers."""
    known, settings = responses.fact("queries"), responses.fact("settings")
    if known is None or settings is None:
        raise UserError(f"{responses.path}: holds no collection")
    queries = [_query(entry["query"]) for entry in known.values()]
    return Plan(settings, queries, {query_id: entry["day"] for query_id, entry in known.items()})


def _query(entry: Mapping[str, Any]) -> Query:
    return TypeAdapter(Query).validate_python(entry)
