"""Ask with one repair: an answer that cannot be read is asked for once more, then counted as what it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.llm.chat import Chat, Reply
from pipeline.llm.requests import Request
from pipeline.llm.verdicts import Outcome, Verdict

_REPAIRABLE = {Outcome.UNPARSABLE, Outcome.OUT_OF_RANGE, Outcome.EMPTY, Outcome.TRUNCATED}
_LONGER = 2  # times the limit of tokens, for an answer that was cut off
_REPAIR = "This cannot be read. Give the answer again, exactly in the form asked for and with nothing around it."


@dataclass(frozen=True)
class Asked:
    """What came of one question: the verdict, and the one or two replies that it took."""

    verdict: Verdict
    replies: tuple[Reply, ...]


async def ask(
    chat: Chat,
    requests: Sequence[Request],
    read: Callable[[Reply], Verdict],
    what: str,
    max_failed: float = 1.0,
) -> list[Asked]:
    """Return what came of each request; of an answer cut off, a longer one is asked for. Refusals are final.

    ``max_failed`` is the share of requests that may stay without any answer before the others are given up.
    """
    first = await chat.answer_all(requests, what, read, max_failed)
    asked = [Asked(read(reply), (reply,)) for reply in first]
    again = {i: _repair(requests[i], found) for i, found in enumerate(asked) if found.verdict.outcome in _REPAIRABLE}
    second = await chat.answer_all(list(again.values()), f"{what}: repairs", read) if again else []
    for i, reply in zip(again, second, strict=True):
        asked[i] = Asked(read(reply), (*asked[i].replies, reply))
    return asked


def _repair(request: Request, asked: Asked) -> Request:
    body = dict(request.body)
    if asked.verdict.outcome == Outcome.TRUNCATED:
        body["max_tokens"] *= _LONGER
    else:
        answer = asked.replies[0].answer
        said = ((answer.content if answer else None) or "").strip()
        shown = [{"role": "assistant", "content": said}] if said else []  # some endpoints refuse an empty message
        body["messages"] = [*body["messages"], *shown, {"role": "user", "content": _REPAIR}]
    return Request(body, request.about)
