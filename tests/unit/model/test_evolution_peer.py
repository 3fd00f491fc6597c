"""Schemas, ids and name mappings after random changes, beside those that pyiceberg makes of the same changes.

Left out is what pyiceberg cannot do or does otherwise: it resolves every name in the schema before the change, so a
column that was renamed or added is not named again, the name of a renamed one is not given away, and one that is
dropped and added again is not placed; it moves after it drops, so no column is put beside one that is dropped later; it
never takes a comment away; in a union it refuses new required columns, which here become optional; it lets the scale
of a decimal change; and it neither checks identifier columns nor refuses names that differ in case.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.schema import Schema as PeerSchema
from pyiceberg.table.name_mapping import create_mapping_from_schema, update_mapping
from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.types import StructType

from icefloe.codecs.json.name_mapping import decode_mapping
from icefloe.codecs.json.schema import schema_from_json, schema_to_json
from icefloe.errors import InputError
from icefloe.model.evolution.evolve import evolve
from icefloe.model.evolution.schema_union import union_by_name
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
    SchemaChange,
    SetDoc,
    SetIdentifiers,
)
from icefloe.model.schema.name_mapping import mapping_of, updated_mapping
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import DATE, DOUBLE, INT, LONG, STRING, Decimal, Field, List, Map, Struct
from unit.model.evolving import ADDRESS, KEY, LAST, SCHEMA

WORDS = st.sampled_from(["a", "b", "c", "d", "id", "zip", "note", "tags", "label"])
COLUMNS = st.sampled_from(list(SCHEMA.by_name))
STRUCTS = st.sampled_from(["address", "tags", "tags.element", "prices", "prices.value"])
TYPES = st.sampled_from([INT, DATE, ADDRESS, List(1, KEY), Map(1, STRING, 2, ADDRESS), List(1, List(2, ADDRESS))])
WIDER = {"id": LONG, "address.zip": LONG, "tags.element.weight": DOUBLE, "prices.value.net": Decimal(12, 2)}
WIDER |= {"sizes.element": LONG}
POSITIONS = st.one_of(st.builds(First), st.builds(Before, COLUMNS), st.builds(After, COLUMNS))
STEPS = st.one_of(
    st.builds(AddColumn, name=WORDS, type=TYPES, parent=st.none() | STRUCTS, doc=st.none() | WORDS),
    st.builds(AddColumn, name=WORDS, type=TYPES, position=POSITIONS),
    st.builds(DropColumn, column=COLUMNS),
    st.builds(RenameColumn, column=COLUMNS, name=WORDS),
    st.builds(MoveColumn, column=COLUMNS, position=POSITIONS),
    st.sampled_from([PromoteColumn(column=column, type=type_) for column, type_ in WIDER.items()]),
    st.builds(MakeOptional, column=COLUMNS),
    st.builds(SetDoc, column=COLUMNS, doc=WORDS),
)


def peer_schema(schema: Schema) -> PeerSchema:
    return PeerSchema.model_validate(schema_to_json(schema))


def peer_update(schema: Schema) -> UpdateSchema:
    """Pyiceberg's update of a table that has nothing but this schema."""
    peer = peer_schema(schema)
    metadata = SimpleNamespace(schemas=[peer], partition_specs=[], last_column_id=LAST, schema=lambda: peer)
    return UpdateSchema(SimpleNamespace(table_metadata=metadata))


def peer_type(type_: Any) -> Any:
    return peer_schema(Schema(fields=(Field(10_000, "x", type_),))).fields[0].field_type


def tell(update: UpdateSchema, step: SchemaChange) -> None:
    """Say a step in pyiceberg's words."""
    match step:
        case AddColumn():
            path = (step.name,) if step.parent is None else (step.parent, step.name)
            update.add_column(path, peer_type(step.type), doc=step.doc)
            if step.position is not None:
                place(update, step.name, step.position)
        case DropColumn():
            update.delete_column(step.column)
        case RenameColumn():
            update.rename_column(step.column, step.name)
        case MoveColumn():
            place(update, step.column, step.position)
        case PromoteColumn():
            update.update_column(step.column, field_type=peer_type(step.type))
        case MakeOptional():
            update.make_column_optional(step.column)
        case SetDoc():
            update.update_column(step.column, doc=step.doc)
        case _:
            pytest.fail(f"pyiceberg is not asked for {step}")


def place(update: UpdateSchema, column: str, position: object) -> None:
    match position:
        case Before(other):
            update.move_before(column, other)
        case After(other):
            update.move_after(column, other)
        case _:
            update.move_first(column)


def ours_of(theirs: PeerSchema) -> tuple[Field, ...]:
    return schema_from_json(theirs.model_dump(by_alias=True)).fields


def mentioned(step: SchemaChange) -> set[str]:
    """The columns of the schema before the change that a step names."""
    position = getattr(step, "position", None)
    named = {getattr(step, "column", None), getattr(step, "parent", None), getattr(position, "column", None)}
    return {name for name in named if name is not None}


def spelled(former: SchemaChange, step: AddColumn) -> bool:
    """Whether the new column has the last name of one that was renamed."""
    return isinstance(former, RenameColumn) and former.column.rpartition(".")[2] == step.name


@st.composite
def common_steps(draw: st.DrawFn) -> list[SchemaChange]:
    """Legal steps that name no column which another step renamed, dropped or added."""
    legal: list[SchemaChange] = []
    gone: set[str] = set()
    for step in draw(st.lists(STEPS, max_size=12)):
        if any(name == g or name.startswith(f"{g}.") for name in mentioned(step) for g in gone):
            continue
        if isinstance(step, AddColumn) and any(spelled(former, step) for former in legal):
            continue
        if isinstance(step, AddColumn) and step.position is not None and step.name in gone:
            continue
        if isinstance(step, DropColumn) and any(step.column in mentioned(former) for former in legal):
            continue
        try:
            evolve(SCHEMA, [*legal, step], last_column_id=LAST)
        except InputError:
            continue
        legal.append(step)
        if isinstance(step, RenameColumn | DropColumn):
            gone.add(step.column)
        if isinstance(step, RenameColumn):
            gone.add(".".join([*step.column.split(".")[:-1], step.name]))
        if isinstance(step, AddColumn) and step.parent is None:
            gone.add(step.name)
    return legal


@given(common_steps())
def test_pyiceberg_makes_the_same_schema_with_the_same_ids(steps):
    update = peer_update(SCHEMA)
    for step in steps:
        tell(update, step)

    evolved = evolve(SCHEMA, steps, last_column_id=LAST)

    theirs = update._apply()
    assert ours_of(theirs) == evolved.schema.fields
    assert sorted(theirs.identifier_field_ids) == list(evolved.schema.identifier_field_ids)
    assert update.assign_new_column_id() - 1 == evolved.last_column_id


@given(common_steps())
def test_pyiceberg_makes_the_same_name_mapping(steps):
    update = peer_update(SCHEMA)
    for step in steps:
        tell(update, step)
    theirs = update_mapping(create_mapping_from_schema(peer_schema(SCHEMA)), update._updates, update._adds)

    after = evolve(SCHEMA, steps, last_column_id=LAST).schema

    assert updated_mapping(mapping_of(SCHEMA), SCHEMA, after) == decode_mapping(theirs.model_dump_json())


OTHER = Schema(
    fields=(
        Field(1, "first", Struct((Field(2, "x", INT), Field(3, "y", List(4, INT))))),
        Field(5, "id", LONG, True),
        Field(6, "address", Struct((Field(7, "city", STRING, doc="where"), Field(8, "zip", LONG))), True),
        Field(9, "tags", List(40, Struct((Field(41, "weight", DOUBLE), Field(42, "more", ADDRESS))))),
        Field(20, "prices", Map(21, KEY, 22, Struct((Field(23, "net", Decimal(7, 2)), Field(24, "vat", INT))))),
        Field(25, "last", STRING, doc="at the end"),
    )
)


@given(st.permutations(OTHER.fields), st.integers(1, len(OTHER.fields)))
def test_pyiceberg_makes_the_same_union(fields, size):
    other = Schema(fields=tuple(fields[:size]))
    theirs = peer_update(SCHEMA).union_by_name(peer_schema(other))._apply()

    assert ours_of(theirs) == evolve(SCHEMA, union_by_name(SCHEMA, other), last_column_id=LAST).schema.fields


@pytest.mark.parametrize(
    "step",
    [
        AddColumn(name="note", type=INT),
        AddColumn(name="x", type=INT, required=True),
        AddColumn(name="x", type=INT, parent="note"),
        AddColumn(name="x", type=INT, parent="prices.key"),
        AddColumn(name="x", type=INT, position=After("address.zip")),
        DropColumn(column="gone"),
        DropColumn(column="id"),
        DropColumn(column="tags.element"),
        DropColumn(column="prices.key"),
        DropColumn(column="prices.key.k"),
        RenameColumn(column="prices.key.k", name="x"),
        MoveColumn(column="note", position=Before("note")),
        MoveColumn(column="note", position=Before("address.zip")),
        MoveColumn(column="prices.value", position=First()),
        PromoteColumn(column="ratio", type=INT),
        PromoteColumn(column="prices.value.net", type=Decimal(8, 2)),
        PromoteColumn(column="prices.key.k", type=LONG),
    ],
    ids=repr,
)
def test_pyiceberg_refuses_it_too(step):
    with pytest.raises(InputError):
        evolve(SCHEMA, [step], last_column_id=LAST)
    update = peer_update(SCHEMA)
    with pytest.raises(Exception, match=r"(?i)cannot|could not|incompatible"):
        refused(update, step)


def refused(update: UpdateSchema, step: SchemaChange) -> None:
    if isinstance(step, AddColumn) and step.required:
        update.add_column(step.name, peer_type(step.type), required=True)
    else:
        tell(update, step)
    assert isinstance(update._apply().as_struct(), StructType)


def test_identifier_columns_keep_their_ids_through_a_rename_here_and_there():
    update = peer_update(SCHEMA).rename_column("id", "key")

    ours = evolve(SCHEMA, [RenameColumn(column="id", name="key")], last_column_id=LAST).schema

    assert list(update._apply().identifier_field_ids) == list(ours.identifier_field_ids) == [1]


def test_identifier_columns_are_set_alike():
    update = peer_update(SCHEMA)
    update.set_identifier_fields("address.zip", "id")

    ours = evolve(SCHEMA, [SetIdentifiers(columns=("address.zip", "id"))], last_column_id=LAST).schema

    assert sorted(update._apply().identifier_field_ids) == list(ours.identifier_field_ids)
