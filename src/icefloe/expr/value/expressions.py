"""SQL value expressions on Arrow columns: what UPDATE sets, what MERGE tests and inserts.

A text is parsed once and evaluated on batch after batch. Logic has three values, as in SQL. A part that could fail,
such as a division, is computed only for the rows that need it: those a CASE, IF, COALESCE, AND or OR leaves to it.

>>> total = parse_value("CASE WHEN n = 0 THEN NULL ELSE price / n END")
>>> evaluate_value(total, {"price": pa.array([3.0, 1.0]), "n": pa.array([2, 0])}, 2).to_pylist()
[1.5, None]
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot.errors import SqlglotError

from icefloe.env import SYSTEM, Env
from icefloe.errors import IcefloeError, InputError
from icefloe.expr.text.sql_tree import TRIPPED, sql_tree
from icefloe.expr.value.functions import FUNCTIONS, as_boolean
from icefloe.expr.value.nested import check_keys, field_type, lists_of, maps_of, with_field
from icefloe.expr.value.nodes import ARRAY, MAP, STRUCT, WITH_FIELDS, Call, Case, Constant, Node, Reference, walk
from icefloe.expr.value.parser import Reading
from icefloe.expr.value.types import FLOAT, NUMBERS, common_type, convert, kind_of

Datum = Any  # an Arrow array or scalar
_MADE = {STRUCT: pa.types.is_struct, ARRAY: pa.types.is_list, MAP: pa.types.is_map}
_PASS_ON = frozenset({"and", "or", "coalesce", ARRAY, STRUCT, WITH_FIELDS})  # fail only if one of their arguments does


@dataclass(frozen=True, slots=True)
class Value:
    """A value expression: its text, and what it means."""

    text: str
    node: Node

    def __str__(self) -> str:
        return self.text


def parse_value(text: str | Value, *, env: Env = SYSTEM) -> Value:
    """The value that a text means; a value is returned as it is.

    >>> sorted(columns_of(parse_value("upper(s.note) || t.id")))
    ['s.note', 't.id']
    """
    if isinstance(text, Value):
        return text
    if not isinstance(text, str):
        raise InputError(f"a value is SQL text, not {type(text).__name__}; write text as \"'text'\" and numbers as '5'")
    reading = Reading(now=dt.datetime.fromtimestamp(env.now_ms() / 1000, dt.UTC))
    try:
        return Value(text, reading.node(sql_tree(text)))
    except IcefloeError:
        raise
    except (SqlglotError, *TRIPPED) as error:
        raise _refused(text, "it is not a value in SQL") from error
    except RecursionError as error:
        raise _refused(text, "it is nested too deeply") from error
    except (ValueError, ArithmeticError, pa.ArrowException) as error:
        raise _refused(text, str(error)) from error


def columns_of(value: Value) -> frozenset[str]:
    """The dotted names of the columns that a value reads, as the text has them.

    >>> columns_of(parse_value("t.id + 1"))
    frozenset({'t.id'})
    """
    return frozenset(node.name for node in walk(value.node) if isinstance(node, Reference))


def evaluate_value(
    value: Value, columns: Mapping[str, Any], rows: int, *, wanted: pa.DataType | None = None
) -> pa.Array | pa.ChunkedArray:
    """The value for every row of these columns, by name; scalars stand for columns of one value.

    A constant takes the type ``wanted`` of the column that it is meant for; other values keep their own.

    >>> evaluate_value(parse_value("id % 2 = 0"), {"id": pa.array([1, 2, None])}, 3).to_pylist()
    [False, True, None]
    """
    try:
        if any(isinstance(column, pa.ChunkedArray) for column in columns.values()):
            return _by_chunk(value.node, columns, wanted)
        return _evaluated(value.node, columns, rows, wanted)
    except IcefloeError:
        raise
    except (ValueError, ArithmeticError, pa.ArrowException) as error:
        raise InputError(f"cannot compute {_shown(value.text)!r}: {error}", value=value.text) from error


def _by_chunk(node: Node, columns: Mapping[str, Any], wanted: pa.DataType | None) -> pa.ChunkedArray:
    whole = {name: column for name, column in columns.items() if not isinstance(column, pa.Scalar)}
    batches = pa.table(list(whole.values()), names=list(whole)).to_batches()
    if len(batches) == 0:
        batches = [pa.record_batch([pa.array([], column.type) for column in whole.values()], names=list(whole))]
    fixed = {name: column for name, column in columns.items() if isinstance(column, pa.Scalar)}
    return pa.chunked_array(
        [
            _evaluated(node, {**fixed, **dict(zip(whole, batch.columns, strict=True))}, batch.num_rows, wanted)
            for batch in batches
        ]
    )


def _evaluated(node: Node, columns: Mapping[str, Any], rows: int, wanted: pa.DataType | None) -> pa.Array:
    frame = Frame(columns, rows)
    return frame.array(frame.value(node) if wanted is None else frame.value_for(node, wanted))


class Frame:
    """Rows for which nodes are evaluated: all of a batch, or those at ``places``."""

    def __init__(self, columns: Mapping[str, Any], rows: int, places: np.ndarray[Any, Any] | None = None) -> None:
        self._columns = columns
        self._rows = rows
        self._places = places
        self._taken: dict[str, Datum] = {}

    def value(self, node: Node) -> Datum:
        """The value of a node: an array of all rows, or a scalar that holds for each."""
        match node:
            case Constant():
                return node.value
            case Reference():
                return self._column(node)
            case Case():
                return self._case(node)
            case Call("and" | "or"):
                return self._logic(node)
            case Call("coalesce"):
                return self._coalesce(node)
            case Call(function) if function in _MADE:
                return self._made(node)
            case Call(function) if function == WITH_FIELDS:
                return self._with_fields(node)
            case Call():
                return self._call(node)

    def value_for(self, node: Node, wanted: pa.DataType) -> Datum:
        """The value of a node that is meant for a column: a constant takes its type."""
        if isinstance(node, Call) and node.function in _MADE:
            return self._made(node, wanted)
        found = self.value(node)
        return convert(found, common_type([wanted, found.type], [False, True])) if isinstance(node, Constant) else found

    def array(self, value: Datum) -> pa.Array:
        """A value as an array of all rows."""
        return pa.repeat(value, self._rows) if isinstance(value, pa.Scalar) else value

    def _call(self, node: Call) -> Datum:
        function = FUNCTIONS[node.function]
        values = [self.value(argument) for argument in node.arguments]
        if self._rows == 0:  # what would fail for a row does not fail without one
            values = [self.array(value) for value in values]
        if function.alike or (function.numeric and _meet_floats(values)):
            values = _alike(values, node.arguments)
        return function.compute(*values, *node.options)

    def _made(self, node: Call, wanted: pa.DataType | None = None) -> pa.Array:
        """A struct, list or map of values, meant for a column of the type ``wanted`` if that is of its kind."""
        if wanted is not None and not _MADE[node.function](wanted):
            wanted = None
        if node.function == STRUCT:
            return self._struct(node, wanted)
        if node.function == ARRAY:
            return self._list(node.arguments, None if wanted is None else wanted.value_type)
        return self._map(node, *((None, None) if wanted is None else (wanted.key_type, wanted.item_type)))

    def _map(self, node: Call, key: pa.DataType | None, item: pa.DataType | None) -> pa.Array:
        half = len(node.arguments) // 2
        keys = self._alike(node.arguments[:half], key)
        check_keys(keys)
        values = self._list(node.arguments[half:], item)
        return maps_of(lists_of(keys, self._rows, _type_of(keys, key)), values)

    def _struct(self, node: Call, wanted: pa.StructType | None) -> pa.Array:
        (names,) = node.options
        if wanted is None:
            values = [self.value(argument) for argument in node.arguments]
        elif set(names) != (fields := {field.name for field in wanted}):
            raise ValueError(f"the struct has the fields {', '.join(names)}, the column {', '.join(sorted(fields))}")
        else:
            given = zip(names, node.arguments, strict=True)
            values = [self.value_for(argument, wanted.field(name).type) for name, argument in given]
        return pa.StructArray.from_arrays([self.array(value) for value in values], names=list(names))

    def _list(self, nodes: Sequence[Node], wanted: pa.DataType | None) -> pa.ListArray:
        values = self._alike(nodes, wanted)
        return lists_of(values, self._rows, _type_of(values, wanted))

    def _alike(self, nodes: Sequence[Node], wanted: pa.DataType | None) -> list[pa.Array]:
        """Values in the type that they have in common; constants among them are of the type ``wanted``."""
        values = [self.value(node) if wanted is None else self.value_for(node, wanted) for node in nodes]
        return [self.array(value) for value in _alike(values, nodes)]

    def _with_fields(self, node: Call) -> pa.Array:
        struct, *values = node.arguments
        (paths,) = node.options
        found = self.array(self.value(struct))
        for path, value in zip(paths, values, strict=True):
            found = with_field(found, path, self.array(self.value_for(value, field_type(found.type, path))))
        return found

    def _column(self, node: Reference) -> Datum:
        for depth in range(len(node.path), 0, -1):
            name = ".".join(node.path[:depth])
            if name in self._columns:
                return self._inside(self._at(name), node.path[depth:], node.name)
        known = ", ".join(sorted(self._columns))
        raise InputError(f"there is no column {node.name!r}; there are: {known}", field=node.name)

    def _inside(self, found: Datum, path: Sequence[str], name: str) -> Datum:
        for part in path:
            if not pa.types.is_struct(found.type) or found.type.get_field_index(part) < 0:
                raise InputError(f"there is no column {name!r}: {found.type} has no field {part!r}", field=name)
            found = pc.struct_field(found, part)
        return found

    def _at(self, name: str) -> Datum:
        if name not in self._taken:
            column = _plain(self._columns[name])
            is_whole = self._places is None or isinstance(column, pa.Scalar)
            self._taken[name] = column if is_whole else column.take(pa.array(self._places))
        return self._taken[name]

    def _part(self, places: np.ndarray[Any, Any]) -> Frame:
        """The frame of some of its rows, by their numbers here."""
        return Frame(self._columns, len(places), places if self._places is None else self._places[places])

    def _logic(self, node: Call) -> Datum:
        """AND and OR: a part that could fail is asked only for rows that the parts before leave open."""
        joined, settled = (pc.and_kleene, False) if node.function == "and" else (pc.or_kleene, True)
        found = as_boolean(self.value(node.arguments[0]))
        for argument in node.arguments[1:]:
            if is_sure(argument):
                found = joined(found, as_boolean(self.value(argument)))
                continue
            done = pc.fill_null(pc.equal(self.array(found), settled), False)
            found = joined(found, self._where(pc.invert(done), partial(_condition, argument)))
        return found

    def _where(self, mask: pa.Array, compute: Callable[[Frame], Datum]) -> pa.Array:
        """Values computed for the rows of a mask; null for the others."""
        places = np.flatnonzero(np.asarray(mask))
        part = self._part(places)
        values = part.array(compute(part))
        if len(places) == self._rows:
            return values
        order = np.zeros(self._rows, np.int64)
        order[places] = np.arange(len(places))
        return values.take(pa.array(order, mask=~np.asarray(mask)))

    def _coalesce(self, node: Call) -> Datum:
        if all(is_sure(argument) for argument in node.arguments[1:]):
            values = [self.value(argument) for argument in node.arguments]
            return pc.coalesce(*_alike(values, node.arguments))
        first, *rest = node.arguments
        found = self.value(first)
        for argument in rest:
            more = self._where(pc.is_null(self.array(found)), partial(_value, argument))
            found = pc.coalesce(*_alike([found, more], [first, argument]))
        return found

    def _case(self, node: Case) -> Datum:
        if all(is_sure(part) for part in (*node.conditions, *node.results, node.default)):
            values = _alike([self.value(part) for part in (*node.results, node.default)], (*node.results, node.default))
            tests = [self.array(as_boolean(self.value(test))) for test in node.conditions]
            return pc.case_when(pc.make_struct(*tests), *values)
        left = np.arange(self._rows)
        places, values = [], []
        for test, result in zip(node.conditions, node.results, strict=True):
            part = self._part(left)
            chosen = np.asarray(pc.fill_null(part.array(as_boolean(part.value(test))), False))
            places.append(left[chosen])
            taken = self._part(places[-1])
            values.append(taken.array(taken.value(result)))
            left = left[~chosen]
        rest = self._part(left)
        places.append(left)
        values.append(rest.array(rest.value(node.default)))
        order = np.empty(self._rows, np.int64)
        order[np.concatenate(places)] = np.arange(self._rows)
        return pa.concat_arrays(_alike(values, (*node.results, node.default))).take(pa.array(order))


def _value(node: Node, frame: Frame) -> Datum:
    return frame.value(node)


def _condition(node: Node, frame: Frame) -> Datum:
    return as_boolean(frame.value(node))


def _alike(values: Sequence[Datum], nodes: Sequence[Node]) -> list[Datum]:
    """Values in the type that they have in common."""
    type_ = common_type([value.type for value in values], [isinstance(node, Constant) for node in nodes])
    return [convert(value, type_) for value in values]


def _type_of(values: Sequence[pa.Array], wanted: pa.DataType | None) -> pa.DataType:
    return values[0].type if len(values) > 0 else wanted or pa.null()


def _meet_floats(values: Sequence[Datum]) -> bool:
    kinds = {kind_of(value.type) for value in values}
    return FLOAT in kinds and kinds <= NUMBERS


def _plain(column: Datum) -> Datum:
    """A column without dictionary or extension type."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.value if isinstance(column, pa.Scalar) else column.storage
    return pc.cast(column, column.type.value_type) if pa.types.is_dictionary(column.type) else column


def is_sure(node: Node) -> bool:
    """Whether a node has a value for every row: nothing in it can fail for one row and not for others."""
    called = {found.function for found in walk(node) if isinstance(found, Call)} - _PASS_ON
    return all(function in FUNCTIONS and FUNCTIONS[function].sure for function in called)


def _refused(text: str, reason: str) -> InputError:
    return InputError(f"cannot use {_shown(text)!r} as a value: {reason}", value=text)


def _shown(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}..."
