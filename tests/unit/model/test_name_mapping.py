"""Name mappings: the names that columns have in files without ids, and how they follow the schema."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.errors import FormatError, InputError
from icefloe.model.evolution.evolve import evolve
from icefloe.model.evolution.steps import AddColumn, DropColumn, PromoteColumn, RenameColumn, SchemaChange
from icefloe.model.schema.name_mapping import MappedField, NameMapping, mapping_of, updated_mapping
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import DATE, INT, LONG, STRING, Field, List, Struct
from unit.model.evolving import LAST, SCHEMA


def mapped(field_id: int | None, *names: str, fields: tuple[MappedField, ...] = ()) -> MappedField:
    return MappedField(names=names, field_id=field_id, fields=fields)


def id_of(mapping: NameMapping, path: Iterable[str]) -> int | None:
    found = mapping.find(path)
    return None if found is None else found.field_id


SPEC_EXAMPLE = NameMapping(
    fields=(
        mapped(1, "id", "record_id"),
        mapped(2, "data"),
        mapped(3, "location", fields=(mapped(4, "latitude", "lat"), mapped(5, "longitude", "long"))),
    )
)


def after(mapping: NameMapping, *steps: SchemaChange, schema: Schema = SCHEMA) -> NameMapping:
    return updated_mapping(mapping, schema, evolve(schema, steps, last_column_id=LAST).schema)


# From names to ids


def test_every_name_of_a_field_leads_to_its_id():
    paths = [("id",), ("record_id",), ("location", "lat"), ("location", "latitude"), ("location", "long")]

    assert [id_of(SPEC_EXAMPLE, path) for path in paths] == [1, 1, 4, 4, 5]


@pytest.mark.parametrize("path", [(), ("lat",), ("ID",), ("id", "lat"), ("location", "x"), ("location.lat",)])
def test_an_unknown_path_has_no_id(path):
    assert id_of(SPEC_EXAMPLE, path) is None


def test_a_dot_in_a_name_is_a_plain_character():
    mapping = NameMapping(fields=(mapped(1, "a.b"), mapped(2, "a", fields=(mapped(3, "b"),))))

    assert (id_of(mapping, ("a.b",)), id_of(mapping, ("a", "b"))) == (1, 3)


def test_fields_may_lack_an_id_or_names():
    mapping = NameMapping(fields=(mapped(None, "extra", fields=(mapped(7, "inner"),)), mapped(2)))

    assert mapping.find(("extra",)) == mapping.fields[0]
    assert id_of(mapping, ("extra",)) is None
    assert id_of(mapping, ("extra", "inner")) == 7
    assert mapping.ids == {2, 7}


def test_the_mapping_of_a_schema_knows_every_field_by_its_own_name():
    mapping = mapping_of(SCHEMA)

    assert {name: id_of(mapping, name.split(".")) for name in SCHEMA.by_name} == {
        name: field.id for name, field in SCHEMA.by_name.items()
    }
    assert mapping.ids == set(SCHEMA.by_id)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ((mapped(1, "a"), mapped(2, "b", "a")), "b: the name 'a' is given twice"),
        ((mapped(1, "a", "a"),), "a: the name 'a' is given twice"),
        ((mapped(1, "a"), mapped(1, "b")), "b: the id 1 is given twice"),
        ((mapped(1, "a", fields=(mapped(2, "x"), mapped(2, "y"))),), r"a\.y: the id 2 is given twice"),
        ((mapped(1, "a", fields=(mapped(2, "x"), mapped(3, "x"))),), r"a\.x: the name 'x' is given twice"),
        ((mapped(1, "a", fields=(mapped(1),)),), r"a\.1: the id 1 is given twice"),
    ],
)
def test_a_name_stands_for_one_field_and_an_id_too(fields, problem):
    with pytest.raises(FormatError, match=problem):
        NameMapping(fields=fields)


def test_the_same_name_may_stand_in_two_structs():
    inner = (mapped(2, "x"),)
    mapping = NameMapping(fields=(mapped(1, "a", fields=inner), mapped(3, "x")))

    assert id_of(mapping, ("a", "x")) == 2


def test_names_at_every_depth_are_checked_without_recursion():
    deep = mapped(0, "x")
    for field_id in range(1, 3_000):
        deep = mapped(field_id, "x", fields=(deep,))

    mapping = NameMapping(fields=(deep,))

    assert id_of(mapping, ["x"] * 3_000) == 0
    assert len(mapping.ids) == 3_000


# Beside an evolving schema


def test_a_renamed_field_has_both_names():
    mapping = after(
        mapping_of(SCHEMA),
        RenameColumn(column="note", name="remark"),
        RenameColumn(column="tags.element.label", name="text"),
    )

    assert [id_of(mapping, (name,)) for name in ("note", "remark")] == [7, 7]
    assert [id_of(mapping, ("tags", "element", name)) for name in ("label", "text")] == [21, 21]


def test_a_field_that_gets_a_former_name_back_has_it_once():
    there = evolve(SCHEMA, [RenameColumn(column="note", name="remark")], last_column_id=LAST).schema

    mapping = updated_mapping(updated_mapping(mapping_of(SCHEMA), SCHEMA, there), there, SCHEMA)

    assert mapping.find(("note",)) == mapped(7, "note", "remark")


def test_a_new_field_has_its_name_and_so_have_the_fields_inside_it():
    new = Struct((Field(1, "x", INT), Field(2, "y", List(3, DATE))))

    mapping = after(mapping_of(SCHEMA), AddColumn(name="n", type=new), AddColumn(name="m", type=INT, parent="prices"))

    assert mapping.find(("n",)) == mapped(
        51, "n", fields=(mapped(52, "x"), mapped(53, "y", fields=(mapped(54, "element"),)))
    )
    assert id_of(mapping, ("prices", "value", "m")) == 55


def test_a_dropped_field_keeps_its_names():
    mapping = after(mapping_of(SCHEMA), DropColumn(column="address"))

    assert mapping == mapping_of(SCHEMA)


def test_a_new_field_takes_its_name_from_a_dropped_one_which_leaves_with_its_last_name():
    mapping = after(mapping_of(SCHEMA), DropColumn(column="note"), AddColumn(name="note", type=INT))

    assert id_of(mapping, ("note",)) == 51
    assert 7 not in mapping.ids


def test_a_new_field_takes_the_former_name_of_a_renamed_one():
    mapping = after(mapping_of(SCHEMA), RenameColumn(column="note", name="remark"), AddColumn(name="note", type=INT))

    assert [id_of(mapping, (name,)) for name in ("note", "remark")] == [51, 7]


def test_a_renamed_field_takes_the_alias_of_another():
    mapping = after(SPEC_EXAMPLE, RenameColumn(column="data", name="record_id"), schema=LOCATED)

    assert [id_of(mapping, (name,)) for name in ("id", "record_id", "data")] == [1, 2, 2]


LOCATED = Schema(
    fields=(
        Field(1, "id", LONG),
        Field(2, "data", STRING),
        Field(3, "location", Struct((Field(4, "latitude", INT), Field(5, "longitude", INT)))),
        Field(6, "late", Struct((Field(7, "x", INT),))),
    )
)


def test_names_that_only_files_know_stay():
    mapping = NameMapping(fields=(*SPEC_EXAMPLE.fields, mapped(None, "extra"), mapped(9)))

    assert after(mapping, PromoteColumn(column="location.latitude", type=LONG), schema=LOCATED) == mapping


def test_a_new_column_takes_the_name_of_a_column_that_only_files_had():
    mapping = NameMapping(fields=(*SPEC_EXAMPLE.fields, mapped(None, "extra", "surplus")))

    changed = after(mapping, AddColumn(name="extra", type=INT), schema=LOCATED)

    assert changed.fields[-2:] == (mapped(None, "surplus"), mapped(LAST + 1, "extra"))


def test_what_is_inside_a_field_that_the_mapping_never_had_is_left_out():
    changed = after(SPEC_EXAMPLE, AddColumn(name="y", type=INT, parent="late"), schema=LOCATED)

    assert changed == SPEC_EXAMPLE


def test_an_id_that_the_mapping_has_already_is_not_added_again():
    ahead = NameMapping(fields=(mapped(LAST + 1, "soon"),))

    assert after(ahead, AddColumn(name="n", type=INT), schema=LOCATED) == ahead


def test_swapped_names_belong_to_who_has_them_now():
    steps = [
        RenameColumn(column="id", name="tmp"),
        RenameColumn(column="data", name="id"),
        RenameColumn(column="tmp", name="data"),
    ]

    mapping = after(mapping_of(LOCATED), *steps, schema=LOCATED)

    assert [id_of(mapping, (name,)) for name in ("id", "data", "tmp")] == [2, 1, None]


WORDS = st.sampled_from(["a", "b", "id", "note", "zip", "street", "address"])
COLUMNS = st.sampled_from(["id", "note", "a", "b", "address", "address.zip", "address.street", "address.a"])
STEPS = st.one_of(
    st.builds(RenameColumn, column=COLUMNS, name=WORDS),
    st.builds(AddColumn, name=WORDS, type=st.just(INT), parent=st.sampled_from([None, "address"])),
    st.builds(DropColumn, column=COLUMNS),
)


@given(st.lists(STEPS, max_size=12))
def test_the_current_name_always_leads_to_the_field_that_has_it(steps):
    schema, last, mapping = SCHEMA, LAST, mapping_of(SCHEMA)
    for step in steps:
        try:
            evolved = evolve(schema, [step], last_column_id=last)
        except InputError:
            continue
        mapping = updated_mapping(mapping, schema, evolved.schema)
        schema, last = evolved.schema, evolved.last_column_id

        assert {name: id_of(mapping, name.split(".")) for name in schema.by_name} == {
            name: field.id for name, field in schema.by_name.items()
        }
