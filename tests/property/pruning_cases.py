"""Random tables with statistics that are true but not complete, random filters, and what both mean in plain Python.

Nothing here uses the code under test: transforms, comparisons and logic are written out once more, from the
specification, so that a mistake would have to be made twice to go unseen.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import operator
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pruning_values import (
    NAN,
    NUMBERS,
    POINT,
    TYPES,
    float32,
    result_type,
    rounded_late,
    transformed,
    transforms,
    value,
)

from icefloe.expr.filter.nodes import And, BoundPredicate, Constant, Expr, Not, Op, Or, Predicate, TransformTerm
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.entries import COUNTS, ContentType, column_key, entries, partition_key, stat, stat_keys
from icefloe.model.partition.spec import PartitionField
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import (
    BINARY,
    DOUBLE,
    INT,
    LONG,
    STRING,
    UNKNOWN,
    Field,
    Struct,
)

Row = dict[str, Any]
Truth = Callable[[Row], bool | None]

COMPARISONS = (Op.LT, Op.LE, Op.GT, Op.GE, Op.EQ, Op.NE)
UNARY = (Op.IS_NULL, Op.NOT_NULL, Op.IS_NAN, Op.NOT_NAN)


# -- schemas


@dataclass(frozen=True)
class Column:
    id: int
    name: str
    path: tuple[str, ...]
    type: Any
    required: bool

    def of(self, row: Row) -> Any:
        found: Any = row
        for part in self.path:
            found = None if found is None else found[part]
        return found


@dataclass(frozen=True)
class Layout:
    """A schema, its columns that filters may use, and two partition specs."""

    schema: Schema
    columns: list[Column]
    specs: list[list[PartitionField]]
    by_name: dict[str, Column] = field(default_factory=dict)

    @property
    def fields(self) -> tuple[PartitionField, ...]:
        return tuple(each for spec in self.specs for each in spec)

    def column(self, part: PartitionField) -> Column:
        return next(column for column in self.columns if column.id == part.source_id)


def layout(rng: random.Random) -> Layout:
    types = [rng.choice(TYPES) for _ in range(rng.randint(2, 4))]
    required = [type_ != UNKNOWN and rng.random() < 0.25 for type_ in types]
    fields = [Field(i + 1, f"c{i}", type_, required[i]) for i, type_ in enumerate(types)]
    columns = [Column(f.id, f.name, (f.name,), f.type, f.required) for f in fields]
    inner = Field(21, "k", rng.choice(TYPES[:-2]), rng.random() < 0.3)
    outer = Field(20, "n", Struct((inner,)), rng.random() < 0.3)
    columns.append(Column(21, "n.k", ("n", "k"), inner.type, inner.required and outer.required))
    schema = Schema(fields=(*fields, outer))
    specs, number = list[list[PartitionField]](), 1000
    for _ in range(2):
        spec = []
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            column = rng.choice(columns)
            text = rng.choice([*transforms(column.type), *transforms(column.type), "void"])
            spec.append(PartitionField(source_id=column.id, field_id=number, name=f"p{number}", transform=text))
            number += 1
        specs.append(spec)
    return Layout(schema, columns, specs, {column.name: column for column in columns})


def row(rng: random.Random, chosen: Layout) -> Row:
    def draw(type_: Any, required: bool) -> Any:
        return None if not required and rng.random() < 0.25 else value(rng, type_)

    found: Row = {}
    for each in chosen.schema.fields:
        if isinstance(each.type, Struct):
            (inner,) = each.type.fields
            gone = not each.required and rng.random() < 0.25
            found[each.name] = None if gone else {inner.name: draw(inner.type, inner.required)}
        else:
            found[each.name] = draw(each.type, each.required)
    return found


# -- files and what is known about them


@dataclass(frozen=True)
class File:
    """Rows of one partition: ``values`` by partition field id."""

    spec: int
    values: dict[int, Any]
    rows: list[Row]


@dataclass(frozen=True)
class Dataset:
    """Files and manifests of them; the table has an entry for each file, then one for each manifest."""

    layout: Layout
    files: list[File]
    manifests: list[list[File]]
    table: pa.Table

    @property
    def rows(self) -> list[Row]:
        return [row for file in self.files for row in file.rows]


def dataset(rng: random.Random) -> Dataset:
    chosen = layout(rng)
    files = _files(rng, chosen, [row(rng, chosen) for _ in range(rng.randint(1, 16))])
    manifests: list[list[File]] = []
    for spec in range(2):
        own = [file for file in files if file.spec == spec]
        while len(own) > 0:
            size = rng.randint(1, 3)
            manifests.append(own[:size])
            own = own[size:]
    described = [_file_entry(rng, chosen, file) for file in files]
    described += [_manifest_entry(rng, chosen, content) for content in manifests]
    types = {column_key(c.id): _stored_type(rng, c, described) for c in chosen.columns}
    for part in chosen.fields:
        column = chosen.column(part)
        types[partition_key(part.field_id)] = arrow_type(result_type(part.transform, column.type))
    return Dataset(chosen, files, manifests, entries(described, types))


def _files(rng: random.Random, chosen: Layout, rows: list[Row]) -> list[File]:
    late, was_int = rng.random() < 0.2, rng.random() < 0.5
    groups: dict[str, File] = {}
    for each in rows:
        spec = int(rng.random() < 0.3)
        values = {}
        for part in chosen.specs[spec]:
            column = chosen.column(part)
            given = column.of(each)
            then_int = was_int and column.type == LONG and given is not None and -(2**31) <= given < 2**31
            found = transformed(part.transform, INT if then_int else column.type, given)
            values[part.field_id] = rounded_late(part.transform, column.type, given, found) if late else found
        # Some files of one partition: a number in the name of the group.
        group = groups.setdefault(repr((spec, values, rng.randrange(2))), File(spec, values, []))
        group.rows.append(each)
    return list(groups.values())


def _stored_type(rng: random.Random, column: Column, described: list[Row]) -> pa.DataType:
    """The type that bounds are stored in: sometimes that of before a promotion."""
    bounds = [entry.get(f"{side}_bound:{column.id}") for entry in described for side in ("lower", "upper")]
    known = [bound for bound in bounds if bound is not None]
    if column.type == LONG and rng.random() < 0.3 and all(-(2**31) <= bound < 2**31 for bound in known):
        return pa.int32()
    if column.type == DOUBLE and rng.random() < 0.3 and all(is_nan(b) or float32(b) == b for b in known):
        return pa.float32()
    return arrow_type(column.type)


def _file_entry(rng: random.Random, chosen: Layout, file: File) -> Row:
    entry: Row = {"content_type": int(ContentType.DATA), "record_count": len(file.rows)}
    entry |= _column_statistics(rng, chosen, file.rows)
    for field_id, given in file.values.items():
        entry |= _statistics(f"p{field_id}", [given] * len(file.rows), len(file.rows))
    return entry


def _manifest_entry(rng: random.Random, chosen: Layout, content: list[File]) -> Row:
    total = sum(len(file.rows) for file in content)
    added = rng.randint(0, total)
    entry: Row = {
        "content_type": int(ContentType.DATA_MANIFEST),
        "record_count": len(content),
        "added_rows_count": added,
        "existing_rows_count": total - added,
    }
    if rng.random() < 0.5:  # as in V4; before, manifests know their partition values only
        entry |= _column_statistics(rng, chosen, [row for file in content for row in file.rows])
    for field_id in content[0].values:
        entry |= _summary(f"p{field_id}", [file.values[field_id] for file in content], total)
    return entry


def _summary(key: str, values: list[Any], total: int) -> Row:
    """A range and whether there is null or NaN, as counts that are none, all or unknown."""
    ordinary = [each for each in values if each is not None and not is_nan(each)]
    nulls, nans = None in values, any(map(is_nan, values))
    return {
        f"lower_bound:{key}": min(ordinary, default=None),
        f"upper_bound:{key}": max(ordinary, default=None),
        f"value_count:{key}": total,
        f"null_value_count:{key}": 0 if not nulls else total if len(ordinary) == 0 and not nans else None,
        f"nan_value_count:{key}": 0 if not nans else total if len(ordinary) == 0 and not nulls else None,
    }


def _column_statistics(rng: random.Random, chosen: Layout, rows: list[Row]) -> Row:
    found: Row = {}
    for column in chosen.columns:
        values = [column.of(each) for each in rows]
        # Rows whose parent struct is null may not be counted as values.
        skipped = sum(len(column.path) > 1 and each["n"] is None for each in rows) if rng.random() < 0.5 else 0
        key = str(column.id)
        known = _statistics(key, values, len(values) - skipped, skipped)
        if column.type == POINT:  # the corners of a box, which are no values
            known |= {f"lower_bound:{key}": b"\xff", f"upper_bound:{key}": b""}
        elif known[f"lower_bound:{key}"] is not None:
            known |= _looser(rng, column, known[f"lower_bound:{key}"], known[f"upper_bound:{key}"])
        missing = rng.choice((0.0, 0.1, 0.5))
        found |= {name: each for name, each in known.items() if rng.random() >= missing}
    return found


def _statistics(key: str, values: list[Any], count: int, skipped: int = 0) -> Row:
    ordinary = [each for each in values if each is not None and not is_nan(each)]
    found = {
        f"value_count:{key}": count,
        f"null_value_count:{key}": sum(each is None for each in values) - skipped,
        f"lower_bound:{key}": min(ordinary, default=None),
        f"upper_bound:{key}": max(ordinary, default=None),
    }
    if any(isinstance(each, float) for each in values):
        found[f"nan_value_count:{key}"] = sum(map(is_nan, values))
    return found


def _looser(rng: random.Random, column: Column, lower: Any, upper: Any) -> Row:
    """Bounds that are still true: cut, moved, or NaN, which some writers store."""
    kind = rng.random()
    if isinstance(lower, (str, bytes)) and column.type in (STRING, BINARY) and kind < 0.5:
        width = rng.randint(1, 3)
        lower, upper = lower[:width], _cut_above(upper, width)
    elif isinstance(lower, float) and kind < 0.2:
        lower, upper = rng.choice(((NAN, upper), (lower, NAN), (NAN, NAN)))
    elif kind > 0.8:
        others = [each for each in (value(rng, column.type), lower, upper) if not is_nan(each)]
        lower, upper = min(others), max(others)
    return {f"lower_bound:{column.id}": lower, f"upper_bound:{column.id}": upper}


_ROWS_OF_MANIFEST = ("added_rows_count", "existing_rows_count")


def contradicted(rng: random.Random, made: Dataset) -> Dataset:
    """The same tables with counts that cannot be true together, in about half of the statistics."""
    nested = {column_key(column.id) for column in made.layout.columns if len(column.path) > 1}
    table, known = made.table, made.table.select(["content_type", "record_count", *_ROWS_OF_MANIFEST]).to_pylist()
    for key in stat_keys(table):
        names = [stat(measure, key) for measure in COUNTS]
        columns = [table[n].to_pylist() if n in table.column_names else [None] * len(known) for n in names]
        counts = list(zip(*columns, strict=True))
        for index, row in enumerate(known):
            of_manifest = row["content_type"] == ContentType.DATA_MANIFEST
            total = sum(row[name] for name in _ROWS_OF_MANIFEST) if of_manifest else row["record_count"]
            # The counts of the partition tuple of a file are computed, not stored.
            if rng.random() < 0.5 and (of_manifest or not key.is_partition):
                counts[index] = rng.choice(_contradictions(rng, total, nested=key in nested))
        table = table.drop_columns([name for name in names if name in table.column_names])
        for name, column in zip(names, zip(*counts, strict=True), strict=True):
            table = table.append_column(name, pa.array(column, pa.int64()))
    return replace(made, table=table)


def _contradictions(rng: random.Random, rows: int, *, nested: bool) -> list[tuple[int | None, ...]]:
    """Numbers of values, nulls and NaN that no file of so many rows can have."""
    some, more = rng.randint(0, rows), rows + rng.randint(1, 3)
    found: list[tuple[int | None, ...]] = [
        (-1, some, None), (-1, -1, None), (some, some + 1, None), (rows, -1, None), (rows, 0, -1), (more, more, None),
        (rows, rows, -rows - 1), (more, 0, 0), (None, more, None), (rows, some, rows - some + 1), (rows, 0, more),
    ]  # fmt: skip
    # A struct may be null, so a column in it may have fewer values than there are rows.
    return found if nested or rows == 0 else [*found, (rows - 1, rows - 1, 0), (0, 0, 0)]


def _cut_above(upper: Any, width: int) -> Any:
    """A short text or bytes that is not less than the bound."""
    if len(upper) <= width:
        return upper
    cut = upper[:width]
    if isinstance(upper, bytes):
        return upper if cut[-1] == 255 else cut[:-1] + bytes([cut[-1] + 1])
    return upper if cut[-1] in "\ud7ff\U0010ffff" else cut[:-1] + chr(ord(cut[-1]) + 1)


# -- filters

_ODD = [decimal.Decimal("1.5"), decimal.Decimal("-2.125"), 0.1, 2**40, -(2**70), 1e300, NAN, math.inf, -math.inf, 3]
_TERMS = {"truncate[3]": "truncate[4]", "truncate[10]": "truncate[16]"}


def _term(rng: random.Random, column: Column) -> str | None:
    """A transform to test; no integer falls below the lowest by it, as such a row has no value to compare."""
    usable = [text for text in transforms(column.type) if text != "identity"]
    if len(usable) == 0 or rng.random() < 0.7:
        return None
    text = rng.choice(usable)
    return _TERMS.get(text, text) if column.type in (INT, LONG) else text


def _literal(rng: random.Random, column: Column, text: str | None, rows: list[Row]) -> Any:
    if rng.random() < 0.02:
        return None
    known = [each for r in rows if (each := column.of(r)) is not None]
    found = rng.choice(known) if len(known) > 0 and rng.random() < 0.6 else value(rng, column.type)
    if text is None:
        odd = column.type in NUMBERS and rng.random() < 0.15
        return rng.choice(_ODD) if odd else found
    found = transformed(text, column.type, found)
    if isinstance(found, dt.date):
        return found
    if isinstance(found, int) and rng.random() < 0.3:
        return found + rng.choice((-1, 1, 1000))
    return found + found[:1] if isinstance(found, (str, bytes)) and rng.random() < 0.2 else found


def predicate(rng: random.Random, chosen: Layout, rows: list[Row]) -> Predicate:
    column = rng.choice(chosen.columns)
    if len(chosen.fields) > 0 and rng.random() < 0.5:
        column = chosen.column(rng.choice(chosen.fields))
    text = _term(rng, column)
    term: Any = column.name if text is None else TransformTerm(text, column.name)
    if column.type in (UNKNOWN, POINT) or rng.random() < 0.12:
        return Predicate(rng.choice(UNARY), term)
    tested = column.type if text is None else result_type(text, column.type)
    kind = rng.random()
    if tested == STRING and kind < 0.35:
        prefix = _literal(rng, column, text, rows)
        cut = prefix if prefix is None else prefix[: rng.randint(0, 3)]
        return Predicate(rng.choice((Op.STARTS_WITH, Op.NOT_STARTS_WITH)), term, (cut,))
    if kind < 0.6:
        return Predicate(rng.choice(COMPARISONS), term, (_literal(rng, column, text, rows),))
    count = rng.choice((0, 1, 2, 3, 4, 6))
    literals = tuple(_literal(rng, column, text, rows) for _ in range(count))
    return Predicate(rng.choice((Op.IN, Op.NOT_IN)), term, literals)


def expression(rng: random.Random, chosen: Layout, rows: list[Row], depth: int = 3) -> Expr:
    kind = rng.random()
    if depth == 0 or kind < 0.4:
        return Constant(rng.random() < 0.5) if rng.random() < 0.03 else predicate(rng, chosen, rows)
    if kind < 0.55:
        return Not(expression(rng, chosen, rows, depth - 1))
    parts = tuple(expression(rng, chosen, rows, depth - 1) for _ in range(rng.randint(1, 3)))
    return And(parts) if kind < 0.8 else Or(parts)


# -- meaning

_OPERATORS: dict[Op, Callable[[Any, Any], bool]] = {
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.GT: operator.gt,
    Op.GE: operator.ge,
    Op.EQ: operator.eq,
    Op.NE: operator.ne,
}


def is_nan(given: Any) -> bool:
    return isinstance(given, float) and math.isnan(given)


def _compare(op: Op, given: Any, literal: Any) -> bool | None:
    if given is None or literal is None:
        return None
    if is_nan(given) or is_nan(literal):  # NaN is one value, above all others
        return _OPERATORS[op](is_nan(given), is_nan(literal))
    return _OPERATORS[op](given, literal)


def _test(op: Op, given: Any, literals: tuple[Any, ...]) -> bool | None:
    match op:
        case Op.IS_NULL | Op.NOT_NULL:
            return (given is None) == (op is Op.IS_NULL)
        case Op.IS_NAN | Op.NOT_NAN:
            return is_nan(given) == (op is Op.IS_NAN)
        case Op.IN | Op.NOT_IN:
            parts = [_compare(Op.EQ, given, literal) for literal in literals]
            member = True if True in parts else None if None in parts else False
            return member if member is None or op is Op.IN else not member
        case Op.STARTS_WITH | Op.NOT_STARTS_WITH:
            if given is None or literals[0] is None:
                return None
            return bool(given.startswith(literals[0])) == (op is Op.STARTS_WITH)
    return _compare(op, given, literals[0])


def truth(expr: Expr, chosen: Layout) -> Truth:
    """SQL's three values of a filter, bound or not, for a row."""
    match expr:
        case Constant(constant):
            return lambda _: constant
        case Not(child):
            inner = truth(child, chosen)
            return lambda r: None if (found := inner(r)) is None else not found
        case And(children) | Or(children):
            parts, stop = [truth(child, chosen) for child in children], isinstance(expr, Or)
            return lambda r: _joined([part(r) for part in parts], stop)
        case Predicate(op, term, literals):
            column = chosen.by_name[expr.column]
            text = term.transform if isinstance(term, TransformTerm) else "identity"
            return lambda r: _test(op, transformed(text, column.type, column.of(r)), literals)
        case BoundPredicate(op=op, literals=literals):
            column = chosen.by_name[expr.name]
            return lambda r: _test(op, transformed(str(expr.transform), column.type, column.of(r)), literals)
    raise AssertionError(expr)


def _joined(parts: list[bool | None], stop: bool) -> bool | None:
    return stop if stop in parts else None if None in parts else not stop
