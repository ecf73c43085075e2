"""Where figures come from: a fingerprint of everything a run depends on, and the versions of what computed it."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import platform
from pathlib import Path
from typing import Any

import experiments
import pipeline
from experiments.collections import Collection
from experiments.config import RunConfig
from experiments.tracking import git_commit
from pipeline.cache import content_key

FILE = "provenance.json"

#: What says where things are and how fast they are computed, and changes no result.
_PLACES = {"folder", "path", "packages", "store", "batch_tokens"}
_OUTSIDE = {"collection", "tracking", "paths", "tuning", "objective"}
_LIBRARIES = ("numpy", "scipy", "torch", "transformers", "sentence-transformers", "irrCAC", "openvino")


def fingerprint(config: RunConfig, collection: Collection) -> str:
    """Return a sha256 that two runs share if their settings, models, queries, papers and judgments are the same."""
    settings = _without_places(config.model_dump(mode="json", exclude=_OUTSIDE))
    models = [encoder.model.fingerprint for encoder in config.encoders()]
    return content_key(settings, models, collection.fingerprint).hex()


def _without_places(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _without_places(value) for key, value in node.items() if key not in _PLACES}
    return [_without_places(value) for value in node] if isinstance(node, list) else node


def provenance(config: RunConfig, collection: Collection, sweep_id: str | None) -> dict[str, Any]:
    """Return what stands in ``provenance.json`` of a run's folder, but for the ``run_id``."""
    return {
        "sweep_id": sweep_id,
        "fingerprint": fingerprint(config, collection),
        "collection": {"name": collection.name, "fingerprint": collection.fingerprint},
        "models": {encoder.model.name: encoder.model.fingerprint for encoder in config.encoders()},
        "code": code_fingerprint(),
        "git_commit": git_commit(),
        "python": platform.python_version(),
        "libraries": {name: version for name in _LIBRARIES if (version := _version(name))},
    }


@functools.cache
def code_fingerprint() -> str:
    """Return a sha256 over the source files of what runs, committed or not, installed or in a checkout."""
    digest = hashlib.sha256()
    for package in (experiments, pipeline):
        root = Path(package.__path__[0])
        for path in sorted(root.rglob("*.py")):
            digest.update(f"{root.name}/{path.relative_to(root).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
