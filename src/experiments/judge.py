"""RAGAS judges explanations: Faithfulness and a 1 to 3 rubric (the paper, section 5.1.4).

RAGAS asks through the ``openai`` package, whose requests are answered here by our own client: one recording, one
account and one way of retrying for every request there is. RAGAS' own cache is not used: it knows neither model nor
endpoint.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np

from experiments.config import Ragas
from experiments.explanations import SCORES, JudgedExplanation
from pipeline.candidates import Candidates
from pipeline.errors import UserError
from pipeline.llm.answers import Answer
from pipeline.llm.chat import Chat, Reply, open_chat
from pipeline.llm.estimates import EstimateOnly
from pipeline.llm.requests import Request, with_provider
from pipeline.llm.settings import ResponseFormat
from pipeline.papers import Query
from pipeline.progress import progress
from pipeline.prompting import Example, describe_paper

if TYPE_CHECKING:
    from ragas.llms.base import InstructorBaseRagasLLM


@dataclass
class _Trail:
    """What was asked on behalf of one explanation."""

    about: str
    replies: list[Reply] = field(default_factory=list)
    stop: Exception | None = None  #: RAGAS would swallow it


_TRAIL: ContextVar[_Trail] = ContextVar("trail")


class _Inconsistent(ValueError):  # noqa: N818 (the name is the reason that readers see)
    """The judge's verdicts do not match the claims."""


@dataclass(frozen=True)
class _Explanation:
    query: Query
    example: Example
    text: str | None

    @property
    def paper_text(self) -> str:
        """What the full prompt tells of the paper."""
        return describe_paper(self.example, ("title", "abstract", "disciplines", "keywords", "initial_category"))


def judge_explanations(rankings: Sequence[Candidates], judge: Ragas) -> list[JudgedExplanation]:
    """Return what RAGAS says of the explanations of the first ``judge.top`` papers of each ranking, in order.

    A paper that was graded but has no explanation is counted as without scores.
    """
    found = [
        _Explanation(table.query, Example(table.papers[i], table.columns["initial_category"][i]), text)
        for table in rankings
        if "explanation" in table.columns
        for i, text in enumerate(table.columns["explanation"][: judge.top])
        if table.columns["outcome"][i] is not None
    ]
    given = [explanation for explanation in found if explanation.text]
    judged = iter(asyncio.run(_judge_all(given, judge)) if given else [])
    return [next(judged) if explanation.text else _unexplained(explanation) for explanation in found]


def _unexplained(explanation: _Explanation) -> JudgedExplanation:
    query, faults = explanation.query, dict.fromkeys(SCORES, "no explanation")
    return JudgedExplanation(
        query.query_id, query.area, explanation.example.paper.paper_id, None, None, faults, 0, 0, 0, 0.0, 0.0
    )


async def _judge_all(explanations: Sequence[_Explanation], judge: Ragas) -> list[JudgedExplanation]:
    async with open_chat(judge.llm) as chat:
        ask = _ragas_llm(chat)
        gate = asyncio.Semaphore(judge.llm.concurrency)
        with progress(len(explanations), "judging explanations") as step:
            stopped = False

            async def one(explanation: _Explanation) -> JudgedExplanation | None:
                nonlocal stopped
                async with gate:
                    if stopped:
                        return None
                    try:
                        return await _judge(explanation, judge, ask)
                    except BaseException:
                        stopped = True
                        raise
                    finally:
                        step(1)

            first = await one(explanations[0])  # alone, so that a wrong key or model is told before others are sent
            others = await asyncio.gather(*map(one, explanations[1:]), return_exceptions=True)  # all are waited for
            judged = [first, *others]
    for entry in judged:
        if isinstance(entry, BaseException):
            raise entry
    return [entry for entry in judged if entry is not None and not isinstance(entry, BaseException)]


async def _judge(explanation: _Explanation, judge: Ragas, ask: InstructorBaseRagasLLM) -> JudgedExplanation:
    query, paper = explanation.query, explanation.example.paper
    trail = _Trail(f"query {query.query_id}, paper {paper.paper_id}, explanation")
    _TRAIL.set(trail)
    scores: dict[str, float | None] = {}
    faults: dict[str, str] = {}
    for name, score in (("faithfulness", _faithfulness), ("explanation_relevance", _relevance)):
        scores[name], reason = await _try(score(explanation, judge, ask), trail)
        if reason:
            faults[name] = reason
    relevance = scores["explanation_relevance"]
    answers = [reply.answer for reply in trail.replies if reply.answer is not None]
    new = [reply.answer for reply in trail.replies if reply.answer is not None and not reply.is_recorded]
    return JudgedExplanation(
        query_id=query.query_id,
        area=query.area,
        paper_id=paper.paper_id,
        faithfulness=scores["faithfulness"],
        explanation_relevance=None if relevance is None else int(relevance),
        faults=faults,
        requests=len(trail.replies),
        input_tokens=_total(answers, lambda answer: answer.input_tokens),
        output_tokens=_total(answers, lambda answer: answer.output_tokens),
        usd=_total(answers, lambda answer: answer.usd),
        paid_usd=_total(new, lambda answer: answer.usd),
    )


async def _try(score: Awaitable[float], trail: _Trail) -> tuple[float | None, str]:
    """Return a score, or None and why there is none; raise what must stop the run."""
    from instructor.core.exceptions import IncompleteOutputException, InstructorRetryException

    try:
        value = await score
    except IncompleteOutputException:
        return None, "truncated"
    except _Inconsistent:
        return None, "inconsistent verdicts"
    except InstructorRetryException as error:
        if trail.stop is not None:
            raise trail.stop from error
        answered = bool(trail.replies) and trail.replies[-1].answer is not None
        return None, "unparsable" if answered else "provider error"
    return (None, "no claims") if np.isnan(value) else (value, "")


async def _faithfulness(explanation: _Explanation, judge: Ragas, ask: InstructorBaseRagasLLM) -> float:  # noqa: ARG001
    from ragas.metrics.collections import Faithfulness

    class Checked(Faithfulness):
        """RAGAS takes any number of verdicts, and any number for a verdict."""

        async def _create_verdicts(self, statements: list[str], context: str) -> Any:
            verdicts = await super()._create_verdicts(statements, context)
            found = verdicts.statements
            if len(found) != len(statements) or any(entry.verdict not in (0, 1) for entry in found):
                raise _Inconsistent
            return verdicts

    result = await Checked(llm=ask).ascore(
        user_input=explanation.query.expanded,
        response=explanation.text or "",
        retrieved_contexts=[explanation.paper_text],
    )
    return float(result.value)


async def _relevance(explanation: _Explanation, judge: Ragas, ask: InstructorBaseRagasLLM) -> float:
    from ragas.metrics import DiscreteMetric

    template = judge.rubric.replace("{", "{{").replace("}", "}}")
    for word in ("QUERY", "PAPER", "EXPLANATION"):
        template = template.replace(word, f"{{{word.lower()}}}")
    metric = DiscreteMetric(name="explanation_relevance", allowed_values=["1", "2", "3"], prompt=template)
    result = await metric.ascore(
        llm=ask,
        query=explanation.query.expanded,
        paper=explanation.paper_text,
        explanation=explanation.text,
    )
    return float(result.value)


def _ragas_llm(chat: Chat) -> InstructorBaseRagasLLM:
    """Return what RAGAS asks: instructor over the ``openai`` package over our own client."""
    os.environ["RAGAS_DO_NOT_TRACK"] = "true"  # must be set before the import
    import instructor
    from openai import AsyncOpenAI
    from ragas.llms.base import InstructorLLM

    for name in ("instructor", "ragas"):  # what fails is counted and told by us
        logging.getLogger(name).setLevel(logging.CRITICAL)
    llm = chat.llm
    client = AsyncOpenAI(
        api_key="kept-by-our-client",
        base_url=llm.base_url,
        max_retries=0,
        http_client=httpx.AsyncClient(transport=_Transport(chat)),
    )
    modes: dict[ResponseFormat, instructor.Mode] = {
        "json_schema": instructor.Mode.JSON_SCHEMA,
        "json_object": instructor.Mode.JSON,
        "text": instructor.Mode.MD_JSON,
    }
    return InstructorLLM(
        client=instructor.from_openai(client, mode=modes[llm.response_format]),
        model=llm.model,
        provider="openai",
        temperature=llm.temperature,
        top_p=llm.top_p,
        max_tokens=llm.max_tokens,
        seed=llm.seed,
        max_retries=1,  # one repair, as in grading
    )


class _Transport(httpx.AsyncBaseTransport):
    """Answers the requests of the ``openai`` package by our own client, under the trail of the explanation."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the recorded or new answer in the form that the ``openai`` package reads."""
        trail = _TRAIL.get()
        body = with_provider(self._chat.llm, json.loads(request.content))
        try:
            reply = await self._chat.answer(Request(body, trail.about))
        except (UserError, OSError, EstimateOnly) as error:
            trail.stop = error
            return httpx.Response(403, json={"error": {"message": "stopped"}})
        trail.replies.append(reply)
        if reply.answer is None:
            return httpx.Response(502, json={"error": {"message": reply.fault}})
        return httpx.Response(200, json=_completion(reply.answer))


def _completion(answer: Answer) -> dict[str, Any]:
    message = {"role": "assistant", "content": answer.content, "refusal": answer.refusal}
    return {
        "id": answer.key,
        "object": "chat.completion",
        "created": 0,
        "model": answer.model or "",
        "choices": [{"index": 0, "message": message, "finish_reason": answer.finish_reason or "stop"}],
    }


def _total(answers: Sequence[Answer], amount: Callable[[Answer], float | None]) -> float | None:
    amounts = [amount(answer) for answer in answers]
    return None if None in amounts else sum(value for value in amounts if value is not None)
