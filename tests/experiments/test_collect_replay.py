"""``litgrade collect sources.mode=replay``: a snapshot from its answers alone."""

from __future__ import annotations

import ctypes
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from collect_runs import BARE, FROZEN, QUERY, SEARCHED, N, collect, frozen, refused
from conftest import ROOT


def replayed(folder: Path) -> subprocess.CompletedProcess[str]:
    return collect("sources.mode=replay", f"snapshot={folder}", "tracking=none", cwd=folder.parent)


def test_a_replay_makes_the_same_bytes_anywhere_without_network(tmp_path, finished_snapshot):
    copied = shutil.copytree(finished_snapshot, tmp_path / "else" / "where")
    answered = (copied / "responses.sqlite").read_bytes()
    for name in FROZEN:
        (copied / name).unlink()
    done = replayed(copied)
    assert frozen(copied) == frozen(finished_snapshot)
    assert (copied / "responses.sqlite").read_bytes() == answered
    n = len(SEARCHED) * N
    assert done.stdout.splitlines()[-2:] == [f"2 queries, {n} records, {n} papers", str(copied)]
    replayed(copied)
    assert frozen(copied) == frozen(finished_snapshot)


@pytest.mark.parametrize("override", [QUERY, "sources.limit=300", "enrich=none"])
def test_a_replay_refuses_settings(finished_snapshot, override):
    before = frozen(finished_snapshot)
    line = refused(
        "sources.mode=replay", f"snapshot={finished_snapshot}", "tracking=none", override, cwd=finished_snapshot.parent
    )
    assert line == f"litgrade: {override}: a replay takes every setting from {finished_snapshot}; leave it out"
    assert frozen(finished_snapshot) == before


def test_a_replay_of_nothing_is_refused(tmp_path):
    line = refused("sources.mode=replay", "snapshot=s", "tracking=none", cwd=tmp_path)
    assert line == "litgrade: s: no responses.sqlite to replay; give snapshot=FOLDER of a snapshot"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_told_and_can_still_be_ranked(tmp_path, finished_snapshot):
    folder = shutil.copytree(finished_snapshot, tmp_path / "fixed")
    for path in [*folder.iterdir(), folder]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    done = _without_rights("collect", "sources.mode=replay", "snapshot=fixed", "tracking=none", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "fixed/.lock: Permission denied" in done.stderr
    ranked = ["collection=snapshot", "collection.path=fixed", "arm=bm25", "tracking=none"]
    assert _without_rights("run", *ranked, cwd=tmp_path).returncode == 0
    assert frozen(folder) == frozen(finished_snapshot)
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
    "no answer": lambda file: _execute(file, "UPDATE responses SET body = NULL"),
    "facts": lambda file: _execute(file, "UPDATE facts SET value = substr(value, 1, 40)"),
    "stop": lambda file: _execute(file, "UPDATE facts SET value = replace(value, '\"done\"', '\"dne\"')"),
    "report": lambda file: _execute(file, "UPDATE facts SET value = '[1]' WHERE name LIKE 'report/search%'"),
}
STRANGE_FACTS = {
    "queries": "[]",
    "queries ": '{"q1": {"query": {"query_id": "q1", "text": "a"}}}',
    "settings": "[1]",
    "settings ": '{"sources": {"names": ["arxiv"]}, "merge": {}, "enrich": {"scraping": {"speed": 3}}}',
}
LOSSES = {
    "search/q1/crossref": "12 records of search/q1/crossref are gone",
    "enrich/openalex venues": "answers of enrich/openalex venues are gone",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_answers_are_told_in_one_line(tmp_path, finished_snapshot, damage):
    folder = shutil.copytree(finished_snapshot, tmp_path / "s")
    DAMAGES[damage](folder / "responses.sqlite")
    line = refused("sources.mode=replay", "snapshot=s", "tracking=none", cwd=tmp_path)
    assert line.startswith("litgrade: s/responses.sqlite: ")
    assert line.endswith("; expected the recorded responses of a snapshot")
    assert frozen(folder) == frozen(finished_snapshot)


@pytest.mark.parametrize("name", STRANGE_FACTS)
def test_facts_that_no_collection_writes_are_told_in_one_line(tmp_path, finished_snapshot, name):
    folder = shutil.copytree(finished_snapshot, tmp_path / "s")
    statement = f"UPDATE facts SET value = '{STRANGE_FACTS[name]}' WHERE name = '{name.strip()}'"
    _execute(folder / "responses.sqlite", statement)
    line = refused("sources.mode=replay", "snapshot=s", "tracking=none", cwd=tmp_path)
    assert line.startswith("litgrade: s/responses.sqlite: ")


@pytest.mark.parametrize("walk", LOSSES)
def test_answers_that_are_gone_are_missed(tmp_path, finished_snapshot, walk):
    folder = shutil.copytree(finished_snapshot, tmp_path / "s")
    _execute(folder / "responses.sqlite", f"DELETE FROM responses WHERE walk = '{walk}'")
    line = refused("sources.mode=replay", "snapshot=s", "tracking=none", cwd=tmp_path)
    told = f"{LOSSES[walk]}; take an undamaged copy, or collect into a new snapshot"
    assert line == f"litgrade: s/responses.sqlite: {told}"
    assert frozen(folder) == frozen(finished_snapshot)


def _execute(file: Path, statement: str) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute(statement)
    connection.close()


def test_a_collection_does_not_go_on_from_damaged_answers(tmp_path, sources_server):
    arguments = [QUERY, "sources.names=[arxiv]", "snapshot=s", *BARE, *sources_server.overrides]
    collect(*arguments, cwd=tmp_path)
    _execute(tmp_path / "s" / "responses.sqlite", "UPDATE responses SET body = substr(body, 1, 40)")
    assert "s/responses.sqlite: Error -5 while decompressing" in refused(*arguments, cwd=tmp_path)
    (tmp_path / "s" / "responses.sqlite").write_bytes(b"responses")
    assert "s/responses.sqlite: file is not a database" in refused(*arguments, cwd=tmp_path)


def test_damaged_files_are_made_again_by_a_replay(tmp_path, finished_snapshot):
    folder = shutil.copytree(finished_snapshot, tmp_path / "s")
    for name in FROZEN:
        (folder / name).write_bytes(b"damaged")
    replayed(folder)
    assert frozen(folder) == frozen(finished_snapshot)
