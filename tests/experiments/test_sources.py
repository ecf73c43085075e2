"""``litgrade sources``: the table of sources, without network, that tells of keys but never shows one."""

from __future__ import annotations

from pathlib import Path

from conftest import ROOT, litgrade
from experiments.config import config_dir
from experiments.sources import configured_sources
from pipeline.collecting.client import CONTACT_ENV

SOURCES = configured_sources()
NO_KEYS = {name: "" for source in SOURCES.values() for key in source.credentials for name in key.env}
#: A Python that starts with this cannot open any connection.
OFFLINE = "import socket\ndef refuse(*_): raise AssertionError('asked the network')\nsocket.socket.connect = refuse\n"


def table(folder: Path, **keys: str) -> dict[str, dict[str, str]]:
    """The rows by name, as the command line shows them."""
    (folder / "sitecustomize.py").write_text(OFFLINE)
    environment = NO_KEYS | keys | {"PYTHONPATH": f"{folder}:{ROOT / 'src'}"}
    shown = litgrade("sources", cwd=folder, **environment).stdout
    assert not [key for key in keys.values() if key in shown]
    header, _, *rows = [_cells(line) for line in shown.splitlines() if line.startswith("|")]
    return {row[0]: dict(zip(header, row, strict=True)) for row in rows}


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_every_configured_source_has_a_row(tmp_path):
    rows = table(tmp_path)
    assert {*rows} == {path.stem for path in (config_dir() / "source").glob("*.yaml")} == {*SOURCES}
    assert len(rows) == 14
    assert rows["arxiv"]["pace"] == "0.33 a second"
    assert rows["psyarxiv"]["pace"] == "64 an hour"
    assert "abstracts" in rows["doaj"]["gives"]


def test_without_keys_the_sources_that_need_one_are_told_to_be_skipped(tmp_path):
    keys = {name: row["keys and addresses"] for name, row in table(tmp_path).items()}
    assert {name for name, text in keys.items() if "needed, missing, so it is skipped" in text} == {
        "scopus", "wos", "unpaywall",
    }  # fmt: skip
    assert {name for name, text in keys.items() if text == "none"} == {"arxiv", "biorxiv", "medrxiv", "doaj"}
    assert keys["wos"] == "WOS_API_KEY: needed, missing, so it is skipped"
    assert keys["semantic_scholar"] == "S2_API_KEY: optional, not set"


def test_keys_are_told_to_be_here_and_never_shown(tmp_path):
    rows = table(tmp_path, **{name: f"sentinel-{name}" for name in NO_KEYS})
    assert not any(word in row["keys and addresses"] for row in rows.values() for word in ("not set", "missing"))


def test_one_address_serves_every_source_that_wants_one(tmp_path):
    rows = table(tmp_path, **{CONTACT_ENV: "me@sentinel-flutter.test"})
    assert {name for name, row in rows.items() if "LITGRADE_MAILTO: " in row["keys and addresses"]} == {
        "crossref", "openalex", "unpaywall", "pubmed",
    }  # fmt: skip
    assert rows["unpaywall"]["keys and addresses"] == "UNPAYWALL_EMAIL or LITGRADE_MAILTO: needed, set"
    assert "OPENALEX_API_KEY: optional, not set" in rows["openalex"]["keys and addresses"]


def test_a_key_that_only_helps_another_one_is_not_enough(tmp_path):
    keys = table(tmp_path, SCOPUS_INSTTOKEN="sentinel-token")["scopus"]["keys and addresses"]
    assert keys == "SCOPUS_API_KEY: needed, missing, so it is skipped; SCOPUS_INSTTOKEN: optional, set"


def test_a_key_with_signs_that_no_key_has_is_one_line(tmp_path):
    done = litgrade("sources", cwd=tmp_path, check=False, **NO_KEYS | {"S2_API_KEY": "sentinel-“quoted”"})
    assert done.returncode == 2
    assert done.stderr == (
        "litgrade: the value of S2_API_KEY holds characters that no key or address has; copy it again\n"
    )
