"""Python functions that threads of the JVM call: over few connections, nested and at the same time."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import icefloe
from icefloe.engines.spark.python_calls import java_function


def started(spark: SparkSession, function: Any, first: object, second: object) -> Any:
    """A call in a thread of the JVM that is new and ends with it: a future of its result."""
    java = spark._jvm.java.util.concurrent
    executor, given = java.Executors.newSingleThreadExecutor(), java.CompletableFuture.completedFuture
    future = given(first).thenCombineAsync(given(second), function, executor)
    executor.shutdown()
    return future


def held() -> tuple[int, int]:
    """The threads and the descriptors of this process."""
    return threading.active_count(), len(os.listdir("/proc/self/fd"))


def test_calls_from_many_threads_use_one_connection(spark: SparkSession) -> None:
    """Scar: py4j keeps a socket, and a thread in Python, for each thread of the JVM that ever called."""
    function = java_function(spark, lambda first, second: f"{first} {second}")
    assert started(spark, function, "a", 0).get() == "a 0"
    before = held()
    assert [started(spark, function, "a", n).get() for n in range(20)] == [f"a {n}" for n in range(20)]
    assert held() == before


def test_calls_at_the_same_time_have_a_connection_each_which_later_ones_use(spark: SparkSession) -> None:
    meeting = threading.Barrier(4, timeout=30)
    together = java_function(spark, lambda first, second: meeting.wait() * 0 + first + second)

    def meet() -> list[int]:
        calls = [started(spark, together, n, 10) for n in range(4)]
        return [call.get() for call in calls]

    assert meet() == [10, 11, 12, 13]
    before = held()
    assert meet() == [10, 11, 12, 13]
    assert held() == before


def test_a_call_may_wait_for_another_one(spark: SparkSession) -> None:
    """In the thread of the JVM that it came from, and in a new one."""

    def countdown(first: int, kind: str) -> str:
        thread = spark._jvm.java.lang.Thread.currentThread().getName()
        if first == 0:
            return thread
        rest = function.apply(first - 1, kind) if kind == "same" else started(spark, function, first - 1, kind).get()
        assert spark._jvm.java.lang.Thread.currentThread().getName() == thread
        return f"{thread} {rest}"

    function = java_function(spark, countdown)
    for kind, threads in (("same", 1), ("new", 5)):
        names = [name for name in started(spark, function, 4, kind).get().split() if name.startswith("pool")]
        assert (len(names), len(set(names))) == (5, threads)


def test_a_call_that_fails_does_not_disturb_later_ones(spark: SparkSession) -> None:
    def divided(first: int, second: int) -> int:
        return first // second

    function = java_function(spark, divided)
    assert started(spark, function, 6, 2).get() == 3
    before = held()
    for _ in range(3):
        with pytest.raises(Py4JJavaError, match="ZeroDivisionError"):
            started(spark, function, 1, 0).get()
        assert started(spark, function, 6, 3).get() == 2
    assert held() <= before


def test_queries_with_a_shuffle_hold_no_threads(spark: SparkSession, tmp_path: Path) -> None:
    table = icefloe.catalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/wh").create_table(
        "db.t", schema="id bigint, k bigint"
    )
    table.append(pa.table({"id": [1, 2, 3], "k": [1, 1, 2]}))

    def query() -> Callable[[], object]:
        rows = table.scan().to_spark(spark)
        return rows.groupBy("k").agg(F.count("*")).join(rows, "k").orderBy("id").collect

    query()()
    before = held()
    for _ in range(5):
        assert len(query()()) == 3
    assert held() <= before
