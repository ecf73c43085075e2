"""From what a model said about papers to their categories, their order, and what it took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pipeline.candidates import Candidates, Column
from pipeline.llm.answers import Answer
from pipeline.llm.asking import Asked
from pipeline.llm.chat import Reply
from pipeline.llm.verdicts import Outcome
from pipeline.papers import CATEGORIES, Paper
from pipeline.untrusted import instruction_like

Thresholds = tuple[float, float, float]  #: lowest expected grade of somewhat, moderately and highly relevant


@dataclass(frozen=True)
class PaperGrade:
    """What the model made of one paper, over all samples, and every reply that it took."""

    outcome: Outcome
    category: str | None
    expected_grade: float | None
    explanation: str | None
    samples: tuple[str | None, ...]  #: the category of each sample
    replies: tuple[Reply, ...]
    explaining: Outcome | None = None  #: what became of asking for the explanation on its own

    def explained(self, asked: Asked) -> PaperGrade:
        """Return the grade with an explanation that was asked for on its own."""
        verdict = asked.verdict
        return replace(
            self,
            explanation=verdict.explanation,
            explaining=verdict.outcome,
            replies=(*self.replies, *asked.replies),
        )


def combine_samples(asked: Sequence[Asked], thresholds: Thresholds) -> PaperGrade:
    """Return the grade of a paper from its samples: the category of most, the lower one of equals.

    Expected grades are averaged first, then cut at the thresholds. Samples without a grade have no vote; where none
    has one, the outcome is that of the first.
    """
    verdicts = [entry.verdict for entry in asked]
    expected = [v.expected_grade for v in verdicts if v.expected_grade is not None]
    samples = [v.category if v.expected_grade is None else category_of(v.expected_grade, thresholds) for v in verdicts]
    mean = float(np.mean(expected)) if expected else None
    votes = Counter(category for category in samples if category is not None)
    category = max(votes, key=lambda c: (votes[c], -CATEGORIES.index(c)), default=None)
    if mean is not None:
        category = category_of(mean, thresholds)
    return PaperGrade(
        outcome=verdicts[0].outcome if category is None else Outcome.GRADED,
        category=category,
        expected_grade=mean,
        explanation=next((v.explanation for v in verdicts if v.category == category and v.explanation), None),
        samples=tuple(samples),
        replies=tuple(reply for entry in asked for reply in entry.replies),
    )


def category_of(expected_grade: float, thresholds: Thresholds) -> str:
    """Return the category of an expected grade; a threshold belongs to the higher category."""
    return CATEGORIES[int(np.digitize(expected_grade, thresholds))]


def graded_table(table: Candidates, grades: Sequence[PaperGrade]) -> Candidates:
    """Return the table with what the model said of its first papers, and these in the order of ``grading_order``.

    Columns: ``previous_rank`` (from 1, before this stage), ``category`` (None: not graded, see ``outcome``),
    ``expected_grade`` (with digits only), ``explanation`` and the ``explained_category`` that it speaks of,
    ``explaining`` (outcome of asking for it, where it was asked for on its own), ``samples`` (where there are several),
    ``requests``, ``input_tokens`` and ``output_tokens`` and ``usd`` (of all replies, recorded ones too; NaN: unknown),
    ``paid_usd`` (of those that this run asked for), ``answered_by``, and ``instruction_like``: what in the paper's
    texts talks to the model. Below the graded papers, ``outcome`` is None and the counts are 0.
    """

    def objects(value: Callable[[PaperGrade], object]) -> Column:
        column = np.full(len(table), None, dtype=object)
        for i, grade in enumerate(grades):
            column[i] = value(grade)
        return column

    def numbers(value: Callable[[PaperGrade], float], rest: float = 0.0) -> Column:
        return np.array([value(grade) for grade in grades] + [rest] * (len(table) - len(grades)), dtype=np.float64)

    columns = {
        "previous_rank": np.arange(1, len(table) + 1),
        "category": objects(lambda grade: grade.category),
        "outcome": objects(lambda grade: str(grade.outcome)),
        "expected_grade": numbers(lambda g: np.nan if g.expected_grade is None else g.expected_grade, np.nan),
        "explanation": objects(lambda grade: grade.explanation),
        "explained_category": objects(lambda grade: grade.category if grade.explanation else None),
        "explaining": objects(lambda grade: grade.explaining and str(grade.explaining)),
        "samples": objects(lambda grade: list(grade.samples)),
        "requests": numbers(lambda grade: len(grade.replies)).astype(np.int64),
        "input_tokens": numbers(lambda grade: _total(grade, lambda answer: answer.input_tokens)),
        "output_tokens": numbers(lambda grade: _total(grade, lambda answer: answer.output_tokens)),
        "usd": numbers(lambda grade: _total(grade, lambda answer: answer.usd)),
        "paid_usd": numbers(lambda grade: _total(grade, lambda answer: answer.usd, recorded=False)),
        "answered_by": objects(lambda grade: _answered_by(grade.replies)),
        "instruction_like": np.array([_suspicion(paper) for paper in table.papers], dtype=object),
    }
    if np.isnan(columns["expected_grade"]).all():
        del columns["expected_grade"]
    if all(grade.explaining is None for grade in grades):
        del columns["explaining"]
    if all(len(grade.samples) == 1 for grade in grades):
        del columns["samples"]
    table = table.with_columns(**columns)
    return table.take(grading_order(table))


def grading_order(table: Candidates) -> npt.NDArray[np.intp]:
    """Return the order by category, then by expected grade where there is one, then as before.

    A paper that the model failed on keeps its place by its initial category, and without an expected grade is the last
    of it; papers that the model was not asked about stay below the others, as they were.
    """
    given, initial = table.columns["category"], table.columns["initial_category"]
    grades = np.array([CATEGORIES.index(c or i) for c, i in zip(given, initial, strict=True)], dtype=np.float64)
    was_asked = np.array([outcome is not None for outcome in table.columns["outcome"]], dtype=bool)
    grades[~was_asked] = -1.0
    expected = np.nan_to_num(table.columns.get("expected_grade", np.zeros(len(table))), nan=-1.0)
    order: npt.NDArray[np.intp] = np.lexsort(
        (table.columns["previous_rank"], np.where(was_asked, -expected, 0.0), -grades)
    )
    return order


def _total(grade: PaperGrade, amount: Callable[[Answer], float | None], *, recorded: bool = True) -> float:
    """Return the sum over the replies, NaN where a part of it is unknown; ``recorded`` False: of new answers only."""
    answers = [r.answer for r in grade.replies if r.answer is not None and (recorded or not r.is_recorded)]
    amounts = [amount(answer) for answer in answers]
    return float(sum(np.nan if value is None else value for value in amounts))


def _answered_by(replies: Sequence[Reply]) -> str | None:
    """Return the models, providers and fingerprints behind the replies; more than one is worth knowing."""
    answers = [reply.answer for reply in replies if reply.answer is not None]
    parts = [" ".join(p for p in (a.model, a.provider, a.fingerprint) if p) for a in answers]
    return "; ".join(dict.fromkeys(parts)) or None


def _suspicion(paper: Paper) -> str | None:
    texts = (paper.title, paper.abstract, *paper.keywords, *paper.disciplines)
    return next((found for text in texts if (found := instruction_like(text))), None)
