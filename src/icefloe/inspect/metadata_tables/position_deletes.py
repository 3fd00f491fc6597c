"""The table ``position_deletes``: one row for each deleted position (spec: Position Delete Files; Row-level Deletes).

The live position delete files and deletion vectors of a snapshot are read. A file may store the deleted rows, too.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.base import Base
from icefloe.deletes.position_files import read_position_rows
from icefloe.deletes.vectors import load_vectors
from icefloe.inspect.metadata_tables.file_columns import partition_fields, partition_type
from icefloe.inspect.metadata_tables.table_shape import MetadataTable, chosen, optional, required
from icefloe.model.arrow.conform import arrow_type, nulls
from icefloe.model.entries import ContentType
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.schema.metadata_columns import deleted_row_column
from icefloe.model.schema.types import Struct
from icefloe.scan.partition_values import partition_tuples
from icefloe.scan.tree_entries import live_entries
from icefloe.tree.store import NO_STATISTICS

_NUMBER = "delete file"  # the row of the delete file among the entries
_VECTOR = {
    "location": "referenced_file",
    "dv_location": "location",
    "dv_offset": "dv_offset",
    "dv_size_in_bytes": "dv_size_in_bytes",
    "dv_cardinality": "record_count",
}


def _schema(base: Base) -> pa.Schema:
    fields = [
        required("file_path", pa.string()),
        required("pos", pa.int64()),
        optional("row", arrow_type(_row_type(base))),
        *partition_fields(base),
        required("spec_id", pa.int32()),
        required("delete_file_path", pa.string()),
    ]
    if base.metadata.rules.deletion_vectors:
        fields += [optional("content_offset", pa.int64()), optional("content_size_in_bytes", pa.int64())]
    return pa.schema(fields)


def _row_type(base: Base) -> Struct:
    return Struct(base.metadata.schema.fields)


def _position_deletes(base: Base, snapshot: Snapshot | None) -> pa.Table:
    types = (ContentType.POSITION_DELETES,)
    entries = live_entries(base.store, chosen(snapshot), types, wanted=NO_STATISTICS)
    is_vector = pc.is_valid(entries["dv_offset"])
    numbers = pa.array(np.arange(entries.num_rows), pa.int64())
    numbered = entries.append_column(_NUMBER, numbers)
    stored = pa.schema([field for field in _schema(base) if field.name in ("file_path", "pos", "row")])
    schema = pa.schema([*stored, pa.field(_NUMBER, pa.int64())])
    parts = [
        schema.empty_table(),
        *_of_vectors(base, numbered.filter(is_vector), schema),
        *_of_files(base, numbered.filter(pc.invert(is_vector)), schema),
    ]
    rows = pa.concat_tables(parts).combine_chunks()
    return _with_files(base, rows, entries)


def _of_vectors(base: Base, entries: pa.Table, schema: pa.Schema) -> Iterator[pa.Table]:
    tasks = pa.table({name: entries[source] for name, source in _VECTOR.items()})
    by_file = load_vectors(base.store.io, tasks, base.store.context.limits)
    for path, number in zip(tasks["location"].to_pylist(), entries[_NUMBER].to_pylist(), strict=True):
        positions = np.asarray(by_file[path].to_array()).astype(np.int64)
        length = len(positions)
        arrays = [
            pa.repeat(path, length),
            pa.array(positions, pa.int64()),
            nulls(_row_type(base), length),
            pa.repeat(pa.scalar(number, pa.int64()), length),
        ]
        yield pa.Table.from_arrays(arrays, schema=schema)


def _of_files(base: Base, entries: pa.Table, schema: pa.Schema) -> Iterator[pa.Table]:
    row = deleted_row_column(_row_type(base))
    names = (entries[name].to_pylist() for name in ("location", "file_format", _NUMBER))
    for location, file_format, number in zip(*names, strict=True):
        for batch in read_position_rows(base.store.io, location, file_format, row):
            arrays = [*batch.columns, pa.repeat(pa.scalar(number, pa.int64()), batch.num_rows)]
            yield pa.Table.from_arrays(arrays, schema=schema)


def _with_files(base: Base, rows: pa.Table, entries: pa.Table) -> pa.Table:
    """The rows with the columns of their delete files."""
    numbers = rows[_NUMBER].combine_chunks()
    of_files = {
        "spec_id": entries["partition_spec_id"],
        "delete_file_path": entries["location"],
        "content_offset": entries["dv_offset"],
        "content_size_in_bytes": entries["dv_size_in_bytes"],
    }
    if len(partition_fields(base)) > 0:
        of_files["partition"] = partition_tuples(entries, partition_type(base))
    schema = _schema(base)
    arrays = [rows[name] if name in rows.column_names else of_files[name].take(numbers) for name in schema.names]
    return pa.Table.from_arrays(arrays, schema=schema)


POSITION_TABLES = {
    "position_deletes": MetadataTable(schema=_schema, rows=_position_deletes, of_snapshot=True),
}
