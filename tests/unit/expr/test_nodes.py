"""Expressions as values: joining flattens, folding is not recursive, negation follows SQL."""

from __future__ import annotations

import pytest

from icefloe.expr.filter.nodes import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    And,
    Constant,
    Expr,
    Not,
    Op,
    Or,
    Predicate,
    TransformTerm,
    conjunction,
    conjuncts,
    disjunction,
    fold,
    leaves,
    negation,
)

A, B, C = (Predicate(Op.IS_NULL, name) for name in "abc")


def test_joining_flattens_and_folds_constants() -> None:
    assert conjunction([]) == ALWAYS_TRUE
    assert disjunction([]) == ALWAYS_FALSE
    assert conjunction([A, ALWAYS_TRUE, conjunction([B, C])]) == And((A, B, C))
    assert disjunction([A, ALWAYS_FALSE, disjunction([B, C])]) == Or((A, B, C))
    assert conjunction([A, ALWAYS_FALSE]) == ALWAYS_FALSE
    assert disjunction([A, ALWAYS_TRUE]) == ALWAYS_TRUE
    assert conjunction([disjunction([A, B]), C]) == And((Or((A, B)), C))
    assert conjunction(iter([A])) == A


def test_conjuncts_are_the_parts_that_must_hold() -> None:
    assert conjuncts(ALWAYS_TRUE) == ()
    assert conjuncts(And((A, B))) == (A, B)
    assert conjuncts(Or((A, B))) == (Or((A, B)),)


def test_every_operator_has_an_opposite() -> None:
    for op in Op:
        assert op.negated.negated is op
        assert op.negated is not op
        assert op.negated.takes_literals == op.takes_literals


def test_negation_is_as_simple_as_it_can_be() -> None:
    assert negation(ALWAYS_TRUE) == ALWAYS_FALSE
    assert negation(A) == Predicate(Op.NOT_NULL, "a")
    assert negation(Not(And((A, B)))) == And((A, B))
    assert negation(And((A, B))) == Not(And((A, B)))


def test_a_fold_sees_children_in_order_at_any_depth() -> None:
    assert list(leaves(And((A, Not(Or((B, C))), ALWAYS_TRUE)))) == [A, B, C, ALWAYS_TRUE]
    deep: Expr = A
    for _ in range(20_000):
        deep = Not(deep)
    assert fold(deep, lambda _: 0, lambda _, parts: parts[0] + 1) == 20_000
    joined = fold(
        And((A, Or((B, C)))),
        lambda leaf: leaf.term if isinstance(leaf, Predicate) else "",
        lambda node, parts: f"{type(node).__name__}({','.join(parts)})",
    )
    assert joined == "And(a,Or(b,c))"


def test_trees_are_equal_by_their_parts() -> None:
    assert And((A, Or((B, C)))) == And((A, Or((B, C))))
    assert And((A, B)) != Or((A, B))
    assert And((A, B)) != And((B, A))
    assert And((And((A, B)), C)) != And((And((A,)), B, C))
    assert Not(A) != A
    assert Not(A) != "a"
    assert len({And((A, B)), And((A, B)), Or((A, B)), Not(A), Not(A)}) == 3


@pytest.mark.slow
def test_trees_of_any_depth_are_compared_hashed_and_shown() -> None:
    def deep(first: Expr) -> Expr:
        for _ in range(5_000):
            first = Not(Or((first, B)))
        return first

    assert deep(A) == deep(A)
    assert deep(A) != deep(C)
    assert hash(deep(A)) == hash(deep(A))
    assert repr(deep(A)).startswith("Not(child=Or(children=(Not(child=")


def test_a_tree_shows_how_to_make_it() -> None:
    expr = And((A, Not(Or((B,))), Or(()), ALWAYS_TRUE))
    assert eval(repr(expr).replace("<Op.IS_NULL: 'is null'>", "Op.IS_NULL"), globals(), {"Constant": Constant}) == expr


def test_a_term_is_a_column_or_a_transform_of_one() -> None:
    bucket = TransformTerm("bucket[16]", "a.b")
    assert Predicate(Op.IS_NULL, bucket).column == "a.b"
    assert A.column == "a"
    assert str(bucket) == "bucket[16](a.b)"
    assert len({Predicate(Op.EQ, bucket, (1,)), Predicate(Op.EQ, TransformTerm("bucket[16]", "a.b"), (1,))}) == 1
    assert negation(Predicate(Op.EQ, bucket, (1,))) == Predicate(Op.NE, bucket, (1,))
