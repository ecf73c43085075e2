"""The config of a run: its shape, ranges and rules across keys. Hydra composes it from conf/, this module checks it."""

from __future__ import annotations

import importlib
import logging
import pkgutil
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from experiments import collections
from experiments.collections import Loader
from experiments.explain import explain_validation
from experiments.metrics import Depths, Unjudged, metric_names
from pipeline.encoding import Encoder
from pipeline.errors import UserError, did_you_mean
from pipeline.llm.prices import Price
from pipeline.llm.settings import Count, Llm
from pipeline.prompting import Prompt
from pipeline.scoring import Score, Weights
from pipeline.stages import Stage, bm25, build_stage, grade

log = logging.getLogger(__name__)


class Section(BaseModel):
    """A part of the config: unknown keys are refused, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


S = TypeVar("S", bound=Section)


def checked(section: type[S], plain: object, within: str = "") -> S:
    """Return a section made of plain settings, which stand at ``within``; a ``UserError`` has one line a fault."""
    try:
        return section.model_validate(plain)
    except ValidationError as error:
        raise UserError(explain_validation(error, within)) from error


class Arm(Section):
    """A list of stages, each a mapping from the stage's name to its settings; other keys hold settings to refer to."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: Annotated[str, Field(pattern=r"^[\w-]+$")]
    stages: list[Annotated[dict[str, dict[str, Any]], Field(min_length=1, max_length=1)]] = Field(min_length=1)


class Cutoffs(Section):
    """How many papers are kept after each stage, and how many are evaluated."""

    bm25: Count
    semantic: Count
    evaluate: Count
    depth: Count

    @model_validator(mode="after")
    def _evaluate_what_is_kept(self) -> Cutoffs:
        for name in ("bm25", "semantic", "depth"):
            if self.evaluate > getattr(self, name):
                raise ValueError(
                    f"evaluate={self.evaluate} is above {name}={getattr(self, name)}; expected at most that"
                )
        return self


class Metrics(Section):
    """What counts as relevant, and what an unjudged paper counts for."""

    min_grade: Annotated[int, Field(ge=1, le=3)]
    unjudged: Unjudged


class Calibration(Section):
    """How the categories of expected grades are learned."""

    folds: NonNegativeInt

    @field_validator("folds")
    @classmethod
    def _is_no_single_fold(cls, folds: int) -> int:
        if folds == 1:
            raise ValueError("a single fold leaves no other queries to learn from; expected 0 or at least 2")
        return folds


class Paths(Section):
    """Where computed vectors and fetched weights are kept."""

    cache: Path
    models: Path


class Prices(Section):
    """What tokens cost."""

    per_million: tuple[Price, ...]


class Mlflow(Section):
    """Log to MLflow; ``artifacts`` is where a database store keeps its files.

    With ``resume`` a run that is finished already, with the same fingerprint and code, is taken and not run again.
    """

    backend: Literal["mlflow"]
    uri: str
    artifacts: Path
    experiment: Annotated[str, Field(min_length=1)]
    resume: bool = False


class NoTracking(Section):
    """Log nowhere."""

    backend: Literal["none"]


class NoJudge(Section):
    """Explanations are not judged."""

    kind: Literal["none"]


class Ragas(Section):
    """RAGAS judges explanations: which model it asks, about how many papers a query, and the rubric."""

    kind: Literal["ragas"]
    llm: Llm
    top: Count
    rubric: str


Seed = NonNegativeInt


class NoTuning(Section):
    """Settings are compared on all queries; the best of them is chosen on the queries it is measured on."""

    method: Literal["none"]


class Holdout(Section):
    """Settings are chosen on a share of the queries and measured on the others."""

    method: Literal["holdout"]
    share: Annotated[float, Field(gt=0, lt=1)]
    seed: Seed


class NestedCv(Section):
    """For every fold of the queries, settings are chosen on the other folds and measured on it."""

    method: Literal["nested_cv"]
    folds: Annotated[int, Field(ge=2)]
    seed: Seed


Tuning = Annotated[NoTuning | Holdout | NestedCv, Field(discriminator="method")]


class RunConfig(Section):
    """Everything a run depends on."""

    collection: dict[str, Any]
    arm: Arm
    cutoffs: Cutoffs
    weights: Weights
    score: Score
    bm25: bm25.Stage
    embedder: Encoder
    cross_encoder: Encoder
    prices: Prices
    prompt: Prompt
    llm: Llm
    grade: grade.Stage
    judge: Annotated[NoJudge | Ragas, Field(discriminator="kind")]
    calibration: Calibration
    metrics: Metrics
    objective: Annotated[str, Field(min_length=1)]
    tuning: Tuning
    paths: Paths
    tracking: Annotated[Mlflow | NoTracking, Field(discriminator="backend")]

    @property
    def depths(self) -> Depths:
        """Where lists are cut for measuring: recall and precision at every cutoff."""
        cutoffs = self.cutoffs
        depths = tuple(sorted({cutoffs.evaluate, cutoffs.semantic, cutoffs.bm25}))
        return Depths(evaluate=cutoffs.evaluate, recall=depths, min_grade=self.metrics.min_grade)

    def loader(self) -> Loader:
        """Return the loader of the collection, its settings checked."""
        return loader_of(self.collection)

    def stages(self) -> list[tuple[str, Stage]]:
        """Return the stages of the arm with their names, in order, their settings checked."""
        built = []
        for i, entry in enumerate(self.arm.stages):
            ((name, settings),) = entry.items()
            try:
                built.append((name, build_stage(name, settings)))
            except ValidationError as error:
                raise UserError(explain_validation(error, within=f"arm.stages.{i}.{name}")) from error
        return built

    def encoders(self) -> list[Encoder]:
        """Return the models that the arm runs, in order."""
        parts = [getattr(stage, name, None) for _, stage in self.stages() for name in ("embedder", "encoder")]
        return [part for part in parts if isinstance(part, Encoder)]

    def model_names(self) -> list[str]:
        """Return the names of all models that the arm runs or asks, in order."""
        encoders = [encoder.model.name for encoder in self.encoders()]
        return encoders if self.asked_model is None else [*encoders, self.asked_model]

    @property
    def explains(self) -> bool:
        """Whether the arm explains its categories."""
        return any(isinstance(stage, grade.Stage) and stage.explain != "none" for _, stage in self.stages())

    @property
    def learns_categories(self) -> bool:
        """Whether the thresholds of categories are learned on judgments."""
        graded = [stage for _, stage in self.stages() if isinstance(stage, grade.Stage)]
        return self.calibration.folds > 0 and any(stage.scoring == "expected" for stage in graded)

    @property
    def asked_model(self) -> str | None:
        """The language model that grades, or None."""
        return next((stage.llm.model for _, stage in self.stages() if isinstance(stage, grade.Stage)), None)


def loader_of(collection: Mapping[str, Any]) -> Loader:
    """Return the loader for the ``collection`` of a config, its settings checked."""
    settings = dict(collection)
    name = settings.pop("name", None)
    known = sorted(module.name for module in pkgutil.iter_modules(collections.__path__))
    if name not in known:
        raise UserError(f"collection.name={name}: expected one of {', '.join(known)}{did_you_mean(str(name), known)}")
    module = importlib.import_module(f"{collections.__name__}.{name}")
    try:
        loader: Loader = TypeAdapter(module.Loader).validate_python(settings)
    except ValidationError as error:
        raise UserError(explain_validation(error, within="collection")) from error
    return loader


def unread_overrides(composed: DictConfig, overrides: Sequence[str]) -> list[str]:
    """Return the overrides of stage settings that the stages of the arm do not refer to."""
    read = _references(OmegaConf.to_container(composed, resolve=False), "arm")
    unread = []
    for override in overrides:
        key = override.lstrip("+~").split("=")[0]
        known = any(f"{key}.".startswith(f"{name}.") or f"{name}.".startswith(f"{key}.") for name in read)
        if key.split(".")[0] in _STAGE_SETTINGS and not known:
            unread.append(override)
    return unread


def _references(raw: Any, key: str) -> list[str]:
    """Return the keys that this part of the unresolved config refers to, and those that these refer to in turn."""
    node = raw
    for part in key.split("."):
        node = node.get(part) if isinstance(node, dict) else None
    direct = re.findall(r"\$\{([\w.]+)", repr(node))
    return [*direct, *(further for name in direct for further in _references(raw, name))]


_STAGE_SETTINGS = {"bm25", "weights", "score", "embedder", "cross_encoder", "grade", "llm", "prompt"}


def rest_of_one(*given: float) -> float:
    """Return what these leave of 1, for weights that must sum to it: ``${rest_of_one:${weights.title},...}``."""
    return round(1 - sum(map(float, given)), 9)


def config_dir() -> Path:
    """Return the folder of the config files: conf/ of the checkout, or its copy in an installed package."""
    installed = Path(__file__).parent / "conf"
    return installed if installed.is_dir() else Path(__file__).parents[2] / "conf"


def choices_of_groups(config_name: str) -> str:
    """Return the groups that a config of conf/ is composed from, each with its choices, a line a group."""
    lines = []
    for entry in OmegaConf.load(config_dir() / f"{config_name}.yaml").defaults:
        if isinstance(entry, str):
            lines += [] if entry == "_self_" else [choices_of_groups(entry)]
        else:
            (group,) = entry
            names = sorted(path.stem for path in (config_dir() / str(group)).glob("*.yaml"))
            lines += [f"{group}: {', '.join(names)}"] if names else []  # not those of overrides and other packages
    return "\n".join(lines)


class Sections(Section):
    """What the process that starts the jobs of a multirun needs to know."""

    objective: str
    tuning: Tuning
    tracking: Annotated[Mlflow | NoTracking, Field(discriminator="backend")]


def read_sections(composed: DictConfig) -> Sections:
    """Check the parts of a config that are the same for all jobs of a multirun."""
    parts = {name: composed[name] for name in Sections.model_fields}
    plain = {k: OmegaConf.to_container(v, resolve=True) if OmegaConf.is_config(v) else v for k, v in parts.items()}
    return checked(Sections, plain)


def read_config(composed: DictConfig) -> RunConfig:
    """Check what Hydra composed; raise a ``UserError`` of one line a fault."""
    if missing := sorted(OmegaConf.missing_keys(composed)):
        raise UserError(f"{missing[0]} is not set; give {missing[0]}=VALUE")
    config = checked(RunConfig, OmegaConf.to_container(composed, resolve=True))
    if HydraConfig.initialized():
        for override in unread_overrides(composed, HydraConfig.get().overrides.task):
            log.warning("%s has no effect on arm %s", override, config.arm.name)
    config.loader()  # a wrong setting is told before any work
    config.stages()
    if config.objective not in (names := metric_names(config.depths)):
        near = did_you_mean(config.objective, names)
        raise UserError(f"objective={config.objective}: expected a metric of this run, one of {', '.join(names)}{near}")
    if config.learns_categories and config.objective == "ac2" and not isinstance(config.tuning, NoTuning):
        raise UserError(
            f"tuning={config.tuning.method} with objective=ac2: categories of expected grades are learned on all other "
            "queries, those that are held out among them; give calibration.folds=0 or another objective"
        )
    if isinstance(config.judge, Ragas) and config.judge.llm.mode == "estimate":
        raise UserError("judge.llm.mode=estimate: what a judge is asked cannot be known before; use llm.mode=estimate")
    return config
