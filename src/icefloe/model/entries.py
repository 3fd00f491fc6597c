"""Content entries as Arrow columns: the only form in which manifests are held in memory (V4 proposal).

Every manifest of every version decodes into a table with the fixed columns of ``ENTRY`` and with statistics columns.
A v1-v3 manifest list is a root whose rows are all manifests; a v1-v3 manifest is a leaf. Locations are absolute.

A statistics column has one measure of one table column or partition field. Only this module makes and parses its name:
``lower_bound:5`` for the column with id 5, ``lower_bound:p1000`` for the partition field with id 1000. In the row of a
file, the partition value is both the lower and the upper bound; null has ``null_value_count == value_count``, NaN has
``nan_value_count == value_count``. Codecs decide which statistics a file stores, and under which field ids.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum, StrEnum
from functools import cache, lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.model.columns import Column, one_array


class ContentType(IntEnum):
    """What a content entry tracks."""

    DATA = 0
    POSITION_DELETES = 1  # a deletion vector, or in v2 a position delete file
    EQUALITY_DELETES = 2
    DATA_MANIFEST = 3
    DELETE_MANIFEST = 4
    MANIFEST_DV = 5


DELETES = (ContentType.POSITION_DELETES, ContentType.EQUALITY_DELETES)
MANIFESTS = (ContentType.DATA_MANIFEST, ContentType.DELETE_MANIFEST)


class Status(IntEnum):
    """How an entry relates to the snapshot that wrote it."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


MANIFEST_COUNTS = (
    pa.field("added_files_count", pa.int32()),
    pa.field("existing_files_count", pa.int32()),
    pa.field("deleted_files_count", pa.int32()),
    pa.field("added_rows_count", pa.int64()),
    pa.field("existing_rows_count", pa.int64()),
    pa.field("deleted_rows_count", pa.int64()),
    pa.field("min_sequence_number", pa.int64()),
)

ENTRY = pa.schema(
    [
        pa.field("content_type", pa.int32()),
        pa.field("location", pa.string()),
        pa.field("file_format", pa.string()),
        pa.field("format_version", pa.int32()),
        pa.field("status", pa.int32()),
        pa.field("snapshot_id", pa.int64()),
        pa.field("sequence_number", pa.int64()),
        pa.field("file_sequence_number", pa.int64()),
        pa.field("dv_offset", pa.int64()),
        pa.field("dv_size_in_bytes", pa.int64()),
        pa.field("dv_inline_content", pa.binary()),
        pa.field("partition_spec_id", pa.int32()),
        pa.field("sort_order_id", pa.int32()),
        pa.field("record_count", pa.int64()),  # null where the number of rows is unknown (see UNKNOWN_COUNT)
        pa.field("file_size_in_bytes", pa.int64()),
        *MANIFEST_COUNTS,
        pa.field("referenced_file", pa.string()),
        pa.field("key_metadata", pa.binary()),
        pa.field("split_offsets", pa.list_(pa.int64())),
        pa.field("equality_ids", pa.list_(pa.int32())),
        pa.field("first_row_id", pa.int64()),
        pa.field("ordinal", pa.int64()),  # row position in the manifest file it was read from; null until then
    ]
)

UNKNOWN_COUNT = -1  # stored by old imports of other writers for files whose number of rows they did not know


class Measure(StrEnum):
    """What a statistics column records, with the name that content statistics of V4 give it."""

    LOWER = "lower_bound"
    UPPER = "upper_bound"
    TIGHT = "tight_bounds"
    VALUES = "value_count"
    NULLS = "null_value_count"
    NANS = "nan_value_count"
    AVERAGE_SIZE = "avg_value_size_in_bytes"
    COLUMN_SIZE = "column_size"  # of v1-v3; kept so that a rewritten manifest has it too
    HAS_NULL = "contains_null"  # of all entries of a manifest, as its manifest list records it
    HAS_NAN = "contains_nan"


BOUNDS = (Measure.LOWER, Measure.UPPER)
COUNTS = (Measure.VALUES, Measure.NULLS, Measure.NANS)
_MEASURES = {measure.value: measure for measure in Measure}


def type_of_measure(measure: Measure) -> pa.DataType:
    """The Arrow type of a measure that is not a bound."""
    return _TYPES_OF_MEASURES.get(measure, pa.int64())


_TYPES_OF_MEASURES = {
    Measure.TIGHT: pa.bool_(),
    Measure.AVERAGE_SIZE: pa.int32(),
    Measure.HAS_NULL: pa.bool_(),
    Measure.HAS_NAN: pa.bool_(),
}


class StatKey(NamedTuple):
    """Whose statistics a column has: those of the table column, or of the partition field, with this id."""

    id: int
    is_partition: bool = False

    def __str__(self) -> str:
        return f"p{self.id}" if self.is_partition else f"{self.id}"


StatKeys: TypeAlias = frozenset[StatKey]


class StatColumn(NamedTuple):
    """A statistics column of an entry table."""

    measure: Measure
    key: StatKey


def column_key(field_id: int) -> StatKey:
    """The statistics key of a column."""
    return StatKey(field_id)


def partition_key(partition_field_id: int) -> StatKey:
    """The statistics key of a partition field."""
    return StatKey(partition_field_id, is_partition=True)


def stat(measure: Measure, key: StatKey) -> str:
    """The name of a statistics column.

    >>> stat(Measure.LOWER, partition_key(1000))
    'lower_bound:p1000'
    """
    return f"{measure}:p{key.id}" if key.is_partition else f"{measure}:{key.id}"


@lru_cache(maxsize=1 << 16)
def parse_stat(name: str) -> StatColumn | None:
    """The statistics column that has a name; None for any other column of an entry table.

    >>> parse_stat("lower_bound:p1000").key == partition_key(1000), parse_stat("location")
    (True, None)
    """
    measure, colon, key = name.partition(":")
    if colon == "" or measure not in _MEASURES:
        return None
    is_partition = key.startswith("p")
    return StatColumn(_MEASURES[measure], StatKey(int(key.removeprefix("p")), is_partition))


def stat_columns(table: pa.Table) -> dict[str, StatColumn]:
    """The statistics columns of a table, by name."""
    parsed = ((name, parse_stat(name)) for name in table.column_names)
    return {name: column for name, column in parsed if column is not None}


def stat_keys(table: pa.Table) -> list[StatKey]:
    """The keys that a table has statistics for, in order of first appearance."""
    return list(dict.fromkeys(column.key for column in stat_columns(table).values()))


def known_measures(entries: pa.Table | Mapping[str, Column], key: StatKey) -> dict[Measure, Column]:
    """The statistics that an entry table, or columns of one, has of a column or a partition field."""
    names = frozenset(entries.column_names) if isinstance(entries, pa.Table) else entries
    return {measure: entries[name] for measure in Measure if (name := stat(measure, key)) in names}


def with_stats(table: pa.Table, is_kept: Callable[[StatColumn], bool]) -> pa.Table:
    """The table with some of its statistics columns, and with all other columns."""
    kept = [name for name in table.column_names if (column := parse_stat(name)) is None or is_kept(column)]
    return table if len(kept) == table.num_columns else table.select(kept)


def entries(rows: list[dict[str, object]], types: Mapping[StatKey, pa.DataType] | None = None) -> pa.Table:
    """A table from a few rows as dictionaries; ``types`` has the Arrow types of bounds by statistics key."""
    names = dict.fromkeys(name for row in rows for name in row)
    stats = {name: column for name in names if (column := parse_stat(name)) is not None}
    fields = [*ENTRY, *(pa.field(name, _stat_type(column, types or {})) for name, column in stats.items())]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


def _stat_type(column: StatColumn, types: Mapping[StatKey, pa.DataType]) -> pa.DataType:
    return types[column.key] if column.measure in BOUNDS else type_of_measure(column.measure)


Columns: TypeAlias = Mapping[str, pa.Array]  # those of an entry table, by name, as single arrays


def columns_of(entries: pa.Table) -> dict[str, pa.Array]:
    """All columns of an entry table as single arrays, by name."""
    batches = entries.to_batches()
    if len(batches) == 1:
        return dict(zip(entries.column_names, batches[0].columns, strict=True))
    return {name: one_array(column) for name, column in zip(entries.column_names, entries.itercolumns(), strict=True)}


def to_table(columns: Mapping[str, pa.Array], length: int) -> pa.Table:
    """An entry table: the fixed columns, null if absent in ``columns``, then the statistics. Ordinals count rows."""
    fixed = [columns[f.name] if f.name in columns else pa.nulls(length, f.type) for f in ENTRY][:-1]
    ordinal = pa.array(np.arange(length, dtype=np.int64))
    stats = {name: column for name, column in columns.items() if parse_stat(name) is not None}
    fields = [*ENTRY, *(pa.field(name, column.type) for name, column in stats.items())]
    return pa.Table.from_arrays([*fixed, ordinal, *stats.values()], schema=pa.schema(fields))


_EMPTY = ENTRY.empty_table()
# Scalars are made once: converting a Python number takes longer than comparing a column with it.
_TYPES = {t: pa.scalar(int(t), pa.int32()) for t in ContentType}
_LAST_FILE_TYPE = pa.scalar(int(ContentType.EQUALITY_DELETES), pa.int32())
_STATUSES = {s: pa.scalar(int(s), pa.int32()) for s in Status}


def empty() -> pa.Table:
    """No entries."""
    return _EMPTY


def concat(tables: list[pa.Table]) -> pa.Table:
    """Rows of all tables; statistics that a table lacks are null in its rows.

    Bounds that were measured before a column was promoted take the wider type.
    """
    some = [table for table in tables if table.num_rows > 0 or table.num_columns > len(ENTRY)]
    if (
        len(some) > 0
        and some[0].schema.names[: len(ENTRY)] == ENTRY.names
        and all(table.schema.equals(some[0].schema) for table in some[1:])
    ):  # nothing to align, which takes time
        return some[0] if len(some) == 1 else pa.concat_tables(some)
    return pa.concat_tables([_EMPTY, *tables], promote_options="permissive")


def live(table: pa.Table) -> pa.ChunkedArray:
    """Which rows are part of the snapshot: EXISTING or ADDED."""
    return pc.not_equal(table["status"], _STATUSES[Status.DELETED])


def of_type(table: pa.Table, *types: ContentType) -> pa.ChunkedArray:
    """Which rows are of one of these content types."""
    if len(types) == 1:
        return pc.equal(table["content_type"], _TYPES[types[0]])
    return pc.is_in(table["content_type"], value_set=_type_set(types))


@cache
def _type_set(types: tuple[ContentType, ...]) -> pa.Array:
    return pa.array([int(t) for t in types], pa.int32())


def is_file(content_type: pa.Array) -> pa.Array:
    """Which rows are data or delete files rather than manifests."""
    return pc.less_equal(content_type, _LAST_FILE_TYPE)


def of_status(table: pa.Table, status: Status) -> pa.ChunkedArray:
    """Which rows have this status."""
    return pc.equal(table["status"], _STATUSES[status])


def count(mask: pa.ChunkedArray) -> int:
    """How many rows a mask chooses."""
    return int(pc.sum(mask).as_py() or 0)


def total(table: pa.Table, name: str) -> int:
    """The sum of a column; nulls count as 0."""
    return int(pc.sum(table[name], min_count=0).as_py())


def choose(table: pa.Table, mask: pa.ChunkedArray) -> pa.Table:
    """The rows that a mask without nulls chooses; the table itself if it chooses all, which is the common case."""
    chosen = count(mask)
    if chosen == table.num_rows:
        return table
    return table.slice(0, 0) if chosen == 0 else table.filter(mask)


def put_where(table: pa.Table, mask: pa.Array | pa.ChunkedArray, **values: int) -> pa.Table:
    """The table with one value in each of some columns, in the rows that a mask chooses."""
    for name, value in values.items():
        scalar = pa.scalar(value, table.schema.field(name).type)
        table = put(table, name, pc.if_else(mask, scalar, table[name]))
    return table


def put(table: pa.Table, name: str, values: object) -> pa.Table:
    """The table with a column replaced by values, or by one value for all rows, in the column's type."""
    field = table.schema.field(name)
    index = table.schema.get_field_index(name)
    if not isinstance(values, (pa.Array, pa.ChunkedArray)):
        values = pa.repeat(pa.scalar(values, field.type), table.num_rows)
    return table.set_column(index, field, values)
