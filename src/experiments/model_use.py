"""What a language model took and what came of it: per run and per query, from the columns of the grading stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pipeline.candidates import Candidates

_AMOUNTS = ("requests", "input_tokens", "output_tokens", "usd", "paid_usd")


def model_use(rankings: Sequence[Candidates]) -> dict[str, Any] | None:
    """Return the totals of a run under ``run`` and of each query under ``queries``, or None where no model was asked.

    ``usd`` is what all answers cost when they were given, ``paid_usd`` what this run paid, ``saved_usd`` what recorded
    answers spared it. None is unknown: a price or a number of tokens that the endpoint did not tell.
    """
    if not any("outcome" in table.columns for table in rankings):
        return None
    of_queries = {table.query.query_id: _totals([table]) for table in rankings}
    return {"run": _totals(rankings), "queries": of_queries}


def _totals(tables: Sequence[Candidates]) -> dict[str, Any]:
    outcomes = Counter(outcome for table in tables for outcome in table.columns["outcome"] if outcome is not None)
    explained = Counter(
        outcome for table in tables for outcome in table.columns.get("explaining", ()) if outcome is not None
    )
    amounts = {name: _sum(value for table in tables for value in table.columns[name]) for name in _AMOUNTS}
    usd, paid = amounts["usd"], amounts["paid_usd"]
    suspicious = sum(
        found is not None and outcome is not None
        for table in tables
        for found, outcome in zip(table.columns["instruction_like"], table.columns["outcome"], strict=True)
    )
    return {
        "papers": outcomes.total(),
        "outcomes": dict(sorted(outcomes.items())),
        **amounts,
        **({"explanations": dict(sorted(explained.items()))} if explained else {}),
        "saved_usd": None if usd is None or paid is None else usd - paid,
        "instruction_like": suspicious,
    }


def _sum(values: Iterable[float]) -> float | None:
    total = float(np.sum(list(values)))
    return None if np.isnan(total) else total


def ungraded(use: Mapping[str, Any]) -> int:
    """Return how many papers the model was asked about and gave no category to."""
    return int(use["run"]["papers"] - use["run"]["outcomes"].get("graded", 0))


def use_text(use: Mapping[str, Any]) -> str:
    """Return the line that a user reads."""
    run = use["run"]
    outcomes = ", ".join(f"{kind} {count}" for kind, count in run["outcomes"].items())
    return f"{use_line('model', run)}; {run['papers']} papers ({outcomes})"


def use_line(who: str, run: Mapping[str, Any]) -> str:
    """Return requests, tokens and dollars as a reader wants them."""
    tokens = " and ".join(
        f"{'unknown' if run[name] is None else f'{run[name]:.0f}'} {name.replace('_', ' ')}"
        for name in ("input_tokens", "output_tokens")
    )
    dollars = ", ".join(
        f"{'unknown' if run[name] is None else f'${run[name]:.6f}'} {word}"
        for name, word in (("paid_usd", "paid now"), ("usd", "in all"))
    )
    return f"{who}: {run['requests']:.0f} requests, {tokens}; {dollars}"
