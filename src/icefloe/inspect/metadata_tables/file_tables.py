"""The tables of files and of manifest entries: ``files``, ``entries``, and those of all snapshots (spec: Manifests)."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from icefloe.commit.base import Base
from icefloe.inspect.metadata_tables.file_columns import file_arrays, file_fields, metrics_array, metrics_field
from icefloe.inspect.metadata_tables.table_shape import MetadataTable, chosen, optional, required
from icefloe.model.entries import DELETES, ContentType
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.scan.tree_entries import FILES, live_entries, tree_entries

_ENTRY = (
    required("status", pa.int32()),
    optional("snapshot_id", pa.int64()),
    optional("sequence_number", pa.int64()),
    optional("file_sequence_number", pa.int64()),
)

Rows = Callable[[Base, Snapshot | None], pa.Table]


def _file_schema(base: Base) -> pa.Schema:
    return pa.schema([*file_fields(base), metrics_field(base)])


def _files(types: tuple[ContentType, ...], *, of_all: bool = False) -> Rows:
    """The live files of these content types, of one snapshot or of all.

    A file that several manifests list as live has a row for each.
    """

    def rows(base: Base, snapshot: Snapshot | None) -> pa.Table:
        snapshots = base.metadata.snapshots if of_all else chosen(snapshot)
        entries = live_entries(base.store, snapshots, types)
        arrays = [*file_arrays(base, entries), metrics_array(base, entries)]
        return pa.Table.from_arrays(arrays, schema=_file_schema(base))

    return rows


def _entry_schema(base: Base) -> pa.Schema:
    file = required("data_file", pa.struct(file_fields(base)))
    return pa.schema([*_ENTRY, file, metrics_field(base)])


def _entries(*, of_all: bool = False) -> Rows:
    """The manifest entries of one snapshot or of all, removed ones too."""

    def rows(base: Base, snapshot: Snapshot | None) -> pa.Table:
        snapshots = base.metadata.snapshots if of_all else chosen(snapshot)
        entries = tree_entries(base.store, snapshots)
        plain = [entries[field.name].combine_chunks() for field in _ENTRY]
        file = pa.StructArray.from_arrays(file_arrays(base, entries), fields=file_fields(base))
        return pa.Table.from_arrays([*plain, file, metrics_array(base, entries)], schema=_entry_schema(base))

    return rows


def _of_one(types: tuple[ContentType, ...]) -> MetadataTable:
    return MetadataTable(schema=_file_schema, rows=_files(types), of_snapshot=True)


def _of_all(types: tuple[ContentType, ...]) -> MetadataTable:
    return MetadataTable(schema=_file_schema, rows=_files(types, of_all=True), of_all=True)


FILE_TABLES = {
    "entries": MetadataTable(schema=_entry_schema, rows=_entries(), of_snapshot=True),
    "files": _of_one(FILES),
    "data_files": _of_one((ContentType.DATA,)),
    "delete_files": _of_one(DELETES),
    "all_files": _of_all(FILES),
    "all_data_files": _of_all((ContentType.DATA,)),
    "all_delete_files": _of_all(DELETES),
    "all_entries": MetadataTable(schema=_entry_schema, rows=_entries(of_all=True), of_all=True),
}
