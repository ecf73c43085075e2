"""What a run would ask a model, and what that would cost, without asking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pipeline.llm.prices import find_price
from pipeline.llm.recordings import Recording
from pipeline.llm.requests import Request, most_output_tokens, request_key
from pipeline.llm.settings import Llm

_BYTES_A_TOKEN = 4  # of English text, roughly


@dataclass(frozen=True)
class Estimate:
    """Requests, tokens and dollars of what is not recorded yet."""

    what: str
    model: str
    requests: int
    recorded: int  #: further requests whose answers are known already
    input_tokens: int  #: about
    output_tokens: int  #: at most
    usd: float | None  #: at most, as far as the tokens of the prompts are right; None: the price is not known

    def __str__(self) -> str:
        """Return the line that a user reads."""
        dollars = "price not known" if self.usd is None else f"at most about ${self.usd:.4f}"
        return (
            f"{self.what} by {self.model}: {self.requests} requests ({self.recorded} more are recorded), about "
            f"{self.input_tokens} input tokens, at most {self.output_tokens} output tokens, {dollars}; "
            "repairs of bad answers not counted"
        )


class EstimateOnly(Exception):  # noqa: N818 (no error: the run ends here as asked)
    """Raised in place of asking when ``llm.mode`` is ``estimate``."""

    def __init__(self, estimate: Estimate) -> None:
        super().__init__(str(estimate))
        self.estimate = estimate


def estimate(llm: Llm, recording: Recording, requests: Sequence[Request], what: str) -> Estimate:
    """Return what these requests would take: prompts at four bytes a token, answers at their longest."""
    bodies = {request_key(llm, request.body): request.body for request in requests}
    asked = [body for key, body in bodies.items() if recording.get(key) is None]
    n_bytes = sum(len(message["content"].encode()) for body in asked for message in body["messages"])
    tokens = n_bytes // _BYTES_A_TOKEN, sum(most_output_tokens(body) for body in asked)
    price = find_price(llm.prices, llm.endpoint, llm.model, datetime.now(UTC).date())
    usd = None if price is None else price.usd(*tokens)
    return Estimate(what, llm.model, len(asked), len(bodies) - len(asked), *tokens, usd)
