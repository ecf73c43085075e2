"""Cross-encoder scores: how well a document answers a query, read together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.cache import Encoded
from pipeline.encoding import Encoder, Network, encode
from pipeline.openvino_network import converted


def score_pairs(pairs: Sequence[tuple[str, str]], encoder: Encoder) -> list[Encoded]:
    """Return the raw logit of each (query, document) pair, as values of shape (1,)."""
    return encode(pairs, encoder, _load, "cross-encoder")


def _load(folder: Path, encoder: Encoder, device: str) -> Network:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    model, loaded = AutoModelForSequenceClassification.from_pretrained(
        str(folder), local_files_only=True, output_loading_info=True
    )
    model = model.eval().to(device)
    if loaded["missing_keys"]:  # transformers would go on with random weights
        raise ValueError(f"it holds no weights for {', '.join(sorted(loaded['missing_keys']))}")
    if model.config.num_labels != 1:
        raise ValueError(f"it has {model.config.num_labels} outputs; a cross-encoder for ranking has one")
    tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    if encoder.backend == "openvino":
        run = converted(model, tokenizer, encoder.precision)
        return Network(tokenizer, lambda batch: run(batch, "logits"))
    if encoder.precision == "bf16":
        model = model.to(torch.bfloat16)

    def forward(batch: Any) -> npt.NDArray[np.float32]:
        logits: npt.NDArray[np.float32] = model(**batch.to(device)).logits.float().cpu().numpy()
        return logits

    return Network(tokenizer, forward)
