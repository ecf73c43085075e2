"""Embedding: each backend, precision and size of batches against plain ``SentenceTransformer.encode``; the store."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measuring import in_own_process, peak_mb, row, timed
from benchmarks.texts import abstracts
from experiments.models import registered_models
from pipeline import embedding
from pipeline.encoding import Encoder, Network, encode
from pipeline.models import ModelFiles, verified_folder

N_TEXTS = {"minilm": 128, "mpnet": 32}
MAX_TOKENS = {"minilm": 256, "mpnet": 384}
BATCHES = (512, 2048, 8192)  # padded tokens; memory and loading are told of the first, the default
WAYS: tuple[dict[str, Any], ...] = tuple(
    {**way, "batch_tokens": tokens}
    for way in ({}, {"precision": "bf16"}, {"backend": "openvino"}, {"backend": "openvino", "precision": "bf16"})
    for tokens in BATCHES
)


@dataclass(frozen=True)
class Measured:
    """One way to embed: seconds until the model can be used, seconds for all texts, memory beside libraries."""

    load_s: float
    embed_s: float
    peak_mb: float


def rows(name: str = "minilm") -> list[list[str]]:
    """Embed the same made-up abstracts in every way; ``name`` is that of a model in conf/embedder."""
    model, n = registered_models()[name], N_TEXTS[name]
    verified_folder(model)
    plain = _best(measure_plain, model, n)
    what, lines = f"{n} abstracts embedded by {name}", []
    for way in WAYS:
        ours = _best(measure, model, n, way)
        label = ", ".join(f"{key}={value}" for key, value in way.items())
        lines += [row(f"{what}, {label}, s ({n / ours.embed_s:.1f} texts/s)", "encode", plain.embed_s, ours.embed_s)]
        if way["batch_tokens"] == BATCHES[0]:
            lines += [row(f"{what}, {label}: peak memory, MB", "encode", plain.peak_mb, ours.peak_mb)]
            lines += [row(f"{name}, {label}: load, s", "SentenceTransformer", plain.load_s, ours.load_s)]
    return [*lines, _stored_row(model, n)]


def _best(measured: Callable[..., Measured], *arguments: object) -> Measured:
    return min((in_own_process(measured, *arguments) for _ in range(2)), key=lambda one: one.embed_s)


def measure_plain(model: ModelFiles, n: int) -> Measured:
    """Embed as sentence-transformers does by itself, texts cut at the same length."""
    from sentence_transformers import SentenceTransformer

    texts, load_s, embed_s = abstracts(n), 0.0, 0.0

    def work() -> None:
        nonlocal load_s, embed_s
        started = time.perf_counter()
        loaded = SentenceTransformer(str(model.location), device="cpu", local_files_only=True)
        loaded.max_seq_length = MAX_TOKENS[model.name]
        load_s = time.perf_counter() - started
        embed_s = timed(lambda: loaded.encode(texts))

    return Measured(peak_mb=peak_mb(work), load_s=load_s, embed_s=embed_s)


def measure(model: ModelFiles, n: int, way: dict[str, Any]) -> Measured:
    """Embed as an arm does, into a store of its own."""
    import sentence_transformers  # noqa: F401 (its import is not what is measured)

    texts, load_s, embed_s = abstracts(n), 0.0, 0.0

    def load(*arguments: Any) -> Network:
        nonlocal load_s
        started = time.perf_counter()
        network = embedding._load(*arguments)
        load_s = time.perf_counter() - started
        return network

    def work() -> None:
        nonlocal embed_s
        with tempfile.TemporaryDirectory() as folder:
            encoder = Encoder(model=model, store=Path(folder) / "v.sqlite", max_tokens=MAX_TOKENS[model.name], **way)
            embed_s = timed(lambda: encode(texts, encoder, load, "embedding")) - load_s

    return Measured(peak_mb=peak_mb(work), load_s=load_s, embed_s=embed_s)


def _stored_row(model: ModelFiles, n: int) -> list[str]:
    texts = abstracts(n)
    with tempfile.TemporaryDirectory() as folder:
        encoder = Encoder(model=model, store=Path(folder) / "v.sqlite", max_tokens=MAX_TOKENS[model.name])
        first, again = (timed(lambda: embedding.embed(texts, encoder)) for _ in range(2))
    return row(f"{n} abstracts embedded by {model.name}, out of the store, s", "the first time", first, again)
