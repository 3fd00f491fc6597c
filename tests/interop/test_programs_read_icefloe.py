"""What icefloe writes in version 2, read by programs that nobody here wrote."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

pytestmark = pytest.mark.interop

SCHEMA = "id bigint not null, ts timestamp, city string, amount decimal(9,2), score double, day date, ok boolean"
PARTITIONS = ["day(ts)", "bucket(4, id)", "city"]
ARROW = pa.schema(
    [
        ("id", pa.int64()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("city", pa.string()),
        ("amount", pa.decimal128(9, 2)),
        ("score", pa.float64()),
        ("day", pa.date32()),
        ("ok", pa.bool_()),
    ]
)
CITIES = ["Oslo", "", None, "São Paulo / Süd", "a=b%20c"]


def events(ids: range, *, shift: int = 0) -> pa.Table:
    """Rows on both sides of 1970, with nulls in every column that may have them."""
    start = datetime(1969, 12, 30, 23, 30, tzinfo=UTC)
    rows = [
        {
            "id": i,
            "ts": None if i % 11 == 3 else start + timedelta(hours=7 * (i % 12)),
            "city": CITIES[i % len(CITIES)],
            "amount": None if i % 7 == 0 else Decimal(i + shift) / 4,
            "score": None if i % 5 == 0 else i / 8 + shift,
            "day": None if i % 6 == 0 else start.date() + timedelta(days=i),
            "ok": None if i % 4 == 0 else i % 2 == 0,
        }
        for i in ids
    ]
    return pa.Table.from_pylist(rows, schema=ARROW)


def normal(table: pa.Table) -> list[tuple[object, ...]]:
    """Rows by id, in one set of Arrow types."""
    table = table.select(ARROW.names)
    columns = [table[field.name].cast(field.type) for field in ARROW]
    return sorted(zip(*(column.to_pylist() for column in columns), strict=True))


def check(table, readers, expected: pa.Table) -> None:
    assert normal(table.scan().to_arrow()) == normal(expected)
    for name, read in readers.items():
        assert normal(read(table)) == normal(expected), name


def replaced(old: pa.Table, new: pa.Table) -> pa.Table:
    kept = old.filter(pc.invert(pc.is_in(old["id"], value_set=new["id"].combine_chunks())))
    return pa.concat_tables([kept, new])


@pytest.fixture(params=["arrow", "spark"])
def engine(request):
    return request.param


def test_rows_are_read_alike_after_append_delete_and_upsert(engine, catalog, spark, readers):
    table = catalog.create_table(f"db.events_{engine}", schema=SCHEMA, partition_by=PARTITIONS, format_version=2)
    frame = (lambda rows: spark.createDataFrame(rows)) if engine == "spark" else (lambda rows: rows)
    first, second = events(range(60)), events(range(60, 90))

    table.append(frame(first))
    check(table, readers, first)
    table.append(frame(second))
    rows = pa.concat_tables([first, second])
    check(table, readers, rows)

    table.delete("id >= 80 or city = 'Oslo'", spark=spark if engine == "spark" else None)
    gone = pc.or_(pc.greater_equal(rows["id"], 80), pc.fill_null(pc.equal(rows["city"], "Oslo"), False))
    rows = rows.filter(pc.invert(gone))
    check(table, readers, rows)

    changed = events(range(40, 50), shift=100)
    table.upsert(frame(changed), on=["id"])
    rows = replaced(rows, changed)
    check(table, readers, rows)
    assert normal(table.scan().to_spark(spark).toArrow()) == normal(rows)


def test_compressed_metadata_is_read_by_other_programs(catalog, readers):
    properties = {"write.metadata.compression-codec": "gzip"}
    table = catalog.create_table("db.zipped", schema=SCHEMA, format_version=2, properties=properties)
    for start in (0, 20):
        table.append(events(range(start, start + 20)))
    assert table.metadata_location.endswith(".gz.metadata.json")
    check(table, readers, events(range(40)))


def test_filters_agree_with_other_programs(catalog, spark, readers, pyiceberg):
    table = catalog.create_table("db.filters", schema=SCHEMA, partition_by=PARTITIONS, format_version=2)
    table.append(events(range(100)))
    for where in ("id < 10", "city = ''", "city is null", "day >= '1970-01-20'", "score > 3 and ok = true"):
        ours = normal(table.scan(where).to_arrow())
        assert ours == normal(table.scan(where).to_spark(spark).toArrow()), where
        assert ours == normal(spark.table("lake.db.filters").where(where).toArrow()), where
        assert ours == normal(pyiceberg.load_table("db.filters").scan(where).to_arrow()), where
        assert len(ours) > 0, where


def test_the_past_is_read_alike(catalog, spark, duck, pyiceberg):
    table = catalog.create_table("db.past", schema=SCHEMA, partition_by=PARTITIONS, format_version=2)
    first = table.append(events(range(10))).snapshot_id
    table.delete("id < 5")
    expected = normal(events(range(10)))
    assert normal(table.at(snapshot=first).scan().to_arrow()) == expected
    assert normal(spark.sql(f"SELECT * FROM lake.db.past VERSION AS OF {first}").toArrow()) == expected
    assert normal(pyiceberg.load_table("db.past").scan(snapshot_id=first).to_arrow()) == expected
    query = f"SELECT * FROM iceberg_scan('{table.metadata_location}', snapshot_from_id={first})"
    assert normal(duck.execute(query).to_arrow_table()) == expected


def test_nested_rows_are_read_alike(catalog, spark, readers):
    schema = "id int, tags array<string>, scores map<string, double>, place struct<city: string, zip: int>"
    rows = pa.table(
        {
            "id": pa.array([1, 2, 3], pa.int32()),
            "tags": pa.array([["a", None], None, []], pa.list_(pa.string())),
            "scores": pa.array([[("x", 1.5)], [], None], pa.map_(pa.string(), pa.float64())),
            "place": pa.array(
                [{"city": "Oslo", "zip": None}, None, {"city": None, "zip": 7}],
                pa.struct([("city", pa.string()), ("zip", pa.int32())]),
            ),
        }
    )
    for engine, frame in (("arrow", rows), ("spark", spark.createDataFrame(rows))):
        table = catalog.create_table(f"db.nested_{engine}", schema=schema, format_version=2)
        table.append(frame)
        for name, read in readers.items():
            found = sorted(read(table).select(rows.column_names).to_pylist(), key=lambda row: row["id"])
            assert [_plain(row) for row in found] == [_plain(row) for row in rows.to_pylist()], (engine, name)


def _plain(row: dict[str, object]) -> dict[str, object]:
    scores = row["scores"]
    return {**row, "scores": None if scores is None else dict(scores)}
