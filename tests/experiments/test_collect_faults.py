"""``litgrade collect`` while sources fail."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import fake_sources as fake
from collect_runs import (
    BARE,
    FROZEN,
    IMPACTS,
    KEYS,
    KNOWN_TO_UNPAYWALL,
    NO_KEYS,
    PAPERS,
    QUERY,
    N,
    collect,
    pools,
    reports,
    rows,
    sources_of,
)
from conftest import ROOT, litgrade
from fake_sources import FakeSources

BUDGET_S = 10
FAULTS = {
    "arxiv": fake.too_many_requests(),
    "biorxiv": fake.hang(),
    "medrxiv": fake.slow_drip(0.2),
    "psyarxiv": fake.connection_reset(),
    "socarxiv": fake.html_page(),
    "crossref": fake.endless(),
    "openalex": fake.repeating(),
    "unpaywall": fake.hang(),
    "scopus": fake.huge_body(50),
    "wos": fake.truncated_gzip(),
    "semantic_scholar": fake.too_many_requests(60),
    "doaj": fake.server_errors(500).at(0, 2),
    "pubmed": fake.server_errors(502),
}
TOLD = {
    "arxiv": ("rate limited", "HTTP 429.*5 attempts"),
    "biorxiv": ("unreachable", "no answer within the budget"),
    "medrxiv": ("unreachable", "no answer within the budget"),
    "psyarxiv": ("unreachable", "5 attempts"),
    "socarxiv": ("malformed", "Down for maintenance.*5 attempts"),
    "edarxiv": ("done", ""),
    "crossref": ("cap", "10 pages"),
    "openalex": ("partial", "page 2 repeats records of earlier pages"),
    "scopus": ("malformed", "more than 20 MB"),
    "wos": ("malformed", "gzip.*5 attempts"),
    "semantic_scholar": ("rate limited", "60 s more would pass the budget"),
    "doaj": ("done", ""),
    "pubmed": ("HTTP error", "HTTP 502.*5 attempts"),
}


#: A child's figure begins with that of the process it was forked from: this one is small, and the tests' is not.
MEASURE = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
print("peak", resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""


def measured(*arguments: str, cwd: Path) -> tuple[int, float]:
    """The exit code and the most memory that the process had, in MB."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, sys.executable, "-m", "experiments.collect", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **NO_KEYS, **KEYS},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, int(done.stdout.split("peak ")[1]) / (1024 if sys.platform == "linux" else 1024**2)


def test_fourteen_sources_with_a_fault_each_leave_the_healthy_ones_whole(tmp_path):
    faults = {name: [fault] for name, fault in FAULTS.items()}
    options = ["sources.max_pages=10", "sources.available.crossref.page_size=20", "sources.patience.backoff_s=0.1"]
    budgets = [f"sources.budget_s={BUDGET_S}", "enrich.budget_s=2", "enrich.scrape=false", "tracking=none"]
    with FakeSources(PAPERS, faults=faults) as server:
        code, most_mb = measured(QUERY, *options, *budgets, "snapshot=s", *server.overrides, cwd=tmp_path)
    assert code == 0
    assert most_mb < 500
    found = reports(tmp_path / "s")
    for name, (stop, detail) in TOLD.items():
        assert found[f"q1 {name}"]["stop"] == stop, name
        assert re.search(detail, found[f"q1 {name}"]["detail"]), name
    assert found["unpaywall by DOI"]["stop"] == "unreachable"
    corpus = rows(tmp_path / "s" / "corpus.jsonl.gz")
    assert pools(tmp_path / "s")["q1"] == [row["_id"] for row in corpus]
    by_source = Counter(source for row in corpus for source in sources_of(row))
    assert by_source == {"edarxiv": N, "doaj": N, "openalex": N, "crossref": 10 * 20}
    assert max(float(row["seconds"]) for row in found.values()) <= BUDGET_S + 1
    asked = [seen.time for seen in server.requests if seen.source != "unpaywall"]
    assert max(asked) - min(asked) <= BUDGET_S + 1 + 2 + 1  # the impact of venues is asked after the searches
    assert server.errors == []


def test_a_strict_collection_fails_a_line_a_fault_and_then_asks_only_what_failed(tmp_path):
    faults = {"openalex": [fake.server_errors()], "doaj": [fake.reply(404)], "wos": [fake.truncated_gzip()]}
    options = ["sources.names=[arxiv,openalex,doaj,wos,crossref,unpaywall,scopus]", "sources.strict=true"]
    options += ["sources.patience.backoff_s=0", "enrich.scrape=false", "tracking=none", "snapshot=s"]
    with FakeSources(PAPERS, faults=faults, unpaywall=KNOWN_TO_UNPAYWALL, venues=IMPACTS) as server:
        done = litgrade(
            "collect",
            QUERY,
            *options,
            *server.overrides,
            cwd=tmp_path,
            check=False,
            **NO_KEYS | KEYS | {"SCOPUS_API_KEY": ""},
        )
        assert done.returncode == 2
        lines = [line for line in done.stderr.splitlines() if line.startswith("litgrade: ")]
        named = [re.match(r"litgrade: (?:q1: )?([\w ]+): .*\(sources.strict=true\)$", line)[1] for line in lines]
        assert named == ["openalex", "doaj", "wos", "scopus", "openalex venues"]
        assert not {*FROZEN} & {path.name for path in (tmp_path / "s").iterdir()}
        server.faults = {}
        first, n_before = {(seen.source, seen.path) for seen in server.requests}, len(server.requests)
        collect(QUERY, *options, *server.overrides, cwd=tmp_path)
    assert (tmp_path / "s" / "manifest.json").exists()
    again = server.requests[n_before:]
    searches = {
        seen.source for seen in again if seen.params.keys() & {"search", "q", "pageSize"} or seen.source == "scopus"
    }
    assert searches == {"openalex", "doaj", "wos", "scopus"}
    assert "arxiv" not in {seen.source for seen in again}
    looked_up = {seen.path for seen in again if seen.source == "unpaywall"}
    new = {f"/v2/{paper.doi}" for name in ("openalex", "doaj", "wos", "scopus") for paper in PAPERS[name]}
    assert looked_up  # of the papers that were found now
    assert looked_up <= new
    assert not {("unpaywall", path) for path in looked_up} & first


def test_where_no_source_answered_the_same_command_asks_again(tmp_path):
    arguments = [QUERY, "sources.names=[arxiv,openalex,doaj]", "sources.patience.backoff_s=0", "sources.budget_s=1"]
    faults = {"arxiv": [fake.connection_reset()], "openalex": [fake.server_errors()], "doaj": [fake.hang()]}
    with FakeSources(PAPERS, faults=faults) as server:
        done = litgrade(
            "collect", *arguments, "snapshot=s", *BARE, *server.overrides, cwd=tmp_path, check=False, **NO_KEYS | KEYS
        )
        told = [line for line in done.stderr.splitlines() if line.startswith("litgrade: ")]
        assert [line.split(":")[1].strip() for line in told[:-1]] == ["arxiv", "openalex", "doaj"]
        assert (done.returncode, told[-1]) == (2, "litgrade: no source gave any paper")
        server.faults = {}
        collect(*arguments, "snapshot=s", *BARE, *server.overrides, cwd=tmp_path)
    assert len(rows(tmp_path / "s" / "corpus.jsonl.gz")) == 3 * N


def test_a_key_that_is_set_later_is_used_by_the_same_command(tmp_path):
    with FakeSources(PAPERS) as server:
        arguments = [QUERY, "sources.names=[arxiv,wos]", "snapshot=s", *BARE, *server.overrides]
        litgrade("collect", *arguments, cwd=tmp_path, **NO_KEYS)
        assert reports(tmp_path / "s")["q1 wos"]["stop"] == "no key"
        collect(*arguments, cwd=tmp_path)
        assert server.received["arxiv"] == 1
    assert reports(tmp_path / "s")["q1 wos"]["stop"] == "done"
