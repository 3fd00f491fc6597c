"""Schema evolution: what the format does not allow, and why."""

from __future__ import annotations

import pytest

from icefloe.errors import InputError
from icefloe.model.evolution.evolve import evolve
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
    SetDefault,
    SetDoc,
    SetIdentifiers,
)
from icefloe.model.schema.metadata_columns import MAX_COLUMN_ID
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import (
    BINARY,
    FLOAT,
    INT,
    LONG,
    STRING,
    VARIANT,
    Decimal,
    Field,
    List,
    Map,
    Struct,
)
from unit.model.evolving import ADDRESS, LAST, SCHEMA, changed, names, refusal

ONE = Struct((Field(1, "x", INT),))


@pytest.mark.parametrize(
    ("step", "column", "reason"),
    [
        (AddColumn(name="note", type=INT), "note", "two columns named 'note'"),
        (AddColumn(name="NOTE", type=INT), "NOTE", "differ from 'note' only in case"),
        (AddColumn(name="address.zip", type=INT), "address.zip", "two columns named 'address.zip'"),
        (AddColumn(name="zip", type=INT, parent="address"), "address.zip", "two columns named 'address.zip'"),
        (AddColumn(name="", type=INT), "", "its name is empty"),
        (AddColumn(name="x", type=INT, parent="note"), "note.x", "'note' holds string, not a struct"),
        (AddColumn(name="x", type=INT, parent="sizes"), "sizes.x", "'sizes' holds int, not a struct"),
        (AddColumn(name="x", type=INT, parent="gone"), "gone", "no column 'gone'; the table has: id, address"),
        (AddColumn(name="x", type=INT, parent="prices.key"), "prices.key.x", "keys of map 'prices' cannot change"),
        (AddColumn(name="x", type=INT, required=True), "x", "defaults need format version 3 or later; add it as opt"),
        (AddColumn(name="x", type=INT, default=1), "x", "defaults need format version 3 or later, this is 2"),
        (AddColumn(name="x", type=INT, position=After("address.zip")), "x", "in another struct"),
        (AddColumn(name="x", type=INT, position=After("x")), "x", "relative to itself"),
        (AddColumn(name="x", type=INT, position=Before("gone")), "gone", "no column 'gone'"),
        (DropColumn(column="gone"), "gone", "no column 'gone'"),
        (DropColumn(column="tags.element"), "tags.element", "it is the element of 'tags'"),
        (DropColumn(column="prices.key"), "prices.key", "it is the key of 'prices'"),
        (DropColumn(column="prices.key.k"), "prices.key.k", "keys of map 'prices' cannot change"),
        (RenameColumn(column="gone", name="x"), "gone", "no column 'gone'"),
        (RenameColumn(column="note", name="id"), "id", "two columns named 'id'"),
        (RenameColumn(column="note", name="Id"), "Id", "differ from 'id' only in case"),
        (RenameColumn(column="note", name=""), "note", "its new name is empty"),
        (RenameColumn(column="sizes.element", name="x"), "sizes.element", "it is the element of 'sizes'"),
        (RenameColumn(column="prices.key.k", name="x"), "prices.key.k", "keys of map 'prices' cannot change"),
        (MoveColumn(column="gone", position=First()), "gone", "no column 'gone'"),
        (MoveColumn(column="note", position=Before("note")), "note", "relative to itself"),
        (MoveColumn(column="note", position=Before("address.zip")), "note", "'address.zip' is in another struct"),
        (MoveColumn(column="address.zip", position=After("note")), "address.zip", "'note' is in another struct"),
        (MoveColumn(column="prices.value", position=First()), "prices.value", "it is the value of 'prices'"),
        (MoveColumn(column="prices.key.k", position=First()), "prices.key.k", "keys of map 'prices' cannot change"),
        (PromoteColumn(column="ratio", type=FLOAT), "ratio", "float is narrower than double"),
        (PromoteColumn(column="id", type=STRING), "id", "int is not promoted to string"),
        (PromoteColumn(column="note", type=ADDRESS), "note", "string and struct never turn into each other"),
        (PromoteColumn(column="address", type=INT), "address", "struct and int never turn into each other"),
        (
            PromoteColumn(column="prices.value.net", type=Decimal(9, 3)),
            "prices.value.net",
            "the scale of decimal(9, 2)",
        ),
        (PromoteColumn(column="prices.value.net", type=Decimal(8, 2)), "prices.value.net", "decimal(8, 2) is narrower"),
        (PromoteColumn(column="prices.key.k", type=LONG), "prices.key.k", "keys of map 'prices' cannot change"),
        (MakeOptional(column="id"), "id", "it identifies rows"),
        (MakeOptional(column="prices.key"), "prices.key", "keys of map 'prices' cannot change"),
        (MakeOptional(column="prices.key.k"), "prices.key.k", "keys of map 'prices' cannot change"),
        (SetDoc(column="sizes.element", doc="x"), "sizes.element", "it is the element of 'sizes'"),
    ],
    ids=repr,
)
def test_an_illegal_step_is_refused_with_column_and_reason(step, column, reason):
    before = repr(SCHEMA)

    error = refusal(step)

    assert reason in str(error)
    assert error.context["field"] == column
    assert repr(SCHEMA) == before


# The sentences of the spec about what is not allowed, each in every shape that a step can give it.
TWO = Schema(
    fields=(
        Field(1, "a", INT),
        Field(2, "s", Struct((Field(3, "b", INT), Field(4, "c", STRING, True)))),
        Field(5, "one", Struct((Field(6, "x", INT),))),
        Field(7, "m", Map(8, STRING, 9, INT)),
        Field(10, "n", Map(11, STRING, 12, Struct((Field(13, "x", INT),)))),
        Field(14, "l", List(15, INT)),
    )
)
FORBIDDEN = [
    ("fields are not grouped into a struct", MoveColumn(column="a", position=After("s.b")), "in another struct"),
    ("fields do not move into the parent", MoveColumn(column="s.b", position=Before("a")), "in another struct"),
    ("a primitive is no struct", PromoteColumn(column="a", type=ONE), "int and struct never turn into each other"),
    ("a struct is no primitive", PromoteColumn(column="one", type=INT), "struct and int never turn into each other"),
    ("map values become no structs", PromoteColumn(column="m.value", type=ONE), "int and struct never turn"),
    ("map values become no primitives", PromoteColumn(column="n.value", type=INT), "struct and int never turn"),
    ("a primitive is no list", PromoteColumn(column="a", type=List(1, INT)), "int and list never turn"),
    ("a list is no primitive", PromoteColumn(column="l", type=INT), "list and int never turn"),
    ("a list is no map", PromoteColumn(column="l", type=Map(1, INT, 2, INT)), "list and map never turn"),
    ("a struct is no other struct", PromoteColumn(column="s", type=ONE), "struct and struct never turn"),
    ("nothing turns into a variant", PromoteColumn(column="a", type=VARIANT), "int and variant never turn"),
    ("a required field needs a default", AddColumn(name="r", type=INT, required=True), "give a default"),
    ("it does at every depth", AddColumn(name="r", type=INT, required=True, parent="n"), "give a default"),
    ("map keys have no new fields", AddColumn(name="r", type=INT, parent="m.key"), "holds string, not a struct"),
    ("map keys are not promoted", PromoteColumn(column="m.key", type=BINARY), "keys of map 'm' cannot change"),
    ("map keys are not dropped", DropColumn(column="m.key"), "it is the key of 'm'"),
    ("elements are not dropped", DropColumn(column="l.element"), "it is the element of 'l'"),
    ("identifiers are required", SetIdentifiers(columns=("a",)), "it is optional"),
    ("identifiers are in required structs", SetIdentifiers(columns=("s.c",)), "inside 's', which is optional"),
    ("identifiers are primitive", SetIdentifiers(columns=("one",)), "it is a struct"),
    ("identifiers are in no list", SetIdentifiers(columns=("l.element",)), "it is optional"),
    ("identifiers are in no map", SetIdentifiers(columns=("m.key",)), "it is inside the map 'm'"),
]


@pytest.mark.parametrize(("step", "reason"), [(s, r) for _, s, r in FORBIDDEN], ids=[rule for rule, _, _ in FORBIDDEN])
def test_what_the_spec_forbids_is_refused_and_changes_nothing(step, reason):
    before = repr(TWO)

    with pytest.raises(InputError) as caught:
        evolve(TWO, [AddColumn(name="fine", type=INT), step], last_column_id=LAST, format_version=3)

    assert reason in str(caught.value)
    assert "field" in caught.value.context
    assert repr(TWO) == before


METADATA_NAMES = ["_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number"]


@pytest.mark.parametrize("name", METADATA_NAMES)
def test_the_names_of_metadata_columns_are_not_for_columns(name):
    assert "is the name of a metadata column" in str(refusal(AddColumn(name=name, type=INT)))
    assert "is the name of a metadata column" in str(refusal(RenameColumn(column="note", name=name)))
    assert changed(AddColumn(name=name, type=INT, parent="address")).field(f"address.{name}").id == 51
    assert changed(RenameColumn(column="address.street", name=name)).field(f"address.{name}").id == 11


def test_a_name_inside_a_new_struct_is_not_empty():
    assert "'s.' cannot be added: its name is empty" in str(
        refusal(AddColumn(name="s", type=Struct((Field(1, "", INT),))))
    )


def test_what_is_no_step_is_refused():
    assert "not a step" in str(refusal("drop id"))


def test_a_new_struct_with_a_repeated_name_is_refused():
    assert "two columns named 's.a'" in str(
        refusal(AddColumn(name="s", type=Struct((Field(1, "a", INT), Field(2, "a", INT)))))
    )


def test_a_struct_keeps_at_least_one_field():
    both = [DropColumn(column="address.zip"), DropColumn(column="address.street")]

    assert "'address' would have no fields left" in str(refusal(*both))
    assert "'s' has no fields" in str(refusal(AddColumn(name="s", type=Struct(()))))
    assert names(changed(*both, AddColumn(name="x", type=INT, parent="address")), "address") == ["x"]
    assert "address" not in changed(*both, DropColumn(column="address")).by_name


def test_a_table_keeps_at_least_one_column():
    drops = [DropColumn(column=field.name) for field in SCHEMA.fields]

    assert "the table would have no fields left" in str(refusal(SetIdentifiers(columns=()), *drops))


def test_a_renamed_struct_may_not_bring_its_fields_to_taken_names():
    steps = [AddColumn(name="home.zip", type=INT), RenameColumn(column="address", name="home")]

    assert "two columns named 'home.zip'" in str(refusal(*steps))


@pytest.mark.parametrize(
    "step",
    [
        AddColumn(name="x", type=INT, parent="address"),
        RenameColumn(column="address", name="x"),
        MoveColumn(column="address", position=First()),
        MoveColumn(column="note", position=After("address")),
        PromoteColumn(column="address.zip", type=LONG),
        MakeOptional(column="address"),
        SetDoc(column="address", doc="x"),
        SetDefault(column="address.street", default=None),
        DropColumn(column="address"),
        SetIdentifiers(columns=("address.zip",)),
    ],
    ids=repr,
)
def test_a_dropped_column_is_not_changed_by_the_same_change(step):
    assert "an earlier step of this change drops it" in str(refusal(DropColumn(column="address"), step))


@pytest.mark.parametrize(
    "step",
    [
        AddColumn(name="x", type=INT, parent="address"),
        PromoteColumn(column="address.zip", type=LONG),
        MoveColumn(column="address", position=First()),
        SetDoc(column="address", doc="x"),
    ],
    ids=repr,
)
def test_a_changed_column_is_not_dropped_by_the_same_change(step):
    assert "another step of this change adds or changes" in str(refusal(step, DropColumn(column="address")))


def test_a_last_column_id_below_the_schema_is_refused_because_ids_would_be_used_twice():
    assert "used twice" in str(refusal(last_column_id=39))


def test_column_ids_end_before_those_of_metadata_columns():
    step = AddColumn(name="x", type=List(0, INT))

    assert "column ids end at" in str(refusal(step, last_column_id=MAX_COLUMN_ID - 1))
    assert changed(step, last_column_id=MAX_COLUMN_ID - 2).highest_id == MAX_COLUMN_ID


def test_columns_that_differ_in_case_alone_do_not_stop_other_changes():
    schema = Schema(fields=(Field(1, "a", INT), Field(2, "A", INT)))

    evolved = evolve(schema, [RenameColumn(column="A", name="b"), AddColumn(name="c", type=INT)], last_column_id=2)

    assert names(evolved.schema) == ["a", "b", "c"]
