"""Changes in Spark SQL: the metadata table ``demo.db.t.changes``, with the names of Apache Iceberg."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from icefloe.engines.choose import engine_for
from icefloe.engines.work import ChangeRequest
from icefloe.errors import InputError
from icefloe.expr.text.spark_sql import quoted
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import INT, LONG, STRING, Field
from icefloe.scan.changes.plan import CHANGE_ORDINAL, CHANGE_TYPE, COMMIT_SNAPSHOT
from icefloe.scan.changes.snapshot_range import SnapshotRange, snapshot_range
from icefloe.scan.select import Point
from icefloe.spark_sql.options.known_options import ENDS, OF_STATE, STARTS, number_option
from icefloe.table.table_at import TableAt

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CHANGE_COLUMNS = (CHANGE_TYPE, CHANGE_ORDINAL, COMMIT_SNAPSHOT)


def change_schema(schema: Schema) -> Schema:
    """The columns of the metadata table ``changes`` of a table with these columns."""
    last = max((0, *schema.by_id))
    own = (
        Field(last + 1, CHANGE_TYPE, STRING),
        Field(last + 2, CHANGE_ORDINAL, INT),
        Field(last + 3, COMMIT_SNAPSHOT, LONG),
    )
    return Schema(fields=(*schema.fields, *own))


def changes_of(spark: SparkSession, at: TableAt, columns: list[str], options: Mapping[str, str]) -> DataFrame:
    """The changes up to a point of the history, or in the range that options select, with the columns of that point."""
    given = {name.lower(): value for name, value in options.items()}
    since, until = point(given, STARTS), point(given, ENDS)
    states = [name for name in OF_STATE if name in given]
    if until is not None and len(states) > 0:
        raise InputError(
            f"option {states[0]} selects the end of the changes, as {' and '.join(ENDS)} do; give one of them"
        )
    if until is None and at.snapshot is not None:
        until = at.snapshot.snapshot_id
    if at.snapshot is None:
        between = SnapshotRange(since=None, until=None, snapshots=(), schema=at.schema)
    else:
        between = replace(snapshot_range(at.metadata, since, until), schema=at.schema)
    stored = tuple(name for name in columns if name not in _CHANGE_COLUMNS)
    return changes_of_request(spark, ChangeRequest(base=at._base, between=between, columns=stored)).select(
        *map(quoted, columns)
    )


def changes_of_request(spark: SparkSession, request: ChangeRequest) -> DataFrame:
    """The changes that a request asks for, with the change types of SQL."""
    return in_capitals(engine_for(spark).read_changes(request))


def in_capitals(changes: DataFrame) -> DataFrame:
    """Changes with the change types of SQL."""
    return changes.withColumn(CHANGE_TYPE, F.upper(CHANGE_TYPE))


def point(options: Mapping[str, str], names: Sequence[str]) -> Point | None:
    """The snapshot or the time that options name."""
    by_id, by_time = (number_option(options, name) for name in names)
    if by_id is not None and by_time is not None:
        raise InputError(f"give one of the options {' and '.join(names)}, not both")
    return by_id if by_time is None else _EPOCH + timedelta(milliseconds=by_time)
