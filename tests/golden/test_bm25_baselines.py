"""BM25 on six real collections against the figures measured beside them with rank_bm25, within 0.01.

The figures are those of the collections' own README files. Where a collection ships pools, the pool is ranked.
"""

import pytest
from hydra import compose, initialize_config_dir

from experiments.config import config_dir, read_config
from experiments.run import measure

FIGURES = [
    ("cranfield", [], {"ndcg_at_10": 0.476, "recall_at_100": 0.724, "map": 0.372}),
    ("cystic_fibrosis", [], {"ndcg_at_10": 0.431, "recall_at_100": 0.403, "map": 0.245}),
    ("cacm", [], {"ndcg_at_10": 0.393, "recall_at_100": 0.549, "map": 0.252}),
    ("scifact", [], {"ndcg_at_10": 0.664, "recall_at_100": 0.878, "map": 0.633}),
    ("csfcube", ["metrics.min_grade=2"], {"ndcg_at_10": 0.440, "map": 0.338}),
    ("slr_screening", [], {"ndcg_at_10": 0.099, "recall_at_100": 0.216}),
]


@pytest.mark.parametrize(("name", "overrides", "figures"), FIGURES, ids=[name for name, _, _ in FIGURES])
def test_bm25_agrees_with_the_figures_of_the_collection(shared_data, name, overrides, figures):
    settings = ["experiment=bm25_baseline", "collection=beir", f"collection.path={shared_data / name}", *overrides]
    with initialize_config_dir(str(config_dir()), version_base="1.3"):
        config = read_config(compose("config", overrides=settings))
    found = measure(config, config.loader().load()).scores.macro
    assert {metric: found[metric] for metric in figures} == pytest.approx(figures, abs=0.01)
