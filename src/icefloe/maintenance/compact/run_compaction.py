"""Executes a compaction: rewrites group after group, and commits them together or, with partial progress, in parts.

There is one committer. A group whose files were changed by another commit is a conflict: with partial progress it is
reported as failed, otherwise nothing is committed. Files of failed groups are deleted, unless the outcome of their
commit is unknown.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.base import TablePointer
from icefloe.commit.loop import commit, discard
from icefloe.commit.operations.rewrite import FileGroup, RewriteFiles, RewriteGroups
from icefloe.commit.operations.snapshot_operation import file_locations
from icefloe.commit.result import CommitResult
from icefloe.engines.work import NewLayout, TableFiles
from icefloe.errors import IcefloeError
from icefloe.maintenance.compact.choose_files import NO_GROUP
from icefloe.maintenance.compact.compact_result import CompactResult, GroupResult
from icefloe.maintenance.compact.compaction_plan import CompactPlan, PlannedWork, Strategy
from icefloe.maintenance.compact.rewrite_deletes import dangling_deletes
from icefloe.model.entries import concat, empty, put, total
from icefloe.model.metadata.properties import TARGET_FILE_SIZE
from icefloe.model.metadata.snapshots import SummaryKey
from icefloe.progress import Progress
from icefloe.rows.target import Scratch
from icefloe.scan.plan import all_deletes
from icefloe.tree.file_changes import FileChanges
from icefloe.tree.root import read_root

_SPARE = 1.05  # times the expected size of a file, so that no small file is split off


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """A rewritten group: its old files as tasks, and the entries of its new files, or the error."""

    number: int
    tasks: pa.Table
    added: pa.Table = field(default_factory=empty)
    error: Exception | None = None

    @property
    def files(self) -> tuple[str, ...]:
        return file_locations(self.added)

    @property
    def changes(self) -> FileChanges:
        return FileChanges(added=self.added, removed=self.tasks)


class Execution:
    """One execution of a plan: the groups to rewrite, and what the commits so far have replaced."""

    def __init__(self, plan: CompactPlan, table: TablePointer, progress: Progress) -> None:
        self._plan = plan
        self._work: PlannedWork = plan.work
        self._table = table
        self._progress = progress
        self._total = plan.groups.num_rows
        self._is_stopped = False
        self._results: dict[int, GroupResult] = {}
        self._snapshot_ids: list[int] = []
        self._deletes_removed = 0
        self._replaced: list[pa.Array] = []  # locations of files that are no longer in the table

    def run(self) -> CompactResult:
        """Rewrite all groups and commit them."""
        started = time.perf_counter()
        if self._total > 0:
            if self._work.options.partial_progress:
                self._run_in_parts()
            else:
                self._run_as_one()
        return CompactResult(
            table=self._plan.table,
            strategy=str(self._plan.strategy),
            groups=tuple(self._results[number] for number in sorted(self._results)),
            snapshot_ids=tuple(self._snapshot_ids),
            delete_files_removed=self._deletes_removed,
            seconds=time.perf_counter() - started,
        )

    # -- commits

    def _run_as_one(self) -> None:
        target = self._work.target
        with Scratch(target.io) as scratch:
            groups = list(self._rewritten())
            added = scratch.keep(concat([group.added for group in groups]))
            failed = next((group.error for group in groups if group.error is not None), None)
            if failed is not None:
                raise failed
            changes = FileChanges(added=added, removed=pa.concat_tables([group.tasks for group in groups]))
            changes = changes.combined(self._dangling(groups))
        update = RewriteFiles(
            changes=changes,
            read=target.head,
            branch=target.branch,
            sequence_number=self._sequence_number(groups),
            properties=dict(self._work.engine.summary),
        )
        self._landed(groups, commit(self._table, update, target.env))

    def _run_in_parts(self) -> None:
        """Commit as soon as enough groups are rewritten; what fails is reported, and the other groups land."""
        per_commit = -(-self._total // self._work.options.max_commits)
        waiting: list[_Group] = []
        for group in self._rewritten():
            if group.error is not None:
                self._fail(group, group.error)
                continue
            waiting.append(group)
            if len(waiting) == per_commit:
                self._commit_part(waiting)
                waiting = []
        if len(waiting) > 0:
            self._commit_part(waiting)

    def _commit_part(self, groups: list[_Group]) -> None:
        target = self._work.target
        update = RewriteGroups(
            groups=tuple(FileGroup(changes=group.changes) for group in groups),
            read=target.head,
            branch=target.branch,
            sequence_number=self._sequence_number(groups),
            removed_deletes=lambda landing: self._dangling([groups[number] for number in landing]),
            properties=dict(self._work.engine.summary),
        )
        try:
            result = commit(self._table, update, target.env)
        except IcefloeError as error:
            for group in groups:  # its files are deleted, unless the outcome is unknown
                self._fail(group, error)
            return
        landed = []
        for group, part in zip(groups, update.groups, strict=True):
            if len(part.conflict) == 0:
                landed.append(group)
            else:
                discard(target.io, group.files)
                self._fail(group, part.conflict[0])
        self._landed(landed, result)

    def _landed(self, groups: Sequence[_Group], result: CommitResult) -> None:
        if result.snapshot_id is None:
            return
        snapshot = self._table.held().metadata.snapshots.find(result.snapshot_id)
        removed = "0" if snapshot is None else snapshot.summary.get(SummaryKey.REMOVED_DELETE_FILES, "0")
        self._deletes_removed += int(removed)
        self._snapshot_ids.append(result.snapshot_id)
        self._replaced += [group.tasks["location"].combine_chunks() for group in groups]
        for group in groups:
            rows = total(group.added, "record_count")
            self._results[group.number] = replace(
                self._before(group),
                files_after=group.added.num_rows,
                bytes_after=total(group.added, "file_size_in_bytes"),
                rows=rows,
                rows_dropped=total(group.tasks, "record_count") - rows,
                snapshot_id=result.snapshot_id,
            )

    def _fail(self, group: _Group, error: Exception) -> None:
        self._results[group.number] = replace(self._before(group), error=f"{type(error).__name__}: {error}")

    def _before(self, group: _Group) -> GroupResult:
        partition = self._plan.groups["partition"][group.number].as_py()
        return GroupResult(
            group=group.number,
            partition={} if partition is None else partition,
            files_before=group.tasks.num_rows,
            bytes_before=total(group.tasks, "file_size_in_bytes"),
        )

    def _sequence_number(self, groups: Sequence[_Group]) -> int | None:
        """The sequence number of new files, so that equality deletes of other commits apply to them.

        None if rows are written to another partition spec. Equality deletes belong to a partition, so they would not
        apply to the same rows; they are a conflict then.
        """
        head, options = self._work.target.head, self._work.options
        if head is None or not options.use_starting_sequence_number or not all(map(self._keeps_spec, groups)):
            return None
        return head.sequence_number

    def _keeps_spec(self, group: _Group) -> bool:
        other = pc.not_equal(group.tasks["partition_spec_id"], self._work.options.output_spec_id)
        return pc.any(other).as_py() is not True

    def _dangling(self, groups: Sequence[_Group]) -> FileChanges:
        """The deletes that no file needs after these groups have landed."""
        if not self._work.options.remove_dangling_deletes or self._deletes.num_rows == 0:
            return FileChanges()
        tasks, now = self._work.files.plan.tasks, [group.tasks["location"].combine_chunks() for group in groups]
        removed = pc.is_in(tasks["location"], value_set=pa.concat_arrays([*self._replaced, *now]))
        context = self._work.target.base.store.context
        return dangling_deletes(self._deletes, tasks.filter(pc.invert(removed)), tasks.filter(removed), context)

    @cached_property
    def _deletes(self) -> pa.Table:
        """All deletes of the snapshot that was read."""
        store = self._work.target.base.store
        return all_deletes(store, read_root(store, self._work.target.head))

    # -- rows

    def _rewritten(self) -> Iterator[_Group]:
        """Rewrite the groups in order; on Spark several at a time."""
        slices = self._tasks_by_group()
        workers = min(self._work.options.max_concurrent_rewrites, self._total) if self._work.is_parallel else 1
        if workers == 1:
            groups: Iterator[_Group] = (self._rewrite(number, tasks) for number, tasks in enumerate(slices))
            yield from self._reported(groups)
            return
        with ThreadPoolExecutor(workers, thread_name_prefix="icefloe-compact") as pool:
            yield from self._reported(pool.map(self._rewrite, range(self._total), slices))

    def _reported(self, groups: Iterator[_Group]) -> Iterator[_Group]:
        for done, group in enumerate(groups, 1):
            yield group
            self._progress(done, self._total, "groups rewritten")

    def _tasks_by_group(self) -> list[pa.Table]:
        numbers, tasks = self._work.groups_of, self._work.files.plan.tasks
        chosen = np.flatnonzero(numbers != NO_GROUP)
        chosen = chosen[np.argsort(numbers[chosen], kind="stable")]
        together = tasks.take(pa.array(chosen))
        counts = np.bincount(numbers[chosen], minlength=self._total)
        starts = np.cumsum(counts) - counts
        return [together.slice(int(start), int(count)) for start, count in zip(starts, counts, strict=True)]

    def _rewrite(self, number: int, tasks: pa.Table) -> _Group:
        """Rewrite one group. Without partial progress no further group is rewritten after an error."""
        work, group = self._work, _Group(number=number, tasks=tasks)
        if self._is_stopped:
            return replace(group, error=IcefloeError("not rewritten, as another group failed"))
        row = self._plan.groups.slice(number, 1).to_pylist()[0]
        layout = NewLayout(
            files=row["expected_files"],
            is_ordered=work.order.strategy is not Strategy.BINPACK,
            z_columns=work.order.z_columns,
            is_one_partition=self._keeps_spec(group),
        )
        files = replace(work.files.with_tasks(tasks), table=self._output(row["expected_files"], row["expected_bytes"]))
        try:
            added = work.engine.rewrite(files, layout)
        except Exception as error:
            self._is_stopped = not work.options.partial_progress
            return replace(group, error=error)
        return replace(group, added=self._with_known_order(added))

    def _output(self, files: int, size: int) -> TableFiles:
        """The table to write to, with a target size by which the rows of a group fill files of about equal size."""
        table, options = self._work.files.table, self._work.options
        even = int(size / files * _SPARE) if files > 1 else (options.target_size + options.max_size) // 2
        properties = {**table.metadata.properties, TARGET_FILE_SIZE.name: str(max(1, even))}
        return replace(table, metadata=replace(table.metadata, properties=properties))

    def _with_known_order(self, added: pa.Table) -> pa.Table:
        """The entries, without the id of a sort order that the table does not have."""
        known = {order.order_id for order in self._work.target.metadata.sort_orders}
        if self._work.order.order.order_id in known:
            return added
        return put(added, "sort_order_id", None)


def execute_compaction(plan: CompactPlan, table: TablePointer, progress: Progress) -> CompactResult:
    """Rewrite the files of a plan and commit them."""
    return Execution(plan, table, progress).run()
