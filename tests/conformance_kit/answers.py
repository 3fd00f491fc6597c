"""What icefloe reads from a table of the conformance kit, in the form of ``expected.json``."""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import icefloe
from icefloe.catalogs.folders import MetadataFile
from icefloe.codecs.manifest.partition_values import partition_value
from icefloe.codecs.puffin.deletion_vector import decode_dv
from icefloe.commit.base import TablePointer
from icefloe.io.memory import MemoryFileIO
from icefloe.model.entries import DELETES, MANIFESTS, ContentType, Status, columns_of, concat, partition_key
from icefloe.model.locations import relativize
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.tree.root import leaves_of, read_live_leaf, read_root
from icefloe.tree.snapshot_changes import snapshot_changes
from support.conformance import CONFORMANCE

KIT = CONFORMANCE / "kit"
VALID = sorted(path.name for path in (KIT / "valid").iterdir())
INVALID = sorted(path.name for path in (KIT / "invalid").iterdir())
METADATA = "metadata/v1.metadata.json"
LINEAGE = ["_row_id", "_last_updated_sequence_number"]


def open_case(folder: Path) -> Table:
    """The table in a folder; one that was upgraded names files by absolute locations, so it is opened at its own."""
    stated = re.search(rb'"location": "(memory://[^"]+)"', (folder / METADATA).read_bytes())
    if stated is None:
        return icefloe.open_table(str(folder))
    location = stated[1].decode()
    io = MemoryFileIO()
    files = [(f"{location}/{path.relative_to(folder)}", path.read_bytes()) for path in folder.rglob("*.*")]
    io.write_many([(place, data) for place, data in files])
    return Table(TablePointer(MetadataFile(f"{location}/{METADATA}"), ("t",), io))


def content(table: Table) -> dict[str, Any]:
    """Everything that ``expected.json`` says about a table, except what is said about the case."""
    metadata = table.metadata
    return {
        "current-snapshot-id": metadata.current_snapshot_id,
        "refs": {name: ref.snapshot_id for name, ref in sorted(metadata.refs.items())},
        "next-row-id": metadata.next_row_id,
        "snapshots": [_Answer(table, snapshot).as_dict() for snapshot in metadata.snapshots],
    }


class _Answer:
    """One snapshot."""

    def __init__(self, table: Table, snapshot: Snapshot) -> None:
        self.table, self.snapshot = table, snapshot
        self.base = pointer_of(table).load()
        root = read_root(self.base.store, snapshot)
        leaves = leaves_of(root.rows(*MANIFESTS))
        parts = [read_live_leaf(self.base.store, root, leaf) for leaf in leaves]
        self.entries = concat([root.rows(ContentType.DATA, *DELETES), *parts]).combine_chunks()
        data = self._numbers(ContentType.DATA)
        self.has_row_ids = all(self._value(number, "first_row_id") is not None for number in data)
        columns = ["_file", "_pos", *(LINEAGE if self.has_row_ids else [])]
        self.rows = table.at(snapshot=snapshot.snapshot_id).scan(columns=columns).to_arrow().to_pylist()

    def as_dict(self) -> dict[str, Any]:
        files = [self._data_file(number) for number in self._numbers(ContentType.DATA)]
        deletes = [self._delete(number) for number in self._numbers(*DELETES)]
        return {
            "snapshot-id": self.snapshot.snapshot_id,
            "parent-snapshot-id": self.snapshot.parent_id,
            "sequence-number": self.snapshot.sequence_number,
            "operation": self.snapshot.summary.get("operation"),
            "row-count": self.table.at(snapshot=self.snapshot.snapshot_id).scan().count(),
            "data-files": sorted(files, key=lambda file: file["location"]),
            "deletes": sorted(deletes, key=lambda delete: (delete["location"], delete.get("offset", 0))),
            "changes": self._changes(),
        }

    def _numbers(self, *types: ContentType) -> list[int]:
        return [n for n, kind in enumerate(self.entries["content_type"].to_pylist()) if kind in types]

    def _value(self, number: int, name: str) -> Any:
        return self.entries[name][number].as_py()

    def _place(self, location: str) -> str:
        return relativize(location, self.base.metadata.location)

    def _common(self, number: int) -> dict[str, Any]:
        names = ("record_count", "snapshot_id", "sequence_number", "file_sequence_number")
        spec_id = self._value(number, "partition_spec_id")
        return {
            "location": self._place(self._value(number, "location")),
            **{name.replace("_", "-"): self._value(number, name) for name in names},
            "spec-id": spec_id,
            "partition": {f.name: self._partition(number, f) for f in self.base.store.context.spec(spec_id).fields},
        }

    def _partition(self, number: int, field: Any) -> Any:
        if field.is_void:
            return None
        type_ = self.base.store.context.partition_types[field.field_id]
        columns = columns_of(self.entries)
        value = partition_value(partition_key(field.field_id), columns, self.entries.num_rows, type_)[number].as_py()
        if isinstance(value, bytes):
            return value.hex()
        if isinstance(value, (date, datetime)):
            return value.isoformat()
        if isinstance(value, float) and math.isnan(value):
            return "NaN"
        return str(value) if isinstance(value, Decimal) else value

    def _data_file(self, number: int) -> dict[str, Any]:
        location, first = self._value(number, "location"), self._value(number, "first_row_id")
        rows = sorted((row for row in self.rows if row["_file"] == location), key=lambda row: row["_pos"])
        live = {row["_pos"] for row in rows}
        count = self._value(number, "record_count")
        return self._common(number) | {
            "first-row-id": first,
            "deleted-positions": [position for position in range(count) if position not in live],
            "row-ids": [row["_row_id"] for row in rows] if self.has_row_ids else None,
            "last-updated-sequence-numbers": [row[LINEAGE[1]] for row in rows] if self.has_row_ids else None,
        }

    def _delete(self, number: int) -> dict[str, Any]:
        kind = ContentType(self._value(number, "content_type"))
        offset, size = self._value(number, "dv_offset"), self._value(number, "dv_size_in_bytes")
        if offset is None:
            name = "equality-deletes" if kind is ContentType.EQUALITY_DELETES else "position-deletes"
            return {"kind": name, **self._common(number)}
        location = self._value(number, "location")
        blob = self.base.store.io.read_range(location, offset, size)
        target = self._value(number, "referenced_file")
        return {"kind": "deletion-vector", **self._common(number)} | {
            "offset": offset,
            "referenced-file": self._place(target),
            "positions": list(decode_dv(blob, where=location, cardinality=self._value(number, "record_count"))),
        }

    def _changes(self) -> dict[str, list[str]]:
        found = snapshot_changes(self.base.store, self.base.metadata, self.snapshot).to_pylist()
        names: dict[str, list[str]] = {"added": [], "removed": []}
        for row in found:
            offset = "" if row["dv_offset"] is None else f"#{row['dv_offset']}"
            name = "added" if row["status"] == Status.ADDED else "removed"
            names[name].append(self._place(row["location"]) + offset)
        return {name: sorted(places) for name, places in names.items()}


def read_everything(table: Table) -> None:
    """Read all rows of all snapshots, and what each of them changed."""
    content(table)
