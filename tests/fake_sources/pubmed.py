"""PubMed: ids by esearch as JSON, records by efetch as XML."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape

from fake_sources.answers import Answer, Ask, Shelf, json_answer
from fake_sources.ids import number_of_pmid, pmid
from fake_sources.records import MadeUp

_MOST, _LAST_START, _LONGEST = 10_000, 9998, 4000
_HEADER = {"type": "esearch", "version": "0.3"}
_SET = """<?xml version="1.0" ?>
<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle, 1st January 2025//EN" \
"https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_250101.dtd">
<PubmedArticleSet>
{}
</PubmedArticleSet>
"""
_ARTICLE = """<PubmedArticle><MedlineCitation Status="MEDLINE" Owner="NLM"><PMID Version="1">{pmid}</PMID>\
<DateRevised><Year>2026</Year><Month>01</Month><Day>02</Day></DateRevised><Article PubModel="Print"><Journal>\
<ISSN IssnType="Electronic">{issn}</ISSN><JournalIssue CitedMedium="Internet"><Volume>{volume}</Volume>\
<Issue>{issue}</Issue><PubDate>{date}</PubDate></JournalIssue><Title>{journal}</Title></Journal>\
<ArticleTitle>{title}.</ArticleTitle><Pagination><StartPage>{first}</StartPage><EndPage>{last}</EndPage>\
<MedlinePgn>{first}-{last}</MedlinePgn></Pagination>{abstract}<AuthorList CompleteYN="Y">{authors}</AuthorList>\
<Language>eng</Language><PublicationTypeList><PublicationType UI="D016428">Journal Article</PublicationType>\
</PublicationTypeList></Article><MedlineJournalInfo><ISSNLinking>{issn}</ISSNLinking></MedlineJournalInfo>\
<MeshHeadingList><MeshHeading><DescriptorName UI="D006801" MajorTopicYN="N">{discipline}</DescriptorName>\
</MeshHeading></MeshHeadingList><KeywordList Owner="NOTNLM">{keywords}</KeywordList></MedlineCitation><PubmedData>\
<History><PubMedPubDate PubStatus="pubmed"><Year>{year}</Year><Month>{month}</Month><Day>{day}</Day></PubMedPubDate>\
</History><PublicationStatus>ppublish</PublicationStatus><ArticleIdList><ArticleId IdType="pubmed">{pmid}</ArticleId>\
<ArticleId IdType="doi">{doi}</ArticleId></ArticleIdList><ReferenceList>{references}</ReferenceList></PubmedData>\
</PubmedArticle>"""
_AUTHOR = '<Author ValidYN="Y"><LastName>{}</LastName><ForeName>{}</ForeName><Initials>{}</Initials></Author>'
_REFERENCE = (
    '<Reference><Citation>Flutter F.</Citation><ArticleIdList><ArticleId IdType="doi">{}</ArticleId></ArticleIdList>'
    "</Reference>"
)


def answer(ask: Ask, shelf: Shelf) -> Answer:
    if ask.params.get("db") == "pubmed" and ask.path.endswith("/esearch.fcgi"):
        return _search(ask, shelf)
    if ask.params.get("db") == "pubmed" and ask.path.endswith("/efetch.fcgi"):
        return _fetch(ask, shelf)
    return json_answer({"error": "no such service or database"}, 400)


def failure(ask: Ask) -> Answer:
    if ask.path.endswith("/efetch.fcgi"):
        return Answer(
            b"<eFetchResult>\n\t<ERROR>The search did not come to an end</ERROR>\n</eFetchResult>", "text/xml"
        )
    return _failed("Search Backend failed: the search did not come to an end")


def _failed(text: str) -> Answer:
    return json_answer({"header": _HEADER, "esearchresult": {"ERROR": text}})


def _search(ask: Ask, shelf: Shelf) -> Answer:
    start, size = ask.whole("retstart", 0), min(ask.whole("retmax", 20), _MOST)
    if start > _LAST_START:
        return _failed(f"Search Backend failed: Exception:\n'retstart' cannot be larger than {_LAST_START}.")
    term = ask.params.get("term", "")
    total, papers = shelf.page(shelf.matching(re.sub(r"\[\w+\]", "", term)), start, size)
    result = {
        "count": str(total),
        "retmax": str(len(papers)),
        "retstart": str(start),
        "idlist": [pmid(paper) for paper in papers],
        "translationset": [],
        "querytranslation": term,
    }
    if ask.params.get("usehistory") == "y":
        result |= {"querykey": "1", "webenv": f"MCID_{term}"}
    return json_answer({"header": _HEADER, "esearchresult": result})


def _fetch(ask: Ask, shelf: Shelf) -> Answer:
    if len(ask.params.get("id", "")) > _LONGEST:
        return Answer(b"<html><body>414 Request-URI Too Large</body></html>", "text/html", 414)
    if "WebEnv" in ask.params:
        found = shelf.matching(ask.params["WebEnv"].removeprefix("MCID_"))
        _, papers = shelf.page(found, ask.whole("retstart", 0), ask.whole("retmax", 20))
    else:
        numbers = [number_of_pmid(text) for text in ask.params.get("id", "").split(",") if text.isdigit()]
        papers = [paper for number in numbers if (paper := shelf.of_number(number)) and shelf.pages != "empty"]
    return Answer(_SET.format("\n".join(map(_article, papers))).encode(), "text/xml; charset=UTF-8")


def _article(paper: MadeUp) -> str:
    return _ARTICLE.format(
        pmid=pmid(paper),
        issn=paper.issn,
        volume=paper.volume,
        issue=paper.issue,
        date=_date(paper),
        journal=escape(paper.journal),
        title=_marked_up(paper),
        first=paper.first_page,
        last=paper.last_page,
        abstract=_abstract(paper),
        authors="".join(_AUTHOR.format(family, given, given[0]) for given, family in paper.authors),
        discipline=paper.discipline,
        keywords="".join(f'<Keyword MajorTopicYN="N">{keyword}</Keyword>' for keyword in paper.keywords),
        year=paper.year,
        month=paper.date.month,
        day=paper.date.day,
        doi=paper.doi,
        references="".join(map(_REFERENCE.format, paper.references)),
    )


def _date(paper: MadeUp) -> str:
    """A day, a month in letters, or words."""
    if paper.number % 6 == 1:
        return f"<MedlineDate>{paper.year} Jan-Feb</MedlineDate>"
    month = f"<Year>{paper.year}</Year><Month>{paper.date:%b}</Month>"
    return month if paper.number % 2 else f"{month}<Day>{paper.date.day:02d}</Day>"


def _marked_up(paper: MadeUp) -> str:
    first, _, rest = escape(paper.title).partition(" ")
    return f"<i>{first}</i> {rest}" if paper.number % 4 == 0 else f"{first} {rest}"


def _abstract(paper: MadeUp) -> str:
    if paper.number % 11 == 10:
        return ""
    first, _, rest = escape(paper.abstract).partition(". ")
    return (
        f'<Abstract><AbstractText Label="PURPOSE">{first}.</AbstractText>'
        f'<AbstractText Label="FINDINGS">{rest}</AbstractText></Abstract>'
    )
