"""Two streams in a row, which are killed: ``source`` is appended to ``copy``, and ``copy`` is upserted into ``newest``.

A program of its own, because it is killed: ``python chained_streams.py FOLDER KIND SWAPS``. KIND is ``run``, ``finish``
(read what is there, and end), or ``before`` and ``after``: the process dies just before or after a commit, the one with
the number SWAPS. Prints ``ready`` when the streams are started.
"""

from __future__ import annotations

import os
import signal
import sys
from itertools import count
from typing import Any

from pyspark.sql import SparkSession

import icefloe
from icefloe.catalogs.sql import SqlCatalog

LIMIT = {"streaming-max-files-per-micro-batch": "1"}  # one file a batch, so that the keys of a batch are distinct


def session(folder: str) -> SparkSession:
    builder = SparkSession.builder.master("local[1]").appName("chained streams").config("spark.ui.enabled", "false")
    for name, value in {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "1",
        "spark.local.dir": f"{folder}/local",
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def open_catalog(folder: str) -> icefloe.Catalog:
    return icefloe.catalog("demo", uri=f"sqlite:///{folder}/cat.db", warehouse=f"file://{folder}/wh")


def die_at_swap(kind: str, number: int) -> None:
    """End the process and its JVM at a commit, without any chance to clean up."""
    swap, numbers = SqlCatalog.swap, count(1)

    def dying(self: SqlCatalog, *arguments: Any) -> Any:
        is_last = next(numbers) == number
        if is_last and kind == "before":
            os.killpg(os.getpgrp(), signal.SIGKILL)
        result = swap(self, *arguments)
        if is_last:
            os.killpg(os.getpgrp(), signal.SIGKILL)
        return result

    SqlCatalog.swap = dying  # type: ignore[method-assign]


def start(spark: SparkSession, folder: str, *, to_end: bool, names: tuple[str, str], **options: str) -> Any:
    source, target = names
    rows = spark.readStream.options(**LIMIT).table(f"demo.db.{source}")
    writer = rows.writeStream.format("icefloe").options(**options)
    writer = writer.option("checkpointLocation", f"{folder}/checkpoint-{target}")
    writer = writer.trigger(availableNow=True) if to_end else writer.trigger(processingTime="0 seconds")
    return writer.toTable(f"demo.db.{target}")


def main(folder: str, kind: str, swaps: str) -> None:
    spark = session(folder)
    icefloe.attach(spark, "demo", open_catalog(folder))
    if kind in ("before", "after"):
        die_at_swap(kind, int(swaps))
    to_end = kind == "finish"
    first = start(spark, folder, to_end=to_end, names=("source", "copy"))
    if to_end:
        first.awaitTermination()
    second = start(spark, folder, to_end=to_end, names=("copy", "newest"), **{"upsert-keys": "key"})
    print("ready", flush=True)
    if to_end:
        second.awaitTermination()
    else:
        spark.streams.awaitAnyTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
