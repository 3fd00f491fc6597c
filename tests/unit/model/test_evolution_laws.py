"""Schema evolution: the laws that hold for any steps, and the union of two schemas."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from icefloe.errors import InputError
from icefloe.model.evolution.change_rules import promotion_problem
from icefloe.model.evolution.evolve import Evolved, evolve
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
    SetDefault,
    SetDoc,
    SetIdentifiers,
)
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    UNKNOWN,
    Decimal,
    Field,
    List,
    Map,
    Struct,
    children,
    is_primitive,
    walk,
    with_children,
)
from unit.model.evolving import (
    ADDRESS,
    KEY,
    LAST,
    LIVE,
    PROTECTED,
    SCHEMA,
    null_where_required,
    random_row,
    random_step,
    read_by_id,
)


def changed(*steps: object) -> Schema:
    return evolve(SCHEMA, steps, last_column_id=LAST).schema


# Laws

WORDS = st.sampled_from(["a", "b", "B", "c", "id", "zip", "note", "new.name", "tags"])
COLUMNS = st.sampled_from([*SCHEMA.by_name, "a", "b", "c", "address.a", "tags.element.a"])
TYPES = st.sampled_from([INT, LONG, DOUBLE, Decimal(12, 2), ADDRESS, List(1, KEY), Map(1, STRING, 2, ADDRESS)])
POSITIONS = st.one_of(st.builds(First), st.builds(Before, COLUMNS), st.builds(After, COLUMNS))
STEPS = st.one_of(
    st.builds(AddColumn, name=WORDS, type=TYPES, parent=st.none() | COLUMNS, position=st.none() | POSITIONS),
    st.builds(DropColumn, column=COLUMNS),
    st.builds(RenameColumn, column=COLUMNS, name=WORDS),
    st.builds(MoveColumn, column=COLUMNS, position=POSITIONS),
    st.builds(PromoteColumn, column=COLUMNS, type=TYPES),
    st.builds(PromoteColumn, column=st.sampled_from(["id", "sizes.element", "address.zip"]), type=st.just(LONG)),
    st.builds(MakeOptional, column=COLUMNS),
    st.builds(SetDoc, column=COLUMNS, doc=st.none() | WORDS),
    st.builds(SetIdentifiers, columns=st.lists(COLUMNS, max_size=2).map(tuple)),
)


@st.composite
def legal_steps(draw: st.DrawFn) -> list[object]:
    """Steps that are allowed one after the other."""
    legal: list[object] = []
    for step in draw(st.lists(STEPS, max_size=15)):
        try:
            evolve(SCHEMA, [*legal, step], last_column_id=LAST)
        except InputError:
            continue
        legal.append(step)
    return legal


def mentioned(step: object) -> set[str]:
    return set() if isinstance(step, AddColumn | SetIdentifiers) else {step.column}


@given(legal_steps())
def test_fields_that_no_step_touches_stay_the_same(steps):
    schema = changed(*steps)
    touched = set().union(*(mentioned(step) for step in steps))
    untouched = [n for n in SCHEMA.by_name if not any(n == t or n.startswith(f"{t}.") for t in touched)]

    for name in untouched:
        before, after = SCHEMA.field(name), schema.field(name)
        assert (before.id, before.required, before.doc) == (after.id, after.required, after.doc)
        assert before.type == after.type or len(children(before.type)) > 0


@given(legal_steps())
def test_no_field_changes_its_id_its_struct_or_its_kind(steps):
    schema = changed(*steps)

    def around(of: Schema) -> dict[int, int]:
        return {child.id: field.id for field in of.by_id.values() for child in children(field.type)}

    shared_ids = set(SCHEMA.by_id) & set(schema.by_id)
    assert {i: around(SCHEMA).get(i) for i in shared_ids} == {i: around(schema).get(i) for i in shared_ids}
    for before, after in ((SCHEMA.by_id[i].type, schema.by_id[i].type) for i in shared_ids):
        assert type(before) is type(after)
        assert not is_primitive(before) or promotion_problem(before, after) is None


@given(legal_steps())
def test_names_are_unique_even_without_case(steps):
    lowered = [name.lower() for name, _ in walk(changed(*steps).fields)]

    assert len(lowered) == len(set(lowered))


@given(legal_steps())
def test_the_last_column_id_never_falls_and_new_ids_follow_it_without_gaps(steps):
    evolved = evolve(SCHEMA, steps, last_column_id=LAST)

    new = sorted(set(evolved.schema.by_id) - set(SCHEMA.by_id))
    assert new == list(range(LAST + 1, evolved.last_column_id + 1))


@given(legal_steps())
def test_keys_identifiers_and_required_columns_keep_their_promises(steps):
    schema = changed(*steps)

    for i, field in schema.by_id.items():
        if i in SCHEMA.by_id and i in (30, 31):
            assert field == SCHEMA.by_id[i]
        if i in SCHEMA.by_id:
            assert SCHEMA.by_id[i].required or not field.required
    assert all(schema.by_id[i].required for i in schema.identifier_field_ids)


@given(legal_steps(), st.integers(0, 15))
def test_one_change_equals_two_that_share_its_steps(steps, cut):
    first = evolve(SCHEMA, steps[:cut], last_column_id=LAST)

    assert evolve(first.schema, steps[cut:], last_column_id=first.last_column_id) == evolve(
        SCHEMA, steps, last_column_id=LAST
    )


@given(st.sampled_from([n for n in SCHEMA.by_name if n.partition(".")[0] != "prices" and not n.endswith("element")]))
def test_a_dropped_column_that_is_added_again_has_a_new_id(name):
    parent, _, last = name.rpartition(".")
    free = evolve(SCHEMA, [SetIdentifiers(columns=()), DropColumn(column=name)], last_column_id=LAST)

    again = AddColumn(name=last, type=INT, parent=None if parent == "" else parent)
    evolved = evolve(free.schema, [again], last_column_id=free.last_column_id)

    assert evolved.schema.field(name).id == LAST + 1


def test_children_are_put_back_as_they_were():
    for field in SCHEMA.by_id.values():
        assert with_children(field.type, children(field.type)) == field.type


# A thousand histories of a table


def one_change(rng: random.Random, schema: Schema, last: int) -> tuple[list[SchemaChange], Evolved]:
    """Steps that are legal together, whatever was tried in between, and what they make of the schema."""
    steps: list[SchemaChange] = []
    before, evolved = repr(schema), Evolved(schema=schema, last_column_id=last)
    for _ in range(rng.randrange(1, 5)):
        step = random_step(rng, evolved.schema)
        try:
            evolved = evolve(schema, [*steps, step], last_column_id=last, protected=PROTECTED, format_version=3)
        except InputError:
            continue
        steps.append(step)
    assert repr(schema) == before, "steps, legal or not, leave the schema they start from alone"
    return steps, evolved


def check_change(before: Schema, last: int, evolved: Evolved) -> None:
    """What holds between a schema and the one after it."""
    after = evolved.schema
    lowered = [name.lower() for name in after.by_name]
    assert len(lowered) == len(set(lowered)) == len(after.by_id)
    new = set(after.by_id) - set(before.by_id)
    assert all(last < i <= evolved.last_column_id for i in new)
    assert evolved.last_column_id == max(last, *after.by_id)
    assert set(after.by_id) >= LIVE
    owners, former_owners = around(after), around(before)
    for i in set(after.by_id) & set(before.by_id):
        assert owners.get(i) == former_owners.get(i)
        assert before.by_id[i].required or not after.by_id[i].required
        old, now = before.by_id[i].type, after.by_id[i].type
        assert (type(old) is type(now) and not is_primitive(now)) or promotion_problem(old, now, 3) is None
    for i in after.identifier_field_ids:
        assert after.by_id[i].required
        assert after.by_id[i].type not in (FLOAT, DOUBLE)


def around(schema: Schema) -> dict[int, int]:
    return {child.id: field.id for field in schema.by_id.values() for child in children(field.type)}


@pytest.mark.slow
@settings(max_examples=20 * settings().max_examples)
@given(st.integers(0, 2**48))
def test_every_history_of_a_table_keeps_the_laws(seed):
    rng = random.Random(seed)
    schema, last, used = SCHEMA, LAST, set(SCHEMA.by_id)
    rows = [(random_row(rng, schema), schema)]  # as read by the schema of the moment, and as written
    written = list(rows)
    for _ in range(rng.randrange(1, 6)):
        steps, evolved = one_change(rng, schema, last)
        check_change(schema, last, evolved)
        assert one_by_one(steps, schema, last) == evolved
        new = set(evolved.schema.by_id) - set(schema.by_id)
        assert used.isdisjoint(new)
        used |= new
        rows = [(read_by_id(row, former, evolved.schema), evolved.schema) for row, former in rows]
        schema, last = evolved.schema, evolved.last_column_id
        assert [row for row, _ in rows] == [read_by_id(row, former, schema) for row, former in written]
        assert [null_where_required(row, schema.fields) for row, _ in rows] == [[]] * len(rows)
        rows.append((random_row(rng, schema), schema))
        written.append(rows[-1])


def one_by_one(steps: list[SchemaChange], schema: Schema, last: int) -> Evolved:
    evolved = Evolved(schema=schema, last_column_id=last)
    for step in steps:
        evolved = evolve(
            evolved.schema, [step], last_column_id=evolved.last_column_id, protected=PROTECTED, format_version=3
        )
    return evolved


@given(st.integers(0, 2**48))
def test_a_union_is_complete_after_one_time(seed):
    rng = random.Random(seed)
    _, one = one_change(rng, SCHEMA, LAST)
    _, other = one_change(rng, SCHEMA, LAST)
    try:
        steps = union_by_name(one.schema, other.schema, format_version=3)
        union = evolve(one.schema, steps, last_column_id=one.last_column_id, format_version=3)
    except InputError:  # two columns of one name, or an identifier that would have to be optional
        assume(False)

    assert union_by_name(union.schema, other.schema, format_version=3) == ()


# Union by name


def test_a_union_adds_promotes_relaxes_and_comments():
    other = Schema(
        fields=(
            Field(1, "id", LONG, False, "key"),
            Field(2, "address", Struct((Field(3, "city", STRING, True), Field(4, "zip", INT, True))), True),
            Field(5, "ratio", FLOAT, True),
            Field(6, "more", List(7, INT)),
        )
    )

    assert union_by_name(SCHEMA, other) == (
        AddColumn(name="city", type=STRING, parent="address"),
        MakeOptional(column="id"),
        PromoteColumn(column="id", type=LONG),
        SetDoc(column="id", doc="key"),
        AddColumn(name="more", type=List(7, INT)),
    )


@pytest.mark.parametrize(
    ("field", "column", "reason"),
    [
        (Field(1, "note", INT), "note", "string is not promoted to int"),
        (Field(1, "address", INT, True), "address", "struct and int"),
        (Field(1, "id", List(2, INT), True), "id", "int and list"),
        (Field(1, "sizes", Map(2, INT, 3, INT)), "sizes", "list and map"),
        (Field(1, "sizes", List(2, STRING, True)), "sizes.element", "int is not promoted to string"),
    ],
)
def test_a_union_with_another_type_is_refused(field, column, reason):
    with pytest.raises(InputError, match=reason) as caught:
        union_by_name(SCHEMA, Schema(fields=(field,)))
    assert caught.value.context["field"] == column


def test_a_union_brings_both_defaults_of_a_new_column():
    other = Schema(fields=(Field(1, "n", INT, True, None, 1, 2), Field(2, "m", INT, False, None, 3, 3)))

    steps = union_by_name(SCHEMA, other, format_version=3)

    assert steps == (
        AddColumn(name="n", type=INT, default=1),
        SetDefault(column="n", default=2),
        AddColumn(name="m", type=INT, default=3),
    )
    schema = evolve(SCHEMA, steps, last_column_id=LAST, format_version=3).schema
    assert schema.field("n") == Field(51, "n", INT, False, None, 1, 2)


def test_a_union_promotes_as_the_format_version_allows():
    ours = Schema(fields=(Field(1, "day", DATE), Field(2, "u", UNKNOWN), Field(3, "at", TIMESTAMP)))
    theirs = Schema(fields=(Field(1, "day", TIMESTAMP), Field(2, "u", ADDRESS), Field(3, "at", DATE)))

    assert union_by_name(ours, theirs, format_version=3) == (
        PromoteColumn(column="day", type=TIMESTAMP),
        PromoteColumn(column="u", type=ADDRESS),
    )
    with pytest.raises(InputError, match=r"'day' cannot hold timestamp: .* from format version 3 on, and this is 2"):
        union_by_name(ours, theirs, format_version=2)
    with pytest.raises(InputError, match="'at' cannot hold date"):
        union_by_name(Schema(fields=ours.fields[2:]), theirs, format_version=2)


def test_a_union_does_not_change_map_keys():
    wider = Map(1, Struct((Field(2, "k", LONG, True),)), 3, Struct(()), True)

    steps = union_by_name(SCHEMA, Schema(fields=(Field(9, "prices", wider),)))

    with pytest.raises(InputError, match="keys of map 'prices' cannot change"):
        changed(*steps)


@given(legal_steps())
def test_a_union_with_what_a_schema_became_holds_both(steps):
    free = replace(SCHEMA, identifier_field_ids=())
    other = changed(*steps)
    try:
        union = evolve(free, union_by_name(free, other), last_column_id=LAST).schema
    except InputError:  # a new column that has the name, but not the type, of an old one
        assume(False)

    assert set(union.by_name) == {*SCHEMA.by_name, *other.by_name}
    left = (*union_by_name(union, other), *union_by_name(union, free))
    assert all(isinstance(step, SetDoc) for step in left)
