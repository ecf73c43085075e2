"""RAGAS asks through our own client, and what it cannot score is counted by its reason."""

import dataclasses
import json

import numpy as np
import pytest

from endpoint import Reply, completion
from experiments.config import Ragas
from experiments.judge import judge_explanations
from grade_helpers import USD_AN_ANSWER, llm_at
from judge_server import asked_for, judge_reply, verdicts
from pipeline.candidates import Candidates
from pipeline.errors import UserError
from pipeline.papers import Paper, Query

RUBRIC = "Rate {1: bad}.\nQuery: QUERY\nPaper: PAPER\nExplanation: EXPLANATION"


def ranking(*explanations):
    papers = tuple(Paper(f"p{i}", f"Title {i}", "Abstract with {braces}.") for i in range(len(explanations)))
    return Candidates(Query("q", "flutter learning", area="CSE"), papers).with_columns(
        explanation=np.array(explanations, dtype=object),
        initial_category=np.array(["low relevance"] * len(explanations), dtype=object),
        outcome=np.array(["graded"] * len(explanations), dtype=object),
    )


def judge_at(server, tmp_path, **changed):
    settings = {"max_tokens": 2000, "response_format": "json_object", "attempts": 2, **changed}
    return Ragas(kind="ragas", llm=llm_at(server.url, tmp_path / "answers.jsonl", **settings), top=10, rubric=RUBRIC)


def test_faithfulness_is_the_share_of_supported_claims_and_relevance_the_rating(endpoint, tmp_path):
    server = endpoint(lambda n, body: judge_reply(body, 1, 0, rating="3"))
    (judged,) = judge_explanations([ranking("Both study learning.")], judge_at(server, tmp_path))
    assert (judged.query_id, judged.area, judged.paper_id) == ("q", "CSE", "p0")
    assert (judged.faithfulness, judged.explanation_relevance, judged.faults) == (1 / 2, 3, {})
    assert judged.requests == server.received == 3
    assert judged.paid_usd == judged.usd == pytest.approx(3 * USD_AN_ANSWER)


def test_requests_carry_the_settings_of_the_config(endpoint, tmp_path):
    server = endpoint(lambda n, body: judge_reply(body))
    judge_explanations([ranking("Both study learning.")], judge_at(server, tmp_path))
    for body in server.bodies:
        assert (body["temperature"], body["top_p"], body["seed"], body["max_tokens"]) == (0, 1, 42, 2000)
        assert body["model"] == "m"
    rubric = server.bodies[-1]["messages"][-1]["content"]
    assert "Rate {1: bad}." in rubric
    assert "Query: flutter learning" in rubric
    assert "abstract: Abstract with {braces}." in rubric
    assert "Explanation: Both study learning." in rubric


def test_a_second_run_asks_nothing_and_scores_the_same(endpoint, tmp_path):
    server = endpoint(lambda n, body: judge_reply(body))
    tables = [ranking("Both study learning.", "They differ.")]
    first, second = (judge_explanations(tables, judge_at(server, tmp_path)) for _ in range(2))
    assert server.received == 6
    assert [entry.faithfulness for entry in first] == [entry.faithfulness for entry in second] == [0.5, 0.5]
    assert [entry.paid_usd for entry in second] == [0, 0]
    assert [entry.usd for entry in second] == [entry.usd for entry in first]


NLI, STATEMENTS, RATING = "NLIStatementOutput", "StatementGeneratorOutput", "DiscreteResponseModel"


@pytest.mark.parametrize(
    ("question", "content", "score", "reason", "asked"),
    [
        (STATEMENTS, '{"statements": []}', "faithfulness", "no claims", 2),
        (STATEMENTS, "I cannot do that.", "faithfulness", "unparsable", 3),  # one repair
        (NLI, verdicts(1), "faithfulness", "inconsistent verdicts", 3),  # one verdict for two claims
        (NLI, verdicts(1, 5), "faithfulness", "inconsistent verdicts", 3),  # 5 is neither 0 nor 1
        (RATING, '{"reason": "r", "value": "7"}', "explanation_relevance", "unparsable", 4),
        (RATING, '{"reason": "r", "value": ', "explanation_relevance", "unparsable", 4),
    ],
)
def test_what_cannot_be_scored_has_a_reason_and_no_score(endpoint, tmp_path, question, content, score, reason, asked):
    server = endpoint(lambda n, body: Reply(completion(content)) if asked_for(body) == question else judge_reply(body))
    (judged,) = judge_explanations([ranking("Both study learning.")], judge_at(server, tmp_path))
    assert getattr(judged, score) is None
    assert judged.faults == {score: reason}
    assert server.received == asked


def test_an_answer_cut_off_is_counted_and_the_others_are_judged(endpoint, tmp_path):
    cut = Reply(completion('{"statements": [', finish_reason="length"))
    server = endpoint(lambda n, body: cut if asked_for(body) == STATEMENTS else judge_reply(body))
    judged = judge_explanations([ranking("a", "b")], judge_at(server, tmp_path))
    assert [entry.faults for entry in judged] == [{"faithfulness": "truncated"}] * 2
    assert [entry.explanation_relevance for entry in judged] == [2, 2]


def test_answers_under_way_when_the_judge_stops_are_recorded(endpoint, tmp_path):
    def reply(n, body):
        if n == 6:
            return Reply({"error": {"message": "no credit", "code": 402}}, status=402)
        return dataclasses.replace(judge_reply(body), delay=0.1 if n > 3 else 0)

    server = endpoint(reply)
    with pytest.raises(UserError, match="no credit"):
        judge_explanations([ranking(*(f"explanation {i}" for i in range(8)))], judge_at(server, tmp_path))
    assert len((tmp_path / "answers.jsonl").read_text().splitlines()) == len(server.answered)


def test_a_recording_that_cannot_be_written_stops_the_judge(endpoint, tmp_path):
    server = endpoint(lambda n, body: judge_reply(body))
    (tmp_path / "answers.jsonl").mkdir()
    with pytest.raises(OSError, match=r"answers\.jsonl"):
        judge_explanations([ranking("a", "b")], judge_at(server, tmp_path))
    assert server.received <= 1


def test_equal_explanations_are_asked_about_once(endpoint, tmp_path):
    server = endpoint(lambda n, body: dataclasses.replace(judge_reply(body), delay=0.05))
    judged = judge_explanations([ranking("first", "same", "same")], judge_at(server, tmp_path))
    statements = [body for body in server.bodies if asked_for(body) == STATEMENTS]
    assert len(statements) == 2
    assert [entry.faithfulness for entry in judged] == [0.5] * 3


def test_a_judge_that_does_not_answer_is_a_provider_error(endpoint, tmp_path):
    server = endpoint(lambda n, body: Reply(status=503) if asked_for(body) == STATEMENTS else judge_reply(body))
    (judged,) = judge_explanations([ranking("Both study learning.")], judge_at(server, tmp_path))
    assert judged.faults == {"faithfulness": "provider error"}
    assert judged.explanation_relevance == 2


def test_what_every_request_would_meet_stops_the_run_at_the_first(endpoint, tmp_path):
    server = endpoint(Reply({"error": {"message": "no credit", "code": 402}}, status=402))
    with pytest.raises(UserError, match="no credit"):
        judge_explanations([ranking(*["Both study learning."] * 5)], judge_at(server, tmp_path))
    assert server.received == 1


def test_a_replay_without_the_answer_names_query_and_paper(endpoint, tmp_path):
    server = endpoint(lambda n, body: judge_reply(body))
    with pytest.raises(UserError, match="query q, paper p0, explanation: nothing is recorded"):
        judge_explanations([ranking("Both study learning.")], judge_at(server, tmp_path, mode="replay"))
    assert server.received == 0


def test_concurrency_changes_no_score(endpoint, tmp_path):
    def reply(n, body):
        supported = "even" in json.dumps(body)
        return judge_reply(body, int(supported), 1, rating="3" if supported else "1")

    texts = [f"Explanation {i} is {'even' if i % 2 == 0 else 'odd'}." for i in range(8)]
    server = endpoint(reply)
    alone = judge_explanations([ranking(*texts)], judge_at(server, tmp_path / "1", concurrency=1))
    together = judge_explanations([ranking(*texts)], judge_at(server, tmp_path / "8", concurrency=8))
    assert alone == together
    assert [entry.explanation_relevance for entry in alone] == [3, 1] * 4


def test_only_the_top_is_judged_and_a_missing_explanation_is_counted(endpoint, tmp_path):
    server = endpoint(lambda n, body: judge_reply(body))
    judge = judge_at(server, tmp_path).model_copy(update={"top": 3})
    judged = judge_explanations([ranking("a", None, "c", "d")], judge)
    assert [entry.paper_id for entry in judged] == ["p0", "p1", "p2"]
    assert judged[1].faults == {"faithfulness": "no explanation", "explanation_relevance": "no explanation"}
    assert server.received == 6


def test_only_our_client_knows_the_key(endpoint, tmp_path, monkeypatch):
    monkeypatch.setenv("JUDGE_KEY", "sk-secret")
    server = endpoint(lambda n, body: judge_reply(body))
    judge_explanations([ranking("Both study learning.")], judge_at(server, tmp_path, key_env="JUDGE_KEY"))
    assert {headers["Authorization"] for headers in server.headers} == {"Bearer sk-secret"}
    assert "sk-secret" not in (tmp_path / "answers.jsonl").read_text()
