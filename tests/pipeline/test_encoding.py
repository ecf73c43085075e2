"""Values do not hang on batch size, company or threads; nothing is computed twice."""

import numpy as np
import pytest

from encoding_helpers import TEXTS, encoder
from pipeline.embedding import cosines, embed
from pipeline.encoding import Network
from pipeline.errors import UserError
from pipeline.pair_scoring import score_pairs


@pytest.fixture
def vectors(tiny_models, tmp_path):
    return embed(TEXTS, encoder(tiny_models["embedder"], tmp_path / "a.sqlite"))


@pytest.mark.parametrize("batch_tokens", [1, 112, 5000])  # one text a batch, seven of 16 tokens, all of a length
def test_batches_and_company_change_no_bit(tiny_models, tmp_path, vectors, batch_tokens):
    other = encoder(tiny_models["embedder"], tmp_path / "b.sqlite", batch_tokens=batch_tokens)
    for half in (TEXTS[::2], TEXTS[::-1]):  # as after a killed run: half is stored, the rest comes in other company
        again = embed(half, other)
        for text in half:
            assert again[text].values.tobytes() == vectors[text].values.tobytes()


def test_threads_change_no_bit(tiny_models, tmp_path, vectors):
    import torch

    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        again = embed(TEXTS, encoder(tiny_models["embedder"], tmp_path / "b.sqlite"))
    finally:
        torch.set_num_threads(threads)
    assert all(again[text].values.tobytes() == vectors[text].values.tobytes() for text in TEXTS)


def test_a_batch_holds_as_many_tokens_as_allowed_and_at_least_one_text(tiny_models, tmp_path, monkeypatch):
    import pipeline.embedding

    shapes = []

    def load(*arguments):
        network = original(*arguments)
        return Network(
            network.tokenizer, lambda batch: shapes.append(batch["input_ids"].shape) or network.forward(batch)
        )

    original = pipeline.embedding._load
    monkeypatch.setattr("pipeline.embedding._load", load)
    texts = ["g" * n for n in (1, 2, 3, 4, 5, 40, 41)]  # a token a letter, one before and one after; 16 * 2 = 32 fit
    embed(texts, encoder(tiny_models["embedder"], tmp_path / "a.sqlite", batch_tokens=32))
    assert shapes == [(2, 16), (2, 16), (1, 16), (1, 48), (1, 48)]


def test_vectors_are_those_of_sentence_transformers(tiny_models, vectors):
    from sentence_transformers import SentenceTransformer

    expected = SentenceTransformer(str(tiny_models["embedder"]), device="cpu").encode(TEXTS, normalize_embeddings=True)
    np.testing.assert_allclose(np.stack([vectors[text].values for text in TEXTS]), expected, atol=1e-6)


def test_scores_are_those_of_the_cross_encoder_class(tiny_models, tmp_path):
    import torch
    from sentence_transformers import CrossEncoder

    pairs = [("wing", text) for text in TEXTS]
    found = score_pairs(pairs, encoder(tiny_models["cross_encoder"], tmp_path / "a.sqlite"))
    expected = CrossEncoder(str(tiny_models["cross_encoder"]), device="cpu", max_length=64).predict(
        pairs, activation_fn=torch.nn.Identity()
    )
    np.testing.assert_allclose([entry.values[0] for entry in found], expected, atol=1e-6)


def test_a_second_time_loads_no_model(tiny_models, tmp_path, monkeypatch):
    settings = encoder(tiny_models["embedder"], tmp_path / "a.sqlite")
    first = embed(TEXTS, settings)
    monkeypatch.setattr("pipeline.embedding._load", lambda *_: pytest.fail("the model was loaded again"))
    second = embed(TEXTS, settings)
    assert all(first[text].values.tobytes() == second[text].values.tobytes() for text in TEXTS)


@pytest.mark.parametrize("change", [{"precision": "bf16"}, {"max_tokens": 32}])
def test_what_changes_values_changes_the_key(tiny_models, tmp_path, monkeypatch, change):
    store = tmp_path / "a.sqlite"
    embed(["wing"], encoder(tiny_models["embedder"], store))

    def load(*_):
        raise ValueError("asked again")

    monkeypatch.setattr("pipeline.embedding._load", load)
    with pytest.raises(UserError, match="asked again"):
        embed(["wing"], encoder(tiny_models["embedder"], store, **change))


def test_texts_beyond_the_window_are_told(tiny_models, tmp_path):
    same = "wing " * 20  # 4 tokens a word: beyond 64 tokens
    found = embed([same + "gene", same + "cell", "wing"], encoder(tiny_models["embedder"], tmp_path / "a.sqlite"))
    assert [entry.is_truncated for entry in found.values()] == [True, True, False]


def test_an_empty_text_is_never_embedded(tiny_models, tmp_path):
    assert list(embed(["", "wing", ""], encoder(tiny_models["embedder"], tmp_path / "a.sqlite"))) == ["wing"]


def test_bf16_vectors_have_unit_length(tiny_models, tmp_path):
    found = embed(TEXTS, encoder(tiny_models["embedder"], tmp_path / "a.sqlite", precision="bf16"))
    lengths = [np.linalg.norm(entry.values) for entry in found.values()]
    assert lengths == pytest.approx([1.0] * len(found), abs=1e-6)


def test_a_window_beyond_the_model_is_refused(tiny_models, tmp_path):
    with pytest.raises(UserError, match="max_tokens=128: model tiny reads at most 64 tokens"):
        embed(["wing"], encoder(tiny_models["embedder"], tmp_path / "a.sqlite", max_tokens=128))


def test_a_folder_without_a_model_is_refused_in_one_line(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UserError, match="cannot load") as refused:
        embed(["wing"], encoder(tmp_path, tmp_path / "store" / "a.sqlite"))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("kind", "reason"), [("three outputs", "3 outputs"), ("no head", "no weights for classifier")])
def test_a_model_that_is_no_cross_encoder_is_refused(tiny_models, tmp_path, kind, reason):
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification, BertModel

    folder = tmp_path / "model"
    config = BertConfig.from_pretrained(tiny_models["cross_encoder"], num_labels=3 if kind == "three outputs" else 1)
    model = BertForSequenceClassification(config) if kind == "three outputs" else BertModel(config)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(tiny_models["cross_encoder"]).save_pretrained(folder)
    with pytest.raises(UserError, match=reason):
        score_pairs([("wing", "gene")], encoder(folder, tmp_path / "a.sqlite"))


@pytest.mark.parametrize("lost", ["weights", "vocabulary"])
def test_an_embedder_that_would_be_made_up_in_part_is_refused(tiny_models, tmp_path, lost):
    import shutil

    from safetensors.numpy import load_file, save_file

    folder = tmp_path / "model"
    shutil.copytree(tiny_models["embedder"], folder)
    if lost == "weights":
        tensors = load_file(folder / "model.safetensors")
        kept = {name: values for name, values in tensors.items() if "layer.1" not in name}
        save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    else:
        (folder / "tokenizer.json").unlink()
        (folder / "vocab.txt").unlink(missing_ok=True)
    with pytest.raises(UserError, match=f"it holds no {lost}"):
        embed(["wing"], encoder(folder, tmp_path / "a.sqlite"))


def test_cosines_do_not_hang_on_the_number_of_rows():
    rows = np.random.default_rng(0).normal(size=(300, 768)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    one_by_one = [cosines(rows[0], [row])[0] for row in rows]
    assert cosines(rows[0], list(rows)).tolist() == one_by_one
    assert one_by_one[0] == pytest.approx(1.0)
