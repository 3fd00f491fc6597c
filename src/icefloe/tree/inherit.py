"""Inheritance of snapshot ids, sequence numbers and row ids (spec: Sequence Number Inheritance; V4 proposal).

Nulls are filled over all physical rows, before any manifest deletion vector is applied: a file that leaves a
manifest must not shift the row ids of the files behind it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import FormatError
from icefloe.model.entries import ContentType, Status, live, of_status, of_type, put


def inherit(
    table: pa.Table, *, where: str, snapshot_id: int | None, sequence_number: int, first_row_id: int | None = None
) -> pa.Table:
    """The rows with nulls filled from what refers to their manifest: a snapshot for a root, a root row for a leaf."""
    if snapshot_id is not None and table["snapshot_id"].null_count > 0:
        table = put(table, "snapshot_id", pc.fill_null(table["snapshot_id"], snapshot_id))
    for name in ("sequence_number", "file_sequence_number"):
        table = _inherit_sequence(table, name, where, sequence_number)
    return table if first_row_id is None else _assign_row_ids(table, first_row_id)


def _inherit_sequence(table: pa.Table, name: str, where: str, sequence_number: int) -> pa.Table:
    """The numbers filled where they are inherited; others stay unknown, as Apache Iceberg before 1.1 left them.

    It told no file sequence numbers of entries that were not new, and none at all of those it removed. The data
    sequence number of a live file decides which deletes apply to it, so that one must be known.
    """
    if table[name].null_count == 0:
        return table
    missing = pc.is_null(table[name])
    # Sequence number 0 means a manifest of version 1, whose rows have none and all count as 0.
    inherits = pc.and_(missing, pc.or_(of_status(table, Status.ADDED), sequence_number == 0))
    wrong = pc.index(pc.and_(pc.and_(missing, live(table)), pc.invert(inherits)), True).as_py()
    if name == "sequence_number" and wrong >= 0:
        raise FormatError(
            f"{where}: row {wrong}: {name} is null, which only an ADDED entry may inherit", location=where, row=wrong
        )
    return put(table, name, pc.if_else(inherits, pa.scalar(sequence_number, pa.int64()), table[name]))


def _assign_row_ids(table: pa.Table, first_row_id: int) -> pa.Table:
    """Null first_row_ids of live data files and manifests, counted on in row order.

    The ids after a file whose number of rows is unknown are unknown.
    """
    if table["first_row_id"].null_count == 0:
        return table
    counted = of_type(table, ContentType.DATA, ContentType.DATA_MANIFEST)
    wanting = pc.and_(pc.and_(live(table), counted), pc.is_null(table["first_row_id"]))
    if pc.any(wanting).as_py() is not True:
        return table
    needs = np.asarray(wanting)
    counts = _row_counts(table)
    sizes = np.where(needs, np.asarray(pc.fill_null(counts, 0)), 0)
    starts = first_row_id + np.concatenate(([0], np.cumsum(sizes)[:-1]))
    unknown = np.cumsum(needs & np.asarray(pc.is_null(counts))) > 0
    behind = np.concatenate(([False], unknown[:-1]))
    ids = pc.if_else(wanting, pa.array(starts, pa.int64(), mask=behind), table["first_row_id"])
    return put(table, "first_row_id", ids)


def _row_counts(table: pa.Table) -> pa.ChunkedArray:
    """Rows of data behind each entry, null if unknown; a manifest has record_count entries, not rows."""
    in_manifest = pc.add(table["added_rows_count"], table["existing_rows_count"])
    return pc.if_else(of_type(table, ContentType.DATA_MANIFEST), pc.fill_null(in_manifest, 0), table["record_count"])
