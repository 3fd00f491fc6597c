"""Snapshots and the refs that name them (spec: Snapshots, Snapshot References)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Protocol

from icefloe.errors import FormatError

MAIN = "main"


class Operation(StrEnum):
    """What a snapshot did (spec: Snapshots, summary ``operation``)."""

    APPEND = "append"
    REPLACE = "replace"
    OVERWRITE = "overwrite"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state of a table at one time.

    ``root`` is the absolute location of its root: a manifest list in v1-v3, a root manifest in V4.
    """

    snapshot_id: int
    parent_id: int | None = None
    sequence_number: int = 0
    timestamp_ms: int
    root: str
    summary: Mapping[str, str] = field(default_factory=dict)
    schema_id: int | None = None
    first_row_id: int | None = None
    added_rows: int | None = None

    @property
    def operation(self) -> Operation:
        """The kind of change; a snapshot without a summary counts as an append."""
        name = self.summary.get("operation", Operation.APPEND)
        try:
            return Operation(name)
        except ValueError as error:
            raise FormatError(f"snapshot {self.snapshot_id}: unknown operation {name!r}", field="operation") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    """A branch or a tag, with its retention settings."""

    snapshot_id: int
    type: Literal["branch", "tag"] = "branch"
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None


class SnapshotLog(Protocol):
    """The snapshots of a table, oldest first; codecs bring a lazy one that parses only what is asked for."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Snapshot]: ...

    def find(self, snapshot_id: int) -> Snapshot | None:
        """The snapshot of this id, if the table has it."""
        ...

    def add(self, snapshot: Snapshot) -> SnapshotLog:
        """The log with one more snapshot at its end."""
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
