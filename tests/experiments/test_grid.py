"""A grid gives for every setting what ``litgrade run`` gives for it, and says what its best is worth."""

import json
import random
import re
import shutil
from collections import defaultdict

import numpy as np
import pandas as pd
import pytest
from hydra import compose, initialize_config_dir

from conftest import ROOT, litgrade
from experiments import grid_scores
from experiments.config import NoTuning, config_dir, read_config
from experiments.grid_cost import cost_of_a_paper
from experiments.grid_plots import recall_figure, settings_figure, weights_figure
from experiments.grid_scores import compared_pools, measure_grid
from experiments.grid_settings import Grid, Settings, read_grid
from experiments.grid_summary import Summary, _share_like_best
from experiments.run import measure
from experiments.statistics import compare
from experiments.tuning import Measured
from experiments.verdict import judge_settings
from pipeline.errors import UserError
from pipeline.llm import estimates

SMALL_GRID = [
    "grid.step=0.25", "grid.alphas=[0,0.15,1]", "grid.bm25=[15,30]", "grid.semantic=[10,20]",
    "grid.normalize=[minmax,clip]",
]  # fmt: skip


GRID = {
    "step": 0.25,
    "alphas": [0, 0.15, 1],
    "bm25": [15, 30],
    "semantic": [10, 20],
    "normalize": ["minmax", "clip"],
}


@pytest.fixture(scope="module")
def gaps(tmp_path_factory, small_collection):
    """The small collection with keywords and fields on both sides, and with everything missing somewhere.

    No paper is relevant to q0. One paper is judged for q1, whose tops are empty where unjudged papers are skipped.
    """
    folder = tmp_path_factory.mktemp("gaps") / "gaps"
    shutil.copytree(small_collection, folder)
    rows = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    for row in rows[:4]:  # the others have none
        row["metadata"] |= {"keywords": ["gene", "law"], "domain": "heat", "fields": ["soil", "tax"]}
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    rows = [json.loads(line) for line in (folder / "corpus.jsonl").read_text().splitlines()]
    for i, row in enumerate(rows):
        row["metadata"] |= {"keywords": [["rain"], []][i % 2], "disciplines": [["soil"], ["bond", "tax"], []][i % 3]}
        row["metadata"] |= {"impact_factor": [None, 2.5, 40.0][i % 3]}
        row["title"] = "" if i % 11 == 3 else row["title"]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    header, *lines = (folder / "qrels" / "test.tsv").read_text().splitlines()
    pairs = [line.split("\t") for line in lines]
    kept = [[q, p, "0" if q == "q0" else grade] for q, p, grade in pairs if q != "q1"]
    kept += [[q, p, grade] for q, p, grade in pairs if q == "q1"][:1]
    (folder / "qrels" / "test.tsv").write_text("\n".join([header, *("\t".join(pair) for pair in kept)]))
    return folder


@pytest.fixture
def conf():
    """What composes configs in the process of the tests."""
    with initialize_config_dir(str(config_dir()), version_base="1.3"):
        yield


def composed(overrides):
    return read_config(compose("config", overrides=overrides))


def measured_grid(overrides, grid):
    config = composed(overrides)
    settings, collection = Settings(read_grid(grid, config)), config.loader().load()
    tables = compared_pools(config, collection, max(settings.grid.bm25))
    return config, collection, settings, tables, measure_grid(config, collection, tables, settings)


def summary_of(config, collection, settings, scores):
    measured = Measured(scores.objective, scores.query_ids, scores.area_of, settings.index_of(config))
    verdict = judge_settings(measured, settings.name, NoTuning(method="none"), config.objective)
    return Summary(config, collection, settings, scores, verdict)


def equal_to_runs(overrides, grid, n_sampled, monkeypatch, seed=1):
    """Measure a grid and, one by one, some of its settings; compare every metric, ranking and score."""
    seen = defaultdict(list)  # query -> a block of settings each: ids, positions in rank order, their scores
    original = grid_scores._Lists.ranked

    def ranked(self, order, scores, score):
        seen[self.query_id].append((np.array(self.ids), order, scores))
        return original(self, order, scores, score)

    monkeypatch.setattr(grid_scores._Lists, "ranked", ranked)
    config, collection, settings, _, scores = measured_grid(overrides, grid)
    assert set(seen) == set(scores.query_ids)
    for i in random.Random(seed).sample(range(len(settings)), n_sampled):
        result = measure(composed([*overrides, *settings.overrides(i)]), collection)
        run = result.scores
        for name, value in run.macro.items():
            assert scores.macro[name][i] == pytest.approx(np.nan if value is None else value, abs=1e-12, nan_ok=True)
        of_queries = [run.queries[query_id][config.objective] for query_id in scores.query_ids]
        assert scores.objective[i] == pytest.approx(
            [np.nan if value is None else value for value in of_queries], abs=1e-12, nan_ok=True
        )
        block, vector = divmod(i, len(settings.weights))
        for table in result.rankings:
            ids, order, values = seen[table.query.query_id][block]
            assert ids[order[vector]].tolist() == [paper.paper_id for paper in table.papers]
            assert values[vector].tolist() == table.columns["score"].tolist()  # bit by bit
    return settings


@pytest.mark.parametrize("further", [[], ["metrics.unjudged=skip"], ["metrics.min_grade=3", "cutoffs.evaluate=5"]])
def test_every_setting_measures_as_its_run_does(small, conf, monkeypatch, further):
    settings = equal_to_runs([*small, *further], GRID, 12, monkeypatch)
    assert len(settings) == 35 * 3 * 2 * 2 * 2  # 35 ways to share four quarters between four


@pytest.mark.parametrize("further", [[], ["metrics.unjudged=skip", "objective=ac2"]])
def test_so_it_does_where_texts_judgments_and_relevant_papers_are_missing(small, gaps, conf, monkeypatch, further):
    equal_to_runs([*small, f"collection.path={gaps}", *further], GRID, 20, monkeypatch)


def test_an_unjudged_paper_is_refused_as_in_a_run(small, gaps, conf):
    overrides = [*small, f"collection.path={gaps}", "metrics.unjudged=error"]
    with pytest.raises(UserError, match="is ranked but not judged"):
        measured_grid(overrides, GRID)


def test_the_demo_as_well(conf, monkeypatch):
    if not list((ROOT / "outputs" / "models").glob("minilm-*")):
        pytest.skip("the weights of minilm are not here; make test fetches them")
    places = [f"paths.models={ROOT / 'outputs' / 'models'}", f"paths.cache={ROOT / 'outputs' / 'cache'}"]
    grid = {"step": 0.05, "alphas": [0, 0.15], "bm25": [100], "semantic": [50], "normalize": ["minmax"]}
    settings = equal_to_runs(["embedder=minilm", "tracking=none", *places], grid, 6, monkeypatch)
    assert len(settings.weights) == 1771
    assert len(settings) == 1771 * 2


def test_the_objective_may_be_of_a_cutoff_that_the_grid_lacks(small, conf):
    *_, scores = measured_grid([*small, "cutoffs.bm25=25", "objective=recall_at_25"], {**GRID, "semantic": [20]})
    assert scores.macro["recall_at_25"].min() > 0
    assert (scores.macro["recall_at_25"] == scores.macro["recall_at_20"]).all()  # all that a run returns


def test_weights_are_those_that_one_types():
    settings = Settings(Grid(step=0.05, alphas=(0.15,), bm25=(100,), semantic=(50,), normalize=("minmax",)))
    assert (settings.weights.sum(axis=1).round(9) == 1).all()
    assert len(np.unique(settings.weights, axis=0)) == 1771
    (own,) = np.flatnonzero((settings.weights == [0.55, 0.35, 0.05, 0.05]).all(axis=1))
    assert settings.name(own) == "0.55/0.35/0.05/0.05 alpha 0.15, 100/50, minmax"


def test_the_curves_of_recall_are_those_of_runs(small, conf):
    config, collection, settings, tables, scores = measured_grid(small, GRID)
    figure = recall_figure(summary_of(config, collection, settings, scores), tables, cost=None)
    by_words, by_meaning = (line.get_ydata() for line in figure.axes[0].lines[:2])
    assert len(by_words) == 40  # the whole pool, though no cutoff of the grid is above 30
    assert by_words[-1] == pytest.approx(1)
    recall = measure(config, collection).scores.macro
    assert by_meaning[9] == pytest.approx(recall["recall_at_10"])
    assert by_meaning[19] == pytest.approx(recall["recall_at_20"])
    assert by_words[29] == pytest.approx(by_meaning[-1])  # all that BM25 lets through, in whatever order


def test_settings_without_a_value_are_drawn_and_told(small, gaps, conf):
    overrides = [*small, f"collection.path={gaps}", "metrics.unjudged=skip", "objective=ac2"]
    config, collection, settings, _, scores = measured_grid(overrides, GRID)
    some = np.flatnonzero(np.arange(len(settings)) % 3 == 0)
    scores.objective[some] = np.nan
    summary = summary_of(config, collection, settings, scores)
    assert f" {len(some):,} settings have no value of ac2." in "\n".join(summary.parts(is_terminal=False))
    assert np.isfinite(list(summary.metrics.values())).all()
    for figure in (weights_figure(summary), settings_figure(summary)):
        figure.canvas.draw()
    assert "this config is not in the grid" in weights_figure(summary).get_suptitle()  # 0.55 is no multiple of 0.25


def test_what_cannot_be_compared_is_told(small, gaps, conf):
    told = [
        "\n".join(summary_of(c, collection, s, scores).parts(is_terminal=False))
        for c, collection, s, _, scores in (
            measured_grid(overrides, GRID) for overrides in (small, [*small, f"collection.path={gaps}"])
        )
    ]
    assert "nothing can be compared by keywords or disciplines" in told[0]  # papers have keywords, queries none
    assert "nothing can be compared" not in told[1]


def test_settings_like_the_best_are_those_whose_interval_holds_zero():
    draw = np.random.default_rng(3)
    values = draw.uniform(size=(60, 12)) + np.linspace(0, 0.6, 60)[:, None]
    areas = {f"q{i:02}": "abc"[i % 3] for i in range(12)}  # four queries an area, where too narrow intervals would show
    measured = Measured(values, list(areas), areas)
    best = measured.best()
    rows = [dict(zip(areas, row, strict=True)) for row in values]
    intervals = [compare(row, rows[best], areas, seed=42).interval for row in rows]
    expected = np.mean([low <= 0 <= high for low, high in intervals])
    assert 0.1 < expected < 0.9
    assert _share_like_best(measured, best) == pytest.approx(expected)
    alone = {query_id: query_id for query_id in areas}
    assert _share_like_best(Measured(values, list(areas), alone), best) is None


def test_grading_costs_as_much_where_answers_are_recorded(small, conf, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = composed(small)
    tables = compared_pools(config, config.loader().load(), 30)
    keys, request_key = [], estimates.request_key
    monkeypatch.setattr(estimates, "request_key", lambda *given: keys.append(request_key(*given)) or keys[-1])
    cost = cost_of_a_paper(config, tables)
    assert (cost.queries, cost.papers) == (6, 6 * 20)
    assert len(keys) >= 6 * 20
    answers = [{"key": key, "about": "", "date": "2026-01-01", "latency_s": 1, "content": "{}"} for key in keys]
    (tmp_path / "outputs").mkdir(exist_ok=True)
    (tmp_path / "outputs" / "answers.jsonl").write_text("".join(json.dumps(answer) + "\n" for answer in answers))
    assert cost_of_a_paper(config, tables) == cost


@pytest.fixture(scope="module")
def run_grid(tmp_path_factory, small_collection, tiny_models):
    """One grid of the small collection on the command line, logged."""
    cwd = tmp_path_factory.mktemp("grid")
    chosen = ["collection=beir", f"collection.path={small_collection}", "embedder=folder"]
    chosen += [f"embedder.model.path={tiny_models['embedder']}", "embedder.max_tokens=64"]
    chosen += ["cutoffs.bm25=30", "cutoffs.semantic=20"]
    return cwd, litgrade("grid", *chosen, *SMALL_GRID, "tuning=nested_cv", "tuning.folds=3", cwd=cwd)


def test_the_table_the_splits_and_the_pictures_are_kept(run_grid):
    cwd, done = run_grid
    folder = cwd / done.stdout.splitlines()[-1]
    table = pd.read_parquet(folder / "grid.parquet")
    assert len(table) == 35 * 3 * 2 * 2 * 2
    assert {"weights.title", "weights.alpha", "cutoffs.bm25", "score.normalize", "ac2", "ndcg_at_10"} <= set(table)
    by_query = pd.read_parquet(folder / "objective.parquet")
    areas = {f"q{i}": "AB"[i % 2] for i in range(6)}
    means = by_query.T.groupby(areas).mean().mean()
    assert means.to_numpy() == pytest.approx(table["ndcg_at_10"].to_numpy(), abs=1e-6)  # float32
    splits = json.loads((folder / "splits.json").read_text())
    assert sorted(q for split in splits for q in split["test"]) == sorted(areas)
    for name in ("weights.png", "recall.png", "settings.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG")


def test_it_says_where_its_own_setting_stands(run_grid):
    cwd, done = run_grid
    table = pd.read_parquet(cwd / done.stdout.splitlines()[-1] / "grid.parquet")
    assert "This config is not in the grid" in done.stdout  # 0.55 is no multiple of 0.25
    assert f"{table['ndcg_at_10'].max():.3f}" in done.stdout
    assert "Held-out ndcg_at_10 of the chosen settings" in done.stdout


def test_it_is_one_run_in_mlflow_with_all_files(run_grid):
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{run_grid[0]}/outputs/mlflow.db")
    (run,) = client.search_runs([client.get_experiment_by_name("litgrade").experiment_id])
    assert run.data.tags["kind"] == "grid"
    assert len(run.data.tags["mlflow.note.content"]) <= 7_500
    assert {"held_out", "best_in_sample", "settings"} <= run.data.metrics.keys()
    files = {entry.path for entry in client.list_artifacts(run.info.run_id)}
    assert files == {
        "grid.parquet", "objective.parquet", "splits.json", "grid.md", "weights.png", "recall.png", "settings.png",
    }  # fmt: skip


def test_several_grids_are_a_sweep_of_their_own_figures(tmp_path, small):
    done = litgrade("grid", "-m", *small, *SMALL_GRID[1:], "grid.step=0.25,0.5", cwd=tmp_path)
    assert len(re.findall(r"^\d+ settings on", done.stdout, re.MULTILINE)) == 2
    table = done.stdout[done.stdout.index(" of grid.step") :]
    assert re.search(r"\| job +\| grid.step +\| status +\|", table)


@pytest.mark.parametrize(
    ("override", "line"),
    [
        ("grid.step=0.3", "grid.step: step=0.3 does not divide 1"),
        ("grid.alphas=[0,2]", "grid.alphas.1=2: expected"),
        ("grid.bm25=[]", "grid.bm25: the list is empty; expected at least one value"),
        ("grid=null", "grid=None: expected"),
        ("grid.bm25=[99999999999999999999999]", "grid.bm25.0=99999999999999999999999: expected a number less"),
        ("grid.step=1e-9", "settings are too many"),
        ("grid.step=0.001", "grid: 3,521,038,521 settings are too many, expected at most 1,000,000"),
        ("grid.semantic=[5]", "evaluate=10 is above semantic=5"),
        ("grid.bm25=[50,50]", "a value is named twice"),
        ("arm=bm25", "arm=bm25: a grid varies the stages bm25 > cut > semantic > cut"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(tmp_path, small, override, line):
    done = litgrade("grid", *small, override, cwd=tmp_path, check=False)
    assert done.returncode == 2
    told = [text for text in done.stderr.splitlines() if text.startswith("litgrade:")]
    assert len(told) == 1
    assert line in told[0]
    assert "Traceback" not in done.stderr
