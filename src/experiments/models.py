"""``litgrade models list | fetch NAME ... | verify [NAME ...]``: the weights registered in conf/."""

from __future__ import annotations

import argparse
import logging
import sys

from omegaconf import OmegaConf
from pydantic import TypeAdapter

from experiments import cli
from experiments.config import config_dir
from experiments.tables import markdown
from pipeline.errors import UserError, did_you_mean
from pipeline.models import ModelFiles, damaged_files, fetch

_GROUPS = ("embedder", "cross_encoder")  # config groups whose files register a model


def registered_models() -> dict[str, ModelFiles]:
    """Return the models with known weights: the ``model`` of every file in the groups, by name."""
    paths = OmegaConf.load(config_dir() / "config.yaml").paths
    models = {}
    for path in sorted(path for group in _GROUPS for path in (config_dir() / group).glob("*.yaml")):
        config = OmegaConf.create({"paths": paths, "group": OmegaConf.load(path)})
        if OmegaConf.missing_keys(config):
            continue  # a folder of the user's own
        entry = OmegaConf.to_container(config, resolve=True)["group"]["model"]  # type: ignore[call-overload,index]
        model = TypeAdapter(ModelFiles).validate_python(entry)
        models[model.name] = model
    return models


def main() -> None:
    """Read the command line and act."""
    parser = argparse.ArgumentParser(
        prog=sys.argv[0], description="Model weights: where they come from, are they whole?"
    )
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("list", help="name, repository, revision, and whether the files are here and whole")
    for action, what in (
        ("fetch", "bring weights here and check them"),
        ("verify", "check the sha256 of weights here"),
    ):
        names = actions.add_parser(action, help=what)
        names.add_argument("names", nargs="+" if action == "fetch" else "*", metavar="NAME")
    arguments = parser.parse_args()
    models = registered_models()
    if arguments.action == "list":
        print(_listing(models))  # noqa: T201
        return
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    for name in arguments.names:
        if name not in models:
            raise UserError(f"unknown model {name!r}: expected one of {', '.join(models)}{did_you_mean(name, models)}")
    if arguments.action == "fetch":
        for name in arguments.names:
            print(f"{name}: {fetch(models[name])}")  # noqa: T201
    else:
        _verify([models[name] for name in arguments.names or models])


def _listing(models: dict[str, ModelFiles]) -> str:
    rows = [[m.name, m.repository or "", (m.revision or "")[:12], _state(m), str(m.location)] for m in models.values()]
    return markdown(["name", "repository", "revision", "state", "folder"], rows)


def _state(model: ModelFiles) -> str:
    if not model.location.exists():
        return "not fetched"
    return "damaged" if damaged_files(model) else "whole"


def _verify(models: list[ModelFiles]) -> None:
    faults = []
    for model in models:
        found = damaged_files(model) if model.location.exists() else []
        faults += [f"{fault}; mend with: litgrade models fetch {model.name}" for fault in found]
        print(f"{model.name}: {_state(model)}")  # noqa: T201
    if faults:
        raise UserError("\n".join(faults))


if __name__ == "__main__":
    cli.main(["models", *sys.argv[1:]])
