"""Years, months and hours: values by the calendar, before 1970 too, and far beyond what Python can hold."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.errors import InputError
from icefloe.model.schema.types import DATE, INT, TIMESTAMP, TIMESTAMPTZ
from icefloe.transforms import Day, Hour, Month, Year

PACIFIC = dt.timezone(dt.timedelta(hours=-8))
FIRST = dt.datetime(1970, 1, 1)


def years(value: dt.date) -> int:
    return value.year - 1970


def months(value: dt.date) -> int:
    return 12 * (value.year - 1970) + value.month - 1


@given(st.lists(st.none() | st.datetimes()), st.integers(0, 2))
def test_units_of_a_timestamp_are_those_of_the_calendar(values: list[dt.datetime | None], start: int) -> None:
    array = pa.array(values, pa.timestamp("us")).slice(start)
    for transform, count in (
        (Year(), years),
        (Month(), months),
        (Hour(), lambda value: (value - FIRST) // dt.timedelta(hours=1)),
    ):
        found = transform.apply(array, TIMESTAMP)
        assert found.type == pa.int32()
        assert found.to_pylist() == [None if value is None else count(value) for value in values[start:]]


@given(st.lists(st.none() | st.dates()), st.integers(0, 2))
def test_units_of_a_date_are_those_of_the_calendar(values: list[dt.date | None], start: int) -> None:
    array = pa.array(values, pa.date32()).slice(start)
    for transform, count in ((Year(), years), (Month(), months)):
        expected = [None if value is None else count(value) for value in values[start:]]
        assert transform.apply(array, DATE).to_pylist() == expected
        assert transform.result_type(DATE) == INT


def test_units_are_those_of_utc() -> None:
    last = dt.datetime(1969, 12, 31, 16, 0, tzinfo=PACIFIC) - dt.timedelta(microseconds=1)
    for transform in (Year(), Month(), Hour()):
        assert transform.value(last, TIMESTAMPTZ) == -1
        assert transform.value(last + dt.timedelta(microseconds=1), TIMESTAMPTZ) == 0


def test_the_examples_of_other_programs() -> None:
    moment = dt.datetime(2017, 12, 1, 10, 12, 55, 38194)
    assert [t.value(moment, TIMESTAMP) for t in (Year(), Month(), Hour())] == [47, 575, 420034]
    assert Day().value(moment, TIMESTAMP) == dt.date(2017, 12, 1)


def test_times_that_python_cannot_hold_have_years_and_months() -> None:
    far = pa.array([2**63 - 1, -(2**63)], pa.int64()).cast(pa.timestamp("us"))
    assert Year().apply(far, TIMESTAMP).to_pylist() == [294247 - 1970, -290308 - 1970 + 0]
    assert Day().apply(far, TIMESTAMP).cast(pa.int32()).to_pylist() == [106751991, -106751992]
    days = pa.array([2**31 - 1, -(2**31)], pa.int32()).cast(pa.date32())
    assert Year().apply(days, DATE).to_pylist() == [5881580 - 1970, -5877641 - 1970]
    assert Month().apply(days, DATE).to_pylist() == [(5881580 - 1970) * 12 + 6, (-5877641 - 1970) * 12 + 5]


@pytest.mark.parametrize("micros", [2**63 - 1, -(2**63), 2**31 * 3_600_000_000, -(2**31) * 3_600_000_000 - 1])
def test_an_hour_that_is_no_int_is_refused(micros: int) -> None:
    with pytest.raises(InputError, match="hour"):
        Hour().apply(pa.array([None, micros], pa.int64()).cast(pa.timestamp("us")), TIMESTAMP)


def test_the_first_and_the_last_hour_are_ints() -> None:
    edges = [2**31 * 3_600_000_000 - 1, -(2**31) * 3_600_000_000]
    found = Hour().apply(pa.array(edges, pa.int64()).cast(pa.timestamp("us")), TIMESTAMP)
    assert found.to_pylist() == [2**31 - 1, -(2**31)]


@pytest.mark.parametrize(
    ("transform", "value", "text"),
    [
        (Year(), 56, "2026"), (Year(), 0, "1970"), (Year(), -1, "1969"), (Year(), -1871, "0099"),
        (Month(), 682, "2026-11"), (Month(), -1, "1969-12"), (Day(), 20_772, "2026-11-15"), (Day(), -1, "1969-12-31"),
        (Hour(), 498_537, "2026-11-15-09"), (Hour(), -1, "1969-12-31-23"), (Year(), 8030, "10000"),
    ],
)  # fmt: skip
def test_people_read_units_as_dates(transform: Any, value: int, text: str) -> None:
    assert transform.display(value) == text
