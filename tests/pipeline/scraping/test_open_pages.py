from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from endpoint import Reply
from pages_server import PagesServer
from pipeline.collecting.reports import Report, Stop
from pipeline.collecting.responses import Response, Responses
from pipeline.papers import Paper
from pipeline.scraping.documents import Found, read_html
from pipeline.scraping.open_pages import WALK, complete_from_pages, lacking, read_pages
from pipeline.scraping.scraper import PassingError, Scraped, ScrapeError, Scraper, Scraping

TITLE = "How honey bees find nectar after rain"
ABSTRACT = (
    "We study how bees find nectar. Forty hives were watched over two summers. Bees fly farther after rain than before."
)
OPEN = Paper("doi:10.5555/1", TITLE, doi="10.5555/1", is_open_access=True, url="http://bees.example/1")


@pytest.fixture
def site() -> Iterator[Callable[..., PagesServer]]:
    servers: list[PagesServer] = []

    def start(respond: Callable[[str], Reply]) -> PagesServer:
        servers.append(PagesServer(respond))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def keep(responses: Responses, place: str, **found: Any) -> None:
    scraped = Scraped(place, "html", 100, "0" * 64, Found(**found))
    responses.add(WALK, place, Response(place, 200, json.dumps(asdict(scraped)).encode()))


def page(title: str = TITLE, abstract: str = ABSTRACT, keywords: str = "bees; nectar", doi: str = "10.5555/1") -> Reply:
    said = {"title": title, "abstract": abstract, "keywords": keywords, "doi": doi}
    tags = "".join(f'<meta name="citation_{name}" content="{text}">' for name, text in said.items() if text)
    return Reply(f"<html><head>{tags}</head><body><h1>{title}</h1></body></html>".encode())


async def here(host: str, port: int) -> list[str]:
    """Stands for a name server to which all names are this machine."""
    return ["127.0.0.1"]


def kept_page(responses: Responses, place: str, body: str) -> None:
    """Keep what is found in this page."""
    keep(responses, place, **asdict(read_html(body.encode(), place)))


def read(
    papers: list[Paper], responses: Responses, budget_s: float = 60.0, is_allowed: Callable[[str], bool] | None = None
) -> Report:
    async def run() -> Report:
        allowed = is_allowed or (lambda address: address == "127.0.0.1")
        async with Scraper(Scraping(concurrency=2), "tests/1", allowed, here) as scraper:
            return await read_pages(papers, scraper, responses, budget_s)

    return asyncio.run(run())


# Which papers


def test_open_papers_that_lack_a_text_are_read_and_those_without_an_abstract_first() -> None:
    no_keywords = replace(OPEN, paper_id="no keywords", abstract=ABSTRACT)
    no_abstract = replace(OPEN, paper_id="no abstract", keywords=("bees",))
    has_all = replace(OPEN, abstract=ABSTRACT, keywords=("bees",))
    is_closed, is_unknown = replace(OPEN, is_open_access=False), replace(OPEN, is_open_access=None)
    has_pdf = replace(is_unknown, paper_id="pdf", pdf_available=True, pdf_url="http://bees.example/1.pdf")
    nowhere = replace(OPEN, url=None)
    papers = [no_keywords, no_abstract, has_all, is_closed, is_unknown, has_pdf, nowhere]
    assert lacking(papers) == [no_abstract, has_pdf, no_keywords]


def test_a_preprint_is_read_for_its_abstract_and_not_for_keywords_alone() -> None:
    preprint = replace(OPEN, document_type="preprint")
    assert lacking([replace(preprint, abstract=ABSTRACT)]) == []
    assert lacking([replace(preprint, keywords=("bees",))]) == [replace(preprint, keywords=("bees",))]


# What a page says


def test_what_a_paper_lacks_is_taken_from_its_page_and_named(responses: Responses) -> None:
    keep(responses, OPEN.url or "", title=TITLE, abstract=ABSTRACT, keywords=("bees", "nectar"), doi="10.5555/1")
    (paper,) = complete_from_pages([replace(OPEN, provenance={"title": "doaj:1"})], responses)
    assert (paper.abstract, paper.keywords) == (ABSTRACT, ("bees", "nectar"))
    assert paper.provenance == {
        "title": "doaj:1",
        "abstract": "page:http://bees.example/1",
        "keywords": "page:http://bees.example/1",
    }


def test_what_a_paper_has_is_not_replaced(responses: Responses) -> None:
    keep(responses, OPEN.url or "", title=TITLE, abstract=ABSTRACT, keywords=("bees",))
    before = replace(OPEN, abstract="Of bees.", provenance={"abstract": "doaj:1"})
    (paper,) = complete_from_pages([before], responses)
    assert (paper.abstract, paper.keywords) == ("Of bees.", ("bees",))
    assert paper.provenance["abstract"] == "doaj:1"


@pytest.mark.parametrize(
    "found",
    [
        {"title": "Deep learning for the price of copper", "doi": "10.5555/1"},
        {"title": TITLE, "doi": "10.5555/2"},
        {"title": "Log in to your account"},
        {"title": "Log in to your account", "doi": "10.5555/1"},
        {"beginning": "Deep learning for the price of copper A. Miner Abstract We study how copper is priced."},
        {"beginning": "Bees"},
        {"beginning": f"{TITLE} A. Beekeeper", "doi": "10.5555/2"},
    ],
)
def test_a_page_about_another_paper_leaves_it_untouched(responses: Responses, found: dict[str, str]) -> None:
    keep(responses, OPEN.url or "", abstract=ABSTRACT, keywords=("bees",), **found)
    assert complete_from_pages([OPEN], responses) == (OPEN,)


@pytest.mark.parametrize(
    "found",
    [
        {"doi": "10.5555/1"},
        {"title": TITLE},
        {"title": f"{TITLE}: a study | Journal of Bees"},
        {"title": TITLE.upper(), "doi": "10.5555/1"},
        {"doi": "10.48550/arxiv.2101.00001"},
        {"doi": "10.5555/published"},
        {"beginning": f"Journal of Bees 7 (2020) {TITLE.upper()} A. Beekeeper Abstract"},
        {"title": "Layout 1", "beginning": f"{TITLE} A. Beekeeper"},
    ],
)
def test_a_page_that_may_be_about_the_paper_is_believed(responses: Responses, found: dict[str, str]) -> None:
    known = replace(OPEN, preprints=("10.48550/arxiv.2101.00001",), published_as="10.5555/published")
    keep(responses, OPEN.url or "", abstract=ABSTRACT, **found)
    (paper,) = complete_from_pages([known], responses)
    assert paper.abstract == ABSTRACT


def test_a_page_that_tells_neither_title_nor_doi_says_nothing(responses: Responses) -> None:
    keep(responses, OPEN.url or "", abstract=ABSTRACT, keywords=("bees",))
    assert complete_from_pages([OPEN], responses) == (OPEN,)


def test_a_page_says_nothing_of_a_paper_whose_title_and_doi_are_unknown(responses: Responses) -> None:
    nameless = replace(OPEN, title="", doi=None)
    keep(responses, OPEN.url or "", title=TITLE, doi="10.5555/1", abstract=ABSTRACT, beginning=TITLE)
    assert complete_from_pages([nameless], responses) == (nameless,)


LOGIN = """<html><head><title>Log in</title><meta name="keywords" content="journals, login">
    <meta name="citation_keywords" content="science; access"></head><body><h1>Log in</h1></body></html>"""
COOKIES = f"""<html><head><title>Cookies</title></head><body><main><h1>Cookies</h1>
    <h2>Summary</h2><p>{ABSTRACT}</p><h2>What we keep</h2><p>We keep what you read and when.</p></main></body></html>"""


def test_a_login_page_has_no_keywords_of_the_paper(responses: Responses) -> None:
    kept_page(responses, OPEN.url or "", LOGIN)
    assert complete_from_pages([OPEN], responses) == (OPEN,)


def test_a_summary_on_a_page_about_cookies_is_no_abstract_of_the_paper(responses: Responses) -> None:
    assert read_html(COOKIES.encode(), "http://bees.example/1").abstract == ABSTRACT
    kept_page(responses, OPEN.url or "", COOKIES)
    assert complete_from_pages([OPEN], responses) == (OPEN,)


def test_what_the_page_lacks_may_be_in_the_pdf(responses: Responses) -> None:
    both = replace(OPEN, pdf_url="http://bees.example/1.pdf")
    keep(responses, "http://bees.example/1", title=TITLE, keywords=("bees",))
    keep(responses, "http://bees.example/1.pdf", beginning=TITLE, abstract=ABSTRACT, keywords=("hives",))
    (paper,) = complete_from_pages([both], responses)
    assert (paper.abstract, paper.keywords) == (ABSTRACT, ("bees",))
    assert paper.provenance["abstract"] == "page:http://bees.example/1.pdf"
    assert paper.provenance["keywords"] == "page:http://bees.example/1"


def test_a_closed_paper_takes_nothing_from_a_page_that_another_one_was_read_for(responses: Responses) -> None:
    keep(responses, OPEN.url or "", title=TITLE, abstract=ABSTRACT)
    closed = replace(OPEN, is_open_access=False)
    assert complete_from_pages([closed], responses) == (closed,)


def test_without_anything_kept_papers_stay_as_they_are(responses: Responses) -> None:
    assert complete_from_pages([OPEN], responses) == (OPEN,)


# Reading


def test_pages_are_read_once_and_what_they_say_is_kept(
    site: Callable[..., PagesServer], responses: Responses, tmp_path: Path
) -> None:
    replies = {
        "/whole": page(),
        "/other": page(title="Deep learning for the price of copper", doi=""),
        "/missing": Reply(b"gone", status=404),
        "/poor": page(abstract="", keywords="hives"),
        "/poor.html": page(keywords="", doi=""),
    }
    server = site(lambda path: replies[path])

    def at(path: str, pdf: str | None = None) -> Paper:
        base = f"http://127.0.0.1:{server.port}"
        return replace(OPEN, paper_id=path, url=base + path, pdf_url=pdf and base + pdf)

    whole, other = at("/whole", pdf="/never"), at("/other")
    missing, poor = at("/missing"), at("/poor", pdf="/poor.html")
    papers = [whole, other, missing, poor]
    report = read(papers, responses)
    assert (report.source, report.stop, report.pages, report.declared) == ("pages", Stop.DONE, 4, 4)
    assert report.detail == "1 was answered with status 404"
    assert sorted(asked.path for asked in server.asked) == sorted(replies)  # and no PDF where the page told enough
    completed = complete_from_pages(papers, responses)
    assert [paper.abstract for paper in completed] == [ABSTRACT, "", "", ABSTRACT]
    assert [paper.keywords for paper in completed] == [("bees", "nectar"), (), (), ("hives",)]
    assert completed[1:3] == (other, missing)
    kept = responses.get(WALK, missing.url or "")
    assert kept == Response(missing.url or "", 0, b"was answered with status 404")
    n_asked = len(server.asked)
    assert read(papers, responses).pages == 4
    assert len(server.asked) == n_asked
    again = Responses(responses.path, is_read_only=True)
    assert complete_from_pages(papers, again) == completed
    again.close()


def test_an_address_that_is_not_public_is_kept_as_refused_and_never_asked(
    site: Callable[..., PagesServer], responses: Responses
) -> None:
    server = site(lambda path: page())
    inside = replace(OPEN, url=f"http://bees.example:{server.port}/1", pdf_url="file:///etc/passwd")
    report = read([inside], responses, is_allowed=lambda address: False)
    assert (report.stop, report.pages) == (Stop.DONE, 0)
    assert server.asked == []
    kept = [responses.get(WALK, place) for place in (inside.url or "", inside.pdf_url or "")]
    assert [(answer.status, answer.body) for answer in kept if answer] == [
        (0, b"bees.example leads to 127.0.0.1, which is not public"),
        (0, b"is no web address but file:"),
    ]
    assert complete_from_pages([inside], responses) == (inside,)


class Told:
    """Stands for a scraper: what it finds at an address is told, or how it fails."""

    settings = Scraping(concurrency=1)

    def __init__(self, found: dict[str, Found | Exception]) -> None:
        self.found, self.asked = found, list[str]()

    async def scrape(self, url: str) -> Scraped:
        self.asked.append(url)
        said = self.found.get(url)
        if said is None:
            await asyncio.Event().wait()  # for ever
        if isinstance(said, Exception):
            raise said
        assert said is not None
        return Scraped(url, "html", 100, "0" * 64, said)


def told(scraper: Any, papers: list[Paper], responses: Responses, budget_s: float = 60.0) -> Report:
    return asyncio.run(read_pages(papers, scraper, responses, budget_s))


def test_the_pdf_is_read_only_for_what_the_page_did_not_say(responses: Responses) -> None:
    keywords_only = replace(OPEN, abstract=ABSTRACT, url="http://a", pdf_url="http://a.pdf")
    says_too_little = replace(OPEN, url="http://b", pdf_url="http://b.pdf")
    of_another = replace(OPEN, url="http://c", pdf_url="http://c.pdf")
    scraper = Told(
        {
            "http://a": Found(title=TITLE, keywords=("bees",)),
            "http://b": Found(title=TITLE, keywords=("bees",)),
            "http://b.pdf": Found(beginning=TITLE, abstract=ABSTRACT),
            "http://c": Found(title="The price of copper", abstract=ABSTRACT),
            "http://c.pdf": ScrapeError("is more than 20 MB"),
        }
    )
    told(scraper, [keywords_only, says_too_little, of_another], responses)
    assert scraper.asked == ["http://a", "http://b", "http://b.pdf", "http://c", "http://c.pdf"]


def test_the_report_counts_the_three_most_frequent_reasons_of_refusals(responses: Responses) -> None:
    reasons = {"is more than 20 MB": 1, "is neither HTML nor PDF": 2, "was answered with status 403": 4, "is late": 3}
    told_by_place = {
        f"http://{reason.replace(' ', '-')}/{n}": ScrapeError(reason)
        for reason, count in reasons.items()
        for n in range(count)
    }
    papers = [replace(OPEN, url=place) for place in told_by_place]
    report = told(Told({**told_by_place, "http://a": Found()}), [*papers, replace(OPEN, url="http://a")], responses)
    assert report.pages == 1
    assert report.detail == "4 was answered with status 403, 3 is late, 2 is neither HTML nor PDF"


def test_a_fault_of_our_own_leaves_the_other_pages(responses: Responses, caplog: pytest.LogCaptureFixture) -> None:
    scraper = Told({"http://a": KeyError("title"), "http://b": Found(title=TITLE, abstract=ABSTRACT)})
    papers = [replace(OPEN, url="http://a"), replace(OPEN, url="http://b")]
    report = told(scraper, papers, responses)
    assert (report.stop, report.pages) == (Stop.DONE, 1)
    assert [paper.abstract for paper in complete_from_pages(papers, responses)] == ["", ABSTRACT]
    assert "http://a: a fault of litgrade, not of the page" in caplog.text


def test_when_the_time_is_up_what_was_read_is_kept(responses: Responses) -> None:
    scraper = Told({"http://a": Found(abstract=ABSTRACT)})  # and the second never ends
    papers = [replace(OPEN, url="http://a"), replace(OPEN, url="http://b"), replace(OPEN, url="http://c")]
    report = told(scraper, papers, responses, budget_s=0.2)
    assert (report.stop, report.pages, report.declared) == (Stop.BUDGET, 1, 3)
    assert report.seconds < 5
    assert scraper.asked == ["http://a", "http://b"]


def test_a_fault_that_may_be_gone_another_time_is_not_kept(responses: Responses) -> None:
    papers = [replace(OPEN, url="http://a")]
    report = told(Told({"http://a": PassingError("a has no address")}), papers, responses)
    assert (report.stop, report.pages, report.detail) == (Stop.UNREACHABLE, 0, "1 a has no address")
    assert responses.get(WALK, "http://a") is None
    assert told(Told({"http://a": Found(title=TITLE, abstract=ABSTRACT)}), papers, responses).pages == 1
