"""Every entry point that takes a Spark session or DataFrame, called with those of Spark Connect.

A program of its own, because a process has either a classic session or one of Connect: ``python connect_entries.py
ADDRESS FOLDER`` prints as JSON what each call raised, and the rows that the table has afterwards.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import icefloe


def main(address: str, folder: Path) -> None:
    """Call all, and print."""
    spark = SparkSession.builder.remote(address).getOrCreate()
    lake = icefloe.catalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/wh")
    table = lake.create_table("db.t", schema="id bigint", format_version=4)
    table.append(pa.table({"id": pa.array([1, 2], pa.int64())}))
    rows = spark.range(3)
    calls: dict[str, Callable[[], object]] = {
        "to_spark": lambda: table.scan().to_spark(spark),
        "append": lambda: table.append(rows),
        "overwrite": lambda: table.overwrite(rows, overwrite_all=True),
        "overwrite where": lambda: table.overwrite(rows, "id > 1"),
        "overwrite_partitions": lambda: table.overwrite_partitions(rows),
        "delete": lambda: table.delete("id = 1", spark=spark),
        "update": lambda: table.update({"id": "id + 1"}, where="id = 1", spark=spark),
        "upsert": lambda: table.upsert(rows, on=["id"]),
        "merge": lambda: table.merge(rows, on="t.id = s.id").when_matched_delete().execute(),
        "apply_changes": lambda: table.apply_changes(rows, keys=["id"], sequence_by="id"),
        "append in a transaction": lambda: table.transaction().append(rows),
        "delete in a transaction": lambda: table.transaction().delete("id = 1", spark=spark),
        "update in a transaction": lambda: table.transaction().update({"id": "2"}, where="id = 1", spark=spark),
        "attach": lambda: icefloe.attach(spark, "lake", lake),
        "detach": lambda: icefloe.detach(spark, "lake"),
        "upsert in a transaction": lambda: table.transaction().upsert(rows, on=["id"]),
    }
    raised = {name: _raised(call) for name, call in calls.items()}
    unchanged = sorted(table.scan().to_arrow()["id"].to_pylist())
    table.append(rows.toArrow())
    print(json.dumps({"raised": raised, "unchanged": unchanged, "rows": table.scan().count()}))
    spark.stop()


def _raised(call: Callable[[], object]) -> list[str]:
    try:
        call()
    except Exception as error:
        return [type(error).__name__, str(error)]
    return ["nothing", ""]


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
