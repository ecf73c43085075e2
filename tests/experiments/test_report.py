"""The page of a report: what it says, and that no text of a paper can leave its place."""

import json
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml

from conftest import litgrade
from experiments.report_page import harmless, short

HOSTILE = [
    "<script>alert(1)</script>",
    "</td></table></details></main><h1>mine</h1>",
    '"><img src=https://evil.example/x onerror=alert(1)>',
    "javascript:alert(1)",
    "]]><!-- {{ 7 * 7 }} {% raw %} &lt;b&gt;",
    "abc\u202edef\x00ghi\u2066\ud800",
    "long " * 20_000,
]


class Page(HTMLParser):
    """Tags with attributes, the text of the page, and the cells of each table by its label."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.text = ""
        self._cell = False
        self.html = path.read_text(encoding="utf-8")
        self.feed(self.html)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag == "table":
            label = next(a["aria-label"] for _, a in reversed(self.tags) if "aria-label" in a)
            self._rows = self.tables.setdefault(label, [])
        if tag == "tr":
            self._rows.append([])
        if tag in {"td", "th"}:
            self._rows[-1].append("")
        self._cell = tag in {"td", "th"} or (self._cell and tag not in {"tr", "table", "section"})

    def handle_endtag(self, tag):
        if tag in {"table", "tbody", "thead"}:
            self._cell = False

    def handle_data(self, data):
        self.text += data
        if self._cell:
            self._rows[-1][-1] += data.strip("\n")

    def references(self) -> Iterator[str]:
        """Whatever a browser could fetch or follow."""
        for _, attributes in self.tags:
            yield from (str(value) for name, value in attributes.items() if name in {"src", "href", "action", "data"})


def report(*arguments: str, cwd: Path) -> Page:
    done = litgrade("report", *arguments, cwd=cwd)
    return Page(cwd / done.stdout.splitlines()[-1])


def runs_argument(*folders: Path) -> list[str]:
    return [f"runs=[{','.join(map(str, folders))}]", "tracking=none"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory, small_collection, tiny_models) -> Path:
    """Three runs that differ in one cutoff, in one folder."""
    cwd = tmp_path_factory.mktemp("report")
    litgrade(
        "run", "-m", "collection=beir", f"collection.path={small_collection}", "embedder=folder",
        f"embedder.model.path={tiny_models['embedder']}", "embedder.max_tokens=64", "tracking=none",
        "cutoffs.bm25=10,20,30", "cutoffs.semantic=10", "hydra.sweep.dir=sweep",
        "hydra.sweep.subdir=bm25_${cutoffs.bm25}", cwd=cwd,
    )  # fmt: skip
    return cwd / "sweep"


@pytest.fixture(scope="module")
def page(runs) -> Page:
    return report(*runs_argument(runs), cwd=runs.parent)


@pytest.fixture
def copy(runs, tmp_path) -> Path:
    """The same runs, to be tampered with."""
    return Path(shutil.copytree(runs, tmp_path / "sweep"))


def folders(sweep: Path) -> list[Path]:
    return sorted(path.parent for path in sweep.glob("*/metrics.json"))


def name_of(run: Path) -> str:
    """What sets a job of the sweep apart, by which the page calls it."""
    return f"cutoffs.bm25={run.name.removeprefix('bm25_')}"


def metrics_of(run: Path) -> dict:
    return json.loads((run / "metrics.json").read_text())


def change(path: Path, edit) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(edit(i, row)) + "\n" for i, row in enumerate(rows)))


def test_nothing_is_asked_of_the_network_and_nothing_can_run(page):
    references = list(page.references())
    assert all(reference.startswith(("data:", "#")) for reference in references)
    targets = {attributes.get("id") for _, attributes in page.tags}
    assert {reference[1:] for reference in references if reference.startswith("#")} <= targets
    assert not {"script", "iframe", "object", "embed", "form", "base"} & {tag for tag, _ in page.tags}
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    (policy,) = [a["content"] for tag, a in page.tags if tag == "meta" and "http-equiv" in a]
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert "url(" not in page.html
    assert "@import" not in page.html


def test_runs_stand_by_the_objective_with_their_figures(page, runs):
    header, *rows = page.tables["Runs"]
    found = {row[header.index("run")]: row[header.index("NDCG@10")] for row in rows}
    expected = {name_of(run): metrics_of(run) for run in folders(runs)}
    assert found == {
        name: f"{m['macro']['ndcg_at_10']:.3f} ± {m['sd']['ndcg_at_10']:.3f}" for name, m in expected.items()
    }
    means = [float(value.split()[0]) for value in found.values()]
    assert means == sorted(means, reverse=True)
    assert [row[0] for row in rows] == ["1", "2", "3"]


def test_what_sets_runs_apart_from_the_paper(page):
    header, *rows = page.tables["Runs"]
    settings = {row[header.index("run")]: row[3 if "arm" in header else 2] for row in rows}
    assert settings == {f"cutoffs.bm25={keep}": f"cutoffs.bm25 100 → {keep}" for keep in (10, 20, 30)}
    common = re.search(r"All runs differ from the paper in (.*)", page.text).group(1)
    assert common == "cutoffs.semantic 50 → 10, embedder mpnet → folder, embedder.max_tokens 384 → 64."


def test_figures_of_areas_and_queries_are_those_of_the_run(page, runs):
    measured = {name_of(run): metrics_of(run) for run in folders(runs)}
    header, *rows = page.tables["NDCG@10 by area"]
    for row in rows:
        of_run = measured[row[0].split(" · ")[1]]
        for area, cell in zip(header[1:-1], row[1:-1], strict=True):
            assert cell.split(" ± ")[0] == f"{of_run['areas'][area]['ndcg_at_10']:.3f}"
    for query_id in ("q0", "q5"):
        header, *rows = page.tables[f"Metrics of query {query_id}"]
        values = {row[0].split(" · ")[1]: row[header.index("MAP")] for row in rows}
        assert values == {name: f"{m['queries'][query_id]['map']:.3f}" for name, m in measured.items()}


def test_rankings_show_scores_categories_and_judgments(page, runs, small_collection):
    run = runs / "bm25_20"
    rows = [json.loads(line) for line in (run / "ranking.jsonl").read_text().splitlines()]
    first = next(row for row in rows if row["query_id"] == "q0")
    label = next(label for label in page.tables if label.startswith("Ranking of") and label.endswith("bm25=20"))
    header, row, *_ = page.tables[label]  # those of later queries follow
    assert row[0] == "1"
    assert row[1] == f"{first['title']} {first['paper_id']}"
    assert row[header.index("score")] == f"{first['score']:.3f}"
    assert row[header.index("STS")] == f"{first['sts']:.3f}"
    assert first["initial_category"].startswith(row[header.index("initial")])
    lines = (small_collection / "qrels" / "test.tsv").read_text().splitlines()[1:]
    judged = {(query, paper): int(grade) for query, paper, grade in (line.split("\t") for line in lines)}
    grade = judged.get(("q0", first["paper_id"]))
    assert row[header.index("judged")] == ("—" if grade is None else ["low", "somewhat", "moderately", "highly"][grade])


def test_a_best_setting_chosen_on_the_queries_it_is_measured_on_is_told_in_red(page, copy):
    assert [a for tag, a in page.tags if tag == "p" and a.get("class") == "warning"]
    for run in folders(copy):
        settings = yaml.safe_load((run / "config.yaml").read_text())
        settings["tuning"] = {"method": "nested_cv", "folds": 3, "seed": 1}
        (run / "config.yaml").write_text(yaml.safe_dump(settings))
    tuned = report(*runs_argument(copy), cwd=copy.parent)
    assert not [a for tag, a in tuned.tags if tag == "p" and a.get("class") == "warning"]
    assert len(tuned.tables["Folds"]) == 1 + 3
    assert "NDCG@10 on queries that the setting was not chosen on: 0." in tuned.text


def test_a_single_run_is_nobodys_best(runs):
    alone = report(*runs_argument(runs / "bm25_10"), cwd=runs.parent)
    assert not [a for _, a in alone.tags if a.get("class") == "warning"]
    assert "There is nothing to compare" in alone.text
    assert "1 run on" in alone.text


def test_hostile_texts_stay_where_they_are(copy):
    def tamper(i, row):
        bad = HOSTILE[i % len(HOSTILE)]
        answer = {"category": "highly relevant", "outcome": bad, "explanation": bad, "requests": 1, "usd": None}
        return {**row, **answer, "title": bad, "input_tokens": None, "output_tokens": 3}

    for run in folders(copy):
        change(run / "ranking.jsonl", tamper)
    (copy / "bm25_10" / "job.json").unlink()  # or the page would call it by the settings of the job
    (copy / "bm25_10").rename(copy / "<b>10 & more")
    calm, page = ("\n".join(HOSTILE[:5]), report(*runs_argument(copy), cwd=copy.parent))
    assert not {"script", "b onerror"} & {tag for tag, _ in page.tags}
    assert [tag for tag, _ in page.tags].count("h1") == 1
    assert all(reference.startswith(("data:", "#")) for reference in page.references())
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    for text in calm.splitlines():
        assert text in page.text
    assert "<b>10 & more" in page.text
    assert "abc\ufffddef\ufffdghi\ufffd" in page.text
    assert not re.search("[\x00\u202e\u2066]", page.html)
    assert "(cut, 100,000 characters)" in page.text
    assert len(page.html) < 2_000_000


def test_what_is_missing_is_said(copy, tmp_path):
    for run in folders(copy):
        settings = yaml.safe_load((run / "config.yaml").read_text())
        settings["collection"]["path"] = str(tmp_path / "gone")
        (run / "config.yaml").write_text(yaml.safe_dump(settings))
        (run / "provenance.json").unlink()
    page = report(*runs_argument(copy), cwd=tmp_path)
    assert "The collection could not be read" in page.text
    assert "judged" not in next(rows[0] for label, rows in page.tables.items() if label.startswith("Ranking of"))
    assert "No run asked a language model." in page.text


def test_runs_without_judgments_are_shown_without_figures(copy):
    for run in folders(copy):
        metrics = {**metrics_of(run), **{part: {} for part in ("queries", "areas", "areas_sd", "macro", "sd")}}
        (run / "metrics.json").write_text(json.dumps(metrics))
        (run / "per_query.csv").write_text("collection,query_id,area\n")
    page = report(*runs_argument(copy), cwd=copy.parent)
    header, *rows = page.tables["Runs"]
    assert [row[header.index("NDCG@10")] for row in rows] == ["—"] * 3
    assert "There is nothing to compare" in page.text
    assert sum(label.startswith("Ranking of") for label in page.tables) == 3


def test_costs_and_what_the_judge_said(copy):
    run = copy / "bm25_10"
    metrics = metrics_of(run)
    use = {"papers": 9, "outcomes": {"graded": 8, "refused": 1}, "requests": 10.0, "input_tokens": 12345.0}
    metrics["model_use"] = {"run": {**use, "output_tokens": None, "usd": 0.5, "paid_usd": 0.125}, "queries": {}}
    (run / "metrics.json").write_text(json.dumps(metrics))
    first = json.loads((run / "ranking.jsonl").read_text().splitlines()[0])
    scores = {"faithfulness": None, "explanation_relevance": 3, "faults": {"faithfulness": "timeout"}}
    judged = {"query_id": first["query_id"], "paper_id": first["paper_id"], **scores}
    (run / "explanations.jsonl").write_text(json.dumps(judged) + "\n")
    page = report(*runs_argument(run), cwd=copy.parent)
    header, row = page.tables["Cost"]
    found = dict(zip(header, row, strict=True))
    assert found["papers"] == "graded 8refused 1"
    assert [found[name] for name in ("requests", "tokens in", "tokens out")] == ["10", "12,345", "unknown"]
    assert [found[name] for name in ("paid", "saved", "in all")] == ["$0.1250", "$0.3750", "$0.5000"]
    assert "faithfulness: none, timeout · relevance of the explanation 3" in page.text


def test_what_is_left_out_is_said(runs):
    page = report(*runs_argument(runs), "report.queries=2", "report.top=3", cwd=runs.parent)
    assert sum(label.startswith("Metrics of query") for label in page.tables) == 2
    assert "4 more queries: report.queries=6 shows them all" in page.text
    assert "3 of 10 papers" in page.text


def test_a_ranking_that_is_the_same_is_not_repeated(copy):
    shutil.copy(copy / "bm25_10" / "ranking.jsonl", copy / "bm25_20" / "ranking.jsonl")
    page = report(*runs_argument(copy / "bm25_10", copy / "bm25_20"), cwd=copy.parent)
    assert page.text.count("The same papers with the same figures as 1 · ") == 6
    assert sum(label.startswith("Ranking of") for label in page.tables) == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "no runs given"),
        (["report.baseline=other"], "report.baseline=other: expected a run"),
        (["report.top=0"], "report.top=0"),
        (["runs=[nowhere]"], "nowhere"),
    ],
)
def test_errors_are_one_line(runs, arguments, told):
    named = [] if told == "no runs given" or "runs=[nowhere]" in arguments else [f"runs=[{runs}]"]
    done = litgrade("report", *named, *arguments, "tracking=none", cwd=runs.parent, check=False)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert told in done.stderr


def test_texts_are_cut_and_cleaned():
    assert short("abcdef", 3) == "abc… (cut, 6 characters)"
    assert short("abc", 3) == "abc"
    assert harmless("a\tb\nc\x1bd\u200fe") == "a\tb\nc\ufffdd\u200fe"
