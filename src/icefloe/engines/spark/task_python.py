"""Python functions that Spark's tasks run, and the Python interpreter that runs them.

PySpark runs tasks with PYSPARK_PYTHON or else with the first ``python3`` on the PATH, which may not have icefloe. With
a local master the tasks run on this machine, so they use this Python unless the user names another. Only the functions
created here use it. Neither the settings of the session nor ``SparkContext.pythonExec`` are changed: a temporary change
would also affect functions that other threads create at the same time.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, StructType
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from icefloe.expr.text.spark_sql import quoted

_DEFAULT = "python3"  # what PySpark takes if the user says nothing
_VARIABLE = "PYSPARK_PYTHON"
_SETTING = "spark.pyspark.python"


def task_python(spark: SparkSession) -> str:
    """The Python for tasks: the one that the user names; else this one for a local master, PySpark's choice for others.

    A setting that PySpark follows is in ``pythonExec``. It follows ``spark.pyspark.python`` only under spark-submit.
    """
    context = spark.sparkContext
    chosen = str(context.pythonExec)
    if not context.master.startswith("local") or chosen != _DEFAULT or _VARIABLE in os.environ:
        return chosen
    named: str | None = spark.conf.get(_SETTING, None)
    if named is not None:
        return named
    return chosen if sys.executable in ("", None) else sys.executable


def arrow_function(function: Callable[[pa.Array], pa.Array], result: DataType) -> Callable[[Column], Column]:
    """A function of Arrow arrays as a function of columns."""
    task: Callable[[Column], Column] = _TaskFunction(function, result, evalType=PythonEvalType.SQL_SCALAR_ARROW_UDF)
    return task


def map_in_arrow(
    frame: DataFrame, function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], result: StructType
) -> DataFrame:
    """``DataFrame.mapInArrow``, run by the Python for tasks."""
    task = _TaskFunction(function, result, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    column = task(*(F.col(quoted(name)) for name in frame.columns))
    is_barrier, resources = False, None
    return DataFrame(frame._jdf.mapInArrow(column._jc, is_barrier, resources), frame.sparkSession)


def arrow_stream(table: pa.Table) -> bytes:
    """A table as bytes in Arrow's stream format, which the JVM and the driver read."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


class _TaskFunction(UserDefinedFunction):  # type: ignore[misc]
    """PySpark's function, except for the Python that it names to the JVM."""

    def _create_judf(self, *arguments: Any, **options: Any) -> Any:
        spark = SparkSession._getActiveSessionOrCreate()
        function = super()._create_judf(*arguments, **options)
        return _copy(spark, function, func=_copy(spark, function.func(), pythonExec=task_python(spark)))


def _copy(spark: SparkSession, original: Any, **changes: Any) -> Any:
    """A copy of an object of a Scala case class with other values of some fields: versions of Spark add fields."""
    places = range(original.productArity())
    fields = {original.productElementName(place): original.productElement(place) for place in places}
    constructor = getattr(spark._jvm, original.getClass().getName())
    return constructor(*(fields | changes).values())
