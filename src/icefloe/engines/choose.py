"""Which engine does an operation: Spark for its DataFrames and when a session is given, this process otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from icefloe.engines.engine import Engine, is_spark, spark_engine
from icefloe.lazy import LazyModule

if TYPE_CHECKING:
    from icefloe.engines.arrow import engine as arrow_engine
else:
    arrow_engine = LazyModule("icefloe.engines.arrow.engine")


def engine_of(data: object) -> Engine:
    """The engine that data belongs to."""
    return engine_for(data.sparkSession) if is_spark(data) else arrow_engine.ArrowEngine()  # type: ignore[attr-defined]  # a DataFrame


def engine_for(session: Any) -> Engine:
    """The engine of a Spark session, or of this process without one."""
    if session is None:
        return arrow_engine.ArrowEngine()
    engine: Engine = spark_engine().SparkEngine(session)
    return engine
