"""Files by reference in partitioned tables: values are proved by the file, or stated by its path or its giver."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal

import pyarrow as pa
import pytest
from added_files import entry_of, file_of

import icefloe
from icefloe.errors import InputError
from support.tables import new_catalog, sorted_rows

EVENTS = pa.table(
    {
        "id": pa.array([1, 2], pa.int64()),
        "ts": pa.array([dt.datetime(2026, 11, 15, 1), dt.datetime(2026, 11, 15, 23)], pa.timestamp("us")),
        "city": ["Oslo", "Oslo"],
    }
)
EVENT_COLUMNS = "id bigint, ts timestamp_ntz, city string"


@pytest.fixture
def lake(tmp_path):
    return new_catalog(tmp_path)


@pytest.mark.parametrize("statistics", [True, False])
def test_partition_values_are_proved_by_the_file(statistics, tmp_path, lake):
    table = lake.create_table("db.t", schema=EVENT_COLUMNS, partition_by=["day(ts)", "city", "truncate(2, city)"])
    table.add_files(file_of(tmp_path, EVENTS, write_statistics=statistics))
    entry = entry_of(table)
    assert entry["lower_bound:p1000"] == dt.date(2026, 11, 15)
    assert (entry["lower_bound:p1001"], entry["lower_bound:p1002"]) == ("Oslo", "Os")
    assert table.scan("city = 'Rome'").plan().files == 0
    assert table.scan("city = 'Oslo'").count() == 2


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("partition", ["day(ts)", "city", "bucket(8, id)", "truncate(10, id)"])
def test_rows_of_several_partitions_are_refused(partition, statistics, tmp_path, lake):
    table = lake.create_table("db.t", schema=EVENT_COLUMNS, partition_by=[partition])
    mixed = pa.table(
        {
            "id": pa.array([1, 22], pa.int64()),
            "ts": pa.array([dt.datetime(2026, 11, 15), dt.datetime(2026, 11, 16)], pa.timestamp("us")),
            "city": ["Oslo", "Rome"],
        }
    )
    with pytest.raises(InputError, match=r"its rows belong to several partitions, such as .*=.* and .*=.*; write them"):
        table.add_files(file_of(tmp_path, mixed, write_statistics=statistics))


def test_nulls_beside_values_are_two_partitions(tmp_path, lake):
    table = lake.create_table("db.t", schema=EVENT_COLUMNS, partition_by=["city"])
    with pytest.raises(InputError, match="several partitions"):
        table.add_files(file_of(tmp_path, EVENTS.set_column(2, "city", pa.array(["Oslo", None]))))
    nothing = EVENTS.set_column(2, "city", pa.array([None, None], pa.string()))
    table.add_files(file_of(tmp_path, nothing, "nulls.parquet"))
    assert entry_of(table)["null_value_count:p1000"] == 2
    assert table.scan("city is null").count() == 2


def test_buckets_are_proved_by_reading_the_column(tmp_path, lake):
    table = lake.create_table("db.t", schema="id bigint", partition_by=["bucket(2, id)"])
    ids = list(range(100))
    buckets = icefloe.transforms.parse_transform("bucket[2]").apply(pa.array(ids), table.schema.field("id").type)
    for bucket in (0, 1):
        own = [i for i, b in zip(ids, buckets.to_pylist(), strict=True) if b == bucket]
        table.add_files(file_of(tmp_path, pa.table({"id": pa.array(own, pa.int64())}), f"{bucket}.parquet"))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == ids
    assert table.scan("id = 7").plan().files == 1


def test_bounds_in_one_bucket_prove_nothing_of_what_lies_between(tmp_path, lake):
    table = lake.create_table("db.t", schema="id bigint", partition_by=["bucket(2, id)"])
    ids = list(range(100))
    buckets = icefloe.transforms.parse_transform("bucket[2]").apply(pa.array(ids), table.schema.field("id").type)
    last = max(i for i in ids if buckets[i] == buckets[0])
    assert len(set(buckets.slice(0, last + 1).to_pylist())) == 2
    with pytest.raises(InputError, match="several partitions"):
        table.add_files(file_of(tmp_path, pa.table({"id": pa.array(ids[: last + 1], pa.int64())})))


def test_a_nan_hides_behind_the_bounds_of_a_footer(tmp_path, lake):
    table = lake.create_table("db.t", schema="x double", partition_by=["x"])
    with pytest.raises(InputError, match="several partitions"):
        table.add_files(file_of(tmp_path, pa.table({"x": [1.0, float("nan"), 1.0]})))
    table.add_files(file_of(tmp_path, pa.table({"x": [1.0, 1.0]}), "ones.parquet"))
    table.add_files(file_of(tmp_path, pa.table({"x": [float("nan")]}), "nan.parquet"))
    table.add_files(file_of(tmp_path, pa.table({"x": [-0.0, 0.0]}), "zeros.parquet"))
    assert table.scan("x = 1").plan().files == 1
    assert table.scan("x = 0").count() == 2


def test_partitions_are_taken_from_hive_paths(tmp_path, lake):
    table = lake.create_table("db.t", schema="id bigint, region string, day date", partition_by=["region", "day"])
    ids = pa.table({"id": pa.array([1], pa.int64())})
    file_of(tmp_path, ids, "old/region=eu%20west/day=2026-11-15/a.parquet")
    file_of(tmp_path, ids, "old/region=__HIVE_DEFAULT_PARTITION__/day=2026-11-16/a.parquet")
    assert table.add_files(str(tmp_path / "old"), partition="hive").files_added == 2
    assert sorted_rows(table.scan().to_arrow()) == [
        (1, "eu west", dt.date(2026, 11, 15)),
        (1, None, dt.date(2026, 11, 16)),
    ]
    assert table.scan("region = 'eu west'").plan().files == 1
    assert table.scan("day > '2026-11-15'", columns=["day"]).to_arrow()["day"].to_pylist() == [dt.date(2026, 11, 16)]


VALUES = [
    ("int", "7", 7),
    ("bigint", "-7", -7),
    ("boolean", "TRUE", True),
    ("double", "1.5", 1.5),
    ("decimal(9,2)", "1.25", Decimal("1.25")),
    ("date", "1969-12-31", dt.date(1969, 12, 31)),
    ("timestamp_ntz", "2026-11-15 01:02:03.5", dt.datetime(2026, 11, 15, 1, 2, 3, 500_000)),
    ("string", "x=y", "x=y"),
    ("uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7", uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")),
]


@pytest.mark.parametrize(("type_", "text", "value"), VALUES, ids=[type_ for type_, _, _ in VALUES])
def test_stated_values_become_values_of_the_column(type_, text, value, tmp_path, lake):
    table = lake.create_table("db.t", schema=f"id bigint, p {type_}", partition_by=["p"])
    ids = pa.table({"id": pa.array([1], pa.int64())})
    table.add_files(file_of(tmp_path, ids, f"p={text}/a.parquet"), partition="hive")
    table.add_files(file_of(tmp_path, ids, "b.parquet"), partition={"p": value})
    stored = value.bytes if isinstance(value, uuid.UUID) else value
    found = table.scan().to_arrow()["p"].to_pylist()
    assert [v.bytes if isinstance(v, uuid.UUID) else v for v in found] == [stored, stored]


def test_stated_values_of_columns_that_are_there_must_be_true(tmp_path, lake):
    table = lake.create_table("db.t", schema=EVENT_COLUMNS, partition_by=["city", "day(ts)"])
    file_of(tmp_path, EVENTS, "right/city=Oslo/ts_day=2026-11-15/a.parquet")
    table.add_files(str(tmp_path / "right"), partition="hive")
    file_of(tmp_path, EVENTS, "wrong/city=Rome/a.parquet")
    with pytest.raises(InputError, match="'city' is said to be 'Rome', but its rows have city=Oslo"):
        table.add_files(str(tmp_path / "wrong"), partition="hive")
    file_of(tmp_path, EVENTS, "late/city=Oslo/ts_day=2026-11-16/a.parquet")
    with pytest.raises(InputError, match="'ts_day' is said to be '2026-11-16', but its rows have ts_day=2026-11-15"):
        table.add_files(str(tmp_path / "late"), partition="hive")
    assert table.scan().count() == 2


@pytest.mark.parametrize(
    ("columns", "by", "partition", "says"),
    [
        ("id bigint, p int", ["p"], None, "the file lacks column 'p', by which the table is partitioned"),
        ("id bigint, p int", ["bucket(4, p)"], {"p_bucket": 1}, "the value of bucket[4] cannot replace it"),
        ("id bigint, p int", ["p"], {"p": "x"}, "partition p='x' is no value of type int"),
        ("id bigint, p int", ["p"], {"q": 1}, "the table is not partitioned by 'q', but by p"),
        ("id bigint, p int", [], {"p": 1}, "the table is not partitioned by 'p', but by nothing"),
        ("id bigint, p int", ["p"], "path", "give 'hive', or values by name"),
        ("id bigint, p binary", ["p"], "hive", "bytes have no agreed form in a path"),
        ("id bigint, p int", [], "hive", "its path states column 'p', which the file lacks"),
        ("id bigint, p int not null", ["p"], {"p": None}, "required column 'p'"),
    ],
)
def test_partition_values_that_cannot_be_are_refused(columns, by, partition, says, tmp_path, lake):
    table = lake.create_table("db.t", schema=columns, partition_by=by)
    path = file_of(tmp_path, pa.table({"id": pa.array([1], pa.int64())}), "p=1/a.parquet")
    with pytest.raises(InputError) as refusal:
        table.add_files(path, partition=partition)
    assert says in str(refusal.value)
