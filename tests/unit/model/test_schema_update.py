"""The chain of calls that changes a schema: each makes the steps it says, and nothing else."""

from __future__ import annotations

import datetime

import pytest

from icefloe.errors import InputError
from icefloe.model.evolution.evolve import evolve
from icefloe.model.evolution.schema_update import SchemaUpdate, update_of
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
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.spec import PartitionField, PartitionSpec
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import DATE, INT, LONG, STRING, TIMESTAMPTZ, Decimal, Field, List, Map, Struct
from unit.model.evolving import LAST, SCHEMA

UPDATE = SchemaUpdate(SCHEMA, last_column_id=LAST)
DAY = datetime.date(2026, 1, 31)


@pytest.mark.parametrize(
    ("call", "steps"),
    [
        (lambda u: u.add_column("x", "int"), [AddColumn(name="x", type=INT)]),
        (lambda u: u.add_column("x", "timestamp"), [AddColumn(name="x", type=TIMESTAMPTZ)]),
        (lambda u: u.add_column("x", Decimal(4, 1)), [AddColumn(name="x", type=Decimal(4, 1))]),
        (lambda u: u.add_column("address.x", "int"), [AddColumn(name="x", type=INT, parent="address")]),
        (
            lambda u: u.add_column("x", "date", required=True, doc="d", default=DAY, position=First()),
            [AddColumn(name="x", type=DATE, required=True, doc="d", default=DAY, position=First())],
        ),
        (lambda u: u.drop_column("note"), [DropColumn(column="note")]),
        (lambda u: u.rename_column("note", "a.b"), [RenameColumn(column="note", name="a.b")]),
        (lambda u: u.move_first("note"), [MoveColumn(column="note", position=First())]),
        (lambda u: u.move_before("note", "id"), [MoveColumn(column="note", position=Before("id"))]),
        (lambda u: u.move_after("note", "id"), [MoveColumn(column="note", position=After("id"))]),
        (lambda u: u.update_column("id", type="bigint"), [PromoteColumn(column="id", type=LONG)]),
        (lambda u: u.update_column("id", type=LONG), [PromoteColumn(column="id", type=LONG)]),
        (lambda u: u.update_column("id", required=False), [MakeOptional(column="id")]),
        (lambda u: u.update_column("id", doc=""), [SetDoc(column="id", doc="")]),
        (
            lambda u: u.update_column("id", type="bigint", doc="d", required=False),
            [PromoteColumn(column="id", type=LONG), MakeOptional(column="id"), SetDoc(column="id", doc="d")],
        ),
        (lambda u: u.set_doc("note", None), [SetDoc(column="note", doc=None)]),
        (lambda u: u.set_default("note", "x"), [SetDefault(column="note", default="x")]),
        (lambda u: u.set_identifiers("id", "ratio"), [SetIdentifiers(columns=("id", "ratio"))]),
        (lambda u: u.set_identifiers(), [SetIdentifiers(columns=())]),
        (lambda u: u.union_by_name("id bigint not null"), [PromoteColumn(column="id", type=LONG)]),
        (
            lambda u: u.union_by_name(Schema(fields=(Field(1, "id", INT, True), Field(2, "new", STRING)))),
            [AddColumn(name="new", type=STRING)],
        ),
        (lambda u: u.step(DropColumn(column="note")), [DropColumn(column="note")]),
    ],
)
def test_a_call_adds_its_steps(call, steps):
    update = call(UPDATE)

    assert update.steps == tuple(steps)
    assert UPDATE.steps == ()


def test_a_nested_type_is_given_as_text():
    update = UPDATE.add_column("m", "map<string, array<struct<a: int, b: date>>>")

    struct = Struct((Field(55, "a", INT), Field(56, "b", DATE)))
    assert update.apply().schema.field("m").type == Map(52, STRING, 53, List(54, struct))


def test_the_steps_are_carried_out_in_order_by_the_rules_of_evolution():
    update = UPDATE.rename_column("note", "remark").add_column("note", "int").move_before("note", "remark")

    assert update.apply() == evolve(SCHEMA, update.steps, last_column_id=LAST)
    assert [field.name for field in update.apply().schema.fields][-2:] == ["note", "remark"]


def test_a_union_sees_what_the_calls_before_it_did():
    update = UPDATE.rename_column("note", "remark").union_by_name("remark string, more int")

    assert update.steps[1:] == (AddColumn(name="more", type=INT),)


def test_without_a_last_column_id_new_ids_follow_the_highest():
    assert SchemaUpdate(SCHEMA).add_column("x", "int").apply().last_column_id == SCHEMA.highest_id + 1


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda u: u.update_column("note", required=True), "'note' cannot be made required: rows may hold null"),
        (lambda u: u.update_column("note"), "'note': say what to change"),
        (lambda u: u.add_column("x", "int, y int"), "'x': 'int, y int' is more than a type"),
        (lambda u: u.add_column("x", "int not null"), "'x': 'int not null' is more than a type"),
        (lambda u: u.add_column("x", "int comment 'c'"), "is more than a type"),
        (lambda u: u.add_column("x", "whatever"), "x"),
        (lambda u: u.add_column("gone.x", "int").apply(), "no column 'gone'"),
        (lambda u: u.drop_column("id").apply(), "it identifies rows"),
        (lambda u: u.union_by_name("note int"), "'note' cannot hold int"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(call, reason):
    with pytest.raises(InputError, match=reason):
        call(UPDATE)


def test_the_update_of_a_table_knows_its_version_its_ids_and_what_it_protects():
    part = PartitionField(source_id=7, field_id=1000, name="note", transform="identity")
    table = TableMetadata(
        format_version=3,
        table_uuid="u",
        location="file:///t",
        last_updated_ms=1,
        last_column_id=90,
        schemas=(SCHEMA,),
        current_schema_id=3,
        specs=(PartitionSpec(fields=(part,)),),
    )

    assert update_of(table).add_column("x", "int", default=1).apply().last_column_id == 91
    with pytest.raises(InputError, match="partition field 'note' of spec 0 needs it"):
        update_of(table).drop_column("note").apply()
