"""Dates as precise as they are known: 2021, 2021-03 or 2021-03-14."""

from __future__ import annotations

import datetime
import re

from pipeline.cleaning import whole_number

_MONTHS = "january february march april may june july august september october november december".split()
#: Names in full and as abbreviations; "Oct-Dec" and "Spring" are no month.
_NUMBERS = {name[:length]: i for i, name in enumerate(_MONTHS, 1) for length in (3, len(name))} | {"sept": 9}
_ISO = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?(?=$|[T Z+])")


def iso_date(year: object, month: object = None, day: object = None) -> str | None:
    """Return the date of these parts (numbers or texts), as precise as they are valid; None without a year."""
    in_year, in_month, in_day = whole_number(year), _month(month), whole_number(day)
    if in_year is None or not 1000 <= in_year <= 2999:
        return None
    if in_month is None:
        return f"{in_year:04d}"
    try:
        return datetime.date(in_year, in_month, in_day or 0).isoformat()
    except (ValueError, OverflowError):
        return f"{in_year:04d}-{in_month:02d}"


def read_date(text: object) -> str | None:
    """Return the date that an ISO text (a time may follow) starts with; None where it is none."""
    found = _ISO.match(text.strip()) if isinstance(text, str) else None
    return iso_date(*found.groups()) if found else None


def year_of(date: str | None) -> int | None:
    """Return the year of an ISO date."""
    return int(date[:4]) if date else None


def _month(month: object) -> int | None:
    name = month.strip().rstrip(".").lower() if isinstance(month, str) else ""
    number = _NUMBERS.get(name) or whole_number(month)
    return number if number is not None and 1 <= number <= 12 else None
