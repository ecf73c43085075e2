"""One answer from a real server: what is retried, what ends a run, what is about one paper only."""

import email.utils
import json
import logging
import time

import pytest

from endpoint import Reply, completion, label
from grade_helpers import ask_all, llm_at
from pipeline.errors import UserError

GOOD = completion(label("low relevance"))
KEY = "sk-or-v1-0123456789abcdef"


@pytest.fixture
def recording(tmp_path):
    return tmp_path / "answers.jsonl"


PASSING_FAULTS = {
    "429 to be asked again at once": Reply({"error": {"message": "slow down"}}, 429, {"Retry-After": "0"}),
    "429 until a date that has passed": Reply(b"", 429, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}),
    "429 until nonsense": Reply(b"", 429, {"Retry-After": "soon"}),
    "429 until a year that is none": Reply(b"", 429, {"Retry-After": "Wed, 21 Oct 99999 07:28:00 GMT"}),
    "408": Reply(b"", 408),
    "500": Reply({"error": {"message": "oops", "code": 500}}, 500),
    "503 in HTML": Reply(b"<html>Service unavailable</html>", 503, {"Content-Type": "text/html"}),
    "connection reset": Reply(reset=True),
    "body cut by the connection": Reply(GOOD, cut_after=40),
    "body cut, yet complete for HTTP": Reply(json.dumps(GOOD).encode()[:40]),
    "HTML with 200": Reply(b"<html>Checking your browser</html>", headers={"Content-Type": "text/html"}),
    "nothing with 200": Reply(b""),
    "a list": Reply([1]),
    "an error object, code a number": Reply({"error": {"code": 502, "message": "Provider returned error"}}),
    "an error object, code a text": Reply({"error": {"code": "429", "message": "rate limited"}}),
    "an error object, code a word": Reply({"error": {"code": "server_error", "message": "overloaded"}}),
    "an error text": Reply({"error": "overloaded"}),
    "an error inside the choice": Reply({"choices": [{"error": {"code": 503, "message": "busy"}, "message": {}}]}),
    "a choice that broke off": Reply(completion("{", finish_reason="error")),
    "no choices": Reply({"choices": []}),
    "choices null": Reply({"choices": None}),
    "choices a number": Reply({"choices": 1}),
    "no message": Reply({"choices": [{"index": 0}]}),
    "a choice that is a text": Reply({"choices": ["low relevance"]}),
    "brackets without end": Reply(b"[" * 100_000),
}


@pytest.mark.parametrize("fault", PASSING_FAULTS.values(), ids=PASSING_FAULTS)
def test_a_fault_that_may_pass_is_met_with_another_attempt(endpoint, recording, fault):
    server = endpoint(lambda n, body: fault if n == 0 else Reply(GOOD))
    (reply,) = ask_all(llm_at(server.url, recording), 1)
    assert reply.answer.content == label("low relevance")
    assert server.received == 2
    assert len(recording.read_text().splitlines()) == 1


def test_blanks_before_the_body_do_not_matter(endpoint, recording):
    server = endpoint(Reply(b"\n         \n" * 60 + json.dumps(GOOD).encode()))
    (reply,) = ask_all(llm_at(server.url, recording), 1)
    assert (reply.answer.content, server.received) == (label("low relevance"), 1)


@pytest.mark.parametrize("seconds", ["1", "date"])
def test_the_wait_that_the_endpoint_asks_for_is_kept(endpoint, recording, seconds):
    def respond(n, body):  # a date has whole seconds: 2.x s ahead is at least 1 s ahead of the next second
        value = email.utils.formatdate(time.time() + 2, usegmt=True) if seconds == "date" else seconds
        return Reply(GOOD) if n else Reply(b"", 429, {"Retry-After": value})

    server = endpoint(respond)
    ask_all(llm_at(server.url, recording), 1)
    assert server.times[1] - server.times[0] > 0.95


@pytest.mark.parametrize("value", ["3600", "inf", email.utils.formatdate(4_000_000_000, usegmt=True)])
def test_a_wait_beyond_the_deadline_is_not_begun(endpoint, recording, value):
    server = endpoint(Reply({"error": {"message": "slow down"}}, 429, {"Retry-After": value}))
    (reply,) = ask_all(llm_at(server.url, recording), 1)
    assert "slow down; to wait" in reply.fault
    assert "would pass llm.deadline_s=30" in reply.fault
    assert server.received == 1


def test_attempts_end(endpoint, recording):
    server = endpoint(Reply({"error": {"message": "oops"}}, 500))
    (reply,) = ask_all(llm_at(server.url, recording, attempts=3), 1)
    assert (reply.answer, server.received) == (None, 3)
    assert reply.fault == "127.0.0.1: HTTP 500: oops; 3 attempts (llm.attempts)"
    assert not recording.exists()


SLOW = {
    "stalls": Reply(GOOD, delay=20),
    "drips": Reply(GOOD, drip=0.02),  # about 400 bytes: 8 s
    "fails and fails": Reply(b"", 500, delay=0.05),
}


@pytest.mark.parametrize("slow", SLOW.values(), ids=SLOW)
def test_an_answer_that_takes_too_long_is_given_up_at_the_deadline(endpoint, recording, slow):
    ask_all(llm_at(endpoint(Reply(GOOD)).url, recording), 1)  # imports are not what is timed
    server = endpoint(slow)
    started = time.monotonic()
    (reply,) = ask_all(llm_at(server.url, recording, mode="live", deadline_s=0.5, attempts=10**6), 1)
    assert 0.4 < time.monotonic() - started < 6
    assert reply.answer is None
    assert "llm.deadline_s" in reply.fault


FATAL = {
    "401": (401, "invalid key", "check the key in LLM_KEY"),
    "403": (403, "not yours", "check the key in LLM_KEY"),
    "402": (402, "no credits", "add credits and run again"),
    "404": (404, "no such model", "check llm.base_url=.* and llm.model=m"),
    "429 for the day": (429, "Rate limit exceeded: free-models-per-day", "add credits and run again"),
    "402 in a 200": (200, "no credits", "add credits and run again"),
}


@pytest.mark.parametrize(("status", "text", "remedy"), FATAL.values(), ids=FATAL)
def test_a_fault_that_meets_every_request_ends_the_run_after_one(
    endpoint, recording, monkeypatch, caplog, status, text, remedy
):
    monkeypatch.setenv("LLM_KEY", KEY)
    error = {"code": 402 if status == 200 else status, "message": f"{text} (key {KEY}, Bearer {KEY})"}
    server = endpoint(Reply({"error": error}, status, {"X-Echo": KEY}))
    with caplog.at_level(logging.DEBUG, "pipeline"), pytest.raises(UserError, match=remedy) as told:
        ask_all(llm_at(server.url, recording, key_env="LLM_KEY"), 5)
    assert text.split(":")[0] in str(told.value)
    assert server.received == 1
    assert KEY not in str(told.value) + caplog.text
    assert "\n" not in str(told.value)


def test_a_key_that_comes_back_in_another_spelling_is_not_shown(endpoint, recording, monkeypatch, caplog):
    monkeypatch.setenv("LLM_KEY", "sk/0123456789abcdef")
    echo = rb'{"error": {"message": "bad key sk\/0123456789abcdef or \u0073k/0123456789abcdef"}}'
    server = endpoint(Reply(echo, 401))
    with pytest.raises(UserError, match="bad key") as told:
        ask_all(llm_at(server.url, recording, key_env="LLM_KEY"), 1)
    assert "0123456789abcdef" not in str(told.value) + caplog.text


def test_an_insufficient_quota_is_not_waited_for(endpoint, recording):
    server = endpoint(Reply({"error": {"code": "insufficient_quota", "message": "check your plan"}}, 429))
    with pytest.raises(UserError, match="check your plan"):
        ask_all(llm_at(server.url, recording), 5)
    assert server.received == 1


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_request_that_the_endpoint_cannot_take_is_about_its_paper_alone(endpoint, recording, caplog, status):
    too_long = Reply({"error": {"message": "context length exceeded"}}, status)
    server = endpoint(lambda n, body: too_long if "question 2" in str(body) else Reply(GOOD))
    replies = ask_all(llm_at(server.url, recording), 5)
    assert [reply.answer is None for reply in replies] == [False, False, True, False, False]
    assert replies[2].fault == f"127.0.0.1: HTTP {status}: context length exceeded"
    assert server.received == 5
    assert f"paper p2: {replies[2].fault}" in caplog.text


def test_a_server_that_is_not_there_stops_the_run_with_its_address(endpoint, recording):
    server = endpoint(Reply(GOOD))
    server.stop()
    with pytest.raises(UserError, match=f"is there a server at {server.url}"):
        ask_all(llm_at(server.url, recording, attempts=2), 5)


@pytest.mark.parametrize("key", ["", "  "])
def test_a_missing_key_is_told_before_anything_is_sent(endpoint, recording, monkeypatch, key):
    monkeypatch.setenv("LLM_KEY", key)
    server = endpoint(Reply(GOOD))
    with pytest.raises(UserError, match="set the environment variable LLM_KEY"):
        ask_all(llm_at(server.url, recording, key_env="LLM_KEY"), 5)
    assert server.received == 0


@pytest.mark.parametrize("key", [KEY + "\u2019", KEY + "\nX: y"], ids=["curly quote", "line break"])
def test_a_key_that_fits_no_header_is_told_without_showing_it(endpoint, recording, monkeypatch, key):
    monkeypatch.setenv("LLM_KEY", key)
    server = endpoint(Reply(GOOD))
    with pytest.raises(UserError, match="LLM_KEY") as told:
        ask_all(llm_at(server.url, recording, key_env="LLM_KEY"), 2)
    assert KEY not in str(told.value)
    assert server.received == 0


def test_the_key_goes_into_the_header_and_nowhere_else(endpoint, recording, monkeypatch):
    monkeypatch.setenv("LLM_KEY", f" {KEY}\n")
    server = endpoint(Reply(completion(f"your key is {KEY}", system_fingerprint=KEY)))
    (reply,) = ask_all(llm_at(server.url, recording, key_env="LLM_KEY"), 1)
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert KEY not in recording.read_text() + str(reply) + json.dumps(server.bodies)
