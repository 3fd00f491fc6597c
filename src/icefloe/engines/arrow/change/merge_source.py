"""The source of a merge, made ready: its rows by key, and which rows of the table could meet one of them.

Equalities between the two sides become an index of the source; what else the joining condition says is asked of the
pairs that they leave. Key values and conditions on the table alone also prune files and row groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.engines.arrow.change.key_index import KeyIndex
from icefloe.engines.arrow.change.upsert import values_range
from icefloe.engines.merge import BOTH, SOURCE, TARGET, Action, Clause, Merge, Names, When, columns_read, sides_of
from icefloe.errors import InputError
from icefloe.expr.filter.nodes import ALWAYS_FALSE, ALWAYS_TRUE, Expr, conjunction, disjunction
from icefloe.expr.value.expressions import Value, evaluate_value
from icefloe.expr.value.implied_filter import implied_filter
from icefloe.expr.value.nodes import Call, Node, Reference
from icefloe.expr.value.struct_fields import column_values, path_of
from icefloe.expr.value.types import BOOLEAN, BYTES, FLOAT, OTHER, TEXT, TIMESTAMP, common_type, convert, kind_of
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.arrow.plain_layouts import plain
from icefloe.model.schema.schema import Schema, repeated

_LONG_BYTES = 2**31 - 1  # of text, that one array with short offsets can hold
_NANOSECOND_ERA = (-(2**63) // 1000 + 1, (2**63 - 1) // 1000)  # the microseconds that are nanoseconds too


class MergeSource:
    """A merge and its source, checked against the schema of the table."""

    def __init__(self, merge: Merge, rows: pa.Table, schema: Schema) -> None:
        merge.check()
        _check_names(rows.column_names)
        self.schema = schema
        self.rows = rows.num_rows
        self.columns: Mapping[str, pa.Array] = {
            name: _in_microseconds(_whole(rows[name])) for name in rows.column_names
        }
        self._names = Names(
            target=frozenset(field.name for field in schema.fields), source=frozenset(rows.column_names)
        )
        self.clauses = tuple(self._resolved(clause) for clause in merge.clauses)
        self._split(self._names.resolve(merge.on, BOTH))

    def of(self, when: When) -> list[tuple[int, Clause]]:
        """The clauses about some rows, with their numbers."""
        return [(number, clause) for number, clause in enumerate(self.clauses) if clause.when is when]

    def _resolved(self, clause: Clause) -> Clause:
        sides = clause.when.sides
        condition = None if clause.condition is None else self._names.resolve(clause.condition, sides)
        return replace(clause, condition=condition, assignments=self._assignments(clause, sides))

    def _assignments(self, clause: Clause, sides: frozenset[str]) -> Mapping[str, Value] | None:
        """What a clause writes to which columns; an update writes all, those that it does not name as they are."""
        if clause.action is Action.DELETE:
            return None
        if clause.assignments is None:
            given = {name: _column(SOURCE, name) for name in self.columns if name in self._names.target}
            if len(given) == 0:
                raise InputError(f"merge: {str(clause)!r}: the source has none of the table's columns")
        else:
            given = self._given(clause, clause.assignments, sides)
        if clause.action is Action.INSERT:
            return given
        return {field.name: given.get(field.name, _column(TARGET, field.name)) for field in self.schema.fields}

    def _given(self, clause: Clause, values: Mapping[str, Value], sides: frozenset[str]) -> dict[str, Value]:
        """The values of columns that a clause names; an update may name fields inside of them."""
        given: dict[str, Value] = {}
        for name, value in values.items():
            own = name[2:] if name.startswith(f"{TARGET}.") and name not in self._names.target else name
            if (problem := self._problem(clause, own, given)) is not None:
                raise InputError(f"merge: {str(clause)!r}: {problem}", field=own)
            given[own] = self._names.resolve(value, sides)
        return column_values(given, self.schema.fields, lambda name: Reference((TARGET, name)))

    def _problem(self, clause: Clause, name: str, given: Mapping[str, Value]) -> str | None:
        """Why a clause cannot set a column or a field, if it cannot."""
        if name in given:
            return f"{name!r} is set twice"
        if path_of(name, self.schema.fields) is None:
            return f"the table has no column {name!r}, or it lies in a list or map"
        is_inside = name not in self._names.target
        return (
            f"{name!r} lies inside a column; insert the whole column"
            if is_inside and clause.action is Action.INSERT
            else None
        )

    def _split(self, on: Value) -> None:
        """Take the joining condition apart: equalities between the sides, and the rest."""
        parts = on.node.arguments if isinstance(on.node, Call) and on.node.function == "and" else (on.node,)
        self._keys: list[Value] = []
        ours: list[Any] = []
        rest: list[Node] = []
        ranges: list[Expr] = []
        for part in _flat(parts):
            pair = _equality(part)
            if pair is None:
                rest.append(part)
                ranges.append(implied_filter(part, self.schema, alias=TARGET))
                continue
            theirs, own = (Value(on.text, node) for node in pair)
            values = evaluate_value(own, self._all(SOURCE, own), self.rows)
            key, pruning = self._key(theirs, values, on.text)
            self._keys.append(theirs)
            ours.append(key)
            ranges.append(pruning)
        self.is_keyed = len(ours) > 0
        self._types = [key.type for key in ours]
        self.index = KeyIndex(ours, self.rows)
        joined = rest[0] if len(rest) == 1 else Call("and", tuple(rest))
        self.rest = None if len(rest) == 0 else Value(on.text, joined)
        self._matching = ALWAYS_FALSE if self.rows == 0 else conjunction(ranges)

    def _key(self, theirs: Value, values: Any, text: str) -> tuple[Any, Expr]:
        """The source's values of a key in the type in which both sides compare, and a filter of the table for them."""
        type_ = evaluate_value(theirs, self._empty(theirs), 0).type
        try:
            common = common_type([type_, values.type], [False, False])
            if kind_of(common) == OTHER:
                raise ValueError(f"{common} cannot be a key")
            key = _as_key(values, common)
        except (ValueError, pa.ArrowException) as error:
            raise InputError(f"merge: {text!r}: {error}", value=text) from error
        node = theirs.node
        is_plain = isinstance(node, Reference) and len(node.path) == 2 and common == type_
        if not is_plain or kind_of(common) in (FLOAT, BOOLEAN):
            return key, ALWAYS_FALSE if key.null_count == len(key) else ALWAYS_TRUE
        return key, values_range(theirs.node.path[1], pa.chunked_array([key]))  # type: ignore[union-attr]

    @cached_property
    def range(self) -> Expr:
        """A filter that every row of the table satisfies that this merge could look at."""
        parts = [self._matching]
        for _, clause in self.of(When.NOT_MATCHED_BY_SOURCE):
            parts.append(
                ALWAYS_TRUE
                if clause.condition is None
                else implied_filter(clause.condition.node, self.schema, alias=TARGET)
            )
        return disjunction(parts)

    @cached_property
    def read(self) -> frozenset[str]:
        """The columns of the table that decide what happens to a row."""
        asked = [*self._keys, *(clause.condition for clause in self.clauses if clause.condition is not None)]
        return _read_by(asked if self.rest is None else [*asked, self.rest])

    @cached_property
    def rewritten(self) -> frozenset[str]:
        """The columns of the table that updated rows are made of."""
        updates = [clause for clause in self.clauses if clause.action is Action.UPDATE]
        return _read_by(value for clause in updates for value in (clause.assignments or {}).values())

    def keys_of(self, rows: pa.RecordBatch) -> list[Any]:
        """The key columns of rows of the table."""
        columns = {f"{TARGET}.{name}": rows.column(name) for name in rows.schema.names}
        found = (evaluate_value(key, columns, rows.num_rows) for key in self._keys)
        return [_as_key(values, type_) for values, type_ in zip(found, self._types, strict=True)]

    def _all(self, side: str, value: Value) -> dict[str, Any]:
        return {f"{side}.{name}": self.columns[name] for name in columns_read(value, side)}

    def _empty(self, value: Value) -> dict[str, Any]:
        fields = {field.name: field for field in self.schema.fields}
        return {f"{TARGET}.{n}": pa.array([], arrow_type(fields[n].type)) for n in columns_read(value, TARGET)}


def _flat(parts: Iterable[Node]) -> Iterable[Node]:
    for part in parts:
        if isinstance(part, Call) and part.function == "and":
            yield from _flat(part.arguments)
        else:
            yield part


def _equality(node: Node) -> tuple[Node, Node] | None:
    """The sides of an equality between the table and the source, the table's first."""
    if not (isinstance(node, Call) and node.function == "="):
        return None
    left, right = node.arguments
    sides = (sides_of(left), sides_of(right))
    if sides == (frozenset({TARGET}), frozenset({SOURCE})):
        return left, right
    return (right, left) if sides == (frozenset({SOURCE}), frozenset({TARGET})) else None


def _column(side: str, name: str) -> Value:
    return Value(f"{side}.{name}", Reference((side, name)))


def _read_by(values: Iterable[Value]) -> frozenset[str]:
    return frozenset(name for value in values for name in columns_read(value, TARGET))


def _check_names(names: list[str]) -> None:
    twice = repeated(names)
    if len(twice) > 0:
        raise InputError(f"merge: two columns of the source are named {twice[0]!r}", field=twice[0])


def _as_key(values: Any, type_: pa.DataType) -> Any:
    """Values in the type in which keys compare; a day too far away for nanoseconds equals none that has them."""
    if _is_nanoseconds(type_) and not _is_nanoseconds(values.type):
        values = convert(values, pa.timestamp("us", type_.tz))
        first, last = (pa.scalar(number, pa.int64()).cast(values.type) for number in _NANOSECOND_ERA)
        near = pc.and_(pc.greater_equal(values, first), pc.less_equal(values, last))
        values = pc.if_else(near, values, pa.scalar(None, values.type))
    return convert(values, type_)


def _in_microseconds(array: pa.Array) -> pa.Array:
    """Nanoseconds that no value needs are left out: frames have them always, and tables dates beyond their reach."""
    if not _is_nanoseconds(array.type):
        return array
    try:
        return array.cast(pa.timestamp("us", array.type.tz))
    except pa.ArrowInvalid:  # it would lose some
        return array


def _is_nanoseconds(type_: pa.DataType) -> bool:
    return kind_of(type_) == TIMESTAMP and type_.unit == "ns"


def _whole(column: pa.ChunkedArray) -> pa.Array:
    """A column as one plain array; text and bytes with short offsets, as the table's have, where they fit."""
    chunks = column.chunks if column.num_chunks > 0 else [pa.nulls(0, column.type)]
    column = pa.chunked_array([plain(chunk) for chunk in chunks])
    is_long = column.nbytes >= _LONG_BYTES
    if kind_of(column.type) == TEXT:
        column = column.cast(pa.large_string() if is_long else pa.string())
    elif kind_of(column.type) == BYTES and (is_long or pa.types.is_large_binary(column.type)):
        column = column.cast(pa.large_binary() if is_long else pa.binary())
    return column.combine_chunks()
