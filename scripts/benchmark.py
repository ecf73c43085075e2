"""Show speed and memory in ratios, on made-up texts.

Run it with ``.venv/bin/python scripts/benchmark.py``, or with the names of some parts (``PARTS``); ``embedding=mpnet``
measures that model instead of MiniLM. The weights must be in outputs/models. Seconds differ between machines; how many
times faster one way is than another says more.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

PARTS = ("bm25", "agreement", "embedding", "answers", "collect", "merge", "ablation", "sweep")


def rows(part: str) -> list[list[str]]:
    """Return the lines of one part: the module of its name in benchmarks/, imported only when it is measured."""
    name, *argument = part.split("=")
    if name not in PARTS:
        sys.exit(f"unknown part {name}: expected some of {', '.join(PARTS)}")
    lines: list[list[str]] = importlib.import_module(f"benchmarks.{name}").rows(*argument)
    return lines


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[1] / "tests"))  # for the fake sources
    measured = [line for part in sys.argv[1:] or PARTS for line in rows(part)]
    from experiments.tables import markdown  # not before: parts start processes that read this file again

    print(markdown(["work", "compared with", "theirs", "ours", "theirs / ours"], measured))  # noqa: T201
