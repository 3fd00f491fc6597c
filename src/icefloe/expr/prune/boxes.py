"""Files skipped by a box around their shapes (spec: Scan Planning; V4 proposal).

The bounds of a geometry or geography column are corners of a box around all shapes of a file. A box of a geography may
reach around the antimeridian: then its least x is greater than its greatest x.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefloe.errors import InputError
from icefloe.model.corners import coordinates
from icefloe.model.entries import BOUNDS, column_key, stat
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Geography, is_shape

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A box of x and y that shapes of a column are looked for in; edges belong to it."""

    column: str
    x_min: float
    y_min: float
    x_max: float
    y_max: float

    def __str__(self) -> str:
        return f"the box x {self.x_min} to {self.x_max}, y {self.y_min} to {self.y_max} of {self.column}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnBox:
    """A box for a column of a schema; ``wraps`` if boxes of the column may reach around the antimeridian."""

    field_id: int
    box: Box
    wraps: bool

    def is_outside(self, rows: pa.Table) -> Flags:
        """Which entries have only shapes outside the box, for certain."""
        names = [stat(measure, column_key(self.field_id)) for measure in BOUNDS]
        if any(name not in rows.column_names for name in names):
            return np.zeros(rows.num_rows, np.bool_)
        low, high = (coordinates(rows[name].combine_chunks()) for name in names)
        box = self.box
        # Comparisons with NaN, an unknown bound, are false.
        beside = (low[:, 1] > box.y_max) | (high[:, 1] < box.y_min)
        left, right = high[:, 0] < box.x_min, low[:, 0] > box.x_max
        around = low[:, 0] > high[:, 0]
        in_gap = left & right if self.wraps else np.zeros(rows.num_rows, np.bool_)
        asked_around = box.x_min > box.x_max
        if asked_around:
            return np.asarray(beside | (~around & left & right), np.bool_)
        return np.asarray(beside | np.where(around, in_gap, left | right), np.bool_)


def bind_box(box: Box, schema: Schema) -> ColumnBox:
    """The box for a column of a schema; InputError if it is not a column of shapes, or the box is empty."""
    field = schema.field(box.column)
    if field.id not in schema.measured or not is_shape(field.type):
        raise InputError(
            f"column {box.column!r} of type {field.type} has no bounding boxes; name a geometry or geography column"
            " that is not inside a list or map",
            field=box.column,
        )
    wraps = isinstance(field.type, Geography)
    corners = (box.x_min, box.y_min, box.x_max, box.y_max)
    if any(math.isnan(corner) for corner in corners) or box.y_min > box.y_max:
        raise InputError(
            f"column {box.column!r}: {corners} is no box: give x_min, y_min, x_max, y_max", field=box.column
        )
    if box.x_min > box.x_max and not wraps:
        raise InputError(
            f"column {box.column!r}: x_min {box.x_min} is greater than x_max {box.x_max}, which only a box of a"
            f" geography may have; the column is a {field.type}",
            field=box.column,
        )
    return ColumnBox(field_id=field.id, box=box, wraps=wraps)
