"""Every choice composes, the defaults are the paper's, and a wrong value is one line."""

import hydra
import pytest
from hydra import compose, initialize_config_dir

from experiments.config import RunConfig, config_dir, read_config, unread_overrides
from experiments.explain import explain_config_error, known_keys
from pipeline.errors import UserError

GIVEN = {  # choices that need a value of the user's own
    "collection=beir": ["collection.path=somewhere"],
    "collection=snapshot": ["collection.path=somewhere"],
    "embedder=folder": ["embedder.model.path=somewhere"],
    "cross_encoder=folder": ["cross_encoder.model.path=somewhere"],
}
OF_COLLECT = {"source", "sources", "enrich"}
CHOICES = sorted(
    f"{path.parent.name}={path.stem}"
    for path in config_dir().glob("*/*.yaml")
    if path.parent.name not in {"hydra", *OF_COLLECT}
)


def composed(*overrides: str, name: str = "config") -> RunConfig:
    with initialize_config_dir(str(config_dir()), version_base="1.3"):
        return read_config(compose(name, overrides=list(overrides)))


@pytest.mark.parametrize("choice", CHOICES)
def test_every_choice_composes(choice):
    assert composed(choice, *GIVEN.get(choice, [])).stages()


def test_the_defaults_are_the_papers():
    config = composed()
    assert config.arm.name == "bm25_mpnet"
    assert (config.cutoffs.bm25, config.cutoffs.semantic, config.cutoffs.evaluate) == (100, 50, 10)
    weights = config.weights
    assert (weights.title, weights.abstract, weights.keywords, weights.disciplines) == (0.55, 0.35, 0.05, 0.05)
    assert (weights.alpha, weights.citations, weights.impact_factor) == (0.15, 0.6, 0.4)
    assert (config.score.normalize, config.score.highly, config.score.moderately, config.score.somewhat) == (
        "minmax", 0.8, 0.6, 0.4,
    )  # fmt: skip
    assert (config.bm25.k1, config.bm25.b, config.bm25.epsilon, config.bm25.index) == (1.5, 0.75, 0.25, "separate")
    model = config.embedder.model
    assert (model.repository, model.revision) == (
        "sentence-transformers/all-mpnet-base-v2",
        "e8c3b32edf5434bc2275fc9bab85f82640a19130",
    )
    assert model.files["model.safetensors"] == "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"
    assert [name for name, _ in config.stages()] == ["bm25", "cut", "semantic", "cut"]


def test_the_grading_model_is_asked_as_in_the_paper():
    config = composed("arm=bm25_mpnet_llm", "llm=mistral")
    llm, grade = config.llm, config.grade
    assert (llm.model, llm.provider) == ("mistralai/mistral-small-24b-instruct-2501", "DeepInfra")
    assert (llm.temperature, llm.top_p, llm.seed, llm.max_tokens, llm.context_window) == (0, 1, 42, 256, 32768)
    assert (grade.top, grade.few_shot, grade.scoring, grade.explain) == (50, 3, "label", "all")
    price = next(p for p in llm.prices if p.model == llm.model)
    assert round((5353.574 * price.input + 120.298 * price.output) / 1e6, 6) == 0.000277  # section 5.1.3
    judged = composed("arm=bm25_mpnet_llm", "judge=ragas").judge
    assert (judged.llm.model, judged.top) == ("openai/gpt-4o-mini", 10)


@pytest.mark.parametrize("llm", ["mistral", "recorded"])
def test_prompts_leave_out_what_they_are_named_for(llm):
    def of(prompt):
        return composed("arm=bm25_mpnet_llm", f"llm={llm}", f"prompt={prompt}")

    assert of("criteria").grade.few_shot == (1 if llm == "recorded" else 3)
    assert of("zero_shot").grade.few_shot == 0
    assert of("no_criteria").prompt.criteria is None
    assert of("no_rules").prompt.rules is None
    assert "abstract" not in of("no_abstract").prompt.paper_fields
    assert "initial_category" not in of("no_initial_category").prompt.paper_fields


def test_the_previous_system_has_no_disciplines_and_no_reputation():
    ((_, semantic), _) = composed("arm=previous").stages()
    assert (semantic.weights.disciplines, semantic.weights.alpha, semantic.score.normalize) == (0, 0, "clip")


@pytest.mark.parametrize(
    ("override", "line"),
    [
        ("weights.title=-0.1", "weights.title=-0.1: expected a number greater than or equal to 0"),
        ("weights.title=0.6", "title 0.6 + abstract 0.35 + keywords 0.05 + disciplines 0.05 sum to 1.05, expected 1"),
        ("weights.citations=0.5", "citations 0.5 + impact_factor 0.4 sum to 0.9, expected 1"),
        ("cutoffs.bm25=0", "cutoffs.bm25=0: expected a number greater than 0"),
        ("cutoffs.bm25=ten", "cutoffs.bm25=ten: expected a valid integer"),
        ("cutoffs.bm25=true", "cutoffs.bm25=True: expected a valid integer"),
        ("bm25.k1=inf", "bm25.k1=inf: expected a finite number"),
        ("weights.alpha=nan", "weights.alpha=nan: expected a number"),
        ("cutoffs.evaluate=60", "cutoffs: evaluate=60 is above semantic=50; expected at most that"),
        ("bm25.index=joind", "bm25.index=joind: expected 'separate' or 'joined'; did you mean joined?"),
        ("embedder.precision=int8", "embedder.precision=int8: expected 'fp32' or 'bf16'"),
        ("embedder.max_tokens=100", "embedder.max_tokens=100: expected a multiple of 16"),
        ("metrics.min_grade=4", "metrics.min_grade=4: expected a number less than or equal to 3"),
        ("metrics.unjudged=lo", "metrics.unjudged=lo: expected 'skip', 'low' or 'error'; did you mean low?"),
        ("score.highly=0.5", "expected highly >= moderately >= somewhat"),
        ("collection=beir", "collection.path is not set; give collection.path=VALUE"),
        ("+weights.titel=1", "weights.titel=1: no such key"),
        ("+foo=1", "foo=1: no such key"),
        ("collection.name=demi", "collection.name=demi: expected one of beir, demo, snapshot; did you mean demo?"),
        ("+collection.path=x", "collection.path=x: no such key"),
        ("arm.stages=[{bm52: {}}]", "unknown stage 'bm52': expected one of bm25, cross_encoder, cut, grade, semantic"),
        (
            "llm.base_url=ftp://x",
            "llm.base_url: ftp://x is no web address; expected something like https://openrouter.ai",
        ),
        ("llm.base_url=http://me:pw@x/v1", "llm.base_url: an address with a password or a query would be stored"),
        ("llm.mode=recrod", "llm.mode=recrod: expected 'live', 'record', 'replay' or 'estimate'; did you mean record?"),
        ("llm.temperature=3", "llm.temperature=3: expected a number less than or equal to 2"),
        ("grade.few_shot=4", "grade.few_shot=4: expected a number less than or equal to 3"),
        ("grade.thresholds=[2,1,0]", "grade: thresholds [2.0, 1.0, 0.0]: expected them in ascending order"),
        ("calibration.folds=1", "calibration.folds: a single fold leaves no other queries to learn from"),
        ("llm.key_env=sk-123", "llm.key_env: expected the name of an environment variable"),
        ("llm.max_tokens=20000", "max_tokens=20000 leaves no room for a prompt in context_window"),
        ("arm.stages=[{cut: {keep: 0}}]", "arm.stages.0.cut.keep=0: expected a number greater than 0"),
    ],
)
def test_a_wrong_value_is_one_line_with_key_value_and_what_is_allowed(override, line):
    with pytest.raises(UserError) as refused:
        composed(override)
    assert line in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("override", "line"),
    [
        ("weights.titel=0.6", "weights.titel=0.6: no such key here; did you mean weights.title?"),
        (
            "arm=bm52",
            (
                "arm=bm52: expected one of bm25, bm25_mpnet, bm25_mpnet_llm, bm25_mpnet_llm_expected, "
                "cross_encoder, mpnet, previous; did you mean bm25?"
            ),
        ),
        ("trackin=none", "trackin=none: no such key here; did you mean tracking?"),
        ("collection.path=x", "collection.path=x: no such key here; it comes with collection=beir"),
        ("arm.name=a,b", "arm.name=a,b"),
        ("x=[a", "cannot read 'x=[a'"),
        ("arm=", "arm"),
    ],
)
def test_what_hydra_refuses_is_told_in_one_line(override, line):
    with pytest.raises(Exception) as refused:  # noqa: PT011 (many kinds of Hydra's and OmegaConf's)
        composed(override)
    told = explain_config_error(refused.value, [override], config_dir())
    assert line in told
    assert "\n" not in told


@pytest.mark.parametrize(
    ("arm", "unread"),
    [
        ("bm25_mpnet", ["cross_encoder=folder"]),
        ("bm25", ["weights.alpha=0", "+embedder.x=1", "score.normalize=clip", "cross_encoder=folder"]),
        ("previous", ["bm25.k1=2", "weights.alpha=0", "score.normalize=clip", "cross_encoder=folder"]),
    ],
)
def test_settings_that_the_arm_does_not_read_are_found(arm, unread):
    overrides = ["bm25.k1=2", "weights.alpha=0", "+embedder.x=1", "score.normalize=clip", "cross_encoder=folder",
                 "cutoffs.bm25=200", "collection=demo", f"arm={arm}", "metrics.min_grade=2"]  # fmt: skip
    with initialize_config_dir(str(config_dir()), version_base="1.3"):
        assert unread_overrides(compose("config", overrides=[f"arm={arm}"]), overrides) == unread


def test_every_key_of_the_defaults_is_known():
    assert {"bm25.index", "cutoffs.evaluate", "weights.alpha", "embedder.precision", "ablation.baseline"} <= set(
        known_keys(config_dir())
    )


def test_several_faults_are_a_line_each():
    with pytest.raises(UserError) as refused:
        composed("cutoffs.bm25=0", "bm25.b=2")
    assert len(str(refused.value).splitlines()) == 2


def test_nothing_is_left_initialized():
    assert not hydra.core.global_hydra.GlobalHydra.instance().is_initialized()
