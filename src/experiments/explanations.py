"""How good explanations are: what a judge said of each, and the summary in the form of the paper's table 14."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from experiments.tables import markdown, mean_text

#: Scores of a judged explanation, and what a reader calls them.
SCORES = {"faithfulness": "Faithfulness (0 to 1)", "explanation_relevance": "Explanation relevance (1 to 3)"}


@dataclass(frozen=True)
class JudgedExplanation:
    """What a judge made of one explanation; a score of None has its reason in ``faults``."""

    query_id: str
    area: str
    paper_id: str
    faithfulness: float | None  #: share of claims that the paper's description supports (equation 13)
    explanation_relevance: int | None  #: 1 to 3 (equation 14)
    faults: Mapping[str, str]  #: score -> why there is none
    requests: int
    input_tokens: float | None
    output_tokens: float | None
    usd: float | None  #: of all answers, recorded ones too; None: unknown
    paid_usd: float | None  #: of those that this run asked for


@dataclass(frozen=True)
class Summary:
    """A score over explanations; those without the score are counted, never averaged."""

    mean: float | None
    sd: float | None  #: sample standard deviation; of the average row, the mean of those of the areas
    n: int  #: explanations with the score
    of: int  #: explanations judged
    faults: Mapping[str, int]  #: reason -> explanations without the score


def summarize(judged: Sequence[JudgedExplanation]) -> dict[str, Any]:
    """Return ``areas`` and ``average``: for each score its ``Summary`` as a plain dict.

    As in table 14, an area's mean and standard deviation are over its explanations, the average's mean is over all
    explanations, and its standard deviation is the mean of the areas'.
    """
    areas = list(dict.fromkeys(entry.area for entry in judged))
    of_areas = {
        area: {score: _summary([entry for entry in judged if entry.area == area], score) for score in SCORES}
        for area in areas
    }
    average = {}
    for score in SCORES:
        sds = [sd for area in areas if (sd := of_areas[area][score].sd) is not None]
        whole = asdict(_summary(judged, score))
        average[score] = whole | {"sd": float(np.mean(sds)) if len(sds) == len(areas) else None}
    plain = {area: {score: asdict(value) for score, value in scores.items()} for area, scores in of_areas.items()}
    return {"areas": plain, "average": average}


def _summary(judged: Sequence[JudgedExplanation], score: str) -> Summary:
    values = [value for entry in judged if (value := getattr(entry, score)) is not None]
    return Summary(
        mean=float(np.mean(values)) if values else None,
        sd=float(np.std(values, ddof=1)) if len(values) > 1 else None,
        n=len(values),
        of=len(judged),
        faults=dict(sorted(Counter(entry.faults[score] for entry in judged if score in entry.faults).items())),
    )


def judge_use(judged: Sequence[JudgedExplanation]) -> dict[str, float | None]:
    """Return the totals of what judging took; None is unknown."""
    names = ("requests", "input_tokens", "output_tokens", "usd", "paid_usd")
    columns = {name: [getattr(entry, name) for entry in judged] for name in names}
    return {name: None if None in values else sum(values) for name, values in columns.items()}


def summary_metrics(summary: Mapping[str, Any]) -> dict[str, float]:
    """Return the averages by names that MLflow takes."""
    return {
        f"{score}{suffix}": value[key]
        for score, value in summary["average"].items()
        for key, suffix in (("mean", ""), ("sd", ".sd"), ("n", ".n"), ("of", ".of"))
        if value[key] is not None
    }


def summary_text(summary: Mapping[str, Any]) -> str:
    """Return the summary as a table like the paper's table 14, with what could not be scored below it."""
    average = summary["average"]
    rows = [[area, *(_cell(scores[score]) for score in SCORES)] for area, scores in summary["areas"].items()]
    rows.append(["Average", *(_cell(average[score]) for score in SCORES)])
    return "\n".join([markdown(["area", *SCORES.values()], rows), *_faults_text(average)])


def _cell(value: Mapping[str, Any]) -> str:
    return f"{mean_text(value['mean'], value['sd'])} (n = {value['n']} of {value['of']})"


def _faults_text(average: Mapping[str, Any]) -> Iterator[str]:
    for score, value in average.items():
        if value["faults"]:
            yield f"without {score}: " + ", ".join(f"{reason} {count}" for reason, count in value["faults"].items())
