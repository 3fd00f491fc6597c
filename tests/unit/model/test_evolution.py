"""Schema evolution: what each step does, and what the format refuses and why."""

from __future__ import annotations

import pytest

from icefloe.model.evolution.evolve import Evolved, evolve
from icefloe.model.evolution.protected_columns import Protected, protected_of
from icefloe.model.evolution.steps import (
    AddColumn,
    After,
    Before,
    DropColumn,
    First,
    MakeOptional,
    MoveColumn,
    PromoteColumn,
    RenameColumn,
    SetDoc,
    SetIdentifiers,
)
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.sort_order import UNSORTED, SortField, SortOrder
from icefloe.model.partition.spec import PartitionField, PartitionSpec
from icefloe.model.schema.types import (
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    Decimal,
    Field,
    List,
    Map,
    Struct,
    walk,
)
from unit.model.evolving import LAST, SCHEMA, changed, names, refusal

# What the steps do


def test_no_step_changes_nothing():
    assert evolve(SCHEMA, (), last_column_id=LAST) == Evolved(schema=SCHEMA, last_column_id=LAST)


def test_a_new_column_comes_last_with_the_next_id():
    evolved = evolve(SCHEMA, [AddColumn(name="at", type=LONG, doc="when")], last_column_id=LAST)

    assert evolved.schema.fields == (*SCHEMA.fields, Field(51, "at", LONG, False, "when"))
    assert evolved.last_column_id == 51


def test_a_new_nested_column_is_numbered_level_by_level_whatever_ids_it_came_with():
    inner = Struct((Field(1, "x", Struct((Field(1, "deep", INT),))), Field(1, "y", Map(1, STRING, 1, List(1, INT)))))

    schema = changed(AddColumn(name="n", type=inner), AddColumn(name="z", type=INT))

    assert {name: f.id for name, f in walk(schema.fields) if f.id > LAST} == {
        "n": 51,
        "n.x": 52,
        "n.y": 53,
        "n.x.deep": 54,
        "n.y.key": 55,
        "n.y.value": 56,
        "n.y.value.element": 57,
        "z": 58,
    }


@pytest.mark.parametrize(
    ("parent", "struct"),
    [
        ("address", "address"),
        ("tags", "tags.element"),
        ("tags.element", "tags.element"),
        ("prices", "prices.value"),
        ("prices.value", "prices.value"),
    ],
)
def test_a_column_is_added_to_the_struct_in_a_struct_a_list_or_a_map(parent, struct):
    schema = changed(AddColumn(name="new", type=DATE, parent=parent))

    assert schema.field(f"{struct}.new") == Field(51, "new", DATE)
    assert names(schema, struct)[-1] == "new"
    assert names(schema) == names(SCHEMA)


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        (First(), ["new", "street", "zip"]),
        (Before("address.zip"), ["street", "new", "zip"]),
        (After("address.street"), ["street", "new", "zip"]),
        (After("address.zip"), ["street", "zip", "new"]),
        (None, ["street", "zip", "new"]),
    ],
)
def test_a_new_column_takes_its_place(position, expected):
    assert names(changed(AddColumn(name="new", type=INT, parent="address", position=position)), "address") == expected


def test_a_dropped_column_takes_what_is_inside_it_along():
    schema = changed(DropColumn(column="tags"), DropColumn(column="address.street"))

    assert names(schema) == ["id", "address", "prices", "sizes", "ratio", "note"]
    assert names(schema, "address") == ["zip"]
    assert set(SCHEMA.by_id) - set(schema.by_id) == {3, 20, 21, 22, 11}


def test_a_renamed_struct_keeps_every_id_and_its_fields_follow():
    schema = changed(RenameColumn(column="address", name="home"), RenameColumn(column="home.zip", name="code"))

    assert schema.field("home.code").id == 12
    assert list(schema.by_id) == list(SCHEMA.by_id)


def test_names_can_be_swapped_by_way_of_a_third_one():
    steps = [
        RenameColumn(column="id", name="other"),
        RenameColumn(column="note", name="id"),
        RenameColumn(column="other", name="note"),
    ]

    schema = changed(*steps)

    assert (schema.field("id").id, schema.field("note").id) == (7, 1)


def test_a_new_name_may_differ_from_the_old_one_in_case_alone():
    assert changed(RenameColumn(column="note", name="Note")).field("Note").id == 7


@pytest.mark.parametrize(
    ("column", "position", "expected"),
    [
        ("note", First(), ["note", "id", "address", "tags", "prices", "sizes", "ratio"]),
        ("note", Before("tags"), ["id", "address", "note", "tags", "prices", "sizes", "ratio"]),
        ("id", After("tags"), ["address", "tags", "id", "prices", "sizes", "ratio", "note"]),
        ("id", After("note"), ["address", "tags", "prices", "sizes", "ratio", "note", "id"]),
    ],
)
def test_a_moved_column_changes_its_place_and_nothing_else(column, position, expected):
    schema = changed(MoveColumn(column=column, position=position))

    assert names(schema) == expected
    assert schema.by_id == SCHEMA.by_id


def test_a_column_moves_inside_the_struct_of_a_list():
    schema = changed(MoveColumn(column="tags.element.weight", position=First()))

    assert names(schema, "tags.element") == ["weight", "label"]


def test_types_are_promoted_at_every_depth():
    schema = changed(
        PromoteColumn(column="id", type=LONG),
        PromoteColumn(column="tags.element.weight", type=DOUBLE),
        PromoteColumn(column="prices.value.net", type=Decimal(20, 2)),
        PromoteColumn(column="sizes.element", type=LONG),
    )

    promoted = ("id", "tags.element.weight", "prices.value.net", "sizes.element")
    assert [schema.field(name).type for name in promoted] == [LONG, DOUBLE, Decimal(20, 2), LONG]
    assert [schema.field(name).id for name in promoted] == [SCHEMA.field(name).id for name in promoted]


def test_required_columns_elements_and_map_values_become_optional():
    schema = changed(*(MakeOptional(column=c) for c in ("address.zip", "sizes.element", "prices.value", "note")))

    assert [schema.field(c).required for c in ("address.zip", "sizes.element", "prices.value", "note")] == [False] * 4
    assert schema.field("prices.key").required


def test_a_comment_is_set_and_taken_away():
    schema = changed(SetDoc(column="note", doc=None), SetDoc(column="address.zip", doc="five digits"))

    assert (schema.field("note").doc, schema.field("address.zip").doc) == (None, "five digits")


def test_a_dropped_column_may_be_added_again_and_is_another_one():
    schema = changed(DropColumn(column="note"), AddColumn(name="note", type=INT))

    assert schema.field("note") == Field(51, "note", INT)


def test_a_step_sees_what_the_steps_before_it_did():
    schema = changed(
        AddColumn(name="s", type=Struct((Field(1, "a", INT),))),
        AddColumn(name="b", type=INT, parent="s", position=Before("s.a")),
        RenameColumn(column="s", name="t"),
        PromoteColumn(column="t.a", type=LONG),
    )

    assert schema.field("t").type == Struct((Field(53, "b", INT), Field(52, "a", LONG)))


def test_a_name_with_a_dot_is_a_plain_name():
    schema = changed(AddColumn(name="a.b", type=INT), SetDoc(column="a.b", doc="dotted"))

    assert schema.fields[-1] == Field(51, "a.b", INT, doc="dotted")


# Identifier fields


def test_identifier_columns_are_replaced_and_then_free_to_change():
    schema = changed(
        SetIdentifiers(columns=("address.zip",)),
        MakeOptional(column="id"),
        RenameColumn(column="address.zip", name="z"),
    )

    assert schema.identifier_field_ids == (12,)
    assert not schema.field("id").required
    assert changed(SetIdentifiers(columns=()), DropColumn(column="id")).identifier_field_ids == ()


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        ("note", "it is optional"),
        ("ratio", "a double cannot identify rows"),
        ("address", "it is a struct"),
        ("sizes.element", "inside the list 'sizes'"),
        ("prices.key.k", "inside the map 'prices'"),
        ("tags.element.label", "it is optional"),
        ("gone", "no column 'gone'"),
    ],
)
def test_a_column_that_cannot_identify_rows_is_refused(column, reason):
    error = refusal(SetIdentifiers(columns=("id", column)))

    assert reason in str(error)
    assert error.context["field"] == column


def test_a_column_in_an_optional_struct_cannot_identify_rows():
    assert "inside 'address', which is optional" in str(
        refusal(MakeOptional(column="address"), SetIdentifiers(columns=("address.zip",)))
    )


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (DropColumn(column="address"), "'address.zip' inside it identifies rows"),
        (DropColumn(column="address.zip"), "it identifies rows"),
        (MakeOptional(column="address"), "'address.zip' inside it identifies rows"),
        (MakeOptional(column="address.zip"), "it identifies rows"),
    ],
)
def test_a_column_that_identifies_rows_is_neither_dropped_nor_made_optional(step, reason):
    error = refusal(SetIdentifiers(columns=("address.zip",)), step)

    assert reason in str(error)
    assert error.context["field"] == step.column


# Partition specs and sort orders


def spec(transform: str, source_id: int = 12, name: str = "zip_part", spec_id: int = 1) -> PartitionSpec:
    part = PartitionField(source_id=source_id, field_id=1000, name=name, transform=transform)
    return PartitionSpec(spec_id=spec_id, fields=(part,))


@pytest.mark.parametrize("column", ["address", "address.zip"])
def test_a_column_that_the_partitioning_or_the_sort_order_uses_is_not_dropped(column):
    order = SortOrder(order_id=4, fields=(SortField(source_id=12),))

    assert "partition field 'zip_part' of spec 1" in str(
        refusal(DropColumn(column=column), protected=Protected(specs=(spec("bucket[4]"),)))
    )
    assert "sort order 4 needs it" in str(refusal(DropColumn(column=column), protected=Protected(orders=(order,))))


def test_every_source_of_a_transform_of_several_columns_is_protected():
    part = PartitionField(source_id=1, other_source_ids=(7,), field_id=1000, name="both", transform="bucket[4]")
    order = SortOrder(order_id=4, fields=(SortField(source_id=1, other_source_ids=(7,), transform="bucket[4]"),))

    for protected in (Protected(specs=(PartitionSpec(fields=(part,)),)), Protected(orders=(order,))):
        assert "needs it" in str(refusal(DropColumn(column="note"), protected=protected))


def test_a_column_that_only_void_fields_or_historic_specs_use_may_be_dropped():
    protected = Protected(specs=(spec("void"),), historic=(spec("identity"),))

    assert 12 not in changed(DropColumn(column="address.zip"), protected=protected).by_id


def test_a_partition_column_may_be_renamed_moved_and_promoted():
    steps = [PromoteColumn(column="address.zip", type=LONG), RenameColumn(column="address.zip", name="code")]

    assert changed(*steps, protected=Protected(specs=(spec("bucket[4]"),))).field("address.code").type == LONG


@pytest.mark.parametrize("group", ["specs", "historic"])
@pytest.mark.parametrize("transform", ["bucket[4]", "identity", "void"])
@pytest.mark.parametrize(
    "step", [AddColumn(name="zip_part", type=INT), RenameColumn(column="note", name="zip_part")], ids=repr
)
def test_a_column_may_not_take_the_name_of_a_partition_field(group, transform, step):
    assert "partition field 'zip_part'" in str(refusal(step, protected=Protected(**{group: (spec(transform),)})))


def test_the_source_of_an_identity_field_may_take_its_name():
    protected = Protected(specs=(spec("identity", source_id=7, name="part"),))

    assert changed(RenameColumn(column="note", name="part"), protected=protected).field("part").id == 7


def test_a_name_that_column_and_partition_field_share_already_stays():
    protected = Protected(specs=(spec("bucket[4]", name="note"),))

    assert names(changed(AddColumn(name="x", type=INT), protected=protected))[-1] == "x"


def test_a_table_protects_its_default_spec_and_order_and_remembers_the_others():
    specs, orders = (spec("day", spec_id=1), spec("identity", spec_id=2)), (UNSORTED, SortOrder(order_id=1))
    metadata = TableMetadata(
        format_version=2,
        table_uuid="u",
        location="file:///t",
        last_updated_ms=1,
        last_column_id=LAST,
        schemas=(SCHEMA,),
        current_schema_id=3,
        specs=specs,
        default_spec_id=2,
        sort_orders=orders,
        default_sort_order_id=1,
    )

    assert protected_of(metadata) == Protected(specs=specs[1:], orders=orders[1:], historic=specs[:1])
