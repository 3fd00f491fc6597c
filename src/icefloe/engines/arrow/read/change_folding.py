"""Reduces deleted and inserted rows to changes: copied rows are left out, and updates become pairs.

Rows are ordered by time: by ordinal, and the deleted rows of a snapshot before its inserted rows. Rows are compared by
numbers, which are equal for equal rows, also for rows with lists, maps and structs: null equals null, NaN equals NaN,
and 0.0 differs from -0.0, as in equality deletes. The entries of a map are compared in their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.deletes.equality_index import comparable
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
Numbers: TypeAlias = npt.NDArray[np.int32]
Mask: TypeAlias = npt.NDArray[np.bool_]

IS_INSERT = "_icefloe_is_insert"
_NUMBER_BYTES = 4
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


def row_numbers(rows: pa.Table) -> Numbers:
    """A number for each row: each column becomes a column of numbers, and the numbers of a row become one.

    >>> row_numbers(pa.table({"n": [1, 2, 1], "l": [[1], None, [1]]})).tolist()
    [0, 1, 0]
    """
    return _united([_of_values(column.combine_chunks()) for column in rows.columns], rows.num_rows)


def _of_values(column: pa.Array) -> Numbers:
    """A number for each value of a column; that of null is -1."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    type_, kinds = column.type, pa.types
    if kinds.is_struct(type_):
        return _of_structs(column)
    if kinds.is_map(type_):
        column = column.take(pa.array(np.arange(len(column))))  # its entries are then all entries of its buffers
        pairs = _united([_of_values(column.keys), _of_values(column.items)], len(column.keys))
        return _of_lists(np.diff(np.asarray(column.offsets)), pairs, column.is_valid())
    if kinds.is_list(type_) or kinds.is_large_list(type_) or kinds.is_fixed_size_list(type_):
        lengths = np.asarray(pc.fill_null(pc.list_value_length(column), 0))
        return _of_lists(lengths, _of_values(column.flatten()), column.is_valid())
    encoded = comparable(column).dictionary_encode()
    return _filled(encoded.indices)


def _of_structs(column: pa.StructArray) -> Numbers:
    parts = [_of_values(values) for values in column.flatten()]
    numbers = _united([_mask(column.is_valid()).astype(np.int32), *parts], len(column))
    return np.where(_mask(column.is_valid()), numbers, -1).astype(np.int32)


def _of_lists(lengths: npt.NDArray[np.integer[Any]], values: Numbers, is_valid: pa.Array) -> Numbers:
    """The numbers of lists, from their lengths and the numbers of all their elements; each list becomes bytes."""
    ends = np.cumsum(lengths, dtype=np.int64) * _NUMBER_BYTES
    offsets = np.concatenate([np.zeros(1, np.int64), ends])
    content = np.ascontiguousarray(values)
    texts = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(lengths), [None, pa.py_buffer(offsets), pa.py_buffer(content)]
    )
    numbers = np.asarray(texts.dictionary_encode().indices, np.int32)
    return np.where(_mask(is_valid), numbers, -1).astype(np.int32)


def _united(columns: Sequence[Numbers], rows: int) -> Numbers:
    """One number for each row of several columns of numbers."""
    if len(columns) == 0 or rows == 0:
        return np.zeros(rows, np.int32)
    content = np.ascontiguousarray(np.stack(columns, axis=1))
    width = _NUMBER_BYTES * len(columns)
    texts = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), rows, [None, pa.py_buffer(content)])
    return np.asarray(texts.dictionary_encode().indices, np.int32)


def _filled(indices: pa.Array) -> Numbers:
    return np.asarray(indices.fill_null(-1), np.int32)


def _mask(values: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(values, np.bool_)
