"""``litgrade VERB ...``: the verbs, and what becomes of an error.

An error that a user can mend is one line and exit code 2; a fault of ours is a traceback and exit code 1.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.metadata
import io
import itertools
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from experiments import sweep
from experiments.config import choices_of_groups, config_dir, rest_of_one
from experiments.explain import CONFIG_ERRORS, explain_config_error, explain_os_error
from experiments.jobs import JobResult, carry_out, is_multirun, line_of, stopped
from pipeline.errors import UserError, did_you_mean, without_secrets

VERBS = {
    "run": "one run: a collection through an arm, measured and logged; with -m several",
    "ablation": "the arms side by side: table, significance, plot",
    "collect": "papers for queries from academic sources, frozen as a snapshot",
    "sources": "the academic sources: keys, pace, what they give",
    "compare": "finished runs side by side: query by query, significance, which papers moved",
    "grid": "every combination of weights, alpha and cutoffs, in one process",
    "report": "finished runs as one HTML page",
    "models": "list, fetch or verify model weights",
}

_OF_RUNS = {"compare", "report"}  # verbs whose plain words name runs
_ONCE = {*_OF_RUNS, "models", "sources"}  # verbs that have nothing to sweep
_SWITCHES = {"--cfg", "-c", "--package", "-p", "--info", "-i"}  # of Hydra, that take a word


# At import, so that they are known in the processes of a launcher too.
OmegaConf.register_new_resolver("choices", choices_of_groups, replace=True)  # for --help
OmegaConf.register_new_resolver("rest_of_one", rest_of_one, replace=True)


def main(arguments: list[str] | None = None) -> None:
    """Run ``litgrade`` with these arguments (those of the process by default) and exit."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments or arguments[0] in {"-h", "--help"}:
        print(usage())  # noqa: T201
        sys.exit(0 if arguments else 2)
    if arguments == ["--version"]:
        print(f"litgrade {importlib.metadata.version('litgrade')}")  # noqa: T201
        sys.exit(0)
    verb, *rest = arguments
    if verb not in VERBS:
        _fail(f"unknown verb {verb!r}: expected one of {', '.join(VERBS)}{did_you_mean(verb, VERBS)}")
    if strange := [_utf8(argument) for argument in rest if argument != _utf8(argument)]:
        _fail(f"{strange[0]}: holds bytes that are not UTF-8; set the terminal and its locale to UTF-8")
    if verb in _ONCE and {"-m", "--multirun"} & set(rest):
        _fail(f"litgrade {verb} has no -m: only runs, ablations and grids are swept")
    _refuse_secrets(rest)
    rest = _with_runs(verb, rest) if verb in _OF_RUNS else rest
    sys.argv = [f"litgrade {verb}", *rest]
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that is not UTF-8 has no ±
    os.environ["HYDRA_FULL_ERROR"] = "1"  # lets errors through to us instead of printing them
    signal.signal(signal.SIGTERM, _stop)  # so that a terminated run is closed as killed
    _run(verb, rest)


def _run(verb: str, arguments: list[str]) -> None:
    try:
        _main_of(verb)
    except UserError as error:
        _fail(str(error))
    except CONFIG_ERRORS as error:
        _fail(explain_config_error(error, arguments, config_dir()))
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except OSError as error:
        _fail(explain_os_error(error))
    except ValueError as error:
        _fail(_line_of_value_error(error))
    except KeyboardInterrupt:
        print("litgrade: interrupted", file=sys.stderr)  # noqa: T201
        sys.exit(130)


def _line_of_value_error(error: ValueError) -> str:
    """Return a line for what has no kind of its own; raise what is no mistake of the user."""
    if "Config group override" in str(error):  # Hydra's word for GROUP=null
        return f"{error}; name one of the group's choices"
    if "No trials are completed" in str(error):  # Optuna's, after the last job
        return "hydra/sweeper=optuna: no job has a value of the objective, so none is the best"
    if str(error).startswith(("Only one of --run", "The --resolve flag")):  # Hydra's, on its switches
        return str(error)
    raise error


def _main_of(verb: str) -> None:
    try:
        importlib.import_module(f"experiments.{verb}").main()
    except Exception:
        if stopped:
            sys.exit(128 + stopped[0])
        raise


def _utf8(argument: str) -> str:
    """Return an argument as it can be written, with a ? for each byte that is no UTF-8."""
    return argument.encode("utf-8", "replace").decode()


def _keys_of_runs(verb: str) -> set[str]:
    """Return the first words of keys that a run has and this verb has not, as ``cutoffs`` of ``cutoffs.bm25``."""
    of_runs, of_verb = (set(OmegaConf.load(config_dir() / f"{name}.yaml")) for name in ("config", verb))
    groups = {path.name for path in config_dir().iterdir() if path.is_dir()}
    return (of_runs | groups) - of_verb - {"tracking", "hydra"}


def _with_runs(verb: str, arguments: list[str]) -> list[str]:
    """Turn plain words, ``compare A B key=value``, into the list that Hydra reads: ``runs=["A","B"]``.

    A run of a sweep is named by its settings: ``cutoffs.bm25=50 cutoffs.semantic=20``.
    """
    of_runs = _keys_of_runs(verb)
    of_switches = {after for before, after in itertools.pairwise(arguments) if before in _SWITCHES}  # as in --cfg job
    words = [word for word in arguments if not word.startswith(("-", "+", "~")) and word not in of_switches]
    runs = [word for word in words if "=" not in word or re.split("[.=]", word)[0] in of_runs]
    if not runs:
        return arguments
    quoted = ",".join('"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"' for word in runs)
    return [*(word for word in arguments if word not in runs), f"runs=[{quoted}]"]


def _refuse_secrets(arguments: list[str]) -> None:
    """Hydra stores the overrides of a multirun as they were typed."""
    for argument in arguments:
        key, _, value = argument.partition("=")
        if key.endswith("key_env") and not (re.fullmatch(r"[A-Z0-9_]*", value) or value in {"null", *os.environ}):
            _fail(f"{key}: expected the name of an environment variable; a key itself would be stored")
    ways = {"tracking.uri": "set MLFLOW_TRACKING_URI", "base_url": "name the variable that holds the key in key_env"}
    for argument in arguments:
        key = argument.lstrip("+").split("=")[0]
        within = {name for name in ways if re.search(rf"\b{name.split('.')[-1]}\s*:", argument)}  # tracking={uri: ...}
        way = next((way for name, way in ways.items() if key.endswith(name) or name in within), None)
        if way and argument != without_secrets(argument):
            _fail(f"{key}: a user or password on the command line would be stored; {way} instead")


Task = Callable[[DictConfig], JobResult | None]


def job(config_name: str) -> Callable[[Task], Callable[[], None]]:
    """Make a function of the composed config a Hydra job: ``hydra.main`` with our conf/ and our way with errors."""

    def decorate(task: Task) -> Callable[[], None]:
        @functools.wraps(task)
        def told(composed: DictConfig) -> float | None:
            if is_multirun():
                return carry_out(task, composed)
            try:
                task(composed)
            except BrokenPipeError:
                raise
            except (UserError, OSError, *CONFIG_ERRORS) as error:
                with contextlib.suppress(OSError):  # it holds something already
                    Path(HydraConfig.get().runtime.output_dir).rmdir()
                _fail(str(line_of(error)))
            return None

        run = hydra.main(version_base="1.3", config_path=str(config_dir()), config_name=config_name)(told)

        @functools.wraps(task)
        def main() -> None:
            with sweep.summarized():
                run()

        told.__qualname__ = f"{task.__qualname__}.told"  # launchers send a job to other processes by this name
        main.told = told  # type: ignore[attr-defined]
        return main

    return decorate


def usage() -> str:
    """Return the verbs with what they do."""
    verbs = "\n".join(f"  {verb:<10} {what}" for verb, what in VERBS.items())
    return f"Usage: litgrade VERB [...]\n\n{verbs}\n\nlitgrade VERB --help tells more."


def _fail(message: str) -> None:
    for line in message.splitlines():
        print(f"litgrade: {line}", file=sys.stderr)  # noqa: T201
    sys.exit(2)


def _stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    stopped.append(number)
    sys.exit(128 + number)
