"""Preprints and their published articles: versions of one work with a DOI each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from pipeline.merging.combining import record_ids
from pipeline.merging.same_paper import Traits, are_versions, may_be_linked
from pipeline.merging.title_blocks import Pair, slip_pairs, title_blocks
from pipeline.papers import Paper


def version_pairs(papers: Sequence[Paper], traits: Sequence[Traits]) -> list[Pair]:
    """Return each preprint with its article: the only one it is linked with, or else the only one that fits it.

    A preprint with several is left alone, because nothing tells which of them is meant.
    """
    linked, fitting = _links(papers, traits), _fitting(traits)
    found = {i: linked.get(i) or fitting.get(i, set()) for i in {*linked, *fitting}}
    return [(i, article) for i, articles in found.items() if len(articles) == 1 for article in articles]


def link_versions(papers: Sequence[Paper], traits: Sequence[Traits]) -> list[Paper]:
    """Return the papers, every preprint with the name of its article, and every article with those of its preprints."""
    linked = list(papers)
    pairs = version_pairs(papers, traits)
    for i, j in sorted(pairs, key=lambda pair: (papers[pair[0]].paper_id, papers[pair[1]].paper_id)):
        preprint, article = linked[i], linked[j]
        if preprint.published_as is None:
            sources = {"published_as": _source_of_name(article), **preprint.provenance}
            linked[i] = replace(preprint, published_as=article.doi or article.paper_id, provenance=sources)
        if (name := preprint.doi or preprint.paper_id) not in article.preprints:
            sources = {"preprints": _source_of_name(preprint), **article.provenance}
            linked[j] = replace(article, preprints=(*article.preprints, name), provenance=sources)
    return linked


def _links(papers: Sequence[Paper], traits: Sequence[Traits]) -> dict[int, set[int]]:
    """Return preprint -> articles, of the links that records hold and that can be believed."""
    named = {name: i for i, paper in enumerate(papers) for name in (paper.doi, paper.paper_id, *record_ids(paper))}
    links: dict[int, set[int]] = defaultdict(set)
    for i, paper in enumerate(papers):
        told = [(i, named.get(paper.published_as))] if paper.published_as else []
        for preprint, article in told + [(named.get(name), i) for name in paper.preprints]:
            if preprint is None or article is None or preprint == article:
                continue
            if may_be_linked(traits[preprint], traits[article]):
                links[preprint].add(article)
    return links


def _fitting(traits: Sequence[Traits]) -> dict[int, set[int]]:
    """Return preprint -> articles, of those that fit each other without a link."""
    fitting: dict[int, set[int]] = defaultdict(set)
    for preprint, article in _candidates(traits):
        if are_versions(traits[preprint], traits[article]):
            fitting[preprint].add(article)
    return fitting


def _candidates(traits: Sequence[Traits]) -> Iterator[Pair]:
    for block in title_blocks(traits):
        yield from product((i for i in block if traits[i].is_preprint), [i for i in block if traits[i].is_published])
    for i, j in slip_pairs(traits):
        yield from ((i, j), (j, i))


def _source_of_name(paper: Paper) -> str:
    return paper.provenance["doi"] if paper.doi else record_ids(paper)[0]
