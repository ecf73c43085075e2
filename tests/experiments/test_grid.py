"""A grid gives for every setting what ``litgrade run`` gives for it, and says what its best is worth."""

import json
import random
import re

import numpy as np
import pandas as pd
import pytest
from hydra import compose, initialize_config_dir

from conftest import ROOT, litgrade
from experiments.config import config_dir, read_config
from experiments.grid_scores import compared_pools, measure_grid
from experiments.grid_settings import Grid, Settings, read_grid
from experiments.run import measure

SMALL_GRID = [
    "grid.step=0.25", "grid.alphas=[0,0.15,1]", "grid.bm25=[15,30]", "grid.semantic=[10,20]",
    "grid.normalize=[minmax,clip]",
]  # fmt: skip


def equal_to_runs(overrides, grid, n_sampled, seed=1):
    """Measure a grid and, one by one, some of its settings; compare every metric."""
    with initialize_config_dir(str(config_dir()), version_base="1.3"):
        config = read_config(compose("config", overrides=overrides))
        settings = Settings(read_grid(grid, config))
        collection = config.loader().load()
        tables = compared_pools(config, collection, max(settings.grid.bm25))
        scores = measure_grid(config, collection, tables, settings)
        for i in random.Random(seed).sample(range(len(settings)), n_sampled):
            one = read_config(compose("config", overrides=[*overrides, *settings.overrides(i)]))
            run = measure(one, collection).scores
            for name, value in run.macro.items():
                assert scores.macro[name][i] == pytest.approx(
                    np.nan if value is None else value, abs=1e-12, nan_ok=True
                )
            of_queries = [run.queries[query_id][config.objective] for query_id in scores.query_ids]
            assert scores.objective[i] == pytest.approx(of_queries, abs=1e-12)
    return settings


@pytest.mark.parametrize("further", [[], ["metrics.unjudged=skip"], ["metrics.min_grade=3", "cutoffs.evaluate=5"]])
def test_every_setting_measures_as_its_run_does(small, further):
    grid = {
        "step": 0.25,
        "alphas": [0, 0.15, 1],
        "bm25": [15, 30],
        "semantic": [10, 20],
        "normalize": ["minmax", "clip"],
    }
    settings = equal_to_runs([*small, *further], grid, n_sampled=12)
    assert len(settings) == 35 * 3 * 2 * 2 * 2  # 35 ways to share four quarters between four


def test_the_demo_as_well(tmp_path):
    if not list((ROOT / "outputs" / "models").glob("minilm-*")):
        pytest.skip("the weights of minilm are not here; make test fetches them")
    places = [f"paths.models={ROOT / 'outputs' / 'models'}", f"paths.cache={ROOT / 'outputs' / 'cache'}"]
    grid = {"step": 0.05, "alphas": [0, 0.15], "bm25": [100], "semantic": [50], "normalize": ["minmax"]}
    settings = equal_to_runs(["embedder=minilm", "tracking=none", *places], grid, n_sampled=6)
    assert len(settings.weights) == 1771
    assert len(settings) == 1771 * 2


def test_weights_are_those_that_one_types():
    settings = Settings(Grid(step=0.05, alphas=(0.15,), bm25=(100,), semantic=(50,), normalize=("minmax",)))
    assert (settings.weights.sum(axis=1).round(9) == 1).all()
    assert len(np.unique(settings.weights, axis=0)) == 1771
    (own,) = np.flatnonzero((settings.weights == [0.55, 0.35, 0.05, 0.05]).all(axis=1))
    assert settings.name(own) == "0.55/0.35/0.05/0.05 alpha 0.15, 100/50, minmax"


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
    assert "The setting of this config is not in the grid" in done.stdout  # 0.55 is no multiple of 0.25
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


@pytest.mark.parametrize(
    ("override", "line"),
    [
        ("grid.step=0.3", "grid.step: step=0.3 does not divide 1"),
        ("grid.alphas=[0,2]", "grid.alphas.1=2: expected"),
        ("grid.bm25=[]", "grid.bm25"),
        ("grid.semantic=[5]", "evaluate=10 is above semantic=5"),
        ("grid.bm25=[50,50]", "a value is named twice"),
        ("arm=bm25", "arm=bm25: a grid varies the stages bm25 > cut > semantic > cut"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(tmp_path, small, override, line):
    done = litgrade("grid", *small, override, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert re.match(rf"litgrade: .*{re.escape(line)}", done.stderr.splitlines()[-1])
    assert "Traceback" not in done.stderr
