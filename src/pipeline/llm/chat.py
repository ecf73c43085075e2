"""Ask a model many things: from the recording where the answer is known, otherwise paid for once and recorded."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pipeline.errors import MissingError, UserError
from pipeline.llm.answers import Answer, read_answer
from pipeline.llm.endpoint import ProviderError, open_client, request_answer
from pipeline.llm.estimates import EstimateOnly, estimate
from pipeline.llm.prices import find_price
from pipeline.llm.recordings import Recording
from pipeline.llm.requests import Request, most_input_tokens, most_output_tokens, request_key
from pipeline.llm.settings import Llm
from pipeline.progress import progress

if TYPE_CHECKING:
    from openai import AsyncOpenAI

log = logging.getLogger(__name__)


class NoAnswerError(MissingError):
    """A recording that is replayed lacks an answer."""


@dataclass(frozen=True)
class Reply:
    """What came of a request: an answer, new or recorded, or why there is none."""

    answer: Answer | None
    is_recorded: bool = False
    fault: str = ""


@dataclass
class Chat:
    """An open line to one endpoint: the recording, the client, and what was spent."""

    llm: Llm
    recording: Recording
    client: AsyncOpenAI | None = None
    spent_usd: float = 0.0
    reserved: dict[str, float] = field(default_factory=dict)  #: key of a request under way -> the most it can cost
    returned: asyncio.Condition = field(default_factory=asyncio.Condition)  #: told when an answer came
    locks: dict[str, asyncio.Lock] = field(default_factory=dict)  #: by key, so that nothing is asked twice at a time

    async def answer(self, request: Request) -> Reply:
        """Return the recorded answer to a request, or else ask and record.

        Raises ``UserError`` where nothing more can be asked: no key, no money, no recorded answer.
        """
        key = request_key(self.llm, request.body)
        async with self.locks.setdefault(key, asyncio.Lock()):
            return await self._answer(key, request)

    async def _answer(self, key: str, request: Request) -> Reply:
        known = self.recording.get(key) if self.llm.mode != "live" else None
        if known is not None and (self.llm.mode == "replay" or _is_complete(known, request)):
            return Reply(known, is_recorded=True)
        if self.llm.mode == "replay":
            there = "no answer to this model, prompt and paper in" if len(self.recording) else "nothing is recorded in"
            raise NoAnswerError(
                f"{request.about}: {there} {self.llm.recording_name}; "
                "to ask a model and record what it says: llm=mistral or llm=local with llm.mode=record"
            )
        if self.llm.mode == "estimate":
            raise EstimateOnly(estimate(self.llm, self.recording, [request], request.about))
        try:
            return Reply(await self._ask(key, request))
        except ProviderError as error:
            log.warning("%s: %s", request.about, error)
            return Reply(None, fault=str(error))

    async def answer_all(
        self,
        requests: Sequence[Request],
        what: str,
        check: Callable[[Reply], object],
        max_failed: float = 1.0,
    ) -> list[Reply]:
        """Return the replies in the order of the requests, whatever the order in which they came.

        The first request goes alone: a wrong key or model is told before others are sent. ``check`` sees every reply
        as it comes and raises ``UserError`` where going on makes no sense; so does a share of requests without any
        answer above ``max_failed``. Answers under way are then still waited for and recorded.
        """
        if self.llm.mode == "estimate":
            raise EstimateOnly(estimate(self.llm, self.recording, requests, what))
        waiting = {request_key(self.llm, request.body): request for request in reversed(requests)}
        replies: dict[str, Reply] = {}
        faults: list[str] = []
        stopped: list[Exception] = []
        with progress(len(waiting), what) as step:

            async def answer_next() -> None:
                key, request = waiting.popitem()  # the last, which is the first request
                try:
                    replies[key] = reply = await self.answer(request)
                    check(reply)
                    faults.extend([reply.fault] if reply.answer is None else [])
                    if len(faults) > max_failed * len(requests):
                        raise UserError(
                            f"{len(faults)} of {len(requests)} requests got no answer, more than grade.max_ungraded "
                            f"allows: {faults[-1]}"
                        )
                except (UserError, OSError) as error:
                    stopped.append(error)
                step(1)

            async def work() -> None:
                while waiting and not stopped:
                    await answer_next()

            while waiting and not stopped and self.client is None:  # until one was really sent
                await answer_next()
            await asyncio.gather(*(work() for _ in range(self.llm.concurrency)))
        if stopped:
            raise stopped[0]
        return _in_order(replies, [request_key(self.llm, request.body) for request in requests])

    async def _ask(self, key: str, request: Request) -> Answer:
        if self.client is None:
            self.client = open_client(self.llm)
        most = await self._reserve(key, request.body)
        try:
            raw, latency_s = await request_answer(self.client, self.llm, request.body)
            answer = read_answer(raw, self.llm, key, request.about, latency_s)
            self.spent_usd += most if answer.usd is None else answer.usd
        finally:
            async with self.returned:
                self.reserved.pop(key, None)
                self.returned.notify_all()
        self.recording.add(answer)
        return answer

    async def _reserve(self, key: str, body: Mapping[str, Any]) -> float:
        """Set aside the most that an answer can cost, so that requests under way together cannot pass the limit."""
        llm = self.llm
        if llm.max_usd is None:
            return 0.0
        price = find_price(llm.prices, llm.endpoint, body["model"], datetime.now(UTC).date())
        if price is None:
            raise UserError(
                f"llm.max_usd={llm.max_usd:g} cannot be kept: the price of {body['model']} at {llm.endpoint} is not in "
                "conf/prices; add it there, or set llm.max_usd=null"
            )
        most, limit = price.usd(most_input_tokens(body), most_output_tokens(body)), llm.max_usd
        async with self.returned:  # what is set aside for others may not be used up
            await self.returned.wait_for(lambda: not self.reserved or self._would_be(most) <= limit)
            if self._would_be(most) <= limit:
                self.reserved[key] = most
        if key not in self.reserved:
            raise UserError(
                f"llm.max_usd={llm.max_usd:g} would be passed: ${self.spent_usd:.6f} spent in this run; "
                "every answer so far is recorded, so raise the limit and run again"
            )
        return most

    def _would_be(self, most: float) -> float:
        """Return what is spent at most when everything under way, and this, is answered."""
        return self.spent_usd + sum(self.reserved.values()) + most


def _is_complete(answer: Answer, request: Request) -> bool:
    """Whether an answer has what the request asks for: an endpoint may have given no log probabilities once."""
    return not request.body.get("logprobs") or answer.logprobs is not None or not answer.content


def _in_order(replies: Mapping[str, Reply], keys: Iterable[str]) -> list[Reply]:
    """Return the reply of each key; where a key comes again, its answer is a known one, not paid again."""
    ordered, seen = [], set[str]()
    for key in keys:
        ordered.append(replace(replies[key], is_recorded=True) if key in seen else replies[key])
        seen.add(key)
    return ordered


@asynccontextmanager
async def open_chat(llm: Llm) -> AsyncIterator[Chat]:
    """Open a recording; where answers are asked for, keep other processes from asking for the same ones."""
    with ExitStack() as stack:
        recording = Recording(llm.recording_file)
        if llm.mode in {"live", "record"}:
            stack.enter_context(recording.locked())
        chat = Chat(llm, recording)
        try:
            yield chat
        finally:
            if chat.client is not None:
                await chat.client.close()
