"""``litgrade sources``: the sources, what each gives, and whether its key is here."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import yaml

from experiments import cli
from experiments.collect_config import build_sources
from experiments.config import config_dir
from experiments.tables import markdown
from pipeline.collecting.client import CONTACT_ENV, secrets_of
from pipeline.sources import SourceSettings

HEADER = ["name", "kind", "keys and addresses", "pace", "gives"]


def configured_sources() -> dict[str, SourceSettings]:
    """Return the sources of conf/source/ by name."""
    settings: dict[str, dict[str, Any]] = {}
    for path in sorted((config_dir() / "source").glob("*.yaml")):
        settings |= yaml.safe_load(path.read_text(encoding="utf-8"))
    return build_sources(settings)


def main() -> None:
    """Show the table."""
    parser = argparse.ArgumentParser(prog=sys.argv[0], description="The academic sources: keys, pace, what they give")
    parser.parse_args()
    sources = configured_sources().values()
    print(markdown(HEADER, [_row(source) for source in sources]))  # noqa: T201
    print(f"\n{CONTACT_ENV} is the contact address for every source that wants one.")  # noqa: T201


def _row(source: SourceSettings) -> list[str]:
    return [source.name, source.kind, _keys_text(source), _pace_text(source.interval_s), source.gives]


def _keys_text(source: SourceSettings) -> str:
    """Return which variables the source reads, whether it needs them, and whether they are set."""
    given = {key.env for key, _ in secrets_of(source)}
    texts = []
    for key in source.credentials:
        state = "set" if key.env in given else "missing, so it is skipped" if key.required else "not set"
        texts.append(f"{' or '.join(key.env)}: {'needed' if key.required else 'optional'}, {state}")
    return "; ".join(texts) or "none"


def _pace_text(interval_s: float) -> str:
    if interval_s > 10:
        return f"{3600 / interval_s:.0f} an hour"
    return f"{1 / interval_s:.2g} a second" if interval_s else "as fast as it answers"


if __name__ == "__main__":
    cli.main(["sources", *sys.argv[1:]])
