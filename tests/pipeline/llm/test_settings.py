"""Settings of a model that cannot work are refused."""

import pytest
from pydantic import TypeAdapter, ValidationError

from pipeline.llm.settings import BUNDLED, Llm


@pytest.mark.parametrize(
    "wrong",
    [
        {"base_url": "openrouter.ai"}, {"base_url": "https://user:pw@host/v1"}, {"base_url": "https://host/v1?key=1"},
        {"base_url": "ftp://host"}, {"temperature": 2.1}, {"top_p": 0}, {"max_tokens": 0}, {"mode": "ask"},
        {"max_usd": 0}, {"deadline_s": 0}, {"concurrency": 0}, {"response_format": "xml"},
        {"api_key": "sk"}, {"model": ""},
    ],
    ids=str,
)  # fmt: skip
def test_a_model_that_cannot_be_asked_is_refused(wrong):
    known = {"model": "m", "base_url": "http://127.0.0.1:9/v1", "mode": "record", "recording": "a", "prices": []}
    TypeAdapter(Llm).validate_python(known)
    with pytest.raises(ValidationError):
        TypeAdapter(Llm).validate_python({**known, **wrong})


@pytest.mark.parametrize(
    ("url", "host"),
    [("https://OpenRouter.ai/api/v1/", "openrouter.ai"), ("http://127.0.0.1:8081/v1", "127.0.0.1")],
)
def test_an_endpoint_is_known_by_its_host(url, host):
    llm = Llm(model="m", base_url=url, mode="record", recording="bundled", prices=())
    assert (llm.endpoint, llm.base_url, llm.recording_file) == (host, url.rstrip("/"), BUNDLED)
