"""One session that runs many statements, and what its two processes hold meanwhile.

A program of its own, so that the session is new: ``python many_statements.py FOLDER TABLES NUMBER``. TABLES is
``icefloe``, or ``parquet`` for the same statements on plain Parquet tables, as far as Spark has them. Prints lines of
JSON: the number of statements so far, and figures of both processes after garbage collection.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import icefloe

SAMPLES = 5
ROUND = 100  # statements on the same tables, which are then made anew
_SOURCE = "(SELECT id, max(note) note FROM VALUES ({n}, 'a'), ({n} - 5, 'b') s(id, note) GROUP BY id) s"
_CHANGES = {
    "icefloe": [
        "UPDATE {t} SET note = 'u' WHERE k = {n} % 7",
        f"MERGE INTO {{t}} t USING {_SOURCE} ON t.id = s.id WHEN MATCHED THEN UPDATE SET note = s.note"
        " WHEN NOT MATCHED THEN INSERT (id, note) VALUES (s.id, s.note)",
        "DELETE FROM {t} WHERE id = {n} - 3",
        "DELETE FROM {t} WHERE id IN (SELECT max(id) FROM {copy})",
    ],
    "parquet": [  # those that Spark has for such tables
        "INSERT INTO {t} SELECT id, k, 'u' FROM {t} WHERE k = {n} % 7 LIMIT 1",
        f"INSERT INTO {{t}} SELECT s.id, t.k, s.note FROM {_SOURCE} LEFT JOIN {{t}} t ON t.id = s.id LIMIT 2",
        "INSERT OVERWRITE {copy} SELECT * FROM {t} WHERE id = {n} - 3",
        "INSERT INTO {copy} SELECT * FROM {t} WHERE id IN (SELECT max(id) FROM {copy})",
    ],
}


def session(folder: str) -> SparkSession:
    builder = SparkSession.builder.master("local[2]").appName("many statements").config("spark.ui.enabled", "false")
    for name, value in {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.local.dir": f"{folder}/local",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def statements(spark: SparkSession, folder: str, tables: str) -> Iterator[Callable[[], Any]]:
    """Statements without an end: queries with and without a shuffle, changes of rows, batches of a stream."""
    db, using = ("demo.db", "") if tables == "icefloe" else ("db", "USING parquet")
    n = 0

    def sql(text: str) -> Callable[[], Any]:
        return lambda: spark.sql(text.format(t=f"{db}.t", copy=f"{db}.copy", n=n)).collect()

    def batch() -> None:
        writer = spark.readStream.table(f"{db}.events").writeStream.option("checkpointLocation", f"{folder}/batch-{n}")
        writer.trigger(availableNow=True).toTable(f"{db}.copy").awaitTermination()

    cycle = [
        sql("INSERT INTO {t} SELECT id, id % 7, 'n' FROM range({n}, {n} + 3)"),
        sql("SELECT * FROM {t} WHERE id = {n}"),
        sql("SELECT k, count(*), max(note) FROM {t} GROUP BY k"),
        *map(sql, _CHANGES[tables]),
        sql("SELECT count(*) FROM {t} t JOIN {copy} c ON t.id = c.id WHERE t.k < 5"),
        sql("SELECT id, k FROM {t} ORDER BY id DESC LIMIT 3"),
        batch,
    ]
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {db}")
    spark.sql(f"CREATE TABLE {db}.events (id bigint, k bigint, note string) {using}")
    spark.sql(f"INSERT INTO {db}.events VALUES (1, 1, 'e'), (2, 2, 'e')")
    while True:
        if n % ROUND == 0:
            for name in ("t", "copy"):
                spark.sql(f"DROP TABLE IF EXISTS {db}.{name}")
                spark.sql(f"CREATE TABLE {db}.{name} (id bigint, k bigint, note string) {using}")
        yield cycle[n % len(cycle)]
        n += 1


def figures(spark: SparkSession) -> dict[str, int]:
    """What the processes of Python and of the JVM hold."""
    jvm: Any = spark._jvm
    for _ in range(2):  # objects of one process hold objects of the other
        gc.collect()
        jvm.System.gc()
        time.sleep(1.5)  # both free them in threads of their own
    management = jvm.java.lang.management.ManagementFactory
    pools = [pool for pool in management.getMemoryPoolMXBeans() if pool.getName().startswith("Code")]
    java = jvm.java.lang.ProcessHandle.current().pid()
    return {
        "threads": threading.active_count(),
        "descriptors": _descriptors(os.getpid()),
        "memory_mb": _memory(os.getpid()),
        "java_threads": management.getThreadMXBean().getThreadCount(),
        "java_descriptors": _descriptors(java),
        "java_memory_mb": _memory(java),
        "java_heap_mb": management.getMemoryMXBean().getHeapMemoryUsage().getUsed() >> 20,
        "java_classes": management.getClassLoadingMXBean().getLoadedClassCount(),
        "code_cache_mb": sum(pool.getUsage().getUsed() for pool in pools) >> 20,
    }


def _descriptors(process: int) -> int:
    return len(os.listdir(f"/proc/{process}/fd"))


def _memory(process: int) -> int:
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) >> 10 for line in lines if line.startswith("VmRSS:"))


def main(folder: str, tables: str, number: str) -> None:
    spark = session(folder)
    if tables == "icefloe":
        catalog = icefloe.catalog("demo", uri=f"sqlite:///{folder}/cat.db", warehouse=f"file://{folder}/wh")
        icefloe.attach(spark, "demo", catalog)
    work, begin = statements(spark, folder, tables), time.monotonic()
    for done in range(1, int(number) + 1):
        next(work)()
        if done % (int(number) // SAMPLES) == 0:
            print(
                json.dumps({"statements": done, "seconds": round(time.monotonic() - begin), **figures(spark)}),
                flush=True,
            )
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
