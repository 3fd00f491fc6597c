"""Chooses the engine of an operation: Spark for DataFrames and for a given session, otherwise Arrow in this process.

This is the only module that imports engines. Each is imported when it is first needed: pyspark is optional, and neither
engine is needed to open a catalog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from icefloe.engines.engine import Engine
from icefloe.errors import InputError, UnsupportedError
from icefloe.lazy import LazyModule, load_optional

if TYPE_CHECKING:
    from icefloe.engines.arrow import engine as arrow_engine
else:
    arrow_engine = LazyModule("icefloe.engines.arrow.engine")

OLDEST_SPARK = 4


def engine_of(data: object) -> Engine:
    """The engine that data belongs to."""
    return engine_for(data.sparkSession if is_spark(data) else None)  # type: ignore[attr-defined]  # a DataFrame


def engine_for(session: Any) -> Engine:
    """The engine of a Spark session, or that of this process without one."""
    if session is None:
        return arrow_engine.ArrowEngine()
    check_session(session)
    spark_engine = load_optional("icefloe.engines.spark.engine", needed_by="the Spark engine")
    engine: Engine = spark_engine.SparkEngine(session)
    return engine


def check_session(session: object) -> None:
    """InputError for what is no Spark session; UnsupportedError for one of a PySpark that is too old."""
    is_session = any(kind.__module__.split(".")[0] == "pyspark" for kind in type(session).__mro__)
    if not is_session and not hasattr(session, "sparkContext"):
        given = "None" if session is None else f"of type {type(session).__name__}"
        raise InputError(
            f"spark= is {given}, and a SparkSession is expected, such as SparkSession.builder.getOrCreate()",
            argument="spark",
        )
    version = str(load_optional("pyspark", needed_by="the Spark engine").__version__)
    if int(version.partition(".")[0]) < OLDEST_SPARK:
        raise UnsupportedError(
            f"PySpark {version} is installed, and icefloe needs PySpark {OLDEST_SPARK} or later: pip install"
            " 'icefloe[spark]'",
            feature="pyspark",
            next_step="Run pip install 'icefloe[spark]', or work without Spark.",
        )


def new_session(*, needed_by: str) -> Any:
    """The Spark session of this process; starts one, with the user's settings of Spark, if there is none."""
    sessions = load_optional("icefloe.engines.spark.session", needed_by=needed_by)
    return sessions.new_session()


def is_spark(data: object) -> bool:
    """Whether data is a DataFrame of pyspark, which need not be installed."""
    return type(data).__module__.split(".")[0] == "pyspark"
