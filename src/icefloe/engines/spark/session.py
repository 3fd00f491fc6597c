"""Child sessions of Spark with their settings, and internals of the running Spark.

The settings of a session belong to its user, so none is ever changed. Our settings are set on a clone, which shares the
context, the caches and the user's own settings, and takes about two milliseconds to make.
Internals are looked up in the running JVM, not derived from a version number.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from icefloe.errors import UnsupportedError

T = TypeVar("T")

READ_SETTINGS: Mapping[str, str] = {
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.fieldId.read.ignoreMissing": "false",  # a file without ids would come back as nulls
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.mergeSchema": "false",
    # A struct all of whose wanted fields came later than a file would be null in all rows of the file.
    "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing": "false",
    "spark.sql.caseSensitive": "true",  # columns are found by id; names only reach the planner
}
# Spark finds columns by id but prunes row groups by name: wrong where a name has belonged to more than one column.
NO_ROW_GROUP_PRUNING: Mapping[str, str] = {"spark.sql.parquet.filterPushdown": "false"}
# The vectorized reader fails on initial defaults that are binary values.
ROW_BY_ROW: Mapping[str, str] = {"spark.sql.parquet.enableVectorizedReader": "false"}
WRITE_SETTINGS: Mapping[str, str] = {
    "spark.sql.parquet.fieldId.write.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.files.maxRecordsPerFile": "0",
    "spark.sql.maxConcurrentOutputFileWriters": "0",
    "spark.sql.sources.partitionOverwriteMode": "STATIC",
    "spark.sql.variant.writeShredding.enabled": "false",  # Arrow does not read shredded variants
}


def new_session() -> SparkSession:
    """The active session, or a new one with the settings of ``spark-defaults.conf``, by default on this machine."""
    return SparkSession.builder.appName("icefloe").getOrCreate()


class PerJvm(Generic[T]):
    """A value that is computed once per JVM, because that takes many calls into it."""

    def __init__(self, compute: Callable[[SparkSession], T]) -> None:
        self._compute = compute
        self._values: WeakKeyDictionary[Any, T] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def of(self, spark: SparkSession) -> T:
        """The value for the JVM of a session."""
        gateway = spark.sparkContext._gateway
        with self._lock:
            if gateway not in self._values:
                self._values[gateway] = self._compute(spark)
            return self._values[gateway]


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkInternals:
    """Internals of a running Spark that are not part of its public interface."""

    row_index_column: str  # the name under which the Parquet reader fills in physical row positions


def spark_internals(spark: SparkSession) -> SparkInternals:
    """The internals of the session's JVM, looked up once; UnsupportedError names one that is missing."""
    _require_classic(spark)
    return _INTERNALS.of(spark)


def _require_classic(spark: SparkSession) -> None:
    if not hasattr(spark, "_jsparkSession"):
        raise UnsupportedError(
            "Spark Connect is not supported: planning runs inside the driver. Use a classic session "
            "(SparkSession.builder.master(...) without remote(...)), or work without Spark: read with to_arrow(), and "
            "pass the rows of a DataFrame as its toArrow()",
            feature="spark connect",
        )


def _probe(spark: SparkSession) -> SparkInternals:
    jvm = spark._jvm
    for name in ("org.codehaus.janino.Compiler", "org.apache.parquet.bytes.BytesUtils"):
        try:
            jvm.java.lang.Class.forName(name)
        except Py4JError as error:
            raise UnsupportedError(f"Spark {spark.version} lacks the class {name}", feature=name) from error
    for setting in (*READ_SETTINGS, *NO_ROW_GROUP_PRUNING, *ROW_BY_ROW, *WRITE_SETTINGS):
        if not spark.conf.isModifiable(setting):
            raise UnsupportedError(f"Spark {spark.version} does not know the setting {setting}", feature=setting)
    try:
        parquet = jvm.org.apache.spark.sql.execution.datasources.parquet
        row_index = str(parquet.ParquetFileFormat.ROW_INDEX_TEMPORARY_COLUMN_NAME())
    except (Py4JError, TypeError) as error:
        feature = "row index column"
        raise UnsupportedError(
            f"Spark {spark.version}: the Parquet reader has no {feature}", feature=feature
        ) from error
    return SparkInternals(row_index_column=row_index)


_INTERNALS = PerJvm(_probe)


def java_class(spark: SparkSession, name: str) -> Any:
    """A class of the JVM, by one call; a path of attributes takes one for each package."""
    return getattr(spark._jvm, name)


def local_frame(spark: SparkSession, rows: Any, schema: StructType | None = None) -> DataFrame:
    """A DataFrame of rows of this process. PySpark makes its session the active one; here the active one stays."""
    sessions = java_class(spark, "org.apache.spark.sql.classic.SparkSession")
    active, java_active = SparkSession._activeSession, sessions.getActiveSession()
    try:
        return spark.createDataFrame(rows, schema)
    finally:
        SparkSession._activeSession = active
        if java_active.isDefined():
            sessions.setActiveSession(java_active.get())
        else:
            sessions.clearActiveSession()


def child_session(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """A clone of the session with further settings; the session itself does not change."""
    java = spark._jsparkSession.cloneSession()
    conf = java.conf()
    for name, value in settings.items():
        conf.set(name, value)
    return SparkSession(spark.sparkContext, jsparkSession=java)


def in_session(frame: DataFrame, session: SparkSession) -> DataFrame:
    """The same query with the settings of another session."""
    dataset = java_class(session, "org.apache.spark.sql.classic.Dataset")
    return DataFrame(dataset.ofRows(session._jsparkSession, frame._jdf.queryExecution().analyzed()), session)
