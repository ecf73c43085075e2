"""The shape of a request, and what its key depends on."""

from dataclasses import replace

import pytest

from endpoint import Reply, completion, label, logprobs_for
from grade_helpers import candidates, grade, llm_at, prompt
from pipeline.llm.requests import make_request, most_input_tokens, request_key, with_provider
from pipeline.llm.settings import Llm
from pipeline.papers import Paper


def answer(n, body) -> Reply:
    return Reply(completion("2" if "logprobs" in body else label("low relevance"), logprobs=logprobs_for({"2": 1.0})))


SCHEMA = {"type": "object"}
MESSAGES = [{"role": "user", "content": "hello"}]


def sent(endpoint, tmp_path, **settings):
    """The body of the one request that grades one paper."""
    llm_settings = {name: settings.pop(name) for name in list(settings) if name in Llm.__dataclass_fields__}
    server = endpoint(answer)
    grade(llm_at(server.url, tmp_path / "a.jsonl", **llm_settings), candidates("low relevance"), **settings)
    (body,) = server.bodies
    return body


def test_the_parameters_are_those_of_the_paper(endpoint, tmp_path):
    body = sent(endpoint, tmp_path)
    assert set(body) == {"model", "messages", "temperature", "top_p", "seed", "max_tokens", "response_format"}
    assert (body["model"], body["temperature"], body["top_p"], body["seed"], body["max_tokens"]) == ("m", 0, 1, 42, 256)
    assert [message["role"] for message in body["messages"]] == ["system", "user"]


def test_the_form_is_asked_for_as_the_endpoint_offers(endpoint, tmp_path):
    strict = sent(endpoint, tmp_path)["response_format"]
    assert strict["type"] == "json_schema"
    schema = strict["json_schema"]["schema"]
    assert schema["required"] == ["category", "explanation"]
    assert schema["properties"]["category"]["enum"] == [
        "highly relevant", "moderately relevant", "somewhat relevant", "low relevance"
    ]  # fmt: skip
    assert schema["additionalProperties"] is False
    tmp = [tmp_path / name for name in "ab"]
    assert sent(endpoint, tmp[0], response_format="json_object")["response_format"] == {"type": "json_object"}
    assert "response_format" not in sent(endpoint, tmp[1], response_format="text")


def test_a_digit_is_asked_for_with_its_probabilities_and_without_a_schema(endpoint, tmp_path):
    body = sent(endpoint, tmp_path, scoring="expected", explain="none")
    assert (body["logprobs"], body["top_logprobs"], body["max_tokens"]) == (True, 20, 4)
    assert "response_format" not in body


def test_no_seed_is_sent_where_there_is_none(endpoint, tmp_path):
    assert "seed" not in sent(endpoint, tmp_path, seed=None)


@pytest.mark.parametrize(
    ("url", "is_pinned"),
    [
        ("https://openrouter.ai/api/v1", True), ("https://eu.openrouter.ai/api/v1", True),
        ("https://OpenRouter.ai/api/v1", True), ("https://notopenrouter.ai/v1", False),
        ("https://openrouter.ai.example.org/v1", False), ("http://127.0.0.1/openrouter.ai", False),
        ("https://api.openai.com/v1", False),
    ],
)  # fmt: skip
def test_the_provider_is_pinned_at_openrouter_alone(url, is_pinned):
    body = with_provider(llm_at(url, "unused", provider="DeepInfra"), {"model": "m"})
    assert body.get("provider") == ({"order": ["DeepInfra"], "allow_fallbacks": False} if is_pinned else None)
    assert ("usage" in body) == is_pinned
    assert "provider" not in with_provider(llm_at(url, "unused"), {"model": "m"})


OPENROUTER = llm_at("https://openrouter.ai/api/v1", "unused", provider="DeepInfra")


def key(llm: Llm = OPENROUTER, messages=MESSAGES, **changed) -> str:
    return request_key(llm, make_request(llm, messages, "paper p", schema=SCHEMA, **changed).body)


@pytest.mark.parametrize(
    "changed",
    [
        {"model": "other"}, {"base_url": "https://api.openai.com/v1"}, {"provider": "Other"}, {"provider": None},
        {"temperature": 0.7}, {"top_p": 0.9}, {"seed": 43}, {"seed": None}, {"max_tokens": 257},
        {"response_format": "json_object"}, {"response_format": "text"},
    ],
    ids=str,
)  # fmt: skip
def test_what_an_answer_depends_on_changes_the_key(changed):
    assert key(replace(OPENROUTER, **changed)) != key()


@pytest.mark.parametrize(
    "changed",
    [
        {"concurrency": 1}, {"attempts": 1}, {"backoff_s": 5.0}, {"deadline_s": 1.0}, {"mode": "live"},
        {"max_usd": 1.0}, {"prices": ()}, {"recording": "elsewhere.jsonl"}, {"key_env": "OTHER_KEY"},
        {"context_window": 999_999},        {"base_url": "https://openrouter.ai:8443/api/v2/"},
    ],
    ids=str,
)  # fmt: skip
def test_what_an_answer_does_not_depend_on_leaves_the_key(changed):
    assert key(replace(OPENROUTER, **changed)) == key()


def test_messages_change_the_key_and_the_order_of_fields_does_not():
    assert key(messages=[{"role": "user", "content": "hello "}]) != key()
    assert key(messages=[{"role": "system", "content": "hello"}]) != key()
    assert key(messages=[*MESSAGES, *MESSAGES]) != key()
    assert key(messages=[{"content": "hello", "role": "user"}]) == key()
    llm, body = OPENROUTER, make_request(OPENROUTER, MESSAGES, "other words about it", schema=SCHEMA).body
    assert request_key(llm, dict(reversed(body.items()))) == key()


BASE = ("highly relevant", "low relevance", "low relevance")


@pytest.mark.parametrize(
    "changed",
    [
        {"prompt": prompt(role="Judge.")}, {"prompt": prompt(criteria=None)}, {"prompt": prompt(rules="Be strict.")},
        {"prompt": prompt(label="Answer in JSON.")}, {"prompt": prompt(examples="Some papers.")},
        {"prompt": prompt(example_order="falling")}, {"prompt": prompt(paper_fields=("title",))}, {"few_shot": 0},
        {"few_shot": 1}, {"explain": "none"}, {"samples": 2}, {"scoring": "expected"},
    ],
    ids="-".join,
)  # fmt: skip
def test_another_prompt_is_asked_anew(endpoint, tmp_path, changed):
    server = endpoint(answer)
    llm = llm_at(server.url, tmp_path / "a.jsonl")
    for _ in range(2):  # the second time everything is known
        grade(llm, candidates(*BASE), few_shot=3)
        assert server.received == 3
    grade(llm, candidates(*BASE), **{"few_shot": 3} | changed)
    assert server.received > 3


def test_another_text_of_a_paper_is_asked_anew_for_the_prompts_that_show_it(endpoint, tmp_path):
    server = endpoint(answer)
    llm = llm_at(server.url, tmp_path / "a.jsonl")
    papers = [Paper(f"p{i}", f"Title {i}") for i in range(3)]
    grade(llm, candidates(*BASE, papers=papers))
    grade(llm, candidates(*BASE, papers=[*papers[:2], Paper("p2", "Another title")]))
    assert server.received == 4
    grade(llm, candidates(*BASE, papers=[Paper("renamed", "Title 0", year=1999, citation_count=7), *papers[1:]]))
    assert server.received == 4  # neither an id nor what the prompt does not tell


def test_the_bound_of_tokens_counts_bytes():
    """Two messages: 2 + 16 for é (two bytes in UTF-8) and 5 + 16 for hello."""
    assert most_input_tokens({"messages": [{"role": "system", "content": "é"}, *MESSAGES]}) == 2 + 16 + 5 + 16
