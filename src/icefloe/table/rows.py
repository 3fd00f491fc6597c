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

from icefloe.commit.base import Base, TablePointer
from icefloe.commit.intent import Append, RowDelta
from icefloe.commit.loop import commit
from icefloe.commit.result import CommitResult
from icefloe.deletes.vectors import load_vectors, write_vectors
from icefloe.engines.engine import Engine, Positions
from icefloe.env import Env
from icefloe.expr.nodes import Expr
from icefloe.expr.stats_eval import Match
from icefloe.model.entries import concat, empty
from icefloe.model.snapshots import Operation
from icefloe.scan.plan import plan_scan
from icefloe.scan.tasks import TASK, Plan


def append(table: TablePointer, rows: object, engine: Engine, env: Env) -> CommitResult:
    """Add rows; an empty input makes no snapshot."""
    added = engine.write(table.io, rows, table.load().metadata)
    if added.num_rows == 0:
        return _nothing(table, Operation.APPEND)
    return commit(table, Append(added=added), env)


def delete(table: TablePointer, where: Expr, engine: Engine, env: Env) -> CommitResult:
    """Delete the rows that match ``where``; rows for which it is null stay."""
    base = table.load()
    plan = plan_scan(base.store, base.metadata, base.metadata.current_snapshot, filter=where)
    whole = pc.equal(plan.tasks["match"], int(Match.ALL))
    partly = plan.with_tasks(plan.tasks.filter(pc.invert(whole)))
    old = load_vectors(table.io, partly.tasks)
    found = engine.find_rows(table.io, partly, old)
    removal = _remove_rows(table, base, partly, old, found, engine, env)
    removed = pa.concat_tables([plan.tasks.filter(whole), removal.removed])
    if removed.num_rows == 0 and removal.added.num_rows == 0:
        return _nothing(table, Operation.DELETE)
    intent = RowDelta(
        added=removal.added,
        removed=removed,
        replaced=removal.replaced,
        read=base.metadata.current_snapshot,
        filter=where,
        operation=Operation.OVERWRITE if removal.rows_written > 0 else Operation.DELETE,
    )
    return _less_copied(commit(table, intent, env), removal.rows_written)


def upsert(table: TablePointer, rows: object, on: tuple[str, ...], engine: Engine, env: Env) -> CommitResult:
    """Replace rows by key and add new ones, as one snapshot."""
    base = table.load()
    with engine.keyed(rows, base.metadata, on) as source:
        plan = plan_scan(base.store, base.metadata, base.metadata.current_snapshot, filter=source.range)
        old = load_vectors(table.io, plan.tasks)
        found = engine.find_keys(table.io, plan, old, source)
        new = engine.write(table.io, source.rows, base.metadata)
        if new.num_rows == 0:
            return _nothing(table, Operation.OVERWRITE)
        removal = _remove_rows(table, base, plan, old, found, engine, env)
    intent = RowDelta(
        added=concat([new, removal.added]),
        removed=removal.removed,
        replaced=removal.replaced,
        read=base.metadata.current_snapshot,
        filter=source.range,
        operation=Operation.APPEND if len(found) == 0 else Operation.OVERWRITE,
    )
    return _less_copied(commit(table, intent, env), removal.rows_written)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Removal:
    """What takes rows out of a table: new vectors or new files, tasks whose vector changes, files that leave."""

    added: pa.Table = field(default_factory=empty)
    replaced: pa.Table = field(default_factory=TASK.empty_table)
    removed: pa.Table
    rows_written: int = 0  # rows that only moved to another file


def _remove_rows(
    table: TablePointer, base: Base, plan: Plan, old: Positions, found: Positions, engine: Engine, env: Env
) -> _Removal:
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
        vectors = write_vectors(table.io, touched, old, partly, location=location)
        return _Removal(added=vectors, replaced=touched, removed=emptied)
    files = engine.write_survivors(table.io, plan.with_tasks(touched), {f: gone[f] for f in partly}, base.metadata)
    moved = pc.sum(files["record_count"]).as_py()
    return _Removal(added=files, removed=pa.concat_tables([emptied, touched]), rows_written=moved or 0)


def _choose(tasks: pa.Table, locations: Iterable[str]) -> pa.Table:
    """The tasks of these files."""
    return tasks.filter(pc.is_in(tasks["location"], value_set=pa.array(list(locations), pa.string())))


def _nothing(table: TablePointer, operation: Operation) -> CommitResult:
    """The result of an operation that had no work, and made no snapshot."""
    return CommitResult(table=str(table), operation=str(operation), snapshot_id=None, attempts=0)


def _less_copied(result: CommitResult, rows: int) -> CommitResult:
    """The result without the rows that were only copied from an old file to a new one."""
    return replace(result, rows_added=result.rows_added - rows, rows_deleted=result.rows_deleted - rows)
