"""Settings, questions and tables for tests that ask a language model; also run in processes of their own."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from pipeline.candidates import Candidates
from pipeline.llm.chat import Reply, open_chat
from pipeline.llm.prices import Price
from pipeline.llm.requests import Request, make_request
from pipeline.llm.settings import Llm
from pipeline.papers import Paper, Query
from pipeline.prompting import Prompt
from pipeline.stages.grade import Stage

#: Dear, so that sums are easy: an answer of 100 input and 10 output tokens is (100 * 10 + 10 * 100) / 1e6 = $0.002.
PRICE = Price(endpoint="127.0.0.1", model="m", input=10, output=100, date=date(2026, 1, 1))
USD_AN_ANSWER = 0.002


def llm_at(url: str, recording: Path, **changed: Any) -> Llm:
    """A model at this address, asked without waiting between attempts."""
    settings = {"model": "m", "mode": "record", "prices": (PRICE,), "backoff_s": 0.0, "deadline_s": 30.0, **changed}
    return Llm(base_url=url, recording=recording, **settings)


def questions(llm: Llm, number: int) -> list[Request]:
    return [make_request(llm, [{"role": "user", "content": f"question {i}"}], f"paper p{i}") for i in range(number)]


def ask_all(llm: Llm, asked: int | Sequence[Request], max_failed: float = 1.0) -> list[Reply]:
    """Ask this many questions, or these."""

    async def run() -> list[Reply]:
        async with open_chat(llm) as chat:
            requests = questions(llm, asked) if isinstance(asked, int) else asked
            return await chat.answer_all(requests, "asking", lambda reply: None, max_failed)

    return asyncio.run(run())


@cache
def prompt(**changed: Any) -> Prompt:
    """The prompt that ships with the project."""
    return Prompt(
        **yaml.safe_load((Path(__file__).parents[1] / "conf" / "prompt" / "criteria.yaml").read_text(encoding="utf-8"))
        | changed
    )


def candidates(*initial: str, query_id: str = "q", papers: Sequence[Paper] = ()) -> Candidates:
    """A table whose papers, from the highest score down, have these initial categories and titles of their own."""
    made = papers or [Paper(f"p{i}", f"Title {i}", f"Abstract {i}.") for i in range(len(initial))]
    table = Candidates(Query(query_id, "flutter learning"), tuple(made))
    return table.with_columns(score=np.linspace(1, 0, len(initial)), initial_category=np.array(initial, dtype=object))


def grade(llm: Llm, *tables: Candidates, **settings: Any) -> list[dict[str, Any]]:
    """The rows of these tables after the stage; without examples and with any share of failures, unless told."""
    defaults = {"prompt": prompt(), "few_shot": 0, "max_ungraded": 1.0}
    return [row for table in Stage(llm=llm, **defaults | settings)(tables) for row in table.rows()]


def judged_title(body: dict[str, Any]) -> str:
    """The title of the paper that a request is about."""
    return body["messages"][1]["content"].split("The paper to judge:\n<paper>\ntitle: ")[1].splitlines()[0]


if __name__ == "__main__":  # url, recording, number of papers
    _, url_, recording_, number_ = sys.argv
    low = ["low relevance"] * int(number_)
    rows = grade(llm_at(url_, Path(recording_)), candidates(*low), top=len(low))
    sys.stdout.write(json.dumps([row["category"] for row in rows]))
