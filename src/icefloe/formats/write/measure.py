"""Measures of the columns of a file: counts, bounds and sizes (spec: Manifests).

The statistics of Parquet files are in their footers. For other formats the writer measures the rows that are added,
with Arrow's kernels. Bounds do not include NaN, and have full length until a metrics mode truncates them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.model.corners import enclosing_box, point_box
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import DOUBLE, FLOAT, UNKNOWN, Geography, Geometry, has_value_sizes
from icefloe.transforms.source_columns import column_at, column_path

Paths = Mapping[int, tuple[str, ...]]  # the names that lead to a column through structs, by field id


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """One column of one file; ``values`` includes nulls and NaNs. Bounds are not truncated, none without a value."""

    values: int
    nulls: int
    nans: int | None = None  # none for a column that cannot hold any
    lower: pa.Scalar | None = None
    upper: pa.Scalar | None = None
    value_bytes: int | None = None  # of all values together, uncompressed; none for a type of fixed width


def float_paths(schema: Schema) -> Paths:
    """The columns that may hold NaN."""
    floats = [id_ for id_, column in schema.measured.items() if column.type in (FLOAT, DOUBLE)]
    return {id_: column_path(schema, id_) for id_ in floats}


def count_nans(rows: pa.RecordBatch, floats: Paths) -> dict[int, int]:
    """How many NaNs each floating-point column has, by field id."""
    counts = {id_: pc.sum(pc.is_nan(column_at(rows, path))).as_py() for id_, path in floats.items()}
    return {id_: 0 if count is None else count for id_, count in counts.items()}


def sized_paths(schema: Schema) -> Paths:
    """The columns whose values have different sizes."""
    sized = [id_ for id_, column in schema.measured.items() if has_value_sizes(column.type)]
    return {id_: column_path(schema, id_) for id_ in sized}


def count_bytes(rows: pa.RecordBatch, sized: Paths) -> dict[int, int]:
    """How many bytes the values of each of these columns have together, by field id."""
    return {id_: _bytes_of(column_at(rows, path)) for id_, path in sized.items()}


def _bytes_of(array: pa.Array) -> int:
    return int(pc.sum(pc.binary_length(array), min_count=0).as_py())


class Measurer:
    """Measures the columns of a schema that are not inside lists or maps, or only some of them, batch by batch.

    >>> from icefloe.model.text.ddl import parse_ddl
    >>> measurer = Measurer(parse_ddl("x double"))
    >>> measurer.add(pa.record_batch({"x": [1.5, None, float("nan"), -2.0]}))
    >>> [(m.values, m.nulls, m.nans, m.lower.as_py(), m.upper.as_py()) for m in measurer.measures().values()]
    [(4, 1, 1, -2.0, 1.5)]
    """

    def __init__(self, schema: Schema, *, only: frozenset[int] | None = None) -> None:
        self._columns = {
            id_: (_Shapes if isinstance(column.type, (Geometry, Geography)) else _Column)(
                path=column_path(schema, id_),
                nans=0 if column.type in (FLOAT, DOUBLE) else None,
                value_bytes=0 if has_value_sizes(column.type) else None,
            )
            for id_, column in schema.measured.items()
            if column.type != UNKNOWN and (only is None or id_ in only)
        }

    def add(self, rows: pa.RecordBatch) -> None:
        """Measure more rows; columns are looked up by their names in the schema."""
        for column in self._columns.values():
            column.add(column_at(rows, column.path))

    def measures(self) -> Mapping[int, Measures]:
        """The measures so far, by field id."""
        return {id_: column.measures() for id_, column in self._columns.items()}


class _Column:
    """A column with the minimum and maximum of each batch, from which those of the file are computed at the end."""

    def __init__(self, *, path: tuple[str, ...], nans: int | None, value_bytes: int | None) -> None:
        self.path = path
        self.nans = nans
        self.value_bytes = value_bytes
        self.values = 0
        self.nulls = 0
        self.lowers: list[pa.Scalar] = []
        self.uppers: list[pa.Scalar] = []

    def add(self, array: pa.Array) -> None:
        self.values += len(array)
        self.nulls += array.null_count
        if self.value_bytes is not None:
            self.value_bytes += _bytes_of(array)
        if self.nans is not None:
            is_nan = pc.is_nan(array)
            nans = pc.sum(is_nan).as_py() or 0
            self.nans += nans
            if nans > 0:
                array = array.filter(pc.fill_null(pc.invert(is_nan), False))
        if array.null_count < len(array):
            self.add_bounds(array)

    def add_bounds(self, array: pa.Array) -> None:
        lower, upper = extremes(array)
        self.lowers.append(lower)
        self.uppers.append(upper)

    def measures(self) -> Measures:
        known = len(self.lowers) > 0
        if len(self.lowers) > 1:  # keep the lists short if measures are requested repeatedly
            self.lowers, self.uppers = self.joined()
        return Measures(
            values=self.values,
            nulls=self.nulls,
            nans=self.nans,
            lower=self.lowers[0] if known else None,
            upper=self.uppers[0] if known else None,
            value_bytes=self.value_bytes,
        )

    def joined(self) -> tuple[list[pa.Scalar], list[pa.Scalar]]:
        return [_least(self.lowers)], [_greatest(self.uppers)]


class _Shapes(_Column):
    """A column of shapes; it has bounds only if all are points, as other shapes may reach beyond their corners."""

    def __init__(self, *, path: tuple[str, ...], nans: int | None, value_bytes: int | None) -> None:
        super().__init__(path=path, nans=nans, value_bytes=value_bytes)
        self._are_points = True

    def add_bounds(self, array: pa.Array) -> None:
        box = point_box(array) if self._are_points else None
        if box is None:
            self._are_points, self.lowers, self.uppers = False, [], []
        else:
            self.lowers.append(box[0])
            self.uppers.append(box[1])

    def joined(self) -> tuple[list[pa.Scalar], list[pa.Scalar]]:
        lower, upper = enclosing_box(pa.array(self.lowers, pa.binary()), pa.array(self.uppers, pa.binary()))
        return [lower], [upper]


def _least(scalars: list[pa.Scalar]) -> pa.Scalar:
    return extremes(pa.array(scalars, scalars[0].type))[0]


def _greatest(scalars: list[pa.Scalar]) -> pa.Scalar:
    return extremes(pa.array(scalars, scalars[0].type))[1]


def extremes(array: pa.Array) -> tuple[pa.Scalar, pa.Scalar]:
    """The least and the greatest value of an array; bytes are compared as unsigned ones."""
    ends = pc.min_max(array)
    return ends["min"], ends["max"]
