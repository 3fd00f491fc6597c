"""Bound filters as Spark SQL; ``batch_filter`` evaluates them with Arrow.

Both follow Spark: a comparison with null is not a match; NaN equals NaN and is larger than every other value; -0.0
equals 0.0.
"""

from __future__ import annotations

from typing import Any

from icefloe.errors import InputError
from icefloe.expr.filter.nodes import (
    And,
    Bound,
    BoundPredicate,
    Branch,
    Constant,
    Leaf,
    Op,
    Predicate,
    fold,
)
from icefloe.expr.text.spark_sql import sql_condition, sql_literal, sql_term
from icefloe.model.schema.types import STRING, TIME


def bound_leaf(leaf: Leaf) -> Constant | BoundPredicate:
    """The leaf of a bound filter; InputError for one that is not bound."""
    if isinstance(leaf, Predicate):
        raise InputError(f"bind the filter before evaluating it: {leaf.term} {leaf.op.value}")
    return leaf


def with_both_zeros(literals: tuple[object, ...]) -> tuple[object, ...]:
    """Sets are tested by hash, and the two zeros are equal but hash apart."""
    return (*literals, -0.0) if any(isinstance(value, float) and value == 0 for value in literals) else literals


def to_sql(bound: Bound) -> str:
    """The filter as Spark SQL that means the same in every session: names quoted, literals typed.

    >>> from icefloe.model.schema.types import LONG
    >>> to_sql(BoundPredicate(Op.IN, 1, ("a", "b"), LONG, (1, 2)))
    '`a`.`b` IN (1L, 2L)'
    """
    return fold(bound, _sql_leaf, _sql_branch)


def _sql_branch(node: Branch, parts: list[str]) -> str:
    return "(" + (" AND " if isinstance(node, And) else " OR ").join(parts) + ")"


def _sql_leaf(leaf: Leaf) -> str:
    node = bound_leaf(leaf)
    if isinstance(node, Constant):
        return "true" if node.value else "false"
    if node.type == TIME and len(node.literals) > 0:
        # As text, which has the same order: Spark takes literals of the type only in sessions that enable it.
        literals = [sql_literal(_time_text(value), STRING) for value in node.literals]
        return sql_condition(node.op, f"CAST({sql_term(node)} AS STRING)", literals)
    literals = [sql_literal(value, node.type) for value in with_both_zeros(node.literals)]
    condition = sql_condition(node.op, sql_term(node), literals)
    return f"({condition})" if node.op in (Op.NOT_NAN, Op.NOT_STARTS_WITH) else condition


def _time_text(value: Any) -> str:
    """A time as Spark casts it to a string: without zeros at the end of its fraction."""
    text: str = value.isoformat()
    return text.rstrip("0") if "." in text else text
