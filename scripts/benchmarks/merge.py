"""Merging records against comparing every title with every other."""

from __future__ import annotations

import time

import numpy as np
from rapidfuzz import fuzz, process

from benchmarks.measuring import row, seconds
from pipeline.identifiers import normalize_doi
from pipeline.merging.merge import merge_papers
from pipeline.papers import Paper

N_MERGED = 10_000


def rows() -> list[list[str]]:
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
