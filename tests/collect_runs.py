"""What tests of ``litgrade collect`` share: fourteen imitated sources, the command, and what a snapshot holds."""

from __future__ import annotations

import csv
import datetime
import gzip
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, litgrade
from experiments.sources import configured_sources
from fake_sources import FAMILIES, JOURNALS, FakeSources, made_up_papers
from fake_sources.answers import Answer, Ask

SEARCHED = tuple(name for name in FAMILIES if name != "unpaywall")
N = 12  #: papers that each of them has
TODAY = datetime.datetime.now(datetime.UTC).date()  # bioRxiv is asked for the last month alone
PAPERS = {name: made_up_papers(N, seed=i, newest=TODAY, days=20) for i, name in enumerate(SEARCHED)}
KNOWN_TO_UNPAYWALL = [paper for papers in PAPERS.values() for paper in papers]
IMPACTS = {issn: 2.0 for _, issn in JOURNALS}
QUERY = 'query.text="Learning System for Flutter Programming"'
BARE = ["tracking=none", "enrich=none"]
KEYS = {"SCOPUS_API_KEY": "scopus-key", "WOS_API_KEY": "wos-key", "LITGRADE_MAILTO": "me@flutter.example"}
NO_KEYS = {name: "" for source in configured_sources().values() for key in source.credentials for name in key.env}
FROZEN = ("corpus.jsonl.gz", "queries.jsonl", "pools.jsonl", "reports.csv", "manifest.json")


@pytest.fixture(scope="module")
def sources_server() -> Iterator[FakeSources]:
    """All sources, none of them at fault."""
    with FakeSources(PAPERS, unpaywall=KNOWN_TO_UNPAYWALL, venues=IMPACTS) as server:
        yield server
    assert server.errors == []


def collect(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return litgrade("collect", *arguments, cwd=cwd, **NO_KEYS | KEYS | environment)


def refused(*arguments: str, cwd: Path, **environment: str) -> str:
    """The one line that a user is told."""
    done = litgrade("collect", *arguments, cwd=cwd, check=False, **NO_KEYS | KEYS | environment)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("litgrade: ")]
    assert done.stderr.strip().endswith(line)
    return line


def started(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    """The same command, under way."""
    return subprocess.Popen(
        [sys.executable, "-m", "experiments.collect", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **NO_KEYS, **KEYS},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
        # A shell starts what it puts into the background, as these tests, deaf to an interrupt.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )


def rows(path: Path) -> list[dict[str, Any]]:
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text("utf-8")
    return [json.loads(line) for line in text.split("\n")[:-1]]


def sources_of(row: Mapping[str, Any]) -> set[str]:
    """Whose records a paper was made of."""
    return {record.split(":")[0] for record in row["metadata"]["records"]}


def pools(snapshot: Path) -> dict[str, list[str]]:
    return {row["query_id"]: row["candidates"] for row in rows(snapshot / "pools.jsonl")}


def reports(snapshot: Path) -> dict[str, dict[str, str]]:
    with (snapshot / "reports.csv").open(encoding="utf-8", newline="") as file:
        return {f"{row['query_id']} {row['source']}".strip(): row for row in csv.DictReader(file)}


def manifest(snapshot: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((snapshot / "manifest.json").read_text("utf-8"))
    return found


def frozen(snapshot: Path) -> dict[str, bytes]:
    return {name: (snapshot / name).read_bytes() for name in FROZEN}


def answers(snapshot: Path) -> list[tuple[str, str, str, int, bytes]]:
    with sqlite3.connect(snapshot / "responses.sqlite") as connection:
        found = connection.execute(
            "SELECT walk, key, request, status, body FROM responses ORDER BY walk, key"
        ).fetchall()
    connection.close()
    return found


def write_queries(path: Path, **texts: str) -> str:
    lines = (json.dumps({"_id": query_id, "text": text}, ensure_ascii=False) for query_id, text in texts.items())
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return f"queries={path}"


@pytest.fixture(scope="session")
def finished_snapshot(tmp_path_factory) -> Path:
    """A snapshot of two queries, completed, whose sources can no longer be reached."""
    folder = tmp_path_factory.mktemp("finished")
    queries = write_queries(folder / "queries.jsonl", q1="Learning System for Flutter Programming", q2="zzyzx")
    with FakeSources(PAPERS, unpaywall=KNOWN_TO_UNPAYWALL, venues=IMPACTS) as server:
        done = collect(
            queries, "snapshot=snapshot", "tracking=none", "enrich.scrape=false", *server.overrides, cwd=folder
        )
    assert done.stdout.splitlines()[-1] == "snapshot"
    return folder / "snapshot"


class Watched(FakeSources):
    """Sources that tell when a request of one of them comes, and that can kill who asks."""

    victim: subprocess.Popen[str] | None = None
    kill_at = 0  #: which request, counted from 1, kills the victim before it is answered

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.came = {name: threading.Event() for name in FAMILIES}

    def answer(self, ask: Ask, n: int) -> Answer:
        if self.victim is not None and len(self.requests) >= self.kill_at:
            self.victim.kill()
        self.came[ask.source].set()
        return super().answer(ask, n)
