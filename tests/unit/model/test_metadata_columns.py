"""The reserved columns: their ids, types and names."""

from __future__ import annotations

import pytest

from icefloe.errors import InputError
from icefloe.model.schema.metadata_columns import (
    FILE,
    MAX_COLUMN_ID,
    POS,
    ROW_ID,
    deleted_row_column,
    is_metadata_column,
    metadata_column,
    partition_column,
    scan_schema,
)
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import BOOLEAN, INT, LONG, STRING, Field, Struct

RESERVED = [
    ("_file", 2147483646, STRING),
    ("_pos", 2147483645, LONG),
    ("_deleted", 2147483644, BOOLEAN),
    ("_spec_id", 2147483643, INT),
    ("file_path", 2147483546, STRING),
    ("pos", 2147483545, LONG),
    ("_row_id", 2147483540, LONG),
    ("_last_updated_sequence_number", 2147483539, LONG),
]


@pytest.mark.parametrize(("name", "id_", "type_"), RESERVED)
def test_every_reserved_field_has_the_id_and_type_of_the_spec(name, id_, type_):
    column = metadata_column(name)

    assert (column.name, column.id, column.type) == (name, id_, type_)
    assert column.doc is not None
    assert column.id > MAX_COLUMN_ID
    assert is_metadata_column(id_)
    assert is_metadata_column(name) is name.startswith("_")


def test_fields_whose_type_is_that_of_a_table_are_made_for_it():
    type_ = Struct((Field(1000, "day", INT),))

    assert partition_column(type_) == Field(2147483642, "_partition", type_, False, "Partition to which a row belongs")
    assert deleted_row_column(type_).id == 2147483544
    assert deleted_row_column(type_).name == "row"
    assert is_metadata_column("_partition")
    assert all(is_metadata_column(id_) for id_ in (2147483642, 2147483544))
    for name in ("_partition", "row"):
        with pytest.raises(InputError, match="depends on the table"):
            metadata_column(name)


def test_ordinary_columns_are_none():
    assert not any(map(is_metadata_column, ("id", "row", "file_path", "_FILE", "", 1, MAX_COLUMN_ID, 2147483600)))
    with pytest.raises(InputError, match="no metadata column 'id'; there are: _file, _pos"):
        metadata_column("id")


def test_a_scan_returns_columns_of_the_table_and_metadata_columns_in_the_order_asked_for():
    schema = Schema(fields=(Field(1, "id", LONG), Field(2, "note", STRING)), schema_id=3)

    chosen = scan_schema(schema, ["_row_id", "note", "_file", "id", "_pos"], row_lineage=True)

    assert chosen.fields == (ROW_ID, schema.field("note"), FILE, schema.field("id"), POS)
    assert chosen.schema_id == 3


def test_the_partition_of_a_row_has_the_type_of_the_table():
    type_ = Struct((Field(1000, "day", INT),))
    chosen = scan_schema(Schema(fields=()), ["_partition", "_spec_id", "_deleted"], row_lineage=False, partition=type_)
    assert chosen.fields == (partition_column(type_), metadata_column("_spec_id"), metadata_column("_deleted"))


def test_a_column_of_the_table_is_meant_where_it_has_the_name_of_a_metadata_column():
    schema = Schema(fields=(Field(1, "_row_id", STRING),))

    assert scan_schema(schema, ["_row_id"], row_lineage=False).fields == schema.fields


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        (["_row_id"], InputError, "'_row_id' needs row lineage"),
        (["_last_updated_sequence_number"], InputError, "needs row lineage"),
        (["_pos", "_pos"], InputError, "'_pos' is selected twice"),
        (["id", "id"], InputError, "'id' is selected twice"),
        (["_partition"], InputError, "no column '_partition': the table is not partitioned"),
        (["pos"], InputError, "no column 'pos'"),
        (["_nothing"], InputError, "no column '_nothing'"),
    ],
)
def test_columns_that_a_scan_cannot_return_are_refused(names, error, message):
    with pytest.raises(error, match=message):
        scan_schema(Schema(fields=(Field(1, "id", LONG),)), names, row_lineage=False)
