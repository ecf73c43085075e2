"""``litgrade collect`` as a user meets it, against fourteen imitated sources: what it leaves, refuses and survives."""

from __future__ import annotations

import csv
import ctypes
import datetime
import gzip
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import pytest
from hydra import compose, initialize_config_dir

import fake_sources as fake
from conftest import ROOT, litgrade
from experiments.collect_config import CollectConfig, read_collect_config
from experiments.config import config_dir
from experiments.sources import configured_sources
from fake_sources import FAMILIES, JOURNALS, FakeSources, made_up_papers, preprint_doi
from fake_sources.answers import Answer, Ask
from pipeline.errors import UserError

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
def server() -> Iterator[FakeSources]:
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


def write_queries(path: Path, **texts: str) -> str:
    lines = (json.dumps({"_id": query_id, "text": text}, ensure_ascii=False) for query_id, text in texts.items())
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return f"queries={path}"


# What is asked, and what comes of it.


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A snapshot of two queries, completed, whose sources can no longer be reached."""
    folder = tmp_path_factory.mktemp("finished")
    queries = write_queries(folder / "queries.jsonl", q1="Learning System for Flutter Programming", q2="zzyzx")
    with FakeSources(PAPERS, unpaywall=KNOWN_TO_UNPAYWALL, venues=IMPACTS) as server:
        done = collect(
            queries, "snapshot=snapshot", "tracking=none", "enrich.scrape=false", *server.overrides, cwd=folder
        )
    assert done.stdout.splitlines()[-1] == "snapshot"
    return folder / "snapshot"


def test_a_collection_holds_every_paper_once_and_where_it_is_from(finished):
    corpus = rows(finished / "corpus.jsonl.gz")
    assert len(corpus) == len(SEARCHED) * N
    assert set.union(*map(sources_of, corpus)) == {*SEARCHED, "unpaywall"}
    assert pools(finished) == {"q1": sorted(row["_id"] for row in corpus), "q2": []}
    counts = manifest(finished)["counts"]
    assert (counts["queries"], counts["papers"], counts["records"]) == (2, len(corpus), len(corpus))
    n_with_impact = sum("impact_factor" in row["metadata"] for row in corpus)
    assert counts["with_impact_factor"] == n_with_impact > 0


def test_reports_tell_what_became_of_every_query_at_every_source(finished):
    found = reports(finished)
    assert {key for key in found if key.startswith("q1")} == {f"q1 {name}" for name in SEARCHED}
    assert {key for key in found if key.startswith("q2")} == {f"q2 {name}" for name in SEARCHED}
    assert {found[f"q1 {name}"]["records"] for name in SEARCHED} == {str(N)}
    assert {found[f"q2 {name}"]["records"] for name in SEARCHED} == {"0"}
    assert {row["stop"] for row in found.values()} == {"done"}
    assert int(found["unpaywall by DOI"]["records"]) > 0
    assert int(found["openalex venues"]["records"]) > 0


TEXTS = {
    "separators": "a, b = c: \"flutter\" 'x'",
    "signs": "C# flutter 100% [x] {y} (z) & <z> \\ / ? *",
    "interpolation": "flutter ${query.id} $HOME",
    "chinese": "学习 flutter 系统",
    "umlauts": "Über flutter für Müller",
    "operators": "flutter AND dart OR NOT kotlin ANDNOT java NEAR/3 x",
    "fields": "title:flutter ti:x TITLE-ABS-KEY(y) z[tiab]",
    "unbalanced": 'flutter "half (open [one',
    "line separator": "flutter\u2028programming",
    "emoji": "\U0001f600 flutter",
    "long": "flutter " + 400 * "x" + " " + " ".join(f"w{i}" for i in range(200)),
}


def test_queries_of_a_file_are_asked_whatever_signs_they_hold(tmp_path, server):
    write_queries(tmp_path / "q.jsonl", **{name.replace(" ", "_"): text for name, text in TEXTS.items()})
    n_before = len(server.requests)
    collect("queries=q.jsonl", "snapshot=s", *BARE, *server.overrides, cwd=tmp_path)
    assert [row["text"] for row in rows(tmp_path / "s" / "queries.jsonl")] == list(TEXTS.values())
    corpus = {row["_id"]: sources_of(row) for row in rows(tmp_path / "s" / "corpus.jsonl.gz")}
    for query_id, pool in pools(tmp_path / "s").items():
        found_by = set.union(*(corpus[paper_id] for paper_id in pool))
        assert {"arxiv", "crossref", "openalex", "semantic_scholar", "doaj", "pubmed", "wos"} <= found_by, query_id
    told = {(seen.source, seen.status) for seen in server.requests[n_before:] if seen.status != 200}
    assert told == {("scopus", 401)}  # for the view with abstracts, which is not licensed


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (r"""a, b = c: \"flutter\" 'x' #1 100% [y] {z} 学习 für AND OR NOT""",
         """a, b = c: "flutter" 'x' #1 100% [y] {z} 学习 für AND OR NOT"""),
        ("  flutter after blanks", "flutter after blanks"),
    ],
)  # fmt: skip
def test_a_query_of_the_command_line_arrives_as_it_was_meant(tmp_path, server, given, meant):
    options = ["sources.names=[arxiv]", "query.keywords=['dart: a, language']", "query.domain='x, y'", "query.id='ü1'"]
    collect(f'query.text="{given}"', *options, "snapshot=a b", *BARE, *server.overrides, cwd=tmp_path)
    (query,) = rows(tmp_path / "a b" / "queries.jsonl")
    assert (query["_id"], query["text"]) == ("ü1", meant)
    assert query["metadata"] == {"keywords": ["dart: a, language"], "domain": "x, y", "area": "all"}


def configured(*overrides: str) -> CollectConfig:
    """The config of these overrides, checked."""
    with initialize_config_dir(str(config_dir()), version_base="1.3"):
        return read_collect_config(compose("collect", overrides=list(overrides)))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "give query.text='\"...\"' or queries=FILE, one of them"),
        ([QUERY, "queries=q.jsonl"], "give query.text='\"...\"' or queries=FILE, one of them"),
        (["query.text=' ?! ...'"], "query q1: no word to search for in '?! ...'"),
        (["query.text=what (else"], "put texts in quotes"),
        (["queries=nowhere.jsonl"], "nowhere.jsonl: cannot be read (No such file or directory)"),
        ([QUERY, "sources.names=[openalx]"], "unknown source 'openalx' in names; expected some of arxiv, biorxiv, "),
        ([QUERY, "enrich.impact=csv", "enrich.impact_csv=nowhere.csv"], "nowhere.csv: No such file or directory"),
        ([QUERY, "sources=enhancd"], "sources=enhancd: expected one of enhanced, previous; did you mean enhanced?"),
        ([QUERY, "sources.limit=0"], "sources.limit=0: expected a number greater than 0"),
        ([QUERY, "sources.limt=3"], "sources.limt=3: no such key here; did you mean sources.limit?"),
        ([QUERY, "sources.available.doaj.page_size=0"], "sources.available.doaj.page_size=0: expected a number"),
    ],
)
def test_a_mistake_is_told_in_one_line_and_leaves_nothing_behind(tmp_path, arguments, told):
    line = refused(*arguments, "snapshot=s", "tracking=none", cwd=tmp_path)
    assert told in line
    assert "openalx" not in line or line.endswith("; did you mean openalex?")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("sources.names=[doaj,arxiv,doaj]", "names=doaj, arxiv, doaj: a source is named twice"),
        ("sources.names=[]", "sources.names=[]"),
        ("sources.max_pages=ten", "sources.max_pages=ten: expected a valid integer"),
        ("sources.limit=2.5", "sources.limit=2.5: expected a valid integer"),
        ("sources.budget_s=-1", "sources.budget_s=-1: expected a number greater than 0"),
        ("sources.budget_s=nan", "sources.budget_s=nan: expected a number"),
        ("sources.budget_s=inf", "sources.budget_s=inf: expected a number less than or equal to 86400"),
        ("sources.patience.attempts=0", "sources.patience.attempts=0: expected a number greater than or equal to 1"),
        ("sources.mode=reply", "sources.mode=reply: expected 'record' or 'replay'; did you mean replay?"),
        ("sources.strict=perhaps", "sources.strict=perhaps: expected a valid boolean"),
        ("sources.available.doaj.module=terms", "module=terms: expected one of arxiv, biorxiv, crossref, doaj, "),
        ("merge.versions=both", "merge.versions=both: expected 'join' or 'link'"),
        ("enrich.budget_s=0", "enrich.budget_s=0: expected a number greater than 0"),
        ("enrich.impact=csv", "impact=csv needs the table: give enrich.impact_csv=FILE"),
        ("query.id='a b'", "query.id=a b"),
        ("query.keywords=dart", "query.keywords=dart"),
    ],
)
def test_a_value_out_of_its_range_is_told_with_its_key(override, told):
    with pytest.raises(UserError, match=f"^.*{re.escape(told)}.*$"):
        configured(QUERY, override)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "q.jsonl:1: the file is empty"),
        (b'{"_id": "q1", "text": "a flutter"}\n{"_id"', "q.jsonl:2: not JSON"),
        (b'{"_id": "q1", "text": "flutter"}\n\n{"_id": "q1", "text": "b"}', "q.jsonl:3: _id 'q1' is already on line 1"),
        (b'{"_id": "q1", "text": ""}', "q.jsonl:1: the text of query 'q1' is empty"),
        (b'{"_id": "q1", "text": "x", "metadata": {"keywords": "x"}}', "q.jsonl:1: metadata.keywords is 'x'; expected"),
        (b'{"_id": "q1", "text": "\xff"}', "q.jsonl:1: byte 0xff is not UTF-8"),
        (
            b'{"_id": "q1", "text": "x"}\n{"_id": "q2", "text": "--"}',
            "q.jsonl: query q2: no word to search for in '--'",
        ),
    ],
)
def test_a_fault_in_a_file_of_queries_is_told_with_its_place(tmp_path, content, told):
    (tmp_path / "q.jsonl").write_bytes(content)
    with pytest.raises(UserError, match=re.escape(told)):
        configured(f"queries={tmp_path / 'q.jsonl'}").read_queries()


def test_a_file_of_queries_with_a_fault_leaves_nothing_behind(tmp_path):
    (tmp_path / "q.jsonl").write_text('{"_id": "q1", "text": "flutter"}\n{"_id"')
    assert "q.jsonl:2: not JSON" in refused("queries=q.jsonl", "snapshot=s", cwd=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["q.jsonl"]


def test_previous_asks_three_sources(tmp_path, server):
    n_before = len(server.requests)
    collect(QUERY, "sources=previous", "snapshot=s", *BARE, *server.overrides, cwd=tmp_path)
    assert {seen.source for seen in server.requests[n_before:]} == {"semantic_scholar", "doaj", "pubmed"}
    assert len(rows(tmp_path / "s" / "corpus.jsonl.gz")) == 3 * N


def test_limit_bounds_the_records_of_every_source(tmp_path, server):
    collect(QUERY, "sources.limit=5", "snapshot=s", *BARE, *server.overrides, cwd=tmp_path)
    found = reports(tmp_path / "s")
    assert {name: found[f"q1 {name}"]["records"] for name in SEARCHED} == dict.fromkeys(SEARCHED, "5")
    assert {row["stop"] for row in found.values()} == {"cap"}
    assert len(rows(tmp_path / "s" / "corpus.jsonl.gz")) == 5 * len(SEARCHED)


@pytest.mark.parametrize("versions", ["join", "link"])
def test_a_preprint_and_its_article_are_joined_or_name_each_other(tmp_path, versions):
    papers = [paper for paper in made_up_papers(30, seed=90) if paper.is_published][:4]
    with FakeSources({"arxiv": papers, "openalex": papers}) as server:
        options = ["sources.names=[arxiv,openalex]", f"merge.versions={versions}"]
        collect(QUERY, *options, "snapshot=s", *BARE, *server.overrides, cwd=tmp_path)
    corpus = rows(tmp_path / "s" / "corpus.jsonl.gz")
    preprints, articles = {preprint_doi("arxiv", paper) for paper in papers}, {paper.doi for paper in papers}
    if versions == "join":
        assert {row["metadata"]["doi"] for row in corpus} == articles
        assert [len(row["metadata"]["records"]) for row in corpus] == [2, 2, 2, 2]
        return
    assert {row["metadata"]["doi"] for row in corpus} == preprints | articles
    assert {row["metadata"].get("published_as") for row in corpus} == {*articles, None}
    assert {doi for row in corpus for doi in row["metadata"].get("preprints", [])} == preprints


CHOICES = {group: [path.stem for path in sorted((config_dir() / group).glob("*"))] for group in ("sources", "enrich")}
SOURCES = [path.stem for path in sorted((config_dir() / "source").glob("*"))]


@pytest.mark.parametrize(
    "overrides",
    [
        *([f"{group}={choice}"] for group, choices in CHOICES.items() for choice in choices),
        *([f"source@sources.available=[arxiv,{name}]", f"sources.names=[arxiv,{name}]"] for name in SOURCES[1:]),
    ],
    ids="+".join,
)
def test_every_choice_composes(overrides):
    config = configured(*overrides, QUERY)
    assert {*config.sources.names} <= config.sources.available.keys()
    assert config.read_queries()[0].text == "Learning System for Flutter Programming"


def test_help_names_groups_and_keys(tmp_path):
    shown = litgrade("collect", "--help", cwd=tmp_path).stdout
    assert "Usage: litgrade collect" in shown
    assert "sources: enhanced, previous" in shown
    assert "enrich: none, paper" in shown
    assert re.search(r"^  budget_s: 30$", shown, re.MULTILINE)
    assert list(tmp_path.iterdir()) == []


# Faults of sources.

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


# Interruptions.


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


Address = tuple[str, str, frozenset[tuple[str, str]]]


def asked(server: FakeSources, since: int = 0) -> Counter[Address]:
    return Counter(_address(seen.source, seen.path, seen.params) for seen in server.requests[since:])


def kept(snapshot: Path, server: FakeSources) -> Counter[Address]:
    """The requests whose answers are on disk."""
    found: Counter[Address] = Counter()
    if (snapshot / "responses.sqlite").exists():
        for _, _, request, *_ in answers(snapshot):
            url = urlsplit(request.removeprefix(server.url))
            source, _, path = url.path.lstrip("/").partition("/")
            found[_address(source, f"/{path}", dict(parse_qsl(url.query, keep_blank_values=True)))] += 1
    return found


def answers(snapshot: Path) -> list[tuple[str, str, str, int, bytes]]:
    with sqlite3.connect(snapshot / "responses.sqlite") as connection:
        found = connection.execute(
            "SELECT walk, key, request, status, body FROM responses ORDER BY walk, key"
        ).fetchall()
    connection.close()
    return found


def _address(source: str, path: str, params: Mapping[str, str]) -> Address:
    secret = {"mailto", "email", "api_key"}
    return source, path, frozenset((name, value) for name, value in params.items() if name not in secret)


def test_a_collection_that_is_killed_again_and_again_ends_like_an_undisturbed_one(tmp_path):
    queries = write_queries(tmp_path / "q.jsonl", q1="Learning System for Flutter Programming", q2="flutter baskets")
    sized = [name for name in SEARCHED if name not in {"biorxiv", "medrxiv"}]  # there the server chooses
    paged = [f"sources.available.{name}.page_size=5" for name in sized]
    draw = random.Random(5)
    with Watched(PAPERS, unpaywall=KNOWN_TO_UNPAYWALL, venues=IMPACTS) as server:
        options = [queries, *paged, "enrich.scrape=false", "tracking=none", *server.overrides]
        collect(*options, "snapshot=undisturbed", cwd=tmp_path)
        wanted = asked(server)
        for _ in range(5):
            n_left = wanted.total() - kept(tmp_path / "killed", server).total()
            kill_at = len(server.requests) + draw.randint(1, n_left)
            assert _attempt(server, tmp_path, options, wanted, kill_at) == -signal.SIGKILL
        assert _attempt(server, tmp_path, options, wanted, sys.maxsize) == 0
    killed, undisturbed = frozen(tmp_path / "killed"), frozen(tmp_path / "undisturbed")
    assert {name for name in FROZEN if killed[name] != undisturbed[name]} <= {"reports.csv", "manifest.json"}
    assert _without_times(tmp_path / "killed") == _without_times(tmp_path / "undisturbed")
    assert server.errors == []


def _attempt(server: Watched, folder: Path, options: list[str], wanted: Counter[Address], kill_at: int) -> int:
    """Run until this request kills it; what is on disk is never asked again."""
    before, since = kept(folder / "killed", server), len(server.requests)
    server.kill_at = kill_at
    server.victim = started(*options, "snapshot=killed", cwd=folder)
    code = server.victim.wait(60)
    server.victim = None
    assert asked(server, since) <= wanted - before
    return code


def _without_times(snapshot: Path) -> list[Any]:
    """Reports, manifest and answers without clocks."""
    told = [{key: value for key, value in row.items() if key != "seconds"} for row in reports(snapshot).values()]
    found = manifest(snapshot)
    del found["days"], found["responses"], found["files"]["reports.csv"]
    return [told, found, answers(snapshot)]


def test_a_second_process_on_one_snapshot_ends_with_one_line(tmp_path):
    with Watched(PAPERS, faults={"openalex": [fake.hang()]}) as server:
        arguments = [QUERY, "sources.names=[arxiv,openalex]", "snapshot=s", *BARE, *server.overrides]
        first = started(*arguments, cwd=tmp_path)
        assert all(server.came[name].wait(60) for name in ("arxiv", "openalex"))
        n_before = len(server.requests)
        assert refused(*arguments, cwd=tmp_path) == "litgrade: s: another process collects into this snapshot"
        line = refused("sources.mode=replay", "snapshot=s", "tracking=none", cwd=tmp_path)
        assert line == "litgrade: s: another process collects into this snapshot"
        assert len(server.requests) == n_before
        first.kill()
        first.wait()
        line = refused("sources.mode=replay", "snapshot=s", "tracking=none", cwd=tmp_path)
        assert line == "litgrade: s: not collected to the end; run it again without sources.mode=replay"


# Going on.


def test_other_settings_are_refused_with_the_key_that_differs(tmp_path, server):
    collect(QUERY, "sources.names=[arxiv]", "snapshot=s", *BARE, *server.overrides, cwd=tmp_path)
    before, n_before = frozen(tmp_path / "s"), len(server.requests)
    for override, told in {
        "sources.limit=7": "sources.limit=300, now it is 7",
        "merge.versions=link": "merge.versions=join, now it is link",
    }.items():
        line = refused(QUERY, "sources.names=[arxiv]", "snapshot=s", *BARE, *server.overrides, override, cwd=tmp_path)
        assert line == (f"litgrade: s was begun with {told}; set it as it was, or collect into a new snapshot")
    assert frozen(tmp_path / "s") == before
    assert len(server.requests) == n_before


def test_queries_can_be_added_and_only_they_are_asked(tmp_path, server):
    options = ["sources.names=[arxiv,openalex,doaj,pubmed]", "snapshot=s", *BARE, *server.overrides]
    collect(write_queries(tmp_path / "a.jsonl", q1="learning flutter"), *options, cwd=tmp_path)
    pool, n_before = pools(tmp_path / "s")["q1"], len(server.requests)
    collect(write_queries(tmp_path / "b.jsonl", q2="programming"), *options, cwd=tmp_path)
    assert [row["_id"] for row in rows(tmp_path / "s" / "queries.jsonl")] == ["q1", "q2"]
    assert pools(tmp_path / "s")["q1"] == pool
    new = server.requests[n_before:]
    assert Counter(seen.source for seen in new) == {"arxiv": 1, "openalex": 1, "doaj": 1, "pubmed": 2}
    assert not [seen for seen in new if "learning" in f"{seen.path} {seen.params}"]

    line = refused(write_queries(tmp_path / "c.jsonl", q3="dart", q1="another"), *options, cwd=tmp_path)
    assert line.startswith("litgrade: s holds another query q1; give this one another id")
    assert [row["_id"] for row in rows(tmp_path / "s" / "queries.jsonl")] == ["q1", "q2"]


# Replaying.


def replayed(folder: Path) -> subprocess.CompletedProcess[str]:
    return collect("sources.mode=replay", f"snapshot={folder}", "tracking=none", cwd=folder.parent)


def test_a_replay_makes_the_same_bytes_anywhere_without_network(tmp_path, finished):
    copied = shutil.copytree(finished, tmp_path / "else" / "where")
    answered = (copied / "responses.sqlite").read_bytes()
    for name in FROZEN:
        (copied / name).unlink()
    done = replayed(copied)
    assert frozen(copied) == frozen(finished)
    assert (copied / "responses.sqlite").read_bytes() == answered
    n = len(SEARCHED) * N
    assert done.stdout.splitlines()[-2:] == [f"2 queries, {n} records, {n} papers", str(copied)]
    replayed(copied)
    assert frozen(copied) == frozen(finished)


@pytest.mark.parametrize("override", [QUERY, "sources.limit=300", "enrich=none"])
def test_a_replay_refuses_settings(finished, override):
    before = frozen(finished)
    line = refused("sources.mode=replay", f"snapshot={finished}", "tracking=none", override, cwd=finished.parent)
    assert line == f"litgrade: {override}: a replay takes every setting from {finished}; leave it out"
    assert frozen(finished) == before


def test_a_replay_of_nothing_is_refused(tmp_path):
    line = refused("sources.mode=replay", "snapshot=s", "tracking=none", cwd=tmp_path)
    assert line == "litgrade: s: no responses.sqlite to replay; give snapshot=FOLDER of a snapshot"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_told_and_can_still_be_ranked(tmp_path, finished):
    folder = shutil.copytree(finished, tmp_path / "fixed")
    for path in [*folder.iterdir(), folder]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    done = _without_rights("collect", "sources.mode=replay", "snapshot=fixed", "tracking=none", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "fixed/.lock: Permission denied" in done.stderr
    ranked = ["collection=snapshot", "collection.path=fixed", "arm=bm25", "tracking=none"]
    assert _without_rights("run", *ranked, cwd=tmp_path).returncode == 0
    assert frozen(folder) == frozen(finished)
    folder.chmod(0o755)


def _without_rights(verb: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run as a user for whom the rights of files count, even where that is root."""
    drop_from_bounding_set, override_rights = 24, 1
    return subprocess.run(
        [sys.executable, "-m", f"experiments.{verb}", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        preexec_fn=lambda: ctypes.CDLL(None).prctl(drop_from_bounding_set, override_rights, 0, 0, 0),
        capture_output=True,
        text=True,
        check=False,
    )


DAMAGES = {
    "cut": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "answer": lambda file: _execute(file, "UPDATE responses SET body = substr(body, 1, 40)"),
    "facts": lambda file: _execute(file, "UPDATE facts SET value = substr(value, 1, 40)"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_answers_are_told_in_one_line(tmp_path, finished, damage):
    folder = shutil.copytree(finished, tmp_path / "s")
    DAMAGES[damage](folder / "responses.sqlite")
    line = refused("sources.mode=replay", "snapshot=s", "tracking=none", cwd=tmp_path)
    assert line.startswith("litgrade: s/responses.sqlite: ")
    assert line.endswith("; expected the recorded responses of a snapshot")
    assert frozen(folder) == frozen(finished)


def _execute(file: Path, statement: str) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute(statement)
    connection.close()


def test_a_collection_does_not_go_on_from_damaged_answers(tmp_path, server):
    arguments = [QUERY, "sources.names=[arxiv]", "snapshot=s", *BARE, *server.overrides]
    collect(*arguments, cwd=tmp_path)
    _execute(tmp_path / "s" / "responses.sqlite", "UPDATE responses SET body = substr(body, 1, 40)")
    assert "s/responses.sqlite: Error -5 while decompressing" in refused(*arguments, cwd=tmp_path)
    (tmp_path / "s" / "responses.sqlite").write_bytes(b"responses")
    assert "s/responses.sqlite: file is not a database" in refused(*arguments, cwd=tmp_path)


def test_damaged_files_are_made_again_by_a_replay(tmp_path, finished):
    folder = shutil.copytree(finished, tmp_path / "s")
    for name in FROZEN:
        (folder / name).write_bytes(b"damaged")
    replayed(folder)
    assert frozen(folder) == frozen(finished)


# Secrets.

VALUES = {
    name: f"{name.lower()}@sentinel-flutter.test" if "MAIL" in name else f"sentinel+{name.lower()}/x=y"
    for name in NO_KEYS
}
SPELLINGS = {
    spelling.encode(): name
    for name, value in VALUES.items()
    for spelling in (
        value,
        quote(value),
        quote(value, safe=""),
        quote(value, safe="").lower(),
        value.replace("/", r"\/"),
    )
}


def of_source(name: str) -> list[str]:
    """The values that a source is sent: its own credentials, and the contact address in the User-Agent."""
    return [*(VALUES[key.env[0]] for key in configured_sources()[name].credentials), VALUES["LITGRADE_MAILTO"]]


def echoing(name: str, *, is_error: bool) -> fake.Fault:
    """Repeat what was sent: in the titles of papers, or in an error."""
    echo = " ".join(spelling for value in of_source(name) for spelling in (value, quote(value, safe="")))

    def spoil(answer: Answer) -> Answer:
        if is_error:
            return Answer(f"forbidden for {echo}".encode(), "text/plain", 403)
        return replace(answer, body=answer.body.replace(b"flutter programming", f"flutter programming {echo}".encode()))

    return fake.Fault(spoil)


def test_no_key_and_no_address_is_stored_or_shown(tmp_path):
    told = []
    for folder, is_error in (("papers", False), ("errors", True)):
        faults = {name: [echoing(name, is_error=is_error)] for name in FAMILIES}
        with FakeSources(PAPERS, faults=faults, unpaywall=KNOWN_TO_UNPAYWALL, venues=IMPACTS) as server:
            options = ["enrich.scrape=false", "sources.strict=true", "hydra.verbose=true", *server.overrides]
            done = litgrade("collect", QUERY, f"snapshot={folder}", *options, cwd=tmp_path, check=False, **VALUES)
        assert done.returncode == (2 if is_error else 0)
        told.append(done.stdout + done.stderr)
        for name in {seen.source for seen in server.requests}:
            sent = [
                text for s in server.requests if s.source == name for text in (*s.params.values(), *s.headers.values())
            ]
            assert all(any(value in text for text in sent) for value in of_source(name)), name
    assert "***" in "".join(row["title"] for row in rows(tmp_path / "papers" / "corpus.jsonl.gz"))
    assert told[1].count("forbidden for ***") >= len(SEARCHED)
    texts = {"shown": "".join(told).encode()} | _contents(tmp_path)
    assert {"shown", "responses.sqlite", "collect.log", "mlflow.db", "reports.csv"} <= {
        Path(name).name for name in texts
    }
    assert [(place, SPELLINGS[value]) for place, text in texts.items() for value in SPELLINGS if value in text] == []


def _contents(folder: Path) -> dict[str, bytes]:
    """Every file, with what is packed in it."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            found[str(path)] = content = path.read_bytes()
            if path.suffix == ".gz":
                found[f"{path}!"] = gzip.decompress(content)
            if path.name == "responses.sqlite":
                found[f"{path}!"] = b"\n".join(zlib.decompress(body) for *_, body in answers(path.parent))
    return found


def test_a_key_with_signs_that_no_key_has_is_told_by_its_name(tmp_path, server):
    arguments = [QUERY, "sources.names=[scopus]", "snapshot=s", *BARE, *server.overrides]
    line = refused(*arguments, cwd=tmp_path, SCOPUS_API_KEY="sentinel-“quoted”")
    assert "the value of SCOPUS_API_KEY holds characters that no key or address has" in line
    assert "sentinel" not in line


# MLflow.


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


def test_a_folder_of_other_things_is_no_place_for_a_snapshot(tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "thesis.tex").touch()
    line = refused(QUERY, "snapshot=s", *BARE, cwd=tmp_path)
    assert line == "litgrade: s holds thesis.tex but no responses.sqlite; give another folder"


def test_a_key_that_is_set_later_is_used_by_the_same_command(tmp_path):
    with FakeSources(PAPERS) as server:
        arguments = [QUERY, "sources.names=[arxiv,wos]", "snapshot=s", *BARE, *server.overrides]
        litgrade("collect", *arguments, cwd=tmp_path, **NO_KEYS)
        assert reports(tmp_path / "s")["q1 wos"]["stop"] == "no key"
        collect(*arguments, cwd=tmp_path)
        assert server.received["arxiv"] == 1
    assert reports(tmp_path / "s")["q1 wos"]["stop"] == "done"
