"""An answer of a model: what it said, who said it, and what it took."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pipeline.llm.prices import find_price
from pipeline.llm.settings import Llm

#: One token of an answer: ``{"token": the one chosen, "top": {token: log probability} of the likeliest}``.
Position = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """What a model said to one request, and what it took. ``None`` is unknown, never 0."""

    key: str  #: sha256 over endpoint, model, parameters and messages
    about: str  #: the query and paper, for people
    date: str
    latency_s: float
    content: str | None = None
    finish_reason: str | None = None
    refusal: str | None = None
    model: str | None = None  #: that answered; may differ from the one asked
    provider: str | None = None
    fingerprint: str | None = None  #: of the system that answered, where it tells
    input_tokens: int | None = None
    output_tokens: int | None = None
    usd: float | None = None  #: what the endpoint charged, otherwise by the price table; None: unknown price
    logprobs: list[Position] | None = None


def read_answer(raw: Mapping[str, Any], llm: Llm, key: str, about: str, latency_s: float) -> Answer:
    """Return the answer in what the endpoint sent. What it charged goes before the price table."""
    now = datetime.now(UTC)
    choice, usage = raw["choices"][0], raw.get("usage")
    message, usage = choice["message"], usage if isinstance(usage, dict) else {}
    n_input, n_output = (_count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens"))
    usd = usage.get("cost")
    if isinstance(usd, bool) or not isinstance(usd, int | float) or not 0 <= usd < math.inf:
        price = find_price(llm.prices, llm.endpoint, llm.model, now.date())
        usd = None if price is None or n_input is None or n_output is None else price.usd(n_input, n_output)
    return Answer(
        key=key,
        about=about,
        date=now.isoformat(timespec="seconds"),
        latency_s=round(latency_s, 3),
        content=_text(message.get("content")),
        finish_reason=_text(choice.get("finish_reason")),
        refusal=_text(message.get("refusal")),
        model=_text(raw.get("model")),
        provider=_text(raw.get("provider")),
        fingerprint=_text(raw.get("system_fingerprint")),
        input_tokens=n_input,
        output_tokens=n_output,
        usd=usd,
        logprobs=_positions(choice.get("logprobs")),
    )


def _count(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _text(value: object) -> str | None:
    """Return a text that can be stored: half of a surrogate pair becomes a question mark."""
    return None if value is None else str(value).encode(errors="replace").decode()


def _positions(logprobs: Any) -> list[Position] | None:
    """Keep what is needed of the log probabilities, or None where there are none in the usual form."""
    try:
        return [
            {
                "token": str(entry["token"]),
                "top": {str(t["token"]): round(t["logprob"], 6) for t in entry["top_logprobs"] if t["logprob"] < 0.01},
            }
            for entry in logprobs["content"]
        ] or None
    except (TypeError, KeyError):
        return None
