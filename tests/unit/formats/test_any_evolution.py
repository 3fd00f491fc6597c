"""Any evolution of a schema reads as a projection by id, in every format, with and without ids in the file."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from icefloe.formats.read.file_read import FileDeletes, FilePart, FileRead
from icefloe.formats.read.reader import read_file
from icefloe.formats.write.write_files import write_files
from icefloe.io.memory import MemoryFileIO
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.schema.name_mapping import mapping_of
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Struct
from support import evolving_schemas as evolving

pytestmark = pytest.mark.slow

SMALL = {
    "write.parquet.row-group-size-bytes": "60",
    "write.orc.stripe-size-bytes": "1",
    "write.avro.block-size-bytes": "1",
}


def draw_change(data: Any) -> tuple[Struct, Struct, list[dict[int, Any]]]:
    """The fields when a file was written, those of the table now, and the rows of the file."""
    counter = iter(range(1, 10_000))
    old = Struct(evolving.draw_fields(data.draw, lambda: next(counter), 2))
    new = evolving.evolve(data.draw, old, lambda: next(counter))
    assert isinstance(new, Struct)
    return old, new, data.draw(evolving.rows_of(old.fields))


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_schema_evolution_reads_as_a_projection_by_id(file_format: str, data: Any) -> None:
    old, new, rows = draw_change(data)
    io, schema = MemoryFileIO(), Schema(fields=old.fields)
    entries = write_files(
        io,
        pa.Table.from_pylist([evolving.named(row, old) for row in rows], schema=arrow_schema(schema)),
        schema=schema,
        data_location="memory://t/data",
        properties={"write.format.default": file_format, **(SMALL if data.draw(st.booleans()) else {})},
    )
    gone = data.draw(st.sets(st.integers(0, len(rows) - 1)))
    count = data.draw(st.integers(1, 3))
    found = [
        row
        for index in range(count)
        for batch in read_file(
            io,
            FileRead(
                location=entries["location"][0].as_py(),
                file_format=file_format,
                schema=Schema(fields=new.fields),
                deletes=FileDeletes(positions=BitMap64(gone)),
                part=FilePart(index=index, count=count),
                batch_rows=data.draw(st.integers(1, 6)),
            ),
        )
        for row in batch.to_pylist()
    ]
    assert entries["file_format"].to_pylist() == [file_format]
    assert found == [evolving.named(row, new) for i, row in enumerate(rows) if i not in gone]


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_file_without_ids_is_read_through_a_name_mapping_like_one_with_them(data: Any) -> None:
    old, new, rows = draw_change(data)
    plain = pa.Table.from_pylist(
        [evolving.named(row, old) for row in rows], schema=arrow_schema(Schema(fields=old.fields))
    )
    io, sink = MemoryFileIO(), pa.BufferOutputStream()
    pq.write_table(plain.cast(without_marks(plain.schema)), sink, store_schema=False, row_group_size=2)
    io.write_new("memory://t/f.parquet", sink.getvalue().to_pybytes())
    assert all(field.metadata is None for field in pq.read_schema(pa.BufferReader(sink.getvalue())))
    mapping = mapping_of(Schema(fields=old.fields))
    batches = read_file(
        io, FileRead(location="memory://t/f.parquet", schema=Schema(fields=new.fields), mapping=mapping)
    )
    assert [row for batch in batches for row in batch.to_pylist()] == [evolving.named(row, new) for row in rows]


def without_marks(schema: pa.Schema) -> pa.Schema:
    return pa.schema([plain_field(field) for field in schema])


def plain_field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, plain_type(field.type), nullable=field.nullable)


def plain_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct([plain_field(field) for field in type_])
    if pa.types.is_map(type_):
        return pa.map_(plain_field(type_.key_field), plain_field(type_.item_field))
    return pa.list_(plain_field(type_.value_field)) if pa.types.is_list(type_) else type_
