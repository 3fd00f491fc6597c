"""Statistics of files and row groups from Parquet footers (spec: Manifests; Appendix A, Parquet).

Counts and bounds come from the footer, also for files of Spark's writer; no data is read. NaN counts, which are not in
footers, come from our writer or are unknown. An unknown count or bound is null.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from icefloe.formats.column_stats import NOTHING, Known, bound_decoder, known_of, statistics_of
from icefloe.formats.parquet.field_ids import Leaf, field_id, inner_fields, measured_leaves
from icefloe.formats.write.measure import Measures
from icefloe.model.corners import AXES, corner_bytes
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import BINARY, STRING, UUID, Field, Fixed, Geography, Geometry, Type

PARQUET = "parquet"

# Writers for which NaN is the upper bound of a column that has one, so another bound proves that there is none. Tested
# for these versions; other writers may leave NaN out of their bounds.
_NAN_SHOWS = re.compile(r"parquet-mr version 1\.16\.")
# Writers that omit the bounds of long values. Others may truncate them, which pyarrow does not report.
_WHOLE_BOUNDS = re.compile(r"parquet-cpp-arrow version ")


@dataclass(frozen=True, slots=True, kw_only=True)
class FooterUnit:
    """Row groups with one set of statistics: a file, or one row group.

    ``measures``, ``nan_counts`` and ``value_bytes`` were measured by the writer, as they are not in the footer.
    """

    groups: Sequence[Any]
    leaves: Mapping[int, Leaf]
    nan_shows: bool
    whole_bounds: bool
    nan_counts: Mapping[int, int] = field(default_factory=dict)
    value_bytes: Mapping[int, int] = field(default_factory=dict)
    measures: Mapping[int, Measures] = field(default_factory=dict)

    def known(self, column: Field, type_: pa.DataType) -> Known:
        """The statistics of one column over the row groups; nothing if the file lacks the column."""
        leaf = self.leaves.get(column.id)
        if leaf is None:
            return NOTHING
        chunks = [group.column(leaf.index) for group in self.groups]
        if (by_writer := self.measures.get(column.id)) is not None:
            known = known_of(by_writer)
            lower, upper = corners(chunks) if isinstance(column.type, Geometry) else (known.lower, known.upper)
            return replace(known, lower=lower, upper=upper)
        stats = [chunk.statistics for chunk in chunks]
        values = sum(chunk.num_values for chunk in chunks)
        has_null_counts = all(s is not None and s.has_null_count for s in stats)
        nulls = sum(s.null_count for s in stats) if has_null_counts else None
        lower, upper = self._bounds(column, leaf, type_, chunks, stats)
        nans = self._nans(column.id, values == nulls, upper is not None)
        return Known(
            values=values,
            nulls=nulls,
            nans=nans,
            lower=lower,
            upper=upper,
            exact=self.whole_bounds or not _may_be_truncated(column.type),
            value_bytes=self.value_bytes.get(column.id),
        )

    def _bounds(
        self, column: Field, leaf: Leaf, type_: pa.DataType, chunks: list[Any], stats: list[Any]
    ) -> tuple[Any | None, Any | None]:
        if isinstance(column.type, (Geometry, Geography)):
            return corners(chunks) if isinstance(column.type, Geometry) else (None, None)
        decode = bound_decoder(leaf.type, type_)
        return (None, None) if decode is None else _extremes(chunks, stats, decode)

    def _nans(self, id_: int, all_null: bool, bounded: bool) -> int | None:
        """The number of NaNs: counted by our writer, 0 if the bounds prove it, or unknown."""
        if id_ in self.nan_counts or not self.nan_shows:
            return self.nan_counts.get(id_)
        return 0 if bounded or all_null else None


def group_stats(footer: Any, schema: Schema, leaves: Mapping[int, Leaf] | None = None) -> pa.Table:
    """One row for each row group: its record count and the statistics of the schema's columns, with full bounds.

    ``leaves`` are the columns of the file, if the footer does not have their ids or they are known already.
    """
    leaves = measured_leaves(footer.schema.to_arrow_schema()) if leaves is None else leaves
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    shows, whole = _nan_shows(footer), _has_whole_bounds(footer)
    units = [FooterUnit(groups=(group,), leaves=leaves, nan_shows=shows, whole_bounds=whole) for group in groups]
    counts = pa.array([group.num_rows for group in groups], pa.int64())
    return pa.table({"record_count": counts, **statistics_of(units, schema, None)})


def footer_unit(
    footer: Any,
    labels: pa.Schema,
    *,
    nan_counts: Mapping[int, int],
    value_bytes: Mapping[int, int],
    measures: Mapping[int, Measures],
) -> FooterUnit:
    """A whole file as one unit."""
    return FooterUnit(
        groups=[footer.row_group(i) for i in range(footer.num_row_groups)],
        leaves=measured_leaves(labels),
        nan_shows=_nan_shows(footer),
        whole_bounds=_has_whole_bounds(footer),
        nan_counts=nan_counts,
        value_bytes=value_bytes,
        measures=measures,
    )


def _may_be_truncated(type_: Type) -> bool:
    """Whether writers may truncate bounds of the type."""
    return type_ in (STRING, BINARY, UUID) or isinstance(type_, Fixed)


def _nan_shows(footer: Any) -> bool:
    return _NAN_SHOWS.match(footer.created_by or "") is not None


def _has_whole_bounds(footer: Any) -> bool:
    return _WHOLE_BOUNDS.match(footer.created_by or "") is not None


def split_offsets(footer: Any) -> tuple[int, ...]:
    """The offsets of the row groups in ascending order, which a footer does not guarantee."""
    firsts = [footer.row_group(i).column(0) for i in range(footer.num_row_groups) if footer.num_columns > 0]
    return tuple(sorted(c.dictionary_page_offset if c.has_dictionary_page else c.data_page_offset for c in firsts))


def column_sizes(footer: Any, labels: pa.Schema) -> dict[int, int]:
    """How many bytes each primitive column takes in the file, by field id; those inside lists and maps too."""
    ids = list(_leaf_ids(list(labels)))
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    return {
        id_: sum(group.column(index).total_compressed_size for group in groups)
        for index, id_ in enumerate(ids)
        if id_ is not None and index < footer.num_columns
    }


def _leaf_ids(fields: list[pa.Field]) -> Iterator[int | None]:
    """The ids of a file's Parquet columns, in order."""
    for column in fields:
        inner = inner_fields(column.type)
        if len(inner) == 0:
            yield field_id(column)
        else:
            yield from _leaf_ids(inner)


def _extremes(chunks: list[Any], stats: list[Any], decode: Callable[[Any], Any]) -> tuple[Any | None, Any | None]:
    """The smallest and largest value; none if any row group with values has no bounds, or NaN as a bound."""
    lowers, uppers = [], []
    for chunk, known in zip(chunks, stats, strict=True):
        if known is not None and known.has_min_max:
            lower, upper = decode(known.min_raw), decode(known.max_raw)
            if lower != lower or upper != upper:
                return None, None
            lowers.append(lower)
            uppers.append(upper)
        elif not _all_null(chunk, known):
            return None, None
    return min(lowers, default=None), max(uppers, default=None)


def corners(chunks: list[Any]) -> tuple[bytes | None, bytes | None]:
    """The least and greatest coordinates of the shapes, as bounds; none unless every row group has them."""
    boxes: list[Any] = [getattr(chunk, "geo_statistics", None) for chunk in chunks]  # which an older Arrow lacks
    if len(boxes) == 0 or any(box is None or box.xmin is None or box.ymin is None for box in boxes):
        return None, None
    if any(box.xmin > box.xmax for box in boxes):  # around the antimeridian
        return None, None
    lows, highs = np.full((1, len(AXES)), np.nan), np.full((1, len(AXES)), np.nan)
    for index, axis in enumerate(AXES):
        ends = [(getattr(box, f"{axis}min"), getattr(box, f"{axis}max")) for box in boxes]
        if all(low is not None and high is not None for low, high in ends):
            lows[0, index], highs[0, index] = min(low for low, _ in ends), max(high for _, high in ends)
    return corner_bytes(lows)[0].as_py(), corner_bytes(highs)[0].as_py()


def _all_null(chunk: Any, known: Any | None) -> bool:
    return known is not None and bool(known.has_null_count) and known.null_count == chunk.num_values
