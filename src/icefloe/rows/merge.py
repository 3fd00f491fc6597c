"""Rows of a source merged into a table (spec: Row-level Deletes)."""

from __future__ import annotations

from dataclasses import dataclass

from icefloe.engines.arrow.change.merge import Merged, find_merged, write_merged
from icefloe.engines.arrow.change.merge_source import MergeSource
from icefloe.engines.engine import Engine, is_spark
from icefloe.engines.merge import Merge, When
from icefloe.errors import UnsupportedError
from icefloe.model.arrow.conform import as_table
from icefloe.model.metadata.properties import MERGE_ISOLATION, MERGE_MODE
from icefloe.model.metadata.snapshots import SummaryKey
from icefloe.rows.prepared import Prepared, ReadSet
from icefloe.rows.removal import remove_rows
from icefloe.rows.target import Scratch, Target


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedMerge:
    """A merge that is ready to be committed, with what it does."""

    change: Prepared
    merged: Merged
    files_read: int
    files_skipped: int


def merge(target: Target, merge: Merge, rows: object, engine: Engine) -> PreparedMerge:
    """Update, delete and insert rows as one snapshot; a row that is updated keeps its id."""
    if is_spark(rows):
        raise UnsupportedError(
            "merge of a Spark DataFrame is not supported yet; give Arrow data, such as df.toArrow()", feature="merge"
        )
    io, metadata = target.io, target.metadata
    source = MergeSource(merge, as_table(rows), metadata.schema)
    plan = target.plan(source.range)
    drops = plan.deleted_rows(io)
    merged = find_merged(io, plan, drops, source, settled=target.settled)
    with Scratch(io) as scratch:
        new = scratch.keep(write_merged(io, plan, source, merged, metadata, settled=target.settled))
        changes = remove_rows(target, plan, drops, merged.positions, engine, MERGE_MODE)
    read = ReadSet.of(target, plan.filter, MERGE_ISOLATION, existing_rows=_depends_on_kept(merge))
    skipped = max(0, _files(target) - plan.files)
    prepared = read.prepared(changes.with_added(new))
    return PreparedMerge(change=prepared, merged=merged, files_read=plan.files, files_skipped=skipped)


def _depends_on_kept(merge: Merge) -> bool:
    """Whether a row may be found and kept as it is, and a row of the source not be added because of it."""
    may_stay = all(clause.condition is not None for clause in merge.of(When.MATCHED))
    return may_stay and len(merge.of(When.NOT_MATCHED)) > 0


def _files(target: Target) -> int:
    """How many data files the branch has, as far as its summary tells: planning skips many without counting them."""
    summary = {} if target.head is None else target.head.summary
    text = summary.get(SummaryKey.TOTAL_DATA_FILES, "0")
    return int(text) if text.isdecimal() else 0
