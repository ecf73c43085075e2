"""What is sent to a model, the key under which its answer is kept, and a bound of its tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.cache import content_key
from pipeline.llm.settings import Llm

_OPENROUTER = "openrouter.ai"
_TOKENS_A_MESSAGE = 16  # what chat templates add, at most


Message = Mapping[str, str]


@dataclass(frozen=True)
class Request:
    """One request: what is sent, and the query and paper it is about."""

    body: Mapping[str, Any]
    about: str


def make_request(
    llm: Llm,
    messages: Sequence[Message],
    about: str,
    *,
    schema: Mapping[str, Any] | None = None,
    logprobs: bool = False,
    **changed: Any,
) -> Request:
    """Return a request with the settings of ``llm``, or others where ``changed`` names them.

    ``schema`` is of the JSON object wanted; how it is asked for depends on what the endpoint offers.
    """
    body: dict[str, Any] = {
        "model": llm.model,
        "messages": list(messages),
        "temperature": llm.temperature,
        "top_p": llm.top_p,
        "max_tokens": llm.max_tokens,
    }
    if llm.seed is not None:
        body["seed"] = llm.seed
    if schema is not None and llm.response_format == "json_schema":
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": schema},
        }
    elif schema is not None and llm.response_format == "json_object":
        body["response_format"] = {"type": "json_object"}
    if logprobs:
        body |= {"logprobs": True, "top_logprobs": 20}
    return Request(with_provider(llm, body | changed), about)


def with_provider(llm: Llm, body: dict[str, Any]) -> dict[str, Any]:
    """Return the body with the provider pinned, where the endpoint is OpenRouter and one is named."""
    if not f".{llm.endpoint}".endswith(f".{_OPENROUTER}"):
        return body
    pinned = {"provider": {"order": [llm.provider], "allow_fallbacks": False}} if llm.provider else {}
    return body | pinned | {"usage": {"include": True}}


def request_key(llm: Llm, body: Mapping[str, Any]) -> str:
    """Return the content key of an answer: everything it depends on, and nothing else."""
    return content_key("chat", llm.endpoint, body).hex()


def most_output_tokens(body: Mapping[str, Any]) -> int:
    """Return the limit of tokens of the answer, under either of its names."""
    limit: int = body.get("max_tokens") or body["max_completion_tokens"]
    return limit


def most_input_tokens(body: Mapping[str, Any]) -> int:
    """Return a bound of the tokens of a prompt: a token stands for at least one byte."""
    return sum(len(message["content"].encode()) + _TOKENS_A_MESSAGE for message in body["messages"])
