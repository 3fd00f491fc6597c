"""A merge of DataFrames: one join decides about the rows of the table and of the source, and computes their new values.

The join is that of Spark's own MERGE. Its result is kept in memory or on disk, so the table is read once, and only the
columns and files that the merge needs. An updated row keeps its id (spec: Row-level Deletes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from icefloe.engines.engine import MergedRows, MergeMatches
from icefloe.engines.merge_plan import SOURCE, TARGET, Action, When
from icefloe.engines.spark.change.merge_source import HAS_SOURCE, ClauseColumns, SparkSource
from icefloe.engines.spark.change.positions import positions_of
from icefloe.engines.spark.change.rewrite import final_row_id
from icefloe.engines.spark.change.row_operations import RowOperations
from icefloe.engines.spark.change.source_keys import rows_with_keys
from icefloe.engines.spark.failures import translated
from icefloe.engines.spark.read.read import FILE, POSITION, rows_with_positions
from icefloe.engines.spark.read.scan import planned_source
from icefloe.engines.work import PlannedFiles
from icefloe.errors import InputError
from icefloe.expr.text.spark_sql import quoted
from icefloe.model.schema.metadata_columns import ROW_ID

_CLAUSE = "_icefloe_clause"
_JOINS = {(False, False): "inner", (True, False): "left", (False, True): "right", (True, True): "full"}


def find_merged(spark: SparkSession, files: PlannedFiles, source: SparkSource) -> MergeMatches:
    """Decide about every row of the planned files and of the source; only final row ids are kept."""
    with translated():
        if files.plan.files == 0:
            found = _inserts(source, source.aliased)
        else:
            found = _Merge(spark, files, source).operations()
    return MergeMatches(positions=found.positions, prepared=found)


def write_merged(files: PlannedFiles, matches: MergeMatches) -> MergedRows:
    """Write the updated and the inserted rows to new data files."""
    found: RowOperations = matches.prepared
    entries = found.write(files)
    changed = sum(len(rows) for rows in found.positions.values())
    return MergedRows(
        entries=entries,
        rows_inserted=sum(entries["record_count"].to_pylist()) - found.rows_updated,
        rows_updated=found.rows_updated,
        rows_deleted=changed - found.rows_updated,
    )


class _Merge:
    """The join of planned files with the source of a merge."""

    def __init__(self, spark: SparkSession, files: PlannedFiles, source: SparkSource) -> None:
        self._files, self._source = files, source
        lineage = (ROW_ID,) if len(files.lineage) > 0 else ()
        rows = rows_with_positions(spark, planned_source(spark, files, source.plan.schema, lineage))
        self._numbers, self._ids = rows.files, [field.name for field in lineage]
        self._table = rows.frame.withColumns({name: final_row_id(files) for name in self._ids})
        self._inserts = source.clauses_for(When.NOT_MATCHED)
        self._matched, self._alone = source.clauses_for(When.MATCHED), source.clauses_for(When.NOT_MATCHED_BY_SOURCE)

    def operations(self) -> RowOperations:
        """All decisions; InputError if several rows of the source match one row of the table."""
        if len(self._matched) + len(self._alone) == 0:
            table = rows_with_keys(self._table, self._source.rows, self._source.keys).alias(TARGET)
            new = self._source.aliased.join(table, self._source.condition, "left_anti")
            return _inserts(self._source, new)
        decided = self._source.keep(self._decided())
        of_table, acts = decided.where(F.col(POSITION).isNotNull()), F.col(_CLAUSE).isNotNull()
        found = positions_of(of_table, self._numbers, planned_rows=self._files.rows, chosen=acts)
        if found.has_repeated and len(self._matched) > 0:
            raise self._ambiguous(of_table)
        updated = self._rows_updated(of_table, sum(len(rows) for rows in found.positions.values()))
        rows = self._written(decided, updated)
        return RowOperations(rows=rows, positions=found.positions, rows_updated=updated)

    def _decided(self) -> DataFrame:
        """The rows of both sides to which a clause applies, with its number and their new values.

        Rows that match without a clause are among them, as two matches of one row are an error.
        """
        table, source = self._table, self._source
        if len(self._inserts) > 0 and len(self._alone) == 0:
            table = rows_with_keys(table, source.rows, source.keys)
        table = table.alias(TARGET)
        inserts = [_resolved(columns, source.aliased) for columns in self._inserts]
        alone = [_resolved(columns, table) for columns in self._alone]
        joined = source.aliased.join(table, source.condition, _JOINS[len(inserts) > 0, len(alone) > 0])
        in_table, in_source = F.col(f"{TARGET}.{POSITION}").isNotNull(), F.col(f"{SOURCE}.{HAS_SOURCE}").isNotNull()
        clause = F.when(in_table & in_source, _chosen(self._matched)).when(in_table, _chosen(alone))
        # The clause is computed below, so that values are computed for its rows alone.
        with_clause = joined.withColumn(_CLAUSE, clause.otherwise(_chosen(inserts)))
        writing = [columns for columns in (*self._matched, *alone, *inserts) if len(columns.values) > 0]
        return with_clause.where(F.col(_CLAUSE).isNotNull() | (in_table & in_source)).select(
            *(F.col(f"{TARGET}.{name}").alias(name) for name in (FILE, POSITION, *self._ids)),
            F.col(_CLAUSE),
            *_new_values(self._source, writing),
        )

    def _rows_updated(self, decided: DataFrame, changed: int) -> int:
        updates, deletes = (_numbers(self._source, action) for action in (Action.UPDATE, Action.DELETE))
        if changed == 0 or len(updates) == 0:
            return 0
        return int(decided.where(F.col(_CLAUSE).isin(updates)).count()) if len(deletes) > 0 else changed

    def _written(self, decided: DataFrame, rows_updated: int) -> DataFrame | None:
        """The updated and inserted rows, if there may be any."""
        if rows_updated == 0 and len(self._inserts) == 0:
            return None
        writing = [*_numbers(self._source, Action.UPDATE), *_numbers(self._source, Action.INSERT)]
        rows = decided.where(F.col(_CLAUSE).isin(writing))
        return rows if rows_updated > 0 else rows.drop(ROW_ID.name)

    def _ambiguous(self, decided: DataFrame) -> InputError:
        """The error that shows two rows of the source that match the same row of the table."""
        position = decided.groupBy(FILE, POSITION).count().where("count > 1").select(FILE, POSITION).limit(1)
        (row,) = position.collect()
        found = self._table.where((F.col(FILE) == row[0]) & (F.col(POSITION) == row[1])).alias(TARGET)
        joined = found.join(self._source.aliased, self._source.condition, "inner")
        names = self._source.rows.columns
        rows = joined.select(*(F.col(f"{SOURCE}.{quoted(name)}") for name in names)).limit(2).collect()
        first, second = sorted((row.asDict(recursive=True) for row in rows), key=repr)
        return InputError(
            f"merge: two rows of the source match the same row of the table: {first} and {second}; keep one of them"
        )


def _inserts(source: SparkSource, rows: DataFrame) -> RowOperations:
    """The insertion of those rows of the source to which a clause applies."""
    clauses = source.clauses_for(When.NOT_MATCHED)
    if len(clauses) == 0:
        return RowOperations(rows=None, positions={})
    chosen = rows.withColumn(_CLAUSE, _chosen(clauses)).where(F.col(_CLAUSE).isNotNull())
    return RowOperations(rows=chosen.select(*_new_values(source, clauses)), positions={})


def _numbers(source: SparkSource, action: Action) -> list[int]:
    return [columns.number for columns in source.clauses if columns.clause.action is action]


def _resolved(columns: ClauseColumns, side: DataFrame) -> ClauseColumns:
    """The clause with columns of one side alone: beside those of the other, plain names would be ambiguous."""
    conditions = [] if columns.condition is None else [columns.condition]
    given = [*conditions, *columns.values.values()]
    if len(given) == 0:
        return columns
    chosen = side.select(*(column.alias(f"c{index}") for index, column in enumerate(given)))
    expressions = chosen._jdf.queryExecution().analyzed().expressions()
    tools = side.sparkSession._jvm.org.apache.spark.sql.classic.ExpressionUtils
    known = [Column(tools.column(expressions.apply(index).child())) for index in range(len(given))]
    values = dict(zip(columns.values, known[len(conditions) :], strict=True))
    return replace(columns, condition=known[0] if len(conditions) > 0 else None, values=values)


def _chosen(clauses: Sequence[ClauseColumns]) -> Column:
    """The number of the first clause whose condition is true; null if there is none."""
    result = F.lit(None).cast("int")
    for columns in reversed(clauses):
        number = F.lit(columns.number)
        result = number if columns.condition is None else F.when(columns.condition, number).otherwise(result)
    return result


def _new_values(source: SparkSource, clauses: Sequence[ClauseColumns]) -> list[Column]:
    """The columns of the table with the values that the clause of a row assigns; none if no clause writes rows."""
    if len(clauses) == 0:
        return []
    return [_value(clauses, field.name).alias(field.name) for field in source.plan.schema.fields]


def _value(clauses: Sequence[ClauseColumns], name: str) -> Column:
    result = F.lit(None)
    for columns in reversed(clauses):
        result = F.when(F.col(_CLAUSE) == columns.number, columns.values[name]).otherwise(result)
    return result
