"""OpenVINO computes what torch computes, to the last few bits, and the same bits in any batch."""

import importlib.metadata
import importlib.util
import sys

import numpy as np
import pytest

from encoding_helpers import TEXTS, encoder
from pipeline.embedding import embed
from pipeline.errors import UserError
from pipeline.pair_scoring import score_pairs

needs_openvino = pytest.mark.skipif(
    importlib.util.find_spec("openvino") is None, reason="openvino is not installed: pip install 'litgrade[openvino]'"
)


@pytest.fixture
def by_openvino(tiny_models, tmp_path):
    return embed(TEXTS, encoder(tiny_models["embedder"], tmp_path / "openvino.sqlite", backend="openvino"))


@needs_openvino
def test_vectors_are_those_of_torch(tiny_models, tmp_path, by_openvino):
    by_torch = embed(TEXTS, encoder(tiny_models["embedder"], tmp_path / "torch.sqlite"))
    for text in TEXTS:
        np.testing.assert_allclose(by_openvino[text].values, by_torch[text].values, atol=1e-6)


@needs_openvino
def test_scores_of_pairs_are_those_of_torch(tiny_models, tmp_path):
    pairs = [("wing", text) for text in TEXTS]
    model, store = tiny_models["cross_encoder"], tmp_path / "a.sqlite"
    by_torch = score_pairs(pairs, encoder(model, store))
    by_openvino = score_pairs(pairs, encoder(model, store, backend="openvino"))
    expected = [entry.values[0] for entry in by_torch]
    np.testing.assert_allclose([entry.values[0] for entry in by_openvino], expected, atol=1e-6)


@needs_openvino
@pytest.mark.parametrize("batch_tokens", [1, 112, 5000])
def test_batches_and_company_change_no_bit(tiny_models, tmp_path, by_openvino, batch_tokens):
    settings = {"backend": "openvino", "batch_tokens": batch_tokens}
    again = embed(TEXTS[::-1], encoder(tiny_models["embedder"], tmp_path / "b.sqlite", **settings))
    assert all(again[text].values.tobytes() == by_openvino[text].values.tobytes() for text in TEXTS)


@needs_openvino
def test_threads_change_no_bit(tiny_models, tmp_path, monkeypatch, by_openvino):
    import openvino

    compile_model = openvino.Core.compile_model

    def on_one_thread(core, model, device, settings):
        return compile_model(core, model, device, {**settings, openvino.properties.inference_num_threads: 1})

    monkeypatch.setattr("openvino.Core.compile_model", on_one_thread)
    again = embed(TEXTS, encoder(tiny_models["embedder"], tmp_path / "b.sqlite", backend="openvino"))
    assert all(again[text].values.tobytes() == by_openvino[text].values.tobytes() for text in TEXTS)


@needs_openvino
def test_texts_beyond_the_window_are_told(tiny_models, tmp_path):
    texts = ["wing " * 20, "wing"]
    found = embed(texts, encoder(tiny_models["embedder"], tmp_path / "a.sqlite", backend="openvino"))
    assert [entry.is_truncated for entry in found.values()] == [True, False]


@needs_openvino
def test_a_model_that_is_no_transformer_is_refused(tmp_path):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import BoW

    SentenceTransformer(modules=[BoW(vocab=["wing", "gene"])], device="cpu").save(str(tmp_path / "words"))
    with pytest.raises(UserError, match=r"no transformer.*backend=torch"):
        embed(["wing"], encoder(tmp_path / "words", tmp_path / "a.sqlite", backend="openvino", max_tokens=16))


@needs_openvino
def test_openvino_reports_nothing_to_its_makers(by_openvino):
    assert sys.modules["openvino_telemetry"] is None  # importing it raises, and openvino goes on without


def test_a_missing_package_is_told_in_one_line(tiny_models, tmp_path, monkeypatch):
    def version(name):
        if name == "openvino":
            raise importlib.metadata.PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr("importlib.metadata.version", version)
    with pytest.raises(UserError, match=r"pip install 'litgrade\[openvino\]'"):
        embed(["wing"], encoder(tiny_models["embedder"], tmp_path / "a.sqlite", backend="openvino"))


def test_a_gpu_is_refused(tiny_models, tmp_path):
    with pytest.raises(ValueError, match="backend=openvino runs on the CPU"):
        encoder(tiny_models["embedder"], tmp_path / "a.sqlite", backend="openvino", device="cuda")
