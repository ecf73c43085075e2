"""The table of arms: its form, its files, and what it says of an arm that could not run."""

import csv
import json
from pathlib import Path

import pytest

from conftest import litgrade


@pytest.fixture(scope="module")
def ablation(tmp_path_factory, small_collection, tiny_models) -> tuple[str, Path]:
    """The text printed, and the folder written, by an ablation whose cross-encoder has no weights."""
    cwd = tmp_path_factory.mktemp("ablation")
    done = litgrade(
        "ablation", "collection=beir", f"collection.path={small_collection}", "embedder=folder",
        f"embedder.model.path={tiny_models['embedder']}", "embedder.max_tokens=64", "cutoffs.bm25=30",
        "cutoffs.semantic=20", cwd=cwd, HF_ENDPOINT="http://127.0.0.1:1",
    )  # fmt: skip
    *text, folder = done.stdout.splitlines()
    return "\n".join(text), Path(folder)


def test_a_table_a_metric_with_areas_down_and_arms_across(ablation):
    text, _ = ablation
    assert [line for line in text.splitlines() if line.startswith("**")] == [
        "**AC2**",
        "**NDCG@10, ideal over all judged papers**",
        "**NDCG@10, ideal over the retrieved 10 (the paper's)**",
        "**judged@10**",
        "**Against previous**",
    ]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    graded = ["bm25_mpnet_llm", "bm25_mpnet_llm_expected"]
    assert rows[0] == ["area", "previous", "bm25", "mpnet", "bm25_mpnet", *graded, "cross_encoder"]
    assert [row[0] for row in rows[2:5]] == ["A", "B", "Average"]
    assert rows[2][2] == "—"
    assert rows[2][5:] == ["not run", "not run", "not run"]  # no recorded answers for this collection, no weights


def test_cells_are_the_figures_of_the_runs(ablation):
    text, folder = ablation
    scores = json.loads((folder / "bm25_mpnet" / "metrics.json").read_text())
    mean, sd = scores["macro"]["ndcg_at_10"], scores["sd"]["ndcg_at_10"]
    assert f"{mean:.3f} ± {sd:.3f}" in text
    with (folder / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    found = [r for r in rows if (r["metric"], r["area"], r["arm"]) == ("ndcg_at_10", "Average", "bm25_mpnet")]
    assert [(float(row["mean"]), float(row["sd"])) for row in found] == [(mean, sd)]


def test_an_arm_without_weights_is_told_and_in_no_test(ablation):
    text, folder = ablation
    assert "Not run: cross_encoder (cannot fetch the weights of ms_marco_minilm" in text
    assert "cross_encoder" not in (folder / "comparisons.csv").read_text()
    assert not (folder / "cross_encoder").exists()


def test_every_form_of_the_table_is_written(ablation):
    text, folder = ablation
    assert (folder / "table.md").read_text().strip() == text.strip()
    assert (folder / "table.tex").read_text().count(r"\begin{tabular}") == 4
    assert r"bm25\_mpnet" in (folder / "table.tex").read_text()
    assert (folder / "table.png").read_bytes().startswith(b"\x89PNG")


def test_runs_and_summary_are_tied_in_mlflow(ablation):
    from mlflow import MlflowClient

    outputs = ablation[1].parents[2]
    client = MlflowClient(f"sqlite:///{outputs / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("litgrade")
    runs = client.search_runs([experiment.experiment_id])
    assert {run.info.status for run in runs} == {"FINISHED", "FAILED"}
    assert len({run.data.tags["sweep_id"] for run in runs}) == 1
    failed = [run for run in runs if run.info.status == "FAILED"]
    errors = {run.data.tags["arm"]: run.data.tags["error"] for run in failed}
    assert sorted(errors) == ["bm25_mpnet_llm", "bm25_mpnet_llm_expected", "cross_encoder"]
    assert "cannot fetch" in errors["cross_encoder"]
    assert "no answer to this model, prompt and paper in the bundled answers" in errors["bm25_mpnet_llm"]
    by_kind = {kind: [r for r in runs if r.data.tags["kind"] == kind] for kind in ("run", "summary")}
    (summary,) = by_kind["summary"]
    assert {"table.md", "table.csv", "table.tex", "table.png"} <= {
        artifact.path for artifact in client.list_artifacts(summary.info.run_id)
    }
    finished = [run for run in by_kind["run"] if run.info.status == "FINISHED"]
    assert len(finished) == 4
    assert len({frozenset(run.data.params) for run in finished}) == 1  # the compare view needs the same set
    for run in finished:
        scores = json.loads((ablation[1] / run.data.tags["arm"] / "metrics.json").read_text())
        assert run.data.metrics["ndcg_at_10"] == scores["macro"]["ndcg_at_10"]
        assert run.data.metrics["A/ndcg_at_10"] == scores["areas"]["A"]["ndcg_at_10"]
        assert any(name.startswith("seconds/") for name in run.data.metrics)
        assert {"ranking.jsonl", "run.trec", "config.yaml", "per_query.csv", "metrics.json"} <= {
            artifact.path for artifact in client.list_artifacts(run.info.run_id)
        }


def test_a_missing_model_can_be_made_to_stop_everything(tmp_path):
    arms = ["ablation.arms=[bm25,mpnet]", "ablation.baseline=bm25", "ablation.missing=fail"]
    done = litgrade(
        "ablation", *arms, "embedder=minilm", "tracking=none", cwd=tmp_path, check=False,
        HF_ENDPOINT="http://127.0.0.1:1", PIP_NO_INDEX="1",
    )  # fmt: skip
    assert done.returncode == 2
    assert "cannot fetch the weights of minilm" in done.stderr.splitlines()[-1]


def test_areas_may_have_any_name(tmp_path, small, small_collection):
    import shutil

    folder = tmp_path / "odd"
    shutil.copytree(small_collection, folder)
    queries = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    for query, area in zip(queries, ["Average", r"$\foo$", "../x"] * 2, strict=True):
        query["metadata"]["area"] = area
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    overrides = [override for override in small if override != "tracking=none"]
    done = litgrade(
        "ablation", *overrides, f"collection.path={folder}", "ablation.arms=[bm25]", "ablation.baseline=bm25",
        cwd=tmp_path,
    )  # fmt: skip
    out = Path(done.stdout.splitlines()[-1])
    scores = json.loads((out / "bm25" / "metrics.json").read_text())
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("| Average")][:1]
    assert f"{scores['areas']['Average']['ndcg_at_10']:.3f}" in row
    assert (out / "table.png").exists()
