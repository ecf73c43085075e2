"""The walk from page to page ends where the records do."""

import pytest

from pipeline.paging import next_page
from pipeline.sources import MalformedError, Request


def page(number):
    return Request("http://127.0.0.1/", {"q": "a", "page": str(number), "size": "10"})


def test_a_numbered_page_is_followed_by_the_next_of_the_same_size():
    following = next_page(page(1), received=10, total=25, size_param="size")
    assert following == page(2)


@pytest.mark.parametrize(
    ("request_", "received", "total", "reach", "ends"),
    [
        (page(2), 10, 25, None, False),
        (page(3), 5, 25, None, True),  # all
        (page(2), 10, 20, None, True),  # all, and the last page is full
        (page(2), 10, 90, 25, True),  # the next page would pass the 25 that can be reached
        (page(2), 10, 90, 30, False),
        (page(1), 8, 25, None, False),  # a short page in the middle is not the end
        (page(1), 0, 0, None, True),  # no hit
        (page(4), 0, 25, None, True),
    ],
)
def test_a_numbered_walk_ends_with_the_records(request_, received, total, reach, ends):
    assert (next_page(request_, received, total, "size", reach) is None) == ends


def test_an_empty_page_in_the_middle_is_malformed():
    with pytest.raises(MalformedError, match="sent an empty page at 20 of 25"):
        next_page(page(3), received=0, total=25, size_param="size")
