"""Erases rows from a table for good, and proves which files went and what still keeps rows (spec: Snapshots).

A delete leaves the rows in older snapshots, deletion vectors leave them in the data files, and manifests have values of
them as bounds. So rows are erased in steps: delete them on every branch, rewrite the data files that still contain
them, rewrite the manifests, let all snapshots expire whose manifests list such data files, and delete the files. What
cannot expire, such as the snapshot of a tag, is reported as a blocker. At the end all remaining data files that may
contain the rows are read again: the report is what was found, not what was intended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.base import Base, TablePointer
from icefloe.commit.idempotency import record_in
from icefloe.commit.operations.rewrite import RewriteManifests
from icefloe.engines.engine import Engine
from icefloe.engines.file_sets import REFERENCED, Kind, ListedFolder, ReferencedFiles, files_at
from icefloe.engines.work import Condition, PlannedFiles, ScanRequest
from icefloe.env import Env
from icefloe.maintenance.containment import inside_mask
from icefloe.maintenance.deletions import check_deletable, finish_journals, unfinished_journals
from icefloe.maintenance.maintain import TableActions
from icefloe.maintenance.reachable import referenced_files
from icefloe.model.columns import one_array
from icefloe.model.entries import MANIFESTS, of_type, put
from icefloe.model.location_columns import is_among
from icefloe.model.metadata.retention import ExpirePolicy, apply_policy
from icefloe.model.text.figures import Figures, plural
from icefloe.progress import Progress, silent
from icefloe.tree.root import leaves_of, read_leaves, read_root
from icefloe.tree.store import NO_STATISTICS

_REWRITE = {"delete-file-threshold": "1", "min-input-files": "1"}  # every file with deleted rows
_STEP = "steps of the erasure"
_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotWithRows:
    """A snapshot that lists data files with rows to erase, and the branches and tags that are at it."""

    snapshot_id: int
    files: int
    refs: tuple[str, ...] = ()

    def __str__(self) -> str:
        at = "" if len(self.refs) == 0 else f" ({', '.join(self.refs)})"
        return f"snapshot {self.snapshot_id}{at}: {plural(self.files, 'data file')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseReport(Figures):
    """The report of an erasure.

    ``complete`` says that no data file of the table contains the rows any more, by reading them, and that the files
    that contained them are gone from storage, by listing it. ``files_deleted`` are the locations of files that went.
    ``remaining`` are the snapshots that still list such files, ``blockers`` says why.

    >>> EraseReport(table="db.t", where="id = 5", complete=True, rows_deleted=2, snapshots_expired=1)
    erase db.t where id = 5: complete; 2 rows deleted, 1 snapshots expired, 0 files deleted, 0 data files had the rows
    """

    table: str
    where: str
    complete: bool
    rows_deleted: int = 0
    snapshots_expired: int = 0
    data_files: tuple[str, ...] = ()  # that contained the rows before
    files_deleted: tuple[str, ...] = ()
    remaining: tuple[SnapshotWithRows, ...] = ()
    blockers: tuple[str, ...] = ()
    seconds: float = 0.0

    def __repr__(self) -> str:
        lines = [
            f"erase {self.table} where {self.where}: {'complete' if self.complete else 'NOT COMPLETE'};"
            f" {self.rows_deleted} rows deleted, {self.snapshots_expired} snapshots expired,"
            f" {len(self.files_deleted)} files deleted, {len(self.data_files)} data files had the rows"
        ]
        lines += [f"  still there: {each}" for each in self.remaining[:_SHOWN]]
        return "\n".join([*lines, *(f"  blocked: {each}" for each in self.blockers)])


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ErasePlan:
    """The snapshots that reach rows to erase, and what would block it; ``execute`` erases them."""

    table: str
    where: str
    snapshots: tuple[SnapshotWithRows, ...]
    data_files: tuple[str, ...]
    blockers: tuple[str, ...]
    _run: Callable[[ErasePlan, Progress], EraseReport] = field(compare=False)

    def execute(self, progress: Progress = silent) -> EraseReport:
        """Delete, rewrite, expire and delete files; then read what is left."""
        return self._run(self, progress)

    def as_dict(self) -> dict[str, object]:
        """Everything that the plan shows, as plain values."""
        return {
            "table": self.table,
            "where": self.where,
            "snapshots": [asdict(each) for each in self.snapshots],
            "data_files": list(self.data_files),
            "blockers": list(self.blockers),
        }

    def __repr__(self) -> str:
        head = f"erase {self.table} where {self.where}: "
        if len(self.data_files) == 0:
            return f"{head}no data file contains such rows"
        lines = [f"{head}{plural(len(self.data_files), 'data file')} in {plural(len(self.snapshots), 'snapshot')}"]
        lines += [f"  {each}" for each in self.snapshots[:_SHOWN]]
        if len(self.snapshots) > _SHOWN:
            lines.append(f"  and {len(self.snapshots) - _SHOWN} more")
        return "\n".join([*lines, *(f"  will be blocked: {each}" for each in self.blockers)])


def plan_erasure(
    table: TableActions, pointer: TablePointer, where: Any, engine: Engine, env: Env, spark: Any = None
) -> ErasePlan:
    """Find the data files of all snapshots that contain rows to erase, deleted rows among them.

    ``spark`` is the session of the engine, if it has one.
    """
    base = pointer.load()
    condition = engine.condition(where, base.metadata.schema)
    files = _files_with_rows(base, condition, engine)
    return ErasePlan(
        table=table.name,
        where=str(where),
        snapshots=_with_rows(base, _listing(base, files)),
        data_files=tuple(files.to_pylist()),
        blockers=_blockers(base, _listing(base, files), env),
        _run=_Erasure(table, pointer, condition, engine, env, where, spark).run,
    )


def _files_with_rows(base: Base, condition: Condition, engine: Engine) -> pa.Array:
    """The data files of all snapshots with matching rows, whether the rows are deleted or not; each is read once."""
    metadata, store = base.metadata, base.store
    read, matching = pa.array([], pa.string()), pa.array([], pa.string())
    for snapshot in metadata.snapshots:
        plan = ScanRequest(base=base, snapshot=snapshot, filter=condition.filter, schema=metadata.schema).plan()
        new = plan.tasks.filter(pc.invert(pc.is_in(plan.tasks["location"], value_set=read)))
        if new.num_rows == 0:
            continue
        plain = replace(plan.with_tasks(_without_deletes(new)), deletes=plan.deletes.slice(0, 0)).counted(store.io)
        files = PlannedFiles.of(store.io, metadata, plain)
        matching = pa.concat_arrays([matching, pa.array(list(engine.find_rows(files, condition)), pa.string())])
        read = pa.concat_arrays([read, new["location"].combine_chunks()])
    return matching


def _listing(base: Base, files: pa.Array) -> dict[int, int]:
    """The snapshots whose manifests list some of the files, also as removed ones, with the number of these files."""
    by_leaf: dict[str, pa.Array] = {}
    found: dict[int, int] = {}
    for snapshot in base.metadata.snapshots if len(files) > 0 else ():
        root = read_root(base.store, snapshot)
        leaves = tuple(leaves_of(root.entries.filter(of_type(root.entries, *MANIFESTS))))
        new = [leaf for leaf in leaves if leaf.location not in by_leaf]
        for leaf, rows in zip(new, read_leaves(base.store, new, NO_STATISTICS), strict=True):
            by_leaf[leaf.location] = _among(rows["location"], files)
        parts = [_among(root.entries["location"], files), *(by_leaf[leaf.location] for leaf in leaves)]
        count = len(pc.unique(pa.concat_arrays(parts)))
        if count > 0:
            found[snapshot.snapshot_id] = count
    return found


def _among(locations: pa.ChunkedArray, files: pa.Array) -> pa.Array:
    return locations.filter(pc.is_in(locations, value_set=files)).combine_chunks()


def _without_deletes(tasks: pa.Table) -> pa.Table:
    """The tasks as if no row of their files were deleted."""
    for name in ("dv_location", "dv_offset", "dv_size_in_bytes", "dv_cardinality", "dv_manifest", "dv_ordinal"):
        tasks = put(tasks, name, None)
    none = tasks.schema.field("deletes")
    return tasks.set_column(tasks.schema.get_field_index("deletes"), none, pa.array([[]] * tasks.num_rows, none.type))


def _with_rows(base: Base, files: Mapping[int, int]) -> tuple[SnapshotWithRows, ...]:
    refs: dict[int, list[str]] = {}
    for name, ref in base.metadata.refs.items():
        refs.setdefault(ref.snapshot_id, []).append(f"{ref.type} {name}")
    return tuple(
        SnapshotWithRows(snapshot_id=snapshot_id, files=count, refs=tuple(refs.get(snapshot_id, ())))
        for snapshot_id, count in files.items()
    )


def _blockers(base: Base, files: Mapping[int, int], env: Env) -> tuple[str, ...]:
    """Why snapshots with rows cannot expire: tags, and records of streams and idempotency keys."""
    chosen = frozenset(files) - {ref.snapshot_id for ref in base.metadata.refs.values() if ref.type == "branch"}
    policy = ExpirePolicy(now_ms=env.now_ms(), snapshot_ids=chosen)
    if len(chosen) == 0:
        return ()
    needed = apply_policy(base.metadata, policy, record_in).needed
    return tuple(f"snapshot {snapshot_id} is needed: {reason}" for snapshot_id, reason in needed.items())


def _looked_up(base: Base, freed: pa.Array, engine: Engine) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Which of the files that no snapshot needs are gone, by a listing of the table, and which are still there.

    Those outside of the table's location are never deleted, so they are still there.
    """
    folder = base.metadata.location.rstrip("/")
    named = ReferencedFiles(store=base.store, table_location=folder, files=files_at(freed.to_pylist(), Kind.DATA))
    free = one_array(engine.file_sets.subtract(named, referenced_files(base), check=False).files["location"])
    listing = ListedFolder(io=base.store.io, folder=folder, table_location=folder)
    left = engine.file_sets.unreferenced(listing, lambda: referenced_files(base)).files["location"]
    unlisted = free.filter(pc.invert(listing.may_be_orphan(free)))  # by their names; these are never orphans
    hidden = [location for location in unlisted.to_pylist() if base.store.io.exists(location)]
    there = pc.or_(is_among(free, left, folder), pc.is_in(free, value_set=pa.array(hidden, pa.string())))
    there = pc.or_(there, pc.invert(inside_mask(free, folder)))
    return tuple(free.filter(pc.invert(there)).to_pylist()), tuple(free.filter(there).to_pylist())


@dataclass(frozen=True, slots=True)
class _Erasure:
    """Executes a plan."""

    table: TableActions
    pointer: TablePointer
    condition: Condition
    engine: Engine
    env: Env
    where: Any
    spark: Any

    def run(self, plan: ErasePlan, progress: Progress) -> EraseReport:
        """Take the steps and report."""
        started, deleted, total = time.monotonic(), 0, 4
        self.table.refresh()
        branches = [name for name, ref in self.table.refs.items() if ref.type == "branch"]
        for branch in branches:
            deleted += self.table.delete(self.where, branch=branch, spark=self.spark).rows_deleted
        progress(1, total, _STEP)
        for branch in branches:
            self.table.rewrite_deletes(branch=branch, spark=self.spark).execute()
            self.table.compact(options=_REWRITE, branch=branch, spark=self.spark).execute()
            # Manifests list removed files with their bounds.
            self.table._commit(RewriteManifests(branch=branch, drop_removed=True))
        progress(2, total, _STEP)
        erased = pa.array(plan.data_files, pa.string())
        more = _files_with_rows(self.pointer.load(), self.condition, self.engine)
        expired, freed = self._expire(pc.unique(pa.concat_arrays([erased, more])))
        progress(3, total, _STEP)
        base = self.pointer.load()
        left = _files_with_rows(base, self.condition, self.engine)
        remaining = _listing(base, pc.unique(pa.concat_arrays([erased, more, left])))
        gone, undeleted = _looked_up(base, freed, self.engine)
        progress(total, total, _STEP)
        return EraseReport(
            table=plan.table,
            where=plan.where,
            complete=len(remaining) + len(undeleted) == 0,
            rows_deleted=deleted,
            snapshots_expired=expired,
            data_files=plan.data_files,
            files_deleted=gone,
            remaining=_with_rows(base, remaining),
            blockers=(
                *_blockers(base, remaining, self.env),
                *(
                    f"{location} was not deleted; remove_orphans() deletes it once it is old enough"
                    for location in undeleted
                ),
            ),
            seconds=time.monotonic() - started,
        )

    def _expire(self, files: pa.Array) -> tuple[int, pa.Array]:
        """Expire the snapshots that list the files and are not needed; their number, and the files to delete.

        These include the files that an earlier run, which was interrupted, was about to delete.
        """
        base = self.pointer.load()
        heads = {ref.snapshot_id for ref in base.metadata.refs.values()}
        chosen = frozenset(_listing(base, files)) - heads
        policy = ExpirePolicy(now_ms=self.env.now_ms(), snapshot_ids=chosen)
        free = chosen if len(chosen) == 0 else chosen - apply_policy(base.metadata, policy, record_in).needed.keys()
        unfinished = [journal.files for journal in unfinished_journals(base)]
        expired, freed = 0, REFERENCED.empty_table()
        if len(free) > 0:
            plan = self.table.expire(snapshots=sorted(free), spark=self.spark)
            expired, freed = plan.execute().snapshots, plan.files
        elif len(unfinished) > 0:
            check_deletable(base)
            finish_journals(self.pointer, self.env, self.engine)
        return expired, pc.unique(pa.concat_tables([freed, *unfinished])["location"])
