"""Snapshots and refs as JSON; snapshots are parsed only when asked for (spec: Snapshots, Snapshot Reference).

A table keeps thousands of snapshots and a commit needs one of them, so ``LazySnapshots`` keeps the text of each and
copies it unread when the metadata is written again. Loading parses only the ids; a snapshot that breaks the format in
another way is reported when it is read.

V4 leaves zeros out of summaries, since most tables have no deletes and four keys of each snapshot would say so. A count
is left out only if its group is complete: ``total-data-files`` says that the totals are known, ``manifests-created``
that manifests were counted. Without these two keys, an absent count is unknown, as in other versions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import msgspec

from icefloe.codecs.json.gzip_members import MemberCache
from icefloe.codecs.json.input import (
    Count,
    Extensible,
    Int,
    Long,
    PositiveInt,
    PositiveLong,
    Reading,
    Record,
    decode_extensible,
    decode_json,
    in_file,
    missing,
    with_unknown,
)
from icefloe.codecs.json.record_shapes import entry_path
from icefloe.codecs.json.relative_locations import TableLocations
from icefloe.errors import FormatError
from icefloe.model.metadata.snapshots import MAIN, Ref, Snapshot, SnapshotLog, Snapshots, SummaryKey
from icefloe.model.metadata.version_rules import SNAPSHOT_FIELDS, VERSIONS, VersionRules, fields, is_manifest_list
from icefloe.model.schema.types import Unknown


class _Header(Record, frozen=True, gc=False):
    snapshot_id: Long


class _Headers(Record, frozen=True):
    snapshots: list[_Header] | None = None


class _SnapshotRecord(Extensible, frozen=True):
    snapshot_id: Long
    timestamp_ms: Long
    parent_snapshot_id: Long | None = None
    sequence_number: Count = 0
    root_manifest: str | None = None
    manifest_list: str | None = None
    manifests: list[str] | None = None
    summary: dict[str, str] | None = None
    schema_id: Int | None = None
    first_row_id: Count | None = None
    added_rows: Count | None = None
    key_id: str | None = None


class RefRecord(Extensible, frozen=True):
    """A branch or a tag."""

    snapshot_id: Long
    type: Literal["branch", "tag"]
    min_snapshots_to_keep: PositiveInt | None = None
    max_snapshot_age_ms: PositiveLong | None = None
    max_ref_age_ms: PositiveLong | None = None


_HEADERS = msgspec.json.Decoder(_Headers)
_SNAPSHOT = msgspec.json.Decoder(_SnapshotRecord)
_WRITTEN = {version: frozenset(fields(SNAPSHOT_FIELDS, version)) for version in VERSIONS}


def snapshot_positions(document: bytes) -> dict[int, int]:
    """The position of each snapshot in a metadata document, by id; a repeated id is an error."""
    headers = decode_json(_HEADERS, document).snapshots or ()
    positions = {header.snapshot_id: position for position, header in enumerate(headers)}
    if len(positions) < len(headers):
        first = next(i for i, header in enumerate(headers) if positions[header.snapshot_id] != i)
        snapshot_id = headers[first].snapshot_id
        reason = f"{snapshot_id} is also the id of snapshots[{first}]"
        path = f"snapshots[{positions[snapshot_id]}].snapshot-id"
        raise FormatError(f"{path}: {reason}", field=path, snapshot_id=snapshot_id)
    return positions


@dataclass(frozen=True, slots=True, kw_only=True)
class LazySnapshots:
    """The snapshots of a table as JSON text; each is parsed on access."""

    stored: Sequence[msgspec.Raw]
    positions: Mapping[int, int]  # by snapshot id
    location: str  # of the table: relative locations in the text are resolved against it
    rules: VersionRules
    where: str  # the metadata file, for errors
    mirrored: bool = False  # V4: whether the text also stores each root under manifest-list
    members: MemberCache = field(default_factory=MemberCache, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.stored)

    def __iter__(self) -> Iterator[Snapshot]:
        for index in range(len(self.stored)):
            yield self._parse(index)

    def find(self, snapshot_id: int) -> Snapshot | None:
        """The snapshot of this id; no other one is parsed."""
        position = self.positions.get(snapshot_id)
        return None if position is None else self._parse(position)

    def add(self, snapshot: Snapshot) -> SnapshotLog:
        """The log with one more snapshot at its end, turned to text once and for all later commits."""
        text = msgspec.json.encode(snapshot_to_json(snapshot, self.location, self.rules, mirrored=self.mirrored))
        grown = replace(
            self,
            stored=[*self.stored, msgspec.Raw(text)],
            positions={**self.positions, snapshot.snapshot_id: len(self.stored)},
        )
        # During an upgrade the JSON of the old version is incomplete for a new snapshot, and is not kept anyway.
        return grown if grown._parse(len(self.stored)) == snapshot else Snapshots((*self, snapshot))

    def without(self, snapshot_ids: Collection[int]) -> LazySnapshots:
        """The log without some snapshots; none is parsed."""
        gone = frozenset(snapshot_ids)
        kept = {snapshot_id: at for snapshot_id, at in self.positions.items() if snapshot_id not in gone}
        return replace(
            self,
            stored=[self.stored[at] for at in kept.values()],
            positions={snapshot_id: position for position, snapshot_id in enumerate(kept)},
        )

    def _parse(self, index: int) -> Snapshot:
        path = f"snapshots[{index}]"
        try:
            record, extras = decode_extensible(_SNAPSHOT, self.stored[index], path)
            return _snapshot(record, path, TableLocations.of(self.location, self.rules), extras.get(path, ()))
        except FormatError as error:
            raise in_file(error, self.where) from error


def _snapshot(record: _SnapshotRecord, path: str, locations: TableLocations, unknown: Unknown) -> Snapshot:
    root = _root(record, path, locations)
    return Snapshot(
        snapshot_id=record.snapshot_id,
        parent_id=record.parent_snapshot_id,
        sequence_number=record.sequence_number,
        timestamp_ms=record.timestamp_ms,
        root=root,
        manifests=tuple(record.manifests or ()) if root is None else (),
        summary=_summary(record),
        schema_id=record.schema_id,
        first_row_id=record.first_row_id,
        added_rows=record.added_rows,
        key_id=record.key_id,
        extra=unknown,
    )


def _summary(record: _SnapshotRecord) -> dict[str, str]:
    """The summary; one of V4 leaves out zeros."""
    if record.summary is None:
        return {}
    return record.summary if record.root_manifest is None else with_zeros(record.summary)


def _root(record: _SnapshotRecord, path: str, locations: TableLocations) -> str | None:
    """The location of the root; version 1 allows a list of manifests instead."""
    roots = [locations.absolute(root) for root in (record.root_manifest, record.manifest_list) if root is not None]
    if len(roots) == 2 and roots[0] != roots[1]:
        raise FormatError(f"{path}: root-manifest and manifest-list differ: {roots[0]} and {roots[1]}", field=path)
    if len(roots) == 0 and record.manifests is None:
        raise missing(path, "root-manifest or manifest-list")
    return roots[0] if len(roots) > 0 else None


def encode_snapshots(
    snapshots: SnapshotLog, location: str, rules: VersionRules, *, mirrored: bool = False
) -> list[Any]:
    """The JSON of all snapshots; text that is still valid is copied unread.

    FormatError if two have the same id: no program could read the table.
    """
    text = snapshots if isinstance(snapshots, LazySnapshots) else None
    if text is None or text.mirrored != mirrored or _moved(text, location, rules):
        _check_distinct([snapshot.snapshot_id for snapshot in snapshots], location)
        return [snapshot_to_json(snapshot, location, rules, mirrored=mirrored) for snapshot in snapshots]
    if len(text.positions) < len(text.stored):
        _check_distinct([snapshot.snapshot_id for snapshot in text], location)
    return list(text.stored)


def _check_distinct(snapshot_ids: Sequence[int], location: str) -> None:
    if len(set(snapshot_ids)) < len(snapshot_ids):
        twice = next(snapshot_id for snapshot_id, count in Counter(snapshot_ids).items() if count > 1)
        raise FormatError(
            f"{location}: refused to write metadata with snapshot {twice} twice; nothing was committed",
            location=location,
            snapshot_id=twice,
            next_step="Call refresh() and look for the snapshot: an earlier attempt may have committed it.",
        )


def _moved(snapshots: LazySnapshots, location: str, rules: VersionRules) -> bool:
    """Whether the text is invalid in its new document: of another format version, or relative to another table."""
    if rules.version != snapshots.rules.version:
        return True
    return rules.relative_locations and snapshots.location != location


def snapshot_to_json(
    snapshot: Snapshot, location: str, rules: VersionRules, *, mirrored: bool = False
) -> dict[str, Any]:
    """A snapshot as a JSON object; in V4 the location of its root is relative where it can be.

    ``mirrored`` names a root manifest under ``manifest-list`` too, for programs that look for nothing else.
    """
    root = _root_to_json(snapshot, TableLocations.of(location, rules), rules, mirrored=mirrored)
    summary = without_zeros(snapshot.summary) if "root-manifest" in root else dict(snapshot.summary)
    written = {
        "snapshot-id": snapshot.snapshot_id,
        "parent-snapshot-id": snapshot.parent_id,
        "sequence-number": snapshot.sequence_number,
        "timestamp-ms": snapshot.timestamp_ms,
        "summary": summary if len(summary) > 0 else None,
        "schema-id": snapshot.schema_id,
        "first-row-id": snapshot.first_row_id,
        "added-rows": snapshot.added_rows,
        "key-id": snapshot.key_id,
    }
    allowed = _WRITTEN[rules.version]
    own = {key: value for key, value in written.items() if value is not None and key in allowed}
    return with_unknown({**own, **root}, snapshot.extra)


def _root_to_json(
    snapshot: Snapshot, locations: TableLocations, rules: VersionRules, *, mirrored: bool
) -> dict[str, Any]:
    """The root of a snapshot under its key; snapshots from before an upgrade keep theirs."""
    if snapshot.root is None:
        return {"manifests": list(snapshot.manifests)}
    root = locations.stored(snapshot.root)
    if is_manifest_list(snapshot.root, rules.version):
        return {"manifest-list": root}
    return {"root-manifest": root, "manifest-list": root} if mirrored else {"root-manifest": root}


def ref_from_record(record: RefRecord, path: str, reading: Reading) -> Ref:
    """The ref of a decoded record."""
    return Ref(
        snapshot_id=record.snapshot_id,
        type=record.type,
        min_snapshots_to_keep=record.min_snapshots_to_keep,
        max_snapshot_age_ms=record.max_snapshot_age_ms,
        max_ref_age_ms=record.max_ref_age_ms,
        extra=reading.unknown(path),
    )


def refs_from_records(records: Mapping[str, RefRecord], current: int | None, reading: Reading) -> dict[str, Ref]:
    """The branches and tags of a table; main is implied if the table records no refs."""
    refs = {name: ref_from_record(record, entry_path("refs", name), reading) for name, record in records.items()}
    return refs if MAIN in refs else {**refs, **implied_refs(current)}


def implied_refs(current: int | None) -> dict[str, Ref]:
    """The refs of a table that records none: main at the current snapshot."""
    return {} if current is None else {MAIN: Ref(snapshot_id=current)}


def refs_to_json(refs: Mapping[str, Ref], current: int | None, version: VersionRules) -> dict[str, Any] | None:
    """All branches and tags. The fields of version 1 do not include them, so implied ones are left out."""
    if not version.sequence_numbers and refs == implied_refs(current):
        return None
    return {name: ref_to_json(ref) for name, ref in refs.items()}


def ref_to_json(ref: Ref) -> dict[str, Any]:
    """A ref as a JSON object."""
    written = {
        "snapshot-id": ref.snapshot_id,
        "type": ref.type,
        "min-snapshots-to-keep": ref.min_snapshots_to_keep,
        "max-snapshot-age-ms": ref.max_snapshot_age_ms,
        "max-ref-age-ms": ref.max_ref_age_ms,
    }
    return with_unknown({key: value for key, value in written.items() if value is not None}, ref.extra)


_ZERO = "0"
_GROUPS: Mapping[str, tuple[str, ...]] = {  # the key that is never left out, and those that are
    SummaryKey.TOTAL_DATA_FILES: (
        SummaryKey.TOTAL_RECORDS,
        SummaryKey.TOTAL_FILES_SIZE,
        SummaryKey.TOTAL_DELETE_FILES,
        SummaryKey.TOTAL_POSITION_DELETES,
        SummaryKey.TOTAL_EQUALITY_DELETES,
    ),
    SummaryKey.MANIFESTS_CREATED: (SummaryKey.MANIFESTS_KEPT, SummaryKey.MANIFESTS_REPLACED),
}


def without_zeros(summary: Mapping[str, str]) -> dict[str, str]:
    """A summary as V4 stores it; ``with_zeros`` returns the original.

    >>> stored = without_zeros({"manifests-created": "1", "manifests-kept": "0", "manifests-replaced": "1"})
    >>> stored
    {'manifests-created': '1', 'manifests-replaced': '1'}
    >>> with_zeros(stored)
    {'manifests-created': '1', 'manifests-replaced': '1', 'manifests-kept': '0'}
    """
    stored = dict(summary)
    for known, counts in _GROUPS.items():
        if all(key in summary for key in (known, *counts)):
            stored = {key: value for key, value in stored.items() if key not in counts or value != _ZERO}
        elif _leaves_out_zeros(summary, known, counts):
            del stored[known]  # what is absent here is unknown, not zero
    return stored


def with_zeros(summary: Mapping[str, str]) -> dict[str, str]:
    """A summary with the zeros that V4 leaves out."""
    complete = dict(summary)
    for known, counts in _GROUPS.items():
        if _leaves_out_zeros(summary, known, counts):
            complete |= {str(key): _ZERO for key in counts if key not in summary}
    return complete


def _leaves_out_zeros(summary: Mapping[str, str], known: str, counts: tuple[str, ...]) -> bool:
    return known in summary and all(summary.get(key) != _ZERO for key in counts)
