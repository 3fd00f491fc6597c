"""Keys far in the future: the open end of a history of changes, and dates that Python has no word for."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from icefloe.errors import InputError
from icefloe.table.table import Table
from support.tables import new_catalog

OPEN_END = dt.datetime(9999, 12, 31)
FAR = pa.array([3_000_000, 3_000_001], pa.int32()).view(pa.date32())  # in the year 10183
NANOSECONDS = pa.timestamp("ns")


@pytest.fixture
def history(tmp_path: Path) -> Table:
    rows = {"id": [1, 2], "until": pa.array([OPEN_END, dt.datetime(2020, 1, 1)], pa.timestamp("us")), "v": [1, 2]}
    table = new_catalog(tmp_path).create_table("db.history", schema="id bigint, until timestamp_ntz, v bigint")
    table.append(pa.table(rows))
    return table


@pytest.fixture
def dated(tmp_path: Path) -> Table:
    table = new_catalog(tmp_path).create_table("db.dated", schema="day date, v bigint")
    table.append(pa.table({"day": FAR, "v": [1, 2]}))
    return table


def source(until: pa.Array) -> pa.Table:
    return pa.table({"id": [2], "until": until, "v": [20]})


def values(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["v"].to_pylist())


def test_a_merge_by_the_nanoseconds_of_a_frame_meets_a_table_with_open_ends(history: Table) -> None:
    """The table's dates were widened to nanoseconds, which end in 2262: the merge failed with an error of Arrow's."""
    given = source(pa.array([dt.datetime(2020, 1, 1)], NANOSECONDS))
    history.merge(given, on=["until"]).when_matched_update_all().execute()
    assert values(history) == [1, 20]


def test_a_condition_compares_the_nanoseconds_of_a_frame_with_open_ends(history: Table) -> None:
    given = source(pa.array([dt.datetime(2020, 1, 1)], NANOSECONDS))
    history.merge(given, on="t.id = s.id - 1").when_matched_update({"v": "s.v"}, "t.until > s.until").execute()
    assert values(history) == [2, 20]


@pytest.mark.parametrize(
    ("count", "expected"), [(1_577_836_800_000_000_001, [1, 2]), (1_577_836_800_000_000_000, [1, 20])]
)
def test_a_key_with_single_nanoseconds_meets_only_its_equal(history: Table, count: int, expected: list[int]) -> None:
    """One more row keeps the column in nanoseconds, whatever the key is."""
    until = pa.array([count, 1], pa.int64()).cast(NANOSECONDS)
    given = pa.table({"id": [2, 3], "until": until, "v": [20, 30]})
    history.merge(given, on=["until"]).when_matched_update({"v": "s.v"}).execute()
    assert values(history) == expected


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "+00:00"])
def test_a_key_with_nanoseconds_is_met_in_any_time_zone(tmp_path: Path, zone: str) -> None:
    table = new_catalog(tmp_path).create_table("db.t", schema="at timestamptz_ns, v bigint", format_version=3)
    at = pa.array([1_577_836_800_000_000_001], pa.int64())
    table.append(pa.table({"at": at.cast(pa.timestamp("ns", "UTC")), "v": [1]}))
    given = pa.table({"at": at.cast(pa.timestamp("ns", zone)), "v": [10]})
    table.merge(given, on=["at"]).when_matched_update({"v": "s.v"}).execute()
    assert values(table) == [10]


@pytest.mark.parametrize("deletes", ["position", "equality"])
def test_an_upsert_by_dates_after_the_year_9999_replaces_their_rows(dated: Table, deletes: str) -> None:
    dated.upsert(pa.table({"day": FAR[:1], "v": [10]}), on=["day"], deletes=deletes)
    assert values(dated) == [2, 10]


def test_an_upsert_by_many_dates_of_which_one_is_after_the_year_9999_replaces_its_row(dated: Table) -> None:
    days = pc.cast(pa.array([*range(200), 3_000_000], pa.int32()), pa.date32())
    dated.upsert(pa.table({"day": days, "v": [10] * 201}), on=["day"])
    assert values(dated) == [2, *[10] * 201]


def test_a_merge_by_dates_after_the_year_9999_updates_their_rows(dated: Table) -> None:
    dated.merge(pa.table({"day": FAR[:1], "v": [10]}), on=["day"]).when_matched_update_all().execute()
    assert values(dated) == [2, 10]


def test_a_repeated_key_after_the_year_9999_is_refused_in_words(dated: Table) -> None:
    repeated = pa.concat_arrays([FAR, FAR])
    with pytest.raises(InputError, match="such as one after the year 9999"):
        dated.upsert(pa.table({"day": repeated, "v": [1, 2, 3, 4]}), on=["day"])
