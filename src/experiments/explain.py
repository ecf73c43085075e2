"""Errors of Hydra, OmegaConf and pydantic, told in the words of a user: the key, the value, what is allowed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from hydra.errors import HydraException, OverrideParseException
from omegaconf.errors import InterpolationKeyError, InterpolationResolutionError, OmegaConfBaseException
from pydantic import ValidationError

from pipeline.errors import did_you_mean

#: What Hydra and OmegaConf raise for a wrong config or command line.
CONFIG_ERRORS = (HydraException, OmegaConfBaseException)


def explain_validation(error: ValidationError, within: str = "") -> str:
    """Return one line a fault: ``key=value: what is expected``."""
    told = {(fault["msg"], repr(fault["input"])) for fault in error.errors() if fault["loc"][:1] != ("grade",)}
    once = [  # grade refers to other parts of the config, whose faults are then its own as well
        fault
        for fault in error.errors()
        if fault["loc"][:1] != ("grade",) or (fault["msg"], repr(fault["input"])) not in told
    ]
    return "\n".join(_fault(fault, within) for fault in once)


def _fault(fault: Any, within: str) -> str:
    key = ".".join(str(part) for part in [within, *fault["loc"]] if part != "")
    message, given = fault["msg"], fault["input"]
    if fault["type"] in {"extra_forbidden", "unexpected_keyword_argument"}:
        return f"{key}={given}: no such key"
    if fault["type"] in {"tuple_type", "list_type"}:
        return f"{key}={given}: expected a list, such as '{key}=[{given}]'"
    if fault["type"] == "missing":
        return f"{key} is not set; give {key}=VALUE"
    if fault["type"] == "value_error":
        return f"{key}: {message.removeprefix('Value error, ')}"
    near = ""
    if fault["type"] == "literal_error":
        near = did_you_mean(str(given), re.findall(r"'([^']+)'", fault["ctx"]["expected"]))
    allowed = re.sub(r"^Input should be (greater|less)", r"Input should be a number \1", message)
    return f"{key}={given}: {allowed.replace('Input should be', 'expected')}{near}"


def explain_os_error(error: OSError) -> str:
    """Return one line for a file or folder that cannot be used."""
    where = error.filename if error.filename is not None else "a file"
    return f"{where}: {error.strerror or error}; check the paths in the config and hydra.run.dir"


_QUOTING = (
    "put texts in quotes, once for litgrade and once for the shell: 'key=\"some, text\"', with an apostrophe "
    '"key=\\"l\'autre\\""'
)


#: Choices that a package of its own brings: group -> choice -> extra of pyproject.toml, "" for what is always there.
_EXTRAS = {
    "hydra/launcher": {"basic": "", "joblib": "", "submitit_local": "slurm", "submitit_slurm": "slurm", "ray": "ray"},
    "hydra/sweeper": {"basic": "", "optuna": "optuna"},
}


def explain_config_error(error: Exception, overrides: Sequence[str], config_dir: Path) -> str:
    """Return one line for what Hydra or OmegaConf refused on this command line."""
    text = str(error)
    if isinstance(error, OverrideParseException):
        return f"cannot read {error.override!r}; {_QUOTING}"
    if ambiguous := re.match(r"Ambiguous value for argument '(.*)'$", text.splitlines()[0] if text else ""):
        return f"cannot read {ambiguous.group(1)!r} as one value; {_QUOTING}, or give several with -m"
    if unknown := re.search(r"Could not find '([^']+)/([^'/]+)'", text):
        return _unknown_choice(unknown.group(1), unknown.group(2), config_dir)
    if unknown := re.search(r"Could not (?:override|delete from config\.) '([^']+)'", text) or re.search(
        r"Key '([^']+)' is not in struct", text
    ):
        key = unknown.group(1)
        given = next((o for o in overrides if o.lstrip("+~").split("=")[0] == key), key)
        known = known_keys(config_dir)
        near = f"; it comes with {known[key]}" if key in known else did_you_mean(key, known)
        return f"{given}: no such key here{near} (--help lists all keys)"
    if isinstance(error, InterpolationResolutionError | InterpolationKeyError):
        return f"{text.splitlines()[0]}; write \\${{ where these signs are meant"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "; ".join(lines[:2]) if lines else type(error).__name__


def _unknown_choice(group: str, choice: str, config_dir: Path) -> str:
    extras = _EXTRAS.get(group, {})
    if extras.get(choice):
        return f"{group}={choice}: it is not installed; pip install 'litgrade[{extras[choice]}]'"
    choices = sorted({path.stem for path in (config_dir / group).glob("*.yaml")} | set(extras))
    return f"{group}={choice}: expected one of {', '.join(choices)}{did_you_mean(choice, choices)}"


def known_keys(config_dir: Path) -> dict[str, str]:
    """Return every key in the config files, with the choice that brings it, such as ``collection=beir``."""
    keys: dict[str, str] = {}
    for path in sorted(config_dir.rglob("*.yaml")):
        group = path.parent.relative_to(config_dir).as_posix().strip(".")
        if group.split("/")[0] not in {"hydra", "experiment"}:
            text = path.read_text(encoding="utf-8")
            content = yaml.safe_load(text) or {}
            choice = f"{group}={path.stem}" if group else f"litgrade {path.stem}"
            prefix = "" if text.startswith("# @package _global_") else group
            keys = dict.fromkeys(_flatten(content, prefix), choice) | keys
    return {key: choice for key, choice in keys.items() if not key.startswith(("defaults", "hydra"))}


def _flatten(node: Any, prefix: str) -> Iterator[str]:
    if prefix:
        yield prefix
    if isinstance(node, dict):
        for key, value in node.items():
            yield from _flatten(value, f"{prefix}.{key}" if prefix else str(key))
