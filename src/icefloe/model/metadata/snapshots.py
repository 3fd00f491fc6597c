"""Snapshots and the refs that name them (spec: Snapshots, Snapshot Reference)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Protocol

from icefloe.errors import FormatError, UnsupportedError
from icefloe.model.metadata.properties import MAX_REF_AGE_MS, MAX_SNAPSHOT_AGE_MS, MIN_SNAPSHOTS_TO_KEEP
from icefloe.model.schema.types import Unknown
from icefloe.model.text.text_checks import text_problem

MAIN = "main"


class Operation(StrEnum):
    """What a snapshot did (spec: Snapshots)."""

    APPEND = "append"
    REPLACE = "replace"
    OVERWRITE = "overwrite"
    DELETE = "delete"


class SummaryKey(StrEnum):
    """The keys of a snapshot's summary; ``operation`` is required, the others are counts of changes and totals."""

    OPERATION = "operation"
    ADDED_DATA_FILES = "added-data-files"
    DELETED_DATA_FILES = "deleted-data-files"
    TOTAL_DATA_FILES = "total-data-files"
    ADDED_RECORDS = "added-records"
    DELETED_RECORDS = "deleted-records"
    TOTAL_RECORDS = "total-records"
    ADDED_FILES_SIZE = "added-files-size"
    REMOVED_FILES_SIZE = "removed-files-size"
    TOTAL_FILES_SIZE = "total-files-size"
    ADDED_DELETE_FILES = "added-delete-files"
    REMOVED_DELETE_FILES = "removed-delete-files"
    TOTAL_DELETE_FILES = "total-delete-files"
    ADDED_DVS = "added-dvs"
    REMOVED_DVS = "removed-dvs"
    ADDED_POSITION_DELETE_FILES = "added-position-delete-files"
    REMOVED_POSITION_DELETE_FILES = "removed-position-delete-files"
    ADDED_POSITION_DELETES = "added-position-deletes"
    REMOVED_POSITION_DELETES = "removed-position-deletes"
    TOTAL_POSITION_DELETES = "total-position-deletes"
    ADDED_EQUALITY_DELETE_FILES = "added-equality-delete-files"
    REMOVED_EQUALITY_DELETE_FILES = "removed-equality-delete-files"
    ADDED_EQUALITY_DELETES = "added-equality-deletes"
    REMOVED_EQUALITY_DELETES = "removed-equality-deletes"
    TOTAL_EQUALITY_DELETES = "total-equality-deletes"
    CHANGED_PARTITION_COUNT = "changed-partition-count"
    MANIFESTS_CREATED = "manifests-created"
    MANIFESTS_KEPT = "manifests-kept"
    MANIFESTS_REPLACED = "manifests-replaced"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state of a table at one time.

    ``root`` is the absolute location of its root: a manifest list in v1-v3, a root manifest in V4. A snapshot of v1
    may have no root and name its ``manifests`` itself.
    """

    snapshot_id: int
    parent_id: int | None = None
    sequence_number: int = 0
    timestamp_ms: int
    root: str | None
    manifests: tuple[str, ...] = ()
    summary: Mapping[str, str] = field(default_factory=dict)
    schema_id: int | None = None
    first_row_id: int | None = None
    added_rows: int | None = None
    key_id: str | None = None  # v3+: the encryption key of its root
    extra: Unknown = ()

    @property
    def root_location(self) -> str:
        """Where the root is; an error for a snapshot of v1 that has none."""
        if self.root is None:
            reason = "names its manifests itself, as version 1 allows, and has no root file"
            raise UnsupportedError(f"snapshot {self.snapshot_id} {reason}", snapshot_id=self.snapshot_id)
        return self.root

    @property
    def operation(self) -> Operation:
        """The kind of change; a snapshot without a summary counts as an append."""
        name = self.summary.get(SummaryKey.OPERATION, Operation.APPEND)
        try:
            return Operation(name)
        except ValueError as error:
            raise FormatError(f"snapshot {self.snapshot_id}: unknown operation {name!r}", field="operation") from error


def summary_number(snapshot: Snapshot | None, key: SummaryKey) -> int | None:
    """A number in the summary of a snapshot, if it is there."""
    text = "" if snapshot is None else snapshot.summary.get(key, "")
    return int(text) if text.isdecimal() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    """A branch or a tag, with its own retention settings where it has any."""

    snapshot_id: int
    type: Literal["branch", "tag"] = "branch"
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None
    extra: Unknown = ()


def ref_problem(name: str, ref: Ref) -> str | None:
    """Why a table cannot have a ref under a name; ``None`` if it can.

    >>> ref_problem("main", Ref(snapshot_id=1, type="tag"))
    'main must be a branch'
    """
    if (problem := text_problem(name)) is not None:
        return f"the name: {problem}"
    if name == "":
        return "the name is empty"
    if name == MAIN and ref.type != "branch":
        return "main must be a branch"
    settings = {
        "min-snapshots-to-keep": ref.min_snapshots_to_keep,
        "max-snapshot-age-ms": ref.max_snapshot_age_ms,
        "max-ref-age-ms": ref.max_ref_age_ms,
    }
    for key, value in settings.items():
        if value is not None and value <= 0:
            return f"{key} is {value}; it must be positive"
        if value is not None and ref.type == "tag" and key != "max-ref-age-ms":
            return f"a tag has no {key}; only branches have"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """What expiry keeps of a ref, with all defaults; ``None`` where there is no limit or nothing to limit."""

    min_snapshots_to_keep: int | None
    max_snapshot_age_ms: int | None
    max_ref_age_ms: int | None


def retention(name: str, ref: Ref, properties: Mapping[str, str]) -> Retention:
    """The retention of a ref in a table of these properties (spec: Snapshot Retention Policy).

    Main never expires. A tag is one snapshot, so only its own age is limited.
    """
    if ref.type == "tag":
        keep, age = None, None
    else:
        keep, age = ref.min_snapshots_to_keep, ref.max_snapshot_age_ms
        keep = MIN_SNAPSHOTS_TO_KEEP.of(properties) if keep is None else keep
        age = MAX_SNAPSHOT_AGE_MS.of(properties) if age is None else age
    ref_age = MAX_REF_AGE_MS.of(properties) if ref.max_ref_age_ms is None else ref.max_ref_age_ms
    return Retention(
        min_snapshots_to_keep=keep,
        max_snapshot_age_ms=age,
        max_ref_age_ms=None if name == MAIN or ref_age == MAX_REF_AGE_MS.default else ref_age,
    )


class SnapshotLog(Protocol):
    """The snapshots of a table, oldest first; the JSON codec has a lazy one that parses snapshots on access."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Snapshot]: ...

    def find(self, snapshot_id: int) -> Snapshot | None:
        """The snapshot of this id, if the table has it."""
        ...

    def add(self, snapshot: Snapshot) -> SnapshotLog:
        """The log with one more snapshot at its end."""
        ...

    def without(self, snapshot_ids: Collection[int]) -> SnapshotLog:
        """The log without some snapshots; ids it does not have are ignored."""
        ...


@dataclass(frozen=True, slots=True)
class Snapshots:
    """Snapshots held as values."""

    values: tuple[Snapshot, ...] = ()

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Snapshot]:
        return iter(self.values)

    def find(self, snapshot_id: int) -> Snapshot | None:
        """The snapshot of this id, newest first."""
        return next((s for s in reversed(self.values) if s.snapshot_id == snapshot_id), None)

    def add(self, snapshot: Snapshot) -> Snapshots:
        """The log with one more snapshot at its end."""
        return Snapshots((*self.values, snapshot))

    def without(self, snapshot_ids: Collection[int]) -> Snapshots:
        """The log without some snapshots."""
        return Snapshots(tuple(s for s in self.values if s.snapshot_id not in snapshot_ids))
