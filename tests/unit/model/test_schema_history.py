"""The schemas of a table over time: which id a new one gets, and what written files forbid."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icefloe.codecs.json.table_metadata import decode_metadata, encode_metadata
from icefloe.codecs.manifest.context import manifest_context
from icefloe.errors import InputError
from icefloe.maintenance.verify.findings import Rule, Severity
from icefloe.maintenance.verify.snapshot_history import check_history
from icefloe.model.evolution.evolve import evolve
from icefloe.model.evolution.protected_columns import protected_of
from icefloe.model.evolution.schema_history import add_schema
from icefloe.model.evolution.steps import (
    AddColumn,
    DropColumn,
    MakeOptional,
    PromoteColumn,
    SchemaChange,
    SetDoc,
    SetIdentifiers,
)
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.sort_order import UNSORTED, SortField, SortOrder
from icefloe.model.partition.spec import Expression, PartitionField, PartitionSpec
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import (
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NS,
    UNKNOWN,
    Field,
    List,
    Map,
    Struct,
)

FIRST = Schema(
    fields=(Field(1, "id", INT, True), Field(2, "kind", STRING, True), Field(3, "s", Struct((Field(4, "x", INT),))))
)
UUID = "f79c3e09-677c-4bbd-a479-3f349cb785e7"
TABLE = TableMetadata(
    format_version=2, table_uuid=UUID, location="file:///t", last_updated_ms=1, last_column_id=9, schemas=(FIRST,)
)


def after(table: TableMetadata, *steps: SchemaChange) -> TableMetadata:
    evolved = evolve(
        table.schema,
        steps,
        last_column_id=table.last_column_id,
        protected=protected_of(table),
        format_version=table.format_version,
    )
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
    return table.with_snapshot(snapshot)


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


def test_what_the_library_does_not_know_about_a_schema_is_part_of_it():
    marked = replace(FIRST, extra=(("owner", '"me"'),))

    table = add_schema(TABLE, marked)

    assert table.schema == replace(marked, schema_id=1)
    assert after(table, AddColumn(name="n", type=INT)).schema.extra == marked.extra


def test_a_dropped_column_that_returns_by_name_is_another_column():
    table = after(after(TABLE, DropColumn(column="kind")), AddColumn(name="kind", type=STRING))

    assert table.schema.field("kind").id == 10
    assert [schema.schema_id for schema in table.schemas] == [0, 1, 2]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ((*FIRST.fields, Field(5, "n", INT)), r"'n' \(id 5\) has an id that was used before"),
        ((Field(1, "id", STRING, True),), "int is not promoted to string"),
        ((Field(3, "s", INT),), "struct and int"),
        ((Field(3, "s", List(10, INT)),), "struct and list"),
        (
            (Field(3, "s", Struct((Field(4, "x", INT, True),))),),
            r"'s.x' \(id 4\) is optional and cannot become required",
        ),
        ((Field(1, "id", INT, True), Field(4, "x", INT)), r"'x' \(id 4\) was in another struct"),
        ((Field(3, "s", Struct((Field(1, "id", INT, True), Field(4, "x", INT)))),), "'s.id' .* was in another struct"),
        ((Field(10, "g", Struct((Field(1, "id", INT, True),))),), "'g.id' .* was in another struct"),
        ((Field(2_147_483_646, "n", INT),), "has a reserved id; column ids end at 2147483447"),
        ((Field(10, "n", TIMESTAMP_NS),), "is timestamp_ns, which needs format version 3 or later, this is 2"),
        ((Field(10, "n", List(11, UNKNOWN)),), "which needs format version 3 or later"),
        ((Field(10, "n", INT, False, None, None, 1),), "has a default, which needs format version 3"),
        ((Field(1, "id", INT, True, None, 1, 1),), "another initial default than before"),
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

    with pytest.raises(InputError, match=r"'kind' .* is required and was dropped, and rows were written without it"):
        add_schema(written(unwritten), FIRST)


def test_a_dropped_optional_column_may_come_back():
    table = written(after(written(TABLE), DropColumn(column="s")))

    assert add_schema(table, FIRST).schema == FIRST


def test_a_new_required_column_needs_a_default_once_rows_were_written():
    lacking = Schema(fields=(*FIRST.fields, Field(10, "n", INT, True)))
    inside = Schema(fields=(*FIRST.fields, Field(10, "n", Struct((Field(11, "x", INT, True),)))))
    later = replace(TABLE, format_version=3)

    assert add_schema(TABLE, lacking).schema.field("n").required
    with pytest.raises(InputError, match=r"'n' .* is required and new, and rows were written without it"):
        add_schema(written(TABLE), lacking)
    assert add_schema(written(TABLE), inside).schema.field("n.x").required
    defaulted = Schema(fields=(*FIRST.fields, Field(10, "n", INT, True, None, 0, 0)))
    assert add_schema(written(later), defaulted).schema.field("n").initial_default == 0


def test_the_initial_default_of_a_promoted_column_is_the_same_value_in_its_new_type():
    day = Field(1, "day", DATE, False, None, "2026-01-31", "2026-01-31")
    table = replace(TABLE, format_version=3, schemas=(Schema(fields=(day,)),))
    midnight = replace(day, type=TIMESTAMP, initial_default="2026-01-31T00:00:00.000000", write_default=None)

    assert add_schema(table, Schema(fields=(midnight,))).schema.field("day") == midnight
    for other in ("2026-01-31T00:00:01.000000", None):
        with pytest.raises(InputError, match="another initial default"):
            add_schema(table, Schema(fields=(replace(midnight, initial_default=other),)))


@pytest.mark.parametrize(
    ("field", "identifier", "reason"),
    [
        (Field(10, "c", LONG), 10, "it is optional"),
        (Field(10, "c", DOUBLE, True), 10, "a double cannot identify rows"),
        (Field(10, "c", List(11, LONG, True), True), 11, "it is inside the list 'c'"),
        (Field(10, "c", Map(11, LONG, 12, LONG), True), 11, "it is inside the map 'c'"),
        (Field(10, "c", Struct((Field(11, "x", LONG, True),))), 11, "it is inside 'c', which is optional"),
        (Field(2_147_483_448, "c", LONG), None, "reserved"),
        (Field(10, "c", List(2_147_483_448, LONG)), None, "reserved"),
    ],
)
def test_reserved_ids_and_unfit_identifier_fields_are_refused_and_found_in_tables_of_others(field, identifier, reason):
    """A schema with them was added by whoever did not come through the steps, and ``verify`` called its table sound."""
    chosen = () if identifier is None else (identifier,)
    schema = Schema(fields=(*FIRST.fields, field), identifier_field_ids=chosen)
    with pytest.raises(InputError, match=reason):
        add_schema(TABLE, schema)
    foreign = reloaded(replace(TABLE, schemas=(schema,), last_column_id=schema.highest_id))
    (finding,) = check_history(foreign, "here")
    assert (finding.rule, finding.severity) == (Rule.SCHEMAS, Severity.ERROR)
    assert reason in finding.message
    with pytest.raises(InputError, match=reason):
        after(foreign, SetDoc(column="kind", doc="changed"))
    fixed = after(foreign, SetIdentifiers(columns=()) if identifier is not None else DropColumn(column="c"))
    assert [each.severity for each in check_history(fixed, "here")] == [Severity.WARNING]


def test_map_keys_stay_as_they_are():
    keyed = replace(TABLE, schemas=(Schema(fields=(Field(1, "m", Map(2, INT, 3, INT)),)),))

    assert add_schema(keyed, Schema(fields=(Field(1, "m", Map(2, INT, 3, LONG)),))).current_schema_id == 1
    with pytest.raises(InputError, match=r"'m' .* is a map, and its keys cannot change"):
        add_schema(keyed, Schema(fields=(Field(1, "m", Map(2, LONG, 3, INT)),)))


def test_an_unknown_column_takes_fields_with_new_ids_inside():
    table = replace(TABLE, format_version=3, schemas=(Schema(fields=(Field(1, "u", UNKNOWN),)),))

    changed = add_schema(table, Schema(fields=(Field(1, "u", List(10, INT)),)))

    assert changed.last_column_id == 10
    with pytest.raises(InputError, match=r"'u.element' \(id 5\) has an id that was used before"):
        add_schema(table, Schema(fields=(Field(1, "u", List(5, INT)),)))


def test_an_expression_keeps_its_id_from_columns():
    size = Expression(expr_id=9, source_ids=(1,), transform="bucket[4]", name="size")
    table = replace(TABLE, format_version=4, expressions=(size,))

    assert after(table, AddColumn(name="n", type=INT)).schema.field("n").id == 10
    with pytest.raises(InputError, match="was used before"):
        add_schema(table, Schema(fields=(*FIRST.fields, Field(9, "n", INT))))


# Columns that partition specs and sort orders name


BY_KIND = PartitionField(source_id=2, field_id=1000, name="kind", transform="identity")
BY_X = PartitionField(source_id=4, field_id=1001, name="x_bucket", transform="bucket[4]")
X_BUCKET = Expression(expr_id=9, source_ids=(4,), transform="bucket[4]", name="x_bucket", partition_field_id=1001)


def partitioned(version: int) -> TableMetadata:
    """A table that was partitioned and sorted by two columns and is no more: v1 by void fields, later without."""
    voids = tuple(replace(part, transform="void") for part in (BY_KIND, BY_X))
    return replace(
        TABLE,
        format_version=version,
        specs=(
            PartitionSpec(spec_id=0, fields=(BY_KIND, BY_X)),
            PartitionSpec(spec_id=1, fields=voids if version == 1 else ()),
        ),
        default_spec_id=1,
        last_partition_id=1001,
        sort_orders=(UNSORTED, SortOrder(order_id=1, fields=(SortField(source_id=2), SortField(source_id=4)))),
        expressions=(X_BUCKET,) if version == 4 else (),
    )


def reloaded(table: TableMetadata) -> TableMetadata:
    return decode_metadata(encode_metadata(table), where="file:///t/metadata/v1.metadata.json")


@pytest.mark.parametrize("version", [1, 2, 3, 4])
@pytest.mark.parametrize("dropped", [("kind",), ("s",), ("s", "kind")])
def test_a_table_whose_former_partition_and_sort_columns_are_dropped_still_works(version, dropped):
    table = reloaded(after(partitioned(version), *(DropColumn(column=column) for column in dropped)))

    assert set(table.schema.by_name).isdisjoint(dropped)
    assert (table.types[2], table.types[4]) == (STRING, INT)
    context = manifest_context(table)
    assert context.partition_types == {1000: STRING, 1001: INT}
    assert context.spec(0).fields == (BY_KIND, BY_X)
    assert [key.source_id for key in table.sort_orders[1].fields] == [2, 4]
    again = reloaded(after(table, AddColumn(name="n", type=INT), PromoteColumn(column="id", type=LONG)))
    assert again.schema.field("n").id == 10
    assert manifest_context(again).partition_types == context.partition_types


@pytest.mark.parametrize("version", [1, 2, 3, 4])
@pytest.mark.parametrize(("column", "part"), [("kind", "kind"), ("s", "x_bucket"), ("s.x", "x_bucket")])
def test_a_column_that_the_table_is_partitioned_by_is_not_dropped(version, column, part):
    live = replace(partitioned(version), default_spec_id=0)

    with pytest.raises(InputError, match=f"partition field '{part}' of spec 0 needs it; evolve the partitioning first"):
        after(live, DropColumn(column=column))


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_column_that_the_table_is_sorted_by_is_not_dropped(version):
    live = replace(partitioned(version), default_sort_order_id=1)

    with pytest.raises(InputError, match="sort order 1 needs it; replace the sort order first"):
        after(live, DropColumn(column="kind"))


def test_the_name_of_a_historic_partition_field_is_given_to_a_column_once_its_own_column_is_gone():
    """A dropped partition column could not be added again, as it can in Apache Iceberg."""
    table = partitioned(2)

    with pytest.raises(InputError, match="partition field 'x_bucket' of spec 0"):
        after(table, AddColumn(name="x_bucket", type=STRING))
    again = reloaded(after(after(table, DropColumn(column="kind")), AddColumn(name="kind", type=STRING)))
    assert again.schema.field("kind").id == table.last_column_id + 1
    assert manifest_context(again).partition_types == manifest_context(table).partition_types


def test_a_table_whose_former_schemas_were_removed_still_loads():
    table = after(partitioned(2), DropColumn(column="kind"))
    alone = reloaded(replace(table, schemas=(table.schema,)))

    assert 2 not in alone.types
    assert manifest_context(alone).partition_types == {1001: INT}
