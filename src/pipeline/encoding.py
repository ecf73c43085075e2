"""Texts in, a transformer model's float32 values out: each text computed once, and the same in any batch.

A transformer's output depends in its last bits on the shape of the batch. Here every text is padded to a length that
follows from the text alone, so that its values are the same bits at any batch size, in any company and after a
restart. Where that does not hold on some machine, the store still keeps the first values for all later runs.
"""

from __future__ import annotations

import importlib.metadata
import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass as plain_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict, Field, PositiveInt, model_validator
from pydantic.dataclasses import dataclass

from pipeline import openvino_network
from pipeline.cache import Encoded, VectorStore, content_key
from pipeline.errors import UserError, first_line
from pipeline.models import ModelFiles, verified_folder
from pipeline.progress import progress

log = logging.getLogger(__name__)

_PAD_TO = 16  # tokens; texts of one padded length are batched together
_TEXTS_A_WRITE = 64  # what a killed run loses at most

Text = str | tuple[str, str]  #: one text, or a pair of texts read together


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Encoder:
    """How a model is run. ``batch_tokens`` changes speed and memory, never a value.

    It is how many tokens a batch may have, padding included; a longer text is a batch of its own.
    """

    model: ModelFiles
    store: Path
    max_tokens: Annotated[int, Field(ge=_PAD_TO, multiple_of=_PAD_TO)]
    backend: Literal["torch", "openvino"] = "torch"
    precision: Literal["fp32", "bf16"] = "fp32"
    batch_tokens: PositiveInt = 512
    device: Literal["auto", "cpu", "cuda"] = "auto"

    @model_validator(mode="after")
    def _runs_where_its_backend_runs(self) -> Encoder:
        if self.backend == "openvino" and self.device == "cuda":
            raise ValueError("backend=openvino runs on the CPU; expected device=auto or cpu, or backend=torch")
        return self


@plain_dataclass(frozen=True)
class Network:
    """A loaded model: its tokenizer, and a function from a padded batch to float32 values, one row a text."""

    tokenizer: Any  # transformers' tokenizers have no common typed interface
    forward: Callable[[Any], npt.NDArray[np.float32]]


Load = Callable[[Path, Encoder, str], Network]  #: (folder, encoder, device) -> network


def encode(texts: Sequence[Text], encoder: Encoder, load: Load, what: str) -> list[Encoded]:
    """Return what the model makes of each text, from the store where it is there, else computed and stored.

    ``load`` is called only if something has to be computed; ``what`` names the work in keys and messages.
    """
    device = _device(encoder)
    settings = _what_values_hang_on(encoder, device)
    keys = [content_key(what, *settings, text) for text in texts]
    store = VectorStore(encoder.store)
    known = store.read(keys)
    missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
    if missing:
        network = _load(load, encoder, device)
        log.info("%s: %d of %d texts to compute", what, len(missing), len(set(keys)))
        with progress(len(missing), what) as step:
            for batch in _compute(missing, encoder, network):
                store.write(batch)
                known.update(batch)
                step(len(batch))
    if len({entry.values.size for entry in known.values()}) > 1:
        raise UserError(f"vector store {encoder.store}: stored vectors differ in length; delete the file")
    if n_cut := sum(known[key].is_truncated for key in set(keys)):
        log.warning("%s: %d texts are longer than %d tokens and were cut", what, n_cut, encoder.max_tokens)
    return [known[key] for key in keys]


def _what_values_hang_on(encoder: Encoder, device: str) -> tuple[object, ...]:
    torch_version = importlib.metadata.version("torch")
    settings = (encoder.model.fingerprint, encoder.precision, encoder.max_tokens, device, torch_version, _PAD_TO)
    if encoder.backend == "openvino":
        return (*settings, "openvino", openvino_network.installed_version())
    return settings  # without a word on the backend: torch was the only one when the first stores were filled


def _device(encoder: Encoder) -> str:
    if encoder.device == "cpu" or encoder.backend == "openvino":
        return "cpu"
    import torch

    if torch.cuda.is_available():
        return "cuda"
    if encoder.device == "cuda":
        raise UserError("device=cuda: no CUDA device found; expected auto or cpu")
    return "cpu"


def _load(load: Load, encoder: Encoder, device: str) -> Network:
    folder = verified_folder(encoder.model)
    from safetensors import SafetensorError
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    try:
        network = load(folder, encoder, device)
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise UserError(f"model {encoder.model.name}: cannot load {folder}: {first_line(error)}") from error
    if encoder.max_tokens > network.tokenizer.model_max_length:
        limit = network.tokenizer.model_max_length
        raise UserError(f"max_tokens={encoder.max_tokens}: model {encoder.model.name} reads at most {limit} tokens")
    return network


def _compute(texts: dict[bytes, Text], encoder: Encoder, network: Network) -> Iterator[dict[bytes, Encoded]]:
    """Yield the values of all texts, a storable batch at a time, short texts first."""
    import torch

    tokens = _tokenize(list(texts.values()), network.tokenizer)
    cut = _tokenize(list(texts.values()), network.tokenizer, truncation=True, max_length=encoder.max_tokens)
    buckets: dict[int, list[int]] = defaultdict(list)
    for i, ids in enumerate(cut["input_ids"]):
        buckets[-(-len(ids) // _PAD_TO) * _PAD_TO].append(i)
    keys, done = list(texts), {}
    with torch.inference_mode():
        for length in sorted(buckets):
            size = max(1, encoder.batch_tokens // length)
            for start in range(0, len(buckets[length]), size):
                some = buckets[length][start : start + size]
                rows = {name: [values[i] for i in some] for name, values in cut.items()}
                padded = network.tokenizer.pad(rows, padding="max_length", max_length=length, return_tensors="pt")
                values = network.forward(padded)
                if not np.isfinite(values).all():
                    raise UserError(f"model {encoder.model.name}: values that are no numbers; try precision=fp32")
                for i, row in zip(some, values, strict=True):
                    done[keys[i]] = Encoded(row, is_truncated=len(tokens["input_ids"][i]) > encoder.max_tokens)
                if len(done) >= _TEXTS_A_WRITE:
                    yield done
                    done = {}
    if done:
        yield done


def _tokenize(texts: list[Text], tokenizer: Any, **options: Any) -> dict[str, list[list[int]]]:
    columns = zip(*texts, strict=True) if isinstance(texts[0], tuple) else [texts]
    return dict(tokenizer(*map(list, columns), verbose=False, **options))
