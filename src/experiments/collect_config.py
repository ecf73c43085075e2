"""The config of a collection: its shape, ranges and rules. Hydra composes it from conf/collect.yaml."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from omegaconf import DictConfig, OmegaConf
from pydantic import Field, TypeAdapter, ValidationError, model_validator

from experiments.collections.beir.layout import read_queries
from experiments.config import Mlflow, NoTracking, Section, checked
from experiments.explain import explain_validation
from pipeline import sources
from pipeline.collecting.client import Patience
from pipeline.enrich import Enrich
from pipeline.errors import UserError, did_you_mean
from pipeline.llm.settings import Count
from pipeline.merging.merge import Merge
from pipeline.papers import Query
from pipeline.search_terms import any_of
from pipeline.sources import SearchedSource, SourceSettings

Seconds = Annotated[float, Field(gt=0, le=86_400)]


class QuerySettings(Section):
    """One query, as given on the command line."""

    id: Annotated[str, Field(pattern=r"^\S+$")]
    text: str | None
    keywords: tuple[str, ...]
    domain: str | None
    fields: tuple[str, ...]


class Sources(Section):
    """Which sources are asked, how much and how long."""

    names: Annotated[tuple[str, ...], Field(min_length=1)]
    mode: Literal["record", "replay"]
    budget_s: Seconds
    limit: Count
    max_pages: Count
    strict: bool
    patience: Patience
    available: dict[str, dict[str, Any]]

    @model_validator(mode="after")
    def _are_available(self) -> Sources:
        for name in self.names:
            if name not in self.available:
                near = did_you_mean(name, self.available)
                raise ValueError(
                    f"unknown source {name!r} in names; expected some of {', '.join(self.available)}{near}"
                )
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"names={', '.join(self.names)}: a source is named twice")
        return self


class CollectConfig(Section):
    """Everything a collection depends on."""

    query: QuerySettings
    queries: Path | None
    snapshot: Path
    sources: Sources
    merge: Merge
    enrich: Enrich
    tracking: Annotated[Mlflow | NoTracking, Field(discriminator="backend")]

    def read_queries(self) -> tuple[Query, ...]:
        """Return the queries of the file, or the one of the command line.

        Raise ``UserError`` for neither or both, and for a query without any word.
        """
        one = self.query
        if (self.queries is None) == (one.text is None):
            raise UserError("what is searched? give query.text='\"...\"' or queries=FILE, one of them")
        if self.queries is None:
            queries: tuple[Query, ...] = (Query(one.id, str(one.text).strip(), one.keywords, one.domain, one.fields),)
        else:
            queries = read_queries(self.queries)
        if wordless := [query for query in queries if not any_of(query)]:
            where = "" if self.queries is None else f"{self.queries}: "
            raise UserError(f"{where}query {wordless[0].query_id}: no word to search for in {wordless[0].text!r}")
        return queries


def read_collect_config(composed: DictConfig) -> CollectConfig:
    """Check what Hydra composed; raise a ``UserError`` of one line a fault."""
    config = checked(CollectConfig, OmegaConf.to_container(composed, resolve=True))
    built = build_sources(config.sources.available)
    if not any(isinstance(built[name], SearchedSource) for name in config.sources.names):
        raise UserError(
            f"sources.names={', '.join(config.sources.names)}: none of them has a search; name one that has"
        )
    return config


def build_sources(available: dict[str, dict[str, Any]]) -> dict[str, SourceSettings]:
    """Return the sources of these settings by name; raise ``UserError`` for a wrong setting."""
    return {name: _build_source(name, settings) for name, settings in available.items()}


def _build_source(name: str, settings: dict[str, Any]) -> SourceSettings:
    given = dict(settings)
    module_name = given.pop("module", None)
    modules = _modules()
    where = f"sources.available.{name}"
    if "name" in given:
        raise UserError(f"{where}.name={given['name']}: no such key; a source is called by its key, here {name}")
    if module_name not in modules:
        near = did_you_mean(str(module_name), modules)
        raise UserError(f"{where}.module={module_name}: expected one of {', '.join(modules)}{near}")
    try:
        return cast("SourceSettings", TypeAdapter(modules[module_name]).validate_python({"name": name, **given}))
    except ValidationError as error:
        raise UserError(explain_validation(error, within=where)) from error


def _modules() -> dict[str, Any]:
    """Return the class ``Source`` of every module that has one."""
    names = sorted(module.name for module in pkgutil.iter_modules(sources.__path__))
    modules = {name: importlib.import_module(f"{sources.__name__}.{name}") for name in names}
    return {name: module.Source for name, module in modules.items() if hasattr(module, "Source")}
