"""SQL value expressions, evaluated on Arrow columns: the values that UPDATE sets and that MERGE tests and inserts.

A text is parsed once and evaluated batch by batch. Logic has three values, as in SQL. A part that may fail, such as a
division, is computed only for the rows that need it: the rows of its branch of a CASE or IF, and the rows that the
earlier arguments of COALESCE, AND and OR do not decide.

>>> total = parse_value("CASE WHEN n = 0 THEN NULL ELSE price / n END")
>>> evaluate_value(total, {"price": pa.array([3.0, 1.0]), "n": pa.array([2, 0])}, 2).to_pylist()
[1.5, None]
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.env import SYSTEM, Env
from icefloe.errors import IcefloeError, InputError, UnsupportedError
from icefloe.expr.value.functions import FUNCTIONS, as_boolean
from icefloe.expr.value.nested_values import check_map_keys, field_type, lists_of, maps_of, with_field
from icefloe.expr.value.nodes import (
    ARRAY,
    MAP,
    STRUCT,
    WITH_FIELDS,
    Call,
    Case,
    Constant,
    Node,
    Reference,
    SparkText,
    walk,
)
from icefloe.expr.value.value_types import FLOAT, NUMBERS, common_type, convert, kind_of
from icefloe.lazy import LazyModule

if TYPE_CHECKING:
    from icefloe.expr.text import sql_tree
    from icefloe.expr.value import parser
else:  # they load sqlglot
    sql_tree = LazyModule("icefloe.expr.text.sql_tree")
    parser = LazyModule("icefloe.expr.value.parser")

Datum = Any  # an Arrow array or scalar
_CONSTRUCTORS = {STRUCT: pa.types.is_struct, ARRAY: pa.types.is_list, MAP: pa.types.is_map}
_NEVER_FAIL = frozenset({"and", "or", "coalesce", ARRAY, STRUCT, WITH_FIELDS})  # unless one of their arguments fails


@dataclass(frozen=True, slots=True)
class Value:
    """A value expression: its text and its parsed form."""

    text: str
    node: Node

    def __str__(self) -> str:
        return self.text


def parse_value(text: str | Value, *, env: Env = SYSTEM) -> Value:
    """Parse the text of a value; a value is returned unchanged.

    >>> sorted(columns_of(parse_value("upper(s.note) || t.id")))
    ['s.note', 't.id']
    """
    if isinstance(text, Value):
        return text
    text = value_text(text)
    value_parser = parser.ValueParser(now=dt.datetime.fromtimestamp(env.now_ms() / 1000, dt.UTC))
    try:
        return Value(text, value_parser.node(sql_tree.sql_tree(text)))
    except IcefloeError:
        raise
    except sql_tree.NOT_SQL as error:
        raise _refused(text, "it is not a value in SQL") from error
    except RecursionError as error:
        raise _refused(text, "it is nested too deeply") from error
    except MemoryError:
        raise
    except (ValueError, ArithmeticError, pa.ArrowException) as error:
        raise _refused(text, str(error)) from error


def value_text(value: str | Value) -> str:
    """The text of a value; InputError if it is none."""
    if not isinstance(value, (str, Value)):
        kind = type(value).__name__
        raise InputError(f"a value is SQL text, not {kind}; write text as \"'text'\" and numbers as '5'")
    return str(value)


def columns_of(value: Value) -> frozenset[str]:
    """The dotted names of the columns that a value reads, as written in the text.

    >>> columns_of(parse_value("t.id + 1"))
    frozenset({'t.id'})
    """
    return frozenset(node.name for node in walk(value.node) if isinstance(node, Reference))


def evaluate_value(
    value: Value, columns: Mapping[str, Any], rows: int, *, wanted: pa.DataType | None = None
) -> pa.Array | pa.ChunkedArray:
    """The value for every row. ``columns`` has arrays by name; a scalar is a column with one value in all rows.

    ``wanted`` is the type of the column that the value is assigned to: a constant takes this type, other values keep
    their own.

    >>> evaluate_value(parse_value("id % 2 = 0"), {"id": pa.array([1, 2, None])}, 3).to_pylist()
    [False, True, None]
    """
    try:
        if any(isinstance(column, pa.ChunkedArray) for column in columns.values()):
            return _by_chunk(value.node, columns, wanted)
        return _evaluated(value.node, columns, rows, wanted)
    except IcefloeError:
        raise
    except MemoryError:
        raise
    except (ValueError, ArithmeticError, pa.ArrowException) as error:
        raise InputError(f"cannot compute {_shown(value.text)!r}: {error}", value=value.text) from error


def value_type(value: Value, columns: Mapping[str, pa.DataType], *, wanted: pa.DataType | None = None) -> pa.DataType:
    """The type of a value over columns of these types.

    >>> value_type(parse_value("n / 2"), {"n": pa.int32()})
    DataType(double)
    """
    return evaluate_value(value, {name: pa.nulls(0, type_) for name, type_ in columns.items()}, 0, wanted=wanted).type


def _by_chunk(node: Node, columns: Mapping[str, Any], wanted: pa.DataType | None) -> pa.ChunkedArray:
    arrays = {name: column for name, column in columns.items() if not isinstance(column, pa.Scalar)}
    batches = pa.table(list(arrays.values()), names=list(arrays)).to_batches()
    if len(batches) == 0:
        batches = [pa.record_batch([pa.array([], column.type) for column in arrays.values()], names=list(arrays))]
    scalars = {name: column for name, column in columns.items() if isinstance(column, pa.Scalar)}
    return pa.chunked_array(
        [
            _evaluated(node, {**scalars, **dict(zip(arrays, batch.columns, strict=True))}, batch.num_rows, wanted)
            for batch in batches
        ]
    )


def _evaluated(node: Node, columns: Mapping[str, Any], rows: int, wanted: pa.DataType | None) -> pa.Array:
    frame = Frame(columns, rows)
    return frame.array(frame.value(node) if wanted is None else frame.value_for(node, wanted))


class Frame:
    """The rows for which nodes are evaluated: all rows of a batch, or those with the numbers ``selected``."""

    def __init__(self, columns: Mapping[str, Any], rows: int, selected: np.ndarray[Any, Any] | None = None) -> None:
        self._columns = columns
        self._rows = rows
        self._selected = selected
        self._read: dict[str, Datum] = {}

    def value(self, node: Node) -> Datum:
        """The value of a node: an array of all rows, or a scalar if it is the same for all."""
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
            case Call(function) if function in _CONSTRUCTORS:
                return self._construct(node)
            case Call(function) if function == WITH_FIELDS:
                return self._with_fields(node)
            case Call():
                return self._call(node)
            case SparkText():
                raise _on_spark_only(node.text)

    def value_for(self, node: Node, wanted: pa.DataType) -> Datum:
        """The value of a node that is assigned to a column of the type ``wanted``: a constant takes this type."""
        if isinstance(node, Call) and node.function in _CONSTRUCTORS:
            return self._construct(node, wanted)
        value = self.value(node)
        return convert(value, common_type([wanted, value.type], [False, True])) if isinstance(node, Constant) else value

    def array(self, value: Datum) -> pa.Array:
        """A value as an array of all rows."""
        return pa.repeat(value, self._rows) if isinstance(value, pa.Scalar) else value

    def _call(self, node: Call) -> Datum:
        function = FUNCTIONS[node.function]
        values = [self.value(argument) for argument in node.arguments]
        if self._rows == 0:  # kernels fail for scalars even if there is no row
            values = [self.array(value) for value in values]
        if function.common_type or (function.common_float and _are_numbers_with_float(values)):
            values = _converted(values, node.arguments)
        return function.compute(*values, *node.options)

    def _construct(self, node: Call, wanted: pa.DataType | None = None) -> pa.Array:
        """A struct, list or map, assigned to a column of the type ``wanted`` if that is of its kind."""
        if wanted is not None and not _CONSTRUCTORS[node.function](wanted):
            wanted = None
        if node.function == STRUCT:
            return self._struct(node, wanted)
        if node.function == ARRAY:
            return self._list(node.arguments, None if wanted is None else wanted.value_type)
        return self._map(node, *((None, None) if wanted is None else (wanted.key_type, wanted.item_type)))

    def _map(self, node: Call, key: pa.DataType | None, item: pa.DataType | None) -> pa.Array:
        half = len(node.arguments) // 2
        keys = self._arrays(node.arguments[:half], key)
        check_map_keys(keys)
        values = self._list(node.arguments[half:], item)
        return maps_of(lists_of(keys, self._rows, _type_of(keys, key)), values)

    def _struct(self, node: Call, wanted: pa.StructType | None) -> pa.Array:
        (names,) = node.options
        if wanted is None:
            values = [self.value(argument) for argument in node.arguments]
        elif set(names) != (fields := {field.name for field in wanted}):
            raise ValueError(f"the struct has the fields {', '.join(names)}, the column {', '.join(sorted(fields))}")
        else:
            arguments = zip(names, node.arguments, strict=True)
            values = [self.value_for(argument, wanted.field(name).type) for name, argument in arguments]
        return pa.StructArray.from_arrays([self.array(value) for value in values], names=list(names))

    def _list(self, nodes: Sequence[Node], wanted: pa.DataType | None) -> pa.ListArray:
        values = self._arrays(nodes, wanted)
        return lists_of(values, self._rows, _type_of(values, wanted))

    def _arrays(self, nodes: Sequence[Node], wanted: pa.DataType | None) -> list[pa.Array]:
        """Values in their common type; constants among them take the type ``wanted``."""
        values = [self.value(node) if wanted is None else self.value_for(node, wanted) for node in nodes]
        return [self.array(value) for value in _converted(values, nodes)]

    def _with_fields(self, node: Call) -> pa.Array:
        struct, *values = node.arguments
        (paths,) = node.options
        result = self.array(self.value(struct))
        for path, value in zip(paths, values, strict=True):
            result = with_field(result, path, self.array(self.value_for(value, field_type(result.type, path))))
        return result

    def _column(self, node: Reference) -> Datum:
        for depth in range(len(node.path), 0, -1):
            name = ".".join(node.path[:depth])
            if name in self._columns:
                return _field(self._column_at(name), node.path[depth:], node.name)
        known = ", ".join(sorted(self._columns))
        raise InputError(f"there is no column {node.name!r}; there are: {known}", field=node.name)

    def _column_at(self, name: str) -> Datum:
        if name not in self._read:
            column = _plain(self._columns[name])
            is_whole = self._selected is None or isinstance(column, pa.Scalar)
            self._read[name] = column if is_whole else column.take(pa.array(self._selected))
        return self._read[name]

    def _part(self, numbers: np.ndarray[Any, Any]) -> Frame:
        """The frame of some of the rows, by their numbers in this frame."""
        return Frame(self._columns, len(numbers), numbers if self._selected is None else self._selected[numbers])

    def _logic(self, node: Call) -> Datum:
        """AND and OR: an argument that may fail is evaluated only for rows that the arguments before do not decide."""
        combine, deciding = (pc.and_kleene, False) if node.function == "and" else (pc.or_kleene, True)
        result = as_boolean(self.value(node.arguments[0]))
        for argument in node.arguments[1:]:
            if never_fails(argument):
                result = combine(result, as_boolean(self.value(argument)))
                continue
            is_decided = pc.fill_null(pc.equal(self.array(result), deciding), False)
            result = combine(result, self._where(pc.invert(is_decided), partial(_condition, argument)))
        return result

    def _where(self, mask: pa.Array, compute: Callable[[Frame], Datum]) -> pa.Array:
        """Values computed for the rows of a mask; null for the others."""
        numbers = np.flatnonzero(np.asarray(mask))
        part = self._part(numbers)
        values = part.array(compute(part))
        if len(numbers) == self._rows:
            return values
        order = np.zeros(self._rows, np.int64)
        order[numbers] = np.arange(len(numbers))
        return values.take(pa.array(order, mask=~np.asarray(mask)))

    def _coalesce(self, node: Call) -> Datum:
        if all(never_fails(argument) for argument in node.arguments[1:]):
            values = [self.value(argument) for argument in node.arguments]
            return pc.coalesce(*_converted(values, node.arguments))
        first, *rest = node.arguments
        result = self.value(first)
        for argument in rest:
            more = self._where(pc.is_null(self.array(result)), partial(_value, argument))
            result = pc.coalesce(*_converted([result, more], [first, argument]))
        return result

    def _case(self, node: Case) -> Datum:
        outcomes = (*node.results, node.default)
        if all(never_fails(part) for part in (*node.conditions, *outcomes)):
            values = _converted([self.value(part) for part in outcomes], outcomes)
            tests = [self.array(as_boolean(self.value(test))) for test in node.conditions]
            return pc.case_when(pc.make_struct(*tests), *values)
        undecided = np.arange(self._rows)
        numbers, values = [], []
        for test, result in zip(node.conditions, node.results, strict=True):
            part = self._part(undecided)
            is_true = np.asarray(pc.fill_null(part.array(as_boolean(part.value(test))), False))
            numbers.append(undecided[is_true])
            branch = self._part(numbers[-1])
            values.append(branch.array(branch.value(result)))
            undecided = undecided[~is_true]
        rest = self._part(undecided)
        numbers.append(undecided)
        values.append(rest.array(rest.value(node.default)))
        order = np.empty(self._rows, np.int64)
        order[np.concatenate(numbers)] = np.arange(self._rows)
        return pa.concat_arrays(_converted(values, outcomes)).take(pa.array(order))


def _value(node: Node, frame: Frame) -> Datum:
    return frame.value(node)


def _condition(node: Node, frame: Frame) -> Datum:
    return as_boolean(frame.value(node))


def _field(value: Datum, path: Sequence[str], name: str) -> Datum:
    """A field inside structs; InputError, which calls the column ``name``, if there is none."""
    for part in path:
        if not pa.types.is_struct(value.type) or value.type.get_field_index(part) < 0:
            raise InputError(f"there is no column {name!r}: {value.type} has no field {part!r}", field=name)
        value = pc.struct_field(value, part)
    return value


def _converted(values: Sequence[Datum], nodes: Sequence[Node]) -> list[Datum]:
    """Values in their common type; ``nodes`` are where they come from."""
    type_ = common_type([value.type for value in values], [isinstance(node, Constant) for node in nodes])
    return [convert(value, type_) for value in values]


def _type_of(values: Sequence[pa.Array], wanted: pa.DataType | None) -> pa.DataType:
    return values[0].type if len(values) > 0 else wanted or pa.null()


def _are_numbers_with_float(values: Sequence[Datum]) -> bool:
    kinds = {kind_of(value.type) for value in values}
    return FLOAT in kinds and kinds <= NUMBERS


def _plain(column: Datum) -> Datum:
    """A column without a dictionary or extension type."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.value if isinstance(column, pa.Scalar) else column.storage
    return pc.cast(column, column.type.value_type) if pa.types.is_dictionary(column.type) else column


def never_fails(node: Node) -> bool:
    """Whether a node has a value for every row: no part of it can fail for one row and not for others."""
    functions = {part.function for part in walk(node) if isinstance(part, Call)} - _NEVER_FAIL
    return all(function in FUNCTIONS and FUNCTIONS[function].never_fails for function in functions)


def _on_spark_only(text: str) -> UnsupportedError:
    return UnsupportedError(f"{_shown(text)!r} is evaluated on Spark only", feature="spark sql")


def _refused(text: str, reason: str) -> InputError:
    return InputError(f"cannot use {_shown(text)!r} as a value: {reason}", value=text)


def _shown(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}..."
