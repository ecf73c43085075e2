"""What tokens cost. A price is known for a model at an endpoint from a date on; an unknown price is None, never 0."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Annotated

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

PriceOfTokens = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Price:
    """US dollars for a million tokens of a model, as seen on a date."""

    endpoint: str  #: host of the endpoint, such as openrouter.ai
    model: str
    input: PriceOfTokens
    output: PriceOfTokens
    date: date

    def usd(self, input_tokens: int, output_tokens: int) -> float:
        """Return the price of an answer in US dollars."""
        return (input_tokens * self.input + output_tokens * self.output) / 1e6


def find_price(prices: Iterable[Price], endpoint: str, model: str, on: date) -> Price | None:
    """Return the latest price of the model at this endpoint that was seen on or before the day."""
    known = [price for price in prices if (price.endpoint, price.model) == (endpoint, model) and price.date <= on]
    return max(known, key=lambda price: price.date, default=None)
