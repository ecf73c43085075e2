"""Crossref: requests, walks, and what becomes of a record."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest

from pipeline.papers import Paper, Query
from pipeline.sources import MalformedError, Page, RefusedError, Request
from source_helpers import source

DAY = datetime.date(2026, 9, 1)
LOOKUP = Request("http://127.0.0.1/works", {"rows": "20"})


def body(*items: Any, **message: Any) -> bytes:
    return json.dumps({"status": "ok", "message": {"items": list(items), "total-results": 7, **message}}).encode()


def read(*items: Any) -> Page:
    page: Page = source("crossref").read(body(*items), LOOKUP)
    return page


def paper(**work: Any) -> Paper:
    (only,) = read({"DOI": "10.1000/a", "title": ["Bees"], **work}).papers
    return only


def test_a_search_asks_for_plain_words_and_keywords() -> None:
    request = source("crossref").search(Query("q", "The dance of honey-bees", ("waggle dance",)), DAY, limit=250)
    assert request.url == "https://api.crossref.org/works"
    assert request.params == {
        "query.bibliographic": "dance honey-bees waggle dance",
        "rows": "100",
        "offset": "0",
    }


def test_no_more_rows_are_asked_for_than_are_wanted() -> None:
    assert source("crossref").search(Query("q", "bees"), DAY, limit=8).params["rows"] == "8"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('bees AND "wasps": (ants) [NOT] & flies', "bees wasps ants flies"),
        ("Über Bienen", "über bienen"),
        ("深度学习", "深度学习"),
        ("to be or not to be", "to be or not to be"),
    ],
)
def test_no_sign_of_a_query_can_break_a_search(text: str, words: str) -> None:
    assert source("crossref").search(Query("q", text), DAY, limit=8).params["query.bibliographic"] == words


def test_many_dois_are_looked_up_at_once() -> None:
    request = source("crossref").lookup(["10.1000/a", "10.1000/(sici)b:2<3"])
    assert request.params == {"filter": "doi:10.1000/a,doi:10.1000/(sici)b:2<3", "rows": "2"}
    assert source("crossref").dois_a_request == 40


@pytest.mark.parametrize(("doi", "can"), [("10.1000/a,b", False), ("10.1000/(sici)b:2<3", True)])
def test_a_doi_with_a_comma_cannot_be_looked_up(doi: str, *, can: bool) -> None:
    assert source("crossref").can_look_up(doi) is can


def test_a_look_up_has_one_page() -> None:
    assert read({"DOI": "10.1000/a"}).following is None


def walk_step(n_items: int, *, rows: int = 2, limit: int = 10, total: int = 7) -> Page:
    crossref = source("crossref", page_size=rows)
    request = crossref.search(Query("q", "bees"), DAY, limit)
    items = [{"DOI": f"10.1000/{i}", "title": ["Bees"]} for i in range(n_items)]
    page: Page = crossref.read(body(*items, **{"total-results": total, "next-cursor": "always=="}), request)
    return page


@pytest.mark.parametrize("n_items", [1, 2])
def test_a_walk_goes_on_behind_what_came_with_the_same_rows(n_items: int) -> None:
    following = walk_step(n_items).following
    assert following is not None
    assert following.params == {"query.bibliographic": "bees", "rows": "2", "offset": str(n_items)}


@pytest.mark.parametrize(("n_items", "total"), [(0, 7), (2, 2), (1, 1)])
def test_an_empty_page_or_the_total_ends_a_walk_though_there_is_a_next_cursor(n_items: int, total: int) -> None:
    assert walk_step(n_items, total=total).following is None


def test_no_walk_asks_beyond_what_an_offset_can_reach() -> None:
    crossref = source("crossref", page_size=1000)
    request = crossref.search(Query("q", "bees"), DAY, 20_000)
    items = [{"DOI": f"10.1000/{i}"} for i in range(999)]
    starts = []
    while request is not None:
        starts.append((request.params["offset"], request.params["rows"]))
        request = crossref.read(
            body(*items[: int(request.params["rows"])], **{"total-results": 50_000}), request
        ).following
    assert starts[:2] == [("0", "1000"), ("999", "1000")]
    assert starts[-1] == ("9990", "10")


def test_records_that_are_no_papers_do_not_count_as_wanted_ones() -> None:
    crossref = source("crossref", page_size=2)
    request = crossref.search(Query("q", "bees"), DAY, limit=2)
    items = [{"DOI": "10.1000/a", "title": ["Bees"]}, {"DOI": "10.1000/b", "title": ["J"], "type": "journal"}]
    page = crossref.read(body(*items, **{"next-cursor": "next"}), request)
    assert (len(page.papers), page.received, page.declared) == (1, 2, 7)
    assert page.following is not None


@pytest.mark.parametrize(
    "sent",
    [b"", b"<html>504</html>", b'{"status":"ok","mess', b"[]", b'{"status":"ok","message":{}}', b'{"status":"ok"}'],
)
def test_a_body_that_is_no_answer_is_malformed(sent: bytes) -> None:
    with pytest.raises(MalformedError):
        source("crossref").read(sent, LOOKUP)


def test_a_failure_told_inside_an_answer_is_a_refusal() -> None:
    with pytest.raises(RefusedError, match="not-valid"):
        source("crossref").read(b'{"status":"failed","message":[{"type":"integer-not-valid"}]}', LOOKUP)


def test_a_single_work_is_read_like_a_list_of_one() -> None:
    page = source("crossref").read(b'{"status":"ok","message":{"DOI":"10.1000/A","title":["Bees"]}}', LOOKUP)
    assert [(paper.paper_id, paper.doi, paper.title) for paper in page.papers] == [
        ("crossref:10.1000/A", "10.1000/a", "Bees")
    ]


def test_every_field_of_an_article_finds_its_place() -> None:
    article = paper(
        **{
            "type": "journal-article",
            "title": ["Bees &amp; <i>Apis</i>\n  dance"],
            "abstract": "<jats:title>Abstract</jats:title><jats:p>They dance.</jats:p>",
            "author": [{"given": "Eva", "family": "Lind", "suffix": "Jr"}, {"name": "Bee Group"}, {"family": "Li"}],
            "issued": {"date-parts": [[2021, 3]]},
            "container-title": ["Journal of Bees"],
            "volume": "12",
            "page": "3-9",
            "ISSN": ["0028-0836", "1476-4687"],
            "is-referenced-by-count": 0,
            "subject": ["Insect Science"],
            "reference": [{"DOI": "10.1000/B"}, {"unstructured": "A book"}, {"DOI": "10.1000/b"}],
            "URL": "https://doi.org/10.1000/a",
            "resource": {"primary": {"URL": "https://bees.example/a"}},
            "link": [{"URL": "https://bees.example/a.pdf", "content-type": "application/pdf"}],
        }
    )
    assert article == Paper(
        paper_id="crossref:10.1000/a",
        title="Bees & Apis dance",
        abstract="They dance.",
        year=2021,
        authors=("Eva Lind Jr", "Bee Group", "Li"),
        citation_count=0,
        disciplines=("Insect Science",),
        document_type="article",
        journal_name="Journal of Bees",
        journal_volume="12",
        journal_pages="3-9",
        publication_type="journal-article",
        venue="Journal of Bees",
        publication_date="2021-03",
        pdf_url="https://bees.example/a.pdf",
        url="https://bees.example/a",
        doi="10.1000/a",
        source="crossref",
        issn="0028-0836, 1476-4687",
        references=("10.1000/b",),
    )


def test_what_is_not_told_stays_unknown() -> None:
    assert paper() == Paper("crossref:10.1000/a", title="Bees", doi="10.1000/a", source="crossref")


@pytest.mark.parametrize("kind", ["component", "journal", "journal-issue", "peer-review", "proceedings", "grant"])
def test_what_is_no_work_of_its_own_is_no_paper(kind: str) -> None:
    page = read({"DOI": "10.1000/a", "title": ["Bees"], "type": kind})
    assert (page.papers, page.received) == ((), 1)


def test_a_preprint_names_its_article_and_an_article_its_preprints() -> None:
    preprint = paper(
        **{
            "type": "posted-content",
            "subtype": "preprint",
            "container-title": [],
            "institution": [{"name": "bioRxiv"}],
            "group-title": "Ecology",
            "relation": {"is-preprint-of": [{"id": "10.1000/ARTICLE", "id-type": "doi"}]},
        }
    )
    assert (preprint.document_type, preprint.venue, preprint.published_as) == ("preprint", "bioRxiv", "10.1000/article")
    article = paper(relation={"has-preprint": [{"id": "https://doi.org/10.1101/1"}, {"id": "10.1000/a"}, {"id": None}]})
    assert article.preprints == ("10.1101/1",)


def test_of_the_versions_of_a_preprint_the_highest_is_kept() -> None:
    versions = [
        {"DOI": f"10.31234/osf.io/ab1cd_v{n}", "title": [f"Version {n}"], "type": "posted-content"} for n in (1, 10, 2)
    ]
    assert [paper.title for paper in read(*versions).papers] == ["Version 10"]


def test_proceedings_are_a_conference_and_no_journal() -> None:
    talk = paper(**{"type": "proceedings-article", "container-title": ["Proc. of Bees"]})
    assert (talk.document_type, talk.conference_name, talk.journal_name) == ("conference paper", "Proc. of Bees", None)


@pytest.mark.parametrize(
    ("kind", "subtype", "expected"),
    [("posted-content", "dissertation", "dissertation"), ("posted-content", None, "preprint"), ("x", None, "other")],
)
def test_types_are_put_in_our_words(kind: str, subtype: str | None, expected: str) -> None:
    work = paper(type=kind, subtype=subtype)
    assert (work.document_type, work.publication_type) == (expected, kind)


@pytest.mark.parametrize(
    ("update", "expected"),
    [("correction", "erratum"), ("erratum", "erratum"), ("retraction", "retraction"), ("new_version", "article")],
)
def test_a_notice_is_no_article(update: str, expected: str) -> None:
    notice = paper(**{"type": "journal-article", "update-to": [{"DOI": "10.1000/b", "type": update}]})
    assert notice.document_type == expected


def test_an_update_registered_at_the_work_itself_makes_no_notice_of_it() -> None:
    work = paper(**{"type": "journal-article", "update-to": [{"DOI": "10.1000/A", "type": "correction"}]})
    assert work.document_type == "article"


@pytest.mark.parametrize("title", ["Retracted: Bees", "RETRACTED ARTICLE: Bees", "Retraction Note: Bees"])
def test_a_retraction_in_the_title_counts(title: str) -> None:
    assert paper(type="journal-article", title=[title]).document_type == "retraction"


def test_a_retracted_article_is_told_by_its_updates_too() -> None:
    for fate, document_type in {
        "retraction": "retraction", "withdrawal": "retraction", "removal": "retraction",
        "partial_retraction": "article", "correction": "article",
    }.items():  # fmt: skip
        work = paper(**{"type": "journal-article", "updated-by": [{"DOI": "10.1000/b", "type": fate}]})
        assert work.document_type == document_type
    assert paper(type="journal-article", title=["Retraction of wings in bees"]).document_type == "article"


@pytest.mark.parametrize(
    ("dates", "date", "year"),
    [
        ({"issued": {"date-parts": [[2021]]}}, "2021", 2021),
        ({"issued": {"date-parts": [[None]]}, "approved": {"date-parts": [[2013, 5, 1]]}}, "2013-05-01", 2013),
        ({"issued": {"date-parts": [[None]]}, "created": {"date-parts": [[2018, 11, 29]]}}, None, None),
        ({"issued": {"date-parts": []}, "posted": {"date-parts": [[2024, 4, 1]]}}, "2024-04-01", 2024),
    ],
)
def test_a_date_is_as_precise_as_registered(dates: dict[str, Any], date: str | None, year: int | None) -> None:
    assert (paper(**dates).publication_date, paper(**dates).year) == (date, year)


@pytest.mark.parametrize(
    ("abstract", "expected"),
    [
        ("<jats:p>Abstract. Bees dance.</jats:p>", "Bees dance."),
        ("&lt;jats:title&gt;ABSTRACT&lt;/jats:title&gt;&lt;jats:p&gt;Bees dance.&lt;/jats:p&gt;", "Bees dance."),
        ("<jats:p>Abstract</jats:p>", ""),
        ("<jats:p />", ""),
        ("<jats:p>Abstract algebra of bees</jats:p>", "Abstract algebra of bees"),
        ("<jats:sec><jats:title>Aim</jats:title><jats:p>H<jats:sub>2</jats:sub>O</jats:p></jats:sec>", "Aim H2O"),
    ],
)
def test_an_abstract_is_plain_text_without_its_heading(abstract: str, expected: str) -> None:
    assert paper(abstract=abstract).abstract == expected


@pytest.mark.parametrize(
    ("licence", "expected"),
    [
        ({"URL": "http://creativecommons.org/licenses/by/4.0/", "content-version": "vor", "delay-in-days": 0}, True),
        ({"URL": "http://creativecommons.org/licenses/by/4.0/", "content-version": "am", "delay-in-days": 0}, None),
        ({"URL": "http://creativecommons.org/licenses/by/4.0/", "content-version": "vor", "delay-in-days": 365}, None),
        ({"URL": "https://bees.example/licence", "content-version": "vor", "delay-in-days": 0}, None),
    ],
)
def test_only_an_open_licence_tells_open_access(licence: dict[str, Any], expected: bool | None) -> None:
    assert paper(license=[licence]).is_open_access is expected


def test_a_pdf_for_similarity_checks_is_not_for_readers() -> None:
    link = {"URL": "https://a.example/x.pdf", "content-type": "application/pdf"}
    assert paper(link=[link | {"intended-application": "similarity-checking"}]).pdf_url is None


def test_a_work_without_a_title_stays_and_one_without_a_doi_goes() -> None:
    page = read({"DOI": "10.1000/a", "title": []}, {"title": ["Bees"]}, None, "junk")
    assert [(paper.doi, paper.title) for paper in page.papers] == [("10.1000/a", "")]
    assert page.received == 4


@pytest.mark.parametrize("junk", [None, 7, "x", [], {}, [[]], [None, 7], {"a": [1]}, True])
def test_a_field_of_another_kind_than_expected_never_loses_the_page(junk: object) -> None:
    keys = (
        "title abstract author issued container-title volume page ISSN issn-type is-referenced-by-count subject link "
        "reference URL resource license relation update-to updated-by type subtype institution group-title"
    ).split()
    works = [{"DOI": f"10.1000/{key}", "title": ["Bees"], key: junk} for key in keys]
    assert len(read(*works, {"DOI": 7}).papers) == len(keys)


# The recorded answers.


def recorded(shared_responses: Any, name: str) -> tuple[dict[str, Paper], Page]:
    page = source("crossref").read((shared_responses / "crossref" / name).read_bytes(), LOOKUP)
    return {paper.doi: paper for paper in page.papers}, page


def test_the_recorded_walk_ends_at_the_empty_page(shared_responses: Any) -> None:
    crossref = source("crossref", page_size=10)
    request, counts = crossref.search(Query("q", "ecology"), DAY, limit=100), []
    for name in ("works_cursor_page1.json", "works_cursor_page2.json", "works_cursor_end.json"):
        page = crossref.read((shared_responses / "crossref" / name).read_bytes(), request)
        counts.append((len(page.papers), page.received, page.declared))
        request = page.following
    assert counts == [(10, 10, 452242), (8, 10, 452242), (0, 0, 452242)]  # two journals among the works of page 2
    assert request is None


def test_the_recorded_second_page_is_asked_behind_the_first(shared_responses: Any) -> None:
    crossref = source("crossref", page_size=10)
    sent = (shared_responses / "crossref" / "works_cursor_page1.json").read_bytes()
    page = crossref.read(sent, crossref.search(Query("q", "ecology"), DAY, limit=100))
    assert page.following.params["offset"] == "10"
    assert page.papers[0].paper_id == "crossref:10.1093/obo/9780199830060-0238"
    assert (page.papers[0].title, page.papers[0].document_type) == ("Communicating Ecology", "book chapter")


def test_recorded_searches_by_offset_by_fields_and_without_hits(shared_responses: Any) -> None:
    papers, page = recorded(shared_responses, "works_offset_rows2.json")
    assert (len(papers), page.declared) == (2, 586628)
    papers, _ = recorded(shared_responses, "works_select_fields.json")
    fire = papers["10.1093/obo/9780199830060-0026"]
    assert (fire.title, fire.year, fire.document_type, fire.url) == ("Fire Ecology", 2012, None, None)
    papers, page = recorded(shared_responses, "works_no_hits.json")
    assert (papers, page.declared, page.following) == ({}, 0, None)


def test_recorded_abstracts_are_clean(shared_responses: Any) -> None:
    papers, _ = recorded(shared_responses, "works_filter_has_abstract.json")
    assert len(papers) == 6
    assert not any("<" in paper.abstract or paper.abstract.startswith("Abstract") for paper in papers.values())
    assert papers["10.2458/v1i1.21154"].abstract == ""  # registered: the heading and nothing else
    assert papers["10.2458/v1i1.21154"].citation_count == 102


def test_recorded_odd_records(shared_responses: Any) -> None:
    papers, page = recorded(shared_responses, "works_odd_records.json")
    assert (len(papers), page.received) == (16, 18)  # without a journal issue and a peer review
    assert papers["10.36499/psnst.v14i1.11969"].title.endswith("Lari Marathon untuk Pelatih")
    assert papers["10.1063/1.4752395"].title.endswith("strained BiFeO3 thin films")
    assert "loops in E. coli Y family" in papers["10.1096/fasebj.25.1_supplement.880.3"].title
    assert "John Wright & Sons" in papers["10.1259/0007-1285-35-416-556-a"].title
    assert papers["10.1186/s13059-021-02571-0"].abstract.startswith("Background Circadian")
    assert papers["10.1371/journal.pone.0203153"].document_type == "erratum"
    assert papers["10.1371/journal.pone.0203153"].authors == ("The PLOS ONE Staff",)
    assert papers["10.1103/physrevb.98.104436"].document_type == "article"  # its update names itself
    assert papers["10.1103/physrevb.98.104436"].journal_pages == "104436"
    assert papers["10.1109/jsen.2014.2321167"].authors[:2] == ("Chun-Li Chang", "Shadia I. Jalal")
    assert papers["10.17077/etd.89e52p7n"].year == 2013
    assert "Pd(OAc)2/xantphos" in papers["10.1039/c6ob01102k"].abstract
    assert papers["10.1007/bf01756261"].publication_date == "1933-03"
    assert papers["10.1002/etep.2139"].authors == ()
    assert "<" not in papers["10.1103/physrevc.91.057301"].title
    assert papers["10.1155/2020/5109831"].document_type == "retraction"
    assert papers["10.1155/2020/5109831"].abstract == ""
    assert papers["10.5194/acp-2021-781"].published_as == "10.5194/acp-22-2365-2022"


def test_recorded_types(shared_responses: Any) -> None:
    papers, page = recorded(shared_responses, "works_other_types.json")
    assert page.received == 10  # a component and a journal are no papers
    assert {doi: paper.document_type for doi, paper in papers.items()} == {
        "10.3403/30430945": "other",
        "10.1163/2214-8264_dutchpamphlets-kb1-kb13538": "dataset",
        "10.17077/etd.89e52p7n": "dissertation",
        "10.1145/2649387.2649416": "conference paper",
        "10.4159/harvard.9780674288980.c7": "book chapter",
        "10.4095/110861": "report",
        "10.17875/gup2015-797": "book",
        "10.5194/acp-2021-781": "preprint",
    }
    assert papers["10.4095/110861"].authors == ("Geological Survey of Canada",)
    assert papers["10.1163/2214-8264_dutchpamphlets-kb1-kb13538"].year is None


def test_recorded_single_works(shared_responses: Any) -> None:
    papers, _ = recorded(shared_responses, "work_posted_content.json")
    preprint = papers["10.1101/2024.04.01.587366"]
    assert (preprint.venue, preprint.journal_name, preprint.document_type) == ("bioRxiv", None, "preprint")
    assert preprint.published_as == "10.1016/j.xgen.2025.100814"
    assert preprint.abstract.startswith("Understanding")
    assert len(preprint.references) == 4
    papers, _ = recorded(shared_responses, "work_xgen_2025.json")
    article = papers["10.1016/j.xgen.2025.100814"]
    assert (article.journal_name, article.issn, article.publication_date) == ("Cell Genomics", "2666-979X", "2025-04")
    assert (article.is_open_access, article.pdf_url) == (True, None)
    papers, _ = recorded(shared_responses, "work_no_abstract_no_author.json")
    report = papers["10.1007/s40278-023-41815-2"]
    assert (report.authors, report.abstract, report.citation_count) == ((), "", 0)
    papers, _ = recorded(shared_responses, "work_addr_2015.json")
    review = papers["10.1016/j.addr.2015.01.008"]
    assert (review.citation_count, review.journal_pages, len(review.authors)) == (724, "46-51", 4)


def test_recorded_errors(shared_responses: Any) -> None:
    folder, crossref = shared_responses / "crossref", source("crossref")
    for name in ("error_404_text.html", "error_504_gateway.html", "error_429.html"):
        with pytest.raises(MalformedError):
            crossref.read((folder / name).read_bytes(), LOOKUP)
    with pytest.raises(RefusedError):
        crossref.read((folder / "error_400_integer.json").read_bytes(), LOOKUP)
    with pytest.raises(RefusedError):
        crossref.read((folder / "error_404_cursor_invalid.json").read_bytes(), LOOKUP)


MERGE_SET = {
    "10.1016/j.xgen.2025.100814": (
        "work_xgen_2025.json",
        "work_xgen_2025.json",
        "doi_xgen_2025.json",
        "paper_xgen_2025.json",
    ),
    "10.1007/s40278-023-41815-2": (
        "work_no_abstract_no_author.json",
        "work_no_author.json",
        "doi_closed_no_authors.json",
        "paper_no_authors.json",
    ),
    "10.1016/j.addr.2015.01.008": (
        "work_addr_2015.json",
        "work_addr_2015.json",
        "doi_addr_2015.json",
        "paper_addr_2015.json",
    ),
}


@pytest.mark.parametrize("doi", MERGE_SET)
def test_four_sources_tell_the_same_paper_by_the_same_doi_and_title(shared_responses: Any, doi: str) -> None:
    names = ("crossref", "openalex", "unpaywall", "semantic_scholar")
    papers = []
    for name, file in zip(names, MERGE_SET[doi], strict=True):
        papers += source(name).read((shared_responses / name / file).read_bytes(), Request("http://127.0.0.1")).papers
    assert [paper.doi for paper in papers] == [doi] * 4
    assert len({paper.title.rstrip(".") for paper in papers}) == 1  # one ends in a full stop
