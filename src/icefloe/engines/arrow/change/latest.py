"""The latest change of each key, on Arrow columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.engines.work import IS_DELETE, ChangeKeys, ambiguous_change
from icefloe.errors import InputError
from icefloe.expr.value.expressions import evaluate_value


def latest_changes(rows: pa.Table, by: ChangeKeys) -> pa.Table:
    """One row per key, that with the greatest sequence, with the column ``IS_DELETE``.

    InputError for a null in a key or sequence, and if a key has two different last changes.

    >>> changes = pa.table({"id": [1, 2, 1], "n": [10, 20, 30], "seq": [1, 1, 2]})
    >>> latest_changes(changes, ChangeKeys(keys=("id",), sequence_by="seq"))["n"].to_pylist()
    [30, 20]
    """
    by.check(rows.column_names)
    for name in (*by.keys, by.sequence_by):
        if rows[name].null_count > 0:
            raise InputError(f"apply_changes: column {name!r} of the changes has a null", field=name)
    rows = rows.combine_chunks()
    ordering = [(name, "ascending") for name in (*by.keys, by.sequence_by)]
    ordered = rows.take(pc.sort_indices(rows, sort_keys=ordering))
    same_key = _same_as_next(ordered, by.keys)
    _check_ties(ordered, by, same_key)
    latest = ordered.filter(pa.array(~same_key))
    return latest.append_column(IS_DELETE, _is_delete(latest, by))


def _same_as_next(rows: pa.Table, names: tuple[str, ...]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """For each row, whether the next one has the same values; false for the last."""
    same = np.ones(rows.num_rows, np.bool_)
    same[-1:] = False
    for name in names:
        column = rows[name].combine_chunks()
        same[:-1] &= np.asarray(pc.equal(column.slice(0, max(0, len(column) - 1)), column.slice(1)))
    return same


def _check_ties(rows: pa.Table, by: ChangeKeys, same_key: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
    """InputError if the last changes of a key have the same sequence and differ; equal ones are one change."""
    same_change = same_key & _same_as_next(rows, (by.sequence_by,))
    runs = np.cumsum(np.concatenate([[0], ~same_change[:-1]])) if rows.num_rows > 0 else np.zeros(0, np.int64)
    last_runs = runs[~same_key]
    in_tie = np.isin(runs, last_runs[np.bincount(runs)[last_runs] > 1]) if rows.num_rows > 0 else runs > 0
    seen: dict[int, Any] = {}
    for run, row in zip(runs[in_tie].tolist(), rows.filter(pa.array(in_tie)).to_pylist(), strict=True):
        if seen.setdefault(run, row) != row:
            raise ambiguous_change({name: row[name] for name in by.keys}, by.sequence_by, row[by.sequence_by])


def _is_delete(rows: pa.Table, by: ChangeKeys) -> pa.Array:
    if by.delete_when is None:
        return pa.repeat(pa.scalar(False), rows.num_rows)
    columns: dict[str, Any] = {}
    for name in rows.column_names:
        columns[name] = columns[f"s.{name}"] = rows[name].combine_chunks()
    result = evaluate_value(by.delete_when, columns, rows.num_rows)
    return pc.fill_null(result.cast(pa.bool_()), False)
