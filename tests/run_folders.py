"""Folders of finished runs made by hand: what a run would have left, with figures that can be worked out on paper."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from experiments.metrics import aggregate
from experiments.tables import write_csv

SEMANTIC = {
    "weights": {"title": 0.5, "abstract": 0.4, "keywords": 0.05, "disciplines": 0.05, "alpha": 0.2},
    "embedder": {"model": {"name": "tiny", "folder": "somewhere"}, "store": "somewhere"},
}
STAGES = [{"bm25": {"k1": 1.5}}, {"cut": {"keep": 6}}, {"semantic": SEMANTIC}, {"cut": {"keep": 4}}]

Values = Mapping[str, Mapping[str, float | None]]


def semantic_row(paper_id: str, title: float | None = None, reputation: float = 0.0, **more: Any) -> dict[str, Any]:
    """A row of a ranking with these similarities; what is not given is missing."""
    parts = {"sts_title": title, "sts_abstract": None, "sts_keywords": None, "sts_disciplines": None}
    return {"paper_id": paper_id, "title": f"About {paper_id}", **parts, "sts": 0.0, "reputation": reputation, **more}


def write_run(
    folder: Path,
    values: Values,
    area_of: Mapping[str, str],
    rankings: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    *,
    stages: Sequence[Mapping[str, Any]] = STAGES,
    collection: str = "made by hand",
    fingerprint: str | None = "f1",
    **settings: Any,
) -> Path:
    """Write the folder of a run with these values (query -> metric -> value) and rankings (query -> rows in order)."""
    folder.mkdir(parents=True)
    config = {
        "collection": {"name": "beir", "path": "not/here"},
        "arm": {"name": "by_hand", "stages": list(stages)},
        "cutoffs": {"bm25": 6, "semantic": 4, "evaluate": 2},
        "metrics": {"min_grade": 1, "unjudged": "low"},
        "objective": "ndcg_at_2",
        "paths": {"cache": str(folder)},
        "tracking": {"backend": "none"},
        **settings,
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    rows = [
        {"query_id": query_id, "rank": rank, **row}
        for query_id, of_query in (rankings or {}).items()
        for rank, row in enumerate(of_query, start=1)
    ]
    (folder / "ranking.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    scores = aggregate(values, area_of)
    table = [[collection, query_id, area_of[query_id], *values[query_id].values()] for query_id in values]
    write_csv(folder / "per_query.csv", ["collection", "query_id", "area", *scores.macro], table)
    origin = {"collection": {"name": collection, "fingerprint": fingerprint}}
    if fingerprint is not None:
        (folder / "provenance.json").write_text(json.dumps(origin))
    named = {"collection": collection, **asdict(scores), "counts": {"queries": len(values), "ranked": len(rows)}}
    (folder / "metrics.json").write_text(json.dumps(named))
    return folder
