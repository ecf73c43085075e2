"""Sources as configured in conf/source/."""

from __future__ import annotations

import importlib
from typing import Any

import yaml

from conftest import ROOT


def source(name: str, **overrides: Any) -> Any:
    """The source of this name, its settings as in conf/source/, some of them replaced."""
    settings = yaml.safe_load((ROOT / "conf" / "source" / f"{name}.yaml").read_text(encoding="utf-8"))[name] | overrides
    module = importlib.import_module(f"pipeline.sources.{settings.pop('module')}")
    return module.Source(name=name, **settings)
