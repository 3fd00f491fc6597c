"""The schemas of a table over time: which id a new one gets, and what written files forbid."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icefloe.codecs.context import manifest_context
from icefloe.errors import InputError
from icefloe.model.changes import AddColumn, DropColumn, MakeOptional, PromoteColumn, SchemaChange, SetIdentifiers
from icefloe.model.evolution import evolve, protected_of
from icefloe.model.metadata import TableMetadata
from icefloe.model.partitioning import UNPARTITIONED, PartitionField, PartitionSpec
from icefloe.model.schema import Schema
from icefloe.model.schema_history import add_schema
from icefloe.model.snapshots import Snapshot
from icefloe.model.types import INT, LONG, STRING, Field, List, Struct

FIRST = Schema(
    fields=(Field(1, "id", INT, True), Field(2, "kind", STRING, True), Field(3, "s", Struct((Field(4, "x", INT),))))
)
TABLE = TableMetadata(
    format_version=2, table_uuid="u", location="file:///t", last_updated_ms=1, last_column_id=9, schemas=(FIRST,)
)


def after(table: TableMetadata, *steps: SchemaChange) -> TableMetadata:
    evolved = evolve(table.schema, steps, last_column_id=table.last_column_id, protected=protected_of(table))
    changed = add_schema(table, evolved.schema)
    assert changed.last_column_id == evolved.last_column_id
    return changed


def written(table: TableMetadata) -> TableMetadata:
    snapshot = Snapshot(
        snapshot_id=table.last_sequence_number + 1,
        sequence_number=table.last_sequence_number + 1,
        timestamp_ms=2,
        schema_id=table.current_schema_id,
        root="file:///t/metadata/m.avro",
    )
    return table.with_snapshot(snapshot, former_location="file:///t/metadata/v1.json")


def test_a_new_schema_gets_the_highest_id_plus_one_and_becomes_current():
    gap = replace(TABLE, schemas=(FIRST, replace(FIRST, schema_id=7, fields=FIRST.fields[:2])))

    table = after(gap, AddColumn(name="n", type=LONG))

    assert [schema.schema_id for schema in table.schemas] == [0, 7, 8]
    assert table.schema == Schema(fields=(*FIRST.fields, Field(10, "n", LONG)), schema_id=8)
    assert table.last_column_id == 10
    assert table == replace(gap, schemas=table.schemas, current_schema_id=8, last_column_id=10)


def test_an_equal_schema_is_not_added_twice():
    table = after(after(TABLE, AddColumn(name="n", type=LONG)), DropColumn(column="n"))

    assert [schema.schema_id for schema in table.schemas] == [0, 1]
    assert table.current_schema_id == 0
    assert table.last_column_id == 10
    assert add_schema(table, replace(table.schema, schema_id=99)) == table


def test_schemas_with_other_identifier_columns_are_not_equal():
    table = after(TABLE, SetIdentifiers(columns=("id", "kind")))

    assert table.current_schema_id == 1
    swapped = replace(table.schema, identifier_field_ids=(2, 1))
    assert add_schema(table, swapped) == table


def test_a_dropped_column_that_returns_by_name_is_another_column():
    table = after(after(TABLE, DropColumn(column="kind")), AddColumn(name="kind", type=STRING))

    assert table.schema.field("kind").id == 10
    assert [schema.schema_id for schema in table.schemas] == [0, 1, 2]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ((*FIRST.fields, Field(5, "n", INT)), "'n' has id 5, which was used before"),
        ((Field(1, "id", STRING, True),), "int is not promoted to string"),
        ((Field(3, "s", INT),), "struct and int"),
        ((Field(3, "s", List(10, INT)),), "struct and list"),
        ((Field(3, "s", Struct((Field(4, "x", INT, True),))),), "'s.x' is optional and cannot become required"),
        ((Field(4, "x", INT, True, None, 1, 1),), "'x' is optional and cannot become required"),
    ],
)
def test_what_written_files_contradict_is_refused(fields, reason):
    with pytest.raises(InputError, match=reason):
        add_schema(TABLE, Schema(fields=fields))


def test_a_former_schema_does_not_come_back_with_a_narrower_type_or_a_stricter_column():
    for step in (PromoteColumn(column="id", type=LONG), MakeOptional(column="id")):
        with pytest.raises(InputError, match="'id'"):
            add_schema(after(TABLE, step), FIRST)


def test_a_dropped_required_column_comes_back_only_if_nothing_was_written_without_it():
    unwritten = after(written(TABLE), DropColumn(column="kind"))
    assert add_schema(unwritten, FIRST).schema == FIRST
    assert add_schema(after(TABLE, DropColumn(column="kind")), FIRST).schema == FIRST

    with pytest.raises(InputError, match="required column 'kind' was dropped, and rows were written without it"):
        add_schema(written(unwritten), FIRST)


def test_a_dropped_optional_column_may_come_back():
    table = written(after(written(TABLE), DropColumn(column="s")))

    assert add_schema(table, FIRST).schema == FIRST


def test_a_historic_spec_keeps_working_after_its_column_is_dropped():
    by_kind = PartitionField(source_id=2, field_id=1000, name="kind", transform="identity")
    old = PartitionSpec(spec_id=0, fields=(by_kind,))
    live = replace(TABLE, specs=(old,), last_partition_id=1000)

    with pytest.raises(InputError, match="partition field 'kind' of spec 0 needs it"):
        after(live, DropColumn(column="kind"))
    table = after(
        replace(live, specs=(old, replace(UNPARTITIONED, spec_id=1)), default_spec_id=1), DropColumn(column="kind")
    )

    assert "kind" not in table.schema.by_name
    assert manifest_context(table).partition_types == {1000: STRING}
