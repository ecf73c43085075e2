"""``litgrade collect``: sources one after the other against all at once."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

from benchmarks.measuring import row
from experiments.sources import configured_sources

N_RECORDS, PAGE_S = 250, 0.2


def rows() -> list[list[str]]:
    """Let ``litgrade collect`` ask twelve fake sources, those of the tests: each alone, then all at once.

    Without the pauses between requests that real sources want; the seconds are those of asking, in ``reports.csv``.
    """
    from fake_sources import QUERY_TEXT, FakeSources, made_up_papers

    recent = datetime.datetime.now(datetime.UTC).date() - datetime.timedelta(days=9)  # bioRxiv is asked for a month
    names = [name for name, source in configured_sources().items() if hasattr(source, "search") and name != "wos"]
    papers = {name: made_up_papers(N_RECORDS, seed, newest=recent, days=20) for seed, name in enumerate(names)}
    with FakeSources(papers, latency_s=PAGE_S) as server, tempfile.TemporaryDirectory() as folder:

        def asking_s(asked: list[str]) -> float:
            snapshot = Path(folder) / "-".join(asked)
            chosen = [f"query.text={QUERY_TEXT}", f"sources.names=[{','.join(asked)}]", f"snapshot={snapshot}"]
            command = [sys.executable, "-m", "experiments.collect", *chosen, f"sources.limit={N_RECORDS}"]
            environment = {**os.environ, "SCOPUS_API_KEY": "made-up"}
            subprocess.run(
                [*command, "enrich=none", "tracking=none", *server.overrides],
                check=True,
                capture_output=True,
                env=environment,
            )
            reports = pd.read_csv(snapshot / "reports.csv")
            if (reports["records"] != N_RECORDS).any():
                raise ValueError(f"records are missing:\n{reports}")
            return float(reports["seconds"].max())

        alone = [asking_s([name]) for name in names]
        at_once = asking_s(names)
    what = f"collect {N_RECORDS * len(names):,} records of {len(names)} sources, {1000 * PAGE_S:.0f} ms a page, s"
    return [
        row(what, "one source after the other", sum(alone), at_once),
        row(what, "the slowest source alone", max(alone), at_once),
    ]
