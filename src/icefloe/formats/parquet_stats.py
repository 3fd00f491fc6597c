"""Content entries and row-group statistics from Parquet footers (spec: Manifests; Appendix A, Parquet).

Whoever wrote a file has already measured it: counts and bounds come from the footer, for files of this library as for
those of Spark's own writer, and no data is read again. What a footer cannot say (NaN counts) is given by our writer or
left unknown. An unknown count or bound is null, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from icefloe.formats import bounds
from icefloe.formats.field_ids import Leaf, measured_leaves, require_ids
from icefloe.formats.partition_values import partition_columns
from icefloe.model.arrow import arrow_type
from icefloe.model.entries import ENTRY, ContentType, Status, column_key, empty, stat
from icefloe.model.partitioning import PartitionSpec
from icefloe.model.schema import Schema

PARQUET = "parquet"

# Writers whose greatest value is NaN whenever a column holds one, so that an ordinary bound proves there is none. Seen
# for these versions; of others, which may leave NaN out of their bounds, nothing is concluded.
_NAN_SHOWS = re.compile(r"parquet-mr version 1\.16\.")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A column that a footer does not measure, measured by its writer: nulls, and the bounds of what is no NaN."""

    nulls: int = 0
    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """A finished data file: what its footer says and what only its writer knows.

    ``partition`` has one plain value for each partition field that is not void; dates and times may be given as
    days or microseconds from 1970. ``nan_counts`` is by field id; a column that is not in it was not counted.
    ``left_out`` are columns that the footer does not measure because they hold a NaN.
    """

    location: str
    size: int
    footer: Any  # pyarrow.parquet.FileMetaData
    partition: tuple[object, ...] = ()
    nan_counts: Mapping[int, int] = field(default_factory=dict)
    left_out: Mapping[int, LeftOut] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unit:
    """Row groups that are measured together: a file, or one row group."""

    groups: Sequence[Any]
    leaves: Mapping[int, Leaf]
    nan_shows: bool
    nan_counts: Mapping[int, int] = field(default_factory=dict)
    left_out: Mapping[int, LeftOut] = field(default_factory=dict)


def entries_of(files: Sequence[WrittenFile], *, schema: Schema, spec: PartitionSpec) -> pa.Table:
    """The entries (ADDED, sequence numbers to be inherited) of new data files."""
    if len(files) == 0:
        return empty()
    rows = pa.array([file.footer.num_rows for file in files], pa.int64())
    columns: dict[str, pa.Array] = {
        "content_type": pa.repeat(pa.scalar(int(ContentType.DATA), pa.int32()), len(files)),
        "location": pa.array([file.location for file in files], pa.string()),
        "file_format": pa.repeat(PARQUET, len(files)),
        "status": pa.repeat(pa.scalar(int(Status.ADDED), pa.int32()), len(files)),
        "partition_spec_id": pa.repeat(pa.scalar(spec.spec_id, pa.int32()), len(files)),
        "record_count": rows,
        "file_size_in_bytes": pa.array([file.size for file in files], pa.int64()),
        "split_offsets": pa.array([_split_offsets(file.footer) for file in files], pa.list_(pa.int64())),
    }
    fixed = {f.name: columns.get(f.name) for f in ENTRY}
    filled = {n: pa.nulls(len(files), ENTRY.field(n).type) if a is None else a for n, a in fixed.items()}
    units = [_file_unit(file) for file in files]
    measured = _columns(units, schema, bounds.cut)
    parts = partition_columns([file.partition for file in files], rows, schema=schema, spec=spec)
    return pa.table({**filled, **measured, **parts})


def group_stats(footer: Any, schema: Schema) -> pa.Table:
    """One row for each row group: its record count and the statistics of the schema's columns, bounds uncut."""
    leaves = measured_leaves(footer.schema.to_arrow_schema())
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    shows = _nan_shows(footer)
    units = [_Unit(groups=(group,), leaves=leaves, nan_shows=shows) for group in groups]
    counts = pa.array([group.num_rows for group in groups], pa.int64())
    return pa.table({"record_count": counts, **_columns(units, schema, bounds.uncut)})


def _file_unit(file: WrittenFile) -> _Unit:
    schema = file.footer.schema.to_arrow_schema()
    require_ids(schema, file.location)
    groups = [file.footer.row_group(i) for i in range(file.footer.num_row_groups)]
    return _Unit(
        groups=groups,
        leaves=measured_leaves(schema),
        nan_shows=_nan_shows(file.footer),
        nan_counts=file.nan_counts,
        left_out=file.left_out,
    )


def _nan_shows(footer: Any) -> bool:
    return _NAN_SHOWS.match(footer.created_by or "") is not None


def _split_offsets(footer: Any) -> list[int]:
    """Where the row groups begin."""
    firsts = [footer.row_group(i).column(0) for i in range(footer.num_row_groups) if footer.num_columns > 0]
    return [c.dictionary_page_offset if c.has_dictionary_page else c.data_page_offset for c in firsts]


def _columns(
    units: Sequence[_Unit],
    schema: Schema,
    keep: Callable[[pa.DataType], tuple[Callable[[Any], Any], Callable[[Any], Any]]],
) -> dict[str, pa.Array]:
    """The statistics columns of all measured columns, one row for each unit."""
    found: dict[str, pa.Array] = {}
    counts: dict[str, list[int | None]] = {}
    for id_, column in schema.measured.items():
        type_, key = arrow_type(column.type), column_key(id_)
        floating = pa.types.is_floating(type_)
        measured = [_measure(unit, id_, type_) for unit in units]
        down, up = keep(type_)
        lower = [None if m.lower is None else down(m.lower) for m in measured]
        upper = [None if m.upper is None else up(m.upper) for m in measured]
        found[stat("lower_bound", key)] = bounds.to_array(lower, type_)
        found[stat("upper_bound", key)] = bounds.to_array(upper, type_)
        counts[stat("value_count", key)] = [m.values for m in measured]
        counts[stat("null_value_count", key)] = [m.nulls for m in measured]
        if floating:
            counts[stat("nan_value_count", key)] = [_nans(u, id_, m) for u, m in zip(units, measured, strict=True)]
    # One array for all of them, as making it takes longer than the few numbers in it.
    together = pa.array([count for each in counts.values() for count in each], pa.int64())
    return found | {name: together.slice(i * len(units), len(units)) for i, name in enumerate(counts)}


def _nans(unit: _Unit, id_: int, measured: _Measured) -> int | None:
    """How many NaNs: counted by our writer, proved to be none by the bounds, or unknown."""
    if id_ in unit.nan_counts or not unit.nan_shows:
        return unit.nan_counts.get(id_)
    all_null = measured.values is not None and measured.values == measured.nulls
    return 0 if measured.upper is not None or all_null else None


@dataclass(frozen=True, slots=True)
class _Measured:
    values: int | None = None
    nulls: int | None = None
    lower: Any = None
    upper: Any = None


def _measure(unit: _Unit, id_: int, type_: pa.DataType) -> _Measured:
    """One column over the row groups of a unit; a file that lacks the column says nothing about it."""
    leaf = unit.leaves.get(id_)
    if leaf is None:
        return _Measured()
    chunks = [group.column(leaf.index) for group in unit.groups]
    stats = [chunk.statistics for chunk in chunks]
    values = sum(chunk.num_values for chunk in chunks)
    known = all(s is not None and s.has_null_count for s in stats)
    nulls = sum(s.null_count for s in stats) if known else None
    decode = bounds.decoder(leaf.type, type_)
    if decode is None:
        return _Measured(values, nulls)
    if (by_writer := unit.left_out.get(id_)) is not None:
        return _Measured(values, by_writer.nulls, by_writer.lower, by_writer.upper)
    lower, upper = _extremes(chunks, stats, decode)
    return _Measured(values, nulls, lower, upper)


def _extremes(chunks: list[Any], stats: list[Any], decode: Callable[[Any], Any]) -> tuple[Any | None, Any | None]:
    """The smallest and largest value; none if any row group with values does not tell, or tells NaN."""
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


def _all_null(chunk: Any, known: Any | None) -> bool:
    return known is not None and bool(known.has_null_count) and known.null_count == chunk.num_values
