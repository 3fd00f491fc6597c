"""Merges the rows of a source into a table (spec: Row-level Deletes)."""

from __future__ import annotations

from dataclasses import dataclass

from icefloe.engines.engine import Engine, MergedRows
from icefloe.engines.merge import Merge, When
from icefloe.engines.merge_plan import MergePlan
from icefloe.model.metadata.properties import MERGE_ISOLATION, MERGE_MODE
from icefloe.model.metadata.snapshots import SummaryKey
from icefloe.rows.prepared import Prepared, ReadSet
from icefloe.rows.removal import remove_rows
from icefloe.rows.target import Scratch, Target


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedMerge:
    """A merge that is ready to be committed, with its row counts and the files that were planned."""

    change: Prepared
    rows: MergedRows
    files_read: int
    files_skipped: int


def merge(target: Target, merge: Merge, rows: object, engine: Engine) -> PreparedMerge:
    """Update, delete and insert rows as one snapshot; an updated row keeps its id."""
    opened, columns = engine.source_columns(rows, target.metadata.schema)
    plan = MergePlan.of(merge, target.metadata.schema, columns)
    with engine.merge_source(target.table, opened, plan) as source, Scratch(target.io) as scratch:
        files = target.planned(source.filter)
        matches = engine.find_merged(files, source)
        merged = engine.write_merged(files, source, matches)
        new = scratch.keep(merged.entries)
        changes = remove_rows(target, files, matches.positions, engine, MERGE_MODE)
    read = ReadSet.of(target, files.plan.filter, MERGE_ISOLATION, existing_rows=_depends_on_kept_rows(merge))
    return PreparedMerge(
        change=read.prepared(changes.with_added(new)),
        rows=merged,
        files_read=files.plan.files,
        files_skipped=max(0, _data_files(target) - files.plan.files),
    )


def _depends_on_kept_rows(merge: Merge) -> bool:
    """Whether a row of the source may not be inserted because of a row of the table that the merge does not change."""
    may_keep = all(clause.condition is not None for clause in merge.clauses_for(When.MATCHED))
    return may_keep and len(merge.clauses_for(When.NOT_MATCHED)) > 0


def _data_files(target: Target) -> int:
    """The number of data files of the branch by its summary, as planning skips many without counting them."""
    summary = {} if target.head is None else target.head.summary
    text = summary.get(SummaryKey.TOTAL_DATA_FILES, "0")
    return int(text) if text.isdecimal() else 0
