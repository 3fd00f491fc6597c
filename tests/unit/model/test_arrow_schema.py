"""What Arrow fields say beyond their types: ids, comments, defaults, shapes, variants; and rows of the newer types."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe.errors import InputError, UnsupportedError
from icefloe.model.arrow.conform import arrow_field, arrow_schema, arrow_type, conform, nulls, schema_from_arrow
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import (
    BINARY,
    INT,
    LONG,
    STRING,
    TIMESTAMP_NS,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    VARIANT,
    Field,
    Fixed,
    Geography,
    Geometry,
    List,
    Struct,
)

NAME, PARAMETERS = b"ARROW:extension:name", b"ARROW:extension:metadata"
PARTS = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])


def of(type_, required: bool = False) -> Schema:
    return Schema(fields=(Field(1, "c", type_, required),))


def shape(parameters: object) -> pa.Schema:
    text = parameters if isinstance(parameters, str) else json.dumps(parameters)
    return pa.schema([pa.field("g", pa.large_binary(), metadata={NAME: b"geoarrow.wkb", PARAMETERS: text})])


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        (TIMESTAMP_NS, pa.timestamp("ns")),
        (TIMESTAMPTZ_NS, pa.timestamp("ns", tz="UTC")),
        (UNKNOWN, pa.null()),
        (Geometry(), pa.binary()),
        (Geography("EPSG:4979", "karney"), pa.binary()),
        (VARIANT, PARTS),
    ],
    ids=str,
)
def test_the_types_of_version_3_have_their_arrow_types_and_come_back_if_asked_for(type_, expected):
    assert arrow_type(type_) == expected
    for schema in (of(type_), of(List(2, type_)), of(Struct((Field(2, "x", type_),)))):
        for version in (3, 4):
            assert schema_from_arrow(arrow_schema(schema), format_version=version) == schema
        with pytest.raises(
            UnsupportedError, match=r"column 'c(\.\w+)?': .* format version 3; ask for format_version=3"
        ):
            schema_from_arrow(arrow_schema(schema))


def test_nanoseconds_are_refused_with_both_ways_out():
    with pytest.raises(UnsupportedError, match="ask for format_version=3 or cast it to microseconds first"):
        schema_from_arrow(pa.schema({"at": pa.timestamp("ns", tz="Asia/Tokyo")}))
    with pytest.raises(UnsupportedError, match=r"'t': Arrow type time64.* cast it to microseconds first"):
        schema_from_arrow(pa.schema({"t": pa.time64("ns")}), format_version=3)


def test_comments_are_where_pyiceberg_has_them_and_defaults_are_json():
    field = Field(5, "a", STRING, True, "why", "x", "y")

    assert arrow_field(field).metadata == {
        b"PARQUET:field_id": b"5",
        b"doc": b"why",
        b"iceberg.initial-default": b'"x"',
        b"iceberg.write-default": b'"y"',
    }
    assert schema_from_arrow(pa.schema([arrow_field(field)])).fields == (field,)


def test_a_uuid_is_told_apart_from_fixed():
    schema = Schema(fields=(Field(1, "u", UUID), Field(2, "f", Fixed(16)), Field(3, "l", List(4, UUID))))

    buffer = io.BytesIO()
    pq.write_table(arrow_schema(schema).empty_table(), buffer)

    assert schema_from_arrow(arrow_schema(schema)) == schema
    assert schema_from_arrow(pq.read_schema(buffer)) == schema
    assert schema_from_arrow(pa.schema([pa.field("u", pa.binary(4), metadata={"iceberg.type": "uuid"})])).fields == (
        Field(1, "u", Fixed(4)),
    )


def test_shapes_are_marked_as_geoarrow_does():
    plane, globe = arrow_field(Field(1, "p", Geometry())), arrow_field(Field(2, "g", Geography("EPSG:4979", "karney")))

    assert plane.metadata[NAME] == globe.metadata[NAME] == b"geoarrow.wkb"
    assert json.loads(plane.metadata[PARAMETERS]) == {"crs": "OGC:CRS84"}
    assert json.loads(globe.metadata[PARAMETERS]) == {"crs": "EPSG:4979", "edges": "karney"}


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"crs": "EPSG:3857", "crs_type": "authority_code"}, Geometry("EPSG:3857")),
        ({"crs": "OGC:CRS84", "edges": "planar"}, Geometry()),
        ({"crs": "OGC:CRS84", "edges": "spherical"}, Geography()),
        ({"crs": {"type": "GeographicCRS", "id": {"authority": "EPSG", "code": 4326}}}, Geometry("EPSG:4326")),
    ],
)
def test_shapes_of_other_libraries_are_taken(parameters, expected):
    assert schema_from_arrow(shape(parameters), format_version=3).fields == (Field(1, "g", expected),)


@pytest.mark.parametrize(
    "parameters",
    ["", "{}", "not json", "[1]", "[" * 100_000, {"crs": None}, {"crs": {"type": "x"}}, {"crs": "a(b"}, {"crs": " "},
     {"crs": "OGC:CRS84", "edges": "flat"}],
    ids=range(10),
)  # fmt: skip
def test_shapes_without_a_reference_system_are_refused_by_name(parameters):
    with pytest.raises(InputError, match="'g'"):
        schema_from_arrow(shape(parameters), format_version=3)


class Marked(pa.ExtensionType):
    """An extension type as a library registers it."""

    def __init__(self, storage: pa.DataType, name: str, parameters: bytes) -> None:
        self._parameters = parameters
        super().__init__(storage, name)

    def __arrow_ext_serialize__(self) -> bytes:
        return self._parameters


def test_registered_extension_types_are_known_by_their_names():
    wkb = Marked(pa.binary(), "geoarrow.wkb", b'{"crs": "EPSG:3857"}')
    variant = Marked(PARTS, "arrow.parquet.variant", b"")
    other = Marked(pa.int8(), "somebody.else", b"")

    schema = schema_from_arrow(pa.schema({"g": wkb, "v": variant, "o": other, "u": pa.uuid()}), format_version=3)

    assert [field.type for field in schema.fields] == [Geometry("EPSG:3857"), VARIANT, INT, UUID]


def test_a_default_that_is_no_json_is_refused_by_name():
    with pytest.raises(InputError, match="'c'"):
        schema_from_arrow(pa.schema([pa.field("c", pa.int8(), metadata={"iceberg.write-default": "{"})]))


ROWS = [
    (TIMESTAMP_NS, pa.array([1, None], pa.timestamp("us")), [1_000, None]),
    (TIMESTAMPTZ_NS, pa.array([7], pa.timestamp("ns", tz="Asia/Tokyo")), [7]),
    (Geometry(), pa.array([b"\x01"], pa.large_binary()), [b"\x01"]),
    (Geography(), pa.array([None], pa.binary()), [None]),
    (UNKNOWN, pa.nulls(2), [None, None]),
]


@pytest.mark.parametrize(("type_", "values", "expected"), ROWS, ids=[str(row[0]) for row in ROWS])
def test_rows_of_the_newer_types_conform(type_, values, expected):
    fitted = conform(pa.table({"c": values}), of(type_))["c"]

    assert fitted.type == arrow_type(type_)
    plain = fitted.cast(pa.int64()) if pa.types.is_timestamp(fitted.type) else fitted
    assert plain.to_pylist() == expected


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (TIMESTAMP_NS, pa.array([1], pa.timestamp("us", tz="UTC"))),
        (TIMESTAMP_NS, pa.array([2**60], pa.timestamp("us"))),
        (Geometry(), pa.array(["POINT (0 0)"])),
        (UNKNOWN, pa.array([1])),
        (VARIANT, pa.array([b"x"])),
        (VARIANT, pa.array([{"metadata": b"x"}])),
        (VARIANT, pa.array([{"metadata": b"x", "value": "text"}])),
        (VARIANT, pa.array([{"metadata": b"x", "value": None}, {"metadata": b"x", "value": b"y"}])),
        (VARIANT, pa.array([{"metadata": b"x", "value": b"y", "typed_value": 1}])),
    ],
)
def test_rows_that_the_newer_types_cannot_hold_are_refused_by_the_columns_name(type_, values):
    with pytest.raises(InputError, match="column 'c'"):
        conform(pa.table({"c": values}), of(type_))


def test_variants_conform_and_nulls_among_them_can_be_written():
    given = pa.array(
        [{"value": b"v", "metadata": b"m"}, None], pa.struct({"value": pa.large_binary(), "metadata": pa.binary_view()})
    )

    for rows in (pa.table({"c": given}), pa.table({"c": pa.nulls(2)}), pa.table({"c": given}).slice(1)):
        fitted = conform(rows, of(VARIANT))
        fitted.validate(full=True)
        pq.write_table(fitted, io.BytesIO())  # refuses nulls in required fields, even below a null
    assert conform(pa.table({"c": given}), of(VARIANT))["c"].to_pylist() == [{"metadata": b"m", "value": b"v"}, None]


@pytest.mark.parametrize("type_", [VARIANT, UNKNOWN, Geometry(), TIMESTAMP_NS, Struct((Field(2, "v", VARIANT, True),))])
def test_nulls_are_those_of_the_type(type_):
    array = nulls(type_, 3)

    array.validate(full=True)
    assert array.type == arrow_type(type_)
    assert array.to_pylist() == [None, None, None]


def test_what_is_no_variant_stays_a_struct():
    assert schema_from_arrow(pa.schema({"c": PARTS})).fields[0].type == Struct(
        (Field(2, "metadata", BINARY, True), Field(3, "value", BINARY, True))
    )
    assert schema_from_arrow(pa.schema({"c": pa.dictionary(pa.int8(), pa.int64())})).fields == (Field(1, "c", LONG),)
