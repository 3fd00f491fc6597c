"""The files that a stream reads of a table, in a fixed order: those of a snapshot, then those of later appends.

An offset is a snapshot and a number of its files. It also records where the stream began, because Spark asks again for
the rows of the first batch after a restart, when the table may have changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InputError
from icefloe.model.metadata.snapshots import Operation, Snapshot
from icefloe.scan.appends import plan_appends
from icefloe.scan.plan import plan_scan
from icefloe.scan.tasks import Plan
from icefloe.spark_sql.kept import Kept
from icefloe.spark_sql.streams.history import StreamHistory
from icefloe.spark_sql.streams.options import NO_LIMIT, StreamOptions, skip_option

_PLANS_KEPT = 32
_ALL_FILES = (1 << 31) - 1  # a position behind the last file of any snapshot
_ORDER = [("sequence_number", "ascending"), ("location", "ascending")]

PlanKey = tuple[str, int, bool, int]  # table, snapshot, whether all of its files, schema
Plans = Kept[PlanKey, Plan]


class FilePosition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far a table is read: all files before a snapshot, and some of the snapshot. The names are Apache Iceberg's.

    ``scan_all_files`` counts all files of the snapshot, otherwise those that it added. Without a snapshot nothing is
    read of a table, and its history is read from the first snapshot on.
    """

    version: int = 1
    snapshot_id: int | None = None
    position: int = 0
    scan_all_files: bool = False


class StreamOffset(FilePosition, frozen=True, kw_only=True):
    """An offset of a stream; before its first batch it has no ``began_at``."""

    began_at: FilePosition | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFiles:
    """A snapshot whose files a stream reads, from the file with number ``first`` on."""

    snapshot: Snapshot
    is_whole: bool
    first: int


def new_plans() -> Plans:
    """A cache of plans."""
    return Kept(_PLANS_KEPT)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFiles:
    """The files of a table in one state."""

    history: StreamHistory
    options: StreamOptions
    plans: Plans

    def up_to(self, snapshot_id: int) -> StreamFiles:
        """The files up to a snapshot."""
        return replace(self, history=self.history.up_to(snapshot_id))

    def latest(self, start: StreamOffset, *, is_unlimited: bool) -> StreamOffset | None:
        """The end of the next batch; none while the table is empty."""
        began_at = self._beginning() if start.began_at is None else start.began_at
        if began_at is None or self.history.head is None:
            return None
        read: FilePosition = began_at if start.began_at is None else start
        files = NO_LIMIT if is_unlimited else self.options.max_files
        rows = NO_LIMIT if is_unlimited else self.options.max_rows
        is_first = True
        for part in self._after(read, self.history.head):
            counts = np.asarray(self._plan(part.snapshot, is_whole=part.is_whole).tasks["record_count"])[part.first :]
            taken = files_within(counts, max_files=files, max_rows=rows, at_least_one=is_first)
            files, rows, is_first = files - taken, rows - int(counts[:taken].sum()), is_first and taken == 0
            read = FilePosition(
                snapshot_id=part.snapshot.snapshot_id, position=part.first + taken, scan_all_files=part.is_whole
            )
            if taken < len(counts):
                break
        return StreamOffset(
            snapshot_id=read.snapshot_id,
            position=read.position,
            scan_all_files=read.scan_all_files,
            began_at=began_at,
        )

    def plan(self, start: StreamOffset, end: StreamOffset) -> Plan | None:
        """The plan of the files between two offsets; none if there are no files."""
        self.history.check_types()
        read = end.began_at if start.began_at is None else start
        if read is None or end.snapshot_id is None:
            return None
        plans = []
        for part in self._after(read, self.history.snapshot(end.snapshot_id)):
            plan = self._plan(part.snapshot, is_whole=part.is_whole)
            is_last = part.snapshot.snapshot_id == end.snapshot_id and part.is_whole == end.scan_all_files
            stop = end.position if is_last else plan.files
            plans.append(plan.with_tasks(plan.tasks.slice(part.first, stop - part.first)))
        if sum(plan.files for plan in plans) == 0:
            return None
        # Deletes apply only to the files of the snapshot that is read as a whole, which is the first.
        tasks = pa.concat_tables([plan.tasks for plan in plans], promote_options="permissive").combine_chunks()
        return replace(plans[0], tasks=tasks, schema=self.history.schema)

    def _beginning(self) -> FilePosition | None:
        """Where a new stream begins; none while the table is empty, or before the time of the beginning."""
        if self.history.head is None:
            return None
        if self.options.after_snapshot is not None:
            return self._end_of(self.history.snapshot(self.options.after_snapshot))
        if self.options.from_timestamp_ms is not None:
            return self._beginning_at(self.options.from_timestamp_ms)
        if self.options.from_latest:
            return self._end_of(self.history.head)
        return FilePosition(snapshot_id=self.history.head.snapshot_id, scan_all_files=True)

    def _beginning_at(self, timestamp_ms: int) -> FilePosition | None:
        """Where a stream from a time begins; none before that time.

        If the snapshots of that time have expired, it begins with all rows of the oldest one that has not: the time of
        these rows is not known.
        """
        if not self.history.begins_before(timestamp_ms):
            return None
        before, oldest = self.history.before(timestamp_ms), self.history.oldest_with_unknown_parent
        if before is not None:
            return self._end_of(before)
        if oldest is not None:
            return FilePosition(snapshot_id=oldest.snapshot_id, scan_all_files=True)
        return FilePosition()

    def _end_of(self, snapshot: Snapshot) -> FilePosition:
        """The end of a snapshot; its files need not be counted, because none of them is read."""
        return FilePosition(snapshot_id=snapshot.snapshot_id, position=_ALL_FILES)

    def _after(self, read: FilePosition, until: Snapshot) -> Iterator[SnapshotFiles]:
        """What is not read yet: the rest of a snapshot, and the snapshots after it up to another one."""
        after = None if read.snapshot_id is None else self.history.snapshot(read.snapshot_id)
        if after is not None and read.position < _ALL_FILES:
            yield SnapshotFiles(snapshot=after, is_whole=read.scan_all_files, first=read.position)
        for snapshot in self.history.between(after, until):
            yield SnapshotFiles(snapshot=snapshot, is_whole=False, first=0)

    def _plan(self, snapshot: Snapshot, *, is_whole: bool) -> Plan:
        """The files of a snapshot, or those that it added, in the order of the stream."""
        is_skipped = not is_whole and snapshot.operation in self.options.skipped
        if not is_whole and not is_skipped:
            self._check_append(snapshot)
        base, schema = self.history.base, self.history.schema
        key = (base.metadata.table_uuid, snapshot.snapshot_id, is_whole, schema.schema_id)
        plan = self.plans.get(key)
        if plan is None:
            store, metadata = base.store, base.metadata
            if is_whole:
                plan = plan_scan(store, metadata, snapshot, schema=schema).counted(store.io)
            else:
                parent = None if snapshot.parent_id is None else self.history.snapshot(snapshot.parent_id)
                plan = plan_appends(store, metadata, after=parent, until=snapshot, skip_others=True).counted(store.io)
            plan = plan.with_tasks(plan.tasks.take(pc.sort_indices(plan.tasks, sort_keys=_ORDER)))
            self.plans.put(key, plan)
        return plan

    def _check_append(self, snapshot: Snapshot) -> None:
        operation = snapshot.operation
        if operation != Operation.APPEND:
            raise InputError(
                f"table {self.history.base.metadata.location}: snapshot {snapshot.snapshot_id} has operation"
                f" {operation.value!r}, and a stream reads appended rows only; to continue without the changes of such"
                f" snapshots, set the option {skip_option(operation)}=true; to read them, stream the metadata"
                " table changes",
                snapshot_id=snapshot.snapshot_id,
            )


def files_within(counts: npt.NDArray[np.int64], *, max_files: int, max_rows: int, at_least_one: bool) -> int:
    """How many of the first files a batch reads, by their numbers of rows.

    >>> files_within(np.array([5, 5, 5]), max_files=9, max_rows=12, at_least_one=True)
    2
    >>> files_within(np.array([50]), max_files=9, max_rows=12, at_least_one=True)
    1
    """
    fitting = int(np.searchsorted(np.cumsum(counts), max_rows, side="right"))
    smallest = 1 if at_least_one else 0
    return int(min(len(counts), max_files, max(fitting, smallest)))
