"""Snapshots as JSON, parsed only when asked for (spec: Appendix C: JSON serialization, Snapshots).

A table keeps hundreds of snapshots and a commit needs one of them, so ``LazySnapshots`` keeps the text of each and
hands it on unread when the metadata is written again. A snapshot that breaks the format is reported when it is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from icefloe.codecs.json_input import Int, Long, Record, decode_json, missing
from icefloe.errors import FormatError, UnsupportedError
from icefloe.model.locations import relativize, resolve
from icefloe.model.snapshots import Snapshot, SnapshotLog
from icefloe.model.version_rules import VersionRules


class _Header(Record, frozen=True):
    snapshot_id: Long


class _SnapshotRecord(Record, frozen=True):
    snapshot_id: Long
    timestamp_ms: Long
    parent_snapshot_id: Long | None = None
    sequence_number: Long = 0
    root_manifest: str | None = None
    manifest_list: str | None = None
    manifests: list[str] | None = None
    summary: dict[str, str] | None = None
    schema_id: Int | None = None
    first_row_id: Long | None = None
    added_rows: Long | None = None


_HEADER = msgspec.json.Decoder(_Header)
_SNAPSHOT = msgspec.json.Decoder(_SnapshotRecord)


@dataclass(frozen=True, slots=True, kw_only=True)
class LazySnapshots:
    """The snapshots of a table as text, each parsed when it is asked for."""

    stored: Sequence[msgspec.Raw]
    location: str  # of the table: relative locations in the text are resolved against it
    rules: VersionRules
    where: str  # the metadata file, for errors

    def __len__(self) -> int:
        return len(self.stored)

    def __iter__(self) -> Iterator[Snapshot]:
        for index in range(len(self.stored)):
            yield self._parse(index)

    def find(self, snapshot_id: int) -> Snapshot | None:
        """The snapshot of this id, newest first: of those before it only the ids are parsed."""
        for index in range(len(self.stored) - 1, -1, -1):
            if self._decode(_HEADER, index).snapshot_id == snapshot_id:
                return self._parse(index)
        return None

    def add(self, snapshot: Snapshot) -> LazySnapshots:
        """The log with one more snapshot at its end, turned to text once and for all later commits."""
        text = msgspec.json.encode(snapshot_to_json(snapshot, self.location, self.rules))
        return replace(self, stored=[*self.stored, msgspec.Raw(text)])

    def _decode(self, decoder: msgspec.json.Decoder[Any], index: int) -> Any:
        return decode_json(decoder, self.stored[index], self._path(index))

    def _path(self, index: int) -> str:
        return f"{self.where}: snapshots[{index}]"

    def _parse(self, index: int) -> Snapshot:
        record: _SnapshotRecord = self._decode(_SNAPSHOT, index)
        root = _root(record, self._path(index), self.location if self.rules.relative_locations else None)
        return Snapshot(
            snapshot_id=record.snapshot_id,
            parent_id=record.parent_snapshot_id,
            sequence_number=record.sequence_number,
            timestamp_ms=record.timestamp_ms,
            root=root,
            summary={} if record.summary is None else record.summary,
            schema_id=record.schema_id,
            first_row_id=record.first_row_id,
            added_rows=record.added_rows,
        )


def _root(record: _SnapshotRecord, path: str, base: str | None) -> str:
    """Where the root is; ``base`` is given when relative locations are allowed."""
    given = [root for root in (record.root_manifest, record.manifest_list) if root is not None]
    found = [root if base is None else resolve(root, base) for root in given]
    if len(found) == 2 and found[0] != found[1]:
        raise FormatError(f"{path}: root-manifest and manifest-list differ", field=path)
    if len(found) > 0:
        return found[0]
    if record.manifests is not None:
        raise UnsupportedError(f"{path}.manifests: a snapshot without a manifest list is not handled", field=path)
    raise missing(path, "root-manifest or manifest-list")


def encode_snapshots(snapshots: SnapshotLog, location: str, rules: VersionRules) -> list[Any]:
    """The JSON of all snapshots; text that is still right is handed on unread."""
    if not isinstance(snapshots, LazySnapshots) or _moved(snapshots, location):
        return [snapshot_to_json(snapshot, location, rules) for snapshot in snapshots]
    return list(snapshots.stored)


def _moved(snapshots: LazySnapshots, location: str) -> bool:
    return snapshots.rules.relative_locations and snapshots.location != location


def snapshot_to_json(snapshot: Snapshot, location: str, rules: VersionRules) -> dict[str, Any]:
    """A snapshot as a JSON object; in V4 the location of its root is relative where it can be."""
    # A V4 table keeps the snapshots it had before its upgrade, and those have a manifest list.
    key = "root-manifest" if rules.root_holds_files and not snapshot.root.endswith(".avro") else "manifest-list"
    written = {
        "snapshot-id": snapshot.snapshot_id,
        "parent-snapshot-id": snapshot.parent_id,
        "sequence-number": snapshot.sequence_number if rules.sequence_numbers else None,
        "timestamp-ms": snapshot.timestamp_ms,
        key: relativize(snapshot.root, location) if rules.relative_locations else snapshot.root,
        "summary": dict(snapshot.summary) if len(snapshot.summary) > 0 else None,
        "schema-id": snapshot.schema_id,
        "first-row-id": snapshot.first_row_id,
        "added-rows": snapshot.added_rows,
    }
    return {key: value for key, value in written.items() if value is not None}
