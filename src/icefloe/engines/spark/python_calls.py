"""Python functions as objects of the JVM, which any of its threads can call.

py4j makes a connection for each thread of the JVM that calls Python, with a thread in Python that serves it, and keeps
both when the thread of the JVM ends. Spark plans the stages of adaptive queries and the batches of streams in threads
that are always new. So calls borrow one of a few connections: there are as many as calls at the same time, at most.

A call stays in its thread, where py4j also runs what Python asks of the JVM meanwhile. So the session, the settings and
the local properties of the thread hold, interruptions reach it, and calls can be nested.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from icefloe.engines.spark.java_classes import ENGINE_CLASSES, objects
from icefloe.engines.spark.session import PerJvm

_FUNCTION = PerJvm(lambda spark: ENGINE_CLASSES.of(spark).constructor("PythonFunction"))


class _Proxy:
    """What py4j calls."""

    class Java:
        """The Java interface that py4j implements for this class."""

        implements = ("java.util.function.BiFunction",)

    def __init__(self, function: Callable[[Any, Any], object]) -> None:
        self._function = function

    def apply(self, first: Any, second: Any) -> object:
        """The result of a call."""
        return self._function(first, second)


def java_function(spark: SparkSession, function: Callable[[Any, Any], object]) -> Any:
    """A function as a ``java.util.function.BiFunction``. It should not raise: py4j keeps only the text."""
    gateway = spark.sparkContext._gateway
    ensure_callback_server_started(gateway)
    java_gateway = JavaObject("GATEWAY_SERVER", gateway._gateway_client).getGateway()
    return _FUNCTION.of(spark).newInstance(objects(spark, _Proxy(function), java_gateway))
