"""The ablation of the demo collection: with nothing computed before, and again."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.measuring import litgrade, row, timed
from experiments.models import registered_models


def rows() -> list[list[str]]:
    """Run it twice in an empty folder, the weights being there already."""
    models = registered_models()["mpnet"].folder.resolve()
    with tempfile.TemporaryDirectory() as folder:
        first, again = (
            timed(lambda: litgrade("ablation", f"paths.models={models}", folder=Path(folder))) for _ in "12"
        )
    return [row("ablation of the demo collection, again, s", "the first time", first, again)]
