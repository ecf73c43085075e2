"""The grade stage against a real server: who is asked, what becomes of failures, what it took."""

import json
import random
import time

import pytest
from pydantic import ValidationError

from endpoint import Reply, completion, label, logprobs_for
from grade_helpers import USD_AN_ANSWER, candidates, grade, judged_title, llm_at, prompt
from pipeline.candidates import Candidates
from pipeline.errors import UserError
from pipeline.llm.chat import NoAnswerError
from pipeline.papers import Query
from pipeline.stages import build_stage

HIGH, MODERATE, SOMEWHAT, LOW = "highly relevant", "moderately relevant", "somewhat relevant", "low relevance"
CUT = {"finish_reason": "length"}
GOOD = Reply(completion(label(LOW)))


@pytest.fixture
def recording(tmp_path):
    return tmp_path / "answers.jsonl"


def answering(**by_title) -> callable:
    """Answer by the title of the paper judged, Title_0 and so on; other papers are of low relevance."""

    def respond(n, body):
        found = by_title.get(judged_title(body).replace(" ", "_"), GOOD)
        return found if isinstance(found, Reply) else Reply(completion(label(found)))

    return respond


def ids(rows) -> list[str]:
    return [row["paper_id"] for row in rows]


FAILURES = {
    "refused": (Reply(completion(None, refusal="I can't help with that.")), 1),
    "unparsable": (Reply(completion("The paper is highly relevant.")), 2),
    "out_of_range": (Reply(completion(label("7"))), 2),
    "truncated": (Reply(completion('{"category": "highly relev', **CUT)), 2),
    "empty": (Reply(completion("")), 2),
    "provider_error": (Reply({"error": {"message": "context length exceeded"}}, 400), 1),
}


@pytest.mark.parametrize(("outcome", "reply", "asked"), [(name, *rest) for name, rest in FAILURES.items()])
def test_a_failure_of_the_model_is_never_a_grade(endpoint, recording, outcome, reply, asked):
    server = endpoint(answering(Title_1=reply, Title_2=HIGH, Title_3=MODERATE, Title_4=HIGH))
    rows = grade(llm_at(server.url, recording), candidates(HIGH, MODERATE, LOW, LOW, LOW))
    assert ids(rows) == ["p2", "p4", "p1", "p3", "p0"]  # p1 by its initial category, before p3 that was behind it
    failed = rows[2]
    assert (failed["category"], failed["outcome"], failed["explanation"]) == (None, outcome, None)
    assert sum(judged_title(body) == "Title 1" for body in server.bodies) == asked == failed["requests"]
    assert failed["usd"] == pytest.approx(0 if outcome == "provider_error" else asked * USD_AN_ANSWER)
    assert [row["outcome"] for row in rows if row is not failed] == ["graded"] * 4


def test_too_many_failures_end_the_run_and_are_named_by_kind(endpoint, recording):
    bad = {"Title_1": FAILURES["refused"][0], "Title_2": FAILURES["refused"][0], "Title_3": FAILURES["empty"][0]}
    server = endpoint(answering(**bad))
    table = candidates(*[LOW] * 10)
    assert len(grade(llm_at(server.url, recording), table, max_ungraded=0.3)) == 10  # 3 of 10 are not more than 0.3
    with pytest.raises(UserError, match=r"3 of 10 papers have no grade from the model \(empty 1, refused 2\).*=0\.29 "):
        grade(llm_at(server.url, recording), table, max_ungraded=0.29)
    assert server.received == 11  # all recorded before; one repair


def test_the_second_run_asks_nothing_pays_nothing_and_says_the_same(endpoint, recording):
    server = endpoint(answering(Title_1=FAILURES["empty"][0], Title_2=HIGH))
    llm, table = llm_at(server.url, recording), candidates(*[LOW] * 4)
    first, second = grade(llm, table), grade(llm, table)
    assert server.received == 5
    assert sum(row["usd"] for row in first) == sum(row["paid_usd"] for row in first) == pytest.approx(5 * USD_AN_ANSWER)
    assert [row.pop("paid_usd") for row in second] == [0.0] * 4
    assert second == [{name: value for name, value in row.items() if name != "paid_usd"} for row in first]


def test_an_unknown_price_is_no_number(endpoint, recording):
    (row,) = grade(llm_at(endpoint(GOOD).url, recording, prices=()), candidates(LOW))
    assert (row["usd"], row["paid_usd"], row["input_tokens"]) == (None, None, 100)


def test_papers_beyond_top_are_never_asked_about(endpoint, recording):
    server = endpoint(answering(Title_1=HIGH))
    tables = [candidates(LOW, LOW, HIGH, HIGH), candidates(LOW, query_id="r"), candidates(query_id="none")]
    rows = grade(llm_at(server.url, recording), *tables, top=2)
    assert ids(rows) == ["p1", "p0", "p2", "p3", "p0"]
    assert [row["outcome"] for row in rows] == ["graded", "graded", None, None, "graded"]
    assert sorted(map(judged_title, server.bodies)) == ["Title 0", "Title 1"]  # r's is the same prompt: asked once


def test_samples_differ_by_their_seed_and_the_majority_counts(endpoint, recording):
    by_seed = {42: HIGH, 43: LOW, 44: HIGH}
    server = endpoint(lambda n, body: Reply(completion(label(by_seed[body["seed"]]))))
    (row,) = grade(llm_at(server.url, recording), candidates(LOW), samples=3)
    assert sorted(body["seed"] for body in server.bodies) == [42, 43, 44]
    assert (row["category"], row["samples"], row["requests"]) == (HIGH, [HIGH, LOW, HIGH], 3)
    (tie,) = grade(llm_at(server.url, recording), candidates(LOW), samples=2)
    assert tie["category"] == LOW


def question(body) -> str:
    """What is asked, after the paper."""
    return body["messages"][1]["content"].split("</paper>")[-1]


def tasks(server) -> list[tuple[str, str]]:
    """What was asked about which paper."""
    ends = {"Answer with one digit": "digit", "was judged as": "explain", '"explanation":': "label", "": "category"}
    return sorted(
        (next(task for end, task in ends.items() if end in question(body)), judged_title(body))
        for body in server.bodies
    )


@pytest.mark.parametrize("scoring", ["label", "expected"])
@pytest.mark.parametrize(
    ("explain", "explained"),
    [("none", []), ("shown", ["Title 1", "Title 2"]), ("all", ["Title 0", "Title 1", "Title 2"])],
)
def test_explanations_are_asked_for_as_set(endpoint, recording, scoring, explain, explained):
    def respond(n, body):
        probabilities = logprobs_for({"3" if judged_title(body) != "Title 0" else "0": 1.0})
        category = HIGH if judged_title(body) != "Title 0" else LOW
        answer = {"category": category}
        if '"explanation":' in question(body):
            answer["explanation"] = f"On {judged_title(body)}."
        content = probabilities["content"][0]["token"] if "logprobs" in body else json.dumps(answer)
        return Reply(completion(content, logprobs=probabilities))

    server = endpoint(respond)
    settings = {"scoring": scoring, "explain": explain, "shown": 2, "top": 3}
    rows = grade(llm_at(server.url, recording), candidates(HIGH, LOW, LOW, LOW), **settings)
    first = "digit" if scoring == "expected" else "label" if explain == "all" else "category"
    own = [] if first == "label" else [("explain", title) for title in explained]
    assert tasks(server) == sorted([*((first, f"Title {i}") for i in range(3)), *own])
    shown = {row["title"]: row["explanation"] for row in rows}
    assert shown == {f"Title {i}": f"On Title {i}." if f"Title {i}" in explained else None for i in range(4)}
    assert ids(rows) == ["p1", "p2", "p0", "p3"]
    for body in server.bodies:
        if "was judged as" in question(body):
            assert f"was judged as: {LOW if judged_title(body) == 'Title 0' else HIGH}." in question(body)


def test_expected_grades_set_category_and_order(endpoint, recording):
    shares = {"Title 0": {"1": 0.6, "0": 0.4}, "Title 1": {" 3": 0.7, "2": 0.3}, "Title 2": {"1": 0.9, "2": 0.1}}

    def respond(n, body):
        return Reply(completion("1", logprobs=logprobs_for(shares[judged_title(body)], before=["\n"])))

    rows = grade(
        llm_at(endpoint(respond).url, recording), candidates(LOW, LOW, LOW), scoring="expected", explain="none"
    )
    grades = [3 * 0.7 + 2 * 0.3, 1 * 0.9 + 2 * 0.1, 1 * 0.6]
    assert [(row["paper_id"], row["category"]) for row in rows] == [("p1", HIGH), ("p2", SOMEWHAT), ("p0", SOMEWHAT)]
    assert [row["expected_grade"] for row in rows] == pytest.approx(grades, abs=1e-5)  # log probabilities have 6 digits


def test_an_endpoint_without_probabilities_is_told_after_one_request(endpoint, recording):
    server = endpoint(Reply(completion("3")))
    with pytest.raises(UserError, match="gives no token probabilities"):
        grade(llm_at(server.url, recording), candidates(*[LOW] * 20), scoring="expected")
    assert server.received == 1


def test_replay_lacking_an_answer_sends_nothing(endpoint, recording):
    server = endpoint(GOOD)
    grade(llm_at(server.url, recording), candidates(LOW))
    with pytest.raises(NoAnswerError, match="query q, paper p1: no answer to this model, prompt and paper"):
        grade(llm_at(server.url, recording, mode="replay"), candidates(LOW, LOW))
    assert server.received == 1


def test_several_systems_behind_one_name_are_told(endpoint, recording, caplog):
    server = endpoint(lambda n, body: Reply(completion(label(LOW), system_fingerprint=f"fp_{n % 2}", provider="P")))
    grade(llm_at(server.url, recording), candidates(LOW, LOW, LOW))
    assert "more than one system answered: m-0001 P fp_0; m-0001 P fp_1" in caplog.text


def test_fifty_papers_at_a_second_each_take_less_than_ten_and_the_order_of_answers_does_not_matter(endpoint, tmp_path):
    """One alone, then 49 by eight: 1 + 7 = 8 seconds, where one after the other they take 50."""
    draw = random.Random(5)
    categories = {f"Title {i}": draw.choice((LOW, SOMEWHAT, MODERATE, HIGH)) for i in range(50)}
    table = candidates(*sorted(draw.choices((HIGH, MODERATE, LOW), k=50)))

    def graded(name, delay, concurrency):
        def respond(n, body):
            return Reply(completion(label(categories[judged_title(body)])), delay=delay())

        return grade(llm_at(endpoint(respond).url, tmp_path / name, concurrency=concurrency), table, few_shot=3)

    alone = graded("alone", lambda: 0.0, 1)
    started = time.monotonic()
    together = graded("together", lambda: 1.0, 8)
    assert time.monotonic() - started < 10
    assert together == alone == graded("mixed", lambda: draw.uniform(0, 0.05), 8)


def test_a_table_without_initial_categories_is_refused(endpoint, recording):
    with pytest.raises(UserError, match="put the semantic stage before it"):
        grade(llm_at(endpoint(GOOD).url, recording), Candidates(Query("q", "x"), ()))


@pytest.mark.parametrize(
    "wrong",
    [
        {"thresholds": [1.5, 0.5, 2.5]}, {"thresholds": [0.5, 1.5, 3.5]}, {"top": 0}, {"few_shot": 4},
        {"samples": True}, {"scoring": "mean"}, {"explain": "some"}, {"max_ungraded": 1.1}, {"unknown": 1},
        {"samples": 2, "llm": llm_at("http://127.0.0.1:9/v1", "unused", seed=None)},
    ],
    ids=str,
)  # fmt: skip
def test_settings_that_make_no_sense_are_refused(wrong):
    llm = llm_at("http://127.0.0.1:9/v1", "unused")
    build_stage("grade", {"llm": llm, "prompt": prompt()})
    with pytest.raises(ValidationError):
        build_stage("grade", {"llm": llm, "prompt": prompt(), **wrong})
