"""Conditions in Spark SQL: analysed by Spark, and translated to filters as far as filters can express them.

A text means in a change what it means in ``DataFrame.where``: any function, subqueries, the time zone of the session.
Spark optimises a query with the condition, which is not run. Those of its conjuncts that are filters prune files and
find conflicting commits. If all of them are, the filter replaces the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from icefloe.engines.spark.schema import struct_type
from icefloe.engines.spark.session import local_frame
from icefloe.engines.work import Condition
from icefloe.errors import InputError
from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import (
    ALWAYS_FALSE,
    And,
    Branch,
    Expr,
    Leaf,
    Not,
    Predicate,
    TransformTerm,
    conjunction,
    disjunction,
    fold,
    negation,
)
from icefloe.expr.text.filter_parser import parse_conjuncts, parse_filter
from icefloe.model.schema.metadata_columns import FILE, LINEAGE, POS, SPEC_ID
from icefloe.model.schema.schema import Schema
from icefloe.scan.metadata_filter import split_filter

_TESTABLE = (FILE, POS, SPEC_ID, *LINEAGE)
_EMPTY = "LocalRelation"  # what the optimiser makes of a query that returns no row
_KEEPS_CONDITION = ("Filter", "Project")  # nodes above the table that do not decide about rows by other means


def condition_of(spark: SparkSession, where: str | Expr | None, schema: Schema) -> Condition:
    """The condition of a text, or of a filter; InputError with Spark's message if Spark does not understand it.

    Transforms of the table format, such as ``bucket(16, id)``, are no functions of Spark. A text with one of them must
    be a filter as a whole.
    """
    if not isinstance(where, str):
        return Condition(filter=parse_filter(where))
    known = _with_metadata_columns(schema)
    try:
        chosen = unread_table(spark, known).where(F.expr(where))
    except (AnalysisException, ParseException) as error:
        filter_ = _own_filter(where, schema)
        if filter_ is None:
            raise not_understood(where, error) from error
        return Condition(filter=filter_)
    filter_, is_exact = implied_filter(chosen, known)
    if is_exact:
        return Condition(filter=filter_)
    names = {reference.name() for reference in _references(chosen._jdf.queryExecution().analyzed().condition())}
    tested = tuple(field for field in known.fields[len(schema.fields) :] if field.name in names)
    return Condition(filter=filter_, sql=where, metadata_columns=tested)


def _with_metadata_columns(schema: Schema) -> Schema:
    """The columns of a table, and the metadata columns that a condition may test; names of the table come first."""
    taken = {field.name.lower() for field in schema.fields}
    return replace(schema, fields=(*schema.fields, *(field for field in _TESTABLE if field.name not in taken)))


def _own_filter(where: str, schema: Schema) -> Expr | None:
    """The filter of a text that is one here and nothing to Spark, such as one on the fields of ``_partition``."""
    try:
        filter_ = parse_filter(where)
        bind(split_filter(filter_, schema)[0], schema)
    except InputError:
        return None
    return filter_


def not_understood(text: str, error: AnalysisException) -> InputError:
    """The error for a text that Spark refuses, with the first line of its message."""
    lines = [line for line in str(error).splitlines() if line.strip() != ""]
    return InputError(f"Spark cannot evaluate {text!r}: {lines[0].rstrip(';')}", value=text)


def unread_table(spark: SparkSession, schema: Schema) -> DataFrame:
    """A frame with the columns of a table and unknown rows, against which Spark analyses texts."""
    return local_frame(spark, spark.sparkContext.emptyRDD(), struct_type(schema))


def implied_filter(query: DataFrame, schema: Schema, *, alias: str | None = None) -> tuple[Expr, bool]:
    """What an optimised query requires of the rows of a table, its leftmost leaf; and whether it requires nothing else.

    In the query the table may have an alias.
    """
    texts, is_exact = [], True
    node = query._jdf.queryExecution().optimizedPlan()
    output = _leaf(node).outputSet()
    while not node.children().isEmpty():
        if node.nodeName() == "Filter":
            parts = list(conjuncts_of(node.condition()))
            own = [part for part in parts if part.references().subsetOf(output)]
            texts += [part.sql() for part in own]
            is_exact = is_exact and len(own) == len(parts)
        is_exact = is_exact and node.nodeName() in _KEEPS_CONDITION
        node = node.children().head()
    if node.nodeName() == _EMPTY:
        return ALWAYS_FALSE, True
    zone = query.sparkSession.conf.get("spark.sql.session.timeZone")
    filters = [_bindable(part, schema, alias) for part in parse_conjuncts(texts, str(zone))]
    understood = [part for part in filters if part is not None]
    return conjunction(understood), is_exact and len(understood) == len(filters)


def _leaf(node: Any) -> Any:
    while not node.children().isEmpty():
        node = node.children().head()
    return node


def _references(expression: Any) -> set[Any]:
    """The attributes that a Catalyst expression reads."""
    iterator, found = expression.references().iterator(), set()
    while iterator.hasNext():
        found.add(iterator.next())
    return found


def conjuncts_of(expression: Any) -> Iterator[Any]:
    """The parts of a Catalyst expression that AND combines."""
    if expression.getClass().getSimpleName() == "And":
        yield from conjuncts_of(expression.left())
        yield from conjuncts_of(expression.right())
    else:
        yield expression


def _bindable(filter_: Expr | None, schema: Schema, alias: str | None) -> Expr | None:
    """The filter with the names of the table's columns; none if it is none, or cannot be bound to the columns."""
    if filter_ is None:
        return None
    try:
        renamed = _renamed(filter_, schema, alias)
        bind(renamed, schema)
    except InputError:
        return None
    return renamed


def _renamed(filter_: Expr, schema: Schema, alias: str | None) -> Expr:
    """The filter with columns as the table spells them; Spark spells them as the text does, which may differ in case.

    InputError if a name could be that of several columns.
    """
    spellings: dict[str, list[str]] = {}
    for name in schema.by_name:
        for spelling in (name.lower(),) if alias is None else (name.lower(), f"{alias}.{name}".lower()):
            spellings.setdefault(spelling, []).append(name)

    def column(name: str) -> str:
        known = spellings.get(name.lower(), [])
        if len(known) != 1:
            raise InputError(f"column {name!r} is not known, or is one of several", field=name)
        return known[0]

    def leaf(node: Leaf) -> Expr:
        if not isinstance(node, Predicate):
            return node
        if isinstance(node.term, TransformTerm):
            return replace(node, term=replace(node.term, column=column(node.term.column)))
        return replace(node, term=column(node.term))

    def branch(node: Branch, parts: list[Expr]) -> Expr:
        if isinstance(node, Not):
            return negation(parts[0])
        return conjunction(parts) if isinstance(node, And) else disjunction(parts)

    return fold(filter_, leaf, branch)
