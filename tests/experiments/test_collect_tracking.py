"""``litgrade collect`` in MLflow."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import fake_sources as fake
from collect_runs import PAPERS, QUERY, N, Watched, collect, refused, started
from fake_sources import FakeSources


def runs(folder: Path) -> list[Any]:
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{folder}/outputs/mlflow.db")
    return [
        (run, sorted(entry.path for entry in client.list_artifacts(run.info.run_id)))
        for run in client.search_runs([client.get_experiment_by_name("litgrade").experiment_id])
    ]


def test_a_collection_is_one_run_with_figures_and_files(tmp_path):
    faults = {"openalex": [fake.server_errors()]}
    with FakeSources(PAPERS, faults=faults) as server:
        options = ["sources.names=[arxiv,openalex,pubmed]", "sources.patience.backoff_s=0", "enrich=none"]
        collect(QUERY, *options, "snapshot=s", *server.overrides, cwd=tmp_path)
        refused(*[QUERY, *options, "snapshot=t", "sources.strict=true", *server.overrides], cwd=tmp_path)
    (strict, none), (run, files) = runs(tmp_path)
    assert run.info.status == "FINISHED"
    assert {key: run.data.tags[key] for key in ("kind", "collection")} == {"kind": "collect", "collection": "s"}
    metrics = {"papers": 2 * N, "records": 2 * N, "failures": 1, "records/arxiv": N, "records/pubmed": N}
    metrics |= {"records/openalex": 0, "answers/arxiv": 1, "answers/pubmed": 2, "answers/openalex": 0}
    assert run.data.metrics == metrics
    assert run.data.params["sources.names"] == "['arxiv', 'openalex', 'pubmed']"
    assert {"sources.limit", "sources.max_pages", "merge.versions", "enrich.by_doi"} <= run.data.params.keys()
    assert files == ["manifest.json", "reports.csv"]
    assert (strict.info.status, none) == ("FAILED", [])
    assert "openalex: HTTP error: HTTP 500" in strict.data.tags["error"]


def test_an_interrupted_collection_is_a_killed_run(tmp_path):
    with Watched(PAPERS, faults={"openalex": [fake.hang()]}) as server:
        process = started(
            QUERY, "sources.names=[openalex]", "enrich=none", "snapshot=s", *server.overrides, cwd=tmp_path
        )
        assert server.came["openalex"].wait(60)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    ((run, _),) = runs(tmp_path)
    assert run.info.status == "KILLED"
