"""Imports run one way: no stage can see a judgment, and pipeline knows nothing of Hydra or MLflow."""

import ast
from pathlib import Path

import pytest

from conftest import ROOT

PIPELINE = sorted((ROOT / "src" / "pipeline").rglob("*.py"))


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.add(node.module)
    return names


@pytest.mark.parametrize("path", PIPELINE, ids=lambda path: path.name)
def test_pipeline_imports_no_experiments_hydra_or_mlflow(path):
    roots = {name.split(".")[0] for name in imported(path)}
    assert not roots & {"experiments", "hydra", "omegaconf", "mlflow"}


def test_there_are_files_to_check():
    assert len(PIPELINE) > 10


def test_candidates_carry_no_judgment():
    from experiments.collections.demo import Loader

    collection = Loader().load()
    for table in collection.candidates():
        assert table.columns == {}
        assert not any("grade" in name or "judg" in name for name in dir(table.query) + dir(table.papers[0]))
