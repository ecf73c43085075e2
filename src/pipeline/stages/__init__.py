"""Stages: a stage's name in an arm is the name of a module here, and the module's ``Stage`` does the work.

``Stage`` is a pydantic dataclass whose fields are its settings. Called with the candidate tables of all queries, it
returns new tables in the same order: more columns, fewer papers, another ranking. Adding a stage adds a file.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pydantic import TypeAdapter

from pipeline.candidates import Candidates
from pipeline.errors import UserError, did_you_mean


class Stage(Protocol):
    """What every module in this folder defines under this name."""

    def __call__(self, tables: Sequence[Candidates]) -> list[Candidates]:
        """Return one new table for each of these."""
        ...


def stage_names() -> list[str]:
    """Return the names of the stages there are."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def build_stage(name: str, settings: Mapping[str, Any]) -> Stage:
    """Return the stage of this name; raise ``pydantic.ValidationError`` where a setting is wrong."""
    if name not in stage_names():
        known = stage_names()
        raise UserError(f"unknown stage {name!r}: expected one of {', '.join(known)}{did_you_mean(name, known)}")
    module = importlib.import_module(f"{__name__}.{name}")
    stage: Stage = TypeAdapter(module.Stage).validate_python(dict(settings))
    return stage
