"""What several tests need: the shared real data, tiny models made on the spot, and a way to run the command line."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from endpoint import Reply, Server

pytest_plugins = ["collect_runs"]  # its fixtures

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"

# An example may take its time on a busy machine. What .ci/run decides must be the same the next time; any other run
# looks for new examples.
settings.register_profile("litgrade", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("litgrade")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The real collections; a user's clone has none."""
    if not (SHARED / "data").is_dir():
        pytest.skip("the shared collections (../shared/data) are not here")
    return SHARED / "data"


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A sentence embedder and a cross-encoder with random weights: fast, and meaningless."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertForSequenceClassification, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("models")
    letters = "abcdefghijklmnopqrstuvwxyz0123456789.,-"
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    tokenizer = BertTokenizerFast(vocab=str(folder / "vocab.txt"), model_max_length=64)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        num_labels=1,
    )
    for name, model in (("bert", BertModel(config)), ("cross_encoder", BertForSequenceClassification(config))):
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    transformer = Transformer(str(folder / "bert"), max_seq_length=64)
    pooling = Pooling(32)
    SentenceTransformer(modules=[transformer, pooling], device="cpu").save(str(folder / "embedder"))
    return {"embedder": folder / "embedder", "cross_encoder": folder / "cross_encoder"}


def litgrade(*arguments: str, cwd: Path, check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``litgrade`` as a user would, in this folder."""
    verb, *rest = arguments
    done = subprocess.run(
        [sys.executable, "-m", f"experiments.{verb}", *rest],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if check and done.returncode:
        raise AssertionError(f"exit {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


@pytest.fixture(scope="session")
def small_collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six queries in two areas over forty papers, with words drawn at random: for running things, not for figures."""
    folder = tmp_path_factory.mktemp("collections") / "small"
    (folder / "qrels").mkdir(parents=True)
    draw, words = random.Random(1), "gene cell wing flow heat bond law tax rain soil".split()
    papers = [
        {
            "_id": f"p{i}",
            "title": " ".join(draw.choices(words, k=3)),
            "text": " ".join(draw.choices(words, k=12)) if i % 7 else "",
            "metadata": {"citation_count": draw.randrange(50) if i % 5 else None, "keywords": draw.sample(words, 2)},
        }
        for i in range(40)
    ]
    queries = [
        {"_id": f"q{i}", "text": " ".join(draw.sample(words, 2)), "metadata": {"area": "AB"[i % 2]}} for i in range(6)
    ]
    for name, rows in (("corpus", papers), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pairs = [(query, paper) for query in queries for paper in draw.sample(papers, 20)]
    lines = ["query-id\tcorpus-id\tscore", *(f"{q['_id']}\t{p['_id']}\t{draw.randrange(4)}" for q, p in pairs)]
    (folder / "qrels" / "test.tsv").write_text("\n".join(lines))
    return folder


@pytest.fixture
def small(small_collection: Path, tiny_models: dict[str, Path]) -> list[str]:
    """Overrides for a run of seconds: the small collection, the tiny models, no tracking."""
    return [
        "collection=beir",
        f"collection.path={small_collection}",
        "embedder=folder",
        f"embedder.model.path={tiny_models['embedder']}",
        "embedder.max_tokens=64",
        "cross_encoder=folder",
        f"cross_encoder.model.path={tiny_models['cross_encoder']}",
        "cross_encoder.max_tokens=64",
        "cutoffs.bm25=30",
        "cutoffs.semantic=20",
        "tracking=none",
    ]


@pytest.fixture
def endpoint() -> Iterator[Callable[[Callable[[int, dict[str, Any]], Reply] | Reply], Server]]:
    """Start a server that answers as told: by a function of the request's number and body, or always alike."""
    servers: list[Server] = []

    def start(respond: Callable[[int, dict[str, Any]], Reply] | Reply) -> Server:
        servers.append(Server((lambda n, body: respond) if isinstance(respond, Reply) else respond))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()
        assert server.errors == []


@pytest.fixture(scope="session")
def shared_answers() -> Path:
    """Real answers of real endpoints; a user's clone has none."""
    if not (SHARED / "fixtures" / "llm").is_dir():
        pytest.skip("the shared answers (../shared/fixtures/llm) are not here")
    return SHARED / "fixtures" / "llm"


@pytest.fixture(scope="session")
def shared_responses() -> Path:
    """Real response bodies of the sources; a user's clone has none."""
    if not (SHARED / "fixtures").is_dir():
        pytest.skip("the shared responses (../shared/fixtures) are not here")
    return SHARED / "fixtures"


@pytest.fixture
def responses(tmp_path: Path) -> Iterator[Any]:
    """A store of answers with nothing in it."""
    from pipeline.collecting.responses import Responses

    store = Responses(tmp_path / "kept" / "responses.sqlite")
    yield store
    store.close()
