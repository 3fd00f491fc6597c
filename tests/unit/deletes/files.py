"""Data and delete files in memory, for tests: written as any program would, told in entries as planning does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from icefloe.formats.write.layout import layout
from icefloe.formats.write.writers import open_writer
from icefloe.io.memory import MemoryFileIO
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.entries import ContentType, StatKey, entries
from icefloe.model.schema.metadata_columns import DELETE_FILE_PATH, DELETE_POS
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field
from icefloe.scan.tasks import MANIFEST, TASK

FORMATS = ("parquet", "orc", "avro")
POSITIONS = Schema(fields=(DELETE_FILE_PATH, DELETE_POS))


def write(io: MemoryFileIO, location: str, schema: Schema, rows: pa.Table, file_format: str = "parquet") -> str:
    """Write one file; its location."""
    writer = open_writer(io, location, file_format, layout(schema, {}))
    for batch in pa.Table.from_arrays(rows.columns, schema=arrow_schema(schema)).to_batches():
        writer.add(batch, {})
    writer.close()
    return location


def write_positions(
    io: MemoryFileIO, location: str, rows: Iterable[tuple[str, int]], file_format: str = "parquet"
) -> str:
    """Write a position delete file."""
    given = list(rows)
    columns = [pa.array([path for path, _ in given], pa.string()), pa.array([at for _, at in given], pa.int64())]
    return write(io, location, POSITIONS, pa.table(columns, names=["file_path", "pos"]), file_format)


def write_groups(io: MemoryFileIO, location: str, rows: pa.Table, group_rows: int) -> str:
    """Write a Parquet file with small row groups, columns and ids as they are."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, row_group_size=group_rows, store_schema=False)
    io.write_new(location, sink.getvalue().to_pybytes())
    return location


def tasks(rows: Sequence[Mapping[str, object]], stats: Mapping[str, pa.DataType] | None = None) -> pa.Table:
    """Planned files; what is not given is as plain as it gets."""
    plain = {"file_format": "parquet", "partition_spec_id": 0, "sequence_number": 1, "match": 1, "deletes": []}
    schema = pa.schema([*TASK, *(pa.field(name, type_) for name, type_ in (stats or {}).items())])
    return pa.Table.from_pylist([{**plain, **row} for row in rows], schema)


def position_file(location: str, **more: object) -> dict[str, object]:
    """The entry of a position delete file."""
    return _delete(ContentType.POSITION_DELETES, location, more)


def equality_file(location: str, ids: list[int], sequence_number: int, **more: object) -> dict[str, object]:
    """The entry of an equality delete file."""
    return _delete(
        ContentType.EQUALITY_DELETES, location, {"equality_ids": ids, "sequence_number": sequence_number, **more}
    )


def _delete(content: ContentType, location: str, more: Mapping[str, object]) -> dict[str, object]:
    kind = location.rpartition(".")[2]
    plain = {"file_format": kind, "partition_spec_id": 0, "sequence_number": 9}
    return {"content_type": int(content), "location": location, **plain, **more}


def deletes(rows: Sequence[Mapping[str, object]], types: Mapping[StatKey, pa.DataType] | None = None) -> pa.Table:
    """Delete files of a plan."""
    found = entries([dict(row) for row in rows], types)
    return found.append_column(MANIFEST, pa.nulls(found.num_rows, pa.string()))


def by_id(*fields: Field) -> Mapping[int, Field]:
    """Fields at every depth, by id."""
    return Schema(fields=fields).by_id
