"""The academic APIs, imitated on 127.0.0.1 with made-up papers. Needs nothing but the standard library.

papers = made_up_papers(250, seed=1)
with FakeSources({"arxiv": papers}, faults={"arxiv": [truncated_gzip().at(1)]}) as server:
    ...  # server.overrides sends the project there, server.requests tells what came
"""

from fake_sources.faults import (
    Fault,
    connection_reset,
    cut_body,
    empty_body,
    empty_page,
    endless,
    error_inside_200,
    hang,
    html_page,
    huge_body,
    redirect_to_itself,
    repeating,
    reply,
    server_errors,
    slow_drip,
    too_many_requests,
    truncated_gzip,
    wrong_charset,
)
from fake_sources.ids import preprint_doi
from fake_sources.records import JOURNALS, QUERY_TEXT, MadeUp, made_up_paper, made_up_papers
from fake_sources.server import FAMILIES, FakeSources, Seen

__all__ = [
    "FAMILIES",
    "JOURNALS",
    "QUERY_TEXT",
    "FakeSources",
    "Fault",
    "MadeUp",
    "Seen",
    "connection_reset",
    "cut_body",
    "empty_body",
    "empty_page",
    "endless",
    "error_inside_200",
    "hang",
    "html_page",
    "huge_body",
    "made_up_paper",
    "made_up_papers",
    "preprint_doi",
    "redirect_to_itself",
    "repeating",
    "reply",
    "server_errors",
    "slow_drip",
    "too_many_requests",
    "truncated_gzip",
    "wrong_charset",
]
