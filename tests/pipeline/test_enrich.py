from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import fake_sources as fake
from collecting_helpers import quick, recent_papers, set_keys
from fake_sources import FakeSources, MadeUp
from pipeline.collecting.client import Client
from pipeline.collecting.reports import Report, Stop
from pipeline.collecting.responses import Responses
from pipeline.enrich import Enrich, Enrichment, open_enrichment_reports
from pipeline.errors import UserError
from pipeline.merging.merge import Merge, merge_papers
from pipeline.papers import Paper
from pipeline.scraping.open_pages import WALK
from source_helpers import source

MADE_UP = recent_papers(95)
BY_DOI = {"impact": "none", "scrape": False}
IMPACT = {"by_doi": False, "scrape": False}


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys(monkeypatch)


def known(made_up: MadeUp, **fields: Any) -> Paper:
    """A paper as a search has found it: title, year and DOI."""
    values = {"title": made_up.title, "year": made_up.year, "doi": made_up.doi, "source": "doaj", **fields}
    return merge_papers([Paper(f"doaj:{made_up.number}", **values)])[0]


def complete(
    papers: Sequence[Paper],
    server: FakeSources,
    responses: Responses,
    *,
    names: Sequence[str] = ("crossref", "unpaywall"),
    ranks: Mapping[str, int] | None = None,
    budget_s: float = 30.0,
    is_replay: bool = False,
    **settings: Any,
) -> tuple[tuple[Paper, ...], list[Report]]:
    """The papers completed, and the reports."""
    sources = {
        name: source(name, base_url=server.base_urls[name], interval_s=0.0) for name in {*names, "openalex", "crossref"}
    }

    async def run() -> tuple[tuple[Paper, ...], list[Report]]:
        async with Client(quick(), "1") as client:
            enrichment = Enrichment(
                Enrich(**settings),
                Merge(),
                sources,
                names,
                responses,
                budget_s,
                ranks or {},
                None if is_replay else client,
            )
            return await enrichment.complete(papers), enrichment.reports

    return asyncio.run(run())


# By DOI


def test_what_a_paper_lacks_comes_from_the_sources_that_know_its_doi(responses: Responses) -> None:
    made_up = next(paper for paper in MADE_UP if paper.is_open and paper.number % 4)
    with FakeSources({"crossref": MADE_UP}, unpaywall=MADE_UP) as server:
        (paper,), reports = complete([known(made_up)], server, responses, **BY_DOI)
    assert (paper.venue, paper.abstract) == (made_up.journal, made_up.abstract)
    assert paper.is_open_access is True
    assert paper.records == (f"crossref:{made_up.doi}", f"doaj:{made_up.number}", f"unpaywall:{made_up.doi}")
    assert paper.provenance["abstract"] == f"crossref:{made_up.doi}"
    assert paper.provenance["is_open_access"] == f"unpaywall:{made_up.doi}"
    assert [(report.source, report.stop, report.records, report.detail) for report in reports] == [
        ("crossref by DOI", Stop.DONE, 1, ""),
        ("unpaywall by DOI", Stop.DONE, 1, ""),
    ]


@pytest.mark.parametrize(
    "wrong",
    [{"title": "Bees and nectar in two summers of rain"}, {"year": 2024}, {"year": 2028}],
    ids=["title", "earlier", "later"],
)
def test_an_answer_about_another_title_or_year_leaves_the_paper_untouched(
    responses: Responses, wrong: dict[str, Any]
) -> None:
    paper = known(MADE_UP[1], **wrong)
    assert MADE_UP[1].year == 2026
    with FakeSources({"crossref": MADE_UP}, unpaywall=MADE_UP) as server:
        completed, reports = complete([paper], server, responses, **BY_DOI)
    assert completed == (paper,)
    assert [(report.records, report.detail) for report in reports] == [
        (0, "1 answers left out: about another title or year")
    ] * 2


@pytest.mark.parametrize("near", [{"year": 2025}, {"year": 2027}, {"year": None}, {"title": ""}])
def test_a_year_of_difference_or_an_unknown_one_is_no_other_paper(responses: Responses, near: dict[str, Any]) -> None:
    paper = known(MADE_UP[1], **near)
    with FakeSources({"crossref": MADE_UP}) as server:
        (completed,), reports = complete([paper], server, responses, names=["crossref"], **BY_DOI)
    assert completed.venue == MADE_UP[1].journal
    assert (reports[0].records, reports[0].detail) == (1, "")


def test_crossref_is_asked_for_forty_at_a_time_the_best_ranked_first(responses: Responses) -> None:
    papers = [known(made_up) for made_up in MADE_UP]
    ranks = {f"doaj:{made_up.number}": len(MADE_UP) - i for i, made_up in enumerate(MADE_UP)}  # the last is the best
    with FakeSources({"crossref": MADE_UP}) as server:
        completed, (report,) = complete(papers, server, responses, names=["crossref"], ranks=ranks, **BY_DOI)
    assert [int(seen.params["rows"]) for seen in server.requests] == [40, 40, 15]
    asked = [part.removeprefix("doi:") for seen in server.requests for part in seen.params["filter"].split(",")]
    assert asked == [made_up.doi for made_up in reversed(MADE_UP)]
    assert (report.records, report.pages) == (95, 3)
    assert all(paper.venue for paper in completed)


def test_only_papers_that_lack_something_and_have_a_doi_are_asked_for(responses: Responses) -> None:
    papers = [
        known(MADE_UP[1]),
        replace(known(MADE_UP[2]), records=(f"unpaywall:{MADE_UP[2].doi}",)),  # asked already
        known(MADE_UP[3], is_open_access=True, pdf_url="http://bees.example/3.pdf"),  # lacks nothing of this
        known(MADE_UP[6], is_open_access=False, pdf_url="http://bees.example/6.pdf"),  # closed is known, too
        known(MADE_UP[4], doi=None),
        known(MADE_UP[5], doi="10.48550/arxiv.2609.00001"),
    ]
    with FakeSources({}, unpaywall=MADE_UP) as server:
        complete(papers, server, responses, names=["unpaywall"], **BY_DOI)
    assert [seen.path for seen in server.requests] == [f"/v2/{MADE_UP[1].doi}"]


def test_only_chosen_sources_are_asked(responses: Responses) -> None:
    with FakeSources({"crossref": MADE_UP}, unpaywall=MADE_UP) as server:
        _, reports = complete([known(MADE_UP[1])], server, responses, names=["unpaywall", "doaj"], **BY_DOI)
    assert {seen.source for seen in server.requests} == {"unpaywall"}
    assert [report.source for report in reports] == ["unpaywall by DOI"]


def test_a_source_that_fails_leaves_the_other(responses: Responses, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UNPAYWALL_EMAIL")
    with FakeSources({"crossref": MADE_UP}, unpaywall=MADE_UP) as server:
        (paper,), (crossref, unpaywall) = complete([known(MADE_UP[1])], server, responses, **BY_DOI)
    assert (crossref.stop, crossref.records) == (Stop.DONE, 1)
    assert (unpaywall.stop, unpaywall.detail) == (Stop.NO_KEY, "set the environment variable UNPAYWALL_EMAIL")
    assert paper.venue == MADE_UP[1].journal


def test_the_reason_of_a_failure_stands_before_what_was_left_out(responses: Responses) -> None:
    papers = [known(made_up, year=1999) for made_up in MADE_UP[:41]]
    faults = {"crossref": [fake.reply(403, b"no").at(1, times=9)]}
    with FakeSources({"crossref": MADE_UP}, faults=faults) as server:
        _, (report,) = complete(papers, server, responses, names=["crossref"], **BY_DOI)
    assert report.stop == Stop.HTTP_ERROR
    assert report.detail == ("1 look-ups failed: HTTP 403: 'no'; 40 answers left out: about another title or year")


def test_a_replay_completes_alike_without_asking(responses: Responses) -> None:
    papers = [known(made_up) for made_up in MADE_UP[:9]]
    with FakeSources({"crossref": MADE_UP}, unpaywall=MADE_UP, venues={MADE_UP[0].issn: 3.2}) as server:
        live = complete(papers, server, responses, scrape=False)
        n_asked = len(server.requests)
        again = complete(papers, server, responses, scrape=False, is_replay=True)
        once_more = complete(papers, server, responses, scrape=False)
        assert len(server.requests) == n_asked > 9
    assert live == again == once_more
    assert any(paper.impact_factor == 3.2 for paper in live[0])


def test_papers_that_come_later_are_asked_for_and_no_other(responses: Responses) -> None:
    first, both = [known(MADE_UP[1])], [known(MADE_UP[1]), known(MADE_UP[2])]
    with FakeSources({}, unpaywall=MADE_UP) as server:
        complete(first, server, responses, names=["unpaywall"], **BY_DOI)
        open_enrichment_reports(responses)
        _, (report,) = complete(both, server, responses, names=["unpaywall"], **BY_DOI)
    assert [seen.path for seen in server.requests] == [f"/v2/{MADE_UP[1].doi}", f"/v2/{MADE_UP[2].doi}"]
    assert report.pages == 2


def test_a_budget_ends_look_ups(responses: Responses) -> None:
    papers = [known(made_up) for made_up in MADE_UP[:60]]
    with FakeSources({"crossref": MADE_UP}, faults={"crossref": [fake.hang().at(1)]}) as server:
        completed, (report,) = complete(papers, server, responses, names=["crossref"], budget_s=3.0, **BY_DOI)
    assert (report.stop, report.records, report.detail) == (Stop.BUDGET, 40, "")
    assert sum(bool(paper.venue) for paper in completed) == 40


def test_look_ups_by_doi_that_take_all_their_time_leave_that_of_venues(responses: Responses) -> None:
    papers = [known(MADE_UP[1], issn="0028-0836")]
    faults = {"crossref": [fake.hang()]}
    with FakeSources({"crossref": MADE_UP}, venues={"0028-0836": 20.5}, faults=faults) as server:
        (paper,), reports = complete(papers, server, responses, names=["crossref"], budget_s=3.0, scrape=False)
    assert [(report.source, report.stop) for report in reports] == [
        ("crossref by DOI", Stop.UNREACHABLE),
        ("openalex venues", Stop.DONE),
    ]
    assert paper.impact_factor == 20.5


def test_look_ups_that_were_not_asked_after_many_failures_are_told(responses: Responses) -> None:
    papers = [known(made_up) for made_up in MADE_UP[:20]]
    with FakeSources({}, unpaywall=MADE_UP, faults={"unpaywall": [fake.reply(403, b"no").at(0, times=99)]}) as server:
        _, (report,) = complete(papers, server, responses, names=["unpaywall"], **BY_DOI)
        n_asked = len(server.requests)
    assert 5 <= n_asked < 20
    assert report.stop == Stop.HTTP_ERROR
    assert report.detail == f"{n_asked} look-ups failed, {20 - n_asked} were not asked: HTTP 403: 'no'"


def test_nothing_is_asked_where_nothing_is_wanted(responses: Responses) -> None:
    papers = (known(MADE_UP[1]),)
    with FakeSources({}) as server:
        assert complete(papers, server, responses, by_doi=False, **BY_DOI) == (papers, [])
        assert server.requests == []


# Impact


def test_the_impact_of_a_venue_comes_by_any_of_its_issns(responses: Responses) -> None:
    by_issn, by_eissn = known(MADE_UP[1], issn="0028-0836"), known(MADE_UP[2], issn="1332-098X, 1476-4687")
    unknown, none = known(MADE_UP[3], issn="1234-5679"), known(MADE_UP[4])
    has_one = known(MADE_UP[5], issn="0028-0836", impact_factor=1.5)
    venues = {"0028-0836": 20.5, "1476-4687": 4.0}
    with FakeSources({}, venues=venues) as server:
        papers, (report,) = complete([by_issn, by_eissn, unknown, none, has_one], server, responses, **IMPACT)
    assert [paper.impact_factor for paper in papers] == [20.5, 4.0, None, None, 1.5]
    assert papers[0].provenance["impact_factor"] == "openalex:0028-0836"
    assert papers[1].provenance["impact_factor"] == "openalex:1476-4687"
    assert papers[2:] == (unknown, none, has_one)
    assert (report.source, report.stop, report.records) == ("openalex venues", Stop.DONE, 2)
    (seen,) = server.requests
    assert seen.params["filter"] == "issn:0028-0836|1234-5679|1332-098X|1476-4687"


def test_a_spent_budget_of_openalex_is_asked_once_and_leaves_impacts_unknown(responses: Responses) -> None:
    spent = fake.reply(429, b"{}", headers={"X-RateLimit-Remaining": "0"})
    with FakeSources({}, faults={"openalex": [spent]}) as server:
        (paper,), (report,) = complete([known(MADE_UP[1], issn="0028-0836")], server, responses, **IMPACT)
    assert paper.impact_factor is None
    assert (report.stop, report.records, len(server.requests)) == (Stop.RATE_LIMITED, 0, 1)


def test_the_impact_of_a_table_is_kept_for_a_replay(responses: Responses, tmp_path: Path) -> None:
    table = tmp_path / "impacts.csv"
    table.write_text("issn,value\n0028-0836,64.8\n")
    papers = [known(MADE_UP[1], issn="1234-5679, 0028-0836"), known(MADE_UP[2], issn="1234-5679")]
    settings = {**IMPACT, "impact": "csv", "impact_csv": table}
    with FakeSources({}) as server:
        first, _ = complete(papers, server, responses, **settings)
        table.unlink()
        again, _ = complete(papers, server, responses, is_replay=True, **settings)
        assert server.requests == []
    assert [paper.impact_factor for paper in first] == [64.8, None]
    assert first[0].provenance["impact_factor"] == "csv:0028-0836"
    assert again == first


@pytest.mark.parametrize(
    "settings",
    [
        BY_DOI,
        {**IMPACT, "impact": "openalex"},
        {**IMPACT, "impact": "csv", "impact_csv": Path("impacts.csv")},
        {**IMPACT, "impact": "impact_factor"},
        {"by_doi": False, "impact": "none"},
    ],
    ids=["by DOI", "openalex", "csv", "package", "pages"],
)
def test_a_replay_of_what_was_never_finished_says_so_and_writes_nothing(
    responses: Responses, settings: dict[str, Any]
) -> None:
    frozen = Responses(responses.path, is_read_only=True)
    paper = known(MADE_UP[1], issn="0028-0836")
    with FakeSources({}) as server, pytest.raises(UserError, match="not collected to the end"):
        complete([paper], server, frozen, is_replay=True, **settings)
    frozen.close()
    assert server.requests == []


def test_a_table_must_be_named() -> None:
    with pytest.raises(ValidationError, match=r"give enrich\.impact_csv=FILE"):
        Enrich(impact="csv")


def test_a_bad_contact_address_is_one_error(responses: Responses, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNPAYWALL_EMAIL", "me@\nuni.example")
    with (
        FakeSources({"crossref": MADE_UP}, latency_s=0.05) as server,
        pytest.raises(UserError, match="the value of UNPAYWALL_EMAIL"),
    ):
        complete([known(MADE_UP[1])], server, responses, **BY_DOI)


# Open pages


def test_pages_inside_our_own_network_are_refused_and_told(responses: Responses) -> None:
    with FakeSources({}) as server:
        paper = known(MADE_UP[1], is_open_access=True, url=f"{server.url}/inside", venue="Bees")
        completed, (report,) = complete([paper], server, responses, by_doi=False, impact="none")
        assert server.requests == []
        kept = responses.get(WALK, f"{server.url}/inside")
    assert completed == (paper,)
    assert (report.source, report.stop, report.pages, report.records) == ("pages", Stop.DONE, 0, 0)
    assert report.detail == "1 127.0.0.1 leads to 127.0.0.1, which is not public"
    assert kept is not None
    assert (kept.status, kept.body) == (0, b"127.0.0.1 leads to 127.0.0.1, which is not public")
