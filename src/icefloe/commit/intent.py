"""Intents: what a commit wants, as frozen values (spec: Commit Conflict Resolution and Retry).

An intent is never changed by an attempt. Each attempt asks it two things of a fresh base: is it still valid, and which
change of the tree does it mean there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.base import Base
from icefloe.errors import ConflictError, InputError
from icefloe.expr.nodes import ALWAYS_TRUE, Expr
from icefloe.model.entries import empty
from icefloe.model.snapshots import Operation, Snapshot
from icefloe.scan.plan import plan_scan
from icefloe.scan.tasks import TASK
from icefloe.tree.change import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """An intent on one base: the change of the tree, and the planned rows of what leaves, for the summary."""

    added: pa.Table = field(default_factory=empty)
    removed: pa.Table = field(default_factory=TASK.empty_table)  # tasks of data files that leave
    replaced: pa.Table = field(default_factory=TASK.empty_table)  # tasks of data files whose vector is replaced

    def change(self) -> Change:
        """The change of the tree: a data file takes its deletion vector along."""
        columns = ["location", "dv_manifest", "dv_ordinal"]
        leaving = [t.filter(pc.is_valid(t["dv_location"])).select(columns) for t in (self.removed, self.replaced)]
        return Change(
            added=self.added,
            removed=self.removed.select(["location", "manifest", "ordinal"]),
            replaced=pa.concat_tables(leaving).rename_columns(["location", "manifest", "ordinal"]),
        )


class Intent(Protocol):
    """What a commit wants."""

    @property
    def properties(self) -> Mapping[str, str]:
        """Keys to add to the snapshot's summary."""
        ...

    @property
    def operation(self) -> Operation:
        """The kind of snapshot it makes."""
        ...

    @property
    def files(self) -> tuple[str, ...]:
        """Files written for this intent, which belong to nobody if it fails."""
        ...

    def resolve(self, base: Base) -> Resolved:
        """Check the intent against a base and say what it means there; ConflictError is final."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """Add data files; valid on any base."""

    added: pa.Table
    properties: Mapping[str, str] = field(default_factory=dict)
    operation: Operation = Operation.APPEND

    @property
    def files(self) -> tuple[str, ...]:
        """The data files."""
        return locations(self.added)

    def resolve(self, base: Base) -> Resolved:
        """New files conflict with nothing."""
        return Resolved(added=self.added)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFiles:
    """Remove data files by location; each must be live."""

    locations: tuple[str, ...]
    properties: Mapping[str, str] = field(default_factory=dict)
    operation: Operation = Operation.DELETE

    def __post_init__(self) -> None:
        if len(self.locations) == 0:
            raise InputError("no files to remove")

    @property
    def files(self) -> tuple[str, ...]:
        """It wrote none."""
        return ()

    def resolve(self, base: Base) -> Resolved:
        """Find the files on this base."""
        tasks = plan_scan(base.store, base.metadata, base.metadata.current_snapshot).tasks
        wanted = pa.array(self.locations, pa.string())
        gone = wanted.filter(pc.invert(pc.is_in(wanted, value_set=tasks["location"].combine_chunks())))
        if len(gone) > 0:
            raise ConflictError(
                f"table {base.metadata.location}: {gone[0].as_py()} is not a live data file, so it cannot be removed",
                file=gone[0].as_py(),
            )
        return Resolved(removed=tasks.filter(pc.is_in(tasks["location"], value_set=wanted)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDelta:
    """Delete rows, by deletion vectors or by removing files, and add rows, as one snapshot.

    It was computed from the files that ``read`` held and that matched ``filter``. Serializable isolation means that
    nothing it would have read has come or changed since, so that the outcome equals running in commit order.
    """

    added: pa.Table  # data files and deletion vectors
    removed: pa.Table = field(default_factory=TASK.empty_table)
    replaced: pa.Table = field(default_factory=TASK.empty_table)
    read: Snapshot | None
    filter: Expr = ALWAYS_TRUE
    properties: Mapping[str, str] = field(default_factory=dict)
    operation: Operation = Operation.OVERWRITE

    @property
    def files(self) -> tuple[str, ...]:
        """Data files and Puffin files."""
        return locations(self.added)

    def resolve(self, base: Base) -> Resolved:
        """Nothing it read may have changed."""
        if not _is_head(base, self.read):
            self._check_unchanged(base)
        return Resolved(added=self.added, removed=self.removed, replaced=self.replaced)

    def _check_unchanged(self, base: Base) -> None:
        now = plan_scan(base.store, base.metadata, base.metadata.current_snapshot, filter=self.filter).tasks
        read_at = 0 if self.read is None else self.read.sequence_number
        new = now.filter(pc.greater(now["sequence_number"], read_at))
        if new.num_rows > 0:
            raise _conflict(base, new["location"][0].as_py(), "was added by another commit and may hold rows it meant")
        then = pa.concat_tables([self.removed.select(_STATE), self.replaced.select(_STATE)])
        place = pc.index_in(then["location"], value_set=now["location"].combine_chunks())
        lost = pc.index(pc.is_null(place), True).as_py()
        if lost >= 0:
            raise _conflict(base, then["location"][lost].as_py(), "was removed by another commit")
        for name in ("dv_location", "dv_offset"):
            same = pc.equal(pc.fill_null(now[name].take(place), _NONE[name]), pc.fill_null(then[name], _NONE[name]))
            changed = pc.index(same, False).as_py()
            if changed >= 0:
                raise _conflict(base, then["location"][changed].as_py(), "had rows deleted by another commit")


_STATE = ["location", "dv_location", "dv_offset"]
_NONE = {"dv_location": "", "dv_offset": -1}


def locations(added: pa.Table) -> tuple[str, ...]:
    """The files of entries, each once."""
    return tuple(pc.unique(added["location"]).to_pylist())


def _is_head(base: Base, read: Snapshot | None) -> bool:
    return base.metadata.current_snapshot_id == (None if read is None else read.snapshot_id)


def _conflict(base: Base, file: str, what: str) -> ConflictError:
    return ConflictError(
        f"table {base.metadata.location}: {file} {what}; read the table again and repeat the operation", file=file
    )
