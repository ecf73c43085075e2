from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT
from pipeline.collecting.reports import Report, Stop
from pipeline.collecting.responses import Response, Responses
from pipeline.errors import UserError

#: Adds answers until it is killed, and says after each that it is kept.
ADDING = """
import sys
from pathlib import Path
from pipeline.collecting.responses import Response, Responses
responses = Responses(Path(sys.argv[1]))
for n in range(100_000):
    responses.add("search/q1/arxiv", f"{n:06d}", Response(f"http://x/?page={n}", 200, str(n).encode() * 20_000))
    responses.set_fact("n", n)
    print(n, flush=True)
"""


def one(n: int) -> Response:
    return Response(f"http://x/?page={n}", 200, f'{{"title": "Übung {n}"}}'.encode())


def filled(path: Path, order: list[int]) -> Responses:
    responses = Responses(path)
    for n in order:
        responses.add(f"search/q{n % 3}/arxiv", f"{n:06d}", one(n))
    return responses


def test_what_is_added_comes_back(tmp_path: Path) -> None:
    answer = Response("http://x/?q=%C3%BC", 404, bytes(range(256)))
    responses = Responses(tmp_path / "new" / "responses.sqlite")
    responses.add("search/q1/arxiv", "000000", answer)
    assert responses.get("search/q1/arxiv", "000000") == answer
    assert responses.get("search/q1/arxiv", "000001") is None
    assert responses.get("search/q2/arxiv", "000000") is None
    responses.close()
    assert Responses(tmp_path / "new" / "responses.sqlite").get("search/q1/arxiv", "000000") == answer


def test_an_answer_is_written_once(tmp_path: Path) -> None:
    responses = Responses(tmp_path / "responses.sqlite")
    responses.add("w", "k", one(1))
    responses.add("w", "k", one(2))
    assert responses.get("w", "k") == one(1)


def test_facts_are_replaced_and_forgotten_by_their_beginning(tmp_path: Path) -> None:
    responses = Responses(tmp_path / "responses.sqlite")
    for name, value in {"report/enrich/a": {"n": 1}, "report/enrich/b": [None, "ü"], "report/search/a": 2.5}.items():
        responses.set_fact(name, value)
    responses.set_fact("report/enrich/a", {"n": 2})
    assert responses.fact("report/enrich/a") == {"n": 2}
    assert responses.fact("report/enrich/b") == [None, "ü"]
    responses.forget_facts("report/enrich/")
    assert responses.fact("report/enrich/a") is None
    assert responses.fact("report/search/a") == 2.5


def test_forgetting_takes_no_sign_for_a_wildcard(tmp_path: Path) -> None:
    responses = Responses(tmp_path / "responses.sqlite")
    responses.set_fact("a_b", 1)
    responses.set_fact("axb", 2)
    responses.forget_facts("a_")
    assert (responses.fact("a_b"), responses.fact("axb")) == (None, 2)


def test_the_fingerprint_hangs_on_the_content_alone(tmp_path: Path) -> None:
    numbers = list(range(50))
    shuffled = random.Random(1).sample(numbers, 50)
    straight, mixed = filled(tmp_path / "a.sqlite", numbers), filled(tmp_path / "b.sqlite", shuffled)
    mixed.set_fact("report", 1)
    before = mixed.fingerprint()
    mixed.close()
    with sqlite3.connect(tmp_path / "b.sqlite") as connection:
        connection.execute("PRAGMA page_size = 16384")
        connection.execute("VACUUM")
    assert (tmp_path / "a.sqlite").stat().st_size != (tmp_path / "b.sqlite").stat().st_size
    assert Responses(tmp_path / "b.sqlite").fingerprint() == before == straight.fingerprint()


@pytest.mark.parametrize(
    ("walk", "key", "answer"),
    [
        ("w", "k2", Response("r", 200, b"body")),
        ("w2", "k", Response("r", 200, b"body")),
        ("w", "k", Response("r2", 200, b"body")),
        ("w", "k", Response("r", 404, b"body")),
        ("w", "k", Response("r", 200, b"body2")),
    ],
)
def test_any_other_content_has_another_fingerprint(tmp_path: Path, walk: str, key: str, answer: Response) -> None:
    one, other = Responses(tmp_path / "one.sqlite"), Responses(tmp_path / "other.sqlite")
    one.add("w", "k", Response("r", 200, b"body"))
    other.add(walk, key, answer)
    assert one.fingerprint() != other.fingerprint()


def test_what_was_added_survives_a_killed_process(tmp_path: Path) -> None:
    path = tmp_path / "responses.sqlite"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    child = subprocess.Popen([sys.executable, "-c", ADDING, str(path)], stdout=subprocess.PIPE, env=env, text=True)
    assert child.stdout is not None
    told = [int(child.stdout.readline()) for _ in range(40)]
    child.send_signal(signal.SIGKILL)
    told += [int(line) for line in child.stdout.read().split("\n")[:-1]]
    child.wait()
    responses = Responses(path)
    kept = [responses.get("search/q1/arxiv", f"{n:06d}") for n in told]
    assert [answer and answer.body for answer in kept] == [str(n).encode() * 20_000 for n in told]
    assert responses.fact("n") in {told[-1], told[-1] + 1}  # it was killed before it could say so
    responses.close()
    assert os.listdir(tmp_path) == ["responses.sqlite"]


def test_a_file_that_another_process_reads_can_be_closed(tmp_path: Path) -> None:
    path = tmp_path / "responses.sqlite"
    responses = filled(path, [1])
    other = Responses(path, is_read_only=True)
    responses.close()
    assert other.get("search/q1/arxiv", "000001") == one(1)
    other.close()
    assert Responses(path, is_read_only=True).get("search/q1/arxiv", "000001") == one(1)


def test_what_a_killed_process_left_can_be_read_without_writing(tmp_path: Path) -> None:
    path = tmp_path / "responses.sqlite"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    child = subprocess.Popen([sys.executable, "-c", ADDING, str(path)], stdout=subprocess.PIPE, env=env)
    assert child.stdout is not None
    child.stdout.readline()
    child.kill()
    child.wait()
    child.stdout.close()
    responses = Responses(path, is_read_only=True)
    assert responses.get("search/q1/arxiv", "000000") is not None
    responses.close()


def test_a_closed_file_can_be_read_in_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    path = tmp_path / "frozen" / "responses.sqlite"
    filled(path, [1, 2]).close()
    path.chmod(0o400)
    path.parent.chmod(0o500)
    before = path.read_bytes()
    try:
        responses = Responses(path, is_read_only=True)
        assert responses.get("search/q1/arxiv", "000001") == one(1)
        assert responses.fact("n") is None
        assert len(responses.fingerprint()) == 64
        with pytest.raises(UserError, match="readonly"):
            responses.add("w", "k", one(3))
        assert os.listdir(path.parent) == ["responses.sqlite"]
        responses.close()
        assert (os.listdir(path.parent), path.read_bytes()) == (["responses.sqlite"], before)
    finally:
        path.parent.chmod(0o700)


def assert_is_told(error: pytest.ExceptionInfo[UserError], path: Path) -> None:
    assert str(error.value).startswith(f"{path}: ")
    assert str(error.value).endswith("; expected the recorded responses of a snapshot")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("is_read_only", [True, False])
def test_a_file_that_is_none_is_told(tmp_path: Path, is_read_only: bool) -> None:
    path = tmp_path / "responses.sqlite"
    path.write_bytes(b"not what it says" * 1000)
    with pytest.raises(UserError) as error:
        Responses(path, is_read_only=is_read_only)
    assert_is_told(error, path)


def test_a_file_that_is_missing_is_told_and_not_made(tmp_path: Path) -> None:
    path = tmp_path / "responses.sqlite"
    with pytest.raises(UserError) as error:
        Responses(path, is_read_only=True)
    assert_is_told(error, path)
    assert not path.exists()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    path = tmp_path / "file" / "responses.sqlite"
    with pytest.raises(UserError) as error:
        Responses(path)
    assert_is_told(error, path)


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "responses.sqlite"
    responses = Responses(path)
    noise = random.Random(1).randbytes(3000)
    for n in range(50):
        responses.add("w", f"{n:06d}", Response("r", 200, noise))
    responses.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:8192] + bytes(len(whole) - 8192))
    with pytest.raises(UserError) as error:
        Responses(path, is_read_only=True).fingerprint()
    assert_is_told(error, path)


@pytest.mark.parametrize(
    "damage", ["UPDATE responses SET body = x'00112233'", "UPDATE facts SET value = '{\"n\": '"], ids=["body", "fact"]
)
def test_a_damaged_value_is_told(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "responses.sqlite"
    responses = Responses(path)
    responses.add("w", "k", one(1))
    responses.set_fact("n", 1)
    responses.close()
    with sqlite3.connect(path) as connection:
        connection.execute(damage)
    responses = Responses(path)
    with pytest.raises(UserError) as error:
        (responses.get("w", "k"), responses.fact("n"))
    assert_is_told(error, path)


def test_large_answers_are_kept_small(tmp_path: Path) -> None:
    responses = Responses(tmp_path / "responses.sqlite")
    responses.add("w", "k", Response("r", 200, b'{"title": "a learning system"}' * 100_000))
    responses.close()
    assert (tmp_path / "responses.sqlite").stat().st_size < 100_000


def test_a_report_is_that_of_one_walk(tmp_path: Path) -> None:
    responses = Responses(tmp_path / "responses.sqlite")
    kept = [Report("q1", "arxiv2", Stop.DONE), Report("", "openalex venues", Stop.BUDGET, pages=3)]
    for walk, report in zip(("search/q1/arxiv2", "enrich/openalex venues"), kept, strict=True):
        responses.set_report(walk, report)
    assert responses.report("search/q1/arxiv") is None
    assert responses.report("search/q1/arxiv2") == kept[0]
    assert responses.reports("enrich/") == kept[1:]
    responses.forget_reports("search/q1/arxiv/")
    assert responses.report("search/q1/arxiv2") == kept[0]
    responses.forget_reports("search/q1/arxiv2/")
    assert responses.report("search/q1/arxiv2") is None
