"""Schemas, rows and files for the tests of Avro data files."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from icefloe.codecs.avro import data_rows as avro_rows
from icefloe.formats.avro.file import AvroFile, open_avro
from icefloe.formats.avro.writer import AvroWriter
from icefloe.formats.write.entries import WrittenFile
from icefloe.formats.write.layout import layout
from icefloe.io.memory import MemoryFileIO
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.schema.name_mapping import NameMapping
from icefloe.model.schema.schema import Schema, fresh_ids
from icefloe.model.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    VARIANT,
    Decimal,
    Field,
    Fixed,
    Geography,
    Geometry,
    List,
    Map,
    Struct,
    Type,
)

PLACE = "memory://lake/data/f.avro"

VALUES: list[tuple[Type, list[Any]]] = [
    (BOOLEAN, [True, False]),
    (INT, [-(2**31), 2**31 - 1, 0]),
    (LONG, [-(2**63), 2**63 - 1, 63, -64, 64]),
    (FLOAT, [1.5, -0.0, math.inf]),
    (DOUBLE, [1e300, -0.0, -math.inf]),
    (DATE, [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)]),
    (TIME, [dt.time(0), dt.time(23, 59, 59, 999_999)]),
    (TIMESTAMP, [dt.datetime(1, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(9999, 12, 31)]),
    (TIMESTAMPTZ, [dt.datetime(1, 1, 1, 0, 0, 0, 1, dt.UTC), dt.datetime(9999, 12, 31, tzinfo=dt.UTC)]),
    (TIMESTAMP_NS, [-1, 1, -(2**63), 2**63 - 1]),
    (TIMESTAMPTZ_NS, [-1_000_000_001, 0, 1_700_000_000_123_456_789]),
    (STRING, ["", "a", "\U0001f600 \u00e9\x00", "long " * 50]),
    (UUID, [bytes(16), uuid.UUID(int=2**127 + 5).bytes]),
    (Fixed(3), [b"abc", b"\x00\x00\x00"]),
    (BINARY, [b"", b"\xff\x00"]),
    (Decimal(9, 2), [decimal.Decimal("-1.25"), decimal.Decimal("9999999.99"), decimal.Decimal("-9999999.99")]),
    (Decimal(38, 10), [decimal.Decimal("1234567890123456789012345678.0123456789"), decimal.Decimal(-1)]),
    (Geometry(), [b"\x01\x01\x00\x00\x00"]),
    (Geography(), [b"\x01\x02"]),
    (VARIANT, [{"metadata": b"\x01\x00", "value": b"\x00"}]),
]


def write(io: MemoryFileIO, schema: Schema, rows: list[dict[str, Any]], **properties: str) -> WrittenFile:
    """One file at PLACE; properties are those of ``write.avro``, with underscores for dashes."""
    given = {f"write.avro.{name.replace('_', '-')}": value for name, value in properties.items()}
    writer = AvroWriter(io, PLACE, layout(schema, given), ())
    for batch in pa.Table.from_pylist(rows, arrow_schema(schema)).to_batches(max_chunksize=1000):
        writer.add(batch, {})
    return writer.close()


def read_table(
    io: MemoryFileIO, wanted: tuple[Field, ...], mapping: NameMapping | None = None, *, handed_over: bool = False
) -> pa.Table:
    """The columns with these ids, as they are stored; validated by Arrow."""
    with open_avro(io, PLACE, mapping) as file:
        batches = [batch for group in file.row_groups for batch in file.read(group, wanted, 1000)]
        assert isinstance(file, AvroFile)
        assert file._decoder.together is not handed_over, "whether reading together was given up"
        schema = batches[0].schema if len(batches) > 0 else pa.schema([])
    table = pa.Table.from_batches(batches, schema)
    table.validate(full=True)
    return table


@contextmanager
def lanes(least: int) -> Iterator[None]:
    """Records are read together from this number of blocks on."""
    before = avro_rows.LEAST_LANES
    avro_rows.LEAST_LANES = least
    try:
        yield
    finally:
        avro_rows.LEAST_LANES = before


def as_stored(schema: Schema, rows: list[dict[str, Any]]) -> pa.Table:
    """The rows as a table would hold them."""
    return pa.Table.from_pylist(rows, arrow_schema(schema))


# -- random schemas and rows

_LEAVES = [type_ for type_, _ in VALUES if type_ != VARIANT]
_KEYS = [type_ for type_ in _LEAVES if not isinstance(type_, (Geometry, Geography))]
_VALUES = dict(VALUES)


def _structs(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    fields = st.lists(st.tuples(inner, st.booleans()), min_size=1, max_size=3)
    return fields.map(
        lambda found: Struct(tuple(Field(0, f"f {i}", t, required) for i, (t, required) in enumerate(found)))
    )


TYPES: st.SearchStrategy[Type] = st.recursive(
    st.sampled_from(_LEAVES),
    lambda inner: (
        st.builds(List, st.just(0), inner, st.booleans())
        | st.builds(Map, st.just(0), st.sampled_from(_KEYS), st.just(0), inner, st.booleans())
        | _structs(inner)
    ),
    max_leaves=5,
)


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    columns = draw(st.lists(st.tuples(TYPES | st.just(UNKNOWN), st.booleans()), min_size=1, max_size=4))
    fields = tuple(Field(0, f"c{i}", t, required and t != UNKNOWN) for i, (t, required) in enumerate(columns))
    return Schema(fields=fresh_ids(fields))


def values_of(type_: Type, required: bool) -> st.SearchStrategy[Any]:
    match type_:
        case Struct(fields):
            found: st.SearchStrategy[Any] = st.fixed_dictionaries(
                {field.name: values_of(field.type, field.required) for field in fields}
            )
        case List(element=element, element_required=element_required):
            found = st.lists(values_of(element, element_required), max_size=3)
        case Map(key=key, value=value, value_required=value_required):
            pairs = st.tuples(values_of(key, True), values_of(value, value_required))
            found = st.lists(pairs, max_size=3)
        case _:
            found = st.none() if type_ == UNKNOWN else st.sampled_from(_VALUES[type_])
    return found if required else st.none() | found


@st.composite
def schemas_and_rows(draw: st.DrawFn) -> tuple[Schema, list[dict[str, Any]]]:
    schema = draw(schemas())
    row = st.fixed_dictionaries({field.name: values_of(field.type, field.required) for field in schema.fields})
    return schema, draw(st.lists(row, max_size=12))
