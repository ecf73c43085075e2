"""Records of several sources become one paper each, whatever their order."""

from __future__ import annotations

import datetime
import random
from dataclasses import fields, replace
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pipeline.identifiers import normalize_doi
from pipeline.merging.merge import Merge, merge_papers
from pipeline.papers import Paper, Query
from pipeline.sources import SearchedSource
from source_helpers import source

TITLE = "Soil erosion in alpine valleys after heavy rain"
OTHER_TITLE = "Quantum dots in thin films of copper"
ARXIV = "10.48550/arxiv.2101.00001"
LINK = Merge(versions="link")
DAY = datetime.date(2026, 9, 1)
RECORDED = {
    "crossref": [
        "work_xgen_2025.json",
        "work_posted_content.json",
        "work_no_abstract_no_author.json",
        "work_addr_2015.json",
    ],
    "openalex": ["work_xgen_2025.json", "work_no_author.json", "work_addr_2015.json"],
    "unpaywall": ["doi_xgen_2025.json", "doi_closed_no_authors.json", "doi_addr_2015.json"],
    "semantic_scholar": ["paper_xgen_2025.json", "paper_no_authors.json", "paper_addr_2015.json"],
}

PREPRINT = Paper(
    "arxiv:2101.00001", title=TITLE, abstract="It rains.", year=2021, authors=("Kevin W. Walker", "Jane Doe"),
    citation_count=9, document_type="preprint", venue="arXiv", is_open_access=True,
    pdf_url="http://arxiv.org/pdf/2101.00001", pdf_available=True, doi=ARXIV, source="arxiv",
)  # fmt: skip
ARTICLE = Paper(
    "scopus:85", title=TITLE, year=2022, authors=("Walker K.W.",), citation_count=4, document_type="article",
    journal_name="Rain", venue="Rain", is_open_access=False, doi="10.1000/rain.7", source="scopus",
)  # fmt: skip


def merged(*papers: Paper, settings: Merge = Merge()) -> tuple[Paper, ...]:  # noqa: B008
    """Merge in twenty orders, which must come to the same."""
    found = merge_papers(papers, settings)
    for seed in range(20):
        shuffled = random.Random(seed).sample(papers, len(papers))
        assert merge_papers(shuffled, settings) == found
    return found


def records(*papers: Paper, settings: Merge = Merge()) -> list[set[str]]:  # noqa: B008
    return sorted(({*paper.records} for paper in merged(*papers, settings=settings)), key=sorted)


def made(number: int, **values: Any) -> Paper:
    return Paper(f"made:{number}", **{"title": TITLE, **values})


def test_seven_spellings_of_a_doi_are_one_paper() -> None:
    spellings = (
        "10.1000/Rain.7", "https://doi.org/10.1000/rain.7", "http://dx.doi.org/10.1000/RAIN.7", "doi:10.1000/rain.7",
        "10.1000/rain.7.", "10.1000%2Frain.7", " 10.1000/rain.7 ",
    )  # fmt: skip
    (paper,) = merged(*(made(i, title=f"Title {i}", doi=doi) for i, doi in enumerate(spellings)))
    assert paper.paper_id == "doi:10.1000/rain.7"
    assert paper.doi == "10.1000/rain.7"
    assert paper.records == tuple(f"made:{i}" for i in range(7))


def test_a_single_record_gets_its_name_and_its_origins_only() -> None:
    (paper,) = merge_papers([ARTICLE])
    unchanged = replace(paper, paper_id=ARTICLE.paper_id, records=(), provenance={})
    assert unchanged == ARTICLE
    assert (paper.paper_id, paper.records) == ("doi:10.1000/rain.7", ("scopus:85",))
    assert set(paper.provenance.values()) == {"scopus:85"}
    assert "abstract" not in paper.provenance
    assert paper.provenance["is_open_access"] == "scopus:85"  # False is known


def test_a_paper_without_doi_is_called_by_its_smallest_record() -> None:
    (paper,) = merged(made(7), made(3), made(5))
    assert paper.paper_id == "made:3"


def test_the_fullest_record_is_the_base_and_others_fill_its_gaps() -> None:
    bare = made(1, abstract="It rains.", doi="10.1000/a", keywords=("rain",))
    full = made(2, doi="10.1000/a", year=2020, authors=("Jane Doe", "Wei Wang"), citation_count=4, keywords=("soil",))
    (paper,) = merged(bare, full)
    assert (paper.abstract, paper.authors, paper.keywords) == ("It rains.", ("Jane Doe", "Wei Wang"), ("soil",))
    assert paper.provenance["keywords"] == "made:2"
    assert paper.provenance["abstract"] == "made:1"


def test_the_larger_citation_count_wins_and_unknown_is_not_zero() -> None:
    (paper,) = merged(made(1, citation_count=0), made(2, citation_count=12), made(3))
    assert (paper.citation_count, paper.provenance["citation_count"]) == (12, "made:2")
    (unknown,) = merged(made(1), made(2))
    assert unknown.citation_count is None
    (zero,) = merged(made(1), made(2, citation_count=0))
    assert zero.citation_count == 0


def test_one_source_that_knows_it_is_open_is_enough() -> None:
    values = {"is_open_access": False, "pdf_available": False, "year": 2020, "abstract": "It rains."}
    closed = made(1, pdf_url="https://publisher.example/a.pdf", **values)
    (paper,) = merged(closed, made(2, is_open_access=True, pdf_available=True, pdf_url="https://open.example/a.pdf"))
    assert (paper.is_open_access, paper.pdf_available) == (True, True)
    assert paper.pdf_url == "https://open.example/a.pdf"
    assert paper.provenance["is_open_access"] == "made:2"
    (still_closed,) = merged(closed, made(2))
    assert still_closed.is_open_access is False


def test_a_list_cut_after_the_first_author_gives_way_to_a_longer_one() -> None:
    scopus = replace(ARTICLE, abstract="It rains.")
    (paper,) = merged(scopus, made(1, doi=ARTICLE.doi, authors=("Kevin W. Walker", "Jane Doe")))
    assert paper.authors == ("Kevin W. Walker", "Jane Doe")
    (others,) = merged(scopus, made(1, doi=ARTICLE.doi, authors=("Jane Doe", "Wei Wang")))
    assert others.authors == ("Walker K.W.",)


def test_a_preprint_and_its_article_are_one_paper_with_published_metadata_first() -> None:
    (paper,) = merged(PREPRINT, ARTICLE)
    assert (paper.paper_id, paper.doi, paper.preprints) == ("doi:10.1000/rain.7", "10.1000/rain.7", (ARXIV,))
    assert (paper.year, paper.venue, paper.document_type) == (2022, "Rain", "article")
    assert (paper.abstract, paper.pdf_url) == ("It rains.", "http://arxiv.org/pdf/2101.00001")
    assert (paper.citation_count, paper.is_open_access, paper.published_as) == (9, True, None)
    assert paper.records == ("arxiv:2101.00001", "scopus:85")
    assert paper.provenance["preprints"] == "arxiv:2101.00001"
    assert paper.provenance["year"] == "scopus:85"


def test_versions_can_stay_two_papers_that_name_each_other() -> None:
    article, preprint = merged(PREPRINT, ARTICLE, settings=LINK)
    assert (article.doi, article.preprints, article.year) == ("10.1000/rain.7", (ARXIV,), 2022)
    assert (preprint.doi, preprint.published_as, preprint.year) == (ARXIV, "10.1000/rain.7", 2021)
    assert article.provenance["preprints"] == "arxiv:2101.00001"
    assert preprint.provenance["published_as"] == "scopus:85"


def test_versions_without_a_doi_name_each_other_by_paper_id() -> None:
    preprint, article = merged(replace(PREPRINT, doi=None), replace(ARTICLE, doi=None), settings=LINK)
    assert (preprint.published_as, article.preprints) == ("scopus:85", ("arxiv:2101.00001",))
    assert merge_papers([preprint, article], LINK) == (preprint, article)
    (joined,) = merged(preprint, article)
    assert (joined.paper_id, joined.preprints, joined.published_as) == ("arxiv:2101.00001", (), None)


@pytest.mark.parametrize("side", ["preprint", "article"])
def test_a_link_of_either_side_joins_versions_of_changed_titles(side: str) -> None:
    preprint = replace(PREPRINT, title="Erosion of soil by rain in alpine valleys", year=2015)
    article = replace(ARTICLE, title="Soil erosion by rain: alpine valleys")
    assert records(preprint, article) == [{"arxiv:2101.00001"}, {"scopus:85"}]
    if side == "preprint":
        preprint = replace(preprint, published_as="https://doi.org/10.1000/RAIN.7")
    else:
        article = replace(article, preprints=(ARXIV,))
    assert records(preprint, article) == [{"arxiv:2101.00001", "scopus:85"}]
    of_article, of_preprint = merged(preprint, article, settings=LINK)
    assert (of_article.preprints, of_preprint.published_as) == ((ARXIV,), "10.1000/rain.7")


def test_a_wrong_link_joins_nothing_and_is_not_lost() -> None:
    wrong = replace(PREPRINT, published_as="10.1000/dots")
    unrelated = made(1, title=OTHER_TITLE, authors=("Wei Wang",), doi="10.1000/dots")
    of_dots, of_preprint = merged(wrong, unrelated)
    assert (of_dots.doi, of_preprint.doi, of_preprint.published_as) == ("10.1000/dots", ARXIV, "10.1000/dots")


def test_two_articles_with_a_doi_each_stay_two_papers_whatever_they_share() -> None:
    other = made(1, authors=("Kevin Walker",), doi="10.1000/other", year=2022, document_type="article")
    assert records(ARTICLE, other) == [{"made:1"}, {"scopus:85"}]


def test_all_preprints_of_an_article_join_it() -> None:
    osf = replace(PREPRINT, paper_id="socarxiv:abcde", doi="10.31235/osf.io/abcde", source="socarxiv")
    (paper,) = merged(PREPRINT, osf, ARTICLE)
    assert paper.doi == "10.1000/rain.7"
    assert set(paper.preprints) == {ARXIV, "10.31235/osf.io/abcde"}
    article, *preprints = merged(PREPRINT, osf, ARTICLE, settings=LINK)
    assert len(article.preprints) == 2
    assert [preprint.published_as for preprint in preprints] == ["10.1000/rain.7"] * 2


def test_a_preprint_that_fits_two_articles_joins_neither() -> None:
    again = replace(ARTICLE, paper_id="scopus:86", doi="10.1000/talk", document_type="conference paper")
    assert len(merged(PREPRINT, ARTICLE, again)) == 3
    linked = replace(PREPRINT, published_as="10.1000/talk")  # a link tells which
    assert records(linked, ARTICLE, again) == [{"arxiv:2101.00001", "scopus:86"}, {"scopus:85"}]


def test_the_latest_version_of_a_preprint_wins() -> None:
    first = replace(PREPRINT, abstract="It will rain.", doi=f"{ARXIV}v1", publication_date="2021-01-01", url="u")
    second = replace(PREPRINT, paper_id="arxiv:2101.00001v2", doi=f"{ARXIV}v2", publication_date="2021-03-05")
    (paper,) = merged(first, second)
    assert (paper.doi, paper.abstract, paper.publication_date) == (ARXIV, "It rains.", "2021-03-05")
    assert paper.url == "u"


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("10.21203/rs.3.rs-1234/v1", "10.21203/rs.3.rs-1234/v2"),
        ("10.20944/preprints202001.0001.v1", "10.20944/preprints202001.0001.v2"),
        ("10.26434/chemrxiv-2021-abcd", "10.26434/chemrxiv-2021-abcd-v2"),
    ],
)
@pytest.mark.parametrize("settings", [Merge(), LINK], ids=["join", "link"])
def test_versions_with_dois_of_their_own_are_one_paper_with_that_of_the_later(
    earlier: str, later: str, settings: Merge
) -> None:
    first = made(1, doi=earlier, document_type="preprint", publication_date="2021-01-05", abstract="It rains.")
    second = made(2, doi=later, document_type="preprint", publication_date="2021-03-01", title=OTHER_TITLE)
    (paper,) = merged(first, second, settings=settings)
    assert (paper.doi, paper.preprints, paper.title) == (later, (earlier,), OTHER_TITLE)
    assert paper.records == ("made:1", "made:2")


def test_an_article_of_which_only_the_preprints_doi_is_known_finds_its_own_later() -> None:
    (joined,) = merged(PREPRINT, replace(ARTICLE, doi=None))
    assert (joined.doi, joined.preprints, joined.document_type) == (ARXIV, (ARXIV,), "article")
    (paper,) = merged(joined, replace(ARTICLE, paper_id="crossref:1"))
    assert (paper.doi, paper.preprints) == ("10.1000/rain.7", (ARXIV,))


def test_a_preprint_stays_one_where_a_source_calls_it_an_article() -> None:
    full = replace(PREPRINT, paper_id="semantic_scholar:1", document_type="article", url="u", issn="1234-5679")
    (paper,) = merged(PREPRINT, full)
    assert (paper.document_type, paper.url) == ("preprint", "u")


def test_a_record_that_fits_two_papers_stays_apart() -> None:
    early, late, unknown = made(1, year=2015), made(2, year=2020), made(3)
    assert records(early, late, unknown) == [{"made:1"}, {"made:2"}, {"made:3"}]
    assert records(early, replace(late, year=2016), unknown) == [{"made:1", "made:2", "made:3"}]


def test_records_that_fit_the_same_two_papers_are_twins() -> None:
    walker, doe = made(1, authors=("Kevin Walker",)), made(2, authors=("Jane Doe",))
    assert records(walker, doe, made(3), made(4, year=2020)) == [{"made:1"}, {"made:2"}, {"made:3", "made:4"}]


def test_a_slip_does_not_part_records_of_an_equal_title() -> None:
    known = {"authors": ("Kevin Walker",), "year": 2020}
    slip = made(3, title=TITLE.replace("alpine", "allpine"), **known)
    assert records(made(1, **known), made(2, year=2020), slip) == [{"made:1", "made:2", "made:3"}]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"title": "Editorial", "authors": ("Jane Doe",), "year": 2019}, {"title": "Editorial", "year": 2020}),
        ({"title": "Preface"}, {"title": "Preface"}),
        ({"title": "Soil erosion in alpine valleys I"}, {"title": "Soil erosion in alpine valleys II"}),
        ({"title": "GPT-3 as a grader of articles"}, {"title": "GPT-4 as a grader of articles"}),
        ({"title": "机器学习导论"}, {"title": "深度学习导论"}),
        ({"title": f"Correction to: {TITLE}"}, {}),
        ({"document_type": "erratum"}, {"document_type": "article"}),
        ({"doi": "10.1000/a"}, {"doi": "10.1000/b"}),
        ({"title": ""}, {"title": ""}),
    ],
)
@pytest.mark.parametrize("settings", [Merge(), LINK])
def test_different_works_stay_apart(a: dict[str, Any], b: dict[str, Any], settings: Merge) -> None:
    assert len(merged(made(1, **a), made(2, **b), settings=settings)) == 2


def test_a_record_found_twice_counts_once() -> None:
    (paper,) = merged(made(1, title="Rain", abstract="It rains."), made(1, title="Rain"))
    assert (paper.records, paper.abstract) == (("made:1",), "It rains.")


def test_merged_papers_keep_their_records_and_origins_in_another_merge() -> None:
    (once,) = merged(PREPRINT, ARTICLE)
    (twice,) = merged(once, made(1, doi="10.1000/rain.7", issn="1234-5679"))
    assert twice.records == ("arxiv:2101.00001", "made:1", "scopus:85")
    assert twice.provenance == {**once.provenance, "issn": "made:1"}


def test_nothing_comes_of_nothing() -> None:
    assert merge_papers([]) == ()


@pytest.mark.parametrize("settings", [{"versions": "both"}, {"version": "join"}])
def test_unknown_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Merge(**settings)


DOIS = (
    "10.1000/a",
    "https://doi.org/10.1000/A.",
    "10.1000/b",
    ARXIV,
    "10.1101/2020.01.01.000001",
    "10.31235/osf.io/ab",
)
TITLES = (TITLE, TITLE.replace("valleys", "valley"), f"Erratum: {TITLE}", OTHER_TITLE, "Editorial", "")
NAMES = ((), ("Walker K.W.",), ("Kevin W. Walker", "Jane Doe"), ("Wei Wang",), ("Wang Wei", "Jane Doe"), ("Jane Doe",))
TYPES = (None, "article", "preprint", "erratum", "dataset")

ids = st.integers(0, 9).map(lambda number: f"{'abc'[number % 3]}:{number}")
dois = st.sampled_from(DOIS)
any_paper = st.builds(
    Paper,
    paper_id=ids,
    title=st.sampled_from(TITLES),
    abstract=st.sampled_from(("", "It rains.", "It pours.")),
    year=st.none() | st.integers(2019, 2024),
    authors=st.sampled_from(NAMES),
    citation_count=st.none() | st.integers(0, 2),
    document_type=st.sampled_from(TYPES),
    journal_volume=st.sampled_from((None, "1", "2")),
    journal_pages=st.sampled_from((None, "1-2", "3")),
    venue=st.sampled_from((None, "Rain", "Snow")),
    publication_date=st.sampled_from((None, "2020", "2021-02")),
    is_open_access=st.none() | st.booleans(),
    doi=st.none() | dois,
    published_as=st.none() | dois | ids,
    preprints=st.lists(dois, max_size=2).map(tuple),
)
any_papers = st.lists(any_paper, max_size=9)
modes = st.sampled_from((Merge(), LINK))


@given(any_papers, modes)
def test_merging_again_changes_nothing(papers: list[Paper], settings: Merge) -> None:
    once = merge_papers(papers, settings)
    assert merge_papers(once, settings) == once


@given(any_papers, modes, st.randoms(use_true_random=False))
def test_the_order_of_records_does_not_matter(papers: list[Paper], settings: Merge, draw: random.Random) -> None:
    assert merge_papers(draw.sample(papers, len(papers)), settings) == merge_papers(papers, settings)


@given(any_papers, modes)
def test_no_doi_and_no_record_is_lost(papers: list[Paper], settings: Merge) -> None:
    found = merge_papers(papers, settings)
    known = {doi for paper in found for doi in (paper.doi, paper.published_as, *paper.preprints)}
    assert {normalize_doi(paper.doi) for paper in papers if paper.doi} <= known
    assert sorted(record for paper in found for record in paper.records) == sorted({p.paper_id for p in papers})


@given(any_papers, modes)
def test_every_filled_field_has_an_origin_that_has_it(papers: list[Paper], settings: Merge) -> None:
    known = {paper.paper_id for paper in papers}
    for paper in merge_papers(papers, settings):
        names = {f.name for f in fields(Paper)} - {"paper_id", "records", "provenance"}
        filled = {name for name in names if getattr(paper, name) not in (None, "", ())}
        assert set(paper.provenance) == filled
        assert set(paper.provenance.values()) <= known


@given(st.data(), st.sampled_from(("article", "preprint", "conference paper", "dataset")), modes)
def test_copies_with_missing_fields_become_one(data: st.DataObject, kind: str, settings: Merge) -> None:
    doi = ARXIV if kind == "preprint" else "10.1000/a"  # without its type, one of no known server counts as published
    values = {
        "abstract": "It rains.", "year": 2020, "authors": ("Kevin W. Walker", "Jane Doe"), "citation_count": 3,
        "document_type": kind, "journal_volume": "3", "journal_pages": "7-9", "venue": "Rain", "doi": doi,
    }  # fmt: skip
    kept = data.draw(st.lists(st.sets(st.sampled_from(sorted(values))), min_size=2, max_size=8))
    copies = [made(i, **{name: values[name] for name in names}) for i, names in enumerate(kept)]
    (paper,) = merge_papers(copies, settings)
    for name in set().union(*kept):
        assert getattr(paper, name) == values[name]


def test_a_title_of_a_whole_book_takes_no_time() -> None:
    title = " ".join("".join(chr(ord("a") + int(digit)) for digit in str(n)) for n in range(100_000))
    of_one = {"title": title, "authors": ("Jane Doe",), "year": 2020}
    assert len(merge_papers([made(1, **of_one), made(2, **of_one, doi="10.1000/a"), made(3)])) == 2


@pytest.mark.parametrize("versions", ["join", "link"])
def test_inputs_are_not_changed(versions: Literal["join", "link"]) -> None:
    papers = [replace(PREPRINT), replace(ARTICLE)]
    merge_papers(papers, Merge(versions))
    assert papers == [PREPRINT, ARTICLE]


def test_a_joined_paper_has_no_date_of_another_year():
    preprint = Paper("arxiv:1", TITLE, doi="10.48550/arxiv.2101.00001", year=2021, publication_date="2021-01-05")
    article = Paper("scopus:2", TITLE, doi="10.1234/x", year=2022, document_type="article", preprints=(preprint.doi,))
    (joined,) = merge_papers([preprint, article])
    assert (joined.year, joined.publication_date) == (2022, None)
    (joined,) = merge_papers([preprint, article, Paper("wos:3", doi="10.1234/x", publication_date="2022-03")])
    assert (joined.publication_date, joined.provenance["publication_date"]) == ("2022-03", "wos:3")
    (alone,) = merge_papers([Paper("s2:4", TITLE, year=2022, publication_date="2021-12-30")])
    assert alone.publication_date == "2021-12-30"


@pytest.mark.parametrize(
    "doi", ["10.1016/j.xgen.2025.100814", "10.1007/s40278-023-41815-2", "10.1016/j.addr.2015.01.008"]
)
def test_real_records_of_four_sources_are_one_paper(shared_responses, doi):
    papers = []
    for name, files in RECORDED.items():
        for file in files:
            reader = source(name)
            request = (
                reader.search(Query("q", "x"), DAY, 10)
                if isinstance(reader, SearchedSource)
                else reader.lookup(["10.1/x"])
            )
            papers += reader.read((shared_responses / name / file).read_bytes(), request).papers
    (found,) = [paper for paper in merge_papers(papers) if paper.doi == doi]
    assert {record.partition(":")[0] for record in found.records} == set(RECORDED)
    if "xgen" in doi:
        assert found.preprints == ("10.1101/2024.04.01.587366",)
