"""Preprint servers of the Open Science Framework: words of titles are asked one by one."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.papers import Paper, Query
from pipeline.sources import MalformedError, Page, Request
from source_helpers import source

DAY = datetime.date(2026, 9, 1)
QUERY = Query("q1", "Therapy of couples")


def answer(*records: Any, total: int | None = None, has_next: bool = False) -> bytes:
    links = {"next": "https://elsewhere.org/?page=7" if has_next else None, "meta": {"total": total}}
    return json.dumps({"data": list(records), "links": links}).encode()


def record(identifier: str = "abcde_v1", title: str = "Therapy for couples", **attributes: Any) -> dict[str, Any]:
    return {"id": identifier, "type": "preprints", "attributes": {"title": title, **attributes}}


def asked(query: Query = QUERY, limit: int = 100, name: str = "psyarxiv", **state: Any) -> Request:
    request = source(name).search(query, DAY, limit)
    return replace(request, state=replace(request.state, **state))


def read(body: bytes, name: str = "psyarxiv", **state: Any) -> Page:
    return source(name).read(body, asked(name=name, **state))


def words_asked(text: str, keywords: tuple[str, ...] = ()) -> list[str]:
    """The words of a walk in which every word finds nothing."""
    request: Request | None = source("psyarxiv").search(Query("q", text, keywords), DAY, 10)
    words = []
    while request is not None:
        words.append(request.params["filter[title]"])
        request = source("psyarxiv").read(answer(total=0), request).following
    return words


def mapped(record: dict[str, Any]) -> Paper:
    """A recorded preprint as it stands in a list, kept whatever it is about."""
    query = Query("q", record["attributes"]["title"])
    (paper,) = source("socarxiv").read(answer(record), asked(query, name="socarxiv")).papers
    return paper


def test_a_title_word_of_one_provider_is_asked_with_its_contributors() -> None:
    request = source("edarxiv").search(QUERY, DAY, 10)
    assert request.url == "https://api.osf.io/v2/preprints/"
    assert request.params == {
        "filter[provider]": "edarxiv",
        "filter[title]": "therapy",
        "embed": "contributors",
        "page": "1",
        "page[size]": "100",
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Therapy of couples", ["therapy", "couples"]),
        ("A new view of couples in therapy and of emotion regulation", ["regulation", "couples", "therapy", "emotion"]),
        ('Sleep AND: "(naps)" & R[ü]', ["sleep", "naps", "r", "ü"]),
        ("睡眠", ["睡眠"]),
        ("To be or not to be", ["To be or not to be"]),
    ],
)
def test_the_longest_words_are_asked_in_turn(text: str, words: list[str]) -> None:
    assert words_asked(text) == words


def test_keywords_stand_in_for_a_text_without_telling_words() -> None:
    assert words_asked("How do these", ("window of tolerance",))[0] == "tolerance"


def test_pages_of_a_word_come_before_the_next_word() -> None:
    first = source("psyarxiv", page_size=2).search(Query("q", "emotional couples"), DAY, 100)
    records = [record("aaaaa_v1", "Emotional couples"), record("bbbbb_v1", "Other emotional things")]
    second = source("psyarxiv", page_size=2).read(answer(*records, total=3, has_next=True), first).following
    assert second is not None
    assert (second.params["filter[title]"], second.params["page"]) == ("emotional", "2")
    assert second.url == "https://api.osf.io/v2/preprints/"  # never the host of a link
    page = source("psyarxiv", page_size=2).read(answer(record("ccccc_v1", "Emotional dogs"), total=3), second)
    assert page.following is not None
    assert (page.following.params["filter[title]"], page.following.params["page"]) == ("couples", "1")
    assert page.declared is None  # the totals of words overlap
    last = source("psyarxiv", page_size=2).read(answer(record("ddddd_v1", "Couples"), total=4), page.following)
    assert last.following is None


def test_what_a_word_brings_is_kept_where_title_abstract_and_tags_mention_the_query() -> None:
    query = Query("q", "attachment in couples therapy")  # two of three words are needed
    records = [
        record("aaaaa", "Therapy of dogs", tags=["Attachment"]),
        record("bbbbb", "Therapy of dogs"),
        record("ccccc", "Therapy of dogs", description="On couples."),
    ]
    page = source("psyarxiv").read(answer(*records, total=3), asked(query))
    assert [paper.paper_id for paper in page.papers] == ["psyarxiv:aaaaa", "psyarxiv:ccccc"]
    assert page.received == 3


def test_what_an_earlier_word_has_found_is_not_brought_again() -> None:
    page = read(answer(record(), total=1))
    assert page.following is not None
    again = source("psyarxiv").read(answer(record(), record("fghij_v1"), total=2), page.following)
    assert [paper.paper_id for paper in again.papers] == ["psyarxiv:fghij"]


def test_a_text_without_words_is_asked_once() -> None:
    request = source("psyarxiv").search(Query("q", "."), DAY, 10)
    assert source("psyarxiv").read(answer(record(), total=900, has_next=True), request).following is None


def test_an_empty_page_before_the_total_is_malformed() -> None:
    with pytest.raises(MalformedError, match="empty page at 100 of 101"):
        read(answer(total=101), page=2)
    assert read(answer(total=0)).papers == ()


def test_a_record_is_mapped_field_by_field() -> None:
    def contributor(index: int, name: str | None, bibliographic: bool = True, unregistered: str | None = None) -> Any:
        attributes = {"index": index, "bibliographic": bibliographic, "unregistered_contributor": unregistered}
        users = {"data": {"attributes": {"full_name": name}}} if name else {"errors": [{"detail": "none"}]}
        return {"attributes": attributes, "embeds": {"users": users}}

    contributors = [contributor(1, None, unregistered="Émile  Durkheim"), contributor(0, "Ada Lovelace")]
    full = record(
        "xyz12_v3",
        description="An <b>abstract</b> on couples.",
        date_published="2024-02-03T10:00:00.123456Z",
        original_publication_date="2020-01-01T00:00:00",
        doi="10.1234/Journal.1",
        tags=["couples", "Therapy", "couples"],
        subjects=[
            [{"id": "1", "text": "Social Sciences"}, {"id": "2", "text": "Psychology"}],
            [{"text": "Psychology"}],
        ],
    ) | {
        "links": {"html": "https://osf.io/xyz12_v3/", "preprint_doi": "https://doi.org/10.31234/osf.io/XYZ12_v3"},
        "relationships": {"primary_file": {"data": {"id": "f1", "type": "files"}}},
        "embeds": {"contributors": {"data": [*contributors, contributor(2, "An Administrator", bibliographic=False)]}},
    }
    (paper,) = read(answer(full)).papers
    assert (paper.paper_id, paper.source) == ("psyarxiv:xyz12", "psyarxiv")
    assert (paper.doi, paper.published_as) == ("10.31234/osf.io/xyz12", "10.1234/journal.1")
    assert (paper.title, paper.abstract) == ("Therapy for couples", "An abstract on couples.")
    assert paper.authors == ("Ada Lovelace", "Émile Durkheim")
    assert (paper.publication_date, paper.year) == ("2024-02-03", 2024)
    assert paper.disciplines == ("Social Sciences", "Psychology")
    assert paper.keywords == ("couples", "Therapy")
    assert (paper.document_type, paper.venue, paper.journal_name) == ("preprint", "PsyArXiv", None)
    assert (paper.url, paper.pdf_url) == ("https://osf.io/xyz12_v3/", "https://osf.io/download/f1/")
    assert (paper.is_open_access, paper.pdf_available, paper.citation_count) == (True, True, None)


def test_the_highest_version_on_a_page_is_kept() -> None:
    versions = [record(f"abcde_v{n}", title=f"Therapy for couples {n}") for n in (2, 10, 9)]
    assert [paper.title for paper in read(answer(*versions)).papers] == ["Therapy for couples 10"]


@pytest.mark.parametrize("withdrawn", [{"date_withdrawn": "2024-01-01T00:00:00"}, {"reviews_state": "withdrawn"}])
def test_withdrawn_preprints_are_left_out(withdrawn: dict[str, str]) -> None:
    page = read(answer(record(**withdrawn)))
    assert (page.papers, page.received) == ((), 1)


@pytest.mark.parametrize("odd", [None, 7, [], {}, {"id": 5}, {"id": "vwxyz", "attributes": None}, record("a b")])
def test_a_record_that_is_none_does_not_lose_the_page(odd: Any) -> None:
    sparse = record(tags=None, subjects=[None, [3]], description=None, date_published=7) | {"embeds": [], "links": None}
    page = read(answer(odd, sparse | {"relationships": {"primary_file": {"links": {}}}}))
    (paper,) = page.papers
    assert (paper.abstract, paper.authors, paper.keywords, paper.disciplines) == ("", (), (), ())
    assert (paper.year, paper.doi, paper.url, paper.pdf_url, paper.pdf_available) == (None, None, None, None, None)
    assert page.received == 2


@pytest.mark.parametrize("body", [b"", b"<html></html>", b"[]", b"{}", b'{"data": {}}', answer(record())[:-9]])
def test_what_is_no_list_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedError):
        read(body)


@pytest.mark.parametrize(
    ("status", "body", "retries"),
    [
        (429, b"Request was throttled. Expected available in 3540 seconds.", False),
        (429, b"Request was throttled. Expected available in 1 second.", True),
        (429, b"", None),
        (503, b"Expected available in 3540 seconds.", None),
    ],
)
def test_spent_requests_of_an_hour_are_not_waited_for(status: int, body: bytes, retries: bool | None) -> None:
    assert source("psyarxiv").retries(status, {}, body) is retries


def loaded(shared_responses: Path, file: str) -> Any:
    return json.loads((shared_responses / "osf" / file).read_bytes())


def test_recorded_pages_follow_each_other(shared_responses: Path) -> None:
    reader = source("psyarxiv", page_size=3)
    query = Query("q", "python package", keywords=("educational", "organizational", "demographic", "investigating"))
    bodies = [
        (shared_responses / "osf" / f"preprints_list_{part}.json").read_bytes() for part in ("page1", "page2_last")
    ]
    first = reader.read(bodies[0], reader.search(query, DAY, 100))
    assert first.following is not None
    assert first.following.params["page"] == "2"
    second = reader.read(bodies[1], first.following)
    assert second.following is not None
    assert (second.following.params["filter[title]"], second.following.params["page"]) == ("python", "1")
    papers = (*first.papers, *second.papers)
    assert [paper.paper_id for paper in papers] == [
        f"psyarxiv:{name}" for name in ("vfpy5", "ukhc7", "cb5k7", "54s7k", "fzacq")
    ]
    assert [paper.published_as for paper in papers][1:3] == [None, "10.31014/aior.1992.07.04.628"]
    assert papers[1].authors == ("Thomas Nygren", "Maria Rasmusson", "Malin Tväråna")
    assert papers[1].doi == "10.31219/osf.io/ukhc7"
    assert (papers[1].abstract, papers[1].disciplines) == ("", ("Education",))
    assert papers[1].pdf_url == "https://osf.io/download/ukhc7file/"


def test_a_recorded_versioned_preprint_is_mapped(shared_responses: Path) -> None:
    paper = mapped(loaded(shared_responses, "preprint_detail.json")["data"])
    assert (paper.paper_id, paper.doi, paper.published_as) == ("socarxiv:hqb2p", "10.31235/osf.io/hqb2p", None)
    assert (paper.publication_date, paper.venue) == ("2017-02-03", "SocArXiv")
    assert (paper.authors, paper.disciplines, len(paper.keywords)) == ((), (), 5)
    assert paper.pdf_url == "https://osf.io/download/5894204f594d900200ed23f2/"
    assert paper.url == "https://osf.io/preprints/socarxiv/hqb2p_v1/"


def test_a_recorded_preprint_of_old_shape_is_mapped(shared_responses: Path) -> None:
    paper = mapped(loaded(shared_responses, "preprint_recorded_indonesian.json")["data"])
    assert (paper.paper_id, paper.doi) == ("socarxiv:egcsk", "10.31219/osf.io/egcsk")
    assert paper.publication_date == "2021-07-19"
    assert paper.disciplines == ("Arts and Humanities", "Religion", "Christianity")
    assert len(paper.keywords) == 4


def test_a_documented_list_is_mapped(shared_responses: Path) -> None:
    body = (shared_responses / "osf/preprints_list_documented.json").read_bytes()
    page = source("socarxiv", page_size=10).read(body, asked(Query("q", "test"), name="socarxiv"))
    (paper,) = page.papers
    assert (paper.paper_id, paper.doi) == ("socarxiv:hqb2p", "10.5072/fk2osf.io/hqb2p")
    assert (paper.published_as, paper.pdf_url) == ("10.1371/journal.pbio.1002456", None)
    assert page.following is not None
    assert page.following.params["page"] == "2"


def test_documented_contributors_are_authors(shared_responses: Path) -> None:
    paper = mapped(record() | {"embeds": {"contributors": loaded(shared_responses, "contributors.json")}})
    assert paper.authors == ("Freddie Mercury0", "Freddie Mercury1")


def test_documented_versions_without_titles_are_no_papers(shared_responses: Path) -> None:
    page = read((shared_responses / "osf/versions.json").read_bytes())
    assert (page.papers, page.received) == ((), 2)


def test_the_withdrawn_and_the_empty_list_hold_no_paper(shared_responses: Path) -> None:
    withdrawn = (shared_responses / "osf/preprint_withdrawn.json").read_bytes()
    page = source("psyarxiv").read(withdrawn, asked(Query("q", "withdrawn example")))
    assert (page.papers, page.received) == ((), 1)
    empty = read((shared_responses / "osf/preprints_list_empty.json").read_bytes())
    assert (empty.papers, empty.received) == ((), 0)


def test_recorded_errors_are_no_lists(shared_responses: Path) -> None:
    throttled = (shared_responses / "osf/error_429_throttled.json").read_bytes()
    assert source("psyarxiv").retries(429, {}, throttled) is False
    for body in (throttled, (shared_responses / "osf/error_400_filter.json").read_bytes()):
        with pytest.raises(MalformedError, match="errors"):
            read(body)


def test_a_page_that_comes_again_is_told():
    psyarxiv = source("psyarxiv")
    body = json.dumps({"data": [{"id": "ab1cd_v1"}], "links": {"next": "x", "meta": {"total": 300}}}).encode()
    first = psyarxiv.read(body, psyarxiv.search(Query("q", "emotional dogs"), DAY, 10))
    with pytest.raises(MalformedError, match="sent the page before again at 100 of 300"):
        psyarxiv.read(body, first.following)
