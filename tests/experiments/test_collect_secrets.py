"""No key and no address in what ``litgrade collect`` writes or shows."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import fake_sources as fake
from collect_runs import BARE, IMPACTS, KNOWN_TO_UNPAYWALL, NO_KEYS, PAPERS, QUERY, SEARCHED, answers, refused, rows
from conftest import litgrade
from experiments.sources import configured_sources
from fake_sources import FAMILIES, FakeSources
from fake_sources.answers import Answer

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


def test_a_key_with_signs_that_no_key_has_is_told_by_its_name(tmp_path, sources_server):
    arguments = [QUERY, "sources.names=[scopus]", "snapshot=s", *BARE, *sources_server.overrides]
    line = refused(*arguments, cwd=tmp_path, SCOPUS_API_KEY="sentinel-“quoted”")
    assert "the value of SCOPUS_API_KEY holds characters that no key or address has" in line
    assert "sentinel" not in line
