"""The live rows of a snapshot as a DataFrame, which plans its files when a query runs, with the filters of the query.

A deletion vector is one BINARY constant of its file. Generated code tests the bit at the physical position of a row,
which the reader provides. There is no join, no broadcast, no UDF, and no class of this library on executors. Equality
deletes are joins, of the files that they apply to only: a DataFrame unites the rows that are read by each route. A scan
of a snapshot without deletes has none of this (spec: Row-level Deletes, Scan Planning).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

from icefloe.deletes.bitmaps import within
from icefloe.engines.spark.jvm_calls import static_call
from icefloe.engines.spark.read.column_types import check_columns, has_binary_defaults, with_longs
from icefloe.engines.spark.read.file_index import Lister, Listing, relation
from icefloe.engines.spark.read.inherited_columns import FileConstant
from icefloe.engines.spark.read.source import BITMAP_BYTES_MAX, FilesByTasks, Source
from icefloe.engines.spark.read.task_reads import GROUPS, LISTED, TaskReader, file_groups
from icefloe.engines.spark.schema import struct_type
from icefloe.engines.spark.session import NO_ROW_GROUP_PRUNING, READ_SETTINGS, ROW_BY_ROW, PerJvm, spark_internals
from icefloe.engines.spark.storage import task_storage
from icefloe.engines.spark.task_python import map_in_arrow
from icefloe.errors import FormatError, UnsupportedError
from icefloe.expr.filter.bind import bind_pushed
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Expr, conjunction, conjuncts
from icefloe.expr.text.filter_parser import parse_pushed
from icefloe.expr.text.spark_sql import to_sql
from icefloe.model.entries import partition_key
from icefloe.model.schema.schema import Schema
from icefloe.scan.aggregates import bounds
from icefloe.scan.first_rows import files_of_first_rows
from icefloe.scan.partition_values import partition_value
from icefloe.scan.routes import Route
from icefloe.scan.tasks import Plan

FILE = "_file_ordinal"
POSITION = "_pos"
_BITMAP = "_icefloe_deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Positioned:
    """Rows with their file's number (``_file_ordinal``) and their physical position in it (``_pos``)."""

    frame: DataFrame
    files: FileNumbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to read of each file: the columns, the constants, and whether the position of each row."""

    stored: Schema
    constants: tuple[FileConstant, ...] = ()
    positions: bool = False


class FileNumbers:
    """Numbers of locations; a location keeps its number, also if the files are planned again."""

    def __init__(self) -> None:
        self._known = pa.array([], pa.string())
        self._lock = threading.Lock()

    def number(self, locations: pa.ChunkedArray) -> pa.ChunkedArray:
        """The numbers of locations; new locations get the next ones."""
        with self._lock:
            is_new = pc.invert(pc.is_in(locations, value_set=self._known))
            self._known = pa.concat_arrays([self._known, locations.filter(is_new).unique()])
            return pc.index_in(locations, value_set=self._known).cast(pa.int64())

    def location(self, number: int) -> str:
        """The location with this number."""
        return str(self._known[number])


def dataframe(spark: SparkSession, source: Source) -> DataFrame:
    """The live rows of a snapshot; filters that are added to the DataFrame later prune files too."""
    if source.has_deletes or len(source.inherited.fields) > 0:
        return _live_rows(spark, source, None).drop(_BITMAP, spark_internals(spark).row_index_column)
    spark_internals(spark)
    return _parts(spark, source, Wanted(stored=source.schema))


def rows_with_positions(spark: SparkSession, source: Source) -> Positioned:
    """The live rows of a snapshot with file number and position, for deletes and upserts."""
    files = FileNumbers()
    rows = _live_rows(spark, source, files).drop(_BITMAP)
    return Positioned(frame=rows.withColumnRenamed(spark_internals(spark).row_index_column, POSITION), files=files)


def survivors(spark: SparkSession, source: Source, deleted: Mapping[str, BitMap64]) -> DataFrame:
    """The live rows of the files in ``deleted``, without the rows at those positions."""
    touched = pa.array(list(deleted), pa.string())

    def plan(filter_: Expr, bounded: tuple[int, ...]) -> Plan:
        whole = source.plan(filter_, bounded)
        return replace(whole, tasks=whole.tasks.filter(pc.is_in(whole.tasks["location"], value_set=touched)))

    return dataframe(spark, replace(source, plan=plan, also_deleted=deleted, has_deletes=True))


def _live_rows(spark: SparkSession, source: Source, numbers: FileNumbers | None) -> DataFrame:
    """Rows with the reader's row index column, the bitmap of their file and, if wanted, its number."""
    row_index, inherited = spark_internals(spark).row_index_column, source.inherited
    constants = (*_numbers(numbers), *inherited.constants)
    stored = Schema(fields=(*source.schema.fields, *inherited.stored))
    own = (constant.name for constant in constants), (field.name for field in inherited.stored)
    _check_names(source.schema, {POSITION, _BITMAP, row_index, *chain(*own)})
    rows = _parts(spark, source, Wanted(stored=stored, constants=constants, positions=True))
    if source.has_deletes:
        if source.first_filter != ALWAYS_TRUE:
            rows = rows.where(F.expr(to_sql(source.first_filter)))
        rows = rows.where(_IS_LIVE.of(spark))
    return inherited.fill(rows, row_index)


def _numbers(numbers: FileNumbers | None) -> Iterator[FileConstant]:
    """The number of a file, if wanted."""
    if numbers is not None:
        number = numbers.number
        yield FileConstant(field=StructField(FILE, LongType(), True), values=lambda tasks: number(tasks["location"]))


def _check_names(schema: Schema, reserved: Set[str]) -> None:
    taken = [field.name for field in schema.fields if field.name.lower() in reserved]
    if len(taken) > 0:
        raise UnsupportedError(
            f"column {taken[0]!r} has a name that reading row positions needs; rename it", field=taken[0]
        )


def _parts(spark: SparkSession, source: Source, wanted: Wanted) -> DataFrame:
    """The rows of all files, by all routes that the source has."""
    check_columns(spark, wanted.stored, reads_nanoseconds=source.reads_nanoseconds, native=source.native)
    parts = []
    if Route.NATIVE in source.routes:
        parts.append(_native(spark, source, wanted, Route.NATIVE))
    if Route.JOINED in source.routes:
        parts.append(_joined(spark, source, wanted))
    if source.by_tasks is not None and Route.TASKS in source.routes:
        parts.append(_by_tasks(spark, source, wanted, source.by_tasks))
    return reduce(DataFrame.union, parts)


def _joined(spark: SparkSession, source: Source, wanted: Wanted) -> DataFrame:
    """The rows of files with equality deletes, without those that are deleted."""
    deletes, names = source.equality_deletes, {field.id: field.name for field in wanted.stored.fields}
    hidden = tuple(
        replace(field, name=f"_icefloe_key_{field.id}", required=False)
        for field in deletes.fields
        if field.id not in names
    )
    names |= {field.id: field.name for field in hidden}
    schema = Schema(fields=(*wanted.stored.fields, *hidden))
    rows = _native(
        spark,
        replace(source, identity=source.identity.with_schema(schema)),
        replace(wanted, stored=schema, constants=(*wanted.constants, *deletes.constants())),
        Route.JOINED,
    )
    live = deletes.apply(spark, rows, names, source.location, source.hadoop)
    return live.drop(*(field.name for field in hidden), *(constant.name for constant in deletes.constants()))


def _by_tasks(spark: SparkSession, source: Source, wanted: Wanted, files: FilesByTasks) -> DataFrame:
    """The rows of files that tasks read, without deleted ones: the column of bitmaps is null."""
    result = struct_type(with_longs(wanted.stored))
    if wanted.positions:
        result = result.add(spark_internals(spark).row_index_column, LongType(), True)
    for constant in wanted.constants:
        result = result.add(constant.field)
    if wanted.positions and source.has_deletes:
        result = result.add(_BITMAP, BinaryType(), True)
    reader = TaskReader(
        storage=task_storage(files.io),
        plan=files.plan,
        columns=wanted.stored,
        filter=files.filter,
        positions=wanted.positions,
        result=result,
    )

    def listed(_: Listing) -> pa.Table:
        whole = source.plan(_understood(source.pushed, source.schema), ())  # Spark pushes no filter through Python
        plan = source.files_of(whole, Route.TASKS)
        constants = {constant.name: constant.values(plan.tasks) for constant in wanted.constants}
        groups = file_groups(spark, plan, constants, source.also_deleted)
        return groups.set_column(0, "location", _paths_to_list(source, groups["location"]))

    groups = relation(
        spark,
        listed,
        LISTED,
        GROUPS,
        location=source.hadoop.path(source.location),
        size_bytes=source.size_bytes,
        settings={},
        hadoop=source.hadoop.settings,
        is_parquet=False,
    )
    return map_in_arrow(groups.select(*GROUPS.names), reader, result)


def _paths_to_list(source: Source, locations: pa.ChunkedArray) -> pa.ChunkedArray:
    """The paths of groups of files, of which Spark reads the status only; of storage that Hadoop cannot open, another.

    Every machine has a root folder.
    """
    return source.hadoop.paths(locations) if source.hadoop.is_readable else pa.array(["file:///"] * len(locations))


def _native(spark: SparkSession, source: Source, wanted: Wanted, route: Route) -> DataFrame:
    """The rows of the files of one route, read by Spark's Parquet reader."""
    columns, constants = struct_type(with_longs(wanted.stored)), list(wanted.constants)
    if wanted.positions:
        columns = columns.add(spark_internals(spark).row_index_column, LongType(), True)
    # Constants of identity partitions are also listed as columns, so they keep their place among the columns.
    described = StructType([columns[field.name] for field in source.identity.constants])
    described = StructType([*described, *(constant.field for constant in constants)])
    if wanted.positions and source.has_deletes:
        described = described.add(_BITMAP, BinaryType(), True)
    return relation(
        spark,
        _lister(source, wanted, route),
        columns,
        described,
        location=source.hadoop.path(source.location),
        size_bytes=source.size_bytes,
        settings=_settings(source, wanted),
        hadoop=source.hadoop.settings,
        has_bounds=True,
        buckets=source.buckets,
    )


def _settings(source: Source, wanted: Wanted) -> Mapping[str, str]:
    settings = dict(READ_SETTINGS)
    if not source.stable_names:
        settings.update(NO_ROW_GROUP_PRUNING)
    if has_binary_defaults(wanted.stored):
        settings.update(ROW_BY_ROW)
    return settings


def _lister(source: Source, wanted: Wanted, route: Route) -> Lister:
    """The function that lists the files of a scan: location, size and the constants in order."""

    def files(listing: Listing) -> pa.Table:
        of_bounds, first = [source.schema.by_name[name] for name in listing.bounded], listing.first
        column = None if first is None or first.column is None else source.schema.by_name[first.column]
        understood = _understood(parse_pushed(listing.filters, listing.zone), source.schema)
        plan = source.plan(understood, tuple(field.id for field in (*of_bounds, column) if field is not None))
        plan = source.files_of(plan, route)
        plan = plan if first is None else plan.with_tasks(files_of_first_rows(plan.tasks, first, column))
        tasks = plan.tasks
        columns = [source.hadoop.paths(tasks["location"]), tasks["file_size_in_bytes"], *source.identity.values(tasks)]
        columns += [constant.values(tasks) for constant in wanted.constants]
        if wanted.positions and source.has_deletes:
            columns.append(_bitmaps(tasks, source.deleted_positions(plan)))
        columns += chain.from_iterable(bounds(tasks, field) for field in of_bounds)
        columns += [] if listing.bucket is None else [_buckets(tasks, listing.bucket)]
        return pa.table(columns, names=[str(position) for position in range(len(columns))])

    return files


def _buckets(tasks: pa.Table, field_id: int) -> pa.Array:
    """The bucket of each file; nulls are in the first one."""
    value, has_value = partition_value(tasks, partition_key(field_id), pa.int32())
    if not pc.all(has_value, min_count=0).as_py():
        location = tasks["location"].filter(pc.invert(has_value))[0].as_py()
        raise FormatError(f"{location}: the file has no value of the partition field {field_id}", location=location)
    return pc.fill_null(value, 0)


def _understood(filter_: Expr, schema: Schema) -> Expr:
    """The conjuncts that can be bound to columns of the table; Spark itself evaluates all of them."""
    return conjunction(part for part in conjuncts(filter_) if bind_pushed(part, schema) != ALWAYS_TRUE)


def _bitmaps(tasks: pa.Table, vectors: Mapping[str, BitMap64]) -> pa.Array:
    """One bit per row of each file that has deleted rows, null for the others."""
    rows = pc.index_in(pa.array(list(vectors), pa.string()), value_set=tasks["location"].combine_chunks())
    counts = tasks["record_count"].take(rows)
    size = (pc.sum(counts).as_py() or 0) // 8
    if size > BITMAP_BYTES_MAX:
        raise UnsupportedError(
            f"the deletion vectors of this scan cover {size * 8} rows, more than the driver passes on at once; "
            "filter the scan or compact the table",
            rows=size * 8,
        )
    values: list[bytes | None] = [None] * tasks.num_rows
    for row, count, vector in zip(rows.to_pylist(), counts.to_pylist(), vectors.values(), strict=True):
        if row is not None and len(within(vector, count)) > 0:
            values[row] = _packed(within(vector, count), count)
    return pa.array(values, pa.binary())


def _packed(vector: BitMap64, rows: int) -> bytes:
    """Little-endian bits, a whole number of 32-bit words that covers every row of the file."""
    bits = np.zeros(-(-rows // 32) * 32, dtype=np.bool_)
    bits[np.frombuffer(vector.to_array(), dtype=np.uint64)] = True
    return np.packbits(bits, bitorder="little").tobytes()


def _is_live(spark: SparkSession) -> Column:
    """The condition that a row's bit is not set."""
    row = spark_internals(spark).row_index_column
    bit = F.getbit(_word_around(spark, _BITMAP, row), F.expr(f"cast({row} & 31 as int)"))
    return F.col(_BITMAP).isNull() | (bit == 0)


_IS_LIVE = PerJvm(_is_live)


def _word_around(spark: SparkSession, bitmap: str, row: str) -> Column:
    """The 32 bits around a row, read by a method of Parquet's own library."""
    arguments = (F.expr(bitmap), F.expr(f"cast(shiftleft(shiftright({row}, 5), 2) as int)"))
    return static_call(spark, "org.apache.parquet.bytes.BytesUtils", "readIntLittleEndian", arguments, IntegerType())
