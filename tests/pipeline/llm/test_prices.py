"""Money: golden prices, unknown ones, and what the endpoint says itself."""

from datetime import date

import pytest
import yaml
from pydantic import ValidationError

from conftest import ROOT
from endpoint import Reply, completion
from grade_helpers import PRICE, ask_all, llm_at
from pipeline.llm.prices import Price, find_price

MISTRAL = ("openrouter.ai", "mistralai/mistral-small-24b-instruct-2501")


def price(day: str, usd: float = 1.0) -> Price:
    return Price(endpoint="openrouter.ai", model="m", input=usd, output=usd, date=date.fromisoformat(day))


def test_the_price_of_a_paper_in_the_paper():
    """5353.574 input and 120.298 output tokens on average (section 5.1.3): (5353.574 * 0.05 + 120.298 * 0.08) / 1e6."""
    shipped = yaml.safe_load((ROOT / "conf" / "prices" / "usd.yaml").read_text())["per_million"]
    known = find_price([Price(**entry) for entry in shipped], *MISTRAL, date(2026, 11, 1))
    a_thousand_papers = known.usd(5_353_574, 120_298)
    assert a_thousand_papers == pytest.approx(0.2676787 + 0.00962384)
    assert round(a_thousand_papers / 1000, 6) == 0.000277


@pytest.mark.parametrize(
    ("day", "usd"),
    [("2025-12-31", None), ("2026-01-01", 1), ("2026-05-31", 1), ("2026-06-01", 2), ("2027-01-01", 2)],
)
def test_the_price_of_a_day_is_the_latest_that_was_known(day, usd):
    prices = [price("2026-06-01", 2), price("2026-01-01", 1)]
    found = find_price(prices, "openrouter.ai", "m", date.fromisoformat(day))
    assert (found and found.input) == usd


@pytest.mark.parametrize(("endpoint", "model"), [("api.openai.com", "m"), ("openrouter.ai", "m2"), ("127.0.0.1", "m")])
def test_a_price_is_of_one_model_at_one_endpoint(endpoint, model):
    assert find_price([price("2026-01-01")], endpoint, model, date(2026, 6, 1)) is None


@pytest.mark.parametrize("amount", [-0.1, float("nan"), float("inf")])
def test_a_price_that_is_none_is_refused(amount):
    with pytest.raises(ValidationError):
        price("2026-01-01", amount)


def without(name: str | None) -> dict:
    body = completion("x")
    if name is None:
        return body | {"usage": None}
    del body["usage"][name]
    return body


#: Body, prices, and the dollars that are known.
COSTS = {
    "by the table": (completion("x"), (PRICE,), (100 * 10 + 10 * 100) / 1e6),
    "charged": (completion("x", cost=0.5), (PRICE,), 0.5),
    "charged, no price known": (completion("x", cost=0.5), (), 0.5),
    "free, as the endpoint says": (completion("x", cost=0), (PRICE,), 0.0),
    "no price": (completion("x"), (), None),
    "price at another endpoint": (completion("x"), (price("2026-01-01"),), None),
    "no input tokens": (without("prompt_tokens"), (PRICE,), None),
    "no output tokens": (without("completion_tokens"), (PRICE,), None),
    "no usage": (without(None), (PRICE,), None),
    "tokens a text": (completion("x") | {"usage": {"prompt_tokens": "9", "completion_tokens": 9}}, (PRICE,), None),
    "tokens true": (completion("x") | {"usage": {"prompt_tokens": True, "completion_tokens": 9}}, (PRICE,), None),
    "charge true": (completion("x", cost=True), (PRICE,), 0.002),
    "charge NaN": (completion("x", cost=float("nan")), (PRICE,), 0.002),
    "charge below 0": (completion("x", cost=-1.0), (PRICE,), 0.002),
}


@pytest.mark.parametrize(("body", "prices", "usd"), COSTS.values(), ids=COSTS)
def test_what_an_answer_cost_is_what_is_known_never_zero(endpoint, tmp_path, body, prices, usd):
    (reply,) = ask_all(llm_at(endpoint(Reply(body)).url, tmp_path / "a.jsonl", prices=prices), 1)
    assert reply.answer.usd == (None if usd is None else pytest.approx(usd))
