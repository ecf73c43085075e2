"""Show speed and memory in ratios, on made-up texts.

Run it with ``.venv/bin/python scripts/benchmark.py``, or with the names of some parts: bm25, agreement, store, answers,
collect, merge. Seconds differ between machines; how many times faster one way is than another says more.
"""

from __future__ import annotations

import asyncio
import datetime
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
from rank_bm25 import BM25Okapi
from rapidfuzz import fuzz, process

from experiments.metrics.agreement import gwet_ac2, gwet_ac2_batch
from experiments.models import registered_models
from experiments.sources import configured_sources
from experiments.tables import markdown
from pipeline.embedding import embed
from pipeline.encoding import Encoder
from pipeline.identifiers import normalize_doi
from pipeline.llm.chat import open_chat
from pipeline.llm.requests import make_request
from pipeline.llm.settings import Llm
from pipeline.merging.merge import merge_papers
from pipeline.okapi import Okapi
from pipeline.papers import Paper

N_DOCUMENTS, N_QUERIES, N_TABLES, N_TEXTS, N_ANSWERS, N_RECORDS, N_MERGED = 20_000, 20, 500, 300, 200, 250, 10_000
ANSWER_S, PAGE_S = 0.02, 0.2


def seconds(work: Callable[[], object]) -> float:
    """Return the shortest wall time of three."""
    times = []
    for _ in range(3):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def megabytes(work: Callable[[], object]) -> float:
    """Return the peak of memory that Python and numpy allocate."""
    tracemalloc.start()
    kept = work()
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    del kept
    return peak


def bm25_rows() -> list[list[str]]:
    """Compare index and query times, and memory, of rank_bm25 with the sparse index."""
    draw = random.Random(0)  # noqa: S311 (texts, not secrets)
    vocabulary = [f"w{int(draw.paretovariate(0.6))}" for _ in range(30_000)]
    documents = [draw.choices(vocabulary, k=150) for _ in range(N_DOCUMENTS)]
    queries = [draw.choices(vocabulary, k=12) for _ in range(N_QUERIES)]
    dense, ours = BM25Okapi(documents), Okapi(documents, 1.5, 0.75, 0.25)
    pairs = {
        "BM25 index, s": (seconds(lambda: BM25Okapi(documents)), seconds(lambda: Okapi(documents, 1.5, 0.75, 0.25))),
        f"BM25 {N_QUERIES} queries, s": (
            seconds(lambda: [dense.get_scores(query) for query in queries]),
            seconds(lambda: [ours.scores(query) for query in queries]),
        ),
        "BM25 peak memory of indexing, MB": (
            megabytes(lambda: BM25Okapi(documents)),
            megabytes(lambda: Okapi(documents, 1.5, 0.75, 0.25)),
        ),
    }
    return [row(name, "rank_bm25", *pair) for name, pair in pairs.items()]


def agreement_row() -> list[str]:
    """Compare irrCAC, table by table, with the vectorized form."""
    ratings = np.random.default_rng(0).integers(0, 4, size=(N_TABLES, 10, 2)).astype(float)
    one_by_one = seconds(lambda: [gwet_ac2(table) for table in ratings])
    return row(f"AC2 of {N_TABLES} tables, s", "irrCAC", one_by_one, seconds(lambda: gwet_ac2_batch(ratings)))


def store_rows() -> list[list[str]]:
    """Embed texts with MiniLM, then again out of the store; nothing where its weights were not fetched."""
    model = registered_models()["minilm"]
    if not model.location.exists():
        return []
    draw = random.Random(0)  # noqa: S311
    texts = [" ".join(draw.choices(["gene", "cell", "wing", "flow", "law"], k=100)) for _ in range(N_TEXTS)]
    with tempfile.TemporaryDirectory() as folder:
        encoder = Encoder(model=model, store=Path(folder) / "v.sqlite", max_tokens=256)
        started = time.perf_counter()
        embed(texts, encoder)
        first = time.perf_counter() - started
        again = seconds(lambda: embed(texts, encoder))
    return [row(f"{N_TEXTS} abstracts embedded by MiniLM, s", "the first time", first, again)]


class SlowModel(BaseHTTPRequestHandler):
    """Answers every chat completion after the same time."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Wait, then answer."""
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(ANSWER_S)
        answer = b'{"choices": [{"message": {"content": "{}"}}]}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


def answer_rows() -> list[list[str]]:
    """Ask a slow model one thing at a time and eight at a time, then again out of the recording."""
    import openai  # noqa: F401 (its import is not what is measured)

    server = ThreadingHTTPServer(("127.0.0.1", 0), SlowModel)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    async def ask(concurrency: int, file: Path) -> None:
        url = f"http://127.0.0.1:{server.server_port}/v1"
        llm = Llm(model="m", base_url=url, mode="record", recording=file, prices=(), concurrency=concurrency)
        requests = [make_request(llm, [{"role": "user", "content": str(i)}], str(i)) for i in range(N_ANSWERS)]
        async with open_chat(llm) as chat:
            await chat.answer_all(requests, "asking", check=bool)

    with tempfile.TemporaryDirectory() as folder:
        times = []
        for name, concurrency in (("one", 1), ("eight", 8), ("eight", 8)):
            started = time.perf_counter()
            asyncio.run(ask(concurrency, Path(folder) / name))
            times.append(time.perf_counter() - started)
    server.shutdown()
    what = f"{N_ANSWERS} answers of a model that takes {1000 * ANSWER_S:.0f} ms, s"
    return [row(f"{what}: eight at a time", "one at a time", *times[:2]), row(f"{what}: recorded", "asked", *times[1:])]


def collect_rows() -> list[list[str]]:
    """Let ``litgrade collect`` ask twelve fake sources, those of the tests: each alone, then all at once.

    Without the pauses between requests that real sources want; the seconds are those of asking, in ``reports.csv``.
    """
    from fake_sources import QUERY_TEXT, FakeSources, made_up_papers

    recent = datetime.datetime.now(datetime.UTC).date() - datetime.timedelta(days=9)  # bioRxiv is asked for a month
    names = [name for name, source in configured_sources().items() if hasattr(source, "search") and name != "wos"]
    papers = {name: made_up_papers(N_RECORDS, seed, newest=recent, days=20) for seed, name in enumerate(names)}
    with FakeSources(papers, latency_s=PAGE_S) as server, tempfile.TemporaryDirectory() as folder:

        def asking_s(asked: list[str]) -> float:
            snapshot = Path(folder) / "-".join(asked)
            chosen = [f"query.text={QUERY_TEXT}", f"sources.names=[{','.join(asked)}]", f"snapshot={snapshot}"]
            command = [sys.executable, "-m", "experiments.collect", *chosen, f"sources.limit={N_RECORDS}"]
            environment = {**os.environ, "SCOPUS_API_KEY": "made-up"}
            subprocess.run(
                [*command, "enrich=none", "tracking=none", *server.overrides],
                check=True,
                capture_output=True,
                env=environment,
            )
            reports = pd.read_csv(snapshot / "reports.csv")
            if (reports["records"] != N_RECORDS).any():
                raise ValueError(f"records are missing:\n{reports}")
            return float(reports["seconds"].max())

        alone = [asking_s([name]) for name in names]
        at_once = asking_s(names)
    what = f"collect {N_RECORDS * len(names):,} records of {len(names)} sources, {1000 * PAGE_S:.0f} ms a page, s"
    return [
        row(what, "one source after the other", sum(alone), at_once),
        row(what, "the slowest source alone", max(alone), at_once),
    ]


def merge_rows() -> list[list[str]]:
    """Merge records of which three of ten repeat a paper of another source, spelled otherwise; half have a DOI."""
    from fake_sources import made_up_papers

    made = made_up_papers(N_MERGED * 7 // 10)
    records = []
    for i in range(N_MERGED):
        is_again, paper = i >= len(made), made[i % len(made)]
        title = paper.title.upper() if is_again else paper.title
        authors = tuple(f"{family} {given[0]}." if is_again else f"{given} {family}" for given, family in paper.authors)
        doi = normalize_doi(paper.doi) if (i // 2) % 2 else None
        records.append(Paper(f"s{(i + is_again) % 5}:{i}", title, paper.abstract, 2020, authors, doi=doi))
    titles = [record.title for record in records]
    started = time.perf_counter()
    process.cdist(titles, titles, scorer=fuzz.ratio, score_cutoff=95, dtype=np.uint8, workers=1)
    all_pairs = time.perf_counter() - started
    ours = seconds(lambda: merge_papers(records))
    if len(merge_papers(records)) != len(made):
        raise ValueError("not as many papers as there are")
    return [row(f"merge {N_MERGED:,} records, s", "rapidfuzz on all pairs of titles", all_pairs, ours)]


def row(what: str, other: str, theirs: float, ours: float) -> list[str]:
    """Return one line of the table."""
    return [what, other, f"{theirs:.3g}", f"{ours:.3g}", f"{theirs / ours:.1f}"]


PARTS: dict[str, Callable[[], list[list[str]]]] = {
    "bm25": bm25_rows,
    "agreement": lambda: [agreement_row()],
    "store": store_rows,
    "answers": answer_rows,
    "collect": collect_rows,
    "merge": merge_rows,
}

if __name__ == "__main__":
    if unknown := [name for name in sys.argv[1:] if name not in PARTS]:
        sys.exit(f"unknown part {unknown[0]}: expected some of {', '.join(PARTS)}")
    sys.path.append(str(Path(__file__).parents[1] / "tests"))  # for the fake sources
    rows = [line for name in sys.argv[1:] or PARTS for line in PARTS[name]()]
    print(markdown(["work", "compared with", "theirs", "ours", "theirs / ours"], rows))  # noqa: T201
