"""Changes the files of a table without any check, as a faulty or a different writer would."""

from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap

from icefloe.codecs.manifest.field_ids import CONTENT_ENTRY, CONTENT_STATS, Group
from icefloe.codecs.manifest.parquet_layout import field_of, group_field
from stage import METADATA, encoded

Row = dict[str, Any]
DATA, DV, EQUALITY, DATA_MANIFEST, DELETE_MANIFEST, MANIFEST_DV = range(6)
EXISTING, ADDED, DELETED = range(3)
COLUMNS = {
    item.name: group_field(item) if isinstance(item, Group) else field_of(item)
    for item in CONTENT_ENTRY
    if item.id != CONTENT_STATS
}


class Files:
    """The files of a table by place, to be edited; ``changed`` are those that differ from the original."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.original, self.files = dict(files), dict(files)

    @property
    def changed(self) -> dict[str, bytes]:
        return {place: data for place, data in self.files.items() if self.original.get(place) != data}

    @property
    def removed(self) -> list[str]:
        return sorted(set(self.original) - set(self.files))

    # -- metadata

    @property
    def metadata(self) -> Any:
        return json.loads(self.files[METADATA])

    def edit_metadata(self, edit: Callable[[Any], object]) -> None:
        document = self.metadata
        edit(document)
        self.files[METADATA] = encoded(document)

    def edit_head(self, **values: object) -> None:
        """Set keys of the current snapshot."""
        self.edit_metadata(lambda m: head(m).update({key.replace("_", "-"): value for key, value in values.items()}))

    # -- manifests

    @property
    def root(self) -> str:
        """The place of the root of the current snapshot."""
        return str(head(self.metadata)["root-manifest"])

    def rows(self, place: str | None = None) -> list[Row]:
        """The rows of a manifest, null in columns that it does not have because no row has a value."""
        stored = pq.ParquetFile(io.BytesIO(self.files[place or self.root])).read().to_pylist()
        return [dict.fromkeys(COLUMNS) | row for row in stored]

    def leaf(self, kind: int = DATA_MANIFEST, number: int = 0) -> str:
        """The place of a leaf of the current root."""
        return str([row["location"] for row in self.rows() if row["content_type"] == kind][number])

    def edit_root(self, edit: Callable[[list[Row]], object], **keys: str | None) -> None:
        self.edit_manifest(self.root, edit, **keys)

    def edit_manifest(self, place: str, edit: Callable[[list[Row]], object], **keys: str | None) -> None:
        rows = self.rows(place)
        edit(rows)
        self.write_rows(place, rows, place, **keys)

    def write_rows(self, place: str, rows: list[Row], like: str, **keys: Any) -> None:
        """Write a manifest with these rows, the columns of another one, and the others that a row has."""
        there = self._parquet(like).schema_arrow
        set_ = {name for row in rows for name, value in row.items() if value is not None}
        new = (COLUMNS[name] for name in COLUMNS if name in set_ and name not in there.names)
        schema = pa.schema([_optional(field) for field in (*there, *new)])
        self.write_table(place, pa.Table.from_pylist(rows, schema=schema), like, **keys)

    def edit_table(self, place: str, edit: Callable[[pa.Table], pa.Table]) -> None:
        """Change the columns of a manifest, all that it may have."""
        table = self._parquet(place).read()
        others = (field for name, field in COLUMNS.items() if name not in table.column_names)
        loose = pa.schema([_optional(field) for field in (*table.schema, *others)])
        self.write_table(place, edit(pa.Table.from_pylist(table.to_pylist(), schema=loose)), place)

    def write_table(
        self, place: str, table: pa.Table, like: str, *, groups: int | None = None, **keys: str | None
    ) -> None:
        known = {k.decode(): v.decode() for k, v in (self._parquet(like).metadata.metadata or {}).items()}
        known |= {key.replace("_", "-"): value for key, value in keys.items()}
        sink = io.BytesIO()
        with pq.ParquetWriter(
            sink, table.schema, compression="zstd", use_dictionary=False, write_statistics=False, store_schema=False
        ) as writer:
            writer.write_table(table, row_group_size=groups or max(table.num_rows, 1))
            writer.add_key_value_metadata({key: value for key, value in known.items() if value is not None})
        self.files[place] = sink.getvalue()

    def _parquet(self, place: str) -> pq.ParquetFile:
        return pq.ParquetFile(io.BytesIO(self.files[place]))

    def sized(self, place: str) -> None:
        """Update the size and the number of rows of a leaf in the root."""
        size, count = len(self.files[place]), self._parquet(place).metadata.num_rows

        def edit(rows: list[Row]) -> None:
            for row in rows:
                if row["location"] == place:
                    row.update(file_size_in_bytes=size, record_count=count)

        self.edit_root(edit)


def head(metadata: Any) -> Any:
    """The current snapshot of a metadata document."""
    return next(s for s in metadata["snapshots"] if s["snapshot-id"] == metadata["current-snapshot-id"])


def _optional(field: pa.Field) -> pa.Field:
    type_ = field.type
    if pa.types.is_struct(type_):
        type_ = pa.struct([_optional(inner) for inner in type_])
    elif pa.types.is_list(type_):
        type_ = pa.list_(_optional(type_.value_field))
    return pa.field(field.name, type_, metadata=field.metadata)


def blob(*positions: int) -> bytes:
    """A deletion vector."""
    body = bytes.fromhex("d1d33964") + struct.pack("<QI", 1, 0) + BitMap(positions).serialize()
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def inline(*positions: int, data: bytes | None = None) -> Row:
    """The deletion_vector of an inline vector."""
    return {"offset": None, "size_in_bytes": None, "inline_content": blob(*positions) if data is None else data}


def last_snapshot_only(files: Files) -> None:
    """Drop all snapshots but the current one, and what only they need: their roots."""

    def edit(metadata: Any) -> None:
        last = head(metadata)
        for snapshot in metadata["snapshots"]:
            if snapshot is not last:
                files.files.pop(snapshot["root-manifest"])
        metadata["snapshots"] = [last]
        metadata["snapshot-log"] = metadata["snapshot-log"][-1:]

    files.edit_metadata(edit)
