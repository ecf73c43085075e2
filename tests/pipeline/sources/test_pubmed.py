"""PubMed: a search for numbers, then records in XML."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.papers import Paper, Query
from pipeline.sources import MalformedError, Page, RefusedError, Request
from source_helpers import source

DAY = datetime.date(2026, 9, 1)
QUERY = Query("q1", "Sleep of mice")
BASE = "https://eutils.ncbi.nlm.nih.gov/entrez/eutils"


def found(*ids: str, count: int | None = None, **more: Any) -> bytes:
    result = {"count": str(len(ids) if count is None else count), "idlist": list(ids)} | more
    return json.dumps({"header": {}, "esearchresult": result}).encode()


def article(inside: str = "", citation: str = "", data: str = "", number: str = "1", title: str = "A title.") -> str:
    return f"""<PubmedArticle><MedlineCitation><PMID Version="1">{number}</PMID>
        <Article><ArticleTitle>{title}</ArticleTitle>{inside}</Article>{citation}</MedlineCitation>
        <PubmedData>{data}</PubmedData></PubmedArticle>"""


def fetched(*records: str) -> bytes:
    return f"""<?xml version="1.0" ?>
        <!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle//EN" "https://dtd.nlm.nih.gov/x.dtd">
        <PubmedArticleSet>{"".join(records)}</PubmedArticleSet>""".encode()


def asked(*ids: str) -> Request:
    request = source("pubmed").read(found(*ids), source("pubmed").search(QUERY, DAY, 100)).following
    assert isinstance(request, Request)
    return request


def read(body: bytes, *ids: str) -> Page:
    page = source("pubmed").read(body, asked(*(ids or ("1",))))
    assert isinstance(page, Page)
    return page


def mapped(inside: str = "", **parts: str) -> Paper:
    (paper,) = read(fetched(article(inside, **parts))).papers
    return paper


def recorded(folder: Path, file: str) -> dict[str, Paper]:
    """The papers of a recorded set by their numbers."""
    papers = read((folder / "pubmed" / file).read_bytes(), "1", "2").papers
    return {paper.paper_id.removeprefix("pubmed:"): paper for paper in papers}


def test_any_word_may_stand_in_title_or_abstract_and_the_most_relevant_come_first() -> None:
    request = source("pubmed").search(Query("q", "Sleep of mice", keywords=("circadian rhythm",)), DAY, 50)
    assert request.url == f"{BASE}/esearch.fcgi"
    assert request.params == {
        "db": "pubmed",
        "tool": "litgrade",
        "term": 'sleep[tiab] OR mice[tiab] OR "circadian rhythm"[tiab]',
        "retmode": "json",
        "retmax": "9999",
        "sort": "relevance",
    }


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ('X[mh] AND: "graphs" NOT (R&D)', "x[tiab] OR mh[tiab] OR graphs[tiab] OR r[tiab] OR d[tiab]"),
        ("Über 睡眠", "über[tiab] OR 睡眠[tiab]"),
        ("COVID-19", '"covid-19"[tiab]'),
        ("To be or not to be", '"to be or not to be"[tiab]'),
    ],
)
def test_no_text_can_break_the_search(text: str, term: str) -> None:
    assert source("pubmed").search(Query("q", text), DAY, 10).params["term"] == term


def test_no_more_ids_are_asked_than_a_search_gives() -> None:
    assert source("pubmed").search(QUERY, DAY, 50_000).params["retmax"] == "9999"


def test_the_ids_found_are_fetched_page_by_page() -> None:
    reader = source("pubmed", page_size=2, base_url="http://127.0.0.1:9/e/")
    search = reader.read(found("3", "1", "2", count=1834), reader.search(QUERY, DAY, 3))
    assert (search.papers, search.declared) == ((), 1834)
    assert search.following == Request(
        "http://127.0.0.1:9/e/efetch.fcgi",
        {"db": "pubmed", "tool": "litgrade", "id": "3,1", "retmode": "xml"},
        state=("2",),
    )
    first = reader.read(fetched(article(number="3"), article(number="1")), search.following)
    assert [paper.paper_id for paper in first.papers] == ["pubmed:3", "pubmed:1"]
    assert first.following is not None
    assert first.following.params["id"] == "2"
    assert reader.read(fetched(article(number="2")), first.following).following is None


def test_a_search_that_finds_nothing_ends_the_walk() -> None:
    assert source("pubmed").read(found(), source("pubmed").search(QUERY, DAY, 5)) == Page((), None, declared=0)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<eSearchResult/>",
        b"{}",
        b'{"error": "API rate limit exceeded"}',
        found(count=7),
        found("1", count=1)[:-2],
    ],
)
def test_what_is_no_result_of_a_search_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedError):
        source("pubmed").read(body, source("pubmed").search(QUERY, DAY, 5))


def test_an_error_told_in_a_result_is_a_refusal() -> None:
    with pytest.raises(RefusedError, match="no backend"):
        source("pubmed").read(b'{"esearchresult": {"ERROR": "no backend"}}', source("pubmed").search(QUERY, DAY, 5))


@pytest.mark.parametrize("body", [b"", b"{}", b"<html><body>Busy</body></html>", fetched(article())[:-30]])
def test_what_is_no_set_of_records_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedError):
        read(body)


def test_of_many_ids_one_at_least_is_known() -> None:
    assert read(fetched(), "1").papers == ()
    with pytest.raises(MalformedError, match="none of 2 records"):
        read(fetched(), "1", "2")


def test_a_record_is_mapped_field_by_field() -> None:
    paper = mapped(
        """<Journal><ISSN IssnType="Electronic">2041-1723</ISSN><JournalIssue><Volume>12</Volume><Issue>3</Issue>
             <PubDate><Year>2021</Year><Month>Apr</Month></PubDate></JournalIssue><Title>Nature tests</Title></Journal>
           <Pagination><StartPage>616</StartPage><EndPage>624</EndPage><MedlinePgn>616-24</MedlinePgn></Pagination>
           <Abstract><AbstractText Label="AIM">To see <i>in vivo</i> H<sub>2</sub>O.</AbstractText>
             <AbstractText Label="UNLABELLED">Seen.</AbstractText></Abstract>
           <PublicationTypeList><PublicationType>Journal Article</PublicationType>
             <PublicationType>Review</PublicationType></PublicationTypeList>
           <ArticleDate><Year>2021</Year><Month>03</Month><Day>09</Day></ArticleDate>""",
        citation="""<MedlineJournalInfo><ISSNLinking>0028-0836</ISSNLinking></MedlineJournalInfo>
           <MeshHeadingList>
             <MeshHeading><DescriptorName MajorTopicYN="N">Humans</DescriptorName></MeshHeading>
             <MeshHeading><DescriptorName MajorTopicYN="Y">Sleep</DescriptorName></MeshHeading>
             <MeshHeading><DescriptorName MajorTopicYN="N">Mice</DescriptorName>
               <QualifierName MajorTopicYN="Y">genetics</QualifierName></MeshHeading></MeshHeadingList>
           <KeywordList><Keyword>naps</Keyword><Keyword>REM</Keyword></KeywordList>""",
        data="""<ArticleIdList><ArticleId IdType="pubmed">7</ArticleId><ArticleId IdType="doi">10.1234/ABC</ArticleId>
             </ArticleIdList>""",
        number="7",
        title="On <i>Mus</i> &amp; sleep.",
    )
    assert (paper.paper_id, paper.source, paper.doi) == ("pubmed:7", "pubmed", "10.1234/abc")
    assert (paper.title, paper.abstract) == ("On Mus & sleep.", "AIM: To see in vivo H2O. Seen.")
    assert (paper.publication_date, paper.year) == ("2021-03-09", 2021)
    assert (paper.journal_name, paper.venue, paper.journal_volume) == ("Nature tests", "Nature tests", "12")
    assert (paper.journal_pages, paper.issn) == ("616-624", "2041-1723, 0028-0836")
    assert (paper.document_type, paper.publication_type) == ("review", "Journal Article; Review")
    assert (paper.disciplines, paper.keywords) == (("Sleep", "Mice"), ("naps", "REM"))
    assert paper.url == "https://pubmed.ncbi.nlm.nih.gov/7/"
    assert (paper.is_open_access, paper.pdf_available, paper.pdf_url) == (None, None, None)
    assert (paper.citation_count, paper.impact_factor, paper.conference_name) == (None, None, None)


def test_ids_of_cited_papers_are_references_and_never_the_record_s_own() -> None:
    paper = mapped(
        data="""<ReferenceList>
            <Reference><ArticleIdList><ArticleId IdType="pubmed">11</ArticleId>
              <ArticleId IdType="doi">10.1234/Cited</ArticleId></ArticleIdList></Reference>
            <Reference><ArticleIdList><ArticleId IdType="pubmed">12</ArticleId>
              <ArticleId IdType="pmc">PMC12</ArticleId></ArticleIdList></Reference>
            <Reference><Citation>A book.</Citation></Reference></ReferenceList>"""
    )
    assert (paper.doi, paper.is_open_access) == (None, None)
    assert paper.references == ("10.1234/cited", "12")


@pytest.mark.parametrize(("valid", "doi"), [("Y", "10.1234/placed"), ("N", None)])
def test_a_doi_may_stand_with_the_place_where_it_is_valid(valid: str, doi: str | None) -> None:
    assert mapped(f'<ELocationID EIdType="doi" ValidYN="{valid}">10.1234/placed</ELocationID>').doi == doi


def test_authors_are_persons_and_groups_but_no_wrong_names() -> None:
    paper = mapped(
        """<AuthorList><Author ValidYN="Y"><LastName>Lovelace</LastName><ForeName>Ada K</ForeName></Author>
             <Author ValidYN="N"><LastName>Lovelase</LastName><ForeName>Ada</ForeName></Author>
             <Author><LastName>Smith</LastName><Initials>J</Initials><Suffix>Jr</Suffix></Author>
             <Author><CollectiveName>The Sleep Group</CollectiveName></Author></AuthorList>
           <InvestigatorList><Investigator><LastName>Nobody</LastName></Investigator></InvestigatorList>""",
        citation="<PersonalNameSubjectList><PersonalNameSubject><LastName>Galen</LastName></PersonalNameSubject>"
        "</PersonalNameSubjectList>",
    )
    assert paper.authors == ("Ada K Lovelace", "J Smith Jr", "The Sleep Group")


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("<Year>2020</Year><Month>06</Month><Day>5</Day>", "2020-06-05"),
        ("<Year>2020</Year><Month>Jun</Month>", "2020-06"),
        ("<Year>2020</Year><Season>Summer</Season>", "2020"),
        ("<MedlineDate>2020 Jan-Feb</MedlineDate>", "2020"),
        ("<MedlineDate>Winter 1998-1999</MedlineDate>", "1998"),
        ("<MedlineDate>unknown</MedlineDate>", "2019-07-08"),
    ],
)
def test_dates_are_as_precise_as_they_are_told(date: str, expected: str) -> None:
    history = """<History><PubMedPubDate PubStatus="received"><Year>2018</Year></PubMedPubDate>
        <PubMedPubDate PubStatus="pubmed"><Year>2019</Year><Month>7</Month><Day>8</Day></PubMedPubDate></History>"""
    paper = mapped(f"<Journal><JournalIssue><PubDate>{date}</PubDate></JournalIssue></Journal>", data=history)
    assert (paper.publication_date, paper.year) == (expected, int(expected[:4]))


@pytest.mark.parametrize(
    ("place", "pages"),
    [
        ("<Pagination><MedlinePgn>616-24</MedlinePgn></Pagination>", "616-624"),
        ("<Pagination><MedlinePgn>S69-S73</MedlinePgn></Pagination>", "S69-S73"),
        ("<Pagination><StartPage>e12</StartPage><MedlinePgn>e12</MedlinePgn></Pagination>", "e12"),
        ("<Pagination><StartPage>9</StartPage><EndPage>9</EndPage></Pagination>", "9"),
        ('<ELocationID EIdType="pii" ValidYN="Y">ooae099</ELocationID>', "ooae099"),
        ('<ELocationID EIdType="pii" ValidYN="Y">S0167-4889(24)00110-1</ELocationID>', None),
    ],
)
def test_pages_are_whole_or_the_number_of_an_electronic_article(place: str, pages: str | None) -> None:
    assert mapped(place).journal_pages == pages


@pytest.mark.parametrize(
    ("types", "document_type"),
    [
        (["Journal Article", "Published Erratum"], "erratum"),
        (["Retraction of Publication"], "retraction"),
        (["Journal Article", "Retracted Publication"], "retraction"),
        (["Editorial"], "editorial"),
        (["Interview"], "other"),
        ([], None),
    ],
)
def test_of_several_types_the_most_telling_counts(types: list[str], document_type: str | None) -> None:
    inside = "".join(f"<PublicationType>{name}</PublicationType>" for name in types)
    paper = mapped(f"<PublicationTypeList>{inside}</PublicationTypeList>")
    assert paper.document_type == document_type
    assert paper.publication_type == ("; ".join(types) or None)


def related(relation: str, source_text: str) -> str:
    return (
        f'<CommentsCorrectionsList><CommentsCorrections RefType="{relation}"><RefSource>{source_text}</RefSource>'
        "<PMID>9</PMID></CommentsCorrections></CommentsCorrectionsList>"
    )


def test_an_article_knows_its_preprint_but_an_updated_review_is_none() -> None:
    preprint = related("UpdateOf", "bioRxiv. 2023 Apr 5:2023.03.21. doi: 10.1101/2023.03.21.1. Update in: Other.")
    assert mapped(citation=preprint).preprints == ("10.1101/2023.03.21.1",)
    review = related("UpdateOf", "Cochrane Database Syst Rev. 2015;(3):CD1. doi: 10.1002/14651858.CD1.pub2.")
    assert mapped(citation=review).preprints == ()


def test_a_preprint_knows_its_article_and_has_no_journal() -> None:
    types = "<PublicationTypeList><PublicationType>Preprint</PublicationType></PublicationTypeList>"
    journal = "<Journal><Title>bioRxiv : the preprint server</Title></Journal>"
    update = related("UpdateIn", "J Tests. 2024;1(2):3. doi: 10.1234/J.1.")
    paper = mapped(types + journal, citation=update)
    assert (paper.document_type, paper.published_as) == ("preprint", "10.1234/j.1")
    assert (paper.journal_name, paper.venue) == (None, "bioRxiv : the preprint server")
    assert mapped(journal, citation=update).published_as is None  # an article that has a later version


def test_full_texts_in_pubmed_central_are_free() -> None:
    paper = mapped(data='<ArticleIdList><ArticleId IdType="pmc">PMC123</ArticleId></ArticleIdList>')
    assert (paper.is_open_access, paper.pdf_available, paper.pdf_url) == (True, None, None)  # a text, perhaps no PDF


@pytest.mark.parametrize("title", ["", "[Not Available]."])
def test_the_original_title_stands_in_for_a_missing_one(title: str) -> None:
    assert mapped("<VernacularTitle>Über Schlaf.</VernacularTitle>", title=title).title == "Über Schlaf."


def test_another_abstract_is_kept_apart() -> None:
    other = '<OtherAbstract Language="ger"><AbstractText>Anderes.</AbstractText></OtherAbstract>'
    assert mapped(citation=other).abstract == ""


def test_books_and_their_chapters_are_mapped() -> None:
    def book(number: str, title: str) -> str:
        return f"""<PubmedBookArticle><BookDocument><PMID>{number}</PMID>{title}
            <Book><BookTitle>All about sleep</BookTitle><PubDate><Year>2019</Year></PubDate>
              <AuthorList Type="editors"><Author><LastName>Ed</LastName></Author></AuthorList></Book>
            <Abstract><AbstractText>On naps.</AbstractText></Abstract></BookDocument></PubmedBookArticle>"""

    whole, chapter = read(fetched(book("5", "<ArticleTitle/>"), book("6", "<ArticleTitle>Naps</ArticleTitle>"))).papers
    assert (whole.paper_id, whole.title, whole.document_type) == ("pubmed:5", "All about sleep", "book")
    assert (whole.venue, whole.year, whole.authors) == (None, 2019, ("Ed",))
    assert (chapter.title, chapter.document_type, chapter.venue) == ("Naps", "book chapter", "All about sleep")
    assert chapter.abstract == "On naps."


def test_a_record_that_is_none_does_not_lose_the_page() -> None:
    odd = ["<PubmedArticle/>", "<PubmedBookArticle/>", "<DeleteCitation/>", article(number="")]
    page = read(fetched(*odd, article(title=""), article(number="2")))
    assert [paper.paper_id for paper in page.papers] == ["pubmed:2"]
    assert page.received == 5


def test_fewer_records_than_asked_for_show() -> None:
    page = read(fetched(article(number="1"), "<DeleteCitation><PMID>2</PMID></DeleteCitation>"), "1", "2")
    assert (len(page.papers), page.received) == (1, 1)


def test_numbers_of_deleted_records_alone_are_no_records() -> None:
    with pytest.raises(MalformedError, match="sent none of 2 records"):
        read(fetched("<DeleteCitation><PMID>1</PMID><PMID>2</PMID></DeleteCitation>"), "1", "2")


def test_a_recorded_search_leads_to_its_records(shared_responses: Path) -> None:
    folder, reader = shared_responses / "pubmed", source("pubmed")
    search = reader.read((folder / "esearch_page1.json").read_bytes(), reader.search(QUERY, DAY, 26))
    assert search.declared == 1834
    page = reader.read((folder / "efetch_page1.xml").read_bytes(), search.following)
    assert [paper.paper_id.removeprefix("pubmed:") for paper in page.papers] == search.following.params["id"].split(",")
    assert (len(page.papers), page.following) == (26, None)
    first = page.papers[0]
    assert (first.doi, first.journal_pages, first.publication_date) == ("10.1111/jnu.12852", "853-863", "2022-12-18")
    assert (first.issn, len(first.authors)) == ("1547-5069, 1527-6546", 7)
    assert first.abstract.startswith("PURPOSE: To analyze")
    assert first.disciplines == ("Artificial Intelligence", "Machine Learning")
    papers = {paper.paper_id: paper for paper in page.papers}
    assert papers["pubmed:36509356"].preprints == ("10.1101/2022.08.30.22279394",)
    assert papers["pubmed:36865787"].journal_pages == "119171"
    assert papers["pubmed:35798691"].document_type == "review"
    own = {paper.doi for paper in page.papers} - {None}
    assert own.isdisjoint(reference for paper in page.papers for reference in paper.references)


def test_recorded_odd_articles_are_mapped(shared_responses: Path) -> None:
    papers = recorded(shared_responses, "efetch_odd_articles.xml")
    assert len(papers) == 11
    assert papers["11618220"].abstract == ""
    assert papers["36176722"].title.endswith("captive rhesus macaques (Macaca mulatta).")
    assert (papers["38048813"].title[:15], papers["38048813"].document_type) == ("[A Broader Scop", "editorial")
    assert (papers["38962805"].authors, papers["38962805"].document_type) == ((), "erratum")
    assert papers["34843274"].authors[0].startswith("Guideline Development Panel")
    assert (papers["23657305"].publication_date, papers["23657305"].doi) == ("2013", "10.1590/s0004-28032013000100008")
    assert (papers["38833988"].document_type, papers["38833988"].journal_pages) == ("erratum", "119767")
    assert (papers["35649368"].publication_date, papers["35649368"].preprints) == ("2022-05-31", ())
    assert (papers["24349601"].journal_pages, papers["24349601"].is_open_access) == (None, True)
    assert (papers["11636720"].issn, papers["11636720"].authors) == (None, ("O Kember",))
    assert papers["39345789"].preprints == ("10.1101/2023.03.21.23286947",)
    assert len(papers["39345789"].authors) == 24


def test_recorded_records_without_doi_have_none_of_their_references(shared_responses: Path) -> None:
    papers = recorded(shared_responses, "efetch_no_doi.xml")
    assert {number: paper.doi for number, paper in papers.items()} == {"37128457": None, "37128426": None}
    assert len(papers["37128426"].references) == 6
    assert papers["37128426"].is_open_access


def test_recorded_records_of_old_shape_are_mapped(shared_responses: Path) -> None:
    papers = recorded(shared_responses, "efetch_2009_shape.xml")
    assert [paper.journal_pages for paper in papers.values()] == ["244-255", "117-123"]
    assert [paper.publication_date for paper in papers.values()] == ["2001-06", "2001-11"]
    assert papers["11748933"].doi == "10.1006/cryo.2001.2328"


def test_a_recorded_unknown_number_is_no_record(shared_responses: Path) -> None:
    page = read((shared_responses / "pubmed/efetch_unknown_pmid.xml").read_bytes(), "37909814")
    assert page == Page((), None, declared=None, received=0)


def test_a_recorded_error_of_a_search_is_a_refusal(shared_responses: Path) -> None:
    body = (shared_responses / "pubmed/esearch_error_retstart.json").read_bytes()
    with pytest.raises(RefusedError, match="cannot be larger than 9998"):
        source("pubmed").read(body, source("pubmed").search(QUERY, DAY, 5))


@pytest.mark.parametrize("file", ["esearch_xml.xml", "esearch_history.xml", "esearch_phrase_not_found.xml"])
def test_a_search_answered_in_xml_is_malformed(shared_responses: Path, file: str) -> None:
    with pytest.raises(MalformedError, match="sent no JSON"):
        source("pubmed").read((shared_responses / "pubmed" / file).read_bytes(), source("pubmed").search(QUERY, DAY, 5))


def test_a_recorded_rate_limit_is_no_set_of_records(shared_responses: Path) -> None:
    body = (shared_responses / "pubmed/error_429.json").read_bytes()
    with pytest.raises(MalformedError, match="API rate limit exceeded"):
        read(body)
    with pytest.raises(MalformedError, match="API rate limit exceeded"):
        source("pubmed").read(body, source("pubmed").search(QUERY, DAY, 5))
