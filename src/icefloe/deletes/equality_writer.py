"""Writes equality delete files, for one partition each or for the whole table (spec: Equality Delete Files).

A delete file of a partition does not apply to other partitions, nor to files of other specs. If the table has an
unpartitioned spec, the deletes are written for the whole table. Otherwise the delete columns must determine the
partition of a row in every spec of the table.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.deletes.delete_writer import delete_format, delete_properties
from icefloe.errors import InputError, StorageError
from icefloe.formats.write.metrics import Modes, metrics_modes
from icefloe.formats.write.write_files import write_files
from icefloe.io.file_io import FileIO
from icefloe.model.columns import one_array
from icefloe.model.entries import ContentType, concat, put
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.spec import PartitionSpec
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import DOUBLE, FLOAT, UUID, Field, Struct


def write_equality_deletes(
    io: FileIO,
    rows: pa.Table,
    columns: tuple[Field, ...],
    *,
    metadata: TableMetadata,
) -> pa.Table:
    """Write files that delete every older row equal to one of ``rows`` in ``columns``; the entries to commit.

    ``rows`` may have more columns. Null equals null.
    """
    schema = _delete_columns(columns, metadata)
    keys = _selected(rows, schema)
    written: list[pa.Table] = []
    try:
        for spec in _specs(metadata, schema):
            entries = write_files(
                io,
                keys,
                schema=schema,
                spec=spec,
                data_location=metadata.data_location,
                properties=delete_properties(metadata.properties),
                file_format=delete_format(metadata.properties),
                modes=_modes(schema, delete_properties(metadata.properties)),
            )
            written.append(put(entries, "content_type", int(ContentType.EQUALITY_DELETES)))
    except BaseException:
        with contextlib.suppress(StorageError):
            io.delete([location for entries in written for location in entries["location"].to_pylist()])
        raise
    return put(concat(written), "equality_ids", [field.id for field in columns])


def _delete_columns(columns: tuple[Field, ...], metadata: TableMetadata) -> Schema:
    """The delete columns, inside their structs. InputError for a column that cannot be a delete column."""
    schema = metadata.schema
    if not metadata.rules.sequence_numbers:
        raise InputError("tables of format version 1 have no delete files; upgrade the table to version 2 or later")
    if len(columns) == 0:
        raise InputError("equality deletes need at least one column to compare")
    for column in columns:
        name = schema.names.get(column.id, column.name)
        if column.id not in schema.measured:
            raise InputError(
                f"column {name!r} cannot be a delete column: it must be of a primitive type and neither in a list nor"
                " in a map",
                field=name,
            )
        if schema.measured[column.id].type in (FLOAT, DOUBLE):
            raise InputError(f"column {name!r} cannot be a delete column: it is a {column.type}", field=name)
    return schema.prune(tuple(schema.names[column.id] for column in columns))


def _modes(schema: Schema, properties: Mapping[str, str]) -> Modes:
    """The metrics modes of delete columns, without bounds of UUIDs.

    Apache Iceberg (1.12) compares UUIDs as signed numbers. By the bounds, which are in the order of their bytes, it
    would find that deletes on both sides of the sign bit overlap no data file, and ignore them.
    """
    modes = metrics_modes(schema, properties)
    uuids = [id_ for id_ in modes if schema.measured[id_].type == UUID]
    return {**modes, **{id_: replace(modes[id_], bounds=False) for id_ in uuids}}


def _selected(rows: pa.Table, schema: Schema) -> pa.Table:
    """The rows with exactly the columns and struct fields of a schema."""
    for field in schema.fields:
        if field.name not in rows.column_names:
            raise InputError(f"the rows to delete lack the delete column {field.name!r}", field=field.name)
    return pa.table({field.name: _inner(rows[field.name], field) for field in schema.fields})


def _inner(values: Any, field: Field) -> Any:
    if not isinstance(field.type, Struct) or not pa.types.is_struct(values.type):
        return values
    whole = one_array(values)
    known = {child.name for child in whole.type}
    kept = [child for child in field.type.fields if child.name in known]
    inner = [_inner(pc.struct_field(whole, child.name), child) for child in kept]
    return pa.StructArray.from_arrays(inner, names=[child.name for child in kept], mask=whole.is_null())


def _specs(metadata: TableMetadata, schema: Schema) -> list[PartitionSpec]:
    """The specs for which delete files are written: an unpartitioned one, or all specs of the table."""
    unpartitioned = next((spec for spec in metadata.specs if not spec.is_partitioned), None)
    if unpartitioned is not None:
        return [unpartitioned]
    for spec in metadata.specs:
        if not _determines_partition(schema, spec):
            names = [metadata.schema.names.get(f.source_id, f.name) for f in spec.fields if not f.is_void]
            raise InputError(
                f"equality deletes by {', '.join(schema.names[id_] for id_ in schema.measured)} do not determine"
                f" the partition of a row: rows are partitioned by {', '.join(names)}; compare these columns too, or"
                " delete by position"
            )
    return list(metadata.specs)


def _determines_partition(schema: Schema, spec: PartitionSpec) -> bool:
    """Whether these columns of a row determine its partition."""
    return all(id_ in schema.measured for field in spec.fields if not field.is_void for id_ in field.source_ids)
