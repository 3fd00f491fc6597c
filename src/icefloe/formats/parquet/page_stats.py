"""Statistics of runs of rows inside a row group, from its page index (spec: Appendix A, Parquet).

Pages of different columns end at different rows. A run of rows is inside one page of every requested column.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from icefloe.codecs.parquet.pages import PageBounds, Pages
from icefloe.formats.parquet.field_ids import Leaf
from icefloe.formats.parquet.pages import PageReader
from icefloe.formats.read.column_stats import NOTHING, Known, stat_columns
from icefloe.formats.read.data_file import Piece, Runs
from icefloe.formats.write import bounds
from icefloe.formats.write.bounds import Raw
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field, Geography, Geometry

_MOST_RUNS = 10_000
_PLAIN = {"BOOLEAN": "<?", "INT32": "<i", "INT64": "<q", "FLOAT": "<f", "DOUBLE": "<d"}
_FIXED = "FIXED_LEN_BYTE_ARRAY"


def page_runs(reader: PageReader, footer: Any, piece: Piece, schema: Schema, leaves: Mapping[int, Leaf]) -> Runs | None:
    """The runs of rows between page boundaries of the schema's columns in a row group, with their statistics.

    None if no column has page statistics, if there is only one run, or if there are too many.
    """
    columns = _measured_columns(reader, footer, piece.index, leaves)
    if len(columns) == 0:
        return None
    starts = np.unique(np.concatenate([column.pages.firsts for column in columns.values()]))
    if not 1 < len(starts) <= _MOST_RUNS:
        return None
    rows = np.diff(np.append(starts, piece.rows)).tolist()
    pieces = tuple(
        Piece(index=piece.index, start=piece.start + start, rows=count)
        for start, count in zip(starts.tolist(), rows, strict=True)
    )
    pages = {id_: (np.searchsorted(column.pages.firsts, starts, side="right") - 1) for id_, column in columns.items()}
    units = [
        _Run(rows=count, pages={id_: int(at[place]) for id_, at in pages.items()}, columns=columns)
        for place, count in enumerate(rows)
    ]
    statistics = {"record_count": pa.array(rows, pa.int64()), **stat_columns(units, schema, None)}
    return Runs(pieces=pieces, statistics=pa.table(statistics))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """The pages of one column of a row group."""

    leaf: Leaf
    physical: str
    length: int  # of every value, if they have one
    pages: Pages
    bounds: PageBounds


def _measured_columns(reader: PageReader, footer: Any, group: int, leaves: Mapping[int, Leaf]) -> dict[int, _Column]:
    """The columns whose pages have known places and bounds, by field id."""
    places = {id_: leaf for id_, leaf in leaves.items() if _is_measured(footer.row_group(group).column(leaf.index))}
    bounds_by_leaf = reader.bounds(group, [leaf.index for leaf in places.values()])
    columns = {}
    for id_, leaf in places.items():
        pages = reader.pages(group, leaf.index)
        if pages is not None and leaf.index in bounds_by_leaf:
            stored = footer.schema.column(leaf.index)
            columns[id_] = _Column(
                leaf=leaf,
                physical=stored.physical_type,
                length=stored.length,
                pages=pages,
                bounds=bounds_by_leaf[leaf.index],
            )
    return columns


def _is_measured(chunk: Any) -> bool:
    """Whether Arrow trusts the order of a column's bounds; where a row group has none, those of its pages are not."""
    return bool(chunk.has_column_index and chunk.statistics is not None and chunk.statistics.has_min_max)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One run of rows: which page of each column it is in."""

    rows: int
    pages: Mapping[int, int]
    columns: Mapping[int, _Column]

    def known(self, column: Field, type_: pa.DataType) -> Known:
        """The statistics of the page with these rows; the null count is unknown if only some of its rows are null."""
        measured = self.columns.get(column.id)
        if measured is None:
            return NOTHING
        page, index = self.pages[column.id], measured.bounds
        if index.null_pages[page]:
            return Known(values=self.rows, nulls=self.rows)
        nulls = 0 if index.null_counts is not None and index.null_counts[page] == 0 else None
        if isinstance(column.type, (Geometry, Geography)):
            return Known(values=self.rows, nulls=nulls)
        lower = _plain(measured, index.lowers[page], type_)
        upper = _plain(measured, index.uppers[page], type_)
        return Known(values=self.rows, nulls=nulls, lower=lower, upper=upper)


def _plain(column: _Column, data: bytes, type_: pa.DataType) -> Raw | None:
    """A bound, which is written like a value; none if it is of another length, or NaN."""
    decode = bounds.decoder(column.leaf.type, type_)
    if decode is None:
        return None
    if column.physical == "BYTE_ARRAY" or (column.physical == _FIXED and len(data) == column.length):
        return decode(data)
    form = _PLAIN.get(column.physical)
    if form is None or len(data) != struct.calcsize(form):
        return None
    (value,) = struct.unpack(form, data)
    return None if value != value else decode(value)
