"""A table as a relation of Spark: Spark's Parquet reader reads files that a planner in Python lists.

Spark calls the planner once per scan with the filters of that scan. So filters that are added to a DataFrame later
prune files, and two scans of one DataFrame are planned separately. To Spark, constants of files are partition columns.
"""

from __future__ import annotations

import json
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import IO, Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from icefloe.engines.spark.failures import marked
from icefloe.engines.spark.java_classes import ENGINE_CLASSES, objects
from icefloe.engines.spark.python_calls import java_function
from icefloe.engines.spark.session import PerJvm, child_session, java_class
from icefloe.engines.spark.task_python import arrow_stream
from icefloe.errors import IcefloeError
from icefloe.scan.first_rows import FirstRows


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What Spark asks about the files of a scan."""

    filters: list[str]  # as SQL text
    zone: str  # the time zone of the session
    first: FirstRows | None = None  # if only these are wanted
    bounded: tuple[str, ...] = ()  # the columns whose bounds are wanted
    bucket: int | None = None  # the partition field whose values are wanted


class Buckets(NamedTuple):
    """The buckets of a column that all files of a relation are in."""

    column: str
    number: int
    field_id: int


Lister = Callable[[Listing], pa.Table]  # -> location, size, constants, bounds

# Options of a relation, which Java classes look for.
HAS_BOUNDS, BUCKETS = "icefloe.has-bounds", "icefloe.buckets"
_SOURCES = "org.apache.spark.sql.execution.datasources"
BYTES_MAX = 4 << 20
_ROWS_AT_ONCE = 4096  # that the JVM decodes together
_ANSWERS_KEPT = 4  # Spark may ask several times for one scan: when it plans, explains and re-plans


class _Planner:
    """What the Java class calls: it gets filters as lines of text and returns files as an Arrow stream."""

    def __init__(self, files: Lister, spark: SparkSession) -> None:
        self._spark = spark
        self._files = files
        self._answer = lru_cache(_ANSWERS_KEPT)(self._planned)
        self._lock = threading.Lock()

    def apply(self, request: str, filters: str) -> Any:
        """The files of a scan, as bytes or a ``java.io.File``, or the marked text of an error.

        The lines of the request are the time zone, which first rows are wanted, the partition field whose values are
        wanted, and the names of the columns whose bounds are wanted. py4j does not pass on the message of an exception.
        """
        try:
            with self._lock:
                return self._answer(request, filters).content(self._spark)
        except IcefloeError as error:
            return marked(type(error), str(error))
        except Exception:
            return marked(IcefloeError, f"planning the scan failed\n{traceback.format_exc()}")

    def _planned(self, request: str, filters: str) -> _Answer:
        zone, first, bucket, *bounded = lines(request)
        listing = Listing(
            filters=lines(filters),
            zone=zone,
            first=_first_rows(first),
            bounded=tuple(bounded),
            bucket=None if bucket == "" else int(bucket),
        )
        return _Answer(self._files(listing))


def _first_rows(text: str) -> FirstRows | None:
    """How many rows are wanted, and in which order.

    >>> _first_rows("10")
    FirstRows(rows=10, column=None, descending=False, nulls_first=False)
    >>> _first_rows("10 DESC NULLS LAST a column").column
    'a column'
    """
    if text == "":
        return None
    rows, *order = text.split(" ", 4)
    if len(order) == 0:
        return FirstRows(rows=int(rows))
    direction, _, nulls, column = order
    return FirstRows(rows=int(rows), column=column, descending=direction == "DESC", nulls_first=nulls == "FIRST")


class _Answer:
    """The files of a scan as an Arrow stream: as bytes, or if they are many in a temporary file.

    py4j passes bytes on as text, in memory several times. The file is deleted with this object.
    """

    def __init__(self, files: pa.Table) -> None:
        self._file: IO[bytes] | None = None
        self._bytes = b""
        if files.nbytes <= BYTES_MAX:
            self._bytes = arrow_stream(files)
            return
        self._file = tempfile.NamedTemporaryFile(prefix="icefloe-plan-")  # noqa: SIM115  # open as long as this lives
        with pa.ipc.new_stream(self._file, files.schema) as writer:
            writer.write_table(files, max_chunksize=_ROWS_AT_ONCE)
        self._file.flush()

    def content(self, spark: SparkSession) -> Any:
        """The bytes, or the file."""
        return bytearray(self._bytes) if self._file is None else java_class(spark, "java.io.File")(self._file.name)


def lines(text: str) -> list[str]:
    """The lines of a text, with the backslashes and newlines inside them unescaped."""
    halves = (line.split("\\\\") for line in text.split("\n")[:-1])
    return ["\\".join(part.replace("\\n", "\n") for part in parts) for parts in halves]


def relation(
    spark: SparkSession,
    files: Lister,
    columns: StructType,
    constants: StructType,
    *,
    location: str,
    size_bytes: int,
    settings: Mapping[str, str],
    hadoop: Mapping[str, str],
    is_parquet: bool = True,
    has_bounds: bool = False,
    buckets: tuple[Buckets, ...] = (),
) -> DataFrame:
    """The rows of the files that ``files`` lists, with the constants of their file after their columns.

    ``settings`` apply to this relation only, which has a child session of its own, and ``hadoop`` are those of its
    Hadoop configuration. Without ``is_parquet`` each file is one row with its path and its content, and is not opened
    unless the content is selected. With ``has_bounds`` the lister returns the bounds of columns that it is asked for,
    by which joins skip files. All files are in ``buckets``, by which tables can be joined.
    """
    java = child_session(spark, settings)._jsparkSession
    options = {**hadoop, HAS_BOUNDS: str(has_bounds).lower(), BUCKETS: json.dumps(buckets)}
    partition, planner = _parsed(java, constants), java_function(spark, _Planner(files, spark).apply)
    none = spark.sparkContext._gateway.new_array(java_class(spark, "java.lang.String"), 0)
    described = java_class(spark, f"{_SOURCES}.HadoopFsRelation")(
        _FILE_INDEX.of(spark).newInstance(objects(spark, planner, partition, location, size_bytes, none, "", "")),
        partition,
        _parsed(java, columns),
        java_class(spark, "scala.Option").empty(),
        _FILE_FORMAT.of(spark).newInstance(objects(spark))
        if is_parquet
        else java_class(spark, f"{_SOURCES}.binaryfile.BinaryFileFormat")(),
        java_class(spark, "org.apache.spark.api.python.PythonUtils").toScalaMap(options),
        java,
    )
    return DataFrame(spark._jsparkSession.baseRelationToDataFrame(described), spark)


def _parsed(java_session: Any, schema: StructType) -> Any:
    return java_session.parseDataType(schema.json())


_FILE_INDEX = PerJvm(lambda spark: ENGINE_CLASSES.of(spark).constructor("PlannedFiles"))
_FILE_FORMAT = PerJvm(lambda spark: ENGINE_CLASSES.of(spark).constructor("ParquetWithoutFloatFilters"))
