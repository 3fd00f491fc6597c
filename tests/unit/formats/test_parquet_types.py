"""Columns of the newer types as Parquet stores them."""

from __future__ import annotations

import pickle
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe.errors import UnsupportedError
from icefloe.formats.parquet.types import ShapeType
from icefloe.formats.write.write_files import write_files
from icefloe.io.local import LocalFileIO
from icefloe.model.arrow.conform import arrow_schema, conform
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import (
    LONG,
    STRING,
    TIMESTAMP_NS,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    VARIANT,
    Field,
    Geography,
    Geometry,
    List,
    Map,
    Struct,
    Type,
)

VARIANT_NULL = {"metadata": b"\x01\x00\x00", "value": b"\x00"}


def point(*at: float) -> bytes:
    kind = {2: 1, 3: 1001, 4: 3001}[len(at)]
    return struct.pack(f"<BI{len(at)}d", 1, kind, *at)


def write(folder: Path, schema: Schema, rows: list[dict[str, Any]], *cuts: int) -> tuple[dict[str, Any], Any]:
    plain = pa.schema([field.remove_metadata() for field in arrow_schema(schema)])
    [batch] = conform(pa.Table.from_pylist(rows, schema=plain), schema).to_batches()
    ends = [*cuts, len(rows)]
    parts = [batch.slice(start, end - start) for start, end in zip([0, *cuts], ends, strict=True)]
    [entry] = write_files(LocalFileIO(), iter(parts), schema=schema, data_location=f"file://{folder}").to_pylist()
    return entry, pq.ParquetFile(entry["location"].removeprefix("file://"))


def logical_types(file: Any) -> dict[str, str]:
    columns = [file.schema.column(i) for i in range(len(file.schema))]
    return {column.path: str(column.logical_type) for column in columns}


def test_shapes_have_their_logical_types_at_every_depth(tmp_path: Path) -> None:
    globe = Geography("OGC:CRS84", "spherical")
    schema = Schema(
        fields=(
            Field(1, "g", Geometry("srid:5070")),
            Field(2, "l", List(3, globe)),
            Field(4, "m", Map(5, STRING, 6, Geometry())),
            Field(7, "s", Struct((Field(8, "g", Geometry(), True), Field(9, "n", LONG)))),
        )
    )
    rows = [
        {"g": point(1, 2), "l": [point(0, 0), None], "m": [("k", point(1, 1))], "s": {"g": point(3, 3), "n": 1}},
        {"g": None, "l": None, "m": None, "s": None},
        {"g": point(-1, 7), "l": [], "m": [], "s": {"g": point(4, 4), "n": None}},
    ]
    _, file = write(tmp_path, schema, rows, 1)
    assert logical_types(file) == {
        "g": "Geometry(crs=srid:5070)",
        "l.list.element": "Geography(crs=, algorithm=spherical)",
        "m.key_value.key": "String",
        "m.key_value.value": "Geometry(crs=)",
        "s.g": "Geometry(crs=)",
        "s.n": "None",
    }
    assert file.read().to_pylist() == rows


def test_bounds_of_shapes_are_their_corners(tmp_path: Path) -> None:
    schema = Schema(fields=(Field(1, "g", Geometry()), Field(2, "h", Geography())))
    rows: list[dict[str, Any]] = [
        {"g": point(1, 2), "h": point(0, 0)},
        {"g": None, "h": None},
        {"g": point(-3, 8), "h": None},
    ]
    entry, _ = write(tmp_path, schema, rows)
    assert struct.unpack("<2d", entry["lower_bound:1"]) == (-3, 2)
    assert struct.unpack("<2d", entry["upper_bound:1"]) == (1, 8)
    assert (entry["value_count:1"], entry["null_value_count:1"]) == (3, 1)
    assert struct.unpack("<2d", entry["lower_bound:2"]) == struct.unpack("<2d", entry["upper_bound:2"]) == (0, 0)
    assert entry["null_value_count:2"] == 2
    high, _ = write(tmp_path, schema, [{"g": point(1, 2, 3)}, {"g": point(0, 5, -1)}])
    assert struct.unpack("<3d", high["lower_bound:1"]) == (0, 2, -1)
    mixed, _ = write(tmp_path, schema, [{"g": b"no shape"}, {"g": point(0, 5)}])
    assert mixed["lower_bound:1"] is None


def test_columns_of_unknown_type_are_left_out_at_every_depth(tmp_path: Path) -> None:
    inner = Struct((Field(4, "u", UNKNOWN), Field(5, "n", LONG)))
    schema = Schema(
        fields=(Field(1, "u", UNKNOWN), Field(2, "id", LONG), Field(3, "s", inner), Field(6, "l", List(7, inner_of(8))))
    )
    rows = [
        {"u": None, "id": 1, "s": {"u": None, "n": 2}, "l": [{"u": None, "n": 3}, None]},
        {"u": None, "id": 2, "s": None, "l": None},
    ]
    entry, file = write(tmp_path, schema, rows)
    assert file.read().to_pylist() == [
        {"id": 1, "s": {"n": 2}, "l": [{"n": 3}, None]},
        {"id": 2, "s": None, "l": None},
    ]
    assert (entry["lower_bound:5"], entry["null_value_count:5"]) == (2, 1)
    assert not any(name.endswith((":1", ":4")) for name in entry)


def inner_of(id_: int) -> Struct:
    return Struct((Field(id_, "u", UNKNOWN), Field(id_ + 1, "n", LONG)))


def test_nanoseconds_and_variants(tmp_path: Path) -> None:
    schema = Schema(fields=(Field(1, "a", TIMESTAMP_NS), Field(2, "b", TIMESTAMPTZ_NS), Field(3, "v", VARIANT)))
    rows = [{"a": 1, "b": -1, "v": VARIANT_NULL}, {"a": None, "b": 5, "v": None}]
    entry, file = write(tmp_path, schema, rows)
    assert [str(type_) for type_ in file.schema_arrow.types[:2]] == ["timestamp[ns]", "timestamp[ns, tz=UTC]"]
    assert file.read()["v"].to_pylist() == [VARIANT_NULL, None]
    assert (entry["lower_bound:1"].value, entry["lower_bound:2"].value, entry["upper_bound:2"].value) == (1, -1, 5)
    assert file.schema_arrow.field("v").metadata == {b"PARQUET:field_id": b"3"}


@pytest.mark.parametrize(
    ("type_", "name"),
    [
        (Geography("OGC:CRS84", "vincenty"), "'x'.*spherical"),
        (List(2, UNKNOWN), "'x'.*no place"),
        (Map(2, STRING, 3, UNKNOWN), "'x'.*no place"),
        (Struct((Field(2, "u", UNKNOWN),)), "'x'.*no place"),
        (UNKNOWN, "nothing to put"),
    ],
)
def test_what_a_file_cannot_hold_is_refused_before_one_is_made(tmp_path: Path, type_: Type, name: str) -> None:
    schema = Schema(fields=(Field(1, "x", type_),))
    rows = arrow_schema(schema).empty_table()
    one = pa.Table.from_arrays([pa.nulls(1, field.type) for field in rows.schema], schema=rows.schema)
    with pytest.raises(UnsupportedError, match=name):
        write_files(LocalFileIO(), one, schema=schema, data_location=f"file://{tmp_path}")
    assert list(tmp_path.iterdir()) == []


def test_a_shape_type_can_be_sent_to_another_process() -> None:
    type_ = ShapeType(b'{"crs": "OGC:CRS84"}')
    assert pickle.loads(pickle.dumps(type_)) == type_
