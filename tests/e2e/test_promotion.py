"""A column promoted by another program while icefloe was writing: old bounds, old files and new ones get along."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.types import LongType

from icefloe.commit.loop import commit
from icefloe.commit.operations.append import Append
from icefloe.model.schema.types import TIMESTAMP, TIMESTAMP_NS, Primitive
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from support.engine_work import write_entries
from support.tables import new_catalog

UNITS = {TIMESTAMP: "us", TIMESTAMP_NS: "ns"}


def rows(number: int, type_: pa.DataType) -> pa.Table:
    return pa.table({"id": pa.array([number], type_), "note": [str(number)]})


def test_files_written_before_a_promotion_are_committed_after_it(tmp_path):
    table = new_catalog(tmp_path).create_table("db.t", schema="id int, note string", partition_by=["id"])
    table.append(rows(1, pa.int32()))
    late = Append(added=write_entries(pointer_of(table).io, rows(2, pa.int32()), table.metadata))
    warehouse = f"file://{tmp_path}/warehouse"
    other = SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=warehouse).load_table("db.t")
    with other.update_schema() as update:
        update.update_column("id", LongType())

    commit(pointer_of(table), late)
    table.append(rows(2**40, pa.int64()))

    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 2**40]
    assert table.scan("id > 5").plan().files == 1
    assert table.delete("id = 1").rows_deleted == 1
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [2, 2**40]
    other.refresh()
    assert sorted(other.scan().to_arrow()["id"].to_pylist()) == [2, 2**40]


def dated(*days: dt.date) -> pa.Table:
    return pa.table({"id": pa.array([day.day for day in days], pa.int64()), "d": pa.array(days, pa.date32())})


def timed(day: int, type_: Primitive) -> pa.Table:
    moment = pa.array([dt.datetime(2024, 1, day)], pa.timestamp(UNITS[type_]))
    return pa.table({"id": pa.array([day], pa.int64()), "d": moment})


def promote(table: Table, type_: Primitive) -> None:
    with table.update_schema() as update:
        update.update_column("d", type=type_)


def ids(table: Table, where: str | None = None) -> list[int]:
    return sorted(table.scan(where).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("type_", UNITS, ids=str)
@pytest.mark.parametrize("version", [3, 4])
def test_dates_measured_before_they_became_timestamps_are_committed_after_it(tmp_path, version, type_):
    """An append that another session's promotion overtook died in Arrow, at once or with the append after it."""
    table = new_catalog(tmp_path).create_table("db.t", schema="id bigint, d date", format_version=version)
    table.append(dated(dt.date(2024, 1, 1)))
    late = Append(added=write_entries(pointer_of(table).io, dated(dt.date(2024, 1, 2)), table.metadata))
    promote(new_catalog(tmp_path).load_table("db.t"), type_)

    commit(pointer_of(table), late)
    table.append(timed(3, type_))

    later = "d > TIMESTAMP '2024-01-01 12:00:00'"
    for seen in (table, new_catalog(tmp_path).load_table("db.t")):
        assert ids(seen) == [1, 2, 3]
        assert seen.scan(later).plan().files == 2
        assert ids(seen, later) == [2, 3]
    table.rewrite_manifests().execute()
    assert table.delete("id = 2").rows_deleted == 1
    assert ids(table) == [1, 3]


@pytest.mark.parametrize("version", [3, 4])
def test_leaves_of_dates_are_used_again_by_the_attempt_after_a_promotion(tmp_path, monkeypatch, version):
    """Between the attempts of one commit the column became a timestamp: the leaf kept from the first had dates."""
    properties = {"commit.root.max-data-files": "0"}
    catalog = new_catalog(tmp_path)
    table = catalog.create_table("db.t", "id bigint, d date", format_version=version, properties=properties)
    table.append(dated(dt.date(2024, 1, 1)))
    pointers, calls = pointer_of(table).catalog, []
    swap = pointers.swap

    def overtaken(*arguments):
        calls.append(arguments)
        if len(calls) == 1:
            promote(new_catalog(tmp_path).load_table("db.t"), TIMESTAMP)
        return swap(*arguments)

    monkeypatch.setattr(pointers, "swap", overtaken)
    assert table.append(dated(dt.date(2024, 1, 2))).attempts == 2
    table.append(timed(3, TIMESTAMP))
    assert ids(table, "d > TIMESTAMP '2024-01-01 12:00:00'") == [2, 3]
    assert ids(new_catalog(tmp_path).load_table("db.t")) == [1, 2, 3]


@pytest.mark.parametrize("version", [3, 4])
def test_a_date_beyond_all_nanoseconds_does_not_shut_the_table(tmp_path, version):
    """The 9999-12-31 of open ends: once its column was timestamp_ns, nothing in a table of version 4 worked again."""
    table = new_catalog(tmp_path).create_table("db.t", schema="id bigint, d date", format_version=version)
    table.append(dated(dt.date(2024, 1, 1)))
    table.append(dated(dt.date(9999, 12, 31)))
    table.append(dated(dt.date(1, 1, 5)))
    promote(table, TIMESTAMP_NS)
    assert table.scan(columns=["id"]).to_arrow()["id"].to_pylist() == [1, 31, 5]
    assert ids(table, "d = TIMESTAMP '2024-01-01 00:00:00'") == [1]
    table.append(timed(3, TIMESTAMP_NS))
    assert table.delete("id in (5, 31)").rows_deleted == 2
    assert ids(table) == [1, 3]
