"""Runs side by side: paired by query, tested as by hand, and what moved told with its reason."""

import csv
import json
import random

import numpy as np
import pytest
from hydra import compose, initialize_config_dir
from scipy import stats

from conftest import litgrade
from experiments.comparison import compare_runs
from experiments.comparison_files import write_comparison
from experiments.comparison_text import comparison_text
from experiments.config import NoTracking, config_dir, read_config
from experiments.finished_runs import find_runs
from experiments.moved import find_moves
from experiments.run import perform
from experiments.statistics import effect_size, holm
from pipeline.errors import UserError
from run_folders import SEMANTIC, STAGES, semantic_row, write_run

AREAS = {"q1": "A", "q2": "A", "q3": "B", "q4": "B"}
FIRST = {"q1": {"ndcg_at_2": 0.5}, "q2": {"ndcg_at_2": 0.7}, "q3": {"ndcg_at_2": 0.9}, "q4": {"ndcg_at_2": 0.4}}
SECOND = {"q1": {"ndcg_at_2": 0.6}, "q2": {"ndcg_at_2": 0.5}, "q3": {"ndcg_at_2": 1.2}, "q4": {"ndcg_at_2": 0.4}}
FILES = ["comparison.md", "comparisons.csv", "deltas.png", "moved.csv", "per_query.csv"]


def read(*folders):
    return find_runs([str(folder) for folder in folders], NoTracking(backend="none"), folders[0])


def compared(*folders, metrics=(), top=2):
    return compare_runs(read(*folders), metrics, top=top, seed=42)


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def runs(tmp_path_factory, small_collection, tiny_models):
    """Folders of four real runs on the small collection: two alike, one without reputation, one of BM25 alone."""
    folder = tmp_path_factory.mktemp("runs")
    shared = [
        "collection=beir", f"collection.path={small_collection}", "embedder=folder", "tracking=none",
        f"embedder.model.path={tiny_models['embedder']}", "embedder.max_tokens=64", f"paths.cache={folder}/cache",
        "cutoffs.bm25=30", "cutoffs.semantic=20",
    ]  # fmt: skip
    settings = {"base": [], "again": [], "no_reputation": ["weights.alpha=0"], "words": ["arm=bm25"]}
    with initialize_config_dir(str(config_dir()), version_base="1.3"):
        for name, overrides in settings.items():
            perform(read_config(compose("config", overrides=[*shared, *overrides])), folder / name, {})
    return folder


@pytest.fixture(scope="module")
def command(runs, tmp_path_factory):
    """What ``litgrade compare`` prints and writes for three of them, and where it ran."""
    cwd = tmp_path_factory.mktemp("compare")
    folders = [str(runs / name) for name in ("base", "no_reputation", "words")]
    done = litgrade("compare", *folders, "hydra.run.dir=out", cwd=cwd)
    *text, folder = done.stdout.splitlines()
    assert folder == str(cwd / "out")
    return "\n".join(text), cwd


def test_what_is_printed_is_what_is_written(command):
    text, cwd = command
    assert sorted(path.name for path in (cwd / "out").iterdir() if path.suffix != ".log") == FILES
    assert (cwd / "out" / "comparison.md").read_text().strip() == text.strip()
    assert (cwd / "out" / "deltas.png").read_bytes().startswith(b"\x89PNG")
    assert "| semantic.weights.alpha | 0.15 " in text
    assert "| stages " in text


def test_differences_are_those_of_the_runs(command, runs):
    rows = rows_of(command[1] / "out" / "per_query.csv")
    scores = {
        name: json.loads((runs / name / "metrics.json").read_text())["queries"] for name in ("base", "no_reputation")
    }
    ours = [row for row in rows if (row["run"], row["metric"]) == ("no_reputation", "ndcg_at_10")]
    assert [row["query_id"] for row in ours] == sorted(scores["base"])
    for row in ours:
        values = [scores[name][row["query_id"]]["ndcg_at_10"] for name in ("base", "no_reputation")]
        assert [float(row["value_baseline"]), float(row["value_run"])] == values
        assert float(row["difference"]) == pytest.approx(values[1] - values[0], abs=1e-12)
    assert {row["metric"] for row in rows} == {"ndcg_at_10", "ndcg_top_at_10", "map", "recall_at_30"}  # BM25: no AC2


def test_figures_are_those_of_scipy(command, runs):
    rows = rows_of(command[1] / "out" / "comparisons.csv")
    queries = {name: json.loads((runs / name / "metrics.json").read_text())["queries"] for name in ("base", "words")}
    (row,) = (row for row in rows if (row["run"], row["metric"]) == ("words", "map"))
    differences = np.array([queries["words"][q]["map"] - queries["base"][q]["map"] for q in sorted(queries["base"])])
    expected = stats.wilcoxon(differences, method="approx")
    assert (float(row["w"]), float(row["p_value"])) == pytest.approx((expected.statistic, expected.pvalue))
    t = stats.ttest_1samp(differences, 0).statistic
    assert float(row["cohen_d"]) == pytest.approx(t / len(differences) ** 0.5)
    means = [json.loads((runs / name / "metrics.json").read_text())["macro"]["map"] for name in ("base", "words")]
    assert [float(row["mean_baseline"]), float(row["mean_run"])] == pytest.approx(means)
    assert float(row["difference"]) == pytest.approx(means[1] - means[0])
    of_metric = [r for r in rows if r["metric"] == "map"]
    assert [float(r["p_holm"]) for r in of_metric] == pytest.approx(holm([float(r["p_value"]) for r in of_metric]))


def test_every_moved_paper_is_in_one_top_only(command, runs):
    rows = rows_of(command[1] / "out" / "moved.csv")
    tops = {}
    for name in ("base", "words"):
        of_run = [json.loads(line) for line in (runs / name / "ranking.jsonl").read_text().splitlines()]
        tops[name] = {(row["query_id"], row["paper_id"]) for row in of_run if row["rank"] <= 10}
    for what, expected in (("entered", tops["words"] - tops["base"]), ("left", tops["base"] - tops["words"])):
        found = [row for row in rows if (row["run"], row["what"]) == ("words", what)]
        assert {(row["query_id"], row["paper_id"]) for row in found} == expected
        assert expected
    assert all(row["why"] for row in rows)
    assert {row["grade"] for row in rows} <= {"", "0", "1", "2", "3"}


def test_the_comparison_is_in_mlflow(command):
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{command[1]}/outputs/mlflow.db")
    (run,) = client.search_runs([client.get_experiment_by_name("litgrade").experiment_id])
    assert (run.info.status, run.data.tags["kind"], run.data.tags["collection"]) == ("FINISHED", "comparison", "small")
    assert run.data.params["baseline"] == "base"
    assert sorted(entry.path for entry in client.list_artifacts(run.info.run_id)) == FILES
    (row,) = (
        row
        for row in rows_of(command[1] / "out" / "comparisons.csv")
        if (row["run"], row["metric"]) == ("words", "map")
    )
    assert run.data.metrics["words/map.difference"] == pytest.approx(float(row["difference"]))


def test_runs_alike_show_no_difference(runs):
    result = compared(runs / "base", runs / "again")
    text = comparison_text(result, 3)
    assert {(entry.comparison.n_nonzero, entry.p_holm) for entry in result.compared} == {(0, 1.0)}
    assert text.count("| no difference |") == len(result.compared)
    assert "no paper entered or left the top 2 of any query" in text
    assert "**What differs in the settings**\n\nNothing." in text


def test_order_of_files_does_not_matter(runs, tmp_path):
    folders = [runs / name for name in ("base", "words")]
    mixed = []
    for seed, folder in enumerate(folders):
        draw, other = random.Random(seed), tmp_path / "mixed" / folder.name
        other.mkdir(parents=True)
        for name in ("ranking.jsonl", "per_query.csv"):
            first, *rest = (folder / name).read_text().splitlines()
            lines = [first, *rest] if name == "ranking.jsonl" else rest
            draw.shuffle(lines)
            (other / name).write_text("\n".join(lines if name == "ranking.jsonl" else [first, *lines]) + "\n")
        metrics = json.loads((folder / "metrics.json").read_text())
        queries = list(metrics["queries"].items())
        draw.shuffle(queries)
        (other / "metrics.json").write_text(json.dumps({**metrics, "queries": dict(queries)}))
        for name in ("config.yaml", "provenance.json"):
            (other / name).write_bytes((folder / name).read_bytes())
        mixed.append(other)
    results = [compared(*some) for some in (folders, mixed)]
    texts = [comparison_text(result, 3) for result in results]
    assert texts[0] == texts[1]
    for result, name in zip(results, "ab", strict=True):
        write_comparison(result, "text", tmp_path / name)
    for name in ("comparisons.csv", "per_query.csv", "moved.csv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_the_first_run_is_the_baseline(tmp_path):
    folders = [write_run(tmp_path / name, values, AREAS) for name, values in (("a", FIRST), ("b", SECOND))]
    (there,), (back,) = compared(*folders).compared, compared(*reversed(folders)).compared
    assert there.deltas == {"q1": 0.1, "q2": -0.2, "q3": 0.3, "q4": 0.0}
    assert back.deltas == {query_id: -delta for query_id, delta in there.deltas.items()}
    assert there.means == pytest.approx((0.625, 0.675))  # means of the areas 0.6, 0.65 and 0.55, 0.8
    assert there.comparison.mean_difference == pytest.approx(0.05)
    assert back.comparison.mean_difference == pytest.approx(-0.05)


def test_queries_without_a_value_are_left_out_and_counted(tmp_path):
    lacking = {**SECOND, "q3": {"ndcg_at_2": None}}
    folders = [write_run(tmp_path / name, values, AREAS) for name, values in (("a", FIRST), ("b", lacking))]
    result = compared(*folders)
    (entry,) = result.compared
    assert (entry.left_out, entry.comparison.n_queries, list(entry.deltas)) == (1, 3, ["q1", "q2", "q4"])
    assert entry.means == pytest.approx((0.5, 0.475))  # of the three queries: areas 0.6, 0.4 and 0.55, 0.4
    assert "ndcg_at_2: 1 query left out, without a value in b or a." in comparison_text(result, 1)


def test_runs_that_cannot_be_paired_are_refused(tmp_path):
    first = write_run(tmp_path / "a", FIRST, AREAS)
    elsewhere = write_run(tmp_path / "b", FIRST, AREAS, collection="another")
    fewer = write_run(tmp_path / "c", {q: FIRST[q] for q in ("q1", "q2", "q4")}, AREAS)
    with pytest.raises(UserError, match="a is on made by hand, b on another"):
        compared(first, elsewhere)
    with pytest.raises(UserError, match="query q3 is measured in a and not in c \\(1 such"):
        compared(first, fewer)
    with pytest.raises(UserError, match="query q3 is measured in a and not in c"):
        compared(fewer, first)


def test_another_version_of_the_collection_and_other_metrics_of_one_name_are_warned_about(tmp_path):
    first = write_run(tmp_path / "a", FIRST, AREAS)
    second = write_run(tmp_path / "b", SECOND, AREAS, fingerprint="f2", metrics={"min_grade": 1, "unjudged": "skip"})
    text = comparison_text(compared(first, second), 1)
    assert "Warning: The collection was not the same for all runs" in text
    assert "Warning: Metrics of one name are not the same in all runs: metrics.unjudged differ" in text
    assert "Warning: Without queries' texts and judgments of papers: the collection cannot be read (not/here" in text
    third = write_run(tmp_path / "c", SECOND, AREAS, fingerprint=None)  # of a version that kept no fingerprint
    assert "was not the same" not in comparison_text(compared(first, third), 1)


def test_wanted_metrics(tmp_path):
    both = {query_id: {**values, "map": 1.0, "mrr": None} for query_id, values in FIRST.items()}
    folders = [write_run(tmp_path / name, both, AREAS) for name in "ab"]
    assert compared(*folders).metrics == ["ndcg_at_2", "map"]
    assert compared(*folders, metrics=["map"]).metrics == ["map"]
    with pytest.raises(UserError, match=r"metrics=mpa: expected metrics that all runs have.*did you mean map"):
        compared(*folders, metrics=["mpa"])
    with pytest.raises(UserError, match="metrics=mrr: no query has it in both a and b"):
        compared(*folders, metrics=["mrr"])


def test_without_judgments_only_moves_are_shown(tmp_path):
    ranked = [[semantic_row("p1"), semantic_row("p2")], [semantic_row("p2"), semantic_row("p1")]]
    folders = [write_run(tmp_path / name, {}, {}, {"q1": rows}) for name, rows in zip("ab", ranked, strict=True)]
    result = compared(*folders, top=1)
    text = comparison_text(result, 1)
    assert "Nothing is measured, for no query has judgments." in text
    assert "**b: 1 paper entered and 1 left the top 1 of 1 query**" in text
    assert "deltas.png" not in write_comparison(result, text, tmp_path / "out")


def moves_of(tmp_path, before, after, stages_before=STAGES, stages_after=STAGES, top=2):
    folders = [
        write_run(tmp_path / name, {"q1": {"map": 1.0}}, {"q1": "A"}, {"q1": rows}, stages=stages)
        for name, rows, stages in (("a", before, stages_before), ("b", after, stages_after))
    ]
    first, second = read(*folders)
    return {move.paper_id: move for move in find_moves(first, second, top)}


def test_what_moved_a_paper_is_its_part_against_those_it_changed_places_with(tmp_path):
    # S = 0.5 title + 0.2 reputation; without reputation p3 passes p2: 0.2 x 0.9 lost by p2, 0.2 x 0.1 by p3.
    ranked = [semantic_row("p1", 0.9, 1.0), semantic_row("p2", 0.5, 0.9), semantic_row("p3", 0.6, 0.1)]
    without = {**SEMANTIC, "weights": {**SEMANTIC["weights"], "alpha": 0.0}}
    stages = [*STAGES[:2], {"semantic": without}, STAGES[3]]
    moves = moves_of(tmp_path, ranked, [ranked[i] for i in (0, 2, 1)], stages_after=stages)
    assert {paper_id: (move.what, move.before["rank"], move.after["rank"]) for paper_id, move in moves.items()} == {
        "p3": ("entered", 3, 2),
        "p2": ("left", 2, 3),
    }
    assert moves["p3"].why == "reputation -0.020, of those it passed -0.180"
    assert moves["p2"].why == "reputation -0.180, of those that passed it -0.020"


def test_weights_are_those_of_the_stage_not_of_the_group(tmp_path):
    ranked = [semantic_row("p1", 0.9), semantic_row("p2", 0.2, 0.5), semantic_row("p3", 0.8, 0.0)]
    own = {"weights": {"title": 1.0, "abstract": 0, "keywords": 0, "disciplines": 0, "alpha": 0}}
    moves = moves_of(tmp_path, ranked, [ranked[i] for i in (0, 2, 1)], stages_after=[*STAGES[:2], {"semantic": own}])
    assert moves["p3"].why == "title +0.400, of those it passed +0.100"  # half the title each: 0.8 / 2, 0.2 / 2


def test_a_paper_that_was_cut_is_told_by_its_cut(tmp_path):
    rows = [semantic_row(f"p{i}", 1 - i / 10, bm25=float(i)) for i in range(1, 5)]
    other = [semantic_row("p9", 0.95, bm25=9.0), *rows[:3]]  # more BM25 than others that passed: cut by the scores
    moves = moves_of(tmp_path / "1", rows, other, top=1)
    assert moves["p9"].why == "not ranked by a: not among the first 4 by semantic"
    assert moves["p1"].why == "1 paper before it was not ranked by a"
    least = [semantic_row("p9", 0.95, bm25=0.5), *rows[:3]]
    assert moves_of(tmp_path / "2", rows, least, top=1)["p9"].why == (
        "not ranked by a: not among the first 6 by bm25 or the first 4 by semantic"
    )
    few = moves_of(tmp_path / "3", rows[:3], least, top=1)  # three are fewer than it keeps
    assert few["p9"].why == "not ranked by a: not among the first 6 by bm25"
    idle = [STAGES[0], {"cut": {"keep": 3}}, *STAGES[2:3], {"cut": {"keep": 3}}]  # its last cut leaves all there are
    alone = moves_of(tmp_path / "5", rows[:3], least, stages_before=idle, top=1)
    assert alone["p9"].why == "not ranked by a: not among the first 3 by bm25"
    back = moves_of(tmp_path / "4", least, rows, top=1)
    assert back["p1"].why == "1 paper before it is not ranked by b"


def test_other_reasons(tmp_path):
    rows = [semantic_row("p1", 0.9, score=1.0), semantic_row("p2", 0.8, score=0.5)]
    words = [{**row, "bm25": 1.0} for row in reversed(rows)]
    moves = moves_of(tmp_path / "1", rows, words, stages_after=[{"bm25": {}}], top=1)
    assert {move.why for move in moves.values()} == {"ranked by bm25, before by semantic"}
    graded = [{**rows[1], "category": "highly relevant"}, {**rows[0], "category": None}]
    moves = moves_of(tmp_path / "2", rows, graded, stages_after=[*STAGES, {"grade": {}}], top=1)
    assert moves["p2"].why == "the model: no category → highly relevant"
    assert moves["p1"].why == "others passed it"
    stages = [{"cross_encoder": {}}]
    other = [{**rows[1], "score": 0.9}, {**rows[0], "score": 0.7}]
    moves = moves_of(tmp_path / "3", rows, other, stages, stages, top=1)
    assert moves["p2"].why == "cross_encoder score +0.400, of those it passed -0.300"


def test_settings_that_stages_repeat_are_told_once(tmp_path):
    cut = [STAGES[0], {"cut": {"keep": 5}}, *STAGES[2:]]
    other = [{"semantic": {**SEMANTIC, "abstract_query": "keywords", "store": "elsewhere"}}]
    folders = [
        write_run(tmp_path / "a", FIRST, AREAS),
        write_run(tmp_path / "b", FIRST, AREAS, stages=cut, cutoffs={"bm25": 5, "semantic": 4, "evaluate": 2}),
        write_run(tmp_path / "c", FIRST, AREAS, stages=other, prompt={"role": "x" * 100}),
    ]
    assert compared(*folders).settings == {
        "stages": ["bm25 > cut > semantic > cut", "bm25 > cut > semantic > cut", "semantic"],
        "cutoffs.bm25": ["6", "5", "6"],
        "semantic.abstract_query": ["default", "default", "keywords"],
    }


def test_texts_that_a_spreadsheet_would_run_are_harmless(tmp_path):
    areas = {"=cmd|' /C calc'!A0": "+A", "q2": "@B"}
    values = {query_id: {"map": 0.5} for query_id in areas}
    rows = [{**semantic_row(paper_id), "title": "-2+3"} for paper_id in ("=p1", "@p2")]
    folders = [
        write_run(tmp_path / name, values, areas, {"=cmd|' /C calc'!A0": of_run}, objective="map")
        for name, of_run in (("a", rows), ("=b", rows[::-1]))
    ]
    result = compared(*folders, top=1)
    write_comparison(result, "", tmp_path / "out")
    cells = []
    for name in ("comparisons.csv", "per_query.csv", "moved.csv"):
        with (tmp_path / "out" / name).open(newline="") as file:
            cells += [cell for row in csv.reader(file) for cell in row]
    assert {"'=cmd|' /C calc'!A0", "'+A", "'=b", "'=p1", "'-2+3"} <= set(cells)
    assert not [cell for cell in cells if cell.startswith(("=", "+", "@", "-2+"))]


def test_effect_sizes_by_hand():
    # Ranks of 0.1 -0.2 0.3 0.4 are 1 (2) 3 4: (8 - 2) / 10. Mean 0.12, sample deviations from it squared sum to 0.228.
    effect = effect_size([0.1, -0.2, 0.3, 0.0, 0.4])
    assert effect.rank_biserial == pytest.approx(0.6)
    assert effect.cohen_d == pytest.approx(0.12 / (0.228 / 4) ** 0.5)
    assert (effect_size([]).rank_biserial, effect_size([]).cohen_d) == (0.0, None)
    assert (effect_size([0.25] * 3).rank_biserial, effect_size([0.25] * 3).cohen_d) == (1.0, None)
    assert (effect_size([0.0, 0.0]).rank_biserial, effect_size([0.0, 0.0]).cohen_d) == (0.0, None)


def test_effect_sizes_against_scipy():
    draw = np.random.default_rng(5)
    for n in (5, 30, 200):
        differences = draw.normal(0.1, 1, n).round(1)  # with ties and zeros
        nonzero = differences[differences != 0]
        total = len(nonzero) * (len(nonzero) + 1) / 2
        positive = stats.wilcoxon(nonzero, alternative="greater", method="approx").statistic  # W+
        effect = effect_size(list(differences))
        assert effect.rank_biserial == pytest.approx((positive - (total - positive)) / total)
        assert effect.cohen_d == pytest.approx(stats.ttest_1samp(differences, 0).statistic / n**0.5)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "which runs?"),
        (["{runs}/base"], "that is one run; name another one"),
        (["{runs}/base", "{runs}/base"], "that is one run; name another one"),
        (["{runs}/base", "{runs}/bsae"], "no such folder"),
        (["{runs}/base", "{runs}/words", "metrics=[ac2]"], "metrics=ac2: no query has it in both base and words"),
        (["{runs}/base", "{runs}/words", "top=0"], "top=0: expected a number greater than 0"),
    ],
)
def test_errors_are_one_line(runs, tmp_path, arguments, told):
    done = litgrade("compare", *(a.format(runs=runs) for a in arguments), "tracking=none", cwd=tmp_path, check=False)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert told in line
    assert not list(tmp_path.rglob("*.md"))


def test_many_runs_are_all_tested_and_the_first_few_shown_query_by_query(tmp_path):
    draw = random.Random(3)
    values = [{query_id: {"ndcg_at_2": draw.random()} for query_id in AREAS} for _ in range(8)]
    folders = [write_run(tmp_path / f"r{i}", of_run, AREAS) for i, of_run in enumerate(values)]
    result = compared(*folders)
    text = comparison_text(result, 1)
    assert [entry.run.name for entry in result.compared] == [f"r{i}" for i in range(1, 8)]
    assert [entry.p_holm for entry in result.compared] == holm([e.comparison.p_value for e in result.compared])
    assert "**r5: ndcg_at_2 is" in text
    assert "**r6: ndcg_at_2 is" not in text
    assert "2 more runs: query by query in per_query.csv" in text
    assert "deltas.png" in write_comparison(result, text, tmp_path / "out")
    assert {row["run"] for row in rows_of(tmp_path / "out" / "per_query.csv")} == {f"r{i}" for i in range(1, 8)}


def test_a_title_cannot_steer_a_terminal_or_leave_its_cell(tmp_path):
    rows = [{**semantic_row(paper_id), "title": "a\x1b[31m|b\r\n| c \u202e" + "x" * 200} for paper_id in ("p1", "p2")]
    folders = [
        write_run(tmp_path / name, {"q1": {"map": 0.5}}, {"q1": "A"}, {"q1": of_run})
        for name, of_run in (("a", rows), ("b", rows[::-1]))
    ]
    text = comparison_text(compared(*folders, top=1), 1)
    (line, _) = (line for line in text.splitlines() if r"[31m\|b \| c xxx" in line)
    assert line.startswith("| entered")
    assert not set(text) & {"\x1b", "\r", "\u202e"}
