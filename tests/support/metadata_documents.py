"""Small metadata documents that tests of the metadata codec change and damage."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from icefloe.codecs.json.table_metadata import decode_metadata, encode_metadata
from icefloe.model.metadata.snapshots import Snapshot, Snapshots
from icefloe.model.metadata.table_metadata import TableMetadata

LOCATION = "file:///wh/db/t"
WHERE = f"{LOCATION}/metadata/00001.metadata.json"


def document(version: int = 2, **changes: object) -> dict[str, object]:
    """A small valid document; changes are given with underscores, and None removes a key."""
    base = {
        "format-version": version,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": LOCATION,
        "last-sequence-number": 1,
        "last-updated-ms": 10,
        "last-column-id": 1,
        "current-schema-id": 0,
        "schemas": [schema()],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "next-row-id": 0,
        "current-snapshot-id": 7,
        "snapshots": [snapshot(7)],
    }
    return _changed(base, changes)


def schema(schema_id: int = 0, **changes: object) -> dict[str, object]:
    """A schema of one column, with changes of the column."""
    column = {"id": 1, "name": "x", "required": True, "type": "long", **changes}
    return {"type": "struct", "schema-id": schema_id, "fields": [column]}


def snapshot(snapshot_id: int, **changes: object) -> dict[str, object]:
    base = {"snapshot-id": snapshot_id, "sequence-number": 1, "timestamp-ms": 5, "manifest-list": "file:///m.avro"}
    return _changed(base, changes)


def _changed(base: dict[str, object], changes: dict[str, object]) -> dict[str, object]:
    changed = base | {key.replace("_", "-"): value for key, value in changes.items()}
    return {key: value for key, value in changed.items() if value is not None}


def value(snapshot_id: int, **changes: Any) -> Snapshot:
    """A snapshot as a value, ready to be committed."""
    base: dict[str, Any] = {"snapshot_id": snapshot_id, "timestamp_ms": 20}
    return Snapshot(**{**base, "root": f"{LOCATION}/metadata/root.parquet", **changes})


def decode(given: object, **options: Any) -> TableMetadata:
    return decode_metadata(json.dumps(given).encode(), where=WHERE, **options)


def encoded(metadata: TableMetadata) -> dict[str, object]:
    document: dict[str, object] = json.loads(encode_metadata(metadata))
    return document


def metadata_json(file: Path | str | bytes) -> dict[str, Any]:
    """The document of a metadata file, given by its path, its location or its bytes."""
    data = file if isinstance(file, bytes) else Path(str(file).removeprefix("file://")).read_bytes()
    found: dict[str, Any] = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    return found


def plain(metadata: TableMetadata) -> TableMetadata:
    """The metadata with its snapshots as values, for comparison."""
    return replace(metadata, snapshots=Snapshots(tuple(metadata.snapshots)))
