"""Merges the rows of a source into a table (spec: Row-level Deletes)."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pyarrow as pa

from icefloe.commit.phases import Phase
from icefloe.engines.choose import engine_of
from icefloe.engines.engine import Engine, MergedRows
from icefloe.engines.merge_plan import Merge, MergePlan, When
from icefloe.rows.prepared import Prepared, RowChange
from icefloe.rows.replacement import MERGES, replace_rows
from icefloe.rows.schema_merge import missing_columns
from icefloe.rows.target import Target


def merge(source: Any, merge: Merge) -> RowChange:
    """Update, delete and insert rows as one snapshot; an updated row keeps its id."""
    engine = engine_of(source)
    return RowChange(engine=engine, prepare=lambda target: _merge(target, merge, source, engine), rows=source)


def _merge(target: Target, merge: Merge, rows: Any, engine: Engine) -> Prepared:
    columns_added = None
    if merge.evolves_schema:
        rows, columns_added = missing_columns(rows, target.metadata, engine, merge.sets)
        target = target.after(columns_added)
    opened, columns = engine.source_columns(rows, target.metadata.schema)
    plan = MergePlan.of(merge, target.metadata.schema, columns)
    timer = target.timer
    with ExitStack() as kept:
        with timer.of(Phase.MATCH):
            source = kept.enter_context(engine.merge_source(target.table, opened, plan))
        files = target.planned(source.filter)
        with timer.of(Phase.MATCH):
            matches = engine.find_merged(files, source)
        written: list[MergedRows] = []

        def write() -> pa.Table:
            written.append(engine.write_merged(files, source, matches))
            return written[0].entries

        change = replace_rows(
            target, files, matches.positions, write, engine, MERGES, depends_on_kept_rows=_depends_on_kept_rows(merge)
        )
    return replace(change, table_change=None if change.update is None else columns_added, merged=written[0])


def _depends_on_kept_rows(merge: Merge) -> bool:
    """Whether a row of the source may not be inserted because of a row of the table that the merge does not change."""
    may_keep = all(clause.condition is not None for clause in merge.clauses_for(When.MATCHED))
    return may_keep and len(merge.clauses_for(When.NOT_MATCHED)) > 0
