"""Sentence embeddings: texts to unit vectors (the paper, section 4.3.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.cache import Encoded
from pipeline.encoding import Encoder, Network, encode

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
    return similarities


def _load(folder: Path, precision: str, device: str) -> Network:
    import torch
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device=device, local_files_only=True).eval()
    if precision == "bf16":
        model = model.to(torch.bfloat16)

    def forward(batch: Any) -> Vector:
        vectors = model(dict(batch.to(device)))["sentence_embedding"].float()
        unit: Vector = torch.nn.functional.normalize(vectors, dim=-1).cpu().numpy()  # bf16 leaves norms off by 0.4 %
        return unit

    return Network(model.tokenizer, forward)
