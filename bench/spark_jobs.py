"""How much of a query's time its Spark jobs take: the rest is spent by the driver, which opens tables and plans."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from measure import Sample


class JobTimes:
    """The jobs of a session since the last call, from Spark's own records."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext._jsc.sc()
        self._bus, self._store, self._seen = context.listenerBus(), context.statusStore(), 0
        self()

    def __call__(self) -> Sample:
        """Wall time in which a job ran, and the CPU time of its tasks."""
        self._bus.waitUntilEmpty()
        spans, cpu = [], 0
        while (job := self._job(self._seen)) is not None:
            self._seen += 1
            spans.append((job.submissionTime().get().getTime(), job.completionTime().get().getTime()))
            stages = job.stageIds()
            cpu += sum(self._cpu_ns(stages.apply(place)) for place in range(stages.size()))
        return {"jobs_ms": float(_covered(spans)), "tasks_cpu_ms": cpu / 1e6}

    def _job(self, number: int) -> Any:
        try:
            return self._store.job(number)
        except Py4JJavaError:  # there is no such job yet
            return None

    def _cpu_ns(self, stage: int) -> int:
        try:
            return int(self._store.lastStageAttempt(stage).executorCpuTime())
        except Py4JJavaError:  # its result was there already
            return 0


def _covered(spans: list[tuple[int, int]]) -> int:
    """How long at least one of the spans lasts."""
    total, end = 0, 0
    for start, stop in sorted(spans):
        total += max(0, stop - max(start, end))
        end = max(end, stop)
    return total
