"""Indexes of pages that other programs wrote: parquet-java by Apache Iceberg, and parquet-rs by DataFusion."""

from __future__ import annotations

import datetime as dt
import decimal

import pyarrow as pa
import pytest
from datafusion import SessionContext

from icefloe.formats.parquet import file as parquet_file
from icefloe.formats.parquet.pages import PageReader
from interop.plain_rows import plain

pytestmark = pytest.mark.interop

ROWS = 20_000
LONG = "ein sehr langer Anfang, den Schreiber in ihren Grenzen kürzen: äöü äöü äöü äöü "  # more than 64 bytes
FILTERS = (
    "id = 12345",
    "id >= 700 and id < 720",
    "id in (3, 9000, 19999)",
    "id > 19990 or id < 4",
    f"long_text = '{LONG}015000'",
    f"long_text > '{LONG}019990'",
    "price = 75.25",
    "wide > 1999.5",
    "day = '1990-01-15'",
    "seen < '2026-01-01 00:03:00+00:00'",
    "ratio < 0.25",
    "place.zip = 4321",
    "town is null and id < 300",
    "town = 'Oslo' and id > 19900",
    "place is null and id > 19000",
)


@pytest.fixture
def by_pages(monkeypatch):
    """Row groups of any size are read by pages; how many times they were."""
    monkeypatch.setattr(parquet_file, "MANY_BYTES", 0)
    reads = []
    whole = PageReader.read

    def counted(self, group, leaves, first, rows, **options):
        reads.append(rows)
        return whole(self, group, leaves, first, rows, **options)

    monkeypatch.setattr(PageReader, "read", counted)
    return reads


def rows_of(count: int) -> pa.Table:
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    rows = [
        {
            "id": n,
            "long_text": f"{LONG}{n:06}",
            "town": (None, "Oslo", "Bergen")[n % 3],
            "price": decimal.Decimal(n) / 4 if n < 1_000 else decimal.Decimal(n) / 100,
            "wide": decimal.Decimal(n) / 10,
            "day": dt.date(1990, 1, 1) + dt.timedelta(days=n // 100),
            "seen": start + dt.timedelta(seconds=n),
            "ratio": n / 16,
            "place": None if n % 50 == 0 else {"street": f"s{n % 7}" * (n % 30), "zip": n},
            "tags": [f"t{i}" for i in range(n % 4)],
            "counts": [(f"k{i}", i) for i in range(n % 3)],
        }
        for n in range(count)
    ]
    types = {
        "id": pa.int64(),
        "long_text": pa.string(),
        "town": pa.string(),
        "price": pa.decimal128(9, 2),
        "wide": pa.decimal128(25, 4),
        "day": pa.date32(),
        "seen": pa.timestamp("us", "UTC"),
        "ratio": pa.float64(),
        "place": pa.struct({"street": pa.string(), "zip": pa.int32()}),
        "tags": pa.list_(pa.string()),
        "counts": pa.map_(pa.string(), pa.int64()),
    }
    return pa.Table.from_pylist(rows, schema=pa.schema(types))


def check(table, theirs: pa.Table, duck, reads: list[int]) -> None:
    duck.register("theirs", theirs)
    for where in FILTERS:
        reads.clear()
        rows = table.scan(where).to_arrow()
        assert plain(rows) == plain(duck.execute(f"SELECT * FROM theirs WHERE {where}").to_arrow_table()), where
        assert 0 < rows.num_rows < ROWS / 10, where
        assert 0 < sum(reads) < ROWS, where
        one = table.scan(where, columns=["tags", "id"]).to_arrow()
        assert sorted(one["id"].to_pylist()) == sorted(rows["id"].to_pylist()), where


@pytest.mark.parametrize("version", [2, 3])
def test_pages_of_apache_iceberg(version, catalog, spark, duck, by_pages):
    name = f"pages.by_iceberg_{version}"
    if "pages" not in catalog.list_namespaces():
        catalog.create_namespace("pages")
    frame = spark.createDataFrame(rows_of(ROWS)).coalesce(1)
    frame.writeTo(f"lake.{name}").tableProperty("format-version", str(version)).tableProperty(
        "write.parquet.page-row-limit", "300"
    ).tableProperty("write.parquet.page-size-bytes", "8192").create()
    spark.sql(f"ALTER TABLE lake.{name} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    table = catalog.load_table(name)
    assert table.scan().plan().files == 1
    check(table, spark.table(f"lake.{name}").toArrow(), duck, by_pages)
    spark.sql(f"DELETE FROM lake.{name} WHERE id % 7 = 1 AND id NOT IN (12345, 15000)")
    check(catalog.load_table(name), spark.table(f"lake.{name}").toArrow(), duck, by_pages)


def test_pages_of_datafusion(tmp_path, catalog, duck, by_pages):
    rows = rows_of(ROWS)
    context = SessionContext()
    context.from_arrow(rows, name="rows")
    context.sql(
        f"COPY rows TO '{tmp_path}/pages.parquet' STORED AS PARQUET"
        " OPTIONS ('format.data_page_row_count_limit' '300', 'format.write_batch_size' '100',"
        " 'format.data_pagesize_limit' '8192')"
    ).collect()
    if "pages" not in catalog.list_namespaces():
        catalog.create_namespace("pages")
    table = catalog.create_table("pages.by_datafusion", schema=rows.schema)
    table.add_files([f"file://{tmp_path}/pages.parquet"])
    assert table.scan().plan().files == 1
    check(table, rows, duck, by_pages)
