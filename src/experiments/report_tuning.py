"""What the best of the reported runs is worth on queries that it was not chosen on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import TypeAdapter

from experiments.config import NoTuning, Tuning
from experiments.report_tables import Entry, Table, label_of
from experiments.tuning import Chosen, Measured
from experiments.verdict import Verdict, judge_settings
from pipeline.errors import UserError


def agreed_tuning(entries: Sequence[Entry]) -> Tuning:
    """Return how settings were to be chosen; no tuning where runs disagree."""
    none = {"method": "none"}
    given = [entry.run.settings.get("tuning", none) for entry in entries]
    tuning: Tuning = TypeAdapter(Tuning).validate_python(given[0] if all(one == given[0] for one in given) else none)
    return tuning


def on_other_queries(entries: Sequence[Entry], objective: str, tuning: Tuning) -> tuple[list[str], Table | None]:
    """Choose runs on development queries and report them on the others, as ``litgrade run -m`` does.

    Returned are sentences and a table of the folds; nothing without tuning.
    """
    measured = [entry for entry in entries if entry.values(objective)]
    if isinstance(tuning, NoTuning) or len(measured) < 2:
        return [], None
    area_of = measured[0].run.area_of
    queries = sorted({query_id for entry in measured for query_id in entry.values(objective)} & area_of.keys())
    values = np.array([[entry.values(objective).get(q, np.nan) for q in queries] for entry in measured])
    papers = next((i for i, entry in enumerate(measured) if not entry.differences), None)
    try:
        verdict = judge_settings(
            Measured(values, queries, area_of, papers), lambda i: measured[i].label, tuning, objective
        )
    except UserError as error:  # too few queries to split
        return [str(error)], None
    told = [f"{label_of(objective)} on queries that the setting was not chosen on: {verdict.held_out_mean:.3f}."]
    if verdict.against_baseline is not None:
        told.append(f"Against the paper's setting on the same queries: {verdict.against_baseline}.")
    header = ["fold", "chosen setting", "queries", label_of(objective), "other queries", "on these", "paper's on these"]
    return told, Table(header, [_fold(i, verdict, c) for i, c in enumerate(verdict.chosen, start=1)], words=2)


def _fold(number: int, verdict: Verdict, chosen: Chosen) -> list[str]:
    split, papers = chosen.split, chosen.baseline_test
    development, test = (
        [str(len(split.development)), f"{chosen.development:.3f}"],
        [str(len(split.test)), f"{chosen.test:.3f}"],
    )
    return [
        str(number),
        verdict.name_of(chosen.setting),
        *development,
        *test,
        "—" if papers is None else f"{papers:.3f}",
    ]
