"""The command line as a user meets it: help, exit codes, one line for each mistake, no traceback."""

import gzip
import re
import subprocess
import sys

import pytest

from conftest import ROOT, litgrade
from experiments import cli

HEAVY = {
    "torch",
    "transformers",
    "sentence_transformers",
    "mlflow",
    "ragas",
    "irrCAC",
    "pandas",
    "matplotlib",
    "openai",
}


def test_help_names_groups_keys_and_values(tmp_path):
    shown = litgrade("run", "--help", cwd=tmp_path).stdout
    assert "Usage: litgrade run" in shown
    assert "arm: bm25, bm25_mpnet, bm25_mpnet_llm, bm25_mpnet_llm_expected, cross_encoder, mpnet, previous" in shown
    assert "alpha: 0.15" in shown


def test_it_tells_its_version(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert re.fullmatch(r"litgrade \d+\.\d+\.\d+\n", capsys.readouterr().out)


def test_plain_words_are_runs_though_a_run_of_a_sweep_is_named_by_its_settings():
    words = ["bm25.k1=0.9", "cutoffs.bm25=50 cutoffs.semantic=20", "a b", "top=5", "tracking.uri=x", "tpo=5"]
    assert cli._with_runs("compare", words) == [
        "top=5", "tracking.uri=x", "tpo=5", 'runs=["bm25.k1=0.9","cutoffs.bm25=50 cutoffs.semantic=20","a b"]',
    ]  # fmt: skip


def test_what_is_for_sweeps_is_told_to_have_no_effect_on_one_run(tmp_path, small):
    done = litgrade("run", *small, "arm=bm25", "experiment=sweep_cutoffs", "tuning=holdout", cwd=tmp_path)
    assert "without -m this is one run: the values of cutoffs.bm25, cutoffs.semantic are not tried" in done.stderr
    assert "tuning=holdout has no effect on a single run" in done.stderr


def test_switches_of_hydra_that_do_not_go_together(tmp_path):
    assert "Only one of --run, --multirun, --cfg" in refused("run", "-m", "--cfg", "job", cwd=tmp_path)


def test_cfg_job_shows_the_config(tmp_path):
    shown = litgrade("run", "--cfg", "job", "cutoffs.bm25=200", cwd=tmp_path).stdout
    assert "bm25: 200" in shown


def test_the_config_loads_nothing_heavy():
    code = f"import sys, experiments.run, experiments.ablation, experiments.models; print({HEAVY!r} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT / "src")
    assert shown.stdout.strip() == "set()"


def refused(*arguments, cwd, **environment) -> str:
    done = litgrade(*arguments, cwd=cwd, check=False, **environment)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    lines = done.stderr.strip().splitlines()
    assert len([line for line in lines if line.startswith("litgrade: ")]) == 1
    return lines[-1]


@pytest.mark.parametrize("verb", ["run", "ablation"])
def test_a_misspelt_key(tmp_path, verb):
    assert "did you mean weights.title?" in refused(verb, "weights.titel=0.6", cwd=tmp_path)


def test_bytes_that_are_not_utf_8(tmp_path):
    done = litgrade("collect", 'query.text="caf\udce9"', cwd=tmp_path, check=False)  # an é of Latin-1
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert 'caf?": holds bytes that are not UTF-8' in done.stderr


def test_signs_of_an_interpolation_in_a_text(tmp_path):
    done = litgrade("collect", 'query.text="cost ${model}"', cwd=tmp_path, check=False)
    told = "Interpolation key 'model' not found; write \\${ where these signs are meant"
    assert (done.returncode, done.stderr.splitlines()) == (2, [f"litgrade: {told}"])


def test_an_unknown_verb():
    done = subprocess.run(
        [sys.executable, "-c", "from experiments.cli import main; main(['rum'])"],
        cwd=ROOT / "src", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    expected = "run, ablation, collect, sources, compare, grid, report, models"
    assert done.stderr == f"litgrade: unknown verb 'rum': expected one of {expected}; did you mean run?\n"


def test_a_missing_folder(tmp_path, small):
    line = refused("run", *small, f"collection.path={tmp_path / 'nowhere'}", cwd=tmp_path)
    assert re.search(r"nowhere: no such folder; expected the folder of a collection", line)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("corpus.jsonl", b"", r"corpus.jsonl:1: the file is empty"),
        ("qrels/test.tsv", b"query-id\tpaper\tscore\nq0\tp0\t1", r"test.tsv:1: no column corpus-id"),
        ("qrels/test.tsv", b"query-id\tcorpus-id\tscore\nq0\tp0\t4", r"test.tsv:2: score is '4'; expected one of 0, 1"),
        ("corpus.jsonl.gz", gzip.compress(b"x" * 99)[:-9], r"both corpus.jsonl and corpus.jsonl.gz"),
    ],
)
def test_a_wrong_file(tmp_path, small_collection, small, name, content, told):
    import shutil

    folder = tmp_path / "broken"
    shutil.copytree(small_collection, folder)
    (folder / name).write_bytes(content)
    assert re.search(told, refused("run", *small, f"collection.path={folder}", "arm=bm25", cwd=tmp_path))


@pytest.mark.parametrize("key", ["hydra.run.dir", "tracking.artifacts"])
def test_a_file_where_a_folder_belongs(tmp_path, key):
    (tmp_path / "file").write_text("")
    assert "check the paths in the config" in refused("run", "arm=bm25", f"{key}=file", cwd=tmp_path)


def test_a_password_on_the_command_line_is_refused_before_it_is_stored(tmp_path):
    line = refused("run", "-m", "tracking.uri='http://me:sentinel@127.0.0.1'", cwd=tmp_path)
    assert "set MLFLOW_TRACKING_URI instead" in line
    line = refused("run", "-m", "llm.base_url='http://me:sentinel@127.0.0.1'", cwd=tmp_path)
    assert "name the variable that holds the key in key_env instead" in line
    for argument in (
        'llm={base_url:"https://me:sentinel@127.0.0.1/v1"}',
        'tracking={backend:mlflow,uri:"http://me:sentinel@127.0.0.1"}',
        '++grade.llm.base_url="https://127.0.0.1/v1?key=sentinel"',
        "llm.key_env=sentinel",
    ):
        assert "would be stored" in refused("run", "-m", argument, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", ["compare", "report", "models", "sources"])
def test_what_is_not_swept_says_so(tmp_path, verb):
    assert "has no -m" in refused(verb, "-m", "top=5,10", cwd=tmp_path)


def test_a_group_without_a_choice(tmp_path):
    assert "name one of the group's choices" in refused("run", "weights=null", cwd=tmp_path)


def test_a_setting_without_effect_is_told(tmp_path, small):
    done = litgrade("run", *small, "arm=bm25", "weights.alpha=0", cwd=tmp_path)
    assert "weights.alpha=0 has no effect on arm bm25" in done.stderr


def test_an_unreachable_hub_without_weights(tmp_path):
    line = refused(
        "run", "arm=cross_encoder", "tracking=none", cwd=tmp_path, HF_ENDPOINT="http://127.0.0.1:1"
    )  # fmt: skip
    assert "cannot fetch the weights of ms_marco_minilm" in line


def test_damaged_weights(tmp_path):
    from experiments.models import registered_models

    folder = tmp_path / registered_models()["minilm"].location
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"damaged")
    line = refused("run", "arm=mpnet", "embedder=minilm", "tracking=none", cwd=tmp_path)
    assert "damaged weights" in line
    assert "delete outputs/models/minilm-" in line
    done = litgrade("models", "verify", cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert "minilm: damaged" in done.stdout


def test_an_unknown_model(tmp_path):
    assert "did you mean mpnet?" in refused("models", "fetch", "mpnt", cwd=tmp_path)


def test_a_job_that_fails_in_a_multirun_leaves_the_others_alone(tmp_path, small):
    done = litgrade("run", "-m", *small, "arm=bm25", "cutoffs.evaluate=10,25,15,0", cwd=tmp_path, check=False)
    assert done.returncode == 2
    last = done.stderr.splitlines()[-2:]  # every failed job, at the end
    assert "cutoffs.evaluate=25" in last[0]
    assert "evaluate=25 is above semantic=20" in last[0]
    assert "cutoffs.evaluate=0: expected a number greater than 0" in last[1]
    assert len(list(tmp_path.glob("outputs/sweeps/*/*/*/metrics.json"))) == 2


@pytest.mark.parametrize(
    ("verb", "groups"),
    [("run", {"collection", "arm", "llm", "tracking"}), ("collect", {"sources", "enrich", "tracking"})],
)
def test_help_lists_the_groups_of_the_verb(verb, groups, tmp_path):
    told = litgrade(verb, "--help", cwd=tmp_path).stdout.split("choices:\n")[1].split("\n\n")[0]
    listed = {line.split(":")[0] for line in told.splitlines()}
    assert groups <= listed
    assert ("sources" in listed) == (verb == "collect")


def test_a_value_that_could_be_several_is_told_with_the_quotes_to_type(tmp_path):
    done = litgrade("collect", "query.text=flutter, dart", cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("litgrade: cannot read 'query.text=flutter, dart' as one value; put texts in quotes")
