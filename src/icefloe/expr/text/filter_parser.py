"""Filters from text: what users write, and what Spark pushes down (Spark SQL spelling).

sqlglot, which parses the text, is loaded with the first text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icefloe.errors import InputError
from icefloe.expr.filter.nodes import ALWAYS_TRUE, And, BoundPredicate, Constant, Expr, Not, Or, Predicate
from icefloe.lazy import LazyModule

if TYPE_CHECKING:
    from icefloe.expr.text import condition_parser
else:
    condition_parser = LazyModule("icefloe.expr.text.condition_parser")


def parse_filter(text: str | Expr | None) -> Expr:
    """The filter that a text means; None means every row, and an expression is returned as it is.

    >>> parse_filter("id BETWEEN 1 AND 3")  # doctest: +NORMALIZE_WHITESPACE
    And(children=(Predicate(op=<Op.GE: '>='>, term='id', literals=(1,)),
                  Predicate(op=<Op.LE: '<='>, term='id', literals=(3,))))
    >>> parse_filter("bucket(16, id) = 3")
    Predicate(op=<Op.EQ: '='>, term=TransformTerm(transform='bucket[16]', column='id'), literals=(3,))
    """
    if text is None:
        return ALWAYS_TRUE
    if isinstance(text, (Constant, Predicate, BoundPredicate, And, Or, Not)):
        return text
    if not isinstance(text, str):
        raise InputError(f"a filter is SQL text or an expression, not {type(text).__name__}")
    return condition_parser.parse_text(text)


def parse_pushed(texts: Sequence[str], time_zone: str) -> Expr:
    """What is understood of the filters that Spark pushes down; the rest is left to Spark, as ``ALWAYS_TRUE``.

    The texts are Catalyst's SQL, where TIMESTAMP literals are local times of the session's ``time_zone``.

    >>> parse_pushed(["(id IS NOT NULL)", "(rand() > id)"], "UTC")
    Predicate(op=<Op.NOT_NULL: 'is not null'>, term='id', literals=())
    """
    return condition_parser.parse_pushed(texts, time_zone)


def parse_conjuncts(texts: Sequence[str], time_zone: str) -> list[Expr | None]:
    """The filters of conditions in Catalyst's SQL, one by one; none for a condition that is no filter.

    >>> parse_conjuncts(["(id = 1L)", "(rand() > id)"], "UTC")
    [Predicate(op=<Op.EQ: '='>, term='id', literals=(1,)), None]
    """
    return condition_parser.parse_conjuncts(texts, time_zone)
