"""Runs a change of rows on a table: prepares it, commits it, and runs it again after a conflict.

The commit loop repeats only the commit: it applies the prepared change to a newer state. If that is a conflict, the
change must be prepared again from the current rows. That is one more run of the whole operation (spec: Commit Conflict
Resolution and Retry).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from icefloe.commit.idempotency import CommitKey, committed_snapshot
from icefloe.commit.loop import pause
from icefloe.commit.result import CommitResult, already_done, nothing_done, with_row_figures
from icefloe.engines.choose import is_spark
from icefloe.engines.engine import Engine
from icefloe.errors import CommitFailed, ConflictError, InputError
from icefloe.model.metadata.properties import OPERATION_RETRIES
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.rows import Prepared, RowChange, Target
from icefloe.rows.replacement import ChangeKind, FoundChange, ReadRows, change_found_rows
from icefloe.table.held_table import HeldTable
from icefloe.table.table_at import TableAt

logger = logging.getLogger(__name__)


def run_change(
    table: HeldTable,
    change: RowChange,
    branch: str | None,
    *,
    create_branch: bool,
    retries: int | None = None,
    key: CommitKey | None = None,
) -> tuple[CommitResult, Prepared | None]:
    """The result of a change and what was committed: None if an earlier run with the same key has committed it.

    Each run starts from a freshly loaded table. A run that ends in a retryable ConflictError or in CommitFailed has
    changed nothing, so another one may follow. After the last run its error is raised, with ``runs`` in its context. No
    other error is followed by another run.
    """

    def load() -> tuple[Target, Snapshot | None]:
        target = table._target(branch, create_branch=create_branch)
        return target, committed_snapshot(target.metadata, target.branch, key, staged=change.staged)

    (target, earlier), run = load(), 1
    allowed = allowed_retries(retries, change.rows, target.properties)
    while earlier is None:
        try:
            prepared = change.prepared(target, None if key is None else key.summary)
            return commit_prepared(table, prepared, target, run), prepared
        except (ConflictError, CommitFailed) as error:
            if key is not None and isinstance(error, ConflictError):  # the other commit may be that of the same change
                _, earlier = load()
                if earlier is not None:
                    break
            if run > allowed or not error.retryable:
                if run > 1:
                    error.context["runs"] = run
                    error.add_note(f"the operation was run {run} times, each time on the newest state")
                raise
            logger.info("run %d of the operation failed, running it again: %s", run, error)
        pause(target.properties, run, table._env)
        run += 1
        target, earlier = load()
    return already_done(table.name, earlier, run), None


def commit_prepared(table: HeldTable, prepared: Prepared, target: Target, run: int = 1) -> CommitResult:
    """Commit a change that was prepared on a target, unless it has nothing to do."""
    if prepared.update is None and prepared.table_change is None:
        landed = nothing_done(table.name, str(prepared.operation))
    else:
        landed = table._commit(prepared.steps)
    return with_row_figures(
        landed,
        copied=prepared.rows_copied,
        already_deleted=prepared.rows_already_deleted,
        timer=target.timer,
        runs=run,
    )


def commit_found_rows(
    table: HeldTable,
    at: TableAt,
    found: FoundChange,
    engine: Engine,
    kind: ChangeKind,
    *,
    branch: str,
    read: ReadRows,
    depends_on_kept_rows: bool,
) -> CommitResult:
    """Commit a change of rows that ``at`` had on a branch; ConflictError if what was read has changed since."""
    change = change_found_rows(found, engine, kind, read=read, depends_on_kept_rows=depends_on_kept_rows)
    target = Target(base=at._base, env=table._env, branch=branch)
    return commit_prepared(table, change.prepared(target), target)


def allowed_retries(retries: int | None, source: object, properties: Mapping[str, str]) -> int:
    """How often an operation may run again: ``retries``, or else the property ``commit.operation.num-retries``.

    A source that may be readable only once is refused with ``retries``; the property does not apply to it.
    """
    if retries is None:
        return OPERATION_RETRIES.of(properties) if is_repeatable(source) else 0
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise InputError(f"retries must be a whole number that is not negative, got {retries!r}")
    if retries > 0 and not is_repeatable(source):
        kind = f"{type(source).__module__}.{type(source).__qualname__}"
        raise InputError(
            f"retries={retries} needs rows that can be read again, and a {kind} may be readable only once;"
            " give a table (pyarrow.table(rows)), or leave retries out",
            type=kind,
            next_step="Read the rows into a table with pyarrow.table(rows), or call without retries.",
        )
    return retries


def is_repeatable(source: object) -> bool:
    """Whether rows can be read more than once: DataFrames of Spark, and data with a length. Streams cannot.

    >>> import pyarrow as pa
    >>> table = pa.table({"id": [1]})
    >>> is_repeatable(table), is_repeatable(table.to_reader())
    (True, False)
    """
    return source is None or is_spark(source) or hasattr(source, "__len__")
