"""Bench ``spark_planning``: from a DataFrame over very many files to the partitions of its first job.

The data files do not exist: nothing here opens one. The first run of a table reads its manifests; the others find them
decoded. With ``by tasks`` Spark's tasks prune the manifests, which is the usual way of larger tables only. The last
table has so many files that the memory of the driver matters: that of Python and that of its JVM.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from icefloe import catalog
from icefloe.commit.loop import commit
from icefloe.commit.operations.append import Append
from icefloe.engines.spark.read import distributed_planning
from icefloe.model.entries import BOUNDS, Measure, column_key, entries, put, stat
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table as IcefloeTable
from measure import Clock, Sample, reset_peak, resident_mb, spread
from plot import Chart
from report import Table
from spark_session import start

TITLE = "spark_planning: many files become a physical plan"
FILES_OF_A_COMMIT = 10_000
ROWS = 1000  # of each data file
CASES = {"by the driver": 1 << 62, "by tasks": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How many files, how often each table is planned, and how many files the memory is measured with (0: not)."""

    files: int = 100_000
    runs: int = 5
    many: int = 1_000_000


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """The time of every run: making the DataFrame, then its plan and the partitions of its job."""
    samples: dict[str, list[Sample]] = {name: [] for name in CASES}
    usual = distributed_planning.ENTRIES_MIN
    with tempfile.TemporaryDirectory() as folder:
        spark = start(Path(folder))
        table = table_of(Path(folder), sizes.files)
        try:
            for name, least in CASES.items():
                distributed_planning.ENTRIES_MIN = least
                for number in range(sizes.runs + 1):
                    tell(f"spark_planning: {sizes.files:,} files {name}, run {number}")
                    samples[name].append(planned(spark, table))
            distributed_planning.ENTRIES_MIN = usual
            memory = [] if sizes.many == 0 else memory_of(spark, Path(folder), sizes, tell)
        finally:
            distributed_planning.ENTRIES_MIN = usual
            spark.stop()
    return {"sizes": asdict(sizes), "samples": samples, "memory": memory}


def planned(spark: Any, table: IcefloeTable) -> Sample:
    """The times of making a DataFrame of the table and of planning it, and its partitions."""
    first = Clock.now()
    rows = table.scan().to_spark(spark).where("id >= 0")
    made = Clock.now()
    partitions = rows._jdf.queryExecution().toRdd().getNumPartitions()
    return {"frame_ms": first.until(made)["wall_ms"], **made.until(Clock.now()), "partitions": partitions}


def memory_of(spark: Any, folder: Path, sizes: Sizes, tell: Callable[[str], None]) -> list[Sample]:
    """Plans of very many files with the memory of the driver: before, at its peak, and with the plan in hand."""
    table = table_of(folder, sizes.many, "many")
    jvm = spark._jvm
    processes = {"python": os.getpid(), "jvm": int(jvm.java.lang.ProcessHandle.current().pid())}
    samples = []
    for number in range(sizes.runs):
        tell(f"spark_planning: {sizes.many:,} files, run {number}")
        jvm.java.lang.System.gc()
        for process in processes.values():
            reset_peak(process)
        before = {f"{name}_before_mb": resident_mb(process) for name, process in processes.items()}
        sample = {**before, **planned(spark, table)}
        for name, process in processes.items():
            sample |= {f"{name}_peak_mb": resident_mb(process, "VmHWM"), f"{name}_after_mb": resident_mb(process)}
        jvm.java.lang.System.gc()
        runtime = jvm.java.lang.Runtime.getRuntime()
        samples.append({**sample, "heap_mb": (runtime.totalMemory() - runtime.freeMemory()) / (1 << 20)})
    return samples


def table_of(folder: Path, files: int, name: str = "t") -> IcefloeTable:
    """A table of version 2 with so many files, each with a range of ids of its own."""
    lake = catalog("bench", uri=f"sqlite:///{folder}/planning.db", warehouse=f"file://{folder}/planning")
    unmerged = {"commit.manifest-merge.enabled": "false"}
    table = lake.create_table(f"db.{name}", schema="id bigint, note string", properties=unmerged)
    one = {
        "content_type": 0,
        "file_format": "parquet",
        "status": 1,
        "partition_spec_id": 0,
        "record_count": ROWS,
        "file_size_in_bytes": 1 << 20,
        **{stat(bound, column_key(1)): 0 for bound in (*BOUNDS, Measure.NULLS)},
        stat(Measure.VALUES, column_key(1)): ROWS,
    }
    for begin in range(0, files, FILES_OF_A_COMMIT):
        numbers = np.arange(begin, min(files, begin + FILES_OF_A_COMMIT))
        rows = entries([one], {column_key(1): pa.int64()}).take(pa.array(np.zeros(len(numbers), np.int64)))
        rows = put(rows, "location", pa.array([f"{table.location}/data/{number:08d}.parquet" for number in numbers]))
        rows = put(rows, stat(Measure.LOWER, column_key(1)), pa.array(numbers * ROWS))
        rows = put(rows, stat(Measure.UPPER, column_key(1)), pa.array(numbers * ROWS + ROWS - 1))
        commit(pointer_of(table), Append(added=rows))
    return table


def tables(result: Mapping[str, Any]) -> list[Table]:
    """The first run, and the others."""
    rows = []
    for name, samples in result["samples"].items():
        first, later = samples[:1], samples[1:]
        cells = [spread(part, key) for key in ("frame_ms", "wall_ms") for part in (first, later)]
        rows.append([name, *cells, f"{samples[0]['partitions']:,}"])
    columns = ["planned", "DataFrame, first", "DataFrame", "plan, first", "plan", "partitions"]
    note = (
        "Milliseconds: median, least and greatest. A plan is the time from the DataFrame to the number of partitions of"
        " its job: the files of the scan are planned, and Spark makes its splits of them."
    )
    times = Table(title=f"{result['sizes']['files']:,} files", columns=columns, rows=rows, note=note)
    return [times] if len(result["memory"]) == 0 else [times, _memory(result)]


def _memory(result: Mapping[str, Any]) -> Table:
    samples = result["memory"]
    rows = [
        [title, *(spread(samples, f"{name}_{when}_mb") for when in ("before", "peak", "after"))]
        for name, title in (("python", "Python"), ("jvm", "JVM (heap of at most 3 GB)"))
    ]
    note = (
        f"Megabytes of resident memory: median, least and greatest of {len(samples)} runs. Making the DataFrame took"
        f" {spread(samples, 'frame_ms')} ms, its plan {spread(samples, 'wall_ms')} ms, by tasks. Afterwards the JVM's"
        f" heap has {spread(samples, 'heap_mb')} MB of reachable objects."
    )
    title = f"{result['sizes']['many']:,} files: memory of the driver"
    return Table(title=title, columns=["process", "before", "peak", "after"], rows=rows, note=note)


def plots(result: Mapping[str, Any]) -> list[Chart]:
    """None."""
    return []
