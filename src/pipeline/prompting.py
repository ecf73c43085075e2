"""The prompt of the grading stage (the paper, section 4.4.1 and figure 8).

What is the same for every paper comes first and what changes comes last, so that a provider that keeps the start of a
prompt pays it once: role, criteria and rules; then query and examples; then the paper; then what is asked for.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from pipeline.candidates import Candidates
from pipeline.llm.requests import Message
from pipeline.papers import CATEGORIES, Paper, Query
from pipeline.untrusted import fenced

log = logging.getLogger(__name__)

PaperField = Literal["title", "abstract", "disciplines", "keywords", "initial_category"]
Task = Literal["label", "category", "digit", "explain"]

_BYTES_A_TOKEN = 3  # fewer than in English, so that a prompt is rather thought too long than too short


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Prompt:
    """The texts of the prompt, and what it tells of papers."""

    role: str
    criteria: str | None
    rules: str | None
    examples: str
    example_order: Literal["rising", "falling"]
    paper_fields: Annotated[tuple[PaperField, ...], Field(min_length=1)]
    label: str  #: asks for category and explanation
    category: str  #: asks for the category alone
    digit: str  #: asks for the grade as one digit
    explain: str  #: asks for the explanation of a category, which stands for CATEGORY


@dataclass(frozen=True)
class Example:
    """A paper of the same query with its initial category."""

    paper: Paper
    initial_category: str


@dataclass(frozen=True)
class Question:
    """What is asked about one paper."""

    query: Query
    judged: Example
    examples: Sequence[Example]
    task: Task
    category: str = ""  #: the one to explain, for the task ``explain``


def find_examples(table: Candidates, number: int, order: Literal["rising", "falling"], judged: Paper) -> list[Example]:
    """Return the ``number`` best papers of each initial category, category by category, without the one judged.

    The table is in the order of the semantic score.
    """
    members: dict[str, list[Example]] = {category: [] for category in CATEGORIES}
    for paper, category in zip(table.papers, table.columns["initial_category"], strict=True):
        if len(members[category]) < number and paper.paper_id != judged.paper_id:
            members[category].append(Example(paper, category))
    groups = list(members.values())
    return [example for group in (groups if order == "rising" else groups[::-1]) for example in group]


def build_messages(prompt: Prompt, question: Question, budget_tokens: int) -> list[Message]:
    """Return the messages that ask a question.

    ``budget_tokens`` is what they may take; examples are left out from the lowest score up until they fit.
    """
    system = "\n\n".join(part.strip() for part in (prompt.role, prompt.criteria, prompt.rules) if part)
    asked = getattr(prompt, question.task).strip().replace("CATEGORY", question.category)
    paper = f"The paper to judge:\n{_paper_text(question.judged, prompt.paper_fields)}"
    shown = list(question.examples)
    while True:
        user = "\n\n".join([_query_text(question.query), *_examples_text(prompt, shown), paper, asked])
        fits = (len(system.encode()) + len(user.encode())) / _BYTES_A_TOKEN <= budget_tokens
        if not shown and not fits:
            log.warning(
                "query %s, paper %s: the prompt may be too long for the model's window, even without examples",
                question.query.query_id,
                question.judged.paper.paper_id,
            )
        if fits or not shown:
            return [{"role": "system", "content": system}, {"role": "user", "content": user}]
        least = _lowest(shown)
        log.info(
            "query %s, paper %s: the prompt is too long for the model's window; example %s is left out",
            question.query.query_id,
            question.judged.paper.paper_id,
            shown[least].paper.paper_id,
        )
        del shown[least]


def _lowest(examples: Sequence[Example]) -> int:
    """Return the position of the example with the lowest score: the last one of the lowest category."""
    return min(range(len(examples)), key=lambda i: (CATEGORIES.index(examples[i].initial_category), -i))


def _query_text(query: Query) -> str:
    fields = {
        "title": query.text,
        "keywords": ", ".join(query.keywords),
        "domain": query.domain or "",
        "subject fields": ", ".join(query.fields),
    }
    return "\n".join(["The query:", "<query>", *_lines(fields), "</query>"])


def _examples_text(prompt: Prompt, examples: Sequence[Example]) -> list[str]:
    if not examples:
        return []
    fields = [*dict.fromkeys([*prompt.paper_fields, "initial_category"])]
    return [prompt.examples.strip(), *(_paper_text(example, fields) for example in examples)]


def _paper_text(example: Example, fields: Sequence[str]) -> str:
    return f"<paper>\n{describe_paper(example, fields)}\n</paper>"


def describe_paper(example: Example, fields: Sequence[str]) -> str:
    """Return what is told of a paper, a line for each of these fields that is known; its text is fenced."""
    paper = example.paper
    values = {
        "title": paper.title,
        "abstract": paper.abstract,
        "disciplines": ", ".join(paper.disciplines),
        "keywords": ", ".join(paper.keywords),
        "initial_category": example.initial_category,
    }
    chosen = {name.replace("_", " "): values[name] for name in values if name in fields}
    return "\n".join(_lines(chosen))


def _lines(fields: dict[str, str]) -> Iterator[str]:
    """Yield a line for each field that is known; a missing one is not mentioned."""
    for name, value in fields.items():
        if text := fenced(value):
            yield f"{name}: {text}"
