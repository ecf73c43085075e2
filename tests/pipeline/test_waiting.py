from __future__ import annotations

import datetime
import email.utils

import pytest

from pipeline.waiting import asked_wait_s, wait_s


def in_seconds(seconds: int) -> str:
    moment = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)
    return email.utils.format_datetime(moment, usegmt=True)


@pytest.mark.parametrize(
    ("value", "seconds"), [("7", 7.0), (" 0 ", 0.0), ("1.5", 1.5), ("-3", 0.0), ("", None), ("soon", None), ("²", None)]
)
def test_retry_after_is_a_number_of_seconds(value: str, seconds: float | None) -> None:
    assert asked_wait_s({"retry-after": value}) == seconds


def test_retry_after_may_be_a_date() -> None:
    wait = asked_wait_s({"retry-after": in_seconds(30)})
    assert wait is not None
    assert 25 < wait <= 30
    assert asked_wait_s({"retry-after": in_seconds(-30)}) == 0


@pytest.mark.parametrize(
    "value", ["Wed, 99 Oct 2026 07:28:00 GMT", "Wed, 21 Oct 99999999999 07:28:00 GMT", "1 2 3 4 5"]
)
def test_a_date_that_is_none_asks_for_no_wait(value: str) -> None:
    assert asked_wait_s({"retry-after": value}) is None


def test_without_the_header_no_wait_is_asked() -> None:
    assert asked_wait_s({}) is None


@pytest.mark.parametrize(("faults", "most"), [(1, 2), (2, 4), (3, 8), (5, 32), (6, 60), (2000, 60)])
def test_waits_double_up_to_a_minute_with_jitter(faults: int, most: float) -> None:
    waits = [wait_s(2.0, faults, None) for _ in range(50)]
    assert all(0.5 * most <= wait <= most for wait in waits)
    assert len(set(waits)) > 40


def test_what_was_asked_comes_on_top() -> None:
    assert 7 + 0.5 <= wait_s(1.0, 1, 7.0) <= 7 + 1.0
    assert wait_s(0.0, 3, 7.0) == 7.0
    assert wait_s(0.0, 3, None) == 0.0
