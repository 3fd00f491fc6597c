"""Removes rows by position and adds others, as one change: what updates and merges end with (spec: Row-level Deletes).

Rows may be found in two ways: by an engine, from the clauses of an operation, or by Spark itself, which plans the
statements of its own SQL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from icefloe.commit.phases import Phase
from icefloe.engines.engine import Engine
from icefloe.engines.work import PlannedFiles, Positions
from icefloe.expr.filter.nodes import Expr
from icefloe.model.metadata.properties import (
    DELETE_ISOLATION,
    DELETE_MODE,
    MERGE_ISOLATION,
    MERGE_MODE,
    UPDATE_ISOLATION,
    UPDATE_MODE,
    Property,
)
from icefloe.rows.prepared import Prepared, RowChange, prepared
from icefloe.rows.removal import remove_rows
from icefloe.rows.target import Scratch, Target
from icefloe.scan.tasks import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeKind:
    """The properties that say how a kind of change deletes rows, and how it is isolated from other commits."""

    mode: Property[str]
    isolation: Property[str]


DELETES = ChangeKind(mode=DELETE_MODE, isolation=DELETE_ISOLATION)
UPDATES = ChangeKind(mode=UPDATE_MODE, isolation=UPDATE_ISOLATION)
MERGES = ChangeKind(mode=MERGE_MODE, isolation=MERGE_ISOLATION)


class FoundChange(Protocol):
    """Rows that were found outside the engine: positions of the rows to remove, and rows to add."""

    @property
    def positions(self) -> Positions:
        """The positions of the rows to remove, by file."""

    def write(self, files: PlannedFiles) -> pa.Table:
        """Write the rows to add to new files; returns their entries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRows:
    """The rows that were read to find a change: their filter, and the plan of their files if it is known."""

    filter: Expr
    plan: Plan | None = None


def change_found_rows(
    found: FoundChange, engine: Engine, kind: ChangeKind, *, read: ReadRows, depends_on_kept_rows: bool
) -> RowChange:
    """Remove and add the rows that were found. Conflicting commits are found by the filter of the rows that were read.

    The files are planned unless the plan by which the rows were read is one of the same files.
    """

    def prepare(target: Target) -> Prepared:
        touched = target.planned(read.filter, read.plan).only(found.positions)
        return replace_rows(
            target,
            touched,
            found.positions,
            lambda: found.write(touched),
            engine,
            kind,
            depends_on_kept_rows=depends_on_kept_rows,
        )

    return RowChange(engine=engine, prepare=prepare)


def replace_rows(
    target: Target,
    files: PlannedFiles,
    positions: Positions,
    write: Callable[[], pa.Table],
    engine: Engine,
    kind: ChangeKind,
    *,
    depends_on_kept_rows: bool,
) -> Prepared:
    """Remove rows of planned files and add those that ``write`` writes, whose entries it returns.

    With ``depends_on_kept_rows``, rows that were read and not changed decided which rows are added.
    """
    with Scratch(target.io) as scratch, target.timer.of(Phase.WRITE):
        added = scratch.keep(write())
        changes = remove_rows(target, files, positions, engine, kind.mode)
    changes = changes.with_added(added)
    return prepared(target, files.plan.filter, kind.isolation, changes, existing_rows=depends_on_kept_rows)
