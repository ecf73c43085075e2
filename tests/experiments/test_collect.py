"""``litgrade collect`` as a user meets it, against fourteen imitated sources: what is asked, and what it leaves."""

from __future__ import annotations

import re

import pytest
from hydra import compose, initialize_config_dir

from collect_runs import (
    BARE,
    QUERY,
    SEARCHED,
    N,
    collect,
    manifest,
    pools,
    refused,
    reports,
    rows,
    sources_of,
    write_queries,
)
from conftest import litgrade
from experiments.collect_config import CollectConfig, read_collect_config
from experiments.config import config_dir
from fake_sources import FakeSources, made_up_papers, preprint_doi
from pipeline.errors import UserError


def test_a_collection_holds_every_paper_once_and_where_it_is_from(finished_snapshot):
    corpus = rows(finished_snapshot / "corpus.jsonl.gz")
    assert len(corpus) == len(SEARCHED) * N
    assert set.union(*map(sources_of, corpus)) == {*SEARCHED, "unpaywall"}
    assert pools(finished_snapshot) == {"q1": sorted(row["_id"] for row in corpus), "q2": []}
    counts = manifest(finished_snapshot)["counts"]
    assert (counts["queries"], counts["papers"], counts["records"]) == (2, len(corpus), len(corpus))
    n_with_impact = sum("impact_factor" in row["metadata"] for row in corpus)
    assert counts["with_impact_factor"] == n_with_impact > 0


def test_reports_tell_what_became_of_every_query_at_every_source(finished_snapshot):
    found = reports(finished_snapshot)
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


def test_queries_of_a_file_are_asked_whatever_signs_they_hold(tmp_path, sources_server):
    write_queries(tmp_path / "q.jsonl", **{name.replace(" ", "_"): text for name, text in TEXTS.items()})
    n_before = len(sources_server.requests)
    collect("queries=q.jsonl", "snapshot=s", *BARE, *sources_server.overrides, cwd=tmp_path)
    assert [row["text"] for row in rows(tmp_path / "s" / "queries.jsonl")] == list(TEXTS.values())
    corpus = {row["_id"]: sources_of(row) for row in rows(tmp_path / "s" / "corpus.jsonl.gz")}
    for query_id, pool in pools(tmp_path / "s").items():
        found_by = set.union(*(corpus[paper_id] for paper_id in pool))
        assert {"arxiv", "crossref", "openalex", "semantic_scholar", "doaj", "pubmed", "wos"} <= found_by, query_id
    told = {(seen.source, seen.status) for seen in sources_server.requests[n_before:] if seen.status != 200}
    assert told == {("scopus", 401)}  # for the view with abstracts, which is not licensed


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (r"""a, b = c: \"flutter\" 'x' #1 100% [y] {z} 学习 für AND OR NOT""",
         """a, b = c: "flutter" 'x' #1 100% [y] {z} 学习 für AND OR NOT"""),
        ("  flutter after blanks", "flutter after blanks"),
    ],
)  # fmt: skip
def test_a_query_of_the_command_line_arrives_as_it_was_meant(tmp_path, sources_server, given, meant):
    options = ["sources.names=[arxiv]", "query.keywords=['dart: a, language']", "query.domain='x, y'", "query.id='ü1'"]
    collect(f'query.text="{given}"', *options, "snapshot=a b", *BARE, *sources_server.overrides, cwd=tmp_path)
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
        (
            "sources.available.doaj.base_url=http://127.0.0.1:99999",
            "base_url: http://127.0.0.1:99999: no such port",
        ),
        ("sources.available.doaj.credentials=[{env: []}]", "sources.available.doaj.credentials.0.env=[]: "),
        ("sources.patience.max_mb=1e308", "sources.patience.max_mb=1e+308: expected a number less than"),
        ("sources.available.arxiv.page_size=5000", "page_size=5000: expected a number less than or equal to 2000"),
        ("+sources.available.arxiv.name=crossref", "sources.available.arxiv.name=crossref: no such key"),
        ("query.keywords=dart", "query.keywords=dart: expected a list, such as 'query.keywords=[dart]'"),
    ],
)
def test_a_value_out_of_its_range_is_told_with_its_key(override, told):
    with pytest.raises(UserError, match=f"^.*{re.escape(told)}.*$"):
        configured(QUERY, override)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "q.jsonl:1: the file is empty"),
        (b"\xef\xbb\xbf\n\n", "q.jsonl:1: the file is empty"),
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


def test_previous_asks_three_sources(tmp_path, sources_server):
    n_before = len(sources_server.requests)
    collect(QUERY, "sources=previous", "snapshot=s", *BARE, *sources_server.overrides, cwd=tmp_path)
    assert {seen.source for seen in sources_server.requests[n_before:]} == {"semantic_scholar", "doaj", "pubmed"}
    assert len(rows(tmp_path / "s" / "corpus.jsonl.gz")) == 3 * N


def test_limit_bounds_the_records_of_every_source(tmp_path, sources_server):
    collect(QUERY, "sources.limit=5", "snapshot=s", *BARE, *sources_server.overrides, cwd=tmp_path)
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


def test_a_folder_of_other_things_is_no_place_for_a_snapshot(tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "thesis.tex").touch()
    line = refused(QUERY, "snapshot=s", *BARE, cwd=tmp_path)
    assert line == "litgrade: s holds thesis.tex but no responses.sqlite; give another folder"
