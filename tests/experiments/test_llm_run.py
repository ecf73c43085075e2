"""Runs of the arm with a language model, against a server on this machine."""

import hashlib
import json
from pathlib import Path

import pytest

from conftest import litgrade
from endpoint import Reply, completion, label, logprobs_for
from grade_helpers import judged_title
from judge_server import asked_for, judge_reply
from pipeline.papers import CATEGORIES

KEY = "sk-never-to-be-stored"


def grades_by_title(n, body):
    """A category that hangs on the paper alone, as a good model's would."""
    if asked_for(body):
        return judge_reply(body)
    grade = hashlib.sha256(judged_title(body).encode()).digest()[0] % 4
    if "logprobs" in body:
        return Reply(completion(str(grade), logprobs=logprobs_for({str(grade): 0.7, str((grade + 1) % 4): 0.3})))
    return Reply(completion(label(CATEGORIES[grade])))


def overrides(server, recording, *more):
    return [
        "llm=local",
        f"llm.base_url={server.url}",
        "llm.mode=record",
        f"llm.recording={recording}",
        "llm.key_env=TEST_KEY",
        "llm.backoff_s=0",
        "grade.top=5",
        *more,
    ]


def run(small, server, tmp_path, *more, name="run", check=True):
    folder = tmp_path / name
    arguments = ["arm=bm25_mpnet_llm", *small, *overrides(server, tmp_path / "answers.jsonl"), *more]
    done = litgrade("run", *arguments, f"hydra.run.dir={folder}", cwd=tmp_path, check=check, TEST_KEY=KEY)
    return done, folder


def metrics(folder):
    return json.loads((folder / "metrics.json").read_text())


def rows(folder):
    return [json.loads(line) for line in (folder / "ranking.jsonl").read_text().splitlines()]


def with_judgments(collection: Path, folder: Path, change) -> Path:
    """A copy of the collection with other grades, and with the grades of single raters beside them."""
    folder.mkdir()
    (folder / "qrels").mkdir()
    for name in ("corpus.jsonl", "queries.jsonl"):
        (folder / name).write_bytes((collection / name).read_bytes())
    header, *lines = (collection / "qrels" / "test.tsv").read_text().splitlines()
    pairs = [line.split("\t") for line in lines]
    (folder / "qrels" / "test.tsv").write_text(
        "\n".join([header, *(f"{query}\t{paper}\t{change(int(grade))}" for query, paper, grade in pairs)])
    )
    ratings = [f"{query},{paper},rater-zephyrine,{grade}" for query, paper, grade in pairs]
    (folder / "annotations.csv").write_text("\n".join(["query_id,paper_id,rater,grade", *ratings]))
    return folder


@pytest.mark.parametrize("scoring", ["label", "expected"])
def test_no_judgment_leaves_in_a_request(endpoint, small, small_collection, tmp_path, scoring):
    """Whatever the judgments are, the same requests are sent to the model and to the judge, to the last byte."""
    sent = []
    for i, change in enumerate([lambda grade: grade, lambda grade: 3 - grade, lambda grade: 0]):
        collection = with_judgments(small_collection, tmp_path / f"c{i}", change)
        server = endpoint(grades_by_title)
        judge = ["judge=ragas", f"judge.llm.base_url={server.url}", "judge.llm.key_env=TEST_KEY", "judge.top=2"]
        judge += [f"judge.llm.recording={tmp_path}/judge-{i}.jsonl"]
        more = [f"collection.path={collection}", f"llm.recording={tmp_path}/answers-{i}.jsonl", *judge]
        run(small, server, tmp_path, f"grade.scoring={scoring}", "grade.explain=shown", *more, name=f"run{i}")
        sent.append(sorted(json.dumps(body, sort_keys=True) for body in server.bodies))
    assert len(sent[0]) > 30
    assert sent[0] == sent[1] == sent[2]
    assert not any("zephyrine" in body for body in sent[0])


def test_no_key_is_stored_anywhere(endpoint, small, tmp_path):
    def reply(n, body):
        if n == 3:  # an endpoint that repeats the key, in an error and in an answer
            return Reply({"error": {"message": f"slow down, {KEY}"}}, status=429)
        return Reply(completion(label("low relevance", f"your key is {KEY}"))) if n == 5 else grades_by_title(n, body)

    server = endpoint(reply)
    tracked = ["tracking=mlflow", "judge=ragas", f"judge.llm.base_url={server.url}", "judge.llm.key_env=TEST_KEY"]
    done, _ = run(small, server, tmp_path, *tracked, name="outputs/run")
    assert {headers["Authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 10
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []
    assert KEY not in done.stdout + done.stderr


def test_a_second_run_pays_nothing_and_leaves_the_same_rankings(endpoint, small, tmp_path):
    server = endpoint(grades_by_title)
    price = "prices.per_million=[{endpoint:127.0.0.1,model:m,input:10,output:100,date:2020-01-01}]"
    (_, first), (_, second) = (run(small, server, tmp_path, price, "llm.model=m", name=name) for name in "ab")
    assert server.received == 6 * 5  # queries x grade.top
    spent = 30 * (100 * 10 + 10 * 100) / 1e6
    for folder, paid, saved in ((first, spent, 0), (second, 0, spent)):
        use = metrics(folder)["model_use"]["run"]
        assert use["paid_usd"] == pytest.approx(paid)
        assert use["saved_usd"] == pytest.approx(saved)
        assert (use["requests"], use["input_tokens"], use["outcomes"]) == (30, 3000, {"graded": 30})
        assert sum(q["usd"] for q in metrics(folder)["model_use"]["queries"].values()) == pytest.approx(spent)
        assert sum(row["usd"] for row in rows(folder)) == pytest.approx(spent)
    for name in ("run.trec", "per_query.csv"):
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_an_unknown_price_is_unknown_in_every_total(endpoint, small, tmp_path):
    done, folder = run(small, endpoint(grades_by_title), tmp_path)
    use = metrics(folder)["model_use"]["run"]
    assert (use["usd"], use["paid_usd"], use["saved_usd"]) == (None, None, None)
    assert "unknown paid now, unknown in all" in done.stdout
    assert rows(folder)[0]["usd"] is None


def test_ungraded_papers_are_counted_and_the_metrics_carry_an_interval(endpoint, small, tmp_path):
    server = endpoint(
        lambda n, body: Reply(completion("I'm sorry, I cannot judge this.")) if n == 4 else grades_by_title(n, body)
    )
    done, folder = run(small, server, tmp_path, "llm.concurrency=1")
    found = metrics(folder)
    assert found["model_use"]["run"]["outcomes"] == {"graded": 29, "refused": 1}
    low, high = found["intervals"]["ac2"]
    assert low <= found["macro"]["ac2"] <= high
    assert low < high
    (row,) = [row for row in rows(folder) if row["outcome"] == "refused"]
    assert (row["category"], row["explanation"]) == (None, None)
    assert "whatever the ungraded papers are" in done.stdout


def test_too_many_ungraded_papers_fail_the_run_and_what_was_answered_is_kept(endpoint, small, tmp_path):
    server = endpoint(lambda n, body: Reply(completion("")) if n % 2 else grades_by_title(n, body))
    done, folder = run(small, server, tmp_path, check=False)
    assert done.returncode == 2
    assert "papers have no grade from the model (empty" in done.stderr
    assert "grade.max_ungraded=0.05" in done.stderr
    assert len((tmp_path / "answers.jsonl").read_text().splitlines()) == server.received
    assert not (folder / "metrics.json").exists()


def test_an_estimate_asks_nothing(endpoint, small, tmp_path):
    server = endpoint(grades_by_title)
    done, folder = run(small, server, tmp_path, "llm.mode=estimate")
    assert server.received == 0
    assert "30 requests (0 more are recorded)" in done.stdout
    assert "price not known" in done.stdout
    assert not (folder / "metrics.json").exists()


def test_samples_measure_the_agreement_of_the_model_with_itself(endpoint, small, tmp_path):
    server = endpoint(grades_by_title)
    _, folder = run(small, server, tmp_path, "grade.samples=3")
    assert server.received == 6 * 5 * 3
    assert {body["seed"] for body in server.bodies} == {42, 43, 44}
    assert metrics(folder)["macro"]["self_agreement"] == 1.0


def test_expected_grades_get_categories_from_the_queries_of_other_folds(endpoint, small, tmp_path):
    _, folder = run(small, endpoint(grades_by_title), tmp_path, "grade.scoring=expected", "grade.explain=none")
    found = metrics(folder)
    assert sorted(found["thresholds"]) == [f"q{i}" for i in range(6)]
    graded = [row for row in rows(folder) if row["outcome"]]
    assert {round(row["expected_grade"], 6) for row in graded} <= {0.3, 1.3, 2.3, 2.1}  # 0.7 g + 0.3 (g + 1 modulo 4)
    for query in found["thresholds"]:
        values = [row["expected_grade"] for row in graded if row["query_id"] == query]
        assert values == sorted(values, reverse=True)


def test_explanations_are_judged_and_summarized(endpoint, small, tmp_path):
    server = endpoint(grades_by_title)
    judge = ["judge=ragas", f"judge.llm.base_url={server.url}", "judge.llm.key_env=TEST_KEY", "judge.top=2"]
    done, folder = run(small, server, tmp_path, *judge, f"judge.llm.recording={tmp_path}/judge.jsonl")
    average = metrics(folder)["explanations"]["average"]
    assert (average["faithfulness"]["mean"], average["faithfulness"]["n"], average["faithfulness"]["of"]) == (
        0.5,
        12,
        12,
    )
    assert average["explanation_relevance"]["mean"] == 2
    assert len((folder / "explanations.jsonl").read_text().splitlines()) == 12
    assert "0.500 ± 0.000 (n = 12 of 12)" in done.stdout


def test_a_replay_without_an_answer_names_query_and_paper(endpoint, small, tmp_path):
    server = endpoint(grades_by_title)
    done, _ = run(small, server, tmp_path, "llm.mode=replay", check=False)
    assert done.returncode == 2
    assert "query q0, paper p" in done.stderr
    assert "llm.mode=record" in done.stderr
    assert server.received == 0


def test_an_ablation_shows_an_arm_without_recorded_answers_as_not_run(small, tmp_path):
    arms = ["ablation.arms=[bm25,bm25_mpnet,bm25_mpnet_llm]", "ablation.baseline=bm25"]
    done = litgrade("ablation", *small, *arms, cwd=tmp_path)
    assert "Not run: bm25_mpnet_llm (query q0, paper p" in done.stdout


def test_a_judge_without_explanations_is_told_before_any_work(small, tmp_path):
    done = litgrade("run", "arm=bm25_mpnet", "judge=ragas", *small, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert "arm bm25_mpnet gives no explanations to judge" in done.stderr
