"""Rows that icefloe wrote in versions 1, 2 and 3, evolved and with every kind of delete, read by four programs."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from interop.plain_rows import Row, as_texts, plain

pytestmark = pytest.mark.interop

VERSIONS = (1, 2, 3)
SCHEMA = (
    "id bigint not null, ts timestamp, city string, n int, f float, price decimal(9,2), day date, ok boolean,"
    " place struct<street: string, zip: int>, tags array<string>, attrs map<string, int>"
)
PARTITIONS = ["day(ts)", "bucket(4, id)"]
ARROW = pa.schema(
    [
        ("id", pa.int64()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("city", pa.string()),
        ("n", pa.int32()),
        ("f", pa.float32()),
        ("price", pa.decimal128(9, 2)),
        ("day", pa.date32()),
        ("ok", pa.bool_()),
        ("place", pa.struct([("street", pa.string()), ("zip", pa.int32())])),
        ("tags", pa.list_(pa.string())),
        ("attrs", pa.map_(pa.string(), pa.int32())),
    ]
)
START = dt.datetime(1969, 12, 30, 23, 30, tzinfo=dt.UTC)


def some(ids: Iterable[int]) -> list[Row]:
    """Rows on both sides of 1970, with nulls in every column that may have them."""
    return [
        {
            "id": i,
            "ts": None if i % 11 == 3 else START + dt.timedelta(hours=7 * (i % 9)),
            "city": ("Oslo", None, "", "São Paulo", "a=b/c")[i % 5],
            "n": None if i % 7 == 0 else i - 20,
            "f": None if i % 6 == 0 else i / 8,
            "price": None if i % 4 == 0 else Decimal(i) / 4,
            "day": None if i % 6 == 1 else START.date() + dt.timedelta(days=i),
            "ok": None if i % 4 == 1 else i % 2 == 0,
            "place": None if i % 5 == 0 else {"street": None if i % 3 == 0 else f"s{i}", "zip": i},
            "tags": (None, [], ["a", None], ["b"])[i % 4],
            "attrs": (None, {}, {"x": i, "y": None})[i % 3],
        }
        for i in ids
    ]


def arrow(rows: list[Row], schema: pa.Schema = ARROW) -> pa.Table:
    pairs = [{**row, "attrs": None if row["attrs"] is None else list(row["attrs"].items())} for row in rows]
    return pa.Table.from_pylist(pairs if "attrs" in schema.names else rows, schema=schema)


def check(table, readers, expected: list[Row], *, without: Iterable[str] = ()) -> None:
    """icefloe and every program read exactly these rows."""
    texts = as_texts(expected)
    assert plain(table.scan().to_arrow()) == texts
    for name, read in readers.items():
        if name not in without:
            assert plain(read(table)) == texts, name


@pytest.mark.parametrize("nested", [False, True], ids=["flat", "nested"])
@pytest.mark.parametrize("version", VERSIONS)
def test_evolved_columns_and_partitions(version, nested, catalog, readers):
    table = catalog.create_table(
        f"db.evolved_rows_{version}_{nested}", schema=SCHEMA, partition_by=PARTITIONS, format_version=version
    )
    first = some(range(30))
    table.append(arrow(first))
    with table.update_partitioning() as edit:
        edit.remove("ts_day")
        edit.add("truncate(2, city)")
    with table.update_schema() as edit:
        edit.rename_column("city", "town")
        edit.update_column("n", type="bigint")
        edit.update_column("f", type="double")
        edit.update_column("price", type="decimal(12,2)")
        edit.add_column("note", "string")
        if nested:
            edit.add_column("place.country", "string")
            edit.rename_column("place.zip", "postcode")
        edit.drop_column("attrs")
        edit.move_first("ok")
        if version == 3:
            edit.add_column("level", "int", default=7)

    def evolved(row: Row, note: str | None, country: str | None, level: int) -> Row:
        new = {key: value for key, value in row.items() if key not in ("city", "attrs")}
        place = row["place"]
        if place is not None and nested:
            new["place"] = {"street": place["street"], "postcode": place["zip"], "country": country}
        return new | {"town": row["city"], "note": note} | ({"level": level} if version == 3 else {})

    second = [evolved(row, f"note {row['id']}", "NO", 8) for row in some(range(30, 60))]
    table.append(pa.Table.from_pylist(second, schema=table.scan().to_arrow().schema))
    expected = [*(evolved(row, None, None, 7) for row in first), *second]
    # iceberg-rust does not add fields to structs of older files.
    check(table, readers, expected, without=["iceberg-rust"] if nested else [])


POSITIONS = {
    "write.delete.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
}
KINDS = {  # how rows are deleted: version and properties
    "files again, version 1": (1, {}),
    "files again, version 2": (2, {}),
    "files again, version 3": (3, dict.fromkeys(POSITIONS, "copy-on-write")),
    "positions by partition": (2, POSITIONS | {"write.delete.granularity": "partition"}),
    "positions by file": (2, POSITIONS | {"write.delete.granularity": "file"}),
    "vectors": (3, POSITIONS),
    "equality, version 2": (2, POSITIONS | {"write.upsert.deletes": "equality"}),
    "equality, version 3": (3, POSITIONS | {"write.upsert.deletes": "equality"}),
}
NOT_DONE = {"pyiceberg": "equality"}  # by kind


@pytest.mark.parametrize("partitioned", [False, True], ids=["plain", "partitioned"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_delete(kind, partitioned, catalog, readers):
    version, properties = KINDS[kind]
    # Equality deletes must tell the partition by the columns that they compare.
    partitions = (["bucket(4, id)"] if "equality" in kind else PARTITIONS) if partitioned else []
    table = catalog.create_table(
        f"db.deleted_{list(KINDS).index(kind)}_{partitioned}",
        schema=SCHEMA,
        partition_by=partitions,
        format_version=version,
        properties=properties,
    )
    without = [name for name, kinds in NOT_DONE.items() if kind.startswith(kinds)]
    table.append(arrow(some(range(40))))
    table.append(arrow(some(range(40, 60))))
    table.delete("id < 5 or id = 45 or city = 'São Paulo'")
    expected = {row["id"]: row for row in some(range(60))}
    expected = {i: row for i, row in expected.items() if not (i < 5 or i == 45 or row["city"] == "São Paulo")}
    table.update({"n": "n + 100", "city": "upper(city)"}, where="id >= 50")
    for i, row in expected.items():
        if i >= 50:
            more = {"n": None if row["n"] is None else row["n"] + 100, "city": row["city"] and row["city"].upper()}
            expected[i] = row | more
    changed = [row | {"city": "changed"} for row in some([*range(20, 26), 100, 101])]
    table.upsert(arrow(changed), on=["id"])
    expected |= {row["id"]: row for row in changed}
    source = pa.table({"id": pa.array([6, 7, 200], pa.int64()), "op": ["D", "U", "I"]})
    merge = (
        table.merge(source, on="t.id = s.id").when_matched_delete("s.op = 'D'").when_matched_update({"city": "s.op"})
    )
    merge.when_not_matched_insert({"id": "s.id", "city": "s.op"}).execute()
    del expected[6]
    expected[7] = expected[7] | {"city": "U"}
    expected[200] = dict.fromkeys(ARROW.names) | {"id": 200, "city": "I"}
    check(table, readers, list(expected.values()), without=without)


@pytest.mark.parametrize("partitioned", [False, True], ids=["plain", "partitioned"])
@pytest.mark.parametrize("version", [2, 3])
def test_equality_deletes_by_uuid_apply_on_both_sides_of_the_sign_bit(version, partitioned, catalog, readers):
    """Apache Iceberg compares the bounds of UUIDs as signed numbers, found no overlap, and kept the old rows."""
    table = catalog.create_table(
        f"db.deleted_by_uuid_{version}_{partitioned}",
        schema="id uuid not null, n int",
        partition_by=["bucket(2, id)"] if partitioned else [],
        format_version=version,
        properties={"write.upsert.deletes": "equality"},
    )
    keys = [uuid.UUID(int=high << 120 | low) for high in (0x00, 0x12, 0x7F, 0x80, 0x9A, 0xFF) for low in (1, 1 << 63)]

    def keyed(chosen: list[uuid.UUID], n: int) -> pa.Table:
        return pa.table({"id": pa.array([key.bytes for key in chosen], pa.uuid()), "n": [n] * len(chosen)})

    table.append(keyed(keys, 0))
    for number, chosen in enumerate((keys[:2], keys[-2:], [keys[2], keys[9]]), 1):
        table.upsert(keyed(chosen, number), on=["id"])
    expected = [1, 1, 2, 2, 3, 3, *[0] * 6]
    assert sorted(table.scan().to_arrow()["n"].to_pylist()) == sorted(expected)
    rows = readers["apache iceberg"](table)
    assert sorted(rows["n"].to_pylist()) == sorted(expected)
    assert sorted(rows["id"].to_pylist()) == sorted(str(key) for key in keys)


def test_overwritten_rows_and_partitions(catalog, readers):
    table = catalog.create_table("db.overwritten", schema=SCHEMA, partition_by=["city"], format_version=2)
    table.append(arrow(some(range(40))))
    table.overwrite(arrow(some(range(100, 103))), where="id >= 30")
    table.overwrite_partitions(arrow([row for row in some(range(200, 220)) if row["city"] == "Oslo"]))
    kept = [row for row in [*some(range(30)), *some(range(100, 103))] if row["city"] != "Oslo"]
    check(table, readers, [*kept, *(row for row in some(range(200, 220)) if row["city"] == "Oslo")])


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_other_file_formats(file_format, version, catalog, readers):
    properties = POSITIONS | {"write.format.default": file_format}
    table = catalog.create_table(
        f"db.{file_format}_rows_{version}",
        schema=SCHEMA,
        partition_by=PARTITIONS,
        format_version=version,
        properties=properties,
    )
    table.append(arrow(some(range(40))))
    table.delete("id < 5 or id = 33")
    expected = [row for row in some(range(40)) if not (row["id"] < 5 or row["id"] == 33)]
    assert set(table.scan().plan().tasks["file_format"].to_pylist()) == {file_format}
    programs = ["apache iceberg"]  # of the others only pyiceberg knows ORC, but not its timestamps in version 3
    programs += ["pyiceberg"] if file_format == "orc" and version < 3 else []
    check(table, readers, expected, without=[name for name in readers if name not in programs])


def test_files_by_reference(tmp_path, catalog, readers):
    table = catalog.create_table("db.by_reference", schema=SCHEMA, partition_by=["city"], format_version=2)
    rows = [row for row in some(range(40)) if row["city"] == "Oslo"]
    for name, columns in (("whole", ARROW.names), ("city=Oslo/hive", [n for n in ARROW.names if n != "city"])):
        path = tmp_path / f"{name}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(arrow(rows).select(columns), path)
        table.add_files(str(path), partition="hive")
    # iceberg-rust takes lists and maps of files without ids for null.
    check(table, readers, [*rows, *rows], without=["iceberg-rust"])
