"""Sentence embeddings: texts to unit vectors (the paper, section 4.3.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.cache import Encoded
from pipeline.encoding import Encoder, Network, encode
from pipeline.openvino_network import converted

Vector = npt.NDArray[np.float32]


def embed(texts: Iterable[str], encoder: Encoder) -> dict[str, Encoded]:
    """Return the unit vector of each distinct text. An empty text has no meaning to embed and is left out."""
    distinct = [text for text in dict.fromkeys(texts) if text]
    return dict(zip(distinct, encode(distinct, encoder, _load, "embedding"), strict=True))


def cosines(query: Vector, papers: Sequence[Vector]) -> npt.NDArray[np.float64]:
    """Return the cosine of a unit vector with each of these.

    Summed row by row in float64 and rounded to 9 decimals: no order hangs on how many rows were summed at once.
    """
    matrix = np.stack(papers).astype(np.float64)
    similarities: npt.NDArray[np.float64] = np.einsum("ij,j->i", matrix, query.astype(np.float64)).round(9)
    return similarities.clip(-1, 1)  # float32 unit vectors are longer than 1 by a few 1e-8


def _load(folder: Path, encoder: Encoder, device: str) -> Network:
    import torch
    from sentence_transformers import SentenceTransformer

    _check_complete(folder)
    model = SentenceTransformer(str(folder), device=device, local_files_only=True).eval()
    if encoder.backend == "openvino":
        embedded = _run_by_openvino(model, encoder.precision)
    else:
        embedded = model.to(torch.bfloat16) if encoder.precision == "bf16" else model

    def forward(batch: Any) -> Vector:
        vectors = embedded(dict(batch.to(device)))["sentence_embedding"].float()
        unit: Vector = torch.nn.functional.normalize(vectors, dim=-1).cpu().numpy()  # bf16 leaves norms off by 0.4 %
        return unit

    return Network(model.tokenizer, forward)


def _run_by_openvino(model: Any, precision: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return what ``model`` does, with OpenVINO in place of its transformer; torch still pools the tokens."""
    import torch

    transformer, *others = model
    if not hasattr(transformer, "auto_model"):
        raise ValueError("it is no transformer, the only kind that backend=openvino runs; use backend=torch")
    run = converted(transformer.auto_model, model.tokenizer, precision)

    def embedded(batch: dict[str, Any]) -> dict[str, Any]:
        features = {**batch, "token_embeddings": torch.from_numpy(run(batch, "last_hidden_state"))}
        for module in others:
            features = module(features)
        return features

    return embedded


def _check_complete(folder: Path) -> None:
    """Refuse a model for which the libraries would make up what its folder lacks: random weights, no vocabulary."""
    from transformers import AutoModel

    if not (folder / "config.json").is_file():
        return  # not a plain transformer: sentence-transformers reads its parts from folders of their own
    if not any((folder / name).is_file() for name in _VOCABULARIES):
        raise ValueError(f"it holds no vocabulary, none of {', '.join(_VOCABULARIES)}")
    _, loaded = AutoModel.from_pretrained(str(folder), local_files_only=True, output_loading_info=True)
    if missing := sorted(key for key in loaded["missing_keys"] if not key.startswith("pooler.")):
        raise ValueError(f"it holds no weights for {missing[0]} and {len(missing) - 1} others")


_VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model")
