"""From the records of several sources to one paper each, whatever the order of the records.

Records are joined in steps, from the surest evidence to the weakest, and every step looks at what the steps before it
have made: an equal DOI or record, an equal title, a title that differs by a slip, two versions of a work. As soon as a
step joins anything all begins anew, so nothing is left to join in what comes out.

That two titles fit does not carry over to a third, and a record that fits two different papers belongs to neither.
Hence titles join only true twins: records that fit each other and exactly the same others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass as plain_dataclass
from typing import Literal

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from pipeline.identifiers import work_doi
from pipeline.merging.combining import combine_records, record_ids
from pipeline.merging.same_paper import Traits, read_traits, same_record
from pipeline.merging.title_blocks import Pair, slip_pairs, title_pairs
from pipeline.merging.versions import link_versions, version_pairs
from pipeline.papers import Paper


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Merge:
    """What becomes of a preprint and its published article: one paper, or two that name each other."""

    versions: Literal["join", "link"] = "join"


_JOIN = Merge()


@plain_dataclass(frozen=True, slots=True)
class _Group:
    records: tuple[Paper, ...]
    paper: Paper  #: of all these records
    traits: Traits


Parts = list[list[int]]  # numbers of groups that are one paper; two or more in each part


def merge_papers(papers: Iterable[Paper], settings: Merge = _JOIN) -> tuple[Paper, ...]:
    """Return one paper for all records of it, by paper id; what is merged already may be among them.

    Merging what came out changes nothing.
    """
    groups = [_group((paper,)) for paper in papers]
    steps = [_of_one_identifier, _of_equal_traits, _twins_by_title, _twins_but_for_slips]
    if settings.versions == "join":
        steps.append(_versions)
    while parts := _first_found(steps, groups):
        groups = _joined(groups, parts)
    merged = [group.paper for group in groups]
    if settings.versions == "link":
        merged = link_versions(merged, [group.traits for group in groups])
    return tuple(sorted(merged, key=lambda paper: paper.paper_id))


def _group(records: tuple[Paper, ...]) -> _Group:
    paper = combine_records(records)
    return _Group(records, paper, read_traits(paper))


def _first_found(steps: Iterable[Callable[[Sequence[_Group]], Parts]], groups: Sequence[_Group]) -> Parts:
    return next((parts for step in steps if (parts := step(groups))), [])


def _joined(groups: Sequence[_Group], parts: Parts) -> list[_Group]:
    used = {i for part in parts for i in part}
    made = [_group(tuple(record for i in part for record in groups[i].records)) for part in parts]
    return [group for i, group in enumerate(groups) if i not in used] + made


def _of_one_identifier(groups: Sequence[_Group]) -> Parts:
    first: dict[str, int] = {}
    pairs = []
    for i, group in enumerate(groups):
        doi = [f"doi:{work_doi(group.paper.doi)}"] if group.paper.doi else []
        pairs += [(first.setdefault(name, i), i) for name in [*doi, *record_ids(group.paper)]]
    return _components(pairs)


def _of_equal_traits(groups: Sequence[_Group]) -> Parts:
    """Twins that need no search for others: there can be thousands."""
    alike: dict[Traits, list[int]] = defaultdict(list)
    for i, group in enumerate(groups):
        alike[group.traits].append(i)
    return [part for traits, part in alike.items() if len(part) > 1 and same_record(traits, traits)]


def _twins_by_title(groups: Sequence[_Group]) -> Parts:
    traits = [group.traits for group in groups]
    return _twins(traits, title_pairs(traits))


def _twins_but_for_slips(groups: Sequence[_Group]) -> Parts:
    traits = [group.traits for group in groups]
    return _twins(traits, [*title_pairs(traits), *slip_pairs(traits)])


def _versions(groups: Sequence[_Group]) -> Parts:
    return _components(version_pairs([group.paper for group in groups], [group.traits for group in groups]))


def _twins(traits: Sequence[Traits], candidates: Iterable[Pair]) -> Parts:
    """Return those that fit each other and exactly the same others."""
    neighbours: dict[int, set[int]] = defaultdict(set)
    for i, j in candidates:
        if same_record(traits[i], traits[j]):
            neighbours[i] |= {i, j}
            neighbours[j] |= {i, j}
    twins: dict[frozenset[int], list[int]] = defaultdict(list)
    for i, around in neighbours.items():
        twins[frozenset(around)].append(i)
    return [part for part in twins.values() if len(part) > 1]


def _components(pairs: Iterable[Pair]) -> Parts:
    """Return what hangs together."""
    part_of: dict[int, list[int]] = {}
    for i, j in pairs:
        one, other = (part_of.setdefault(k, [k]) for k in (i, j))
        if one is not other:
            smaller, larger = sorted((one, other), key=len)
            larger += smaller
            part_of.update(dict.fromkeys(smaller, larger))
    return [part for first, part in part_of.items() if len(part) > 1 and first == part[0]]
