"""Grade by a language model that follows criteria and category rules and says why (the paper, section 4.4)."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from pipeline.candidates import Candidates
from pipeline.errors import UserError
from pipeline.grading import PaperGrade, combine_samples, graded_table
from pipeline.llm.asking import ask
from pipeline.llm.chat import Chat, Reply, open_chat
from pipeline.llm.requests import Request, make_request
from pipeline.llm.settings import Count, Llm
from pipeline.llm.verdicts import Verdict, read_digit, read_explanation, read_label
from pipeline.papers import CATEGORIES
from pipeline.prompting import Example, Prompt, Question, Task, build_messages, find_examples
from pipeline.scoring import Fraction

log = logging.getLogger(__name__)

Grade = Annotated[float, Field(ge=0, le=3)]

_DIGIT_TOKENS = 4  # room for a digit and a line break
_CATEGORY = {"category": {"type": "string", "enum": list(reversed(CATEGORIES))}}
_EXPLANATION = {"explanation": {"type": "string"}}
_PROPERTIES: dict[Task, dict[str, object]] = {
    "label": {**_CATEGORY, **_EXPLANATION},
    "category": {**_CATEGORY},
    "explain": {**_EXPLANATION},
}


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Stage:
    """Ask about the first ``top`` papers of each table and order those by category; the others stay below.

    ``label`` is the paper's way, a JSON answer. ``expected`` asks for one digit and reads its probabilities: the
    expected grade orders papers and, cut at ``thresholds``, sets the category.
    """

    llm: Llm
    prompt: Prompt
    scoring: Literal["label", "expected"] = "label"
    explain: Literal["all", "shown", "none"] = "all"
    top: Count = 50
    shown: Count = 10  #: how many papers a query have an explanation with ``explain: shown``
    few_shot: Annotated[int, Field(ge=0, le=3, strict=True)] = 3  #: examples of each initial category
    samples: Count = 1  #: answers a paper; the category is that of the majority
    thresholds: tuple[Grade, Grade, Grade] = (0.5, 1.5, 2.5)  #: lowest expected grade of somewhat, moderately, highly
    max_ungraded: Fraction = 0.05

    @model_validator(mode="after")
    def _is_possible(self) -> Stage:
        if list(self.thresholds) != sorted(self.thresholds):
            raise ValueError(f"thresholds {list(self.thresholds)}: expected them in ascending order")
        if self.samples > 1 and self.llm.seed is None:
            raise ValueError(f"samples={self.samples} need llm.seed: it is what tells one sample from another")
        return self

    def __call__(self, tables: Sequence[Candidates]) -> list[Candidates]:
        """Return the tables with the columns of ``graded_table``, papers by category, ties in the order before.

        Raises ``UserError`` where more than ``max_ungraded`` of the papers got no category from the model.
        """
        if any("initial_category" not in table.columns for table in tables):
            raise UserError("the grade stage needs initial categories: put the semantic stage before it in the arm")
        return asyncio.run(self._run(tables))

    @property
    def explains_later(self) -> bool:
        """Whether explanations are asked for after grading: the answers that grade hold none."""
        return self.explain == "shown" or (self.explain == "all" and self.scoring == "expected")

    async def _run(self, tables: Sequence[Candidates]) -> list[Candidates]:
        async with open_chat(self.llm) as chat:
            grades = await self._grade(chat, tables)
            ranked = [graded_table(table, of_table) for table, of_table in zip(tables, grades, strict=True)]
            _tell_oddities(ranked)
            self._check_ungraded([grade for of_table in grades for grade in of_table])
            if not self.explains_later:
                return ranked
            await self._explain(chat, tables, grades, ranked)
        return [graded_table(table, of_table) for table, of_table in zip(tables, grades, strict=True)]

    async def _grade(self, chat: Chat, tables: Sequence[Candidates]) -> list[list[PaperGrade]]:
        task: Task = "digit" if self.scoring == "expected" else "label" if self.explain == "all" else "category"
        requests = [
            self._request(table, position, task, sample=sample)
            for table in tables
            for position in self._graded(table)
            for sample in range(self.samples)
        ]
        read = read_label if self.scoring == "label" else self._digit_reader()
        may_fail = self.max_ungraded if self.samples == 1 else 1.0  # of several samples some may fail
        asked = iter(await ask(chat, requests, read, "grading", may_fail))
        return [
            [combine_samples([next(asked) for _ in range(self.samples)], self.thresholds) for _ in self._graded(table)]
            for table in tables
        ]

    async def _explain(
        self,
        chat: Chat,
        tables: Sequence[Candidates],
        grades: Sequence[list[PaperGrade]],
        ranked: Sequence[Candidates],
    ) -> None:
        """Ask for the explanations that the answers did not hold, and put them into ``grades``."""
        wanted: list[tuple[int, int]] = []
        for i, (table, of_table) in enumerate(zip(tables, grades, strict=True)):
            seen = ranked[i].papers[: self.shown] if self.explain == "shown" else ranked[i].papers
            ids = {paper.paper_id for paper in seen}
            wanted += [
                (i, j) for j, g in enumerate(of_table) if g.category is not None and table.papers[j].paper_id in ids
            ]
        requests = [self._request(tables[i], j, "explain", category=grades[i][j].category or "") for i, j in wanted]
        asked = await ask(chat, requests, read_explanation, "explaining")
        for (i, j), entry in zip(wanted, asked, strict=True):
            grades[i][j] = grades[i][j].explained(entry)

    def _graded(self, table: Candidates) -> range:
        return range(min(self.top, len(table)))

    def _request(self, table: Candidates, position: int, task: Task, *, sample: int = 0, category: str = "") -> Request:
        paper = table.papers[position]
        examples = find_examples(table, self.few_shot, self.prompt.example_order, paper)
        judged = Example(paper, table.columns["initial_category"][position])
        question = Question(table.query, judged, examples, task, category)
        changed = {} if self.llm.seed is None else {"seed": self.llm.seed + sample}
        if task == "digit":
            changed["max_tokens"] = _DIGIT_TOKENS
        return make_request(
            self.llm,
            build_messages(self.prompt, question, self.llm.prompt_tokens),
            about=f"query {table.query.query_id}, paper {paper.paper_id}",
            schema=_schema(task),
            logprobs=task == "digit",
            **changed,
        )

    def _digit_reader(self) -> Callable[[Reply], Verdict]:
        """Return ``read_digit`` that stops at the start where the endpoint gives no token probabilities at all."""
        found = False

        def read(reply: Reply) -> Verdict:
            nonlocal found
            found = found or bool(reply.answer and reply.answer.logprobs)
            if not found and reply.answer and reply.answer.content:
                raise UserError(
                    f"{self.llm.model} at {self.llm.endpoint} gives no token probabilities, which "
                    "grade.scoring=expected reads; use grade.scoring=label or another endpoint"
                )
            return read_digit(reply)

        return read

    def _check_ungraded(self, grades: Sequence[PaperGrade]) -> None:
        outcomes = Counter(str(grade.outcome) for grade in grades if grade.category is None)
        if outcomes.total() > self.max_ungraded * len(grades):
            kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(outcomes.items()))
            raise UserError(
                f"{outcomes.total()} of {len(grades)} papers have no grade from the model ({kinds}), more than "
                f"grade.max_ungraded={self.max_ungraded:g} allows; what was answered is recorded"
            )


def _schema(task: Task) -> dict[str, object] | None:
    """Return the JSON schema of what the task asks for; a digit has none."""
    properties = _PROPERTIES.get(task)
    return properties and {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _tell_oddities(ranked: Sequence[Candidates]) -> None:
    """Log what a reader of the figures should know: several systems answered, papers that talk to the model."""
    answered_by = {name for table in ranked for name in table.columns["answered_by"] if name is not None}
    if len(answered_by) > 1:
        log.warning("more than one system answered: %s", "; ".join(sorted(answered_by)))
    suspicious = [
        f"{paper.paper_id} ({found})"
        for table in ranked
        for paper, found, outcome in zip(
            table.papers, table.columns["instruction_like"], table.columns["outcome"], strict=True
        )
        if found is not None and outcome is not None
    ]
    if suspicious:
        log.warning("%d graded papers hold text like an instruction to the model: %s", len(suspicious), suspicious[0])
