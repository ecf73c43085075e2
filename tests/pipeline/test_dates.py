"""Dates are as precise as they are known."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.dates import iso_date, read_date, year_of


@pytest.mark.parametrize(
    ("parts", "date"),
    [
        ((2021,), "2021"),
        (("2021", "3"), "2021-03"),
        ((2021, 3, 14), "2021-03-14"),
        ((2021, "March", "04"), "2021-03-04"),
        ((2021, "mar."), "2021-03"),
        ((2021, "SEPT"), "2021-09"),
        ((2021, "DEC", 31), "2021-12-31"),
        ((2021, "May", None), "2021-05"),
        ((2021, None, 14), "2021"),
        ((2020, 2, 29), "2020-02-29"),
        ((2021, 2, 29), "2021-02"),
        ((2021, 2, 0), "2021-02"),
        ((2021, 0), "2021"),
        ((2021, 13), "2021"),
        ((2021, "Oct-Dec"), "2021"),  # not October
        ((2021, "Spring"), "2021"),
        ((2021, "Marvel"), "2021"),
        ((2021, True, [3]), "2021"),
        ((None, 3, 14), None),
        ((0, 1, 1), None),
        ((20210,), None),
        (("in press",), None),
    ],
)
def test_a_date_is_as_precise_as_its_parts_are_valid(parts, date):
    assert iso_date(*parts) == date


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("2021", "2021"),
        ("2021-3", "2021-03"),
        (" 2021-03-14 ", "2021-03-14"),
        ("2021-03-14T10:00:00Z", "2021-03-14"),
        ("2021-03-14 10:00", "2021-03-14"),
        ("2021-03-14Z", "2021-03-14"),
        ("2021-02-30", "2021-02"),
        ("2021-99-01", "2021"),
        ("20210314", None),
        ("March 2021", None),
        ("NA", None),
        ("", None),
        (2021, None),
        (None, None),
    ],
)
def test_a_text_may_start_with_a_date(text, date):
    assert read_date(text) == date


@given(st.dates(datetime.date(1000, 1, 1), datetime.date(2999, 12, 31)))
def test_every_day_is_read_as_written(day):
    assert read_date(day.isoformat()) == iso_date(day.year, day.month, day.day) == day.isoformat()
    assert year_of(day.isoformat()) == day.year


@given(st.text())
def test_any_text_is_a_date_or_none(text):
    assert read_date(text) is None or read_date(read_date(text)) == read_date(text)


def test_no_date_has_no_year():
    assert year_of(None) is None
    assert year_of("1995-07") == 1995


def test_a_day_beyond_all_days_is_left_out():
    assert iso_date(2020, 1, 10**12) == "2020-01"
