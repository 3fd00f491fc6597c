"""The source of a merge on Arrow: its rows indexed by key, and a filter for the rows of the table that may match.

The equalities of the joining condition become an index of the source. The rest of the condition is evaluated for the
pairs of rows that the index finds. Key values also prune files and row groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.engines.arrow.change.key_index import KeyIndex
from icefloe.engines.arrow.change.upsert import values_filter
from icefloe.engines.merge_plan import SOURCE, TARGET, KeyPair, MergePlan, columns_read
from icefloe.errors import InputError
from icefloe.expr.filter.nodes import ALWAYS_FALSE, ALWAYS_TRUE, Expr, conjunction
from icefloe.expr.value.expressions import Value, evaluate_value, value_type
from icefloe.expr.value.nodes import Reference
from icefloe.expr.value.value_types import BOOLEAN, BYTES, FLOAT, OTHER, TEXT, TIMESTAMP, common_type, convert, kind_of
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.arrow.plain_layouts import plain

_MAX_SHORT_OFFSETS = 2**31 - 1  # bytes of text that one array with 32-bit offsets can hold
_NANOSECOND_RANGE = (-(2**63) // 1000 + 1, (2**63 - 1) // 1000)  # microseconds that fit a timestamp of nanoseconds


class IndexedSource:
    """The rows of the source of a merge, indexed by key."""

    def __init__(self, plan: MergePlan, rows: pa.Table) -> None:
        self.plan = plan
        self.rows = rows.num_rows
        self.columns: Mapping[str, pa.Array] = {
            name: _without_unused_nanoseconds(_one_array(rows[name])) for name in rows.column_names
        }
        keys, filters = [], []
        for pair in plan.keys:
            key, filter_ = self._key(pair)
            keys.append(key)
            filters.append(filter_)
        self._key_types = [key.type for key in keys]
        self.index = KeyIndex(keys, self.rows)
        self.filter = plan.table_filter(ALWAYS_FALSE if self.rows == 0 else conjunction(filters))

    def _key(self, pair: KeyPair) -> tuple[Any, Expr]:
        """The values of a key in the source, in the type in which both sides compare, and the filter they imply."""
        own = {f"{SOURCE}.{name}": self.columns[name] for name in columns_read(pair.source, SOURCE)}
        values = evaluate_value(pair.source, own, self.rows)
        read = columns_read(pair.target, TARGET)
        fields = [field for field in self.plan.schema.fields if field.name in read]
        type_ = value_type(pair.target, {f"{TARGET}.{field.name}": arrow_type(field.type) for field in fields})
        try:
            common = common_type([type_, values.type], [False, False])
            if kind_of(common) == OTHER:
                raise ValueError(f"{common} cannot be a key")
            key = _as_key(values, common)
        except MemoryError:
            raise
        except (ValueError, pa.ArrowException) as error:
            raise InputError(f"merge: {pair.target.text!r}: {error}", value=pair.target.text) from error
        node = pair.target.node
        is_column = isinstance(node, Reference) and len(node.path) == 2 and common == type_
        if not is_column or kind_of(common) in (FLOAT, BOOLEAN):
            return key, ALWAYS_FALSE if key.null_count == len(key) else ALWAYS_TRUE
        return key, values_filter(node.path[1], pa.chunked_array([key]))  # type: ignore[union-attr]

    def keys_of(self, rows: pa.RecordBatch) -> list[Any]:
        """The keys of rows of the table, as the index compares them."""
        columns = {f"{TARGET}.{name}": rows.column(name) for name in rows.schema.names}
        keys = (evaluate_value(pair.target, columns, rows.num_rows) for pair in self.plan.keys)
        return [_as_key(values, type_) for values, type_ in zip(keys, self._key_types, strict=True)]

    def columns_at(self, value: Value, rows: Any) -> dict[str, pa.Array]:
        """The columns of the source that a value reads, at these rows of the source."""
        numbers = pa.array(rows)
        return {f"{SOURCE}.{name}": self.columns[name].take(numbers) for name in columns_read(value, SOURCE)}


def _as_key(values: Any, type_: pa.DataType) -> Any:
    """Values in the type in which keys compare; a timestamp beyond the range of nanoseconds equals none of them."""
    if _is_nanoseconds(type_) and not _is_nanoseconds(values.type):
        values = convert(values, pa.timestamp("us", type_.tz))
        first, last = (pa.scalar(number, pa.int64()).cast(values.type) for number in _NANOSECOND_RANGE)
        in_range = pc.and_(pc.greater_equal(values, first), pc.less_equal(values, last))
        values = pc.if_else(in_range, values, pa.scalar(None, values.type))
    return convert(values, type_)


def _without_unused_nanoseconds(array: pa.Array) -> pa.Array:
    """Timestamps in microseconds if no value loses by it: pandas has nanoseconds always, and tables later dates."""
    if not _is_nanoseconds(array.type):
        return array
    try:
        return array.cast(pa.timestamp("us", array.type.tz))
    except pa.ArrowInvalid:
        return array


def _is_nanoseconds(type_: pa.DataType) -> bool:
    return kind_of(type_) == TIMESTAMP and type_.unit == "ns"


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    """A column as one plain array; text and bytes have 32-bit offsets, as in tables, if they fit."""
    chunks = column.chunks if column.num_chunks > 0 else [pa.nulls(0, column.type)]
    column = pa.chunked_array([plain(chunk) for chunk in chunks])
    is_long = column.nbytes >= _MAX_SHORT_OFFSETS
    if kind_of(column.type) == TEXT:
        column = column.cast(pa.large_string() if is_long else pa.string())
    elif kind_of(column.type) == BYTES and (is_long or pa.types.is_large_binary(column.type)):
        column = column.cast(pa.large_binary() if is_long else pa.binary())
    return column.combine_chunks()
