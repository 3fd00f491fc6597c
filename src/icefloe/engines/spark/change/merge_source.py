"""The source of a merge on Spark: evaluated once, its texts analysed, and a filter for the rows that it may change.

Spark optimises the join of the table with the source, which is not run. What it pushes down to the table prunes files.
So do the keys of the source. ``latest_changes`` reduces change data to a source with one row per key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as st

from icefloe.engines.engine import MergeSource
from icefloe.engines.merge_plan import SOURCE, TARGET, Action, Clause, MergePlan, When
from icefloe.engines.spark.change.conditions import implied_filter, not_understood, unread_table
from icefloe.engines.spark.change.kept_rows import keep_rows
from icefloe.engines.spark.change.source_keys import Key, key_filter, keys_of_join
from icefloe.engines.spark.change.values import Assignments, check_condition, column_of, text_of
from icefloe.engines.spark.failures import translated
from icefloe.engines.spark.schema import spark_type
from icefloe.engines.spark.write.conform import VALUE, failure, fitted
from icefloe.engines.work import IS_DELETE, ChangeKeys, ambiguous_change
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Expr, conjunction, disjunction
from icefloe.expr.text.spark_sql import quoted
from icefloe.expr.value.expressions import Value
from icefloe.expr.value.nodes import Node, Reference, SparkText, walk
from icefloe.model.schema.types import Field

HAS_SOURCE = "_icefloe_has_source"
_CHANGE, _FIRST, _LAST = "_icefloe_change", "_icefloe_first", "_icefloe_last"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseColumns:
    """A clause as columns: its number, its condition, and the value of every column that it writes."""

    number: int
    clause: Clause
    condition: Column | None
    values: Mapping[str, Column]


class SparkSource:
    """The rows of the source of a merge, kept until ``persisted`` is closed, with the clauses of the merge."""

    def __init__(self, spark: SparkSession, plan: MergePlan, rows: DataFrame, persisted: ExitStack) -> None:
        self.plan = plan
        self._persisted = persisted
        self.rows = self.keep(rows)
        self.aliased = self.rows.withColumn(HAS_SOURCE, F.lit(True)).alias(SOURCE)  # as texts name them
        self._table = unread_table(spark, plan.schema).alias(TARGET)
        self._joined = self._analysed_join()
        frames = {When.MATCHED: self._joined, When.NOT_MATCHED: self.aliased, When.NOT_MATCHED_BY_SOURCE: self._table}
        self.clauses = tuple(self._clause(number, clause, frames) for number, clause in enumerate(plan.clauses))

    def keep(self, frame: DataFrame) -> DataFrame:
        """The frame, evaluated once and kept in memory or on disk for the duration of the merge."""
        return keep_rows(frame, self._persisted)

    @property
    def condition(self) -> Column:
        """The condition that joins the table with the source."""
        return column_of(self._condition)

    @property
    def _condition(self) -> Node:
        if self.plan.condition is not None:  # a text, which is one condition here
            return self.plan.condition.node
        return SparkText(" AND ".join(f"{_quoted(key.target)} = {_quoted(key.source)}" for key in self.plan.keys))

    def clauses_for(self, when: When) -> list[ClauseColumns]:
        """The clauses for some rows."""
        return [columns for columns in self.clauses if columns.clause.when is when]

    def _analysed_join(self) -> DataFrame:
        try:
            return self._table.join(self.aliased, self.condition, "inner")
        except (AnalysisException, ParseException) as error:
            raise not_understood(text_of(self._condition), error) from error

    def _clause(self, number: int, clause: Clause, frames: Mapping[When, DataFrame]) -> ClauseColumns:
        frame, condition = frames[clause.when], None
        if clause.condition is not None:
            check_condition(frame, clause.condition.node)
            condition = column_of(clause.condition.node)
        assignments = Assignments(frame=frame, types=self._types)
        values = {
            name: assignments.column(value.node, self._field(name))
            for name, value in (clause.assignments or {}).items()
        }
        if clause.action is Action.INSERT:
            missing = (field for field in self.plan.schema.fields if field.name not in values)
            values.update({field.name: fitted(frame, None, None, field, field.name) for field in missing})
        return ClauseColumns(number=number, clause=clause, condition=condition, values=values)

    @cached_property
    def _types(self) -> dict[tuple[str, ...], st.DataType]:
        types: dict[tuple[str, ...], st.DataType] = {(SOURCE, field.name): field.dataType for field in self.rows.schema}
        types.update({(TARGET, field.name): spark_type(field) for field in self.plan.schema.fields})
        return types

    def _field(self, name: str) -> Field:
        return next(field for field in self.plan.schema.fields if field.name == name)

    @cached_property
    def keys(self) -> list[Key]:
        """The columns of the table that equal a value of the source in all matches."""
        join = self._joined._jdf.queryExecution().optimizedPlan()
        while join.nodeName() == "Project":
            join = join.child()
        if join.nodeName() != "Join":  # nothing can match
            return []
        return keys_of_join(join, join.left().outputSet(), join.right().outputSet(), self.plan.schema)

    def table_filter(self) -> Expr:
        """A filter that every row of the table satisfies that the merge may change."""
        implied, _ = implied_filter(self._joined, self.plan.schema, alias=TARGET)
        parts = [conjunction([implied, key_filter(self.rows, self.keys)])]
        for columns in self.clauses_for(When.NOT_MATCHED_BY_SOURCE):
            if columns.condition is None:
                return ALWAYS_TRUE
            alone, _ = implied_filter(self._table.where(columns.condition), self.plan.schema, alias=TARGET)
            parts.append(alone)
        return disjunction(parts)


@contextmanager
def merge_source(spark: SparkSession, rows: DataFrame, plan: MergePlan) -> Iterator[MergeSource]:
    """A source that is persisted for the duration; InputError names a text that Spark refuses."""
    with ExitStack() as persisted:
        with translated():
            source = SparkSource(spark, plan, rows, persisted)
            filter_ = source.table_filter()
        yield MergeSource(plan=plan, filter=filter_, prepared=source)


def _quoted(value: Value) -> str:
    return ".".join(quoted(*node.path) for node in walk(value.node) if isinstance(node, Reference))


def latest_changes(rows: DataFrame, by: ChangeKeys) -> DataFrame:
    """One row per key, that with the greatest sequence, with the column ``IS_DELETE``.

    The query fails with an InputError for a null in a key or sequence, and if a key has two different last changes.
    """
    by.check(rows.columns)
    keys, sequence = [F.col(quoted(name)) for name in by.keys], F.col(quoted(by.sequence_by))
    is_delete = F.lit(False)
    if by.delete_when is not None:
        is_delete = F.coalesce(column_of(by.delete_when.node), F.lit(False))
    for name, column in zip((*by.keys, by.sequence_by), (*keys, sequence), strict=True):
        message = f"apply_changes: column {name!r} of the changes has a null"
        is_delete = F.when(column.isNull(), failure(message)).otherwise(is_delete)
    try:
        checked = rows.alias("s").withColumn(IS_DELETE, is_delete)
    except (AnalysisException, ParseException) as error:
        text = "" if by.delete_when is None else text_of(by.delete_when.node)
        raise not_understood(text, error) from error
    columns = F.struct(*(F.col(quoted(name)) for name in (*rows.columns, IS_DELETE)))
    content = F.xxhash64(F.to_json(columns))
    # Of the changes with the greatest sequence, the least and the greatest hash are equal if the changes are.
    grouped = checked.groupBy(*keys).agg(
        F.max_by(columns, sequence).alias(_CHANGE),
        F.max(F.struct(sequence, content)).alias(_LAST),
        F.max(F.struct(sequence, F.bitwise_not(content))).alias(_FIRST),
    )
    shown = F.to_json(F.struct(*keys))
    message = str(ambiguous_change(VALUE, by.sequence_by, "the same value"))
    is_same = F.col(f"{_LAST}.col2") == F.bitwise_not(F.col(f"{_FIRST}.col2"))
    change = F.when(is_same, F.col(_CHANGE)).otherwise(failure(message, shown))
    return grouped.select(change.alias(_CHANGE)).select(f"{_CHANGE}.*")
