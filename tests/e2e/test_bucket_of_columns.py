"""Tables partitioned by a bucket of several columns: version 3 and later."""

from __future__ import annotations

import struct
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe.engines.spark.write.write import write
from icefloe.errors import InputError, UnsupportedError
from icefloe.model.schema.types import DATE, INT, LONG, STRING
from icefloe.model.schema.types import Decimal as DecimalType
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.transforms import Bucket, BucketOfColumns
from support.metadata_documents import metadata_json
from support.tables import new_catalog

pytestmark = pytest.mark.slow
VERSIONS = pytest.mark.parametrize("version", [3, 4])
BUCKETS = 8
ROWS = pa.table(
    {
        "id": pa.array([*range(40), None, None], pa.int64()),
        "city": [*(f"city {n % 7}" for n in range(40)), "Oslo", None],
        "amount": range(42),
    }
)


def table_of(folder: Path, version: int) -> Table:
    return new_catalog(folder).create_table(
        "db.t",
        schema="id bigint, city string, amount bigint",
        partition_by=[f"bucket({BUCKETS}, id, city)"],
        format_version=version,
    )


def murmur3(data: bytes) -> int:
    """The 32-bit hash, written from its description and for one value."""

    def mixed(k: int) -> int:
        k = k * 0xCC9E2D51 & 0xFFFFFFFF
        return (k << 15 | k >> 17) * 0x1B873593 & 0xFFFFFFFF

    h, whole = 0, len(data) // 4 * 4
    for (k,) in struct.iter_unpack("<I", data[:whole]):
        h ^= mixed(k)
        h = ((h << 13 | h >> 19) & 0xFFFFFFFF) * 5 + 0xE6546B64 & 0xFFFFFFFF
    h ^= mixed(int.from_bytes(data[whole:], "little") & 0xFFFFFFFF) if len(data) > whole else 0
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    h = (h ^ h >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return h ^ h >> 16


def bucket(number: int | None, text: str | None) -> int | None:
    if number is None and text is None:
        return None
    data = b"" if number is None else struct.pack("<q", number)
    return (murmur3(data + (b"" if text is None else text.encode())) & 0x7FFFFFFF) % BUCKETS


def partitions(table: Table) -> dict[int | None, list[int]]:
    """The amounts of each partition, by the files that a plan lists."""
    found: dict[int | None, list[int]] = {}
    for row in table.inspect.files().to_pylist():
        (value,) = row["partition"].values()
        files = pq.read_table(row["file_path"].removeprefix("file://"))
        found.setdefault(value, []).extend(files["amount"].to_pylist())
    return found


@VERSIONS
def test_rows_are_written_to_the_buckets_of_the_joined_bytes(tmp_path: Path, version: int) -> None:
    table = table_of(tmp_path, version)
    table.append(ROWS)
    expected: dict[int | None, list[int]] = {}
    for row in ROWS.to_pylist():
        expected.setdefault(bucket(row["id"], row["city"]), []).append(row["amount"])
    assert {key: sorted(amounts) for key, amounts in partitions(table).items()} == expected
    assert len(expected) == BUCKETS + 1
    (field,) = table.metadata.spec.fields
    assert (field.name, field.transform, len(field.source_ids)) == ("id_city_bucket", f"bucket[{BUCKETS}]", 2)
    document = metadata_json(table.metadata_location)
    assert document["partition-specs"][0]["fields"][0]["source-ids"] == [1, 2]


@VERSIONS
def test_filters_on_its_columns_find_all_rows(tmp_path: Path, version: int) -> None:
    table = table_of(tmp_path, version)
    table.append(ROWS)
    for row in ROWS.to_pylist():
        tests = [f"{name} is null" if row[name] is None else f"{name} = {row[name]!r}" for name in ("id", "city")]
        for where in (*tests, " and ".join(tests)):
            assert row["amount"] in table.scan(where).to_arrow()["amount"].to_pylist()
    assert sorted(table.scan("id < 5 or city = 'Oslo'").to_arrow()["amount"].to_pylist()) == [0, 1, 2, 3, 4, 40]


@VERSIONS
@pytest.mark.parametrize("deletes", ["position", "equality"])
def test_rows_are_replaced_by_key(tmp_path: Path, version: int, deletes: str) -> None:
    table = table_of(tmp_path, version)
    table.append(ROWS)
    new = pa.table({"id": [3, 99], "city": ["city 3", "Bern"], "amount": [1000, 2000]})
    table.upsert(new, on=["id", "city"], deletes=deletes)
    amounts = set(ROWS["amount"].to_pylist()) - {3} | {1000, 2000}
    assert set(table.scan().to_arrow()["amount"].to_pylist()) == amounts
    table.delete("id = 7")
    assert set(table.scan().to_arrow()["amount"].to_pylist()) == amounts - {7}
    assert table.verify(rows=True).findings == ()


@VERSIONS
def test_equality_deletes_that_do_not_have_all_its_columns_are_refused(tmp_path: Path, version: int) -> None:
    table = table_of(tmp_path, version)
    table.append(ROWS)
    with pytest.raises(InputError, match="do not determine the partition"):
        table.upsert(ROWS.slice(0, 1), on=["id"], deletes="equality")


@VERSIONS
def test_it_is_added_to_a_table_and_removed_again(tmp_path: Path, version: int) -> None:
    table = new_catalog(tmp_path).create_table("db.t", schema="id bigint, city string", format_version=version)
    with table.update_partitioning() as edit:
        edit.add("bucket(4, id, city)")
    table.append(pa.table({"id": [1, 2], "city": ["a", "b"]}))
    with table.update_partitioning() as edit:
        edit.remove("bucket(4, id, city)")
    assert table.metadata.spec.fields == ()
    assert table.scan().count() == 2


def test_older_versions_other_transforms_and_other_types_are_refused(tmp_path: Path) -> None:
    catalog = new_catalog(tmp_path)
    schema = "id bigint, city string, price double, ts timestamp"
    cases = [
        (2, "bucket(4, id, city)", "need format version 3"),
        (4, "truncate(4, id, city)", "not a transform that can be computed"),
        (4, "bucket(4, id, price)", "does not take column 'price' of type double"),
    ]
    for version, text, message in cases:
        with pytest.raises(InputError, match=message):
            catalog.create_table("db.t", schema=schema, partition_by=[text], format_version=version)


def test_spark_refuses_to_write_it_by_name(tmp_path: Path) -> None:
    table = table_of(tmp_path, 4)
    with pytest.raises(UnsupportedError, match="partition field 'id_city_bucket', a bucket of several columns"):
        write(object(), metadata=table.metadata, io=pointer_of(table).io)  # type: ignore[arg-type]


def test_the_bytes_of_each_type_are_those_that_a_bucket_of_one_column_hashes() -> None:
    columns = [
        (pa.array([1, -5, None], pa.int32()), INT),
        (pa.array([2**40, None, 7], pa.int64()), LONG),
        (pa.array([date(2026, 11, 5), None, date(1969, 1, 1)]), DATE),
        (pa.array(["", None, "x" * 99]), STRING),
        (pa.array([Decimal("-1.28"), None, Decimal("99999999999999999.99")], pa.decimal128(20, 2)), DecimalType(20, 2)),
    ]
    for array, type_ in columns:
        nothing = pa.nulls(3, pa.string())
        alone = Bucket(1000).apply(array, type_)
        assert BucketOfColumns(1000).apply_to_columns([nothing, array], [STRING, type_]).equals(alone)
        sliced = BucketOfColumns(1000).apply_to_columns([array.slice(1), nothing.slice(1)], [type_, STRING])
        assert sliced.equals(alone.slice(1))
