"""Columns that every table has without storing them, by their reserved ids (spec: Reserved Field IDs).

A scan may be asked for those whose names begin with an underscore; ``file_path``, ``pos`` and ``row`` are columns of
position delete files. Row lineage (``_row_id``, ``_last_updated_sequence_number``) is of format version 3 and later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from icefloe.errors import InputError
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import BOOLEAN, INT, LONG, STRING, Field, Struct

MAX_COLUMN_ID = 2_147_483_447  # the ids above are reserved

FILE = Field(2_147_483_646, "_file", STRING, True, "Path of the file in which a row is stored")
POS = Field(2_147_483_645, "_pos", LONG, True, "Ordinal position of a row in the source data file")
DELETED = Field(2_147_483_644, "_deleted", BOOLEAN, True, "Whether the row has been deleted")
SPEC_ID = Field(2_147_483_643, "_spec_id", INT, True, "Spec ID used to track the file containing a row")
PARTITION_ID = 2_147_483_642  # ``_partition``: its type depends on the table, see ``partition_column``
ROW_ID = Field(2_147_483_540, "_row_id", LONG, False, "Id of a row that stays with it when it is moved or updated")
LAST_UPDATED = Field(
    *(2_147_483_539, "_last_updated_sequence_number", LONG, False),
    doc="Sequence number of the commit that last changed a row",
)
LINEAGE = (ROW_ID, LAST_UPDATED)
DELETE_FILE_PATH = Field(
    *(2_147_483_546, "file_path", STRING, True), doc="Path of a file, used in position-based delete files"
)
DELETE_POS = Field(
    *(2_147_483_545, "pos", LONG, True), doc="Ordinal position of a row, used in position-based delete files"
)
DELETE_ROW_ID = 2_147_483_544  # ``row``: its type is that of the table's rows, see ``deleted_row_column``

_PARTITION = "_partition"
_UNPARTITIONED = Struct(())
_ROW = "row"
_BY_NAME: Mapping[str, Field] = {
    field.name: field for field in (FILE, POS, DELETED, SPEC_ID, ROW_ID, LAST_UPDATED, DELETE_FILE_PATH, DELETE_POS)
}
_NAMES = frozenset(name for name in (*_BY_NAME, _PARTITION) if name.startswith("_"))
_IDS = frozenset((*(field.id for field in _BY_NAME.values()), PARTITION_ID, DELETE_ROW_ID))


def metadata_column(name: str) -> Field:
    """The reserved field of a name, for those whose type is the same in every table.

    >>> metadata_column("_pos").id
    2147483645
    """
    column = _BY_NAME.get(name)
    if column is None and name == _PARTITION:
        raise InputError(f"the type of {name!r} depends on the table; use partition_column(type)", field=name)
    if column is None and name == _ROW:
        raise InputError(f"the type of {name!r} depends on the table; use deleted_row_column(type)", field=name)
    if column is None:
        known = ", ".join((*_BY_NAME, _PARTITION, _ROW))
        raise InputError(f"there is no metadata column {name!r}; there are: {known}", field=name)
    return column


def is_metadata_column(column: str | int) -> bool:
    """Whether a name or an id is that of a metadata column.

    The columns of delete files are recognized by id only: a table may have its own column ``pos``.

    >>> is_metadata_column("_file"), is_metadata_column("pos"), is_metadata_column(2_147_483_545)
    (True, False, True)
    """
    return column in _NAMES if isinstance(column, str) else column in _IDS


def partition_column(type_: Struct) -> Field:
    """The column ``_partition`` of a table; ``type_`` has the partition fields of all its specs.

    >>> partition_column(Struct((Field(1000, "day", INT),))).id
    2147483642
    """
    return Field(PARTITION_ID, _PARTITION, type_, False, "Partition to which a row belongs")


def deleted_row_column(type_: Struct) -> Field:
    """The column ``row`` of a position delete file; ``type_`` has the columns that it keeps of a deleted row."""
    return Field(DELETE_ROW_ID, _ROW, type_, False, "Deleted row values, used in position-based delete files")


def scan_schema(
    schema: Schema,
    names: Sequence[str],
    *,
    row_lineage: bool,
    partition: Struct = _UNPARTITIONED,
    table: str | None = None,
) -> Schema:
    """The columns that a scan returns, in the order of their names: those of the table, and metadata columns.

    A name may be that of a field inside a column; then only the named fields of that column are returned. If a table of
    another program has a column with the name of a metadata column, the name means the column of the table.
    ``partition`` is the type of ``_partition``, and ``table`` the name of the table, for errors.

    >>> scan_schema(Schema(fields=(Field(1, "id", LONG),)), ("_pos", "id"), row_lineage=True).fields[0].id
    2147483645
    """
    kinds = {name: name.partition(".")[0] for name in names if name not in schema.by_name}
    inherited = {name: kind for name, kind in kinds.items() if is_metadata_column(kind) and kind not in schema.by_name}
    reserved = tuple(_scanned(kind, row_lineage, partition) for kind in dict.fromkeys(inherited.values()))
    stored = schema.project(tuple(name for name in names if name not in inherited), table=table)
    both = (*stored.fields, *Schema(fields=reserved).project(tuple(inherited), table=table).fields)
    return Schema(fields=both, schema_id=schema.schema_id).project(tuple(names))


def _scanned(name: str, row_lineage: bool, partition: Struct) -> Field:
    if name in (LAST_UPDATED.name, ROW_ID.name) and not row_lineage:
        raise InputError(f"column {name!r} needs row lineage, which tables have from format version 3 on", field=name)
    if name != _PARTITION:
        return metadata_column(name)
    if len(partition.fields) == 0:
        raise InputError(f"there is no column {name!r}: the table is not partitioned", field=name)
    return partition_column(partition)
