"""What an answer says. A failure of the model is an outcome, never a category."""

import json
import re

import pytest

from endpoint import Reply as Sent
from endpoint import completion, label, logprobs_for
from grade_helpers import ask_all, llm_at
from pipeline.errors import UserError
from pipeline.llm.answers import read_answer
from pipeline.llm.chat import Reply
from pipeline.llm.verdicts import Outcome, Verdict, find_category, read_digit, read_explanation, read_label

HIGH, MODERATE, SOMEWHAT, LOW = "highly relevant", "moderately relevant", "somewhat relevant", "low relevance"
LOW_JSON = '{"category": "low relevance", "explanation": "Other field."}'
HIGH_JSON = '{"category": "highly relevant", "explanation": "Same topic."}'


def reply(content, **fields) -> Reply:
    """The reply that an endpoint's answer becomes."""
    llm = llm_at("http://127.0.0.1:9/v1", "unused.jsonl")
    return Reply(read_answer(completion(content, **fields), llm, "key", "about", 0.1))


READABLE = {
    "plain": LOW_JSON,
    "fence": f"```json\n{LOW_JSON}\n```",
    "fence without a name": f"```\n{LOW_JSON}\n```",
    "text around": f"Here is my judgment: {LOW_JSON} I hope it helps.",
    "blanks and lines": '\n\n {\n  "category" : "low relevance" ,\n\t"explanation": "Other field."\n}\n',
    "trailing comma": '{"category": "low relevance", "explanation": "Other field.",}',
    "trailing comma after tabs": '{\n\t"category": "low relevance",\n\t"explanation": "Other field.",\n}',
    "single quotes": "{'category': 'low relevance', 'explanation': 'Other field.'}",
    "bare keys": '{category: "low relevance", explanation: "Other field."}',
    "keys in capitals": '{"Category": "low relevance", "EXPLANATION": "Other field."}',
    "extra key": '{"category": "low relevance", "confidence": 0.3, "explanation": "Other field."}',
    "a list of one": f"[{LOW_JSON}]",
    "twice the same": f"{LOW_JSON}\n{LOW_JSON}",
    "the same in other words": f'{LOW_JSON} {{"category": "Low"}}',
    "another object before": '{"criteria": {"domain": true}} ' + LOW_JSON,
    "braces in the text before": "Of the form {category, explanation}: " + LOW_JSON,
    "a thought before": f"<think>Perhaps {HIGH_JSON}? No.</think>{LOW_JSON}",
    "a thought whose start is in the prompt": f"Perhaps {HIGH_JSON}? No.</think>\n{LOW_JSON}",
    "a line break inside a text": LOW_JSON.replace("field.", "field.").replace("Other", "\nOther"),
    "sorry, but an answer": "Sorry for the wait. " + LOW_JSON,
}


@pytest.mark.parametrize("content", READABLE.values(), ids=READABLE)
def test_a_category_and_its_explanation_are_found(content):
    assert read_label(reply(content)) == Verdict(Outcome.GRADED, LOW, read_label(reply(content)).explanation)
    assert (read_label(reply(content)).explanation or "Other field.") == "Other field."


@pytest.mark.parametrize(
    ("word", "category"),
    [
        ("Highly Relevant", HIGH), ("HIGH", HIGH), ("highly_relevant", HIGH), ("highly-relevant", HIGH),
        (" moderately  relevant. ", MODERATE), ("'moderate'", MODERATE), ("**Somewhat relevant**", SOMEWHAT),
        ("slightly relevant", SOMEWHAT), ("Low Relevance", LOW), ("not relevant", LOW), ("irrelevant", LOW),
        ("7", None), ("3", None), (3, None), (None, None), ("", None), ("relevant", None), ("very", None),
        ([HIGH], None), ("highly relevant or low relevance", None), ({"a": HIGH}, None),
        (True, None), ("highly irrelevant", None),
    ],
)  # fmt: skip
def test_a_word_stands_for_one_category_or_for_none(word, category):
    assert find_category(word) == category
    outcome = Outcome.GRADED if category else Outcome.OUT_OF_RANGE
    assert read_label(reply(label(word, "Why."))) == Verdict(outcome, category, "Why." if category else None)


FAILED = {
    "empty": ("", {}, Outcome.EMPTY),
    "null": (None, {}, Outcome.EMPTY),
    "blanks": (" \n ", {}, Outcome.EMPTY),
    "null, cut off": (None, {"finish_reason": "length"}, Outcome.TRUNCATED),
    "prose": ("The paper is highly relevant.", {}, Outcome.UNPARSABLE),
    "no category": ('{"rationale": "Same topic."}', {}, Outcome.UNPARSABLE),
    "a digit": ("3", {}, Outcome.UNPARSABLE),
    "a text in JSON": ('"highly relevant"', {}, Outcome.UNPARSABLE),
    "broken quotes": ('{"category": "highly relevant, "explanation": "x"}', {}, Outcome.UNPARSABLE),
    "two that differ": (f"{LOW_JSON} {HIGH_JSON}", {}, Outcome.UNPARSABLE),
    "one that is none and one": (f'{{"category": "7"}} {HIGH_JSON}', {}, Outcome.UNPARSABLE),
    "half an object": (HIGH_JSON[:-9], {"finish_reason": "length"}, Outcome.TRUNCATED),
    "half an object with braces": (HIGH_JSON[:-9] + "{x} and", {"finish_reason": "length"}, Outcome.TRUNCATED),
    "half an object, said to be whole": (HIGH_JSON[:-9], {}, Outcome.UNPARSABLE),
    "a thought cut off": (f"<think>Perhaps {HIGH_JSON}, but", {"finish_reason": "length"}, Outcome.TRUNCATED),
    "a thought alone": (f"<think>Perhaps {HIGH_JSON}</think>", {}, Outcome.EMPTY),
    "refusal field": (None, {"refusal": "I can't help with that."}, Outcome.REFUSED),
    "refusal field beside an object": (HIGH_JSON, {"refusal": "I can't help with that."}, Outcome.REFUSED),
    "filtered": ("", {"finish_reason": "content_filter"}, Outcome.REFUSED),
    "I cannot": ("I cannot evaluate this", {}, Outcome.REFUSED),
    "I can't": ("I can't judge papers.", {}, Outcome.REFUSED),
    "I can\u2019t": ("I can\u2019t judge papers.", {}, Outcome.REFUSED),
    "I'm sorry": ("I'm sorry, but I can't assist with that.", {}, Outcome.REFUSED),
    "I'm unable": ("I'm unable to evaluate this paper.", {}, Outcome.REFUSED),
    "I\u2019m unable": ("I\u2019m unable to evaluate this paper.", {}, Outcome.REFUSED),
    "I am unable": ("I am unable to evaluate this paper.", {}, Outcome.REFUSED),
    "I won't": ("I won't do that.", {}, Outcome.REFUSED),
    "as an AI": ("As an AI, I do not judge.", {}, Outcome.REFUSED),
    "refusal after a thought": ("<think>Hm.</think>\nI cannot evaluate this", {}, Outcome.REFUSED),
    "nested without end": ('{"a":' * 100_000, {}, Outcome.UNPARSABLE),
}  # fmt: skip


@pytest.mark.parametrize(("content", "fields", "outcome"), FAILED.values(), ids=FAILED)
def test_a_failure_is_an_outcome_and_no_category(content, fields, outcome):
    assert read_label(reply(content, **fields)) == Verdict(outcome)


def test_no_answer_is_a_provider_error():
    for read in (read_label, read_digit, read_explanation):
        assert read(Reply(None, fault="HTTP 500")) == Verdict(Outcome.PROVIDER_ERROR)


@pytest.mark.parametrize(
    ("content", "outcome"),
    [
        ('{"explanation": " Same topic. "}', Outcome.GRADED), ('{"explanation": ""}', Outcome.EMPTY),
        ('{"explanation": null}', Outcome.EMPTY), ('{"category": "low"}', Outcome.UNPARSABLE), ("", Outcome.EMPTY),
        ("I cannot say.", Outcome.REFUSED),
    ],
)  # fmt: skip
def test_an_explanation_alone(content, outcome):
    assert read_explanation(reply(content)) == Verdict(
        outcome, explanation="Same topic." if outcome == Outcome.GRADED else None
    )


@pytest.mark.parametrize(
    ("shares", "before", "expected"),
    [
        ({"3": 1.0}, (), 3.0),
        ({"3": 0.6, "2": 0.4}, (), 3 * 0.6 + 2 * 0.4),
        ({"0": 0.25, "1": 0.25, "2": 0.25, "3": 0.25}, (), (0 + 1 + 2 + 3) / 4),
        ({"2": 0.5, "1": 0.3, "The": 0.2}, (), (2 * 0.5 + 1 * 0.3) / (0.5 + 0.3)),  # of the share that is a grade
        ({"2": 0.5, " 2": 0.2, "\n1": 0.1, "7": 0.2}, (), (2 * 0.7 + 1 * 0.1) / 0.8),  # blanks make no other digit
        ({" 1": 0.9, "2": 0.1}, (), 1 * 0.9 + 2 * 0.1),
        ({"1": 0.5, "x": 0.3}, ("\n", " "), 1.0),  # 0.5 on digits is just enough
        ({"1": 0.49, "x": 0.3}, (), None),
        ({"7": 0.9, "3": 0.1}, (), None),
        ({"x": 0.9, "3": 0.1}, (), None),
    ],
)
def test_the_expected_grade_is_the_mean_over_the_probabilities_of_the_digits(shares, before, expected):
    digit = max(shares, key=shares.get)
    verdict = read_digit(reply("".join([*before, digit]), logprobs=logprobs_for(shares, before)))
    if expected is None:
        assert verdict == Verdict(Outcome.UNPARSABLE)
    else:
        assert verdict == Verdict(Outcome.GRADED, expected_grade=pytest.approx(expected))


def of_tokens(*tokens: str) -> Reply:
    """An answer of these tokens, each of them sure."""
    positions = [logprobs_for({token: 1.0})["content"][0] for token in tokens]
    return reply("".join(tokens), logprobs={"content": positions})


@pytest.mark.parametrize(
    "tokens", [["2"], ["2", "\n\n", "The"], ["2", "."], ["**", "2", "**"], ['"', "2", '"'], [" 2", "\n", "3", " kinds"]]
)
def test_a_digit_is_read_though_other_signs_stand_around_it(tokens):
    assert read_digit(of_tokens(*tokens)) == Verdict(Outcome.GRADED, expected_grade=2.0)


@pytest.mark.parametrize(
    "tokens",
    [["1", "0"], ["2", "5", "%"], ["2", ".", "5"], ["<think>", "2", " kinds", "</think>", "x"], ["Of", " 3", " kinds"]],
)
def test_a_digit_that_is_not_the_answer_is_no_grade(tokens):
    assert read_digit(of_tokens(*tokens)) == Verdict(Outcome.UNPARSABLE)


GRADED, UNPARSABLE, EMPTY, FAULT = Outcome.GRADED, Outcome.UNPARSABLE, Outcome.EMPTY, Outcome.PROVIDER_ERROR
REAL_ANSWERS = {
    "grade_10.json": (200, UNPARSABLE), "grade_2.json": (200, UNPARSABLE),  # they have a score and no category
    "grade_0_empty_summary.json": (200, UNPARSABLE), "grade_fenced_json.json": (200, UNPARSABLE),
    "grade_not_json.json": (200, UNPARSABLE), "grade_truncated_json.json": (200, Outcome.TRUNCATED),
    "broken_body_cut.json": (200, FAULT), "openai_json_schema.json": (200, EMPTY),
    "openrouter_ok.json": (200, UNPARSABLE), "openrouter_reasoning.json": (200, UNPARSABLE),
    "openrouter_usage_cost.json": (200, UNPARSABLE),
    "openrouter_length.json": (200, Outcome.TRUNCATED), "openrouter_stream_error.txt": (200, FAULT),
    "openrouter_429_upstream.json": (429, FAULT), "openai_401_key.json": (401, "Incorrect API key"),
    "openai_404_model.json": (404, "does not exist"), "openrouter_402_credits.json": (402, "Insufficient credits"),
    "openrouter_429_free_per_day.json": (429, "free-models-per-day"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "status", "outcome"), [(name, *rest) for name, rest in REAL_ANSWERS.items()])
def test_real_answers_of_real_endpoints(endpoint, shared_answers, tmp_path, name, status, outcome):
    assert sorted(REAL_ANSWERS) == sorted(path.name for path in shared_answers.iterdir())
    server = endpoint(Sent((shared_answers / name).read_bytes(), status))
    llm = llm_at(server.url, tmp_path / "a.jsonl", attempts=2)
    if isinstance(outcome, Outcome):
        (got,) = ask_all(llm, 1)
        assert read_label(got) == Verdict(outcome)
        assert server.received == (2 if outcome == FAULT else 1)
    else:
        with pytest.raises(UserError, match=outcome):
            ask_all(llm, 3)
        assert server.received == 1


def test_what_real_endpoints_tell_of_themselves_is_kept(endpoint, shared_answers, tmp_path):
    for name, told in {
        "openrouter_ok.json": ("x-ai/grok-4", "xAI", "fp_19e21a36c0", 687, 240, None),
        "openrouter_length.json": ("anthropic/claude-4.6-sonnet-20260217", "Anthropic", None, 3214, 100, 0.01355025),
        "grade_2.json": ("gpt-4o-2024-11-20", None),
    }.items():
        llm = llm_at(endpoint(Sent((shared_answers / name).read_bytes())).url, tmp_path / name, prices=())
        a = ask_all(llm, 1)[0].answer
        assert (a.model, a.provider, a.fingerprint, a.input_tokens, a.output_tokens, a.usd)[: len(told)] == told


def test_a_real_fenced_answer_is_read_when_it_has_a_category(shared_answers):
    raw = json.loads((shared_answers / "grade_fenced_json.json").read_text())
    content = raw["choices"][0]["message"]["content"]
    content = re.sub(r'"relevance_score": 10', '"category": "Highly relevant"', content)
    assert read_label(reply(content)).category == HIGH
