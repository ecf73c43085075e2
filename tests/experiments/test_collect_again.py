"""``litgrade collect`` after an end by force, and with more queries or other settings."""

from __future__ import annotations

import random
import re
import signal
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import fake_sources as fake
from collect_runs import (
    BARE,
    FROZEN,
    IMPACTS,
    KNOWN_TO_UNPAYWALL,
    PAPERS,
    QUERY,
    SEARCHED,
    Watched,
    answers,
    collect,
    frozen,
    manifest,
    pools,
    refused,
    reports,
    rows,
    started,
    write_queries,
)
from fake_sources import FakeSources

Address = tuple[str, str, frozenset[tuple[str, str]]]
DAILY = ("biorxiv", "medrxiv")  #: their addresses and answers hold the day


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


def _address(source: str, path: str, params: Mapping[str, str]) -> Address:
    secret = {"mailto", "email", "api_key"}
    path = re.sub(r"\d{4}-\d\d-\d\d/\d{4}-\d\d-\d\d", "DAYS", path)
    return source, path, frozenset((name, value) for name, value in params.items() if name not in secret)


def test_a_collection_that_is_killed_again_and_again_ends_like_an_undisturbed_one(tmp_path):
    queries = write_queries(tmp_path / "q.jsonl", q1="Learning System for Flutter Programming", q2="flutter baskets")
    sized = [name for name in SEARCHED if name not in DAILY]  # there the server chooses
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
    dayless = [answer for answer in answers(snapshot) if not answer[0].endswith(DAILY)]
    return [told, found, dayless]


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


def test_other_settings_are_refused_with_the_key_that_differs(tmp_path, sources_server):
    collect(QUERY, "sources.names=[arxiv]", "snapshot=s", *BARE, *sources_server.overrides, cwd=tmp_path)
    before, n_before = frozen(tmp_path / "s"), len(sources_server.requests)
    for override, told in {
        "sources.limit=7": "sources.limit=300, now it is 7",
        "merge.versions=link": "merge.versions=join, now it is link",
    }.items():
        line = refused(
            QUERY, "sources.names=[arxiv]", "snapshot=s", *BARE, *sources_server.overrides, override, cwd=tmp_path
        )
        assert line == (f"litgrade: s was begun with {told}; set it as it was, or collect into a new snapshot")
    assert frozen(tmp_path / "s") == before
    assert len(sources_server.requests) == n_before


def test_queries_can_be_added_and_only_they_are_asked(tmp_path, sources_server):
    options = ["sources.names=[arxiv,openalex,doaj,pubmed]", "snapshot=s", *BARE, *sources_server.overrides]
    collect(write_queries(tmp_path / "a.jsonl", q1="learning flutter"), *options, cwd=tmp_path)
    pool, n_before = pools(tmp_path / "s")["q1"], len(sources_server.requests)
    collect(write_queries(tmp_path / "b.jsonl", q2="programming"), *options, cwd=tmp_path)
    assert [row["_id"] for row in rows(tmp_path / "s" / "queries.jsonl")] == ["q1", "q2"]
    assert pools(tmp_path / "s")["q1"] == pool
    new = sources_server.requests[n_before:]
    assert Counter(seen.source for seen in new) == {"arxiv": 1, "openalex": 1, "doaj": 1, "pubmed": 2}
    assert not [seen for seen in new if "learning" in f"{seen.path} {seen.params}"]

    line = refused(write_queries(tmp_path / "c.jsonl", q3="dart", q1="another"), *options, cwd=tmp_path)
    assert line.startswith("litgrade: s holds another query q1; give this one another id")
    assert [row["_id"] for row in rows(tmp_path / "s" / "queries.jsonl")] == ["q1", "q2"]


def test_look_ups_that_are_mended_are_followed_by_those_that_hang_on_them(tmp_path):
    """Venues are asked for by the ISSNs that Crossref gives."""
    others, found = PAPERS["crossref"][:5], PAPERS["semantic_scholar"][:5]
    papers = {"crossref": [*others, *found], "semantic_scholar": found}
    options = [QUERY, "sources.names=[semantic_scholar,crossref]", "sources.limit=5", "sources.patience.backoff_s=0"]
    options += ["enrich.scrape=false", "tracking=none"]
    with FakeSources(papers, venues=IMPACTS, faults={"crossref": [fake.server_errors().at(1, times=99)]}) as server:
        collect(*options, "snapshot=mended", *server.overrides, cwd=tmp_path)
        assert reports(tmp_path / "mended")["crossref by DOI"]["stop"] == "HTTP error"
        server.faults = {}
        collect(*options, "snapshot=mended", *server.overrides, cwd=tmp_path)
        collect(*options, "snapshot=undisturbed", *server.overrides, cwd=tmp_path)
    corpora = [frozen(tmp_path / name)["corpus.jsonl.gz"] for name in ("mended", "undisturbed")]
    assert corpora[0] == corpora[1]
    assert manifest(tmp_path / "mended")["counts"]["with_impact_factor"] >= 5
