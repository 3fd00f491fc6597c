"""Random rows, filters and statistics, and the meaning of a filter in plain Python, for the tests of this folder."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import operator
import struct
import uuid
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import mmh3
import pyarrow as pa
from hypothesis import strategies as st

from icefloe.expr.filter.nodes import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    And,
    Constant,
    Expr,
    Not,
    Op,
    Or,
    Predicate,
    TransformTerm,
)
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.entries import ContentType, column_key, entries, partition_key
from icefloe.model.partition.spec import PartitionField
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Decimal,
    Field,
    Struct,
)

SCHEMA = Schema(
    fields=(
        Field(1, "i", INT),
        Field(2, "l", LONG),
        Field(3, "f", DOUBLE),
        Field(4, "g", FLOAT),
        Field(5, "s", STRING),
        Field(6, "d", DATE),
        Field(7, "t", TIMESTAMP),
        Field(8, "z", TIMESTAMPTZ),
        Field(9, "m", Decimal(9, 2)),
        Field(10, "b", BOOLEAN),
        Field(11, "u", UUID),
        Field(12, "x", BINARY),
        Field(13, "n", Struct((Field(14, "k", LONG),))),
    )
)
COLUMNS = {14: "n.k"} | {field.id: field.name for field in SCHEMA.fields if field.name != "n"}
BY_NAME = {name: field_id for field_id, name in COLUMNS.items()}

PARTITIONS = tuple(
    PartitionField(source_id=BY_NAME[source], field_id=1000 + i, name=f"{source}_{i}", transform=transform)
    for i, (source, transform) in enumerate(
        [
            ("t", "day"),
            ("z", "day"),
            ("d", "day"),
            ("l", "bucket[4]"),
            ("s", "bucket[3]"),
            ("m", "bucket[5]"),
            ("t", "bucket[2]"),
            ("s", "identity"),
            ("f", "identity"),
            ("i", "identity"),
            *((source, unit) for source in "tz" for unit in ("year", "month", "hour")),
            ("d", "year"),
            ("d", "month"),
            ("i", "truncate[3]"),
            ("l", "truncate[10]"),
            ("m", "truncate[50]"),
            ("s", "truncate[2]"),
            ("x", "truncate[1]"),
            ("i", "month"),  # not a transform of an int: says nothing
            ("l", "void"),
        ]
    )
)
USABLE = PARTITIONS[:-2]

NAN = math.nan


def float32(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


_FLOATS = st.sampled_from([-math.inf, -2.5, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, math.inf, NAN])
_TEXTS = st.text(st.sampled_from("ab%_\\'\u00e9\U0001f600"), max_size=4)
EPOCH = dt.datetime(1970, 1, 1)
_MICRO = dt.timedelta(microseconds=1)
_EDGES = [dt.datetime(1968, 12, 31, 23), dt.datetime(1969, 12, 1), dt.datetime(2024, 3, 1), dt.datetime(2025, 1, 1)]
_MOMENTS = st.integers(-3 * 86_400, 3 * 86_400).map(
    lambda s: EPOCH + dt.timedelta(seconds=s // 3600 * 3600)
) | st.sampled_from([edge - step for edge in _EDGES for step in (_MICRO, 0 * _MICRO)])
_UUIDS = st.integers(0, 3).map(lambda i: uuid.UUID(int=i << 120))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": st.integers(-3, 3) | st.sampled_from([2**31 - 1, -(2**31)]),
    "l": st.integers(-3, 3) | st.sampled_from([2**63 - 1, -(2**63)]),
    "f": _FLOATS,
    "g": _FLOATS | st.sampled_from([float32(0.1), float32(-0.1)]),
    "s": _TEXTS,
    "d": st.integers(-3, 3).map(lambda n: dt.date(1970, 1, 1) + dt.timedelta(days=n)) | _MOMENTS.map(dt.datetime.date),
    "t": _MOMENTS,
    "z": _MOMENTS.map(lambda moment: moment.replace(tzinfo=dt.UTC)),
    "m": st.integers(-300, 300).map(lambda n: decimal.Decimal(n).scaleb(-2)),
    "b": st.booleans(),
    "u": _UUIDS.map(lambda value: value.bytes),
    "x": st.binary(max_size=2),
    "n.k": st.integers(-3, 3),
}
_ODD_NUMBERS = st.sampled_from(
    [
        decimal.Decimal("1.5"),
        decimal.Decimal("0.1"),
        decimal.Decimal("-2.005"),
        2**40,
        -(2**70),
        0.1,
        1e300,
        NAN,
        -math.inf,
    ]
)
LITERALS: dict[str, st.SearchStrategy[Any]] = VALUES | {
    name: VALUES[name] | st.integers(-3, 3) | _ODD_NUMBERS for name in ("i", "l", "f", "g", "m", "n.k")
}
LITERALS["u"] = _UUIDS | VALUES["u"]
LITERALS["d"] = VALUES["d"] | _MOMENTS

_COMPARISONS = (Op.LT, Op.LE, Op.GT, Op.GE, Op.EQ, Op.NE)


@st.composite
def rows(draw: st.DrawFn, max_size: int = 8) -> list[dict[str, Any]]:
    """Rows of SCHEMA with many nulls and few distinct values."""
    nullable = {name: st.none() | values for name, values in VALUES.items()}
    found = draw(st.lists(st.fixed_dictionaries(nullable), max_size=max_size))
    for row in found:
        inner = {"k": row.pop("n.k")}
        row["n"] = inner if inner["k"] is not None or draw(st.booleans()) else None
    return found


@st.composite
def predicates(draw: st.DrawFn) -> Expr:
    name = draw(st.sampled_from(sorted(VALUES)))
    op = draw(st.sampled_from(sorted(Op, key=lambda op: op.name)))
    literals = st.none() | LITERALS[name] | LITERALS[name] | LITERALS[name]
    if op in (Op.IN, Op.NOT_IN):
        return Predicate(op, name, tuple(draw(st.lists(literals, max_size=4))))
    if op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
        return Predicate(op, "s", (draw(st.none() | _TEXTS),))
    return Predicate(op, name, (draw(literals),) if op in _COMPARISONS else ())


filters: st.SearchStrategy[Expr] = st.recursive(
    predicates() | st.sampled_from([ALWAYS_TRUE, ALWAYS_FALSE]),
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(And, st.lists(inner, min_size=1, max_size=3).map(tuple))
        | st.builds(Or, st.lists(inner, min_size=1, max_size=3).map(tuple))
    ),
    max_leaves=6,
)


def truth(expr: Expr, row: dict[str, Any]) -> bool | None:
    """SQL's three values for an expression that is not bound, straight from the definition."""
    match expr:
        case Constant(value):
            return value
        case Not(child):
            inner = truth(child, row)
            return None if inner is None else not inner
        case And(children):
            parts = [truth(child, row) for child in children]
            return False if False in parts else None if None in parts else True
        case Or(children):
            parts = [truth(child, row) for child in children]
            return True if True in parts else None if None in parts else False
        case Predicate(term=TransformTerm(transform, name)):
            field = PartitionField(source_id=BY_NAME[name], field_id=1000, name="p", transform=transform)
            return _predicate_truth(expr, partition_value(field, value_of(row, name)))
        case Predicate():
            return _predicate_truth(expr, value_of(row, expr.column))
    raise AssertionError(expr)


def value_of(row: dict[str, Any], name: str) -> Any:
    return (row["n"] or {"k": None})["k"] if name == "n.k" else row[name]


def _predicate_truth(node: Predicate, value: Any) -> bool | None:
    match node.op:
        case Op.IS_NULL | Op.NOT_NULL:
            return (value is None) == (node.op is Op.IS_NULL)
        case Op.IS_NAN | Op.NOT_NAN:
            return is_nan(value) == (node.op is Op.IS_NAN)
        case Op.IN | Op.NOT_IN:
            # Any of no comparisons is false, not null: SQL cannot write an empty list, but Spark's isin([]) agrees.
            parts = [_compare(Op.EQ, value, literal) for literal in node.literals]
            member = True if True in parts else None if None in parts else False
            return member if member is None or node.op is Op.IN else not member
        case Op.STARTS_WITH | Op.NOT_STARTS_WITH:
            if value is None or node.literals[0] is None:
                return None
            return value.startswith(node.literals[0]) == (node.op is Op.STARTS_WITH)
        case _:
            return _compare(node.op, value, node.literals[0])


_OPERATORS: dict[Op, Callable[[Any, Any], bool]] = {
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.GT: operator.gt,
    Op.GE: operator.ge,
    Op.EQ: operator.eq,
    Op.NE: operator.ne,
}


def _compare(op: Op, value: Any, literal: Any) -> bool | None:
    if value is None or literal is None:
        return None
    if isinstance(literal, uuid.UUID):
        literal = literal.bytes
    if isinstance(value, float) and isinstance(literal, decimal.Decimal):
        literal = float(literal)
    if isinstance(literal, dt.datetime) and not isinstance(value, dt.datetime):
        value = dt.datetime.combine(value, dt.time())
    if is_nan(value) or is_nan(literal):  # NaN is one value, above all others
        return _OPERATORS[op](int(is_nan(value)), int(is_nan(literal)))
    return _OPERATORS[op](value, literal)


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def partition_value(field: PartitionField, value: Any) -> Any:
    """A transform computed without the code under test."""
    if value is None or field.transform == "void":
        return None
    if field.transform == "day":
        if not isinstance(value, dt.datetime):
            return value
        return value.date()
    if field.transform in ("year", "month", "hour"):
        return _units(field.transform, value)
    if field.transform.startswith("truncate"):
        return truncated(value, int(field.transform[9:-1]), SCHEMA.by_id[field.source_id].type)
    if field.transform.startswith("bucket"):
        count = int(field.transform[7:-1])
        return (mmh3.hash(_bucket_bytes(value)) & 0x7FFFFFFF) % count
    return value


def _units(unit: str, value: Any) -> int:
    if unit == "hour":
        return int((value.replace(tzinfo=None) - EPOCH) // dt.timedelta(hours=1))
    years = value.year - 1970
    return years if unit == "year" else 12 * years + value.month - 1


def truncated(value: Any, width: int, type_: Any) -> Any:
    """A value cut to a width; numbers below the lowest come out at the other end, as Java's do."""
    if isinstance(value, (str, bytes)):
        return value[:width]
    if isinstance(value, decimal.Decimal):
        unscaled = int(value.scaleb(2))
        return decimal.Decimal(unscaled - unscaled % width).scaleb(-2)
    bits = 32 if type_ == INT else 64
    return (value - value % width + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def result_type(field: PartitionField) -> pa.DataType:
    """The Arrow type of a transform's results, as the specification has it."""
    if field.transform == "day":
        return pa.date32()
    is_number = field.transform in ("year", "month", "hour") or field.transform.startswith("bucket")
    return pa.int32() if is_number else arrow_type(SCHEMA.by_id[field.source_id].type)


def _bucket_bytes(value: Any) -> bytes:
    match value:
        case int():
            return struct.pack("<q", value)
        case str():
            return value.encode()
        case decimal.Decimal():
            unscaled = int(value.scaleb(2))
            length = next(n for n in range(1, 17) if -(2 ** (8 * n - 1)) <= unscaled < 2 ** (8 * n - 1))
            return unscaled.to_bytes(length, "big", signed=True)
        case dt.datetime():
            return struct.pack("<q", (value - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1))
    raise AssertionError(value)


@st.composite
def files(draw: st.DrawFn) -> tuple[list[list[dict[str, Any]]], pa.Table]:
    """Rows in files, and an entry table that says true things about them, though not everything."""
    chosen = draw(st.lists(st.sampled_from(USABLE), max_size=2, unique=True))
    groups: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for row in draw(rows()):
        groups[repr([partition_value(f, row[COLUMNS[f.source_id]]) for f in chosen])].append(row)
    contents = [*groups.values(), *([[]] if draw(st.booleans()) else [])]
    described = [draw(_entry(content, chosen)) for content in contents]
    types = {column_key(i): arrow_type(SCHEMA.by_id[i].type) for i in COLUMNS} | {
        partition_key(f.field_id): result_type(f) for f in USABLE
    }
    return contents, entries(described, types)


@st.composite
def _entry(draw: st.DrawFn, content: list[dict[str, Any]], chosen: list[PartitionField]) -> dict[str, Any]:
    entry: dict[str, Any] = {"content_type": int(ContentType.DATA), "record_count": len(content)}
    for field_id, name in COLUMNS.items():
        values = [value_of(row, name) for row in content]
        # Rows whose parent struct is null may not be counted as values.
        skipped = sum(name == "n.k" and row["n"] is None for row in content) if draw(st.booleans()) else 0
        entry |= draw(_known(str(field_id), values, len(values) - skipped, skipped))
    if len(content) > 0:
        for field in chosen:
            values = [partition_value(field, row[COLUMNS[field.source_id]]) for row in content]
            entry |= _statistics(f"p{field.field_id}", values, len(values), 0)
    return entry


@st.composite
def _known(draw: st.DrawFn, key: str, values: list[Any], count: int, skipped: int) -> dict[str, Any]:
    """Some of the statistics of a column; string bounds are sometimes truncated."""
    found = _statistics(key, values, count, skipped)
    if key == str(BY_NAME["s"]) and draw(st.booleans()):
        lower, upper = found[f"lower_bound:{key}"], found[f"upper_bound:{key}"]
        found[f"lower_bound:{key}"] = None if lower is None else lower[:1]
        if upper is not None and len(upper) > 1:
            found[f"upper_bound:{key}"] = chr(ord(upper[0]) + 1)
    return {name: value for name, value in found.items() if draw(st.integers(0, 5)) > 0}


def _statistics(key: str, values: list[Any], count: int, skipped: int) -> dict[str, Any]:
    ordinary = [value for value in values if value is not None and not is_nan(value)]
    found = {
        f"value_count:{key}": count,
        f"null_value_count:{key}": sum(value is None for value in values) - skipped,
        f"lower_bound:{key}": min(ordinary, default=None),
        f"upper_bound:{key}": max(ordinary, default=None),
    }
    if any(isinstance(value, float) for value in values):
        found[f"nan_value_count:{key}"] = sum(map(is_nan, values))
    return found
