"""Reading whole tables: defaults, every way out, counts, and what comes back of each."""

from __future__ import annotations

import sys

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefloe
from icefloe.errors import UnsupportedError


@pytest.fixture
def catalog(tmp_path):
    return icefloe.catalog("t", uri=f"sqlite:///{tmp_path}/cat.db", warehouse=f"file://{tmp_path}/wh")


@pytest.fixture
def orders(catalog):
    table = catalog.create_table("db.orders", schema="id bigint, city string, amount double", format_version=3)
    table.append(pa.table({"id": [1, 2, 3], "city": ["Oslo", "Rome", None], "amount": [1.5, 2.5, 3.5]}))
    table.append(pa.table({"id": [4, 5], "city": ["Oslo", "Bern"], "amount": [4.5, None]}))
    return table


ROWS = [
    {"id": 1, "city": "Oslo", "amount": 1.5},
    {"id": 2, "city": "Rome", "amount": 2.5},
    {"id": 3, "city": None, "amount": 3.5},
    {"id": 4, "city": "Oslo", "amount": 4.5},
    {"id": 5, "city": "Bern", "amount": None},
]


def test_all_ways_out_have_the_same_rows(orders):
    scan = orders.scan("city = 'Oslo' OR amount > 3", columns=["id", "city"])
    expected = [{"id": row["id"], "city": row["city"]} for row in ROWS if row["id"] in (1, 3, 4)]
    assert scan.to_arrow().to_pylist() == expected
    assert [row for batch in scan.to_arrow_batch_reader() for row in batch.to_pylist()] == expected
    assert scan.to_polars().to_dicts() == expected
    assert scan.to_pandas()["id"].tolist() == [1, 3, 4]
    assert isinstance(scan.to_pandas(), pd.DataFrame)
    assert scan.to_duckdb("found").sql("SELECT id, city FROM found ORDER BY id").fetchall() == [
        (row["id"], row["city"]) for row in expected
    ]
    assert scan.count() == 3


def test_a_duckdb_connection_of_ones_own_gets_one_table_more(orders):
    duckdb = pytest.importorskip("duckdb")
    mine = duckdb.connect()
    mine.execute("CREATE TABLE prices AS SELECT 'Oslo' AS city, 2 AS price")
    assert orders.scan().to_duckdb("orders", mine) is mine
    found = mine.sql("SELECT sum(amount * price) FROM orders JOIN prices USING (city)").fetchall()
    assert found == [(12.0,)]


@pytest.mark.parametrize("library", ["polars", "duckdb"])
def test_a_library_that_is_not_installed_is_named(orders, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(UnsupportedError, match=f"needs {library}, which is not installed: pip install {library}"):
        orders.scan().to_polars() if library == "polars" else orders.scan().to_duckdb("t")


def test_a_table_that_was_never_written_has_columns_and_no_rows(catalog):
    table = catalog.create_table("db.empty", schema="id bigint, s struct<a: int>")
    assert table.scan().to_arrow().schema.names == ["id", "s"]
    assert table.scan().to_polars().shape == (0, 2)
    assert table.scan().count() == 0


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
@pytest.mark.parametrize("version", [2, 3])
def test_counts_are_right_after_deletes_in_every_mode(catalog, version, mode):
    table = catalog.create_table(
        "db.t", schema="id bigint, g bigint", format_version=version, properties={"write.delete.mode": mode}
    )
    table.append(pa.table({"id": range(100), "g": [n % 10 for n in range(100)]}))
    table.delete("g = 3 AND id < 50")
    table.delete("id IN (0, 13, 99)")
    for where in (None, "id < 50", "g = 3", "g = 3 AND id > 90", "id > 1000"):
        assert table.scan(where).count() == table.scan(where).to_arrow().num_rows
    assert table.scan().count() == 100 - 5 - 2


def test_rows_written_before_a_column_came_have_its_default(orders):
    with orders.update_schema() as change:
        change.add_column("status", "string", default="new", required=True)
        change.add_column("rank", "int")
    orders.append(pa.table({"id": [6], "city": ["Riga"], "amount": [6.0], "status": ["old"], "rank": [1]}))
    found = orders.scan(columns=["id", "status", "rank"]).to_arrow().to_pylist()
    assert found == [
        *({"id": n, "status": "new", "rank": None} for n in range(1, 6)),
        {"id": 6, "status": "old", "rank": 1},
    ]
    assert orders.scan("status = 'new'").count() == 5
    assert orders.scan("status != 'new'", columns=["id"]).to_arrow()["id"].to_pylist() == [6]
    orders.delete("status = 'new' AND id > 1")
    assert orders.scan(columns=["id"]).to_arrow()["id"].to_pylist() == [1, 6]


def test_defaults_inside_structs_lists_and_maps(catalog):
    table = catalog.create_table(
        "db.t",
        schema="id bigint, s struct<a: int>, l array<struct<a: int>>, m map<string, struct<a: int>>",
        format_version=3,
    )
    row = {"id": 1, "s": {"a": 1}, "l": [{"a": 2}, None, {"a": 3}], "m": [("k", {"a": 4})]}
    nothing = {"id": 2, "s": None, "l": None, "m": None}
    table.append(pa.Table.from_pylist([row, nothing], schema=table.scan().to_arrow().schema))
    with table.update_schema() as change:
        change.add_column("s.b", "bigint", default=7)
        change.add_column("l.element.b", "string", default="x", required=True)
        change.add_column("m.value.b", "date", default="2026-01-31")
    [found, empty] = table.scan().to_arrow().to_pylist()
    assert found["s"] == {"a": 1, "b": 7}
    assert found["l"] == [{"a": 2, "b": "x"}, None, {"a": 3, "b": "x"}]
    assert [(key, value["a"], str(value["b"])) for key, value in found["m"]] == [("k", 4, "2026-01-31")]
    assert empty == nothing
    assert table.scan("s.b = 7", columns=["id"]).to_arrow().to_pylist() == [{"id": 1}]


def test_the_order_of_rows_is_the_same_each_time(orders):
    for n in range(20):
        orders.append(pa.table({"id": [100 + n], "city": ["x"], "amount": [0.0]}))
    once = orders.scan(columns=["id"]).to_arrow()["id"].to_pylist()
    assert all(orders.scan(columns=["id"]).to_arrow()["id"].to_pylist() == once for _ in range(3))
    assert sorted(once) == [1, 2, 3, 4, 5, *range(100, 120)]


def test_a_stream_can_be_left_in_the_middle(orders):
    reader = orders.scan().to_arrow_batch_reader()
    assert reader.read_next_batch().num_rows > 0
    del reader
    assert orders.scan().count() == 5


def test_files_without_ids_are_read_by_the_names_of_the_mapping(catalog, tmp_path):
    table = catalog.create_table("db.t", schema="id bigint, s struct<a: int, b: string>", format_version=2)
    rows = [{"id": 1, "s": {"a": 1, "b": "x"}}, {"id": 2, "s": None}]
    columns = pa.schema({"id": pa.int64(), "s": pa.struct({"a": pa.int32(), "b": pa.string()})})
    pq.write_table(pa.Table.from_pylist(rows, schema=columns), tmp_path / "plain.parquet", store_schema=False)
    table.add_files([f"file://{tmp_path}/plain.parquet"])
    assert table.scan().to_arrow().to_pylist() == rows
    with table.update_schema() as change:
        change.rename_column("s.b", "c")
        change.rename_column("id", "key")
    assert table.scan("s.c = 'x'").to_arrow().to_pylist() == [{"key": 1, "s": {"a": 1, "c": "x"}}]
    assert table.scan(columns=["key"]).count() == 2
