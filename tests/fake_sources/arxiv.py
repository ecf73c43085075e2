"""arXiv: an Atom feed, wrapped hard, where even errors are entries."""

from __future__ import annotations

import re
import textwrap
from xml.sax.saxutils import escape

from fake_sources.answers import NOW, Answer, Ask, Shelf
from fake_sources.ids import arxiv_id
from fake_sources.records import MadeUp

_ATOM = "application/atom+xml; charset=utf-8"
_FEED = """<?xml version='1.0' encoding='UTF-8'?>
<feed xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/" xmlns:arxiv="http://arxiv.org/schemas/atom" \
xmlns="http://www.w3.org/2005/Atom">
  <id>https://arxiv.org/api/made+up</id>
  <title>arXiv Query: {query}</title>
  <updated>{now}</updated>
  <opensearch:itemsPerPage>{size}</opensearch:itemsPerPage>
  <opensearch:totalResults>{total}</opensearch:totalResults>
  <opensearch:startIndex>{start}</opensearch:startIndex>
{entries}
</feed>
"""
_ENTRY = """  <entry>
    <id>http://arxiv.org/abs/{id}</id>
    <title>{title}</title>
    <updated>{date}T17:00:00Z</updated>
    <link href="https://arxiv.org/abs/{id}" rel="alternate" type="text/html"/>
    <link href="https://arxiv.org/pdf/{id}" rel="related" type="application/pdf" title="pdf"/>
    <summary>{abstract}</summary>
    <category term="cs.LG" scheme="http://arxiv.org/schemas/atom"/>
    <published>{date}T17:00:00Z</published>
    <arxiv:primary_category term="cs.LG"/>
{authors}{published_as}
  </entry>"""
_ERROR = """  <entry>
    <id>https://arxiv.org/api/errors#{id}</id>
    <title>Error</title>
    <updated>{now}</updated>
    <link href="https://arxiv.org/api/errors#{id}" rel="alternate" type="text/html"/>
    <summary>{text}</summary>
    <author>
      <name>arXiv api core</name>
    </author>
  </entry>"""


def answer(ask: Ask, shelf: Shelf) -> Answer:
    start, size = ask.whole("start", 0), ask.whole("max_results", 10)
    if start + size > 30_000:
        return error("start and max_results must not exceed 30000", status=400)
    query, ids = ask.params.get("search_query", ""), [_bare(text) for text in _ids(ask)]
    if not all(re.fullmatch(r"\d{4}\.\d{4,5}|[a-z.-]+/\d{7}", text) for text in ids):
        return error(f"incorrect id format for {','.join(ids)}", status=400)
    found = [paper for paper in shelf.papers if arxiv_id(paper) in ids] if ids else shelf.matching(query)
    total, papers = shelf.page(found, start, min(size, 2000))
    return _feed(query, "\n".join(map(_entry, papers)), total, start, min(size, 2000))


def failure(ask: Ask) -> Answer:
    return error("the search failed", status=200)


def error(text: str, status: int) -> Answer:
    entry = _ERROR.format(id=text.replace(" ", "_"), text=escape(text), now=NOW)
    answer = _feed("", entry, 1, 0, 1)
    return Answer(answer.body, _ATOM, status)


def _ids(ask: Ask) -> list[str]:
    return [text for text in ask.params.get("id_list", "").split(",") if text]


def _bare(text: str) -> str:
    return re.sub(r"v\d+$", "", text.strip())


def _feed(query: str, entries: str, total: int, start: int, size: int) -> Answer:
    feed = _FEED.format(query=escape(query), now=NOW, size=size, total=total, start=start, entries=entries)
    return Answer(feed.encode(), _ATOM)


def _entry(paper: MadeUp) -> str:
    authors = "\n".join(
        f"    <author>\n      <name>{given} {family}</name>\n    </author>" for given, family in paper.authors
    )
    published_as = f"\n    <arxiv:doi>{paper.doi}</arxiv:doi>\n    <arxiv:journal_ref>{paper.journal} {paper.volume} \
({paper.year})</arxiv:journal_ref>"
    return _ENTRY.format(
        id=f"{arxiv_id(paper)}v{1 + paper.number % 3}",
        title=_wrapped(paper.title),
        abstract=_wrapped(paper.abstract),
        date=paper.date,
        authors=authors,
        published_as=published_as if paper.is_published else "",
    )


def _wrapped(text: str) -> str:
    return escape(textwrap.fill(text, 70, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False))
