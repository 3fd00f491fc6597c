"""Data files without field ids in a table without a name mapping, read as Apache Iceberg reads them.

Parquet goes by position: the first column has id 1, the second id 2, and nothing inside of them has an id. ORC and Avro
go by the table's current names. Such files were refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from icefloe.commit.loop import commit
from icefloe.commit.operations.append import Append
from icefloe.errors import FormatError, InputError
from icefloe.model.entries import put
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from support.engine_work import write_entries
from support.tables import new_catalog, sorted_rows

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "city": ["Oslo", None, "Rome"], "n": pa.array([4, 5, 6])})
SCHEMA = "id bigint, city string, n bigint"
FORMATS = ("parquet", "orc", "avro")


def write_foreign(path: Path, file_format: str, rows: pa.Table) -> None:
    """A file as a program writes it that knows nothing of Iceberg."""
    if file_format == "parquet":
        pq.write_table(rows, path, store_schema=False)
    elif file_format == "orc":
        orc.write_table(rows, path)
    else:
        kinds = {pa.int64(): "long", pa.string(): "string"}
        fields = [{"name": f.name, "type": ["null", kinds[f.type]]} for f in rows.schema]
        with path.open("wb") as sink:
            fastavro.writer(sink, {"type": "record", "name": "row", "fields": fields}, rows.to_pylist())


def append_foreign(table: Table, file_format: str, rows: pa.Table, like: pa.Table = ROWS) -> None:
    """Add a file of these rows; its entry, which has no statistics, is that of rows of the table."""
    entries = write_entries(pointer_of(table).io, like, table.metadata)
    (location,) = entries["location"].to_pylist()
    path = Path(location.removeprefix("file://"))
    write_foreign(path, file_format, rows)
    entries = put(put(entries, "file_format", file_format), "file_size_in_bytes", path.stat().st_size)
    entries = entries.drop_columns([n for n in entries.column_names if ":" in n and ":p" not in n])
    commit(pointer_of(table), Append(added=put(entries, "split_offsets", None)))


def made(folder: Path, schema: str = SCHEMA, **more: Any) -> Table:
    return new_catalog(folder).create_table("db.t", schema=schema, **more)


def read(folder: Path, where: str | None = None, **more: Any) -> list[tuple[object, ...]]:
    return sorted_rows(new_catalog(folder).load_table("db.t").scan(where, **more).to_arrow())


@pytest.mark.parametrize("file_format", FORMATS)
def test_rows_are_read_filtered_counted_and_changed(tmp_path, file_format):
    table = made(tmp_path)
    append_foreign(table, file_format, ROWS)
    assert read(tmp_path) == sorted_rows(ROWS)
    assert read(tmp_path, "city = 'Rome'") == [(3, "Rome", 6)]
    assert read(tmp_path, "n > 4", columns=["n", "id"]) == [(5, 2), (6, 3)]
    assert new_catalog(tmp_path).load_table("db.t").scan("id < 3").count() == 2
    table.append(ROWS)
    assert table.delete("id = 2").rows_deleted == 2
    table.update({"city": "'Bergen'"}, where="id = 1")
    assert read(tmp_path) == [(1, "Bergen", 4)] * 2 + [(3, "Rome", 6)] * 2


@pytest.mark.parametrize("file_format", FORMATS)
def test_renamed_columns_are_found_by_position_in_parquet_and_by_name_elsewhere(tmp_path, file_format):
    table = made(tmp_path)
    append_foreign(table, file_format, ROWS.rename_columns(["a", "b", "c"]))
    expected = sorted_rows(ROWS) if file_format == "parquet" else [(None, None, None)] * 3
    assert read(tmp_path) == expected


@pytest.mark.parametrize("file_format", FORMATS)
def test_columns_in_another_order_are_found_by_name_except_in_parquet(tmp_path, file_format):
    table = made(tmp_path, "id bigint, n bigint, city string")
    append_foreign(table, file_format, ROWS.select(["n", "id", "city"]), ROWS)
    found = read(tmp_path, columns=["id", "n"])
    assert found == ([(4, 1), (5, 2), (6, 3)] if file_format == "parquet" else [(1, 4), (2, 5), (3, 6)])


@pytest.mark.parametrize("file_format", FORMATS)
def test_what_a_file_lacks_is_null(tmp_path, file_format):
    table = made(tmp_path)
    append_foreign(table, file_format, ROWS.select(["id", "city"]))
    assert read(tmp_path) == [(1, "Oslo", None), (2, None, None), (3, "Rome", None)]
    assert read(tmp_path, "n is not null") == []


def test_a_type_that_does_not_fit_is_refused_by_name(tmp_path):
    table = made(tmp_path)
    append_foreign(table, "parquet", ROWS.select(["city", "id", "n"]))
    with pytest.raises(FormatError, match="column 'id' is string in the file"):
        read(tmp_path)


def test_the_partition_says_the_value_of_its_column_whatever_lies_at_its_position(tmp_path):
    """As Apache Iceberg does it: files taken over from Hive lack the column, and the next one has its position."""
    table = made(tmp_path, "id bigint, p string, city string", partition_by=["p"])
    rows = pa.table({"id": [1], "p": ["x"], "city": ["Oslo"]})
    append_foreign(table, "parquet", rows.select(["id", "city"]), rows)
    assert read(tmp_path) == [(1, "x", None)]
    assert read(tmp_path, "p = 'x'") == [(1, "x", None)]


def test_fields_inside_columns_of_parquet_have_no_position(tmp_path):
    table = made(tmp_path, "id bigint, s struct<a: bigint>, l array<bigint>")
    schema = pa.schema({"id": pa.int64(), "s": pa.struct({"a": pa.int64()}), "l": pa.list_(pa.int64())})
    rows = pa.Table.from_pylist([{"id": 1, "s": {"a": 5}, "l": [7, 8]}], schema)
    append_foreign(table, "parquet", rows, rows)
    found = new_catalog(tmp_path).load_table("db.t").scan().to_arrow().to_pylist()
    assert found == [{"id": 1, "s": {"a": None}, "l": [7, 8]}]


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_name_mapping_goes_before_positions_and_names_of_the_table(tmp_path, file_format):
    table = made(tmp_path)
    names = '[{"field-id": 1, "names": ["a"]}, {"field-id": 3, "names": ["id"]}]'
    table.set_properties({"schema.name-mapping.default": names})
    append_foreign(table, file_format, ROWS)
    assert read(tmp_path) == [(None, None, 1), (None, None, 2), (None, None, 3)]


def test_adding_such_a_file_still_gives_the_table_a_mapping(tmp_path):
    """What is written stays strict: a file without ids is added by name, never by position."""
    table = made(tmp_path)
    path = tmp_path / "foreign.parquet"
    write_foreign(path, "parquet", ROWS.rename_columns(["a", "b", "c"]))
    with pytest.raises(InputError, match=r"foreign\.parquet"):
        table.add_files([f"file://{path}"])
    write_foreign(path, "parquet", ROWS)
    table.add_files([f"file://{path}"])
    assert "schema.name-mapping.default" in table.properties
    assert read(tmp_path) == sorted_rows(ROWS)


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_column_that_the_mapping_lists_without_an_id_is_left_out(tmp_path, file_format):
    """Such a column is in files and not in the table, as the specification allows; the file was refused."""
    nested = file_format != "avro"
    schema = "id bigint, s struct<a: bigint>" if nested else "id bigint"
    inner = '{"names": ["b"], "fields": [{"names": ["c"]}]}'
    struct = ', {"field-id": 2, "names": ["s"], "fields": [{"field-id": 3, "names": ["a"]}, ' + inner + "]}"
    mapping = '[{"field-id": 1, "names": ["id"]}, {"names": ["extra"]}' + (struct if nested else "") + "]"
    table = made(tmp_path, schema, properties={"schema.name-mapping.default": mapping})
    rows = pa.table({"id": [1, 2], "extra": ["x", "y"]})
    if nested:
        rows = rows.append_column("s", pa.array([{"a": 5, "b": {"c": 6, "d": 7}}, None]))
    path = tmp_path / f"a.{file_format}"
    write_foreign(path, file_format, rows)
    table.add_files(str(path))
    assert read(tmp_path) == ([(1, {"a": 5}), (2, None)] if nested else [(1,), (2,)])
    path = tmp_path / f"b.{file_format}"
    write_foreign(path, file_format, rows.append_column("other", pa.array(["x", "y"])))
    with pytest.raises(InputError, match="the table has no column 'other'"):
        table.add_files(str(path))
