"""Builds the nodes of a SQL value expression from the syntax tree of sqlglot.

A function that is not in the tables here is refused by name. Constants are parsed as in filters; a timestamp without an
offset has no time zone.
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from sqlglot import exp

from icefloe.errors import UnsupportedError
from icefloe.expr.text.sql_tree import literal, sql_text
from icefloe.expr.value.nodes import ARRAY, MAP, NULL, STRUCT, Call, Case, Constant, Node, Reference
from icefloe.expr.value.value_types import MAX_DIGITS, TEXT, cast_value, constant_scalar, kind_of
from icefloe.expr.value.value_types import NULL as KIND_NULL

MAX_DEPTH = 150
_KIND = exp.DataType.Type
_CAST_TYPES = {
    _KIND.BOOLEAN: pa.bool_(),
    _KIND.TINYINT: pa.int8(),
    _KIND.SMALLINT: pa.int16(),
    _KIND.INT: pa.int32(),
    _KIND.BIGINT: pa.int64(),
    _KIND.FLOAT: pa.float32(),
    _KIND.DOUBLE: pa.float64(),
    _KIND.TEXT: pa.string(),
    _KIND.VARCHAR: pa.string(),
    _KIND.BINARY: pa.binary(),
    _KIND.DATE: pa.date32(),
    _KIND.TIMESTAMP: pa.timestamp("us", "UTC"),
    _KIND.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    _KIND.TIMESTAMPLTZ: pa.timestamp("us", "UTC"),
    _KIND.TIMESTAMPNTZ: pa.timestamp("us"),
}
_CALLS: dict[Any, str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "mod",
    exp.IntDiv: "div",
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.Not: "not",
    exp.Neg: "negative",
    exp.Upper: "upper",
    exp.Lower: "lower",
    exp.Length: "length",
    exp.Abs: "abs",
    exp.Ceil: "ceil",
    exp.Floor: "floor",
    exp.Pow: "power",
    exp.Sqrt: "sqrt",
    exp.Greatest: "greatest",
    exp.Least: "least",
    exp.Concat: "concat",
    exp.DPipe: "concat",
    exp.Coalesce: "coalesce",
    exp.Year: "year",
    exp.Quarter: "quarter",
    exp.Month: "month",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
    exp.IsNan: "isnan",
}
_NAMED = {"isnull": "is null", "isnotnull": "is not null"}  # functions that sqlglot does not know
_FLAT = (exp.And, exp.Or, exp.DPipe)
_TRIMS = {"": "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")
_UNIT_NAMES = {"yyyy": "year", "yy": "year", "mon": "month", "mm": "month", "dd": "day"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueParser:
    """Builds the nodes of one statement; ``now`` is the value of ``current_timestamp`` in all of it."""

    now: dt.datetime

    def node(self, tree: Any, depth: int = 0) -> Node:
        """The node of a syntax tree; ValueError if it is no value, UnsupportedError if a function is not supported."""
        if depth > MAX_DEPTH:
            raise ValueError("it is nested too deeply")
        if isinstance(tree, (exp.Paren, exp.TsOrDsToDate)):  # sqlglot wraps the argument of year in the second
            return self.node(tree.this, depth + 1)
        if (constant := _constant(tree)) is not None:
            return constant
        if (special := _SPECIAL.get(type(tree))) is not None:
            return special(self, tree, depth + 1)
        if isinstance(tree, exp.Anonymous) and tree.name.lower() in _NAMED and len(tree.expressions) == 1:
            return Call(_NAMED[tree.name.lower()], self.nodes(tree.expressions, depth))
        function = _CALLS.get(type(tree))
        if function is None:
            raise _unsupported(tree)
        parts = tree.flatten(unnest=False) if isinstance(tree, _FLAT) else tree.iter_expressions()
        return Call(function, self.nodes(parts, depth))

    def nodes(self, trees: Any, depth: int) -> tuple[Node, ...]:
        """The nodes of several trees."""
        return tuple(self.node(tree, depth + 1) for tree in trees)


def _unsupported(tree: Any) -> UnsupportedError:
    if isinstance(tree, exp.Anonymous):
        name = f"function {tree.name}"
    elif isinstance(tree, exp.Func):
        name = f"function {tree.sql_name().lower()}"
    else:
        name = f"{type(tree).__name__.upper()}"
    return UnsupportedError(f"{name} is not supported in a value: {sql_text(tree)}", feature=name)


def _constant(tree: Any) -> Constant | None:
    if isinstance(tree, exp.Concat) or (isinstance(tree, exp.Cast) and tree.args.get("safe") is True):
        return None
    try:
        parsed = literal(tree, lambda moment: moment)
    except (ValueError, ArithmeticError):
        return None
    value = constant_scalar(parsed)
    if isinstance(tree, exp.Cast) and isinstance(parsed, (int, float, decimal.Decimal)):
        value = cast_value(value, _cast_type(tree))
    return Constant(value)


def _cast_type(tree: Any) -> pa.DataType:
    to = tree.to
    if to.this == _KIND.DECIMAL:
        parameters = [int(parameter.this.this) for parameter in to.expressions]
        precision, scale = (*parameters, *(10, 0)[len(parameters) :])
        if not (1 <= precision <= MAX_DIGITS and 0 <= scale <= precision):
            raise ValueError(f"decimal({precision}, {scale}) is not a valid type")
        return pa.decimal128(precision, scale)
    type_ = _CAST_TYPES.get(to.this)
    if type_ is None:
        raise UnsupportedError(f"a cast to {sql_text(to)} is not supported in a value", feature="cast")
    return type_


def _reference(_: ValueParser, tree: Any, depth: int) -> Node:
    names: list[str] = []
    while isinstance(tree, exp.Dot):
        names.append(_identifier(tree.expression, tree))
        tree = tree.this
    if not isinstance(tree, exp.Column):
        raise _unsupported(tree)
    return Reference((*(_identifier(part, tree) for part in tree.parts), *reversed(names)))


def _identifier(part: Any, tree: Any) -> str:
    if not isinstance(part, exp.Identifier):
        raise _unsupported(part if isinstance(part, exp.Func) else tree)
    return str(part.name)


def _cast(parser: ValueParser, tree: Any, depth: int) -> Node:
    if tree.args.get("safe") is True:
        raise UnsupportedError("function try_cast is not supported in a value; use cast", feature="try_cast")
    return Call("cast", (parser.node(tree.this, depth),), (_cast_type(tree),))


def _case(parser: ValueParser, tree: Any, depth: int) -> Node:
    subject = tree.args.get("this")
    branches = [(branch.this, branch.args["true"]) for branch in tree.args["ifs"]]
    tests = [parser.node(test, depth) for test, _ in branches]
    if subject is not None:
        tested = parser.node(subject, depth)
        tests = [Call("=", (tested, test)) for test in tests]
    return Case(
        tuple(tests),
        parser.nodes((result for _, result in branches), depth),
        _default(parser, tree, "default", depth),
    )


def _if(parser: ValueParser, tree: Any, depth: int) -> Node:
    test, result = parser.node(tree.this, depth), parser.node(tree.args["true"], depth)
    return Case((test,), (result,), _default(parser, tree, "false", depth))


def _default(parser: ValueParser, tree: Any, part: str, depth: int) -> Node:
    argument = tree.args.get(part)
    return NULL if argument is None else parser.node(argument, depth)


def _nullif(parser: ValueParser, tree: Any, depth: int) -> Node:
    value, other = parser.node(tree.this, depth), parser.node(tree.expression, depth)
    return Case((Call("=", (value, other)),), (NULL,), value)


def _is(parser: ValueParser, tree: Any, depth: int) -> Node:
    value = parser.node(tree.this, depth)
    match tree.expression:
        case exp.Null():
            return Call("is null", (value,))
        case exp.Boolean(this=wanted):
            return Call("<=>", (value, Constant(pa.scalar(bool(wanted)))))
        case _:
            raise ValueError("IS takes NULL, TRUE or FALSE")


def _in(parser: ValueParser, tree: Any, depth: int) -> Node:
    if any(tree.args.get(part) is not None for part in ("query", "unnest", "field")):
        raise UnsupportedError("IN takes a list of values, not a query", feature="subquery")
    return Call("in", parser.nodes((tree.this, *tree.expressions), depth))


def _between(parser: ValueParser, tree: Any, depth: int) -> Node:
    if tree.args.get("symmetric") is not None:
        raise UnsupportedError("BETWEEN SYMMETRIC is not supported in a value", feature="between symmetric")
    value, low, high = parser.nodes((tree.this, tree.args["low"], tree.args["high"]), depth)
    return Call("and", (Call(">=", (value, low)), Call("<=", (value, high))))


def _like(parser: ValueParser, tree: Any, depth: int) -> Node:
    pattern = _constant_option(tree.expression, str, "the pattern of LIKE")
    call = Call("like", (parser.node(tree.this, depth),), (pattern, isinstance(tree, exp.ILike)))
    return Call("not", (call,)) if tree.args.get("negate") else call


def _escaped(parser: ValueParser, tree: Any, depth: int) -> Node:
    """LIKE with an escape character other than the backslash."""
    like, escape = tree.this, _constant_option(tree.expression, str, "the character of ESCAPE")
    pattern = _constant_option(like.expression, str, "the pattern of LIKE")
    if len(escape) != 1:
        raise ValueError("ESCAPE takes one character")
    if escape != "\\":
        pattern = pattern.replace("\\", "\\\\")
        pattern = re.sub(re.escape(escape) + "(.)", r"\\\1", pattern, flags=re.DOTALL)
    like = like.copy()
    like.set("expression", exp.Literal.string(pattern))
    return _like(parser, like, depth)


def _substring(parser: ValueParser, tree: Any, depth: int) -> Node:
    start = 1 if tree.args.get("start") is None else _constant_option(tree.args["start"], int, "the start of substring")
    length = tree.args.get("length")
    options = (start, None if length is None else _constant_option(length, int, "the length of substring"))
    return Call("substring", (parser.node(tree.this, depth),), options)


def _replace(parser: ValueParser, tree: Any, depth: int) -> Node:
    replacement = tree.args.get("replacement")
    options = (
        _constant_option(tree.expression, str, "the text that replace searches"),
        "" if replacement is None else _constant_option(replacement, str, "the text that replace inserts"),
    )
    return Call("replace", (parser.node(tree.this, depth),), options)


def _trim(parser: ValueParser, tree: Any, depth: int) -> Node:
    characters = (
        " " if tree.expression is None else _constant_option(tree.expression, str, "the characters that trim removes")
    )
    function = _TRIMS[str(tree.args.get("position") or "").upper()]
    return Call(function, (parser.node(tree.this, depth),), (characters,))


def _text_test(function: str, parser: ValueParser, tree: Any, depth: int) -> Node:
    """``startswith``, ``endswith`` and ``contains``: the text to look for is an option, null included."""
    searched = _constant(tree.expression)
    if searched is None:
        raise ValueError("what a text is tested for must be a constant")
    if kind_of(searched.value.type) not in (TEXT, KIND_NULL):
        raise ValueError(f"{searched.value.type} is not text; cast it")
    return Call(function, (parser.node(tree.this, depth),), (searched.value.as_py(),))


def _round(parser: ValueParser, tree: Any, depth: int) -> Node:
    decimals = tree.args.get("decimals")
    digits = 0 if decimals is None else _constant_option(decimals, int, "the digits of round")
    return Call("round", (parser.node(tree.this, depth),), (digits,))


def _date_trunc(parser: ValueParser, tree: Any, depth: int) -> Node:
    unit = str(tree.args["unit"].name).lower()
    unit = _UNIT_NAMES.get(unit, unit)
    if unit not in _UNITS:
        raise ValueError(f"date_trunc takes one of {', '.join(_UNITS)}, not {unit!r}")
    return Call("date_trunc", (parser.node(tree.this, depth),), (unit,))


def _struct(parser: ValueParser, tree: Any, depth: int) -> Node:
    """``struct`` and ``named_struct``; sqlglot names the fields of the first."""
    names = tuple(str(part.this.name) for part in tree.expressions)
    if len(names) == 0 or len(set(names)) < len(names):
        raise ValueError("a struct has fields of different names: named_struct('a', 1, 'b', 2)")
    return Call(STRUCT, parser.nodes((part.expression for part in tree.expressions), depth), (names,))


def _array(parser: ValueParser, tree: Any, depth: int) -> Node:
    return Call(ARRAY, parser.nodes(tree.expressions, depth))


def _map(parser: ValueParser, tree: Any, depth: int) -> Node:
    return Call(MAP, parser.nodes((*tree.args["keys"].expressions, *tree.args["values"].expressions), depth))


def _current_date(parser: ValueParser, tree: Any, depth: int) -> Node:
    return Constant(pa.scalar(parser.now.date()))


def _current_timestamp(parser: ValueParser, tree: Any, depth: int) -> Node:
    return Constant(pa.scalar(parser.now, pa.timestamp("us", "UTC")))


def _not_equal_nulls(parser: ValueParser, tree: Any, depth: int) -> Node:
    return Call("not", (Call("<=>", parser.nodes((tree.this, tree.expression), depth)),))


def _logic(parser: ValueParser, tree: Any, depth: int) -> Node:
    function = "and" if isinstance(tree, exp.And) else "or"
    return Call(function, parser.nodes(tree.flatten(unnest=False), depth))


def _constant_option(tree: Any, type_: type, what: str) -> Any:
    """The constant value of an option; UnsupportedError if it is no constant of the type."""
    constant = _constant(tree)
    value = None if constant is None else constant.value.as_py()
    if isinstance(value, bool) or not isinstance(value, type_):
        raise UnsupportedError(f"{what} must be a constant of type {type_.__name__}", feature=what)
    return value


_SPECIAL: dict[Any, Callable[[ValueParser, Any, int], Node]] = {
    exp.Column: _reference,
    exp.Dot: _reference,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Case: _case,
    exp.If: _if,
    exp.Nullif: _nullif,
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Substring: _substring,
    exp.Replace: _replace,
    exp.Trim: _trim,
    exp.Round: _round,
    exp.StartsWith: partial(_text_test, "startswith"),
    exp.EndsWith: partial(_text_test, "endswith"),
    exp.Contains: partial(_text_test, "contains"),
    exp.TimestampTrunc: _date_trunc,
    exp.DateTrunc: _date_trunc,
    exp.CurrentDate: _current_date,
    exp.CurrentTimestamp: _current_timestamp,
    exp.NullSafeNEQ: _not_equal_nulls,
    exp.And: _logic,
    exp.Or: _logic,
    exp.Escape: _escaped,
    exp.Struct: _struct,
    exp.Array: _array,
    exp.VarMap: _map,
}
