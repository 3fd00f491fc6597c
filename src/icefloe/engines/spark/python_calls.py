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

from icefloe.engines.spark.java_classes import compiled_constructor
from icefloe.engines.spark.session import PerJvm, java_class

_CLASS_NAME = "icefloe.PythonFunction"
_SOURCE = r"""
package icefloe;

import java.util.ArrayDeque;
import java.util.function.BiFunction;
import py4j.ClientServerConnection;
import py4j.Gateway;
import py4j.Py4JPythonClientPerThread;

public class PythonFunction implements BiFunction {
  private static final ArrayDeque free = new ArrayDeque();  // connections that no thread uses
  private static Object owner;  // the client to which they belong

  private final BiFunction function;
  private final Gateway gateway;

  public PythonFunction(BiFunction function, Gateway gateway) {
    this.function = function;
    this.gateway = gateway;
  }

  public Object apply(Object first, Object second) {
    Object client = gateway.getCallbackClient();
    if (!(client instanceof Py4JPythonClientPerThread)) return function.apply(first, second);  // it has no such threads
    Py4JPythonClientPerThread connections = (Py4JPythonClientPerThread) client;
    if (connections.getPerThreadConnection() != null) return function.apply(first, second);
    connections.setPerThreadConnection(taken(client));  // if there is none, the call makes one
    boolean isDone = false;
    try {
      Object answer = function.apply(first, second);
      isDone = true;
      return answer;
    } finally {
      ClientServerConnection used = connections.getPerThreadConnection();
      connections.setPerThreadConnection(null);
      if (isDone) give(client, used);
      else if (used != null) used.shutdown();  // what comes next on it is not known
    }
  }

  private static synchronized ClientServerConnection taken(Object client) {
    if (client != owner) free.clear();
    owner = client;
    ClientServerConnection connection = (ClientServerConnection) free.poll();
    while (connection != null && connection.getSocket() == null) connection = (ClientServerConnection) free.poll();
    return connection;
  }

  private static synchronized void give(Object client, ClientServerConnection connection) {
    if (client == owner && connection != null) free.push(connection);
  }
}
"""
_FUNCTION = PerJvm(compiled_constructor(_CLASS_NAME, _SOURCE))


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
    arguments = java_class(spark, "java.util.ArrayList")()
    arguments.add(_Proxy(function))
    arguments.add(JavaObject("GATEWAY_SERVER", gateway._gateway_client).getGateway())
    return _FUNCTION.of(spark).newInstance(arguments.toArray())
