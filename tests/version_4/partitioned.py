"""Partitioned tables of V4, and the partition tuples that their statistics tell."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from icefloe.codecs.manifest.partition_values import partition_value
from icefloe.model.entries import DELETES, MANIFESTS, ContentType, columns_of, concat, partition_key
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.tree.root import read_live_leaf, read_root
from support.tables import new_catalog, reopened

TO_LEAVES = {"commit.root.max-data-files": "0", "commit.root.max-dvs": "0"}
PLACES = pytest.mark.parametrize("settings", [{}, TO_LEAVES], ids=["root", "leaf"])


def new_table(folder: Path, schema: str, partition_by: list[str], version: int = 4, **properties: str) -> Table:
    return new_catalog(folder).create_table(
        "db.t", schema=schema, partition_by=partition_by, format_version=version, properties=properties
    )


def tree(table: Table) -> pa.Table:
    """All live file rows of the current snapshot, read again, in order of their locations."""
    state = pointer_of(reopened(table)).load()
    root = read_root(state.store, state.metadata.current_snapshot)
    found = [
        root.rows(ContentType.DATA, *DELETES),
        *(read_live_leaf(state.store, root, m) for m in root.leaves(*MANIFESTS)),
    ]
    return concat(found).sort_by([("sequence_number", "ascending"), ("location", "ascending")])


def tuples(table: Table) -> list[tuple[object, ...]]:
    """The partition tuple of every file row, by the fields of its own spec."""
    rows = tree(table)
    context = pointer_of(table).load().store.context
    columns = columns_of(rows.combine_chunks())
    found = []
    for row, spec_id in enumerate(rows["partition_spec_id"].to_pylist()):
        values = []
        for field in context.spec(spec_id).fields:
            if field.is_void:
                values.append(None)
                continue
            key, type_ = partition_key(field.field_id), context.partition_types[field.field_id]
            values.append(partition_value(key, columns, rows.num_rows, type_)[row].as_py())
        found.append(tuple(values))
    return found


def bucket(number: int) -> int:
    """Bucket of 16 by the published algorithm: Murmur3 of the eight bytes, positive part, remainder."""
    mask = 0xFFFFFFFF
    state = 0
    for start in (0, 4):
        k = int.from_bytes(number.to_bytes(8, "little", signed=True)[start : start + 4], "little")
        k = k * 0xCC9E2D51 & mask
        k = (k << 15 | k >> 17) & mask
        state ^= k * 0x1B873593 & mask
        state = (state << 13 | state >> 19) & mask
        state = (state * 5 + 0xE6546B64) & mask
    state ^= 8
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        state = (state ^ state >> shift) * factor & mask
    return ((state ^ state >> 16) & 0x7FFFFFFF) % 16
