"""Helpers on the columns of entry tables that several manifest codecs need."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.value.single_value import FORMATS
from icefloe.errors import FormatError
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.entries import AVERAGE_SIZE, ENTRY, ContentType, stat
from icefloe.model.location_columns import file_names, inner_paths
from icefloe.model.schema.types import BOOLEAN, DOUBLE, FLOAT, UUID, Decimal, Fixed, Type, has_value_sizes

COLUMN_SIZE = "column_size"  # the measure of v1-v3 column_sizes; kept so that rewriting a manifest loses nothing
CONTAINS_NULL, CONTAINS_NAN = "contains_null", "contains_nan"  # of all entries of a manifest, as recorded in its list
_MAX_INT = 2**31 - 1
_WIDTHS: Mapping[Type, int] = {  # of values, in bytes
    BOOLEAN: 1,
    UUID: 16,
    **{type_: np.dtype(stored).itemsize for type_, stored in FORMATS.items()},
}
_LAST_FILE_TYPE = int(ContentType.EQUALITY_DELETES)
_ABSOLUTE = r"^(/|[A-Za-z][A-Za-z0-9+.\-]*:)"
_NOT_PLAIN = r"^$|(^|/)\.\.?(/|$)"


def single(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def columns_of(entries: pa.Table) -> dict[str, pa.Array]:
    """All columns of an entry table as single arrays, by name."""
    batches = entries.to_batches()
    if len(batches) == 1:
        return dict(zip(entries.column_names, batches[0].columns, strict=True))
    return {name: single(column) for name, column in zip(entries.column_names, entries.itercolumns(), strict=True)}


def to_table(columns: Mapping[str, pa.Array], length: int) -> pa.Table:
    """An entry table: the fixed columns, null if absent in ``columns``, then the statistics. Ordinals count rows."""
    fixed = [columns[f.name] if f.name in columns else pa.nulls(length, f.type) for f in ENTRY][:-1]
    ordinal = pa.array(np.arange(length, dtype=np.int64))
    stats = {name: column for name, column in columns.items() if ":" in name}
    fields = [*ENTRY, *(pa.field(name, column.type) for name, column in stats.items())]
    return pa.Table.from_arrays([*fixed, ordinal, *stats.values()], schema=pa.schema(fields))


def unsorted_lists(lists: pa.Array) -> npt.NDArray[np.bool_]:
    """Which lists of numbers have an element that is less than the one before it."""
    unsorted: npt.NDArray[np.bool_] = np.zeros(len(lists), dtype=np.bool_)
    longest = pc.max(pc.list_value_length(lists)).as_py()
    if longest is not None and longest > 1:
        owners = np.asarray(pc.list_parent_indices(lists))
        falls = (np.diff(np.asarray(pc.fill_null(lists.flatten(), 0))) < 0) & (np.diff(owners) == 0)
        unsorted[owners[1:][falls]] = True
    return unsorted


def sorted_lists(lists: pa.Array) -> pa.Array:
    """Lists of numbers with the elements of each in ascending order."""
    if not unsorted_lists(lists).any():
        return lists
    values, owners = np.asarray(lists.flatten()), np.asarray(pc.list_parent_indices(lists))
    lengths = np.asarray(pc.fill_null(pc.list_value_length(lists), 0))
    offsets = pa.array(np.concatenate(([0], np.cumsum(lengths))).astype(np.int32))
    ordered = pa.array(values[np.lexsort((values, owners))], lists.type.value_type)
    return pa.ListArray.from_arrays(offsets, ordered, type=lists.type, mask=lists.is_null())


def has_nan(type_: Type) -> bool:
    """Whether values of the type can be NaN."""
    return type_ in (FLOAT, DOUBLE)


def is_file(content_type: pa.Array) -> pa.Array:
    """Which rows are data or delete files rather than manifests."""
    return pc.less_equal(content_type, _LAST_FILE_TYPE)


def average_sizes(columns: Mapping[str, pa.Array | pa.ChunkedArray], key: str) -> pa.Array | pa.ChunkedArray | None:
    """The average size of a column's values in each row, as recorded, or else from the size of the column in the file.

    Manifests of versions 1 to 3 record only the latter. None if no row has either.
    """
    recorded, sizes = columns.get(stat(AVERAGE_SIZE, key)), columns.get(stat(COLUMN_SIZE, key))
    if sizes is None or (recorded is not None and recorded.null_count == 0):
        return recorded
    if (values := value_counts(columns, key)) is None:
        return recorded
    values = pc.if_else(pc.greater(values, 0), values, None).cast(pa.float64())
    average = pc.min_element_wise(pc.round(pc.divide(sizes.cast(pa.float64()), values)), _MAX_INT, skip_nulls=False)
    average = average.cast(pa.int32())
    return average if recorded is None else pc.coalesce(recorded, average)


def column_sizes(columns: Mapping[str, pa.Array], key: str, type_: Type) -> pa.Array | None:
    """The size of a column in each row: as recorded, or else that of its values, uncompressed. None if unknown."""
    recorded, values = columns.get(stat(COLUMN_SIZE, key)), value_counts(columns, key)
    width = columns.get(stat(AVERAGE_SIZE, key)) if has_value_sizes(type_) else _WIDTHS.get(type_)
    if isinstance(type_, (Fixed, Decimal)):
        width = type_.length if isinstance(type_, Fixed) else decimal_bytes(type_.precision)
    if values is None or width is None:
        return recorded
    sizes = pc.multiply(values, width.cast(pa.int64()) if isinstance(width, pa.Array) else width)
    return sizes if recorded is None else pc.coalesce(recorded, sizes)


def decimal_bytes(precision: int) -> int:
    """The fewest bytes that hold every unscaled value of a precision.

    >>> decimal_bytes(9), decimal_bytes(38)
    (4, 16)
    """
    largest: int = 10**precision - 1
    return (largest.bit_length() + 8) // 8


def value_counts(columns: Mapping[str, pa.Array | pa.ChunkedArray], key: str) -> pa.Array | pa.ChunkedArray | None:
    """How many values that are not null a column has in each row; nulls that were not counted count as values."""
    values, nulls = columns.get(stat("value_count", key)), columns.get(stat("null_value_count", key))
    if values is None or nulls is None:
        return values
    return pc.subtract(values, pc.fill_null(nulls, 0))


def partition_stats(key: str, value: pa.Array, record_count: pa.Array, type_: Type) -> dict[str, pa.Array]:
    """Statistics columns of file rows from their partition values: null and NaN are expressed by counts, not bounds."""
    none = pa.scalar(0, pa.int64())
    columns = {
        stat("value_count", key): record_count,
        stat("null_value_count", key): pc.if_else(pc.is_null(value), record_count, none),
    }
    if has_nan(type_):
        nan = pc.fill_null(pc.is_nan(value), False)
        columns[stat("nan_value_count", key)] = pc.if_else(nan, record_count, none)
        value = without_nan(value)
    return {stat("lower_bound", key): value, stat("upper_bound", key): value, **columns}


def partition_value(key: str, columns: Mapping[str, pa.Array], length: int, type_: Type) -> pa.Array:
    """The partition values of file rows from their statistics columns; the inverse of ``partition_stats``."""
    # A column that is null in every row may be absent.
    value = columns.get(stat("lower_bound", key), pa.nulls(length, arrow_type(type_)))
    if has_nan(type_) and (nan := columns.get(stat("nan_value_count", key))) is not None:
        is_nan = pc.and_(value.is_null(), pc.fill_null(pc.greater(nan, 0), False))
        value = pc.if_else(is_nan, pa.scalar(float("nan"), value.type), value)
    return value


def without_nan(bounds: pa.Array) -> pa.Array:
    """Bounds with NaN, which is not one, as unknown."""
    if not pa.types.is_floating(bounds.type):
        return bounds
    nan = pc.is_nan(bounds)
    return pc.if_else(nan, None, bounds) if pc.any(nan).as_py() is True else bounds


def _are_plain(locations: pa.Array) -> bool:
    """Whether all are certainly plain relative paths, by a scan of their bytes, which is faster than patterns."""
    offsets, values = locations.buffers()[1:]
    if values is None:
        return False
    first, last = np.frombuffer(offsets, np.int32)[[locations.offset, locations.offset + len(locations)]]
    together = values.slice(first, last - first).to_pybytes()
    return (
        b":" not in together
        and b"./" not in together  # which may also be the end of one and the beginning of the next
        and pc.any(pc.starts_with(locations, "/")).as_py() is not True
        and pc.any(pc.ends_with(locations, ".")).as_py() is not True
        and pc.min(pc.binary_length(locations)).as_py() > 0
    )


def relativized(locations: pa.Array, table_location: str) -> pa.Array:
    """Locations as V4 stores them: relative to the table if they are under it and resolve to the same location."""
    if locations.null_count == len(locations):
        return locations
    prefix = table_location + "/"
    tail = pc.utf8_slice_codeunits(locations, start=len(prefix))
    if pc.all(pc.starts_with(locations, prefix)).as_py() is True and _are_plain(tail):
        return tail
    plain = pc.invert(pc.match_substring_regex(tail, f"{_ABSOLUTE}|{_NOT_PLAIN}"))
    return pc.if_else(pc.and_(pc.starts_with(locations, prefix), plain), tail, locations)


def compared_names(names: pa.Array | pa.ChunkedArray, column: str) -> pa.Array | pa.ChunkedArray:
    """The form of names that a column of locations is searched by: ``referenced_file`` may be spelled differently."""
    return names if column == "location" else file_names(names)


def has_name(locations: pa.Array | pa.ChunkedArray, names: pa.Array, column: str) -> bool:
    """Whether a column of locations may have one of these names."""
    matches = pc.is_in(compared_names(locations, column), value_set=compared_names(names, column))
    return pc.any(matches).as_py() is True


def resolved(locations: pa.Array, table_location: str, *, where: str) -> pa.Array:
    """Stored locations as absolute locations; null stays null.

    An absolute location inside the table equals a relative one, so its prefix is spelled like the table location.
    """
    if locations.null_count == len(locations):
        return locations
    if _are_plain(locations):
        return pc.binary_join_element_wise(pa.scalar(table_location), locations, "/")
    absolute = pc.match_substring_regex(locations, _ABSOLUTE)
    broken = pc.and_(pc.match_substring_regex(locations, _NOT_PLAIN), pc.invert(absolute))
    row = pc.index(broken, True).as_py()
    if row >= 0:
        location = locations[row].as_py()
        raise FormatError(f"{where}: row {row}: location {location!r} is not a plain relative path", location=where)
    joined = pc.binary_join_element_wise(pa.scalar(table_location), locations, "/")
    return pc.if_else(absolute, _spelled_like(locations, table_location), joined)


def _spelled_like(locations: pa.Array, table_location: str) -> pa.Array:
    """Locations, those inside the table with its own text before them."""
    prefix = table_location + "/"
    if pc.all(pc.starts_with(locations, prefix)).as_py() is True:
        return locations
    inner = inner_paths(locations, table_location)
    inner = pc.if_else(pc.match_substring_regex(inner, f"{_ABSOLUTE}|{_NOT_PLAIN}"), None, inner)
    inner = pc.if_else(pc.starts_with(locations, prefix), None, inner)
    return pc.coalesce(pc.binary_join_element_wise(pa.scalar(table_location), inner, "/"), locations)
