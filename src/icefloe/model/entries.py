"""Content entries as Arrow columns: the one in-memory model of a manifest (V4 proposal).

Every manifest of every version decodes into a table with the fixed columns of ``ENTRY`` and a few statistics columns.
A v1-v3 manifest list is a root whose rows are all manifests; a v1-v3 manifest is a leaf. Locations are absolute.

A statistics column is named ``<measure>:<key>``. The key of a column is its field id (``lower_bound:5``); the key of a
partition value is ``p`` and the partition field id (``lower_bound:p1000``). On file rows the partition value is both
lower and upper bound; a null value has ``null_value_count == value_count``, NaN ``nan_value_count == value_count``.
Which ids they have in a file, and whether they are stored at all, is the codecs' affair.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc


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

UNKNOWN_COUNT = -1  # how old imports of other writers stored that they did not know a file's number of rows

COUNTS = ("value_count", "null_value_count", "nan_value_count")
TIGHT, AVERAGE_SIZE = "tight_bounds", "avg_value_size_in_bytes"
MEASURES = ("lower_bound", "upper_bound", TIGHT, *COUNTS, AVERAGE_SIZE)


def column_key(field_id: int) -> str:
    """The statistics key of a column."""
    return str(field_id)


def partition_key(partition_field_id: int) -> str:
    """The statistics key of a partition value."""
    return f"p{partition_field_id}"


def stat(measure: str, key: str) -> str:
    """The name of a statistics column.

    >>> stat("lower_bound", partition_key(1000))
    'lower_bound:p1000'
    """
    return f"{measure}:{key}"


def stat_keys(table: pa.Table) -> list[str]:
    """The keys that a table has statistics for, in order of first appearance."""
    keys = dict.fromkeys(name.split(":", 1)[1] for name in table.column_names if ":" in name)
    return list(keys)


def entries(rows: list[dict[str, object]], types: Mapping[str, pa.DataType] | None = None) -> pa.Table:
    """A table from a few rows as dictionaries; ``types`` has the Arrow types of bounds by statistics key."""
    stats = dict.fromkeys(name for row in rows for name in row if ":" in name)
    fields = [*ENTRY, *(pa.field(name, _stat_type(name, types or {})) for name in stats)]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


def _stat_type(name: str, types: Mapping[str, pa.DataType]) -> pa.DataType:
    measure, key = name.split(":", 1)
    match measure:
        case "lower_bound" | "upper_bound":
            return types[key]
        case "tight_bounds":
            return pa.bool_()
        case "avg_value_size_in_bytes":
            return pa.int32()
        case _:
            return pa.int64()


_EMPTY = ENTRY.empty_table()
# Scalars made once: turning a Python number into one takes longer than comparing a column with it.
_TYPES = {t: pa.scalar(int(t), pa.int32()) for t in ContentType}
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
    ):  # nothing to bring in line, which takes time
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


def of_status(table: pa.Table, status: Status) -> pa.ChunkedArray:
    """Which rows have this status."""
    return pc.equal(table["status"], _STATUSES[status])


def count(mask: pa.ChunkedArray) -> int:
    """How many rows a mask chooses."""
    return int(pc.sum(mask).as_py() or 0)


def choose(table: pa.Table, mask: pa.ChunkedArray) -> pa.Table:
    """The rows that a mask without nulls chooses; the table itself when it chooses all, which is the common case."""
    chosen = count(mask)
    if chosen == table.num_rows:
        return table
    return table.slice(0, 0) if chosen == 0 else table.filter(mask)


def put(table: pa.Table, name: str, values: object) -> pa.Table:
    """The table with a column replaced by values, or by one value for all rows, in the column's type."""
    field = table.schema.field(name)
    index = table.schema.get_field_index(name)
    if not isinstance(values, (pa.Array, pa.ChunkedArray)):
        values = pa.repeat(pa.scalar(values, field.type), table.num_rows)
    return table.set_column(index, field, values)
