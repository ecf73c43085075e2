"""Which language model is asked, how, and within what limits."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from pipeline.llm.prices import Price

Count = Annotated[int, Field(gt=0, le=1_000_000_000, strict=True)]  #: strict: true is no 1
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
ResponseFormat = Literal["json_schema", "json_object", "text"]

_REPAIR_TOKENS = 64  # what a request for a readable answer adds, besides the answer

#: The answers that come with the demo collection; ``recording: bundled`` in the config.
BUNDLED = Path(__file__).with_name("bundled.jsonl")


def _endpoint_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"{url} is no web address; expected something like https://openrouter.ai/api/v1")
    if parts.username or parts.password or parts.query:
        raise ValueError("an address with a password or a query would be stored; name a variable in key_env instead")
    return url.rstrip("/")


def _variable(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise ValueError("expected the name of an environment variable that holds the key, never the key itself")
    return name


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Llm:
    """A model behind an OpenAI-compatible endpoint; the paper's settings are those of its table 11."""

    model: Annotated[str, Field(min_length=1)]
    base_url: Annotated[str, AfterValidator(_endpoint_url)]
    mode: Literal["live", "record", "replay", "estimate"]
    recording: Path
    prices: tuple[Price, ...]
    key_env: Annotated[str, AfterValidator(_variable)] | None = (
        None  #: the environment variable that holds the key; None: the endpoint needs none
    )
    provider: str | None = None  #: who runs the model, where the endpoint is OpenRouter; there is no fallback
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    seed: int | None = 42
    max_tokens: Count = 256
    response_format: ResponseFormat = "json_schema"
    context_window: Count = 32_768
    concurrency: Count = 8
    attempts: Count = 6  #: requests for one answer, while the endpoint is overloaded or sends nothing usable
    backoff_s: Annotated[float, Field(ge=0, le=60)] = 1.0  #: first wait between them; doubled each time, with jitter
    deadline_s: Seconds = 300.0  #: for one answer, all attempts and waits included
    max_usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None

    @model_validator(mode="after")
    def _has_room_for_a_prompt(self) -> Llm:
        if self.prompt_tokens <= 0:
            raise ValueError(
                f"max_tokens={self.max_tokens} leaves no room for a prompt in context_window={self.context_window}: a "
                "longer answer and a repair must fit too"
            )
        return self

    @property
    def prompt_tokens(self) -> int:
        """What a prompt may take, so that a repair, or an answer of twice the length, still fits into the window."""
        return self.context_window - 2 * self.max_tokens - _REPAIR_TOKENS

    @property
    def endpoint(self) -> str:
        """The host that answers: what tells one family of endpoints from another, whatever the port."""
        return urlsplit(self.base_url).hostname or ""

    @property
    def recording_file(self) -> Path:
        """Where answers are kept."""
        return BUNDLED if self._is_bundled else self.recording

    @property
    def recording_name(self) -> str:
        """What a user calls it."""
        return "the bundled answers" if self._is_bundled else str(self.recording)

    @property
    def _is_bundled(self) -> bool:
        return str(self.recording) == "bundled"
