"""A write with every type, bare and nested, comes back through a table in every format and version.

What a format cannot hold is refused by the name of the column, before a file is left behind.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefloe
from icefloe.errors import IcefloeError, InputError, UnsupportedError
from icefloe.model.arrow.conform import arrow_schema
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
    since,
)
from support.conformance import nonconformities
from support.tables import stored_by_others

pytestmark = pytest.mark.slow

FORMATS = ["parquet", "orc", "avro"]
VERSIONS = [1, 2, 3, 4]
# Values that every format holds; what only some hold is below.
VALUES: list[tuple[Type, list[Any]]] = [
    (BOOLEAN, [True, False]),
    (INT, [-(2**31), 2**31 - 1]),
    (LONG, [-(2**63), 2**63 - 1]),
    (FLOAT, [1.5, -math.inf]),
    (DOUBLE, [1e300, 5e-324]),
    (DATE, [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)]),
    (TIME, [dt.time(0), dt.time(23, 59, 59, 999_999)]),
    (TIMESTAMP, [dt.datetime(1677, 9, 22), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(2262, 4, 11)]),
    (TIMESTAMPTZ, [dt.datetime(1900, 1, 1, 0, 0, 0, 1, dt.UTC), dt.datetime(2026, 11, 15, 12, tzinfo=dt.UTC)]),
    (STRING, ["", "a", "\U0001f600 \u00e9"]),
    (UUID, [bytes(16), uuid.UUID(int=2**127 + 5).bytes]),
    (Fixed(3), [b"abc", b"\x00\x00\x00"]),
    (BINARY, [b"", b"\xff\x00"]),
    (Decimal(1, 0), [decimal.Decimal(-9), decimal.Decimal(9)]),
    (Decimal(9, 2), [decimal.Decimal("-1.25"), decimal.Decimal("9999999.99")]),
    (Decimal(18, 18), [decimal.Decimal("0.123456789012345678"), decimal.Decimal("-0.000000000000000001")]),
    (Decimal(38, 10), [decimal.Decimal("1234567890123456789012345678.0123456789"), decimal.Decimal(-1)]),
    (TIMESTAMP_NS, [-1, 1, 1_700_000_000_123_456_789]),
    (TIMESTAMPTZ_NS, [-1_000_000_001, 0, 1_700_000_000_123_456_789]),
    (Geometry(), [b"\x01\x01\x00\x00\x00" + bytes(16)]),
    (Geography(), [b"\x01\x01\x00\x00\x00" + bytes(16)]),
    (VARIANT, [{"metadata": b"\x01\x00\x00", "value": b"\x00"}, {"metadata": b"\x01\x00\x00", "value": b"\x0c\x05"}]),
    (UNKNOWN, [None]),
]
_NOT_KEYS = (Geometry, Geography, type(VARIANT))


@pytest.fixture
def catalog(tmp_path: Path) -> Any:
    return icefloe.catalog("t", uri=f"sqlite:///{tmp_path}/cat.db", warehouse=f"file://{tmp_path}/wh")


def columns_of(type_: Type, name: str) -> list[Field]:
    """A type bare and in everything that can hold it."""
    pair = Struct((Field(0, "x", type_), Field(0, "n", INT, True)))
    bare = [Field(0, f"{name}_bare", type_), Field(0, f"{name}_struct", pair)]
    if type_ == UNKNOWN:
        return bare
    key = STRING if isinstance(type_, _NOT_KEYS) else type_
    return [
        *bare,
        Field(0, f"{name}_required", type_, True),
        Field(0, f"{name}_list", List(0, type_)),
        Field(0, f"{name}_full_list", List(0, type_, True)),
        Field(0, f"{name}_map", Map(0, key, 0, type_)),
        Field(0, f"{name}_named", Map(0, STRING, 0, type_, True)),
        Field(0, f"{name}_deep", List(0, Struct((Field(0, "m", Map(0, INT, 0, List(0, pair))),)))),
    ]


def values_of(type_: Type, name: str, values: list[Any], at: int) -> dict[str, Any]:
    """Values of these columns: nulls and empty ones in the first rows, then every value in turn."""
    value = values[at % len(values)]
    pair = {"x": value, "n": at}
    keys = values if not isinstance(type_, _NOT_KEYS) else [f"k{i}" for i in range(len(values))]
    full = {
        "bare": value,
        "struct": pair,
        "required": value,
        "list": [value, None, *values],
        "full_list": [*values, value],
        "map": [*zip(keys[1:], values[1:], strict=True), (keys[0], None)],
        "named": [("", value), ("b", values[0])],
        "deep": [{"m": [(1, [pair, None]), (2, None), (3, [])]}, None, {"m": None}, {"m": []}],
    }
    none = {"struct": {"x": None, "n": 1}, "required": value, "list": [], "full_list": [], "map": [], "named": []}
    null = {"required": value}
    found: dict[str, Any] = null if at == 0 else none if at == 1 else full
    return {f"{name}_{part}": found.get(part) for part in full}


def every_type(version: int) -> Schema:
    held = [(place, type_) for place, (type_, _) in enumerate(VALUES) if since(type_) <= version]
    columns = [column for place, type_ in held for column in columns_of(type_, f"c{place}")]
    return Schema(fields=fresh_ids((Field(0, "id", LONG, True), *columns)))


def every_row(schema: Schema, start: int = 0, rows: int = 6) -> pa.Table:
    """Rows of such a table."""
    names = {field.name for field in schema.fields}
    made = []
    for at in range(rows):
        row: dict[str, Any] = {"id": start + at}
        for place, (type_, values) in enumerate(VALUES):
            row |= values_of(type_, f"c{place}", values, at)
        made.append({name: value for name, value in row.items() if name in names})
    return pa.Table.from_pylist(made, arrow_schema(schema))


def create(catalog: Any, schema: Any, file_format: str, version: int = 3, **properties: str) -> Any:
    given = {"write.format.default": file_format, **properties}
    return catalog.create_table("db.t", schema=schema, format_version=version, properties=given)


def same(found: pa.Table, expected: pa.Table) -> None:
    found = found.sort_by("id") if "id" in found.column_names else found
    assert found.column_names == expected.column_names
    for name in expected.column_names:
        assert found[name].equals(expected[name].cast(found[name].type)), name


def files(tmp_path: Path, file_format: str) -> list[Path]:
    """The data files of a format; manifests are Avro or Parquet too."""
    return sorted(path for path in (tmp_path / "wh").rglob(f"*.{file_format}") if "data" in path.parts)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("file_format", FORMATS)
def test_every_type_and_nesting_comes_back(catalog: Any, tmp_path: Path, file_format: str, version: int) -> None:
    table = create(catalog, every_type(version), file_format, version, **{"write.delete.mode": "copy-on-write"})
    rows = every_row(table.schema)
    table.append(rows)
    same(table.scan().to_arrow(), rows)
    assert len(files(tmp_path, file_format)) == 1
    # What is read and written again is still the same.
    table.delete("id = 3")
    assert len(files(tmp_path, file_format)) == 2
    same(table.scan().to_arrow(), rows.filter(pa.array([id_ != 3 for id_ in range(6)])))
    # What was recorded of every column is so.
    assert table.verify("all", rows=True).findings == ()
    assert nonconformities(table, rows=True) == []


@pytest.mark.parametrize("file_format", FORMATS)
def test_columns_of_every_type_are_read_alone_and_filtered(catalog: Any, file_format: str) -> None:
    table = create(catalog, every_type(3), file_format)
    rows = every_row(table.schema)
    table.append(rows)
    for place, (type_, _) in enumerate(VALUES):
        mine = [f.name for f in reversed(table.schema.fields) if f.name.startswith(f"c{place}_")]
        same(table.scan(columns=mine).to_arrow(), rows.select(mine))
        if type_ not in (VARIANT, UNKNOWN):
            found = table.scan(f"c{place}_bare is null", columns=["id"]).to_arrow()
            assert found["id"].to_pylist() == [0, 1], type_


@pytest.mark.parametrize("file_format", FORMATS)
def test_floats_keep_their_bits(catalog: Any, file_format: str) -> None:
    table = create(catalog, "id bigint, f float, d double", file_format)
    values = [math.nan, -0.0, 0.0, math.inf, -math.inf, None]
    rows = pa.table(
        {"id": range(len(values)), "f": pa.array(values, pa.float32()), "d": pa.array(values, pa.float64())}
    )
    table.append(rows)
    found = table.scan().to_arrow()
    for name in ("f", "d"):
        assert [str(value) for value in found[name].to_pylist()] == [str(value) for value in values]


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_map_may_have_structs_for_keys(catalog: Any, file_format: str) -> None:
    key = Struct((Field(0, "a", INT, True), Field(0, "b", List(0, STRING))))
    schema = Schema(fields=fresh_ids((Field(0, "id", LONG), Field(0, "m", Map(0, key, 0, Map(0, DATE, 0, INT))))))
    table = create(catalog, schema, file_format)
    pairs = [({"a": 1, "b": ["x", None]}, [(dt.date(2026, 1, 1), 5)]), ({"a": 2, "b": None}, None)]
    rows = pa.Table.from_pylist([{"id": 1, "m": pairs}, {"id": 2, "m": None}], arrow_schema(table.schema))
    table.append(rows)
    same(table.scan().to_arrow(), rows)


EXTREMES: list[tuple[Type, list[Any]]] = [
    (TIMESTAMP, [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)]),
    (TIMESTAMPTZ, [dt.datetime(1, 1, 1, tzinfo=dt.UTC), dt.datetime(9999, 12, 31, tzinfo=dt.UTC)]),
]


@pytest.mark.parametrize(("type_", "values"), EXTREMES, ids=[str(type_) for type_, _ in EXTREMES])
@pytest.mark.parametrize("file_format", FORMATS)
def test_times_far_from_now_come_back_or_are_refused(
    catalog: Any, tmp_path: Path, file_format: str, type_: Type, values: list[Any]
) -> None:
    fields = (Field(0, "id", LONG), Field(0, "s", Struct((Field(0, "far", type_),))))
    table = create(catalog, Schema(fields=fresh_ids(fields)), file_format)
    made = [{"id": i, "s": {"far": value}} for i, value in enumerate(values)]
    rows = pa.Table.from_pylist(made, arrow_schema(table.schema))
    if file_format != "orc":
        table.append(rows)
        same(table.scan().to_arrow(), rows)
        return
    with pytest.raises(InputError, match=r"'s\.far'.*out of range"):
        table.append(rows)
    assert files(tmp_path, file_format) == []
    assert table.scan().to_arrow().num_rows == 0


@pytest.mark.parametrize("file_format", FORMATS)
def test_nanoseconds_at_both_ends_of_their_range_come_back(catalog: Any, file_format: str) -> None:
    table = create(catalog, "id bigint, t timestamp_ns, z timestamptz_ns", file_format)
    ends = [-(2**63) + 10**9, 2**63 - 1 - 10**9]
    made = [{"id": i, "t": end, "z": end} for i, end in enumerate(ends)]
    rows = pa.Table.from_pylist(made, arrow_schema(table.schema))
    table.append(rows)
    same(table.scan().to_arrow(), rows)


_NONE, _SOME = Field(0, "none", UNKNOWN), Field(0, "some", INT)
# What holds values of no type, and the formats that can store it.
OF_NO_TYPE: list[tuple[str, Type, list[Any], set[str]]] = [
    ("list", List(0, UNKNOWN), [[None, None], [], None], set()),
    ("map", Map(0, STRING, 0, UNKNOWN), [[("a", None)], [], None], {"avro"}),
    ("struct", Struct((_NONE,)), [{"none": None}, None], {"orc", "avro"}),
    ("list of structs", List(0, Struct((_NONE,))), [[{"none": None}, None], [], None], {"avro"}),
    ("some", List(0, Struct((_NONE, _SOME))), [[{"none": None, "some": 1}, None], [], None], {"parquet", "avro"}),
]


@pytest.mark.parametrize("case", OF_NO_TYPE, ids=[name for name, *_ in OF_NO_TYPE])
@pytest.mark.parametrize("file_format", FORMATS)
def test_what_holds_values_of_no_type_comes_back_or_is_refused_by_name(
    catalog: Any, tmp_path: Path, file_format: str, case: tuple[str, Type, list[Any], set[str]]
) -> None:
    _, type_, values, formats = case
    schema = Schema(fields=fresh_ids((Field(0, "id", LONG), Field(0, "s", Struct((Field(0, "odd", type_), _SOME))))))
    table = create(catalog, schema, file_format)
    made = [{"id": i, "s": {"odd": value, "some": 1}} for i, value in enumerate(values)]
    rows = pa.Table.from_pylist(made, arrow_schema(table.schema))
    if file_format in formats:
        table.append(rows)
        same(table.scan().to_arrow(), rows)
        return
    with pytest.raises(UnsupportedError, match=r"column 's\.odd"):
        table.append(rows)
    assert files(tmp_path, file_format) == []


NEW_TYPES = [type_ for type_, _ in VALUES if since(type_) > 2]


@pytest.mark.parametrize("type_", NEW_TYPES, ids=[str(type_) for type_ in NEW_TYPES])
@pytest.mark.parametrize("version", [1, 2])
def test_a_type_that_a_version_does_not_have_is_refused_by_name(catalog: Any, version: int, type_: Type) -> None:
    schema = Schema(fields=fresh_ids((Field(0, "id", LONG), Field(0, "s", Struct((Field(0, "late", type_),))))))
    with pytest.raises(IcefloeError, match=r"s\.late"):
        create(catalog, schema, "avro", version)


@pytest.mark.parametrize("file_format", FORMATS)
def test_names_that_a_format_does_not_allow_come_back(catalog: Any, file_format: str) -> None:
    names = ["a b", "9", "é", "dash-ed", "x" * 300]
    inner = Struct(tuple(Field(0, name, INT) for name in names))
    fields = (Field(0, "id", LONG), *(Field(0, name, INT) for name in names), Field(0, "in ner", inner))
    table = create(catalog, Schema(fields=fresh_ids(fields)), file_format)
    row = {name: place for place, name in enumerate(names)}
    rows = pa.Table.from_pylist([{"id": 1, **row, "in ner": row}], arrow_schema(table.schema))
    table.append(rows)
    same(table.scan().to_arrow(), rows)


def test_names_that_are_one_name_in_avro_are_refused(catalog: Any, tmp_path: Path) -> None:
    table = create(catalog, Schema(fields=fresh_ids((Field(0, "a b", INT), Field(0, "a_x20b", INT)))), "avro")
    with pytest.raises(UnsupportedError, match="'a b' and 'a_x20b'"):
        table.append(pa.Table.from_pylist([{"a b": 1, "a_x20b": 2}], arrow_schema(table.schema)))
    assert files(tmp_path, "avro") == []


def test_a_format_that_nobody_writes_is_refused_by_name(catalog: Any) -> None:
    with pytest.raises(IcefloeError, match="csv"):
        create(catalog, "id bigint", "csv")
    table = stored_by_others(create(catalog, "id bigint", "parquet"), {"write.format.default": "csv"})
    with pytest.raises(IcefloeError, match="csv"):
        table.append(pa.table({"id": [1]}))
