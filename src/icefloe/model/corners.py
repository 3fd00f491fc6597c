"""Bounds of shapes: the corners of a box, as bytes and as coordinates (spec: Appendix D).

The bytes of a corner are its x, y and, if it has them, z and m as little-endian doubles; z is NaN if there is only m.
V4 stores the coordinates in a struct (V4 proposal). A box of a geography may cross the antimeridian: then its lower x
is greater than its upper x.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Coordinates = npt.NDArray[np.float64]  # a row for each corner: x, y, z, m; NaN if it lacks one

AXES = ("x", "y", "z", "m")
REQUIRED_AXES = 2
_BYTES = 8
_POINT = np.dtype([("order", "u1"), ("kind", "<u4"), ("place", "<f8", (REQUIRED_AXES,))])  # in WKB
_POINT_KIND = 1


def coordinates(corners: pa.Array) -> Coordinates:
    """Corners given as bytes; all NaN if a corner is null or no corner.

    >>> coordinates(pa.array([corner_bytes(np.array([[1.0, 2.0, np.nan, np.nan]]))[0].as_py(), None])).tolist()
    [[1.0, 2.0, nan, nan], [nan, nan, nan, nan]]
    """
    values = np.full((len(corners), len(AXES)), np.nan)
    lengths = np.asarray(pc.fill_null(pc.binary_length(corners), 0))
    for width in range(REQUIRED_AXES, len(AXES) + 1):
        chosen = lengths == width * _BYTES
        if chosen.any():
            together = b"".join(corners.filter(pa.array(chosen)).to_pylist())
            values[chosen, :width] = np.frombuffer(together, "<f8").reshape(-1, width)
    values[np.isnan(values[:, :REQUIRED_AXES]).any(axis=1)] = np.nan
    return values


def point_box(shapes: pa.Array) -> tuple[pa.Scalar, pa.Scalar] | None:
    """The corners of the box around points in WKB; none if a shape is not a point of x and y.

    >>> lower, upper = point_box(pa.array([bytes.fromhex("0101000000000000000000f03f0000000000000040")]))
    >>> coordinates(pa.array([lower, upper], pa.binary())).tolist()
    [[1.0, 2.0, nan, nan], [1.0, 2.0, nan, nan]]
    """
    kept = shapes.drop_null()
    if len(kept) == 0 or not np.all(np.asarray(pc.binary_length(kept)) == _POINT.itemsize):
        return None
    stored = np.frombuffer(b"".join(kept.to_pylist()), np.uint8).reshape(-1, _POINT.itemsize)
    little = stored[:, 0] == 1
    places = np.full((len(kept), REQUIRED_AXES), np.nan)
    for is_little, layout in ((little, _POINT), (~little, _POINT.newbyteorder(">"))):
        points = np.ascontiguousarray(stored[is_little]).view(layout)[:, 0]
        if np.any(points["kind"] != _POINT_KIND) or np.any(points["order"] > 1):
            return None
        places[is_little] = points["place"]
    if np.isnan(places).any():  # an empty point
        return None
    ends = np.full((2, len(AXES)), np.nan)
    ends[:, :REQUIRED_AXES] = places.min(axis=0), places.max(axis=0)
    lower, upper = corner_bytes(ends)
    return lower, upper


def corner_bytes(values: Coordinates) -> pa.Array:
    """Corners as bytes; null without x and y."""
    known = ~np.isnan(values)
    valid = known[:, :REQUIRED_AXES].all(axis=1)
    width = np.where(known[:, 3], 4, np.where(known[:, 2], 3, REQUIRED_AXES)) * valid
    stored = np.ascontiguousarray(values, "<f8")[np.arange(len(AXES)) < width[:, None]]
    offsets = np.concatenate(([0], np.cumsum(width * _BYTES))).astype(np.int32)
    plain = pa.Array.from_buffers(
        pa.binary(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(stored.tobytes())], 0
    )
    return pc.if_else(pa.array(valid), plain, None)


def corner_structs(corners: pa.Array, type_: pa.StructType) -> pa.Array:
    """Corners given as bytes, as structs of their coordinates; null if a corner is null or no corner."""
    values = coordinates(corners)
    absent = np.isnan(values[:, 0])
    columns = []
    for axis, field in enumerate(type_):
        missing = np.isnan(values[:, axis])
        # Parquet refuses nulls in required members even below a null struct, so those hold any value there.
        column = np.where(missing, 0.0, values[:, axis])
        columns.append(pa.array(column, mask=missing if field.nullable else None))
    return pa.StructArray.from_arrays(columns, fields=list(type_), mask=pa.array(absent))


def corners_of(columns: dict[str, pa.Array], length: int) -> pa.Array:
    """Corners as bytes from columns of coordinates by axis; null without x and y."""
    values = np.full((length, len(AXES)), np.nan)
    for index, axis in enumerate(AXES):
        if (column := columns.get(axis)) is not None:
            values[:, index] = np.asarray(pc.fill_null(column.cast(pa.float64()), np.nan))
    return corner_bytes(values)


def enclosing_box(lower: pa.Array, upper: pa.Array) -> tuple[pa.Scalar, pa.Scalar]:
    """The corners of the box around boxes; null if a box is unknown or reaches around the antimeridian.

    An axis that one box lacks is unknown of all.
    """
    low, high = coordinates(lower), coordinates(upper)
    if len(low) == 0 or np.isnan(low[:, 0]).any() or np.isnan(high[:, 0]).any() or (low[:, 0] > high[:, 0]).any():
        none: Any = pa.scalar(None, pa.binary())
        return none, none
    return corner_bytes(low.min(axis=0)[None])[0], corner_bytes(high.max(axis=0)[None])[0]
