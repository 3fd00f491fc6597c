"""A merge on Spark: one join decides about the rows of the table and computes their new values.

The join is kept in memory or on disk. The positions of changed rows, the updated rows and the matched rows of the
source are read from it. So the table is read once, and only the columns and files that the merge needs. Rows of the
source that the join has not matched are inserted. An updated row keeps its id (spec: Row-level Deletes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from icefloe.engines.engine import MergedRows, MergeMatches
from icefloe.engines.merge import SOURCE, TARGET, Action, When
from icefloe.engines.spark.change.merge_source import HAS_SOURCE, ClauseColumns, SparkSource
from icefloe.engines.spark.change.positions import positions_of
from icefloe.engines.spark.failures import translated
from icefloe.engines.spark.read.read import FILE, POSITION, FileNumbers, rows_with_positions
from icefloe.engines.spark.read.scan import planned_source
from icefloe.engines.spark.write.conform import quoted
from icefloe.engines.spark.write.write import write
from icefloe.engines.work import PlannedFiles
from icefloe.errors import InputError
from icefloe.model.entries import empty
from icefloe.model.schema.metadata_columns import ROW_ID

_CLAUSE = "_icefloe_clause"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRows:
    """The rows that a merge writes, none of a kind if it has no clause for it, and the number of changed rows."""

    updated: DataFrame | None
    inserted: DataFrame | None
    changed: int
    rows_updated: int


def find_merged(spark: SparkSession, files: PlannedFiles, source: SparkSource) -> MergeMatches:
    """Decide about every row of the planned files and of the source; only final row ids are kept."""
    if files.plan.files == 0:
        new = NewRows(updated=None, inserted=_inserted(source, source.aliased), changed=0, rows_updated=0)
        return MergeMatches(positions={}, prepared=new)
    merge = _Merge(spark, files, source)
    with translated():
        return merge.insert_only() if merge.changes_nothing else merge.matches()


def write_merged(files: PlannedFiles, matches: MergeMatches) -> MergedRows:
    """Write the updated and the inserted rows to new data files."""
    new: NewRows = matches.prepared
    lineage = (ROW_ID,) if len(files.lineage) > 0 and new.rows_updated > 0 else ()
    parts = [new.inserted] if new.rows_updated == 0 else [new.updated, new.inserted]
    frames = [_with_row_id(frame, len(lineage) > 0) for frame in parts if frame is not None]
    entries = empty()
    if len(frames) > 0:
        rows = reduce(DataFrame.unionByName, frames)
        entries = write(rows, metadata=files.metadata, io=files.io, lineage=lineage, is_rewrite=True)
    return MergedRows(
        entries=entries,
        rows_inserted=sum(entries["record_count"].to_pylist()) - new.rows_updated,
        rows_updated=new.rows_updated,
        rows_deleted=new.changed - new.rows_updated,
    )


class _Merge:
    """The join of planned files with the source of a merge."""

    def __init__(self, spark: SparkSession, files: PlannedFiles, source: SparkSource) -> None:
        self._files, self._source = files, source
        lineage = (ROW_ID,) if len(files.lineage) > 0 else ()
        rows = rows_with_positions(spark, planned_source(spark, files, source.plan.schema, lineage))
        self._numbers: FileNumbers = rows.files
        self._table = rows.frame.alias(TARGET)
        self._has_ids = len(lineage) > 0
        self._matched = source.clauses_for(When.MATCHED)
        alone = source.clauses_for(When.NOT_MATCHED_BY_SOURCE)
        self._alone = [_resolved(columns, self._table) for columns in alone]

    @property
    def changes_nothing(self) -> bool:
        """Whether no clause changes rows of the table."""
        return len(self._matched) + len(self._alone) == 0

    def insert_only(self) -> MergeMatches:
        """The rows to insert of a merge that changes no row of the table."""
        new = NewRows(updated=None, inserted=self._inserted(None), changed=0, rows_updated=0)
        return MergeMatches(positions={}, prepared=new)

    def matches(self) -> MergeMatches:
        """All decisions; InputError if several rows of the source match one row of the table."""
        decided = self._source.keep(self._decided())
        acts = F.col(_CLAUSE).isNotNull()
        found = positions_of(decided, self._numbers, planned_rows=self._files.rows, chosen=acts)
        if found.has_repeated and len(self._matched) > 0:
            raise self._ambiguous(decided)
        changed = sum(len(rows) for rows in found.positions.values())
        new = NewRows(
            updated=self._updated(decided),
            inserted=self._inserted(decided),
            changed=changed,
            rows_updated=self._rows_updated(decided, changed),
        )
        return MergeMatches(positions=found.positions, prepared=new)

    def _decided(self) -> DataFrame:
        """Rows of the table with their clause, their new values, and the columns that joined them with the source."""
        joined = self._table.join(
            self._source.aliased, self._source.condition, "inner" if len(self._alone) == 0 else "left"
        )
        has_source = F.col(f"{SOURCE}.{HAS_SOURCE}").isNotNull()
        clause = F.when(has_source, _chosen(self._matched))
        if len(self._alone) > 0:
            clause = clause.otherwise(_chosen(self._alone))
        updates = [columns for columns in (*self._matched, *self._alone) if columns.clause.action is Action.UPDATE]
        kept = [F.col(f"{TARGET}.{FILE}").alias(FILE), F.col(f"{TARGET}.{POSITION}").alias(POSITION)]
        if self._has_ids:
            row_id = F.col(f"{TARGET}.{ROW_ID.name}")
            kept.append(F.when(row_id < self._files.final_lineage.next_row_id, row_id).alias(ROW_ID.name))
        joining = self._source.joining_columns or []
        # The clause is computed below, so that values are computed for its rows alone.
        with_clause = joined.withColumn(_CLAUSE, clause).where(F.col(_CLAUSE).isNotNull() | has_source)
        return with_clause.select(
            *kept,
            F.col(_CLAUSE),
            F.col(f"{SOURCE}.{HAS_SOURCE}").alias(HAS_SOURCE),
            *(F.col(f"{SOURCE}.{quoted(name)}").alias(_joining(index)) for index, name in enumerate(joining)),
            *(
                _of_clause(updates, field.name).alias(_new(index))
                for index, field in enumerate(self._source.plan.schema.fields)
                if len(updates) > 0
            ),
        )

    def _updated(self, decided: DataFrame) -> DataFrame | None:
        updates = [columns.number for columns in self._source.clauses if columns.clause.action is Action.UPDATE]
        if len(updates) == 0:
            return None
        fields = self._source.plan.schema.fields
        new = [F.col(_new(index)).alias(field.name) for index, field in enumerate(fields)]
        row_id = [F.col(ROW_ID.name)] if self._has_ids else []
        return decided.where(F.col(_CLAUSE).isin(updates)).select(*new, *row_id)

    def _rows_updated(self, decided: DataFrame, changed: int) -> int:
        updates = [columns.number for columns in self._source.clauses if columns.clause.action is Action.UPDATE]
        has_deletes = any(columns.clause.action is Action.DELETE for columns in self._source.clauses)
        if changed == 0 or len(updates) == 0:
            return 0
        return int(decided.where(F.col(_CLAUSE).isin(updates)).count()) if has_deletes else changed

    def _inserted(self, decided: DataFrame | None) -> DataFrame | None:
        joining = self._source.joining_columns
        source = self._source.aliased
        if len(self._source.clauses_for(When.NOT_MATCHED)) == 0:
            return None
        if decided is None or joining is None:
            return _inserted(self._source, source.join(self._table, self._source.condition, "left_anti"))
        matched = decided.where(F.col(HAS_SOURCE))
        equal = [F.col(f"{SOURCE}.{quoted(name)}").eqNullSafe(F.col(_joining(i))) for i, name in enumerate(joining)]
        return _inserted(self._source, source.join(matched, reduce(and_, equal), "left_anti"))

    def _ambiguous(self, decided: DataFrame) -> InputError:
        """The error that shows two rows of the source that match the same row of the table."""
        position = decided.groupBy(FILE, POSITION).count().where("count > 1").select(FILE, POSITION).limit(1)
        (row,) = position.collect()
        is_row = (F.col(f"{TARGET}.{FILE}") == row[0]) & (F.col(f"{TARGET}.{POSITION}") == row[1])
        joined = self._table.where(is_row).join(self._source.aliased, self._source.condition, "inner")
        names = self._source.rows.columns
        rows = joined.select(*(F.col(f"{SOURCE}.{quoted(name)}") for name in names)).limit(2).collect()
        first, second = sorted((row.asDict(recursive=True) for row in rows), key=repr)
        return InputError(
            f"merge: two rows of the source match the same row of the table: {first} and {second}; keep one of them"
        )


def _inserted(source: SparkSource, rows: DataFrame) -> DataFrame | None:
    """The rows of the source without a match to which a clause applies, with the columns of the table."""
    clauses = source.clauses_for(When.NOT_MATCHED)
    if len(clauses) == 0:
        return None
    with_clause = rows.withColumn(_CLAUSE, _chosen(clauses)).where(F.col(_CLAUSE).isNotNull())
    return with_clause.select(
        *(_of_clause(clauses, field.name).alias(field.name) for field in source.plan.schema.fields)
    )


def _resolved(columns: ClauseColumns, table: DataFrame) -> ClauseColumns:
    """The clause with columns of the table alone: beside those of the source, plain names would be ambiguous."""
    conditions = [] if columns.condition is None else [columns.condition]
    given = [*conditions, *columns.values.values()]
    if len(given) == 0:
        return columns
    chosen = table.select(*(column.alias(f"c{index}") for index, column in enumerate(given)))
    expressions = chosen._jdf.queryExecution().analyzed().expressions()
    tools = table.sparkSession._jvm.org.apache.spark.sql.classic.ExpressionUtils
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


def _of_clause(clauses: Sequence[ClauseColumns], name: str) -> Column:
    """The value that the clause of a row assigns to a column."""
    result = F.lit(None)
    for columns in reversed(clauses):
        result = F.when(F.col(_CLAUSE) == columns.number, columns.values[name]).otherwise(result)
    return result


def _with_row_id(frame: DataFrame, has_ids: bool) -> DataFrame:
    if not has_ids:
        return frame.drop(ROW_ID.name)
    return frame if ROW_ID.name in frame.columns else frame.withColumn(ROW_ID.name, F.lit(None).cast("long"))


def _joining(index: int) -> str:
    return f"_icefloe_joining_{index}"


def _new(index: int) -> str:
    return f"_icefloe_new_{index}"
