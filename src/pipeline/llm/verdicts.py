"""What a model's answer says: a category, an expected grade, an explanation, or why there is none.

A failure of the model is never a grade: it is an outcome of its own, counted and shown.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import yaml

from pipeline.llm.answers import Answer
from pipeline.llm.chat import Reply
from pipeline.papers import CATEGORIES


class Outcome(StrEnum):
    """What became of asking about one paper."""

    GRADED = "graded"
    REFUSED = "refused"  #: the model declines to judge
    UNPARSABLE = "unparsable"  #: an answer without the JSON object or digit asked for, or with two that differ
    OUT_OF_RANGE = "out_of_range"  #: an object whose category is none of the four
    TRUNCATED = "truncated"  #: cut off at the limit of tokens
    EMPTY = "empty"  #: no text
    PROVIDER_ERROR = "provider_error"  #: no answer at all


@dataclass(frozen=True)
class Verdict:
    """What an answer says; category and grade are None unless the outcome is ``graded``."""

    outcome: Outcome
    category: str | None = None
    explanation: str | None = None
    expected_grade: float | None = None  #: 0 to 3


_HIGH, _MODERATE, _SOMEWHAT, _LOW = reversed(CATEGORIES)
_SYNONYMS = {
    **dict.fromkeys(["highly relevant", "highly", "high", "high relevance", "very relevant"], _HIGH),
    **dict.fromkeys(["moderately relevant", "moderately", "moderate", "moderate relevance"], _MODERATE),
    **dict.fromkeys(["somewhat relevant", "somewhat", "slightly relevant", "partially relevant"], _SOMEWHAT),
    **dict.fromkeys(["low relevance", "low", "lowly relevant", "low relevant", "not relevant", "irrelevant"], _LOW),
}
_REFUSAL = re.compile(
    r"^\W*(?:i['\u2019]?m sorry|i am sorry|sorry|i apologi[sz]e|as an ai\b|"
    r"i (?:can(?:no|['\u2019])?t|am unable|won['\u2019]t|will not|decline|must decline)\b|i['\u2019]m unable\b)",
    re.IGNORECASE,
)
_THOUGHT = re.compile(r"\A.*</think>|<think>.*\Z", re.DOTALL)  # the start may stand in the prompt
_DIGIT = re.compile(r"[\s\"'`*]*[0-3](?!\w|\.\d|[ ]*(?:[\d%/\u2013-]|or\b|out\b|to\b))")
_MIN_DIGIT_MASS = 0.5  # of the probability at the position of the digit that must lie on 0 to 3


def read_label(reply: Reply) -> Verdict:
    """Read the JSON answer with a category and, where there is one, an explanation."""
    found = _find(reply, "category")
    if isinstance(found, Outcome):
        return Verdict(found)
    category = find_category(found["category"])
    if category is None:
        return Verdict(Outcome.OUT_OF_RANGE)
    return Verdict(Outcome.GRADED, category, _text(found.get("explanation")))


def read_explanation(reply: Reply) -> Verdict:
    """Read the JSON answer with an explanation alone."""
    found = _find(reply, "explanation")
    if isinstance(found, Outcome):
        return Verdict(found)
    text = _text(found["explanation"])
    return Verdict(Outcome.EMPTY) if text is None else Verdict(Outcome.GRADED, explanation=text)


def read_digit(reply: Reply) -> Verdict:
    """Read the expected grade from the probabilities of the digits 0 to 3 where the answer has its digit."""
    answer = reply.answer
    if answer is None:
        return Verdict(Outcome.PROVIDER_ERROR)
    positions = answer.logprobs if _DIGIT.match(answer.content or "") else None
    for position in positions or []:
        if re.fullmatch(r"\s*[0-3]\s*", position["token"]):
            mass = [0.0] * len(CATEGORIES)
            for token, logprob in position["top"].items():
                if re.fullmatch(r"\s*[0-3]\s*", token):
                    mass[int(token)] += math.exp(logprob)
            if not sum(mass) >= _MIN_DIGIT_MASS:
                return Verdict(Outcome.UNPARSABLE)
            expected = sum(grade * share for grade, share in enumerate(mass)) / sum(mass)
            return Verdict(Outcome.GRADED, expected_grade=round(expected, 9))
    return Verdict(_without_object(answer))


def find_category(value: Any) -> str | None:
    """Return the category that a model's word stands for, or None."""
    words = re.sub(r"[\s_-]+", " ", value).strip(" .'\"*").lower() if isinstance(value, str) else ""
    return _SYNONYMS.get(words)


def _find(reply: Reply, wanted: str) -> dict[str, Any] | Outcome:
    """Return the object that has this key; where there is none, or several that differ in it, the outcome."""
    answer = reply.answer
    if answer is None:
        return Outcome.PROVIDER_ERROR
    text = _THOUGHT.sub("", answer.content or "")
    found = [
        lowered for entry in _objects(text) if wanted in (lowered := {str(k).lower(): v for k, v in entry.items()})
    ]
    if answer.refusal or not found:
        return _without_object(answer)
    values = {find_category(entry[wanted]) or str(entry[wanted]) for entry in found}
    return found[0] if len(values) == 1 else Outcome.UNPARSABLE


def _without_object(answer: Answer) -> Outcome:
    content = _THOUGHT.sub("", answer.content or "").strip()
    if answer.refusal or answer.finish_reason == "content_filter" or _REFUSAL.match(content):
        return Outcome.REFUSED
    if answer.finish_reason == "length":
        return Outcome.TRUNCATED
    return Outcome.UNPARSABLE if content else Outcome.EMPTY


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a text that may hold other things; objects that are nearly JSON count as well."""
    decoder, start = json.JSONDecoder(strict=False), text.find("{")
    while start >= 0:
        try:
            entry, end = decoder.raw_decode(text, start)
        except RecursionError:
            return  # nothing that was asked for is nested like this
        except ValueError:
            entry, end = _nearly_json(text, start)
        if isinstance(entry, dict):
            yield entry
        start = text.find("{", end)


def _nearly_json(text: str, start: int) -> tuple[Any, int]:
    """Read ``{...}`` with single quotes, trailing commas or bare keys, which YAML allows; (None, where to go on)."""
    end = text.find("}", start) + 1
    if not end:
        return None, start + 1
    try:
        found = yaml.safe_load(text[start:end].replace("\t", " "))
    except (yaml.YAMLError, ValueError, RecursionError):
        return None, start + 1
    is_filled = isinstance(found, dict) and any(value is not None for value in found.values())
    return (found if is_filled else None), end


def _text(value: Any) -> str | None:
    return value.strip() or None if isinstance(value, str) else None
