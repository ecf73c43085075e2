"""One answer from an OpenAI-compatible endpoint: sent, retried while that can help, and read with care."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pipeline.errors import UserError, first_line
from pipeline.llm.settings import Llm
from pipeline.waiting import asked_wait_s, wait_s

if TYPE_CHECKING:
    import httpx
    from openai import AsyncOpenAI

log = logging.getLogger(__name__)

_MAY_GET_BETTER = {408, 409, 425, 429}  # and 5xx
_ABOUT_THIS_REQUEST = {400, 413, 422}  # the others, such as 401 or 404, meet every request alike
_SHORTEST_KEY = 8  # a shorter word is no secret, and may be part of an answer
_NO_KEY = "none-needed"  # the openai package insists on one


class ProviderError(Exception):
    """The endpoint gave no usable answer to this request, whatever was tried."""


class _FaultError(Exception):
    """One attempt failed."""

    def __init__(self, status: int | None, message: str, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.wait_s = wait_s  #: what the endpoint asked to wait


def open_client(llm: Llm) -> AsyncOpenAI:
    """Return a client of the ``openai`` package; raise ``UserError`` where the key is missing."""
    import httpx
    from openai import AsyncOpenAI

    return AsyncOpenAI(
        api_key=_key(llm),
        base_url=llm.base_url,
        max_retries=0,  # retried here, where a fault inside a 200 is seen too
        timeout=httpx.Timeout(llm.deadline_s, connect=min(10.0, llm.deadline_s)),
        default_headers={"User-Agent": "litgrade"},
    )


def _key(llm: Llm) -> str:
    if llm.key_env is None:
        return _NO_KEY
    key = os.environ.get(llm.key_env, "").strip()
    if not key.isascii() or not key.isprintable():
        raise UserError(f"the key in {llm.key_env} holds characters that no key has; copy it again")
    if not key:
        raise UserError(
            f"the key for {llm.endpoint} is missing: set the environment variable {llm.key_env}, "
            "or use llm=recorded, which needs none"
        )
    return key


async def request_answer(client: AsyncOpenAI, llm: Llm, body: Mapping[str, Any]) -> tuple[dict[str, Any], float]:
    """Return the endpoint's answer as it came and the seconds that the last attempt took.

    Raises ``ProviderError`` for a fault of this request, ``UserError`` for one that every request would meet.
    """
    started, faults = time.monotonic(), 0
    while True:
        attempt = time.monotonic()
        left = llm.deadline_s - (attempt - started)
        try:
            async with asyncio.timeout(left):
                answer = await _attempt(client, body)
        except TimeoutError as error:
            raise ProviderError(f"no answer within {llm.deadline_s:g} s (llm.deadline_s)") from error
        except _FaultError as fault:
            faults += 1
            wait = wait_s(llm.backoff_s, faults, fault.wait_s)
            left = llm.deadline_s - (time.monotonic() - started)
            _give_up_or_go_on(fault, llm, faults, wait, left)
            log.debug("%s; again in %.1f s", fault, wait)
            await asyncio.sleep(wait)
        else:
            return answer, time.monotonic() - attempt


def _give_up_or_go_on(fault: _FaultError, llm: Llm, faults: int, wait: float, left: float) -> None:
    """Return where another attempt makes sense, raise where it does not."""
    what = f"{llm.endpoint}: {first_line(fault)}"
    if fault.status is not None and fault.status not in _MAY_GET_BETTER and fault.status < 500:
        if fault.status in _ABOUT_THIS_REQUEST:
            raise ProviderError(what) from fault
        raise UserError(f"{what}{_remedy(fault.status, llm)}") from fault
    if faults >= llm.attempts and _is_unreachable(fault):
        raise UserError(f"{what}; is there a server at {llm.base_url}?") from fault
    if faults >= llm.attempts:
        raise ProviderError(f"{what}; {faults} attempts (llm.attempts)") from fault
    if wait >= left:
        raise ProviderError(f"{what}; to wait {wait:.0f} s would pass llm.deadline_s={llm.deadline_s:g}") from fault


def _is_unreachable(fault: _FaultError) -> bool:
    import httpx

    cause = fault.__cause__
    return cause is not None and isinstance(cause.__cause__, httpx.ConnectError)


def _remedy(status: int, llm: Llm) -> str:
    if status in {401, 403}:
        return f"; check the key in {llm.key_env}" if llm.key_env else "; the endpoint wants a key: set llm.key_env"
    if status == 402:
        return "; answers so far are recorded, add credits and run again"
    if status == 404:
        return f"; check llm.base_url={llm.base_url} and llm.model={llm.model}"
    return "; nothing that was answered is lost, run again later"


async def _attempt(client: AsyncOpenAI, body: Mapping[str, Any]) -> dict[str, Any]:
    import httpx
    import openai

    try:
        response = await client.post("/chat/completions", cast_to=httpx.Response, body=dict(body))
    except openai.APIStatusError as error:
        raise _fault_of(_read(error.response, client), error.response) from error
    except openai.APIConnectionError as error:  # time-outs too
        raise _FaultError(None, f"{first_line(error)} ({type(error.__cause__ or error).__name__})") from error
    return _checked(_read(response, client), response)


def _read(response: httpx.Response, client: AsyncOpenAI) -> Any:
    """Return the JSON of a body, or its text where it is none; a key that the endpoint repeats is blotted out."""
    try:
        return _blotted(json.loads(response.text), client.api_key)
    except (ValueError, RecursionError):
        return _blotted(response.text.strip(), client.api_key)


def _blotted(value: Any, key: str) -> Any:
    if isinstance(value, str):
        return value if len(key) < _SHORTEST_KEY or key == _NO_KEY else value.replace(key, "***")
    if isinstance(value, list):
        return [_blotted(entry, key) for entry in value]
    if isinstance(value, dict):
        return {_blotted(name, key): _blotted(entry, key) for name, entry in value.items()}
    return value


def _checked(answer: Any, response: httpx.Response) -> dict[str, Any]:
    """Return the answer, or raise what a 200 may hide: an error object, no object, no choice."""
    if not isinstance(answer, dict):
        raise _FaultError(None, f"sent no JSON object but {answer!r:.80}")
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    hidden = answer.get("error") or (choice.get("error") if isinstance(choice, dict) else None)
    if hidden:
        raise _fault_of(hidden, response)
    if not isinstance(choice, dict) or not isinstance(choice.get("message"), dict):
        raise _FaultError(None, "sent an answer without a choice")
    if choice.get("finish_reason") == "error":
        raise _FaultError(None, "broke off with an error")
    return answer


def _fault_of(answer: Any, response: httpx.Response) -> _FaultError:
    """Read an error object of an endpoint; its code is a number, at times a text, at times missing."""
    error = answer.get("error", answer) if isinstance(answer, dict) else answer
    entry = error if isinstance(error, dict) else {"message": error}
    code, metadata = entry.get("code"), entry.get("metadata")
    status = int(code) if code is not None and re.fullmatch("[45][0-9][0-9]", str(code)) else None
    if response.is_error:
        status = response.status_code
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    text = " ".join(str(part) for part in (entry.get("message") or entry, raw) if part)[:500]
    if code == "insufficient_quota" or "free-models-per-day" in text:
        status = 402  # no attempt helps before money or the next day comes
    if status == 403 and re.search("flagged|moderat", json.dumps(answer, default=str)):
        status = 422  # about the text of this request, not about the key
    return _FaultError(status, f"HTTP {status or response.status_code}: {text}", asked_wait_s(response.headers))
