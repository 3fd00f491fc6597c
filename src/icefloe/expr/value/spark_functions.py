"""Functions and operators of SQL values in Spark SQL, with the results of the Arrow kernels in ``functions``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from icefloe.expr.text.spark_sql import quoted, sql_literal
from icefloe.expr.value.nodes import ARRAY, MAP, STRUCT, WITH_FIELDS, Call, Node
from icefloe.expr.value.spark_types import Sql, as_type, condition, converted, spark_type
from icefloe.expr.value.types import (
    DATE,
    DECIMAL,
    FLOAT,
    INTEGER,
    NULL,
    NUMBERS,
    TEXT,
    TIMESTAMP,
    WORKING_DIGITS,
    as_decimal_type,
    kind_of,
)
from icefloe.model.schema.types import STRING

_INTEGRAL_DOUBLE = 2**53  # from here on a double has no fraction
_DATE_UNITS = ("year", "quarter", "month", "week")


class Printer(Protocol):
    """Prints the arguments of a function."""

    def type_of(self, node: Node, wanted: pa.DataType | None = None) -> pa.DataType:
        """The type of a node in Arrow."""
        ...

    def sql(self, node: Node) -> Sql:
        """The text of a node."""
        ...

    def sql_for(self, node: Node, wanted: pa.DataType) -> Sql:
        """The text of a node that is assigned to a column of the type ``wanted``."""
        ...

    def alike(self, nodes: Sequence[Node], wanted: pa.DataType | None = None) -> list[Sql]:
        """The texts of nodes, converted to their common type."""
        ...


Print = Callable[[Printer, Call], Sql]
Construct = Callable[[Printer, Call, pa.DataType | None], Sql]


def _comparison(operator: str) -> Print:
    def print_call(printer: Printer, node: Call) -> Sql:
        left, right = printer.alike(node.arguments)
        if kind_of(left.type) == NULL:
            return Sql(text="true" if operator == "<=>" else "CAST(NULL AS BOOLEAN)", type=pa.bool_())
        return Sql(text=f"({left.text} {operator} {right.text})", type=pa.bool_())

    return print_call


def _in(printer: Printer, node: Call) -> Sql:
    value, *items = printer.alike(node.arguments)
    if kind_of(value.type) == NULL:
        return Sql(text="CAST(NULL AS BOOLEAN)", type=pa.bool_())
    if kind_of(value.type) == FLOAT:  # sets of Spark are hashed, and the two zeros hash apart
        tests = " OR ".join(f"{value.text} = {item.text}" for item in items)
        return Sql(text=f"({tests})", type=pa.bool_())
    return Sql(text=f"({value.text} IN ({', '.join(item.text for item in items)}))", type=pa.bool_())


def _logic(operator: str) -> Print:
    def print_call(printer: Printer, node: Call) -> Sql:
        parts = [condition(printer.sql(argument)) for argument in node.arguments]
        return Sql(text=f"({f' {operator} '.join(parts)})", type=pa.bool_())

    return print_call


def _not(printer: Printer, node: Call) -> Sql:
    return Sql(text=f"(NOT {condition(printer.sql(node.arguments[0]))})", type=pa.bool_())


def _null_test(test: str) -> Print:
    return lambda printer, node: Sql(text=f"({printer.sql(node.arguments[0]).text} {test})", type=pa.bool_())


def _is_nan(printer: Printer, node: Call) -> Sql:
    value = as_type(printer.sql(node.arguments[0]), pa.float64())
    return Sql(text=f"isnan({value.text})", type=pa.bool_())


def _numbers(printer: Printer, node: Call) -> list[Sql]:
    """The arguments in the types in which Arrow computes: floats of one type, decimals, or longs."""
    printed = [printer.sql(argument) for argument in node.arguments]
    kinds = {kind_of(part.type) for part in printed}
    if FLOAT in kinds and kinds <= NUMBERS:
        return printer.alike(node.arguments)
    if FLOAT in kinds:  # beside nulls
        return [part if kind_of(part.type) == FLOAT else converted(part, pa.float64()) for part in printed]
    if DECIMAL not in kinds:
        return [converted(part, pa.int64()) for part in printed]
    return [converted(part, _working_type(part.type)) for part in printed]


def _working_type(type_: pa.DataType) -> pa.DataType:
    """The decimal type in which Arrow computes, as ``working_decimal`` has it."""
    if kind_of(type_) == NULL:
        return pa.decimal128(1, 0)
    decimal = as_decimal_type(type_)
    return pa.decimal128(max(min(decimal.precision, WORKING_DIGITS), decimal.scale), decimal.scale)


def _arithmetic(operator: str) -> Print:
    def print_call(printer: Printer, node: Call) -> Sql:
        left, right = _numbers(printer, node)
        return _result(f"({left.text} {operator} {right.text})", printer.type_of(node))

    return print_call


def _result(text: str, type_: pa.DataType) -> Sql:
    """A number that Spark may compute with other digits; floats and longs it computes in the type of the arguments."""
    return Sql(text=f"CAST({text} AS {spark_type(type_)})" if kind_of(type_) == DECIMAL else text, type=type_)


def _divide(printer: Printer, node: Call) -> Sql:
    left, right = _numbers(printer, node)
    type_ = printer.type_of(node)
    if kind_of(left.type) == INTEGER:
        left, right = (as_type(part, pa.float64()) for part in (left, right))
    text = f"({left.text} / {right.text})"
    return Sql(text=text if type_ == pa.float64() else f"CAST({text} AS {spark_type(type_)})", type=type_)


def _integer_divide(printer: Printer, node: Call) -> Sql:
    left, right = _numbers(printer, node)
    is_float = kind_of(left.type) == FLOAT
    text = f"CAST({left.text} / {right.text} AS BIGINT)" if is_float else f"({left.text} div {right.text})"
    return Sql(text=text, type=pa.int64())


def _double_function(function: str) -> Print:
    def print_call(printer: Printer, node: Call) -> Sql:
        doubles = [as_type(printer.sql(argument), pa.float64()).text for argument in node.arguments]
        return Sql(text=f"{function}({', '.join(doubles)})", type=pa.float64())

    return print_call


def _number_function(function: str) -> Print:
    """``negative`` and ``abs``: integers are longs, other numbers keep their type."""

    def print_call(printer: Printer, node: Call) -> Sql:
        (value,) = _numbers(printer, node)
        return _result(f"{function}({value.text})", printer.type_of(node))

    return print_call


def _to_integer(function: str) -> Print:
    """``ceil`` and ``floor``; Spark's answer for doubles beyond a long would be the largest long."""

    def print_call(printer: Printer, node: Call) -> Sql:
        (value,) = _numbers(printer, node)
        text, kind = value.text, kind_of(value.type)
        if kind == INTEGER:
            return value
        if kind == DECIMAL:
            return _result(f"{function}({text})", printer.type_of(node))
        double = as_type(value, pa.float64()).text
        rounded = f"CASE WHEN abs({double}) < {_INTEGRAL_DOUBLE}D THEN {function}({double})"
        return Sql(text=f"{rounded} ELSE CAST({double} AS BIGINT) END", type=pa.int64())

    return print_call


def _round(printer: Printer, node: Call) -> Sql:
    (value,) = _numbers(printer, node)
    (digits,) = node.options
    if kind_of(value.type) != FLOAT:
        return _result(f"round({value.text}, {digits})", printer.type_of(node))
    # Arrow rounds the scaled number, Spark the decimal text of a number: 1.005 would become 1.01.
    name = spark_type(value.type)
    scale = f"CAST('1e{abs(digits)}' AS {name})"
    scaled = f"({value.text} * {scale})" if digits >= 0 else f"CAST({value.text} / {scale} AS {name})"
    back = "/" if digits >= 0 else "*"
    rounded = f"CAST(round({scaled}, 0) {back} {scale} AS {name})"
    text = f"CASE WHEN round({scaled}, 0) = {scaled} THEN {value.text} ELSE {rounded} END"
    return Sql(text=text, type=value.type)


def _alike_function(function: str) -> Print:
    def print_call(printer: Printer, node: Call) -> Sql:
        parts = printer.alike(node.arguments)
        if kind_of(parts[0].type) == NULL:
            return Sql(text="NULL", type=parts[0].type)
        return Sql(text=f"{function}({', '.join(part.text for part in parts)})", type=parts[0].type)

    return print_call


def _cast(printer: Printer, node: Call) -> Sql:
    return _cast_to(printer.sql(node.arguments[0]), node.options[0])


def _cast_to(value: Sql, type_: pa.DataType) -> Sql:
    source, target = kind_of(value.type), kind_of(type_)
    text = f"CAST({value.text} AS {spark_type(type_)})"
    if target == TEXT and source == TIMESTAMP and value.type.tz is not None:
        text = f"concat({text}, 'Z')"
    return Sql(text=text, type=type_)


def _string(text: str) -> str:
    return sql_literal(text, STRING)


def _text_function(template: str) -> Print:
    """A function of one text; the template has the text as ``{0}`` and the options, as literals, after it."""

    def print_call(printer: Printer, node: Call) -> Sql:
        value = as_type(printer.sql(node.arguments[0]), pa.string())
        options = [_string(option) if isinstance(option, str) else str(option) for option in node.options]
        return Sql(text=template.format(value.text, *options), type=printer.type_of(node))

    return print_call


def _length(printer: Printer, node: Call) -> Sql:
    value = printer.sql(node.arguments[0])
    if kind_of(value.type) == NULL:
        value = as_type(value, pa.string())
    return Sql(text=f"CAST(length({value.text}) AS BIGINT)", type=pa.int64())


def _substring(printer: Printer, node: Call) -> Sql:
    value = as_type(printer.sql(node.arguments[0]), pa.string())
    options = ", ".join(str(option) for option in node.options if option is not None)
    return Sql(text=f"substring({value.text}, {options})", type=printer.type_of(node))


def _like(printer: Printer, node: Call) -> Sql:
    value = as_type(printer.sql(node.arguments[0]), pa.string())
    pattern, any_case = node.options
    return Sql(text=f"({value.text} {'ILIKE' if any_case else 'LIKE'} {_string(pattern)})", type=pa.bool_())


def _text_test(function: str) -> Print:
    def print_call(printer: Printer, node: Call) -> Sql:
        (searched,) = node.options
        if searched is None:
            return Sql(text="CAST(NULL AS BOOLEAN)", type=pa.bool_())
        value = as_type(printer.sql(node.arguments[0]), pa.string())
        return Sql(text=f"{function}({value.text}, {_string(searched)})", type=pa.bool_())

    return print_call


def _concat(printer: Printer, node: Call) -> Sql:
    texts = [_cast_to(printer.sql(argument), pa.string()).text for argument in node.arguments]
    return Sql(text=f"concat({', '.join(texts)})", type=pa.string())


def _field_of_time(function: str) -> Print:
    def print_call(printer: Printer, node: Call) -> Sql:
        value = printer.sql(node.arguments[0])
        if kind_of(value.type) == NULL:
            value = as_type(value, pa.timestamp("us"))
        return Sql(text=f"CAST({function}({value.text}) AS BIGINT)", type=pa.int64())

    return print_call


def _date_trunc(printer: Printer, node: Call) -> Sql:
    value = printer.sql(node.arguments[0])
    (unit,) = node.options
    if kind_of(value.type) == DATE:
        return Sql(text=f"trunc({value.text}, '{unit}')" if unit in _DATE_UNITS else value.text, type=value.type)
    type_ = printer.type_of(node)
    return as_type(Sql(text=f"date_trunc('{unit}', {value.text})", type=pa.timestamp("us", "UTC")), type_)


def _struct(printer: Printer, node: Call, wanted: pa.DataType | None) -> Sql:
    (names,) = node.options
    is_wanted = wanted is not None and pa.types.is_struct(wanted)
    type_ = printer.type_of(node, wanted if is_wanted else None)  # refuses other fields than those wanted
    values = [
        printer.sql_for(argument, wanted.field(name).type) if is_wanted else printer.sql(argument)  # type: ignore[union-attr]
        for name, argument in zip(names, node.arguments, strict=True)
    ]
    return Sql(text=_named_struct(names, [value.text for value in values]), type=type_)


def _named_struct(names: Sequence[str], values: Sequence[str]) -> str:
    parts = [f"{_string(name)}, {value}" for name, value in zip(names, values, strict=True)]
    return f"named_struct({', '.join(parts)})"


def _array(printer: Printer, node: Call, wanted: pa.DataType | None) -> Sql:
    element = wanted.value_type if wanted is not None and pa.types.is_list(wanted) else None
    type_ = printer.type_of(node, wanted if element is not None else None)
    values = printer.alike(node.arguments, element)
    text = f"array({', '.join(value.text for value in values)})"
    return Sql(text=text if len(values) > 0 else f"CAST({text} AS {spark_type(type_)})", type=type_)


def _map(printer: Printer, node: Call, wanted: pa.DataType | None) -> Sql:
    is_wanted = wanted is not None and pa.types.is_map(wanted)
    key, item = (wanted.key_type, wanted.item_type) if is_wanted else (None, None)  # type: ignore[union-attr]
    type_ = printer.type_of(node, wanted if is_wanted else None)
    half = len(node.arguments) // 2
    keys, values = printer.alike(node.arguments[:half], key), printer.alike(node.arguments[half:], item)
    text = f"map({', '.join(f'{k.text}, {v.text}' for k, v in zip(keys, values, strict=True))})"
    return Sql(text=text if half > 0 else f"CAST({text} AS {spark_type(type_)})", type=type_)


def _with_fields(printer: Printer, node: Call) -> Sql:
    struct, *values = node.arguments
    (paths,) = node.options
    value = printer.sql(struct)
    assigned: dict[tuple[str, ...], Node] = dict(zip(paths, values, strict=True))
    return Sql(text=_with_assigned(printer, value.text, value.type, assigned), type=printer.type_of(node))


def _with_assigned(printer: Printer, text: str, type_: pa.DataType, assigned: Mapping[tuple[str, ...], Node]) -> str:
    """A struct built again from its fields, some of which are assigned; a null struct has null fields."""
    names = [type_.field(number).name for number in range(type_.num_fields)]
    values = []
    for name in names:
        inner = {path[1:]: node for path, node in assigned.items() if path[0] == name}
        field, field_type = f"{text}.{quoted(name)}", type_.field(name).type
        if () in inner:
            values.append(printer.sql_for(inner[()], field_type).text)
        else:
            values.append(field if len(inner) == 0 else _with_assigned(printer, field, field_type, inner))
    return _named_struct(names, values)


CONSTRUCTORS: Mapping[str, Construct] = {STRUCT: _struct, ARRAY: _array, MAP: _map}
CALLS: Mapping[str, Print] = {
    "=": _comparison("="),
    "!=": _comparison("!="),
    "<": _comparison("<"),
    ">": _comparison(">"),
    "<=": _comparison("<="),
    ">=": _comparison(">="),
    "<=>": _comparison("<=>"),
    "in": _in,
    "is null": _null_test("IS NULL"),
    "is not null": _null_test("IS NOT NULL"),
    "isnan": _is_nan,
    "not": _not,
    "and": _logic("AND"),
    "or": _logic("OR"),
    "coalesce": _alike_function("coalesce"),
    "+": _arithmetic("+"),
    "-": _arithmetic("-"),
    "*": _arithmetic("*"),
    "/": _divide,
    "div": _integer_divide,
    "mod": _arithmetic("%"),
    "power": _double_function("power"),
    "sqrt": _double_function("sqrt"),
    "negative": _number_function("negative"),
    "abs": _number_function("abs"),
    "ceil": _to_integer("ceil"),
    "floor": _to_integer("floor"),
    "round": _round,
    "greatest": _alike_function("greatest"),
    "least": _alike_function("least"),
    "cast": _cast,
    "upper": _text_function("upper({0})"),
    "lower": _text_function("lower({0})"),
    "trim": _text_function("trim(BOTH {1} FROM {0})"),
    "ltrim": _text_function("trim(LEADING {1} FROM {0})"),
    "rtrim": _text_function("trim(TRAILING {1} FROM {0})"),
    "length": _length,
    "substring": _substring,
    "replace": _text_function("replace({0}, {1}, {2})"),
    "like": _like,
    "concat": _concat,
    "startswith": _text_test("startswith"),
    "endswith": _text_test("endswith"),
    "contains": _text_test("contains"),
    "year": _field_of_time("year"),
    "quarter": _field_of_time("quarter"),
    "month": _field_of_time("month"),
    "day": _field_of_time("day"),
    "hour": _field_of_time("hour"),
    "minute": _field_of_time("minute"),
    "second": _field_of_time("second"),
    "date_trunc": _date_trunc,
    WITH_FIELDS: _with_fields,
}
