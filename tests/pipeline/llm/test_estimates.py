"""What a run would ask and cost, with nothing sent."""

import pytest

from endpoint import Reply, completion, label
from grade_helpers import ask_all, candidates, grade, llm_at, questions
from pipeline.llm.estimates import EstimateOnly


def estimate(llm, asked):
    with pytest.raises(EstimateOnly) as told:
        ask_all(llm, asked)
    return told.value.estimate


@pytest.fixture
def server(endpoint):
    return endpoint(Reply(completion(label("low relevance"))))


def test_tokens_and_dollars_of_what_is_not_recorded(server, tmp_path):
    """Four questions of 10 bytes: 40 / 4 tokens in, 4 * 256 out, (10 * 10 + 1024 * 100) / 1e6 dollars."""
    path = tmp_path / "a.jsonl"
    ask_all(llm_at(server.url, path), 2)
    found = estimate(llm_at(server.url, path, mode="estimate"), 6)
    assert (found.requests, found.recorded, found.input_tokens, found.output_tokens) == (4, 2, 10, 1024)
    assert found.usd == pytest.approx(0.1025)
    assert str(found).startswith("asking by m: 4 requests (2 more are recorded), about 10 input tokens, at most 1024 ")
    assert "$0.1025" in str(found)
    assert server.received == 2


def test_an_unknown_price_is_told_as_such(server, tmp_path):
    found = estimate(llm_at(server.url, tmp_path / "a.jsonl", mode="estimate", prices=()), 1)
    assert found.usd is None
    assert "price not known" in str(found)
    assert "$" not in str(found)


def test_equal_requests_count_once(server, tmp_path):
    llm = llm_at(server.url, tmp_path / "a.jsonl", mode="estimate")
    assert estimate(llm, [*questions(llm, 2), *questions(llm, 2)]).requests == 2


def test_nothing_is_sent_or_written_and_no_key_is_needed(server, tmp_path, monkeypatch):
    monkeypatch.delenv("LLM_KEY", raising=False)
    llm = llm_at(server.url, tmp_path / "new" / "a.jsonl", mode="estimate", key_env="LLM_KEY")
    with pytest.raises(EstimateOnly) as told:
        grade(llm, candidates("highly relevant", "low relevance"), samples=3)
    assert told.value.estimate.requests == 2 * 3
    assert server.received == 0
    assert not (tmp_path / "new").exists()
