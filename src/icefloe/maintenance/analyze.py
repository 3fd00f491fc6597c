"""Statistics of a snapshot: distinct values of columns, and totals of partitions (spec: Table statistics).

The distinct values are a Puffin file with one Theta sketch for each column, the totals of partitions a Parquet file. A
commit adds the file to the table metadata and makes no snapshot. It replaces the file of the same kind and snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from icefloe.codecs.parquet.partition_statistics import collect_partition_statistics, encode_partition_statistics
from icefloe.codecs.puffin.statistics_file import encode_statistics, theta_blob
from icefloe.codecs.puffin.theta_sketch import ThetaSketch
from icefloe.commit.base import Base, TablePointer
from icefloe.commit.loop import commit
from icefloe.commit.operations.snapshot_updates import SetStatistics
from icefloe.commit.stage import METADATA_FOLDER
from icefloe.engines.engine import Engine
from icefloe.engines.work import ScanRequest
from icefloe.env import CREATED_BY, Env
from icefloe.errors import InputError, UnsupportedError
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import UNKNOWN, Field, Geography, Geometry, Struct, is_primitive
from icefloe.model.text.figures import Figures
from icefloe.model.text.text_checks import listed
from icefloe.progress import Progress
from icefloe.scan.select import select_snapshot
from icefloe.scan.tree_entries import tree_entries
from icefloe.tree.store import NO_STATISTICS

Columns = Mapping[tuple[str, ...], Field]  # by path: names of structs, and that of the column


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsResult(Figures):
    """The outcome of ``analyze``: the estimated number of distinct values of each column, and the file that has them.

    Numbers up to 4096 are exact.

    >>> StatisticsResult(table="db.t", snapshot_id=7, statistics_file="s3://b/t/7.stats", distinct_values={"id": 42})
    analyze db.t: snapshot 7, distinct values: id 42; 0 bytes in s3://b/t/7.stats
    >>> StatisticsResult(table="db.t")
    analyze db.t: the table has no snapshot
    """

    table: str
    snapshot_id: int | None = None
    statistics_file: str | None = None
    distinct_values: Mapping[str, int] = field(default_factory=dict)
    bytes_written: int = 0

    def __repr__(self) -> str:
        if self.snapshot_id is None:
            return f"analyze {self.table}: the table has no snapshot"
        numbers = ", ".join(f"{name} {count}" for name, count in self.distinct_values.items())
        return (
            f"analyze {self.table}: snapshot {self.snapshot_id}, distinct values: {numbers}; "
            f"{self.bytes_written} bytes in {self.statistics_file}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatisticsResult(Figures):
    """The outcome of ``analyze_partitions``: the number of partitions, and the file with their statistics.

    >>> PartitionStatisticsResult(table="db.t", snapshot_id=7, partition_statistics_file="s3://b/p", partitions=3)
    analyze partitions of db.t: snapshot 7, 3 partitions; 0 bytes in s3://b/p
    >>> PartitionStatisticsResult(table="db.t")
    analyze partitions of db.t: the table has no snapshot
    """

    table: str
    snapshot_id: int | None = None
    partition_statistics_file: str | None = None
    partitions: int = 0
    bytes_written: int = 0

    def __repr__(self) -> str:
        if self.snapshot_id is None:
            return f"analyze partitions of {self.table}: the table has no snapshot"
        return (
            f"analyze partitions of {self.table}: snapshot {self.snapshot_id}, {self.partitions} partitions; "
            f"{self.bytes_written} bytes in {self.partition_statistics_file}"
        )


def analyze(
    table: TablePointer,
    engine: Engine,
    env: Env,
    *,
    columns: Sequence[str] | None,
    snapshot: int | None,
    progress: Progress,
) -> StatisticsResult:
    """Estimate the distinct values of columns at a snapshot, by default the current one, and commit the statistics."""
    base = table.load()
    chosen = select_snapshot(base.metadata, snapshot=snapshot)
    schema = base.metadata.schema if chosen is None or snapshot is None else base.metadata.schema_of(chosen)
    analyzed = _analyzed_columns(schema, columns, str(table))
    if chosen is None:
        return StatisticsResult(table=str(table))
    names = {path: ".".join(path) for path in analyzed}
    scan = ScanRequest(base=base, snapshot=chosen, columns=tuple(names.values()), schema=schema)
    sketches = engine.distinct_sketches(scan, analyzed, progress)
    bytes_written, location = _commit_sketches(table, env, base, chosen, sketches)
    return StatisticsResult(
        table=str(table),
        snapshot_id=chosen.snapshot_id,
        statistics_file=location,
        distinct_values={names[path]: sketches[field.id].distinct_values for path, field in analyzed.items()},
        bytes_written=bytes_written,
    )


def _analyzed_columns(schema: Schema, columns: Sequence[str] | None, table: str) -> Columns:
    """The columns to analyze: the given ones, which may be in structs, or all top-level columns with single values."""
    known = dict(_in_structs(schema.fields))
    if columns is None:
        chosen: Columns = {path: field for path, field in known.items() if len(path) == 1 and _refusal(field) is None}
        if len(chosen) == 0:
            raise InputError(f"analyze {table}: no column has values that can be counted", table=table)
        return chosen
    schema.project(listed(columns, "columns"), table=table)  # names a column that does not exist
    by_name = {".".join(path): (path, field) for path, field in known.items()}
    for name in columns:
        reason = "is inside a list or map" if name not in by_name else _refusal(by_name[name][1])
        if reason is not None:
            raise UnsupportedError(
                f"analyze {table}: column {name!r} {reason}; distinct values are counted for columns of single values,"
                " also inside structs. Leave the column out",
                table=table,
                field=name,
            )
    if len(columns) == 0:
        raise InputError(f"analyze {table}: columns is empty; name a column, or leave it out for all", table=table)
    return dict(by_name[name] for name in columns)


def _in_structs(fields: tuple[Field, ...], around: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Field]]:
    """The columns and the fields of structs, by path."""
    for one in fields:
        path = (*around, one.name)
        yield path, one
        if isinstance(one.type, Struct):
            yield from _in_structs(one.type.fields, path)


def _refusal(column: Field) -> str | None:
    """Why the distinct values of a column are not counted."""
    type_ = column.type
    has_values = is_primitive(type_) and not isinstance(type_, (Geometry, Geography)) and type_ != UNKNOWN
    return None if has_values else f"is of type {type_}"


def _commit_sketches(
    table: TablePointer, env: Env, base: Base, snapshot: Snapshot, sketches: Mapping[int, ThetaSketch]
) -> tuple[int, str]:
    """Write the sketches and commit their file; returns its size and location."""
    blobs = [
        theta_blob(
            sketch.encode(),
            field_id=id_,
            ndv=sketch.distinct_values,
            snapshot_id=snapshot.snapshot_id,
            sequence_number=snapshot.sequence_number,
        )
        for id_, sketch in sketches.items()
    ]
    location = f"{base.metadata.location}/{METADATA_FOLDER}/{snapshot.snapshot_id}-{env.new_uuid()}.stats"
    data, entry = encode_statistics(blobs, snapshot_id=snapshot.snapshot_id, location=location, created_by=CREATED_BY)
    base.store.io.write_new(location, data)
    commit(table, SetStatistics(files_of_snapshots=(entry,)), env)
    return len(data), location


def analyze_partitions(table: TablePointer, env: Env, *, snapshot: int | None) -> PartitionStatisticsResult:
    """Sum up the files of each partition at a snapshot, by default the current one, and commit the statistics."""
    base = table.load()
    metadata, context = base.metadata, base.store.context
    if len(context.partition_types) == 0:
        raise InputError(
            f"analyze partitions of {table}: the table has no partitions; t.inspect.partitions() has its totals",
            table=str(table),
        )
    chosen = select_snapshot(metadata, snapshot=snapshot)
    if chosen is None:
        return PartitionStatisticsResult(table=str(table))
    files = tree_entries(base.store, (chosen,), wanted=NO_STATISTICS)
    times = {one.snapshot_id: one.timestamp_ms for one in metadata.snapshots}
    rows = collect_partition_statistics(files, context, times)
    name = f"partition-stats-{chosen.snapshot_id}-{env.new_uuid()}.parquet"
    location = f"{metadata.location}/{METADATA_FOLDER}/{name}"
    data, entry = encode_partition_statistics(rows, context, snapshot_id=chosen.snapshot_id, location=location)
    base.store.io.write_new(location, data)
    commit(table, SetStatistics(files_of_snapshots=(entry,)), env)
    return PartitionStatisticsResult(
        table=str(table),
        snapshot_id=chosen.snapshot_id,
        partition_statistics_file=location,
        partitions=rows.num_rows,
        bytes_written=len(data),
    )
