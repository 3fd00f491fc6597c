"""Columns found by name with and without case, schemas cut down to some columns, and columns of several schemas."""

from __future__ import annotations

import pytest

from icefloe.errors import InputError
from icefloe.model.schema.schema import Schema, fresh_ids, merged_fields
from icefloe.model.schema.types import DATE, INT, LONG, STRING, Field, List, Map, Struct, walk
from unit.model.schemas import nest

KEY = Struct((Field(24, "k", INT),))
INNER = Struct((Field(14, "z", DATE), Field(15, "w", INT)))
NESTED = Schema(
    fields=(
        Field(10, "a", Struct((Field(11, "x", INT, doc="kept"), Field(12, "y", List(13, INNER, True)))), True),
        Field(20, "b", Map(21, KEY, 22, Struct((Field(23, "v", LONG), Field(25, "u", LONG))))),
        Field(30, "C", LONG, True, "key"),
    ),
    schema_id=4,
)  # fmt: skip


def test_a_name_is_found_with_its_case_unless_told_otherwise():
    assert NESTED.find("C").id == 30
    assert NESTED.find("c", case_sensitive=False).id == 30
    assert NESTED.find("A.Y.Element.Z", case_sensitive=False).id == 14
    with pytest.raises(InputError, match="no column 'c'; the table has: a, "):
        NESTED.find("c")
    with pytest.raises(InputError, match="no column 'q'"):
        NESTED.find("q", case_sensitive=False)


def test_a_name_that_two_columns_have_but_for_case_is_refused_with_both():
    schema = Schema(fields=(Field(1, "id", LONG), Field(2, "ID", LONG), Field(3, "other", LONG)))

    for name in ("Id", "id", "ID"):
        with pytest.raises(InputError, match="'id' and 'ID'"):
            schema.find(name, case_sensitive=False)
    assert schema.find("id").id == 1
    assert schema.find("OTHER", case_sensitive=False).id == 3


def test_a_struct_is_pruned_to_the_fields_asked_for():
    assert NESTED.prune(("a.x",)).fields == (Field(10, "a", Struct((Field(11, "x", INT, doc="kept"),)), True),)
    assert NESTED.prune(("C", "a.y.element.w")).fields == (
        Field(10, "a", Struct((Field(12, "y", List(13, Struct((Field(15, "w", INT),)), True)),)), True),
        NESTED.fields[2],
    )
    assert NESTED.prune(("a", "a.x")).fields == (NESTED.fields[0],)
    assert NESTED.prune(()).fields == ()
    assert NESTED.prune(("C",)).schema_id == 4


def test_a_pruned_map_keeps_its_keys():
    assert NESTED.prune(("b.value.u",)).fields == (Field(20, "b", Map(21, KEY, 22, Struct((Field(25, "u", LONG),)))),)
    assert NESTED.prune(("b.key.k",)).fields == (NESTED.fields[1],)


def test_pruning_to_no_column_or_one_twice_is_refused():
    with pytest.raises(InputError, match=r"no column 'a\.q'"):
        NESTED.prune(("a.q",))
    with pytest.raises(InputError, match="twice"):
        NESTED.prune(("a.x", "a.x"))


def test_fresh_ids_of_a_deep_type_are_given_from_the_top_down():
    deep = nest(LONG, 20_000, lambda inner: Struct((Field(0, "x", STRING), Field(0, "n", inner))))

    numbered = fresh_ids((Field(0, "a", deep),))

    assert [field.id for _, field in zip(range(5), (f for _, f in walk(numbered)), strict=False)] == [1, 2, 3, 4, 5]


def test_columns_that_several_ask_for_are_merged_at_every_depth() -> None:
    one = (Field(1, "l", List(2, Struct((Field(3, "a", LONG),)))),)
    other = (
        Field(1, "l", List(2, Struct((Field(4, "b", LONG), Field(3, "a", LONG))))),
        Field(5, "m", Map(6, STRING, 7, Struct((Field(8, "c", LONG),)))),
    )
    more = (Field(5, "m", Map(6, STRING, 7, Struct((Field(9, "d", LONG),)))),)
    assert [str(field.type) for field in merged_fields(one, other, more)] == [
        str(List(2, Struct((Field(3, "a", LONG), Field(4, "b", LONG))))),
        str(Map(6, STRING, 7, Struct((Field(8, "c", LONG), Field(9, "d", LONG))))),
    ]


def test_columns_of_one_name_and_several_times_are_merged_by_their_ids() -> None:
    """Equality deletes by a column that was dropped made a table unreadable when another column got its name."""
    now = (Field(3, "k", STRING), Field(5, "s", Struct((Field(7, "a", LONG),))))
    then = (Field(2, "k", LONG), Field(5, "s", Struct((Field(6, "a", STRING),))))
    assert merged_fields(now, then) == (
        Field(3, "k", STRING),
        Field(5, "s", Struct((Field(7, "a", LONG), Field(6, "a", STRING)))),
        Field(2, "k", LONG),
    )
