"""Inheritance of snapshot ids, sequence numbers and row ids (spec: Sequence Number Inheritance; V4 proposal).

Nulls are filled in all rows of a manifest, before its deletion vector is applied: the removal of a file must not change
the row ids of the files after it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import FormatError
from icefloe.model.entries import ContentType, Status, live, of_status, of_type, put
from icefloe.tree.new_snapshot import consecutive


def inherit(
    table: pa.Table, *, where: str, snapshot_id: int | None, sequence_number: int, first_row_id: int | None = None
) -> pa.Table:
    """The rows with inherited values: those of a root from its snapshot, those of a leaf from its root row."""
    if snapshot_id is not None and table["snapshot_id"].null_count > 0:
        table = put(table, "snapshot_id", pc.fill_null(table["snapshot_id"], snapshot_id))
    table = _inherit_sequences(table, where, sequence_number)
    return table if first_row_id is None else _assign_row_ids(table, first_row_id)


def _inherit_sequences(table: pa.Table, where: str, sequence_number: int) -> pa.Table:
    """The rows with inherited sequence numbers; others stay null.

    Apache Iceberg before 1.1 wrote no file sequence numbers for entries that were not new, and no sequence numbers for
    removed entries. The data sequence number of a live file is required, as it decides which deletes apply to it.
    """
    names = [name for name in ("sequence_number", "file_sequence_number") if table[name].null_count > 0]
    if len(names) == 0:
        return table
    # A manifest with sequence number 0 was written in version 1: its rows have no numbers, and all inherit 0.
    may_inherit = pa.scalar(True) if sequence_number == 0 else of_status(table, Status.ADDED)
    if "sequence_number" in names:
        missing = pc.is_null(table["sequence_number"])
        wrong = pc.index(pc.and_(pc.and_(missing, live(table)), pc.invert(may_inherit)), True).as_py()
        if wrong >= 0:
            raise FormatError(
                f"{where}: row {wrong}: sequence_number is null, which only an ADDED entry may inherit",
                location=where,
                row=wrong,
            )
    inherited = pc.if_else(may_inherit, pa.scalar(sequence_number, pa.int64()), pa.scalar(None, pa.int64()))
    for name in names:
        table = put(table, name, pc.coalesce(table[name], inherited))
    return table


def _assign_row_ids(table: pa.Table, first_row_id: int) -> pa.Table:
    """The rows with first row ids for live data files and manifests that have none, in row order.

    The ids after a file with an unknown row count are unknown.
    """
    if table["first_row_id"].null_count == 0:
        return table
    has_rows = of_type(table, ContentType.DATA, ContentType.DATA_MANIFEST)
    missing = pc.and_(pc.and_(live(table), has_rows), pc.is_null(table["first_row_id"]))
    if pc.any(missing).as_py() is not True:
        return table
    is_missing = np.asarray(missing)
    counts = _row_counts(table)
    starts = consecutive(first_row_id, np.where(is_missing, np.asarray(pc.fill_null(counts, 0)), 0))
    unknown = np.cumsum(is_missing & np.asarray(pc.is_null(counts))) > 0
    after_unknown = np.concatenate(([False], unknown[:-1]))
    ids = pc.if_else(missing, pa.array(starts, pa.int64(), mask=after_unknown), table["first_row_id"])
    return put(table, "first_row_id", ids)


def _row_counts(table: pa.Table) -> pa.ChunkedArray:
    """The number of data rows of each entry, null if unknown; the record_count of a manifest counts its entries."""
    in_manifest = pc.add(table["added_rows_count"], table["existing_rows_count"])
    return pc.if_else(of_type(table, ContentType.DATA_MANIFEST), pc.fill_null(in_manifest, 0), table["record_count"])
