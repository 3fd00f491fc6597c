"""Reduces deleted and inserted rows to changes: rows that were only copied are none, and updates become pairs.

Rows are in the order of time: by ordinal, and the deleted rows of a snapshot before its inserted rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.engines.arrow.read.row_numbers import Numbers, row_numbers
from icefloe.engines.work import repeated_key
from icefloe.model.schema.metadata_columns import ROW_ID
from icefloe.scan.changes.pairing import UpdatePairs
from icefloe.scan.changes.plan import (
    CHANGE_ORDINAL,
    CHANGE_TYPE,
    COMMIT_SNAPSHOT,
    DELETE,
    INSERT,
    UPDATE_AFTER,
    UPDATE_BEFORE,
)

Ints: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]

IS_INSERT = "_icefloe_is_insert"
_TYPES = [DELETE, INSERT, UPDATE_BEFORE, UPDATE_AFTER]  # the first two by the value of IS_INSERT


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Rows before and after an update, as two arrays of row numbers; the other rows are in no pair."""

    before: Ints
    after: Ints


def fold(rows: pa.Table, compared: list[str], pairs: UpdatePairs | None) -> pa.Table:
    """The changes that remain of deleted and inserted rows, with column ``_change_type`` instead of ``IS_INSERT``.

    ``compared`` are the columns by which rows are equal. As many deleted rows as inserted rows that are equal to them
    are no change. With ``pairs`` the rows before and after an update have their own change types.
    """
    numbers = row_numbers(rows.select(compared))
    is_insert = np.asarray(rows[IS_INSERT].combine_chunks(), np.bool_)
    if pairs is None or len(pairs.keys) > 0:
        kept = np.flatnonzero(_remaining(numbers, is_insert))
        updates = _no_pairs() if pairs is None else _by_keys(rows.select(list(pairs.keys)), kept, is_insert)
        return _labelled(rows, kept, is_insert, updates)
    candidates, updates = _by_row_ids(rows[ROW_ID.name].combine_chunks(), is_insert)
    is_change = numbers[updates.before] != numbers[updates.after]
    updates = Pairs(before=updates.before[is_change], after=updates.after[is_change])
    single = candidates[_remaining(numbers[candidates], is_insert[candidates])]
    return _labelled(rows, np.concatenate([single, updates.before, updates.after]), is_insert, updates)


def without_copies(rows: pa.Table, compared: list[str]) -> pa.Table:
    """The deleted and inserted rows of one snapshot without those that it only copied, by the compared columns."""
    is_insert = np.asarray(rows[IS_INSERT].combine_chunks(), np.bool_)
    return rows.filter(pa.array(_remaining(row_numbers(rows.select(compared)), is_insert)))


def _no_pairs() -> Pairs:
    return Pairs(before=np.empty(0, np.int64), after=np.empty(0, np.int64))


def _remaining(numbers: Numbers, is_insert: Mask) -> Mask:
    """Which rows remain if deleted and inserted rows with the same number cancel each other; the last ones do."""
    size = int(numbers.max(initial=-1)) + 1
    inserted, deleted = (np.bincount(numbers[mask], minlength=size) for mask in (is_insert, ~is_insert))
    remaining = np.zeros(len(numbers), np.bool_)
    for mask, surplus in ((is_insert, inserted - deleted), (~is_insert, deleted - inserted)):
        rows = np.flatnonzero(mask)
        remaining[rows] = _rank_from_last(numbers[rows]) < surplus[numbers[rows]]
    return remaining


def _rank_from_last(numbers: Numbers) -> Ints:
    """For each element, how many equal ones follow it."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    ends = np.searchsorted(ordered, ordered, side="right")
    ranks = np.empty(len(numbers), np.int64)
    ranks[order] = ends - 1 - np.arange(len(numbers))
    return ranks


def _by_row_ids(ids: pa.Array, is_insert: Mask) -> tuple[Ints, Pairs]:
    """The rows that are in no pair, and the pairs of the first row and the last row that have the same row id.

    A row id that first occurs in a deleted row existed before; one that last occurs in an inserted row exists after.
    """
    unknown = np.flatnonzero(np.asarray(ids.is_null()))
    rows = np.flatnonzero(np.asarray(ids.is_valid()))
    values = np.asarray(ids.drop_null(), np.int64)
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1)) if len(ordered) > 0 else np.empty(0, np.int64)
    ends = np.append(starts[1:], len(ordered))[: len(starts)] - 1
    first, last = rows[order[starts]], rows[order[ends]]
    existed, exists = ~is_insert[first], is_insert[last]
    is_pair = existed & exists
    single = np.concatenate([unknown, first[existed & ~exists], last[~existed & exists]])
    return np.sort(single), Pairs(before=first[is_pair], after=last[is_pair])


def _by_keys(keys: pa.Table, kept: Ints, is_insert: Mask) -> Pairs:
    """Pairs of the remaining rows by key; InputError if a key has several deleted or several inserted rows.

    Rows with a null in their key are in no pair.
    """
    has_key = np.ones(keys.num_rows, np.bool_)
    for column in keys.columns:
        has_key &= np.asarray(column.combine_chunks().is_valid(), np.bool_)
    rows = kept[has_key[kept]]
    numbers = row_numbers(keys.take(pa.array(rows)))
    sides = []
    for mask in (~is_insert[rows], is_insert[rows]):
        own = numbers[mask]
        found, counts = np.unique(own, return_counts=True)
        if (counts > 1).any():
            example = rows[mask][np.flatnonzero(own == found[counts > 1][0])[0]]
            raise repeated_key(keys.slice(int(example), 1).to_pylist()[0])
        sides.append((own, rows[mask]))
    (deleted, deleted_rows), (inserted, inserted_rows) = sides
    _, before, after = np.intersect1d(deleted, inserted, assume_unique=True, return_indices=True)
    return Pairs(before=deleted_rows[before], after=inserted_rows[after])


def _labelled(rows: pa.Table, kept: Ints, is_insert: Mask, updates: Pairs) -> pa.Table:
    """The kept rows with their change types in the order of time; the two rows of an update follow each other.

    Both rows of an update have the ordinal and snapshot of the later one.
    """
    labels = is_insert.astype(np.int8)
    labels[updates.before], labels[updates.after] = _TYPES.index(UPDATE_BEFORE), _TYPES.index(UPDATE_AFTER)
    moment = np.arange(rows.num_rows)
    moment[updates.before] = updates.after
    order = kept[np.lexsort((is_insert[kept], moment[kept]))]
    chosen = rows.take(pa.array(order))
    when = rows.take(pa.array(moment[order]))
    for name in (CHANGE_ORDINAL, COMMIT_SNAPSHOT):
        chosen = chosen.set_column(chosen.schema.get_field_index(name), chosen.schema.field(name), when[name])
    labelled = pa.array(_TYPES).take(pa.array(labels[order]))
    return chosen.set_column(chosen.schema.get_field_index(IS_INSERT), CHANGE_TYPE, labelled)


def unfolded(rows: pa.Table) -> pa.Table:
    """Rows of which none can cancel another one, with their change types."""
    label = pc.if_else(rows[IS_INSERT], pa.scalar(INSERT), pa.scalar(DELETE))
    return rows.set_column(rows.schema.get_field_index(IS_INSERT), CHANGE_TYPE, label)
