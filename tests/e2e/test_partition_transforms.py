"""Tables partitioned by every transform: rows come back, filters read few files, and deletes find them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from icefloe.errors import InputError
from icefloe.inspect.outline import outline_snapshot
from icefloe.table.held_table import pointer_of
from support.conformance import nonconformities
from support.tables import VERSIONS, new_catalog, sorted_rows

pytestmark = pytest.mark.slow

SCHEMA = "id bigint, ts timestamp, local timestamp_ntz, d date, n int, amount decimal(9, 2), name string, raw binary"
FIRST = datetime(1969, 10, 31, 22, 30)
NAMES = ["", "a", "ab", "abc", "ice", "iceberg", "é\U0001f600x", None]


def orders() -> pa.Table:
    moments = [FIRST + timedelta(days=23 * i, hours=5 * i) for i in range(24)]
    names = [NAMES[i % 8] for i in range(24)]
    return pa.table(
        {
            "id": pa.array(range(-12, 12), pa.int64()),
            "ts": pa.array([moment.replace(tzinfo=UTC) for moment in moments], pa.timestamp("us", tz="UTC")),
            "local": pa.array(moments, pa.timestamp("us")),
            "d": pa.array([moment.date() for moment in moments], pa.date32()),
            "n": pa.array([None if i % 7 == 3 else 5 * i - 60 for i in range(24)], pa.int32()),
            "amount": pa.array([Decimal(i * 37 - 400).scaleb(-2) for i in range(24)], pa.decimal128(9, 2)),
            "name": pa.array(names, pa.string()),
            "raw": pa.array([None if name is None else name.encode() for name in names], pa.binary()),
        }
    )


CASES = [
    ("year(ts)", "ts_year", "ts >= '1971-01-01T00:00:00Z'"),
    ("months(ts)", "ts_month", "ts < '1970-03-01T00:00:00Z' and ts >= '1970-02-01T00:00:00Z'"),
    ("hours(ts)", "ts_hour", "ts > '1971-01-01T00:00:00Z'"),
    ("month(local)", "local_month", "local >= '1970-11-15T00:00:00'"),
    ("hour(local)", "local_hour", "local < '1970-01-01T00:00:00'"),
    ("years(d)", "d_year", "d < '1970-01-01'"),
    ("month(d)", "d_month", "d in ('1969-12-17', '1970-08-03')"),
    ("truncate(10, n)", "n_trunc", "n between -33 and -11"),
    ("truncate(5, id)", "id_trunc", "id in (-11, 3)"),
    ("truncate(100, amount)", "amount_trunc", "amount < -1.50"),
    ("truncate(2, name)", "name_trunc", "name like 'ice%'"),
    ("truncate(1, name)", "name_trunc", "name >= 'b'"),
    ("truncate(2, raw)", "raw_trunc", "raw = X'616263'"),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("partition", "name", "where"), CASES, ids=[case[0] for case in CASES])
def test_a_partitioned_table_answers_as_one_that_is_not(
    tmp_path: Path, version: int, partition: str, name: str, where: str
) -> None:
    catalog, rows = new_catalog(tmp_path), orders()
    plain = catalog.create_table("db.plain", schema=SCHEMA, format_version=version)
    table = catalog.create_table("db.t", schema=SCHEMA, partition_by=[partition], format_version=version)
    plain.append(rows)
    table.append(rows)
    table = catalog.load_table("db.t")
    assert [field.name for field in table.metadata.spec.fields] == [name]
    assert sorted_rows(table.scan().to_arrow()) == sorted_rows(rows)
    found, plan = table.scan(where), table.scan(where).plan()
    assert sorted_rows(found.to_arrow()) == sorted_rows(plain.scan(where).to_arrow())
    assert 0 < found.to_arrow().num_rows < rows.num_rows
    assert plan.files < table.scan().plan().files
    for each in (plain, table):
        each.delete(where)
    assert sorted_rows(table.scan().to_arrow()) == sorted_rows(plain.scan().to_arrow())
    assert table.verify("all", rows=True).findings == ()
    assert nonconformities(table, rows=True) == []


@pytest.mark.parametrize("partition", ["hour(d)", "month(id)", "truncate(3, ts)", "year(name)"])
def test_a_transform_that_does_not_take_the_column_is_refused(tmp_path: Path, partition: str) -> None:
    with pytest.raises(InputError, match="does not take column"):
        new_catalog(tmp_path).create_table("db.t", schema=SCHEMA, partition_by=[partition], format_version=2)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_row_without_a_partition_is_refused_and_leaves_the_table_as_it_was(tmp_path: Path, version: int) -> None:
    table = new_catalog(tmp_path).create_table(
        "db.t", schema="n int", partition_by=["truncate(10, n)"], format_version=version
    )
    with pytest.raises(InputError, match=r"truncate\[10\] of -2147483648 is below the lowest int"):
        table.append(pa.table({"n": pa.array([1, -(2**31)], pa.int32())}))
    assert table.scan().count() == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_an_outline_shows_months_as_people_write_them(tmp_path: Path, version: int) -> None:
    table = new_catalog(tmp_path).create_table(
        "db.t", schema="ts timestamp", partition_by=["month(ts)"], format_version=version
    )
    table.append(pa.table({"ts": pa.array([datetime(2026, 11, 15, tzinfo=UTC)], pa.timestamp("us", tz="UTC"))}))
    drawn = str(outline_snapshot(pointer_of(table).io, table.metadata, table.snapshots[-1]))
    assert "ts_month=2026-11," in drawn
