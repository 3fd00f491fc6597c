"""Assigns row ids to the data files of manifests from before a table had row lineage.

A manifest gets a first row id, and its files the ids that follow. This requires the row count of every file. The sums
in manifest lists are not reliable, because files with unknown row counts may be missing in them, so such manifests are
read once. A manifest of files with unknown row counts is rewritten, with the counts read from the files.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.model.entries import ContentType, Status, choose, concat, live, of_type, put
from icefloe.tree.leaf_writer import LeafWriter
from icefloe.tree.root import Leaf, leaves_of, read_leaf, read_leaves, with_status
from icefloe.tree.store import NO_STATISTICS


def with_first_row_ids(writer: LeafWriter, rows: pa.Table) -> pa.Table:
    """The rows of a root, in order, with first row ids for data manifests that have none."""
    missing = pc.and_(of_type(rows, ContentType.DATA_MANIFEST), pc.is_null(rows["first_row_id"]))
    if writer.ids.next is None or pc.any(missing).as_py() is not True:
        return rows
    chosen = rows.filter(missing)
    leaves = tuple(leaves_of(chosen))
    numbered: list[pa.Table] = []
    for index, entries in enumerate(read_leaves(writer.store, leaves, NO_STATISTICS)):
        row_counts = choose(entries, live(entries))["record_count"]
        row = chosen.slice(index, 1)
        if row_counts.null_count > 0:
            numbered += _rewritten(writer, leaves[index], row)
        else:
            first = writer.ids.take(pc.sum(row_counts, min_count=0).as_py())
            numbered.append(put(row, "first_row_id", first))
    return concat([choose(rows, pc.invert(missing)), *numbered]).sort_by("ordinal")


def _rewritten(writer: LeafWriter, leaf: Leaf, row: pa.Table) -> list[pa.Table]:
    """The root rows of rewritten leaves, whose files have row counts and row ids."""
    entries = read_leaf(writer.store, leaf)
    live_entries = with_status(choose(entries, live(entries)), Status.EXISTING)
    written = writer.write_existing(live_entries, ContentType.DATA_MANIFEST)
    return [put(new, "ordinal", row["ordinal"].combine_chunks()) for new in written]
