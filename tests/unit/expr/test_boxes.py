"""Boxes around shapes: their bytes and structs, the box around boxes, and files outside a box, against brute force."""

from __future__ import annotations

import math
import struct

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from icefloe.expr.prune.boxes import Box, bind_box
from icefloe.model.corners import AXES, coordinates, corner_bytes, corner_structs, corners_of, enclosing_box, point_box
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field, Geography, Geometry

NUMBERS = st.integers(-4, 4).map(float)
OPTIONAL = st.one_of(st.none(), NUMBERS)
CORNER = st.one_of(st.none(), st.tuples(NUMBERS, NUMBERS, OPTIONAL, OPTIONAL))
STRUCT = pa.struct([pa.field(axis, pa.float64(), nullable=i > 1) for i, axis in enumerate(AXES)])


def packed(corner: tuple[float | None, ...] | None) -> bytes | None:
    """The bytes of a corner, by the specification."""
    if corner is None:
        return None
    x, y, z, m = corner
    known = [x, y]
    if m is not None:
        known += [math.nan if z is None else z, m]
    elif z is not None:
        known.append(z)
    return struct.pack(f"<{len(known)}d", *known)


@given(st.lists(CORNER, max_size=6))
def test_corners_survive_as_bytes_and_as_structs(corners: list[tuple[float | None, ...] | None]) -> None:
    stored = pa.array([packed(corner) for corner in corners], pa.binary())
    again = corner_bytes(coordinates(stored))
    assert again.to_pylist() == stored.to_pylist()
    structs = corner_structs(stored, STRUCT)
    expected = [None if corner is None else dict(zip(AXES, corner, strict=True)) for corner in corners]
    assert structs.to_pylist() == expected
    columns = {axis: structs.flatten()[i] for i, axis in enumerate(AXES)}
    assert corners_of(columns, len(corners)).to_pylist() == stored.to_pylist()


@given(st.binary(max_size=40))
def test_bytes_of_another_length_are_no_corner(data: bytes) -> None:
    known = coordinates(pa.array([data], pa.binary()))
    if len(data) not in (16, 24, 32):
        assert np.isnan(known).all()


BOX = st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS).map(
    lambda ends: (min(ends[0], ends[2]), min(ends[1], ends[3]), max(ends[0], ends[2]), max(ends[1], ends[3]))
)


def pair(box: tuple[float, float, float, float]) -> tuple[bytes, bytes]:
    return struct.pack("<2d", *box[:2]), struct.pack("<2d", *box[2:])


@given(st.lists(BOX, min_size=1, max_size=5))
def test_the_box_around_boxes_is_the_smallest_one(boxes: list[tuple[float, float, float, float]]) -> None:
    lower, upper = (pa.array(list(corners), pa.binary()) for corners in zip(*map(pair, boxes), strict=True))
    low, high = enclosing_box(lower, upper)
    x_min, y_min, x_max, y_max = zip(*boxes, strict=True)
    assert (low.as_py(), high.as_py()) == pair((min(x_min), min(y_min), max(x_max), max(y_max)))


@given(st.lists(st.tuples(NUMBERS, NUMBERS, st.booleans()), min_size=1, max_size=5))
def test_the_box_around_points_is_the_smallest_one(points: list[tuple[float, float, bool]]) -> None:
    stored = [struct.pack("<BIdd" if little else ">BIdd", little, 1, x, y) for x, y, little in points]
    box = point_box(pa.array([*stored, None], pa.binary()))
    assert box is not None
    x, y, _ = zip(*points, strict=True)
    assert tuple(corner.as_py() for corner in box) == pair((min(x), min(y), max(x), max(y)))


def test_what_is_no_point_has_no_box() -> None:
    empty = struct.pack("<BIdd", 1, 1, math.nan, math.nan)
    line = struct.pack("<BIIdd", 1, 2, 1, 0.0, 0.0)
    other = struct.pack("<BIdd", 1, 1001, 0.0, 0.0)
    for shape in (empty, line, other, b"x", b"\x07" + bytes(20)):
        assert point_box(pa.array([shape], pa.binary())) is None
    assert point_box(pa.array([None], pa.binary())) is None


X = [n / 2 for n in range(-9, 10)]


def xs(low: float, high: float) -> set[float]:
    """The places of a range, which reaches around the antimeridian if it ends before it begins."""
    return {x for x in X if (low <= x <= high if low <= high else x >= low or x <= high)}


@given(st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS), st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS), st.booleans())
def test_a_file_is_outside_a_box_exactly_if_they_have_no_place_in_common(
    file: tuple[float, ...], asked: tuple[float, ...], is_globe: bool
) -> None:
    (left, y1, right, y2), (x_min, y3, x_max, y4) = file, asked
    if not is_globe:
        left, right, x_min, x_max = min(left, right), max(left, right), min(x_min, x_max), max(x_min, x_max)
    low, high, y_min, y_max = min(y1, y2), max(y1, y2), min(y3, y4), max(y3, y4)
    schema = Schema(fields=(Field(7, "place", Geography() if is_globe else Geometry()),))
    bound = bind_box(Box(column="place", x_min=x_min, y_min=y_min, x_max=x_max, y_max=y_max), schema)
    corners = pair((left, low, right, high))
    rows = pa.table({"lower_bound:7": pa.array([corners[0], None]), "upper_bound:7": pa.array([corners[1], None])})
    common = len(xs(left, right) & xs(x_min, x_max)) > 0 and max(low, y_min) <= min(high, y_max)
    assert bound.is_outside(rows).tolist() == [not common, False]
