"""Columns whose values are not handled are refused by name before the first file, and new tables have no past."""

from __future__ import annotations

import pyarrow as pa
import pytest

import icefloe
from icefloe.errors import UnsupportedError


@pytest.fixture
def catalog(tmp_path):
    return icefloe.catalog("t", uri=f"sqlite:///{tmp_path}/cat.db", warehouse=f"file://{tmp_path}/wh")


@pytest.mark.parametrize(
    "type_", ["geography('OGC:CRS84', vincenty)", "array<unknown>", "map<string, unknown>", "struct<u: unknown>"]
)
def test_a_column_that_cannot_be_written_is_refused_before_anything_is(catalog, tmp_path, type_):
    # A table with such a column took an append, and could not be read any more.
    table = catalog.create_table("db.t", schema=f"id bigint, odd struct<x: {type_}>", format_version=4)
    with pytest.raises(UnsupportedError, match=r"'odd\.x'"):
        table.append(pa.table({"id": [1]}))
    assert list(tmp_path.rglob("*.parquet")) == []
    assert table.scan(columns=["id"]).to_arrow().num_rows == 0


def test_a_default_of_a_new_table_is_for_writers_only(catalog):
    # As an initial default it made the table unreadable, although no row was ever written without the column.
    table = catalog.create_table("db.t", schema="id bigint, n int default 5", format_version=4)
    assert (table.schema.field("n").initial_default, table.schema.field("n").write_default) == (None, 5)
    table.append(pa.table({"id": [1]}))
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "n": 5}]
