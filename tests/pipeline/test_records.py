"""What the records of all sources have in common on their way to papers."""

import pytest

from pipeline.papers import Paper
from pipeline.records import known, newest, page_range, record_id, type_among

TYPES = {"retraction": "retraction", "book": "book", "monograph": "book"}


def test_the_id_of_a_record_has_no_blanks():
    assert record_id("doaj", " a  b\n") == "doaj:a_b"


def test_what_could_not_be_read_is_left_out_but_what_is_empty_stays():
    assert known(iter([1, None, 0, "", None])) == (1, 0, "")


def test_the_highest_version_stands_where_its_paper_came_first():
    a1, a10, a9 = (Paper(f"s:a{n}", doi="10.1000/a") for n in (1, 10, 9))
    b, again = Paper("s:b"), Paper("s:b", title="the same version again")
    assert newest([(1, a1), None, (1, b), (10, a10), (9, a9), (1, again)]) == (a10, b)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["book", "retraction"], "retraction"),  # the order of the types counts, not that of the words
        (["monograph"], "book"),
        (["poem"], "other"),
        (["poem", "book"], "book"),
        ([None, ""], None),
        ([], None),
    ],
)
def test_a_record_is_of_the_first_type_that_it_is_called(words, kind):
    assert type_among(TYPES, *words) == kind


@pytest.mark.parametrize(
    ("first", "last", "pages"),
    [("7", "12", "7-12"), ("7", "7", "7"), ("7", None, "7"), (None, "12", None), (None, " ", None), ("e7", 1, "e7")],
)
def test_pages_run_from_the_first_to_the_last(first, last, pages):
    assert page_range(first, last) == pages
