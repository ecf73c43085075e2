"""One repair of an answer that cannot be read or was cut off."""

import pytest

from endpoint import Reply, completion, label
from grade_helpers import USD_AN_ANSWER, candidates, grade, llm_at
from pipeline.papers import Paper

HIGH, LOW = "highly relevant", "low relevance"
CUT = {"finish_reason": "length"}
GOOD = Reply(completion(label(LOW)))


@pytest.fixture
def recording(tmp_path):
    return tmp_path / "answers.jsonl"


def test_a_repair_shows_the_answer_and_asks_again(endpoint, recording):
    server = endpoint(lambda n, body: Reply(completion(label(HIGH) if n else "It is highly relevant.")))
    (row,) = grade(llm_at(server.url, recording), candidates(LOW))
    first, second = server.bodies
    assert second["messages"][:2] == first["messages"]
    assert [m["role"] for m in second["messages"][2:]] == ["assistant", "user"]
    assert second["messages"][2]["content"] == "It is highly relevant."
    assert {**second, "messages": None} == {**first, "messages": None}
    assert (row["category"], row["requests"], row["input_tokens"], row["output_tokens"]) == (HIGH, 2, 200, 20)
    assert row["usd"] == row["paid_usd"] == pytest.approx(2 * USD_AN_ANSWER)


def test_an_answer_that_was_cut_off_is_asked_for_with_twice_the_tokens(endpoint, recording):
    server = endpoint(lambda n, body: GOOD if n else Reply(completion('{"category": "highly', **CUT)))
    (row,) = grade(llm_at(server.url, recording, max_tokens=100), candidates(HIGH))
    first, second = server.bodies
    assert second == {**first, "max_tokens": 200}
    assert (row["category"], row["requests"], row["output_tokens"]) == (LOW, 2, 20)


@pytest.mark.parametrize("bad", [completion("What?"), completion('{"category', **CUT)], ids=["unreadable", "cut off"])
def test_a_second_request_fits_the_window_too(endpoint, recording, bad):
    """Three bytes count as a token; with this window the examples just fit at first."""

    def respond(n, body):
        return Reply(bad) if n == 0 else GOOD

    server, other = endpoint(respond), endpoint(respond)
    table = candidates(*[LOW] * 4, papers=[Paper(f"p{i}", f"Title {i}", "word " * 400) for i in range(4)])
    settings = {"few_shot": 3, "top": 1, "explain": "none"}
    grade(llm_at(server.url, recording), table, **settings)
    window = size(server.bodies[0])
    grade(llm_at(other.url, recording, mode="live", context_window=window), table, **settings)
    assert len(other.bodies) == 2
    assert all(size(body) <= window for body in other.bodies)


def size(body) -> int:
    """Tokens of prompt and answer, at most."""
    return -(-sum(len(message["content"].encode()) for message in body["messages"]) // 3) + body["max_tokens"]


def test_no_message_is_ever_empty(endpoint, recording):
    server = endpoint(lambda n, body: GOOD if n else Reply(completion("")))  # some endpoints answer 400 to an empty one
    grade(llm_at(server.url, recording), candidates(LOW))
    assert server.received == 2
    assert all(message["content"].strip() for body in server.bodies for message in body["messages"])
