"""Row-level operations: plan, let an engine find or move the rows, and make one intent of it.

With deletion vectors only positions are written (merge-on-read); without them the touched files are written again
(copy-on-write). Files of which every row goes are removed without being read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.commit.base import Base
from icefloe.commit.draft import head_of
from icefloe.commit.intent import Append, Intent, RowDelta, locations
from icefloe.commit.loop import discard
from icefloe.commit.overwrite import OverwriteFiles
from icefloe.commit.publish import STAGED_WAP_ID
from icefloe.commit.result import CommitResult
from icefloe.commit.validate import Isolation, isolation_of
from icefloe.deletes.vectors import load_vectors, write_vectors
from icefloe.engines.engine import Engine, Positions
from icefloe.env import Env
from icefloe.expr.nodes import Expr
from icefloe.expr.stats_eval import Match
from icefloe.model.entries import concat, empty
from icefloe.model.properties import DELETE_ISOLATION, MERGE_ISOLATION
from icefloe.model.snapshots import MAIN, Operation, Snapshot
from icefloe.scan.plan import plan_scan
from icefloe.scan.tasks import TASK, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """An operation on rows, ready to be committed; without an intent there is nothing to do."""

    operation: Operation
    intent: Intent | None = None
    rows_copied: int = 0  # rows that only moved to another file

    def result(self, landed: CommitResult) -> CommitResult:
        """The figures without the rows that were only copied."""
        copied = self.rows_copied
        return replace(landed, rows_added=landed.rows_added - copied, rows_deleted=landed.rows_deleted - copied)

    def nothing(self, table: str) -> CommitResult:
        """The result of an operation that had no work, and made no snapshot."""
        return CommitResult(table=table, operation=str(self.operation), snapshot_id=None, attempts=0, snapshots=0)


def append(
    base: Base, rows: object, engine: Engine, env: Env, *, branch: str = MAIN, wap_id: str | None = None
) -> Prepared:
    """Add rows; an empty input makes no snapshot."""
    added = engine.write(base.store.io, rows, base.metadata)
    if added.num_rows == 0:
        return Prepared(operation=Operation.APPEND)
    staged = {} if wap_id is None else {STAGED_WAP_ID: wap_id}
    intent = Append(added=added, branch=branch, staged=wap_id is not None, properties=staged)
    return Prepared(operation=Operation.APPEND, intent=intent)


def delete(base: Base, where: Expr, engine: Engine, env: Env, *, branch: str = MAIN) -> Prepared:
    """Delete the rows that match ``where``; rows for which it is null stay."""
    io, head = base.store.io, head_of(base.metadata, branch)
    plan = plan_scan(base.store, base.metadata, head, filter=where)
    whole = pc.equal(plan.tasks["match"], int(Match.ALL))
    partly = plan.with_tasks(plan.tasks.filter(pc.invert(whole)))
    old = load_vectors(io, partly.tasks)
    found = engine.find_rows(io, partly, old)
    removal = _remove_rows(base, partly, old, found, engine, env)
    removed = pa.concat_tables([plan.tasks.filter(whole), removal.removed])
    if removed.num_rows == 0 and removal.added.num_rows == 0:
        return Prepared(operation=Operation.DELETE)
    change = _Change(
        read=head,
        branch=branch,
        filter=plan.filter,
        isolation=isolation_of(DELETE_ISOLATION, base.metadata.properties),
        operation=Operation.OVERWRITE if removal.rows_written > 0 else Operation.DELETE,
    )
    return change.prepared(replace(removal, removed=removed))


def upsert(
    base: Base,
    rows: object,
    on: tuple[str, ...],
    engine: Engine,
    env: Env,
    *,
    branch: str = MAIN,
    settled: int | None = None,
) -> Prepared:
    """Replace rows by key and add new ones, as one snapshot; a row that replaces another goes on with its id.

    Row ids from ``settled`` on are not final, because a commit under way gave them: they are not written down.
    """
    io, head = base.store.io, head_of(base.metadata, branch)
    with engine.keyed(rows, base.metadata, on) as source:
        plan = plan_scan(base.store, base.metadata, head, filter=source.range)
        old = load_vectors(io, plan.tasks)
        last = base.metadata.next_row_id if settled is None else settled
        matched = engine.find_keys(io, plan, old, source, settled=last)
        found = matched.positions
        new = engine.write(io, matched.rows, base.metadata, lineage=matched.lineage)
        if new.num_rows == 0:
            return Prepared(operation=Operation.OVERWRITE)
        try:
            removal = _remove_rows(base, plan, old, found, engine, env)
        except BaseException:
            discard(io, locations(new))
            raise
    change = _Change(
        read=head,
        branch=branch,
        filter=plan.filter,
        isolation=isolation_of(MERGE_ISOLATION, base.metadata.properties),
        operation=Operation.APPEND if len(found) == 0 else Operation.OVERWRITE,
    )
    return change.prepared(replace(removal, added=concat([new, removal.added])))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Removal:
    """What takes rows out of a table: new vectors or new files, tasks whose vector changes, files that leave."""

    added: pa.Table = field(default_factory=empty)
    replaced: pa.Table = field(default_factory=TASK.empty_table)
    removed: pa.Table
    rows_written: int = 0  # rows that only moved to another file


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """What an operation read and how strict it is about it."""

    read: Snapshot | None
    branch: str
    filter: Expr  # bound to the columns that were read, whatever they are called later
    isolation: Isolation
    operation: Operation

    def prepared(self, removal: _Removal) -> Prepared:
        """Files that are written again replace the old ones; else rows are deleted where they are."""
        intent: Intent
        if removal.rows_written > 0:
            intent = OverwriteFiles(
                added=removal.added,
                removed=removal.removed,
                read=self.read,
                branch=self.branch,
                filter=self.filter,
                isolation=self.isolation,
                operation=self.operation,
            )
        else:
            intent = RowDelta(
                added=removal.added,
                removed=removal.removed,
                replaced=removal.replaced,
                read=self.read,
                branch=self.branch,
                filter=self.filter,
                isolation=self.isolation,
                operation=self.operation,
            )
        return Prepared(operation=self.operation, intent=intent, rows_copied=removal.rows_written)


def _remove_rows(base: Base, plan: Plan, old: Positions, found: Positions, engine: Engine, env: Env) -> _Removal:
    """Take the rows that were found out of the planned files; a file that loses its last row leaves."""
    matched = _choose(plan.tasks, found)
    counts = dict(zip(matched["location"].to_pylist(), matched["record_count"].to_pylist(), strict=True))
    gone = {file: rows | old.get(file, BitMap64()) for file, rows in found.items()}
    partly = {file: rows for file, rows in found.items() if len(gone[file]) < counts[file]}
    emptied = _choose(matched, found.keys() - partly.keys())
    if len(partly) == 0:
        return _Removal(removed=emptied)
    touched = _choose(matched, partly)
    if base.metadata.rules.deletion_vectors:
        location = f"{base.metadata.location}/data/{env.new_uuid()}-deletes.puffin"
        relative_to = base.metadata.location if base.metadata.rules.relative_locations else None
        vectors = write_vectors(base.store.io, touched, old, partly, location=location, base=relative_to)
        return _Removal(added=vectors, replaced=touched, removed=emptied)
    files = engine.write_survivors(base.store.io, plan.with_tasks(touched), {f: gone[f] for f in partly}, base.metadata)
    moved = pc.sum(files["record_count"]).as_py()
    return _Removal(added=files, removed=pa.concat_tables([emptied, touched]), rows_written=moved or 0)


def _choose(tasks: pa.Table, locations: Iterable[str]) -> pa.Table:
    """The tasks of these files."""
    return tasks.filter(pc.is_in(tasks["location"], value_set=pa.array(list(locations), pa.string())))
