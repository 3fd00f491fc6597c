"""Comparisons of the rows that Apache Iceberg and both engines of icefloe read of the same snapshots."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from icefloe.table.scan import Scan
from icefloe.table.table import Table
from interop.plain_rows import Row, as_texts

CATALOG = "lake"
LINEAGE = ("_row_id", "_last_updated_sequence_number")
QUESTION = "question"


def read_by_spark(frames: Mapping[str, DataFrame]) -> dict[str, list[str]]:
    """The rows of each DataFrame; those with the same columns are read in one job."""
    groups: dict[str, list[DataFrame]] = defaultdict(list)
    for name, frame in frames.items():
        groups[frame.schema.simpleString()].append(frame.withColumn(QUESTION, F.lit(name)))
    found: dict[str, list[Row]] = {name: [] for name in frames}
    for group in groups.values():
        for row in reduce(DataFrame.unionAll, group).toArrow().to_pylist(maps_as_pydicts="strict"):
            found[row.pop(QUESTION)].append(row)
    return {name: _texts(rows) for name, rows in found.items()}


def read_by_arrow(scan: Scan) -> list[str]:
    """The rows of a scan in this process."""
    return _texts(scan.to_arrow().to_pylist(maps_as_pydicts="strict"))


def _texts(rows: Iterable[Row]) -> list[str]:
    return as_texts({name: _shown(value) for name, value in row.items()} for row in rows)


def _shown(value: object) -> object:
    """UUIDs are text in Apache Iceberg's DataFrames and bytes in those of icefloe."""
    if isinstance(value, bytes) and len(value) == 16:
        return str(uuid.UUID(bytes=value))
    return str(value) if isinstance(value, uuid.UUID) else value


def check_every_snapshot(spark: SparkSession, table: Table) -> None:
    """Apache Iceberg reads the rows of every snapshot and of every branch as the Arrow engine does."""
    expected, frames = {}, {}
    for snapshot in table.snapshots:
        name = f"snapshot {snapshot.snapshot_id}: {snapshot.summary}"
        columns = LINEAGE if table.format_version == 3 else ()
        past = table.at(snapshot=snapshot.snapshot_id)
        names = [field.name for field in past.scan().schema.fields]
        expected[name] = read_by_arrow(past.scan(columns=[*names, *columns]))
        frames[name] = spark.sql(
            f"SELECT {', '.join([*names, *columns])} FROM {CATALOG}.{table.name} VERSION AS OF {snapshot.snapshot_id}"
        )
    for branch in (name for name, ref in table.refs.items() if ref.type == "branch"):
        expected[branch] = read_by_arrow(table.at(branch=branch).scan())
        frames[branch] = spark.sql(f"SELECT * FROM {CATALOG}.{table.name} VERSION AS OF '{branch}'")
    _compare(read_by_spark(frames), expected)


def check_head(spark: SparkSession, table: Table, filters: Iterable[str] = ()) -> None:
    """Apache Iceberg reads the rows of main that match each filter as the Arrow engine does; so does the Spark engine.

    In version 3, row ids and sequence numbers are compared as well.
    """
    names = [field.name for field in table.schema.fields] + list(LINEAGE if table.format_version == 3 else ())
    expected = {where: read_by_arrow(table.scan(where, columns=names)) for where in ("true", *filters)}
    frame = spark.table(f"{CATALOG}.{table.name}").select(*names)
    _compare(read_by_spark({where: frame.where(where) for where in expected}), expected)
    frame = table.scan(columns=names).to_spark(spark)
    _compare(read_by_spark({where: frame.where(where) for where in expected}), expected)


def _compare(found: Mapping[str, list[str]], expected: Mapping[str, list[str]]) -> None:
    for name, rows in expected.items():
        assert found[name] == rows, name
