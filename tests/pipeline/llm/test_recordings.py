"""Recorded answers: on disk at once, asked for once, and none lost to a kill."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from conftest import ROOT
from endpoint import Reply, completion, label
from grade_helpers import ask_all, judged_title, llm_at, questions
from pipeline.llm.answers import Answer
from pipeline.llm.chat import NoAnswerError
from pipeline.llm.recordings import Recording


def answer(key: str, content: str) -> Answer:
    return Answer(key=key, about="query q, paper p", date="2026-01-01T00:00:00+00:00", latency_s=0.1, content=content)


def numbered(n, body) -> Reply:
    return Reply(completion(f"answer {n}"))


def said(replies) -> list[str]:
    return [reply.answer.content for reply in replies]


@pytest.fixture
def recording(tmp_path) -> Path:
    return tmp_path / "a folder to be made" / "answers.jsonl"


def grading_process(url: str, recording: Path, papers: int) -> subprocess.Popen[str]:
    """Grade this many papers in a process of its own."""
    return subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "grade_helpers.py"), url, str(recording), str(papers)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_an_answer_is_on_disk_before_the_next_is_asked_for(endpoint, recording):
    lines = []

    def respond(n, body):
        lines.append(len(recording.read_text().splitlines()) if n else 0)
        return numbered(n, body)

    ask_all(llm_at(endpoint(respond).url, recording, concurrency=1), 5)
    assert lines == [0, 1, 2, 3, 4]


def test_an_answer_comes_back_as_it_was_kept(endpoint, recording):
    body = completion("Größe \u2028 \x00 研究 😀", refusal="no", finish_reason="length", provider="P", cost=0.25)
    (new,) = ask_all(llm_at(endpoint(Reply(body)).url, recording), 1)
    (known,) = ask_all(llm_at("http://127.0.0.1:9/v1", recording, mode="replay"), 1)
    assert (known.answer, known.is_recorded, new.is_recorded) == (new.answer, True, False)
    assert (new.answer.content, new.answer.refusal, new.answer.finish_reason) == (
        "Größe \u2028 \x00 研究 😀",
        "no",
        "length",
    )
    assert (new.answer.model, new.answer.provider, new.answer.fingerprint) == ("m-0001", "P", "fp_1")
    assert (new.answer.input_tokens, new.answer.output_tokens, new.answer.usd) == (100, 10, 0.25)


def test_an_answer_that_is_no_proper_text_is_kept_all_the_same(endpoint, recording):
    half_an_emoji = rb'{"choices": [{"message": {"content": "cut in the middle of \ud83d"}}]}'
    server = endpoint(Reply(half_an_emoji))
    first = ask_all(llm_at(server.url, recording), 1)
    second = ask_all(llm_at(server.url, recording), 1)
    assert server.received == 1
    assert said(first) == said(second)
    assert said(first)[0].startswith("cut in the middle of ")


def test_record_asks_only_what_is_missing(endpoint, recording):
    server = endpoint(numbered)
    llm = llm_at(server.url, recording, concurrency=1)
    ask_all(llm, 3)
    replies = ask_all(llm, 5)
    assert said(replies) == [f"answer {i}" for i in range(5)]
    assert [reply.is_recorded for reply in replies] == [True, True, True, False, False]
    assert server.received == 5


def test_live_asks_anew_and_the_newest_answer_counts(endpoint, recording):
    server = endpoint(numbered)
    ask_all(llm_at(server.url, recording, concurrency=1), 2)
    again = ask_all(llm_at(server.url, recording, concurrency=1, mode="live"), 2)
    assert said(again) == ["answer 2", "answer 3"]
    assert len(recording.read_text().splitlines()) == 4
    assert said(ask_all(llm_at(server.url, recording, mode="replay"), 2)) == ["answer 2", "answer 3"]
    assert server.received == 4


def test_replay_names_the_query_and_paper_it_lacks_and_sends_nothing(endpoint, recording):
    server = endpoint(numbered)
    ask_all(llm_at(server.url, recording), 2)
    with pytest.raises(NoAnswerError, match=r"paper p2: no answer to this model, prompt and paper in .*answers\.jsonl"):
        ask_all(llm_at(server.url, recording, mode="replay"), 3)
    assert server.received == 2


@pytest.mark.parametrize("number", [0, 3])
def test_replay_of_a_recording_that_is_not_there_makes_no_file(recording, number):
    llm = llm_at("http://127.0.0.1:9/v1", recording, mode="replay")
    if number:
        with pytest.raises(NoAnswerError):
            ask_all(llm, number)
    assert ask_all(llm, 0) == []
    assert not recording.parent.exists()


def test_equal_requests_are_asked_once(endpoint, recording):
    server = endpoint(numbered)
    llm = llm_at(server.url, recording)
    replies = ask_all(llm, [*questions(llm, 2), *questions(llm, 2)])
    assert said(replies[:2]) == said(replies[2:])
    assert [reply.is_recorded for reply in replies] == [False, False, True, True]  # paid once
    assert server.received == 2


@pytest.mark.parametrize("torn", [b'{"key": "b", "abo', b'{"key": "b", "about": "\xc3'])
def test_a_line_that_a_kill_cut_off_is_passed_over_and_appended_after(tmp_path, torn):
    path = tmp_path / "answers.jsonl"
    Recording(path).add(answer("a", "one"))
    with path.open("ab") as file:
        file.write(torn)
    after_kill = Recording(path)
    assert (len(after_kill), after_kill.get("a").content) == (1, "one")
    after_kill.add(answer("c", "three"))
    assert path.read_bytes().count(b"\n") == 3
    read = Recording(path)
    assert (read.get("a").content, read.get("b"), read.get("c").content) == ("one", None, "three")


def test_a_last_line_without_a_line_break_is_an_answer_if_it_is_whole(tmp_path):
    path = tmp_path / "answers.jsonl"  # as editors and `git apply` may leave it
    Recording(path).add(answer("a", "one"))
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert Recording(path).get("a").content == "one"


DAMAGED = ["{}", "5", "[1]", "null", '{"key": "k"}', "not JSON", "", "\x00" * 9]


@pytest.mark.parametrize("line", [*DAMAGED, '{"key": ["k"], "about": "", "date": "", "latency_s": 1}'])
def test_a_damaged_line_is_told_and_passed_over(tmp_path, caplog, line):
    path = tmp_path / "answers.jsonl"
    Recording(path).add(answer("a", "one"))
    with path.open("a") as file:
        file.write(line + "\n")
    Recording(path).add(answer("b", "two"))
    read = Recording(path)
    assert (len(read), read.get("b").content) == (2, "two")
    assert ("a damaged line was passed over" in caplog.text) == bool(line)


def test_two_processes_ask_for_the_same_answers_once(endpoint, recording):
    def respond(n, body):
        both.wait(timeout=60)  # until the other process has started
        return Reply(completion(label("low relevance")), delay=0.01)

    both = threading.Event()
    server = endpoint(respond)
    processes = [grading_process(server.url, recording, 20) for _ in range(2)]
    both.set()
    results = [json.loads(process.communicate(timeout=100)[0]) for process in processes]
    assert results == [["low relevance"] * 20] * 2
    assert (server.received, len(recording.read_text().splitlines())) == (20, 20)


def test_a_killed_run_has_lost_no_answer_that_it_received(endpoint, recording):
    """Killed with 60 answers and up to 8 requests under way; the next run asks for the 40 that never came."""
    killed, restarted, pids = threading.Event(), threading.Event(), queue.Queue()

    def respond(n, body):
        if restarted.is_set() or n < 60:
            return Reply(completion(label("low relevance")))
        with holding:
            if not killed.is_set():
                while len(recording.read_text().splitlines()) < 60:
                    time.sleep(0.01)  # the client is writing what it was given
                os.kill(pids.get(), signal.SIGKILL)
                killed.set()
        return Reply(reset=True)

    holding = threading.Lock()
    server = endpoint(respond)
    client = grading_process(server.url, recording, 100)
    pids.put(client.pid)
    assert client.wait(timeout=100) == -signal.SIGKILL
    assert len(server.answered) == 60
    restarted.set()
    again = grading_process(server.url, recording, 100)
    assert json.loads(again.communicate(timeout=100)[0]) == ["low relevance"] * 100
    assert len(server.answered) == 100
    assert {judged_title(body) for body in server.answered} == {f"Title {i}" for i in range(100)}
