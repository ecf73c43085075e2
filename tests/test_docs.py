"""Each command in README and docs runs, and the table in README is what the command prints."""

import csv
import re
import shlex

import pytest

from conftest import ROOT, SHARED, litgrade
from experiments.sources import configured_sources
from fake_sources import FakeSources, made_up_papers
from pipeline.sources import SearchedSource

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMANDS = sorted({line for page in PAGES for block in BLOCK.findall(page.read_text()) for line in block.splitlines()})
MODELS = ROOT / "outputs" / "models"


def commands(start: str) -> list[str]:
    return [command for command in COMMANDS if command.startswith(start)]


def test_every_command_is_of_a_kind_that_is_tested():
    kinds = ("make ", ".venv/bin/litgrade ", ".venv/bin/python scripts/benchmark.py")
    assert [command for command in COMMANDS if not command.startswith(kinds)] == []
    assert commands("make ")
    assert commands(".venv/bin/litgrade run")


@pytest.mark.parametrize("command", commands("make "))
def test_make_targets_exist(command):
    import subprocess

    target = command.removeprefix("make ")
    done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout
    assert f"{target}: " in (ROOT / "Makefile").read_text()


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """One store for all commands, so that the demo collection is embedded once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def collect(tmp_path_factory):
    """Run ``litgrade collect`` against fake sources, always in the same folder, which is returned."""
    folder = tmp_path_factory.mktemp("collecting")
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "flutter"}\n{"_id": "q2", "text": "programming"}\n')
    names = [name for name, source in configured_sources().items() if isinstance(source, SearchedSource)]
    with FakeSources({name: made_up_papers(5, seed) for seed, name in enumerate(names)}) as server:

        def run(command):
            rest = shlex.split(command.replace("QUERIES", "queries.jsonl"))[2:]
            rest += ["tracking=none"] if "sources.mode=replay" in rest else ["tracking=none", *server.overrides]
            assert litgrade("collect", *rest, cwd=folder).stdout
            return folder

        yield run


COLLECTING = commands(".venv/bin/litgrade collect")


@pytest.mark.parametrize("command", COLLECTING)
def test_collect_commands_run(command, collect):
    if "sources.mode=replay" in command:
        collect(made_before(command))
    collect(command)


def made_before(command):
    """The command that collects the snapshot which this one uses."""
    snapshot = re.search(r"outputs/snapshots/\w+", command).group()
    return next(c for c in COLLECTING if snapshot in c and "sources.mode=replay" not in c)


@pytest.mark.parametrize("command", commands(".venv/bin/litgrade run collection=snapshot"))
def test_commands_on_a_snapshot_run(command, collect):
    folder = collect(made_before(command))
    assert litgrade("run", *shlex.split(command)[2:], "tracking=none", cwd=folder).stdout


OTHERS = [c for c in commands(".venv/bin/litgrade ") if c not in COLLECTING and "collection=snapshot" not in c]


# What makes a command of the docs one of seconds, or of this machine.
SMALLER = {
    "experiment=sweep_weights": ["weights.title=0.55,0.65", "weights.alpha=0.15"],
    "experiment=sweep_cutoffs": ["cutoffs.bm25=100,200", "cutoffs.semantic=50"],
    "experiment=tune_weights": ["hydra.sweeper.n_trials=2"],
    "experiment=weights_simplex": ["grid.step=0.25"],
}
NAMES_OF_RUNS = {"RUN_A": "0", "RUN_B": "1", "EXPERIMENT": "."}  # folders of a sweep that stand for them


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory, small_collection):
    """A sweep of two jobs."""
    folder = tmp_path_factory.mktemp("runs") / "sweep"
    chosen = ["collection=beir", f"collection.path={small_collection}", "arm=bm25", "tracking=none"]
    litgrade("run", "-m", *chosen, "bm25.k1=1,2", f"hydra.sweep.dir={folder}", cwd=folder.parent)
    return folder


@pytest.mark.parametrize("command", OTHERS)
def test_litgrade_commands_run(command, tmp_path, small_collection, cache, two_runs):
    """With the small embedder in place of the large one, because embedding takes minutes.

    Recorded answers belong to the ranking of the large one; its vectors come from the store that `make ablation` fills.
    """
    command = command.replace("FOLDER", str(small_collection))
    command = command.replace("submitit_slurm hydra.launcher.partition=NAME", "submitit_local")
    if "../shared" in command:
        if not SHARED.is_dir():
            pytest.skip("the shared collections (../shared/data) are not here")
        command = command.replace("../shared", str(SHARED))
    verb, *rest = shlex.split(command)[1:]
    if verb in {"compare", "report"}:
        rest = [
            *(str(two_runs / NAMES_OF_RUNS[word]) if word in NAMES_OF_RUNS else word for word in rest),
            "tracking=none",
        ]
    if verb in {"run", "ablation", "grid"} and "--help" not in rest:
        if "arm=bm25" not in rest and "experiment=bm25_baseline" not in rest:
            if "../shared" in command or str(SHARED) in command:
                rest = ["--cfg", "job", *rest]  # composed only: these take minutes, see docs/results.md
            elif "arm=bm25_mpnet_llm" in command and "llm.mode=estimate" not in rest:
                if not list(MODELS.glob("mpnet-*")):
                    pytest.skip("the weights of mpnet are not here; make test fetches them")
                cache = ROOT / "outputs" / "cache"
            elif not list(MODELS.glob("minilm-*")):
                pytest.skip("the weights of minilm are not here; make test fetches them")
            else:
                rest += [] if "embedder=minilm" in rest else ["embedder=minilm"]
        rest += ["tracking=none", f"paths.models={MODELS}", f"paths.cache={cache}"]
        rest += [word for name, words in SMALLER.items() if any(name in given for given in rest) for word in words]
    assert litgrade(verb, *rest, cwd=tmp_path, HF_ENDPOINT="http://127.0.0.1:1").stdout


def test_links_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_nothing_names_a_place_of_one_machine():
    for path in [*PAGES, *ROOT.glob("conf/**/*.yaml"), *ROOT.glob("src/**/*.py"), ROOT / "Makefile"]:
        assert not re.search(r"/(work|home|root)/", path.read_text(encoding="utf-8")), path


def test_the_table_in_readme_is_what_make_ablation_prints():
    made = sorted(ROOT.glob("outputs/ablations/*/*/table.csv"))
    if not made:
        pytest.skip("no ablation was run here; make ablation makes the table to compare with")
    with made[-1].open(encoding="utf-8") as file:
        average = [row for row in csv.DictReader(file) if row["area"] == "Average"]
    if {row["collection"] for row in average} != {"demo (made up)"}:
        pytest.skip("the last ablation here was on another collection")
    rows = [
        line.strip("| ").split(" | ")
        for line in (ROOT / "README.md").read_text().splitlines()
        if line.startswith("| ") and "±" in line
    ]
    shown = {
        (cells[0], metric): cell
        for cells in rows
        for metric, cell in zip(("ac2", "ndcg_at_10", "ndcg_top_at_10"), cells[1:], strict=True)
    }
    for row in average:
        if (row["arm"], row["metric"]) in shown:
            cell = f"{float(row['mean']):.3f} ± {float(row['sd']):.3f}" if row["mean"] else "—"
            assert shown.pop((row["arm"], row["metric"])) == cell
    assert shown == {}
