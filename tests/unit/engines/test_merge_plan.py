"""A merge plan has all that does not depend on the engine: keys, the rest of the condition, and assignments."""

from __future__ import annotations

import pytest

from icefloe.engines.merge_plan import Action, Clause, Merge, MergePlan, When
from icefloe.errors import InputError
from icefloe.expr.filter.nodes import ALWAYS_FALSE, ALWAYS_TRUE, Op, Predicate, conjunction
from icefloe.expr.value.expressions import parse_value
from icefloe.expr.value.nodes import Call, Reference
from icefloe.model.text.ddl import parse_ddl

SCHEMA = parse_ddl("id bigint, n int, note string, at struct<city: string, zip: int>")
DELETE = Clause(when=When.MATCHED, action=Action.DELETE)


def plan_of(on: str, *clauses: Clause, columns: tuple[str, ...] = ("id", "n", "k")) -> MergePlan:
    return MergePlan.of(Merge(on=parse_value(on), clauses=clauses or (DELETE,)), SCHEMA, columns)


def test_equalities_between_the_sides_become_keys_and_the_rest_a_condition() -> None:
    plan = plan_of("t.id = s.id AND (s.k = note AND t.n > 5 AND t.n = t.id) AND s.n = 1")
    assert [(key.target.node, key.source.node) for key in plan.keys] == [
        (Reference(("t", "id")), Reference(("s", "id"))),
        (Reference(("t", "note")), Reference(("s", "k"))),
    ]
    assert plan.condition is not None
    assert isinstance(plan.condition.node, Call)
    assert [part.function for part in plan.condition.node.arguments] == [">", "=", "="]
    assert plan_of("t.id = s.id").condition is None


def test_the_filter_of_the_table_joins_keys_condition_and_rows_without_a_match() -> None:
    key = Predicate(Op.EQ, "id", (1,))
    greater = Predicate(Op.GT, "n", (5,))
    assert plan_of("t.id = s.id AND t.n > 5").table_filter(key) == conjunction([key, greater])
    alone = Clause(when=When.NOT_MATCHED_BY_SOURCE, action=Action.DELETE, condition=parse_value("t.n > 5"))
    assert plan_of("t.id = s.id", alone).table_filter(ALWAYS_FALSE) == greater
    every = Clause(when=When.NOT_MATCHED_BY_SOURCE, action=Action.DELETE)
    assert plan_of("t.id = s.id", every).table_filter(ALWAYS_FALSE) == ALWAYS_TRUE


def test_an_update_assigns_every_column_and_an_insert_those_it_names() -> None:
    update = Clause(when=When.MATCHED, action=Action.UPDATE, assignments={"at.city": parse_value("upper(s.k)")})
    insert = Clause(when=When.NOT_MATCHED, action=Action.INSERT)
    plan = plan_of("t.id = s.id", update, insert)
    updated, inserted = (clause.assignments or {} for clause in plan.clauses)
    assert {name: str(value) for name, value in updated.items()} == {
        "id": "t.id",
        "n": "t.n",
        "note": "t.note",
        "at": "at.city = upper(s.k)",
    }
    assert {name: value.node for name, value in inserted.items()} == {
        "id": Reference(("s", "id")),
        "n": Reference(("s", "n")),
    }
    assert plan.deciding_columns == {"id"}
    assert plan.updating_columns == {"id", "n", "note", "at"}


@pytest.mark.parametrize(
    ("on", "columns", "problem"),
    [
        ("t.id = s.x", ("id",), "the source has no column 'x'"),
        ("n = s.id", ("id", "n"), "both sides have 'n'"),
        ("t.id = s.id", ("id", "id"), "two columns of the source are named 'id'"),
    ],
)
def test_names_that_cannot_be_resolved_are_refused(on: str, columns: tuple[str, ...], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        plan_of(on, columns=columns)
