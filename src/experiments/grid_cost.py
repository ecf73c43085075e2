"""What it would cost to grade one more paper a query: the second axis of the question how many papers to keep."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import hydra

from experiments.config import RunConfig, read_config
from experiments.grid_scores import semantic_order
from pipeline.candidates import Candidates
from pipeline.llm.estimates import EstimateOnly

_SAMPLE = 20  # queries whose prompts are built


@dataclass(frozen=True)
class Cost:
    """About what grading one paper takes, from real prompts that were not sent; at most in output."""

    model: str
    tokens: float  #: of input and output
    usd: float | None  #: None: the price is not known
    queries: int  #: whose prompts were counted
    papers: int


def cost_of_a_paper(config: RunConfig, tables: Sequence[Candidates]) -> Cost | None:
    """Build the paper's prompts for the papers that this config keeps, and divide their estimate by their number.

    ``tables`` have been compared. The grading model is that of ``llm=mistral``, whose price is known. None where there
    is nothing to grade.
    """
    nothing_known = f"llm.recording={os.devnull}"  # or papers that were graded before would cost nothing
    overrides = ["arm=bm25_mpnet_llm", "llm=mistral", "llm.mode=estimate", nothing_known]
    grading = read_config(hydra.compose("config", overrides=overrides))
    (grade,) = (stage for name, stage in grading.stages() if name == "grade")
    _, cut = config.stages()[-1]
    ranked = cut(semantic_order(config, tables[:_SAMPLE]))
    papers = sum(len(table) for table in ranked)
    if not papers:
        return None
    try:
        grade(ranked)
    except EstimateOnly as found:
        estimate = found.estimate
        tokens = (estimate.input_tokens + estimate.output_tokens) / papers
        usd = None if estimate.usd is None else estimate.usd / papers
        return Cost(estimate.model, tokens, usd, len(ranked), papers)
    raise AssertionError("a stage that asks a model raises in place of asking")
