"""Many requests: the first alone, a bounded number at a time, an end where money or answers fail."""

import random
import threading

import pytest

from endpoint import Reply, completion, label
from grade_helpers import USD_AN_ANSWER, ask_all, llm_at
from pipeline.errors import UserError

GOOD = Reply(completion(label("low relevance")))
BAD = Reply({"error": {"message": "cannot take this"}}, 400)


@pytest.fixture
def recording(tmp_path):
    return tmp_path / "answers.jsonl"


def test_the_first_request_goes_alone_and_then_as_many_as_allowed(endpoint, recording):
    together = threading.Barrier(4)  # the next four are answered when all four are here

    def respond(n, body):
        answered_before.append(len(server.answered))
        if 1 <= n <= 4:
            together.wait(timeout=60)
        return GOOD

    answered_before: list[int] = []
    server = endpoint(respond)
    ask_all(llm_at(server.url, recording, concurrency=4), 13)
    assert min(answered_before[1:]) == 1
    assert server.most_under_way == 4


def test_the_first_request_that_is_sent_goes_alone_when_others_are_recorded(endpoint, recording):
    ask_all(llm_at(endpoint(GOOD).url, recording), 3)
    server = endpoint(Reply({"error": {"message": "invalid key"}}, 401, delay=0.1))
    with pytest.raises(UserError, match="invalid key"):
        ask_all(llm_at(server.url, recording), 10)
    assert server.received == 1


def test_replies_are_in_the_order_of_the_requests_whatever_comes_first(endpoint, recording):
    draw = random.Random(3)

    def respond(n, body):
        return Reply(completion("answer to " + body["messages"][0]["content"]), delay=draw.uniform(0, 0.05))

    replies = ask_all(llm_at(endpoint(respond).url, recording, concurrency=8), 30)
    assert [reply.answer.content for reply in replies] == [f"answer to question {i}" for i in range(30)]


@pytest.mark.parametrize(("bad", "is_stopped"), [({3, 5}, False), ({3, 5, 6}, True)])
def test_a_run_stops_when_more_than_the_share_got_no_answer(endpoint, recording, bad, is_stopped):
    """Of 20 requests 10 % may fail: two may, with the third the others are given up."""
    server = endpoint(lambda n, body: BAD if int(body["messages"][0]["content"].split()[1]) in bad else GOOD)
    llm = llm_at(server.url, recording, concurrency=1)
    if is_stopped:
        with pytest.raises(UserError, match=r"3 of 20 requests got no answer, .*: HTTP 400: cannot take this"):
            ask_all(llm, 20, max_failed=0.1)
    else:
        assert sum(reply.answer is None for reply in ask_all(llm, 20, max_failed=0.1)) == 2
    assert server.received == (7 if is_stopped else 20)
    assert len(recording.read_text().splitlines()) == (4 if is_stopped else 18)


def test_answers_under_way_when_a_run_stops_are_still_recorded(endpoint, recording):
    everyone = threading.Barrier(4)

    def respond(n, body):
        if 1 <= n <= 4:
            everyone.wait(timeout=60)
        return Reply({"error": {"message": "no credits"}}, 402) if n == 2 else GOOD

    server = endpoint(respond)
    with pytest.raises(UserError, match="no credits"):
        ask_all(llm_at(server.url, recording, concurrency=4), 40)
    assert server.received < 12
    assert len(recording.read_text().splitlines()) == len(server.answered) >= 4


@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_run_stops_before_it_spends_more_than_allowed(endpoint, recording, concurrency):
    """An answer is billed $0.002; room is kept for at most 10 + 16 input and 256 output tokens, $0.02586."""
    server = endpoint(GOOD)
    llm = llm_at(server.url, recording, concurrency=concurrency, max_usd=0.05)
    with pytest.raises(UserError, match=r"llm\.max_usd=0\.05 would be passed: \$0\.0\d+ spent in this run") as told:
        ask_all(llm, 100)
    assert 0 < len(server.answered) * USD_AN_ANSWER <= 0.05
    assert len(recording.read_text().splitlines()) == len(server.answered)
    assert "raise the limit and run again" in str(told.value)


def test_the_limit_is_for_what_a_run_pays_not_for_what_is_recorded(endpoint, recording):
    server = endpoint(GOOD)
    ask_all(llm_at(server.url, recording), 30)  # $0.06
    replies = ask_all(llm_at(server.url, recording, max_usd=0.05), 31)  # $0.002 more
    assert (server.received, replies[-1].is_recorded) == (31, False)


def test_requests_that_wait_for_others_do_not_count_as_spent(endpoint, recording):
    """Twenty answers cost $0.04. Two under way may cost $0.0516 at most, one $0.0258: enough, one after the other."""
    server = endpoint(Reply(GOOD.body, delay=0.01))
    ask_all(llm_at(server.url, recording, concurrency=8, max_usd=0.07), 20)
    assert len(server.answered) == 20


def test_what_the_endpoint_charged_counts_against_the_limit(endpoint, recording):
    server = endpoint(Reply(completion(label("low relevance"), cost=0.4)))
    with pytest.raises(UserError, match=r"\$1\.200000 spent"):
        ask_all(llm_at(server.url, recording, max_usd=1.0, concurrency=1), 100)
    assert len(server.answered) == 3  # 0.4, 0.8, then 0.8 + 0.026 is still below 1


@pytest.mark.parametrize("cost", [float("nan"), -5.0, float("inf"), True, "0.4", None])
def test_a_charge_that_is_no_amount_does_not_lift_the_limit(endpoint, recording, cost):
    body = completion(label("low relevance"))
    body["usage"]["cost"] = cost
    server = endpoint(Reply(body))
    with pytest.raises(UserError, match="would be passed"):
        ask_all(llm_at(server.url, recording, max_usd=0.05), 60)
    assert len(server.answered) * USD_AN_ANSWER <= 0.05


@pytest.mark.parametrize("lacking", ["price", "usage"])
def test_answers_without_a_known_cost_cannot_pass_the_limit(endpoint, recording, lacking):
    server = endpoint(GOOD if lacking == "price" else Reply(GOOD.body | {"usage": None}))
    if lacking == "price":
        with pytest.raises(UserError, match=r"the price of m at .* is not in conf/prices"):
            ask_all(llm_at(server.url, recording, max_usd=0.05, prices=()), 5)
        assert server.received == 0
    else:  # the most that an answer can cost is taken: 0.02586, of which one fits into 0.05
        with pytest.raises(UserError, match="would be passed"):
            ask_all(llm_at(server.url, recording, max_usd=0.05), 5)
        assert server.received == 1
