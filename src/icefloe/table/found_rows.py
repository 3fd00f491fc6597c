"""Reads rows for a change that Spark makes of them, and commits the change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from icefloe.commit.result import CommitResult
from icefloe.engines.choose import engine_for
from icefloe.engines.engine import Engine
from icefloe.expr.filter.nodes import Expr
from icefloe.rows.replacement import ChangeKind, FoundChange, change_found_rows
from icefloe.rows.target import Target
from icefloe.table.scan import Scan
from icefloe.table.table import Table
from icefloe.table.table_at import TableAt


def rows_of_query(scan: Scan, spark: Any, pushed: Expr, observer: Callable[[Expr], None] | None) -> Any:
    """The rows as a Spark DataFrame, for a query that applies the filter ``pushed`` to them.

    ``observer`` is told each filter of the query with which files are planned.
    """
    return engine_for(spark).read(replace(scan._request, pushed=pushed, observer=observer))


def commit_found_rows(
    table: Table,
    at: TableAt,
    found: FoundChange,
    engine: Engine,
    kind: ChangeKind,
    *,
    branch: str,
    read: Expr,
    depends_on_kept_rows: bool,
) -> CommitResult:
    """Commit a change of rows that ``at`` had on a branch, read by a filter; ConflictError if they changed since."""
    target = Target(base=at._base, env=table._env, branch=branch)
    prepared = change_found_rows(target, found, engine, kind, read=read, depends_on_kept_rows=depends_on_kept_rows)
    return table._run(prepared.with_summary(engine.summary), target.timer)
