"""The imitated sources, walked as their documentation says, and read by the modules that read the real ones."""

from __future__ import annotations

import datetime
import gzip
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import httpx
import pytest
from defusedxml import ElementTree
from rapidfuzz import fuzz, process

import fake_sources as fake
from conftest import ROOT
from fake_sources import FAMILIES, QUERY_TEXT, FakeSources, MadeUp, made_up_papers, preprint_doi
from fake_sources.ids import arxiv_id, pmid
from pipeline.identifiers import normalize_doi
from pipeline.papers import Paper, Query
from pipeline.sources import Page, Request
from source_helpers import source

CLIENT = httpx.Client()
DAY = datetime.date(2026, 9, 30)
N = 130  #: more than a page of every source
SEARCHABLE = tuple(name for name in FAMILIES if name != "unpaywall")
PREPRINTS = ("arxiv", "biorxiv", "medrxiv", "psyarxiv", "socarxiv", "edarxiv")
#: Posted in the twenty days before the day of the search, because bioRxiv is asked for the last month.
PAPERS = {
    name: made_up_papers(N, seed=seed, newest=DAY - datetime.timedelta(days=9), days=20)
    for seed, name in enumerate(SEARCHABLE)
}
VENUES = {"1234-5679": 3.2, "1332-098X": 0.5}
TOKENS = {"X-ELS-APIKey": "key", "X-ELS-Insttoken": "token", "X-ApiKey": "key"}
ATOM = {"a": "http://www.w3.org/2005/Atom", "o": "http://a9.com/-/spec/opensearch/1.1/"}


@pytest.fixture(scope="module", autouse=True)
def _close_client() -> Iterator[None]:
    yield
    CLIENT.close()


@pytest.fixture(scope="module")
def server() -> Iterator[FakeSources]:
    with FakeSources(PAPERS, unpaywall=PAPERS["crossref"], venues=VENUES) as server:
        yield server
    assert server.errors == []


@pytest.fixture
def faulty() -> Iterator[Callable[..., FakeSources]]:
    """Start a server of one source with these faults."""
    servers: list[FakeSources] = []

    def start(name: str, *faults: fake.Fault, papers: list[MadeUp] | None = None) -> FakeSources:
        servers.append(FakeSources({name: PAPERS[name] if papers is None else papers}, faults={name: faults}))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()
        assert server.errors == []


def get(server: FakeSources, path: str, headers: dict[str, str] | None = None, **params: Any) -> httpx.Response:
    return CLIENT.get(f"{server.url}/{path}", params=params, headers=headers)


def titles(name: str) -> list[str]:
    return sorted(paper.title for paper in PAPERS[name])


#: A page of each source that begins with record {start}.
PAGES = {
    "arxiv": "api/query?search_query=all:flutter&start={start}&max_results=30",
    **dict.fromkeys(("biorxiv", "medrxiv"), "details/{name}/2026-08-31/2026-09-30/{start}/json"),
    **dict.fromkeys(("psyarxiv", "socarxiv", "edarxiv"), "v2/preprints/?page={page}&page[size]=30"),
    "crossref": "works?query=flutter&offset={start}&rows=30",
    "openalex": "works?search=flutter&page={page}&per-page=30",
    "semantic_scholar": "graph/v1/paper/search?query=flutter&fields=externalIds&offset={start}&limit=30",
    "doaj": "api/search/articles/flutter?page={page}&pageSize=30",
    "pubmed": "entrez/eutils/esearch.fcgi?db=pubmed&term=flutter&retmode=json&retstart={start}&retmax=30",
    "scopus": "content/search/scopus?query=flutter&start={start}&count=30",
    "wos": "apis/wos-starter/v1/documents?q=flutter&page={page}&limit=30",
    "unpaywall": "v2/10.5555/made-up.6.0?email=me@flutter.example",
}


def asked(server: FakeSources, name: str, start: int = 0, **options: Any) -> httpx.Response:
    page = PAGES[name].format(name=name, start=start, page=1 + start // 30)
    return CLIENT.get(f"{server.url}/{name}/{page}", headers=TOKENS, **options)


def papers_in(answer: httpx.Response, name: str) -> list[MadeUp]:
    """The papers of which the answer holds an id."""
    text = answer.text.lower()
    return [paper for paper in PAPERS[name] if any(own in text for own in ids_of(paper, name))]


def ids_of(paper: MadeUp, name: str) -> tuple[str, ...]:
    return (arxiv_id(paper),) if name == "arxiv" else (preprint_doi(name, paper), paper.doi, pmid(paper))


# Walks as the documentation of each source has them. Each returns the titles that arrived.


def walk_arxiv(server: FakeSources, name: str) -> list[str]:
    found: list[str] = []
    while True:
        answer = get(server, "arxiv/api/query", search_query="all:flutter", start=len(found), max_results=50)
        feed = ElementTree.fromstring(answer.content)
        found += [" ".join(title.text.split()) for title in feed.iterfind("a:entry/a:title", ATOM)]
        if len(found) >= int(feed.findtext("o:totalResults", namespaces=ATOM)):
            return found


def walk_rxiv(server: FakeSources, name: str) -> list[str]:
    cursor, found = 0, {}
    while True:
        page = get(server, f"{name}/details/{name}/2026-08-31/2026-09-30/{cursor}/json").json()
        found |= {(record["doi"], record["version"]): record["title"] for record in page["collection"]}
        cursor += len(page["collection"])
        if cursor >= int(page["messages"][0]["total"]):
            assert cursor == len(found), "a version came twice"
            return [title for (_, version), title in found.items() if version == "1"]


def walk_osf(server: FakeSources, name: str) -> list[str]:
    params = {"filter[provider]": name, "filter[title]": "FLUTTER", "page[size]": "50", "embed": "contributors"}
    found: list[str] = []
    while True:
        page = get(server, f"{name}/v2/preprints/", **params).json()
        found += [record["attributes"]["title"] for record in page["data"]]
        if page["links"]["next"] is None:
            assert len(found) == page["links"]["meta"]["total"]
            return found
        params = {key: values[0] for key, values in parse_qs(urlsplit(page["links"]["next"]).query).items()}


def walk_crossref(server: FakeSources, name: str) -> list[str]:
    cursor, found = "*", []
    while True:
        answer = get(server, "crossref/works", **{"query.bibliographic": QUERY_TEXT, "rows": 50, "cursor": cursor})
        message = answer.json()["message"]
        found += message["items"]
        if not message["items"]:
            return [truth.title for truth in PAPERS[name] for work in found if work["DOI"].lower() == truth.doi]
        cursor = message["next-cursor"]


def walk_openalex(server: FakeSources, name: str) -> list[str]:
    params, found = {"search": "flutter OR programming", "per-page": "50", "cursor": "*"}, []
    while params["cursor"]:
        page = get(server, "openalex/works", **params).json()
        found += [work["title"] for work in page["results"]]
        params["cursor"] = page["meta"]["next_cursor"]
    return found


def walk_semantic_scholar(server: FakeSources, name: str) -> list[str]:
    offset, found = 0, []
    while offset is not None:
        page = get(server, "semantic_scholar/graph/v1/paper/search", query="flutter", offset=offset, limit=50).json()
        found += [paper["title"] for paper in page["data"]]
        offset = page.get("next")
    return found


def walk_doaj(server: FakeSources, name: str) -> list[str]:
    found, path = [], "doaj/api/search/articles/" + quote('flutter OR "learning system"', safe="")
    for number in range(1, 11):
        page = get(server, path, page=number, pageSize=50).json()
        found += [record["bibjson"]["title"] for record in page["results"]]
        if "next" not in page:
            break
    return found


def walk_pubmed(server: FakeSources, name: str) -> list[str]:
    start, found = 0, []
    while True:
        params = {"db": "pubmed", "term": "flutter[tiab]", "retmode": "json", "retstart": start, "retmax": 50}
        search = get(server, "pubmed/entrez/eutils/esearch.fcgi", **params).json()["esearchresult"]
        ids = ",".join(search["idlist"])
        records = get(server, "pubmed/entrez/eutils/efetch.fcgi", db="pubmed", id=ids, retmode="xml").content
        articles = ElementTree.fromstring(records).iterfind("PubmedArticle/MedlineCitation/Article/ArticleTitle")
        found += ["".join(title.itertext()).removesuffix(".") for title in articles]
        start += int(search["retmax"])
        if start >= int(search["count"]):
            return found


def walk_scopus(server: FakeSources, name: str) -> list[str]:
    start, found = 0, []
    while True:
        params = {"query": "TITLE-ABS-KEY(flutter)", "view": "COMPLETE", "start": start, "count": 25}
        results = get(server, "scopus/content/search/scopus", TOKENS, **params).json()["search-results"]
        found += [entry["dc:title"] for entry in results["entry"]]
        start += len(results["entry"])
        if start >= int(results["opensearch:totalResults"]):
            return found


def walk_wos(server: FakeSources, name: str) -> list[str]:
    found: dict[str, str] = {}
    known = {paper.title.upper(): paper.title for paper in PAPERS[name]}
    for number in range(1, 11):
        page = get(server, "wos/apis/wos-starter/v1/documents", TOKENS, q="TS=(flutter)", limit=50, page=number).json()
        found |= {hit["uid"]: known[hit["title"].upper()] for hit in page["hits"]}
        if number * 50 >= page["metadata"]["total"]:
            break
    return list(found.values())


WALKS = {
    "arxiv": walk_arxiv,
    **dict.fromkeys(("biorxiv", "medrxiv"), walk_rxiv),
    **dict.fromkeys(("psyarxiv", "socarxiv", "edarxiv"), walk_osf),
    "crossref": walk_crossref,
    "openalex": walk_openalex,
    "semantic_scholar": walk_semantic_scholar,
    "doaj": walk_doaj,
    "pubmed": walk_pubmed,
    "scopus": walk_scopus,
    "wos": walk_wos,
}


@pytest.mark.parametrize("name", SEARCHABLE)
def test_a_walk_by_the_book_brings_every_record_once(server: FakeSources, name: str) -> None:
    assert sorted(WALKS[name](server, name)) == titles(name)


# The modules of the project against the same server.


def fetched(server: FakeSources, reader: Any, request: Request) -> Page:
    """Send one request as the client would, and follow what the module asks instead of a refused one."""
    keys = [(credential, "me@flutter.example") for credential in reader.credentials]
    headers = {key.header: key.prefix + value for key, value in keys if key.header}
    params = {**request.params, **{key.param: value for key, value in keys if key.param}}
    answer = CLIENT.get(httpx.URL(request.url).copy_merge_params(params), headers=headers)
    if answer.status_code == 200:
        return reader.read(answer.content, request)
    return Page((), following=reader.instead(answer.status_code, answer.content, request))


def found_by(server: FakeSources, name: str, query: str = QUERY_TEXT) -> list[Paper]:
    reader = source(name, base_url=server.base_urls[name])
    request, papers = reader.search(Query("q", query), DAY, 1000), []
    for _ in range(100):
        page = fetched(server, reader, request)
        papers += page.papers
        if page.following is None:
            return papers
        request = page.following
    raise AssertionError(f"{name} does not end")


def plain(title: str) -> str:
    return title.casefold().removesuffix(".")


def untrue(name: str, paper: Paper, truth: MadeUp) -> list[str]:
    """Return the fields of a paper that say something else than the truth; unknown ones say nothing."""
    own = preprint_doi(name, truth) if name in PREPRINTS else truth.doi
    words = {word.strip(".:") for word in truth.abstract.split()}
    said = {
        "source": paper.source == name,
        "doi": paper.doi in (own, None),
        "year": paper.year in (truth.year, None),
        "publication_date": (truth.date + datetime.timedelta(days=9)).isoformat() == paper.publication_date
        or truth.date.isoformat().startswith(paper.publication_date or ""),
        "abstract": not paper.abstract or words <= {word.strip(".:") for word in paper.abstract.split()},
        "authors": truth.authors[0][1] in paper.authors[0],
        "authors_in_number": len(paper.authors) in (len(truth.authors), 1),
        "citation_count": paper.citation_count in (truth.citation_count, None),
        "issn": truth.issn in (paper.issn or truth.issn),
        "journal_name": plain(paper.journal_name or truth.journal) == plain(truth.journal),
        "journal_volume": paper.journal_volume in (truth.volume, None),
        "journal_pages": (paper.journal_pages or str(truth.first_page)).startswith(str(truth.first_page)),
        "keywords": {plain(word) for word in paper.keywords} <= set(truth.keywords),
        "published_as": paper.published_as in (truth.doi if truth.is_published else None, None),
        "preprints": set(paper.preprints) <= {preprint_doi("arxiv", truth)},
        "is_open_access": name in PREPRINTS or name == "doaj" or paper.is_open_access in (truth.is_open, None),
        "document_type": paper.document_type in ("preprint" if name in PREPRINTS else "article", None),
        "references": name == "openalex" or set(paper.references) <= set(truth.references),
    }
    return [f"{field} of {paper}" for field, is_true in said.items() if not is_true]


SETTINGS = {file.stem: file.read_text(encoding="utf-8") for file in sorted((ROOT / "conf" / "source").glob("*.yaml"))}
SEARCHED = [name for name, text in SETTINGS.items() if "kind: by DOI" not in text]


@pytest.mark.parametrize("name", SEARCHED)
def test_the_module_of_a_source_finds_every_paper(server: FakeSources, name: str) -> None:
    found = found_by(server, name)
    assert {plain(paper.title) for paper in found} == {plain(title) for title in titles(name)}
    assert len({paper.paper_id for paper in found}) == N


@pytest.mark.parametrize("name", SEARCHED)
def test_what_the_module_of_a_source_reads_is_true(server: FakeSources, name: str) -> None:
    truths = {plain(paper.title): paper for paper in PAPERS[name]}
    assert [
        wrong for paper in found_by(server, name) for wrong in untrue(name, paper, truths[plain(paper.title)])
    ] == []


@pytest.mark.parametrize("name", [name for name in SEARCHED if name != "wos"])
def test_the_module_of_a_source_reads_abstracts_and_dois(server: FakeSources, name: str) -> None:
    found = found_by(server, name)
    assert sum(bool(paper.abstract) for paper in found) > N / 2
    assert sum(bool(paper.doi) for paper in found) > N / 2


@pytest.mark.parametrize("name", [name for name in SEARCHED if name in PREPRINTS])
def test_the_module_of_a_preprint_server_reads_where_a_preprint_was_published(server: FakeSources, name: str) -> None:
    truths = {plain(paper.title): paper for paper in PAPERS[name]}
    for paper in found_by(server, name):
        truth = truths[plain(paper.title)]
        assert paper.published_as == (truth.doi if truth.is_published else None)


@pytest.mark.parametrize("name", SEARCHED)
def test_the_module_of_a_source_ends_where_nothing_is_found(server: FakeSources, name: str) -> None:
    assert found_by(server, name, query="xylophone") == []


def test_scopus_falls_back_to_the_standard_view_without_a_token(server: FakeSources) -> None:
    reader = source("scopus", base_url=server.base_urls["scopus"])
    reader = replace(reader, credentials=tuple(key for key in reader.credentials if key.required))
    request = fetched(server, reader, reader.search(Query("q", QUERY_TEXT), DAY, 1000)).following
    assert request is not None
    papers = fetched(server, reader, request).papers
    assert len(papers) == N
    assert not any(paper.abstract for paper in papers)


@pytest.mark.parametrize("name", ["crossref", "unpaywall"])
def test_the_module_of_a_source_finds_papers_by_doi(server: FakeSources, name: str) -> None:
    truths = PAPERS["crossref" if name == "unpaywall" else name][:7]
    reader = source(name, base_url=server.base_urls[name])
    size = reader.dois_a_request
    requests = [reader.lookup([paper.doi for paper in truths[i : i + size]]) for i in range(0, len(truths), size)]
    found = [paper for request in requests for paper in fetched(server, reader, request).papers]
    assert sorted(plain(paper.title) for paper in found) == sorted(plain(truth.title) for truth in truths)
    assert [wrong for paper, truth in zip(found, truths, strict=True) for wrong in untrue(name, paper, truth)] == []


def test_the_module_of_openalex_reads_the_impact_of_venues(server: FakeSources) -> None:
    reader = source("openalex", base_url=server.base_urls["openalex"])
    request = reader.venues(["1234-5679", "1332-098X", "2434-561X"])
    assert reader.read_venues(httpx.get(request.url, params=dict(request.params)).content) == VENUES


# The answers against recorded ones.

#: In the documentation of the sources, but in no recorded answer; of an inverted index the keys are words.
NOT_RECORDED = (
    "/data[]/attributes/tags[]",
    "/message/items[]/relation/has-preprint",
    "/results[]/abstract_inverted_index/",
    "/hits[]/keywords/authorKeywords[]",
    "/hits[]/identifiers/eissn",
)


def shape(value: Any, path: str = "") -> set[tuple[str, str]]:
    """Return every path in a value of JSON, and the type of what stands there."""
    if isinstance(value, dict):
        return {(path, "object")}.union(*(shape(inner, f"{path}/{key}") for key, inner in value.items()))
    if isinstance(value, list):
        return {(path, "list")}.union(*(shape(inner, f"{path}[]") for inner in value))
    return set() if value is None else {(path, type(value).__name__)}


def xml_shape(element: Any, path: str = "") -> set[tuple[str, str]]:
    """Return every path of tags, and the names of attributes there."""
    own = f"{path}/{element.tag}"
    attributes = {(own, ""), *((own, name) for name in element.attrib)}
    return attributes.union(*(xml_shape(child, own) for child in element))


@pytest.mark.parametrize("name", [name for name in PAGES if name != "arxiv"])
def test_json_has_the_shape_of_recorded_answers(server: FakeSources, shared_responses: Path, name: str) -> None:
    bodies = [file.read_bytes() for file in shared_responses.glob(f"{folder_of(name)}/*.json") if file.stat().st_size]
    recorded = set().union(*(shape(json.loads(body)) for body in bodies))
    new = shape(asked(server, name).json()) - recorded
    assert {path for path, _ in new if not path.startswith(NOT_RECORDED)} == set()


def folder_of(name: str) -> str:
    return "osf" if FAMILIES[name] is FAMILIES["psyarxiv"] else name


@pytest.mark.parametrize(
    ("path", "recorded"),
    [
        ("arxiv/api/query?search_query=all:flutter", "arxiv/search_*.xml"),
        ("pubmed/entrez/eutils/efetch.fcgi?db=pubmed&id={ids}", "pubmed/efetch_*.xml"),
    ],
)
def test_xml_has_the_shape_of_recorded_answers(
    server: FakeSources, shared_responses: Path, path: str, recorded: str
) -> None:
    ids = ",".join(pmid(paper) for paper in PAPERS["pubmed"])
    answer = CLIENT.get(f"{server.url}/{path.format(ids=ids)}")
    known = [xml_shape(ElementTree.parse(file).getroot()) for file in shared_responses.glob(recorded)]
    new = xml_shape(ElementTree.fromstring(answer.content)) - set().union(*known)
    assert {path for path, _ in new if not path.endswith("/PubDate/MedlineDate")} == set()


# Made-up papers.


def test_papers_are_the_same_whenever_they_are_made() -> None:
    assert made_up_papers(5, seed=3) == made_up_papers(9, seed=3)[:5]
    assert made_up_papers(5, seed=3) != made_up_papers(5, seed=4)


def test_no_two_titles_look_alike() -> None:
    drawn = [paper.title for seed in (0, 1) for paper in made_up_papers(250, seed=seed)]
    alike = process.cdist(drawn, drawn, scorer=fuzz.token_set_ratio)
    assert max(alike[i][j] for i in range(len(drawn)) for j in range(i)) < 85


def test_every_title_and_abstract_has_the_words_of_the_query() -> None:
    for paper in made_up_papers(300):
        for text in (paper.title, paper.abstract):
            assert set(QUERY_TEXT.split()) <= {word.strip(".,:;?") for word in text.lower().split()}, text


def test_ids_are_each_their_own() -> None:
    papers = [paper for of_source in PAPERS.values() for paper in of_source]
    for name in PREPRINTS:
        assert len({preprint_doi(name, paper) for paper in papers}) == len(papers)
    assert all(normalize_doi(preprint_doi("arxiv", paper)) == preprint_doi("arxiv", paper) for paper in papers)


def test_three_thousand_papers_take_less_than_a_second() -> None:
    started = time.process_time()
    for seed in range(12):
        made_up_papers(250, seed=seed)
    assert time.process_time() - started < 1


def test_the_standard_library_is_enough() -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'tests')!r}); from fake_sources import FakeSources"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)


# What real sources refuse.


@pytest.mark.parametrize(
    ("path", "params", "status", "told"),
    [
        ("arxiv/api/query", {"id_list": "abc"}, 400, "incorrect id format for abc"),
        ("arxiv/api/query", {"search_query": "all:flutter", "start": 30_000}, 400, "Error"),
        ("biorxiv/details/biorxiv/2030-01-01/2030-01-02/0/json", {}, 200, "no posts found"),
        ("psyarxiv/v2/preprints/", {"filter[q]": "flutter"}, 400, "'q' is not a valid field"),
        ("crossref/works", {"rows": 1001}, 400, "integer-not-valid"),
        ("crossref/works", {"cursor": "thing"}, 404, "cursor-invalid"),
        ("crossref/works/10.5555/none", {}, 404, "Resource not found."),
        ("openalex/works", {"per-page": 201}, 400, "Pagination error."),
        ("openalex/works", {"per-page": 200, "page": 51}, 400, "Pagination error."),
        ("openalex/works/doi:10.5555/none", {}, 404, "<!doctype html>"),
        ("semantic_scholar/graph/v1/paper/search", {"query": "a", "fields": "unknown"}, 400, "fields: [unknown]"),
        ("semantic_scholar/graph/v1/paper/search", {"query": "a", "offset": 950, "limit": 100}, 400, "error"),
        ("semantic_scholar/graph/v1/paper/search", {"query": "nothing"}, 200, '{"total": 0, "offset": 0}'),
        ("doaj/api/search/articles/flutter", {"page": 101}, 400, "beyond 1000 records"),
        ("pubmed/entrez/eutils/esearch.fcgi", {"db": "pubmed", "retstart": 9999}, 200, "ERROR"),
        ("scopus/content/search/scopus", {"query": "flutter"}, 401, "AUTHENTICATION_ERROR"),
        ("scopus/content/search/scopus", {"apiKey": "k", "view": "COMPLETE"}, 401, "AUTHORIZATION_ERROR"),
        ("scopus/content/search/scopus", {"apiKey": "k", "count": 201}, 400, "Exceeds the maximum"),
        ("scopus/content/search/scopus", {"apiKey": "k", "query": "nothing"}, 200, "Result set was empty"),
        ("wos/apis/wos-starter/v1/documents", {"q": "TS=(flutter)"}, 401, "error_description"),
        ("unpaywall/v2/10.5555/made-up.6.0", {}, 422, "your own email address"),
        ("unpaywall/v2/10.5555/made-up.6.0", {"email": "me@example.com"}, 422, "your own email address"),
        ("unpaywall/v2/10.5555/none", {"email": "me@flutter.example"}, 404, "isn't in Unpaywall"),
        ("arxiv/api/query", {"start": "many"}, 400, "Bad Request"),
    ],
)
def test_what_a_source_refuses(server: FakeSources, path: str, params: dict[str, Any], status: int, told: str) -> None:
    answer = get(server, path, **params)
    assert answer.status_code == status
    assert told in answer.text


def test_doaj_silently_cuts_pages_to_100(server: FakeSources) -> None:
    assert len(get(server, "doaj/api/search/articles/flutter", pageSize=1000, page=1).json()["results"]) == 100


def test_osf_ignores_a_bare_q_and_looks_for_literal_text(server: FakeSources) -> None:
    assert get(server, "psyarxiv/v2/preprints/", q="nothing").json()["links"]["meta"]["total"] == N
    literal = {"filter[title]": "flutter learning system programming"}
    assert get(server, "psyarxiv/v2/preprints/", **literal).json()["data"] == []


def test_crossref_sends_the_same_cursor_even_after_the_end(server: FakeSources) -> None:
    cursors, cursor = [], "*"
    for _ in range(4):
        message = get(server, "crossref/works", query="flutter", rows=100, cursor=cursor).json()["message"]
        cursor = message["next-cursor"]
        cursors.append((cursor, len(message["items"])))
    assert len({name for name, _ in cursors}) == 1
    assert [size for _, size in cursors] == [100, 30, 0, 0]


# The server itself.


def test_every_configured_source_is_overridden(server: FakeSources) -> None:
    assert sorted(server.base_urls) == list(SETTINGS)
    assert f"sources.available.arxiv.base_url={server.url}/arxiv/api/query" in server.overrides
    assert f"sources.available.openalex.base_url={server.url}/openalex" in server.overrides
    assert "sources.available.wos.interval_s=0" in server.overrides


def test_requests_are_kept_in_order() -> None:
    with FakeSources({}) as server:
        get(server, "openalex/works", search="a b", page=2)
        get(server, "crossref/works/10.5555%2Fx", {"X-Key": "k"})
        first, second = server.requests
    assert (first.source, first.path, first.params, first.status) == (
        "openalex",
        "/works",
        {"search": "a b", "page": "2"},
        200,
    )
    assert (second.source, second.path, second.headers["x-key"], second.status) == (
        "crossref",
        "/works/10.5555%2Fx",
        "k",
        404,
    )
    assert first.time <= second.time


def test_a_source_of_another_name_is_told() -> None:
    with pytest.raises(ValueError, match="no such source: arxvi"):
        FakeSources({"arxvi": []})


def test_forty_requests_are_served_at_once() -> None:
    started = time.monotonic()
    with FakeSources({}, latency_s=0.2) as server, ThreadPoolExecutor(40) as pool:
        list(pool.map(lambda _: get(server, "openalex/works").status_code, range(40)))
        most = max(seen.under_way for seen in server.requests)
    assert time.monotonic() - started < 40 * 0.2 / 2
    assert most > 2


def test_a_sequence_is_never_more_than_one_at_a_time() -> None:
    with FakeSources({}) as server:
        for _ in range(50):
            get(server, "openalex/works")
        assert {seen.under_way for seen in server.requests} == {1}


def test_answers_are_packed_only_for_who_takes_gzip(server: FakeSources) -> None:
    packed = get(server, "openalex/works", search="flutter")
    plain_one = get(server, "openalex/works", {"Accept-Encoding": "identity"}, search="flutter")
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain_one.headers
    assert packed.content == plain_one.content


# Faults.


def test_a_fault_hits_the_requests_it_is_told_to(faulty: Callable[..., FakeSources]) -> None:
    server = faulty("openalex", fake.server_errors(503).at(1, times=2), fake.too_many_requests(7).at(4))
    answers = [asked(server, "openalex") for _ in range(6)]
    assert [answer.status_code for answer in answers] == [200, 503, 503, 200, 429, 200]
    assert answers[4].headers["retry-after"] == "7"
    assert [seen.status for seen in server.requests] == [200, 503, 503, 200, 429, 200]


def test_429_without_retry_after_is_a_page(faulty: Callable[..., FakeSources]) -> None:
    answer = asked(faulty("arxiv", fake.too_many_requests()), "arxiv")
    assert answer.status_code == 429
    assert "retry-after" not in answer.headers
    assert answer.text.startswith("<html>")


def test_a_page_and_nothing_come_with_status_200(faulty: Callable[..., FakeSources]) -> None:
    server = faulty("doaj", fake.html_page().at(0), fake.empty_body().at(1))
    page, nothing = asked(server, "doaj"), asked(server, "doaj")
    assert (page.status_code, page.text[:6], page.headers["content-type"][:9]) == (200, "<html>", "text/html")
    assert (nothing.status_code, nothing.content) == (200, b"")


def test_a_connection_is_reset(faulty: Callable[..., FakeSources]) -> None:
    with pytest.raises(httpx.NetworkError):
        asked(faulty("crossref", fake.connection_reset()), "crossref")


def test_a_hanging_source_never_answers(faulty: Callable[..., FakeSources]) -> None:
    server = faulty("crossref", fake.hang())
    with pytest.raises(httpx.ReadTimeout):
        asked(server, "crossref", timeout=0.3)
    assert server.requests[0].status is None


def test_bytes_drip(faulty: Callable[..., FakeSources]) -> None:
    started = time.monotonic()
    server = faulty("semantic_scholar", fake.slow_drip(0.01), papers=[])
    path = "semantic_scholar/graph/v1/paper/search"
    answer = get(server, path, {"Accept-Encoding": "identity"}, query="flutter")
    assert answer.json() == {"total": 0, "offset": 0}
    assert time.monotonic() - started > 0.01 * (len('{"total": 0, "offset": 0}') - 1)


def test_gzip_is_cut_though_its_length_is_right(faulty: Callable[..., FakeSources]) -> None:
    server = faulty("crossref", fake.truncated_gzip())
    with CLIENT.stream("GET", f"{server.url}/crossref/works") as answer:
        raw = b"".join(answer.iter_raw())
    assert len(raw) == int(answer.headers["content-length"])
    with pytest.raises(EOFError):
        gzip.decompress(raw)


def test_a_charset_is_told_that_is_not_sent(faulty: Callable[..., FakeSources]) -> None:
    answer = asked(faulty("crossref", fake.wrong_charset()), "crossref")
    assert answer.headers["content-type"] == "application/json; charset=ISO-8859-1"
    assert "Ã" in answer.text
    assert "Ã" not in answer.content.decode()


@pytest.mark.parametrize("name", ["arxiv", "crossref"])
def test_a_body_is_cut(faulty: Callable[..., FakeSources], name: str) -> None:
    whole, cut = asked(faulty(name), name).content, asked(faulty(name, fake.cut_body()), name).content
    assert len(cut) == 2 * len(whole) // 3
    assert whole.startswith(cut)


def test_a_huge_body_is_small_on_the_way(faulty: Callable[..., FakeSources]) -> None:
    server = faulty("doaj", fake.huge_body(50))
    with CLIENT.stream("GET", f"{server.url}/doaj/api/search/articles/flutter") as answer:
        assert int(answer.headers["content-length"]) < 2**20
        assert len(answer.read()) > 50 * 2**20


def test_a_redirect_leads_to_itself(faulty: Callable[..., FakeSources]) -> None:
    server = faulty("openalex", fake.redirect_to_itself())
    with pytest.raises(httpx.TooManyRedirects):
        asked(server, "openalex", follow_redirects=True)
    assert len({(seen.path, str(seen.params)) for seen in server.requests}) == 1


@pytest.mark.parametrize("name", PAGES)
def test_an_error_is_told_inside_a_200(name: str) -> None:
    with FakeSources(PAPERS, faults={name: [fake.error_inside_200()]}, unpaywall=PAPERS["crossref"]) as server:
        answer = asked(server, name)
    assert answer.status_code == 200
    assert "error" in answer.text.lower() or '"failed"' in answer.text


@pytest.mark.parametrize("name", SEARCHED)
def test_endless_pages_bring_ever_new_records(faulty: Callable[..., FakeSources], name: str) -> None:
    pages = first_pages(faulty(name, fake.endless()), name, 6)
    ids = [paper.paper_id for page in pages for paper in page.papers]
    assert len(ids) == len(set(ids)) > 60
    assert pages[-1].following is not None


@pytest.mark.parametrize("name", SEARCHABLE)
def test_repeating_pages_bring_the_same_records(faulty: Callable[..., FakeSources], name: str) -> None:
    server = faulty(name, fake.repeating())
    pages = [papers_in(asked(server, name, start), name) for start in (0, 30, 900)]
    assert pages[0] == pages[1] == pages[2] != []


def first_pages(server: FakeSources, name: str, n: int) -> list[Page]:
    reader = source(name, base_url=server.base_urls[name])
    request, pages = reader.search(Query("q", QUERY_TEXT), DAY, 2000), []
    for _ in range(n):
        pages.append(fetched(server, reader, request))
        if pages[-1].following is None:
            break
        request = pages[-1].following
    return pages


@pytest.mark.parametrize("name", SEARCHABLE)
def test_an_empty_page_stands_in_the_middle_of_a_walk(faulty: Callable[..., FakeSources], name: str) -> None:
    server = faulty(name, fake.empty_page().at(1))
    pages = [asked(server, name, start) for start in (0, 30, 30)]
    assert [len(papers_in(page, name)) > 0 for page in pages] == [True, False, True]
    assert all(str(N) in page.text for page in pages)


def test_a_cursor_stays_where_it_is_after_a_damaged_answer(faulty: Callable[..., FakeSources]) -> None:
    server = faulty("crossref", fake.cut_body().at(1), fake.truncated_gzip().at(3))
    cursor, works = "*", []
    for _ in range(8):
        try:
            answer = get(server, "crossref/works", query="flutter", rows=50, cursor=cursor)
            message = answer.json()["message"]
        except (ValueError, httpx.DecodingError):
            continue
        cursor, works = message["next-cursor"], works + message["items"]
    assert len(works) == len({work["DOI"] for work in works}) == N
