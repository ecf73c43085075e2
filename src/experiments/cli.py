"""``litgrade VERB ...``: the verbs, and what becomes of an error.

An error that a user can mend is one line and exit code 2; a fault of ours is a traceback and exit code 1.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import logging
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from experiments.config import choices_of_groups, config_dir
from experiments.explain import CONFIG_ERRORS, explain_config_error, explain_os_error
from pipeline.errors import UserError, did_you_mean, without_secrets

log = logging.getLogger(__name__)

told_failures: list[str] = []  #: one line for each failed job of a multirun in this process

VERBS = {
    "run": "one run: a collection through an arm, measured and logged; with -m several",
    "ablation": "the arms side by side: table, significance, plot",
    "collect": "papers for queries from academic sources, frozen as a snapshot",
    "sources": "the academic sources: keys, pace, what they give",
    "models": "list, fetch or verify model weights",
}


def main(arguments: list[str] | None = None) -> None:
    """Run ``litgrade`` with these arguments (those of the process by default) and exit."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments or arguments[0] in {"-h", "--help"}:
        print(usage())  # noqa: T201
        sys.exit(0 if arguments else 2)
    verb, *rest = arguments
    if verb not in VERBS:
        _fail(f"unknown verb {verb!r}: expected one of {', '.join(VERBS)}{did_you_mean(verb, VERBS)}")
    if strange := [_utf8(argument) for argument in rest if argument != _utf8(argument)]:
        _fail(f"{strange[0]}: holds bytes that are not UTF-8; set the terminal and its locale to UTF-8")
    _refuse_secrets(rest)
    sys.argv = [f"litgrade {verb}", *rest]
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that is not UTF-8 has no ±
    OmegaConf.register_new_resolver("choices", choices_of_groups, replace=True)  # for --help
    os.environ["HYDRA_FULL_ERROR"] = "1"  # lets errors through to us instead of printing them
    signal.signal(signal.SIGTERM, _stop)  # so that a terminated run is closed as killed
    _run(verb, rest)


def _run(verb: str, arguments: list[str]) -> None:
    try:
        importlib.import_module(f"experiments.{verb}").main()
    except UserError as error:
        _fail("\n".join(told_failures) or str(error))
    except CONFIG_ERRORS as error:
        _fail(explain_config_error(error, arguments, config_dir()))
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except OSError as error:
        _fail("\n".join(told_failures) or explain_os_error(error))
    except ValueError as error:
        if "Config group override" not in str(error):  # Hydra's word for GROUP=null, of no kind of its own
            raise
        _fail(f"{error}; name one of the group's choices")
    except KeyboardInterrupt:
        sys.exit(130)


def _utf8(argument: str) -> str:
    """Return an argument as it can be written, with a ? for each byte that is no UTF-8."""
    return argument.encode("utf-8", "replace").decode()


def _refuse_secrets(arguments: list[str]) -> None:
    """Hydra stores the overrides of a multirun as they were typed."""
    for argument in arguments:
        key, _, value = argument.partition("=")
        if key.endswith("key_env") and not re.fullmatch(r"\w*", value):
            _fail(f"{key}: expected the name of an environment variable; a key itself would be stored")
    ways = {"tracking.uri": "set MLFLOW_TRACKING_URI", "base_url": "name the variable that holds the key in key_env"}
    for argument in arguments:
        key = argument.lstrip("+").split("=")[0]
        way = next((way for name, way in ways.items() if key.endswith(name)), None)
        if way and argument != without_secrets(argument):
            _fail(f"{key}: a password on the command line would be stored; {way} instead")


def job(config_name: str) -> Callable[[Callable[[DictConfig], None]], Callable[[], None]]:
    """Make a function of the composed config a Hydra job: ``hydra.main`` with our conf/ and our way with errors."""

    def decorate(task: Callable[[DictConfig], None]) -> Callable[[], None]:
        @functools.wraps(task)
        def told(composed: DictConfig) -> None:
            try:
                task(composed)
            except (UserError, OSError, *CONFIG_ERRORS) as error:
                with contextlib.suppress(OSError):  # it holds something already
                    Path(HydraConfig.get().runtime.output_dir).rmdir()
                line = _line_of(error)
                if HydraConfig.get().mode == RunMode.MULTIRUN:
                    told_failures.append(f"job {HydraConfig.get().job.override_dirname}: {line}")
                    log.error("%s", told_failures[-1])  # at once, and in the job's own log; the other jobs go on
                    raise
                _fail(line)

        main: Callable[[], None] = hydra.main(
            version_base="1.3", config_path=str(config_dir()), config_name=config_name
        )(told)
        return main

    return decorate


def _line_of(error: Exception) -> str:
    if isinstance(error, OSError):
        return explain_os_error(error)
    if isinstance(error, CONFIG_ERRORS):  # an interpolation, which is resolved where it is read
        return explain_config_error(error, HydraConfig.get().overrides.task, config_dir())
    return str(error)


def usage() -> str:
    """Return the verbs with what they do."""
    verbs = "\n".join(f"  {verb:<10} {what}" for verb, what in VERBS.items())
    return f"Usage: litgrade VERB [...]\n\n{verbs}\n\nlitgrade VERB --help tells more."


def _fail(message: str) -> None:
    for line in message.splitlines():
        print(f"litgrade: {line}", file=sys.stderr)  # noqa: T201
    sys.exit(2)


def _stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    sys.exit(128 + number)
