"""Operations on a small Spark cluster whose tasks fail, hang and kill executors: rows must be exact, and no file left.

A program of its own, because a process has one Spark: ``python cluster_faults.py FOLDER OPERATIONS SEED``. It prints
what it did as JSON, and fails on the first wrong row or file. The tables are in the folder, or in S3 with two more
arguments: a location there, and the properties of the store as JSON.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

import icefloe
from icefloe.scan.plan import plan_scan
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.testing.check import check_table

SCHEMA = "id bigint, part int, n bigint, note string, tags array<string>"
SIZE = 60
IDS = 400
PARTITIONS = 3
FAULTS = ("fail", "slow", "kill", "none")
WEIGHTS = (6, 3, 1, 1)
HANGS_S = 20.0  # until another attempt of the task is done, which Spark then does not wait for
LAYOUTS: dict[str, dict[str, Any]] = {  # "tags" makes tasks write the files; without it Spark's own writer does
    "native": {"format_version": 4},
    "buckets": {"format_version": 2, "partition_by": ["bucket(3, id)"]},
    "tasks": {"format_version": 3, "partition_by": ["part"]},
    "rewritten": {"format_version": 2},
}
MODES = {"rewritten": "copy-on-write"}
Row = tuple[int, int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """Where the tables are."""

    warehouse: str
    properties: dict[str, str]


class Faults:
    """Makes one task of a query fail, hang or kill its executor, once, after it has passed on all its rows."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count()
        self.done: Counter[str] = Counter()
        folder.mkdir(parents=True)

    def into(self, rows: DataFrame, kind: str, partition: int) -> DataFrame:
        """The same rows, computed by tasks of which one meets the fault."""
        marker = str(self._folder / str(next(self._numbers)))
        self.done[kind] += 1

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from batches
            if TaskContext.get().partitionId() == partition and kind != "none" and _is_first(marker):
                _meet(kind)

        return rows.mapInArrow(run, rows.schema)


def _is_first(marker: str) -> bool:
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def _meet(kind: str) -> None:
    if kind == "slow":
        time.sleep(HANGS_S)
    elif kind == "kill":  # the worker is a child of a daemon, which is a child of the executor
        daemon = Path(f"/proc/{os.getppid()}/stat").read_text(encoding="utf-8")
        os.kill(int(daemon.rpartition(")")[2].split()[1]), 9)
    raise RuntimeError(f"a task was made to {kind}")


class Work:
    """The tables, what they must hold, and random operations on them."""

    def __init__(self, spark: SparkSession, folder: Path, seed: int, store: Store) -> None:
        self._spark = spark
        self._rng = random.Random(seed)
        self.faults = Faults(folder / "faults")
        catalog = icefloe.catalog(
            "cluster", uri=f"sqlite:///{folder}/catalog.db", warehouse=store.warehouse, properties=store.properties
        )
        self._tables: dict[str, Table] = {}
        self._rows: dict[str, dict[int, Row]] = {name: {} for name in LAYOUTS}
        for name, options in LAYOUTS.items():
            columns = SCHEMA if name == "tasks" else SCHEMA.removesuffix(", tags array<string>")
            mode = MODES.get(name, "merge-on-read")
            properties = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
            self._tables[name] = catalog.create_table(f"db.{name}", schema=columns, properties=properties, **options)
        self.verbs: Counter[str] = Counter()

    def step(self) -> None:
        """One operation on one table, and a look at its rows."""
        name = self._rng.choice(tuple(LAYOUTS))
        verbs: dict[str, Callable[[str], None]] = {
            "append": self._append,
            "upsert": self._upsert,
            "merge": self._merge,
            "overwrite": self._overwrite,
        }
        verb = self._rng.choice(tuple(verbs))
        self.verbs[verb] += 1
        verbs[verb](name)
        self._check(name)

    def _source(self, name: str, ids: list[int]) -> tuple[dict[int, Row], DataFrame]:
        rows = {id_: (id_ % 5, self._rng.randrange(1000), f"note {self._rng.randrange(1000)}") for id_ in ids}
        table: dict[str, Any] = {
            "id": pa.array(list(rows), pa.int64()),
            "part": pa.array([row[0] for row in rows.values()], pa.int32()),
            "n": pa.array([row[1] for row in rows.values()], pa.int64()),
            "note": [row[2] for row in rows.values()],
        }
        if name == "tasks":
            table["tags"] = [[row[2], "x"] for row in rows.values()]
        frame = self._spark.createDataFrame(pa.table(table)).repartition(PARTITIONS)
        kind = self._rng.choices(FAULTS, WEIGHTS)[0]
        return rows, self.faults.into(frame, kind, self._rng.randrange(PARTITIONS))

    def _new_ids(self, name: str) -> list[int]:
        free = [id_ for id_ in range(IDS) if id_ not in self._rows[name]]
        return self._rng.sample(free, min(len(free), self._rng.randint(1, SIZE)))

    def _append(self, name: str) -> None:
        rows, source = self._source(name, self._new_ids(name))
        self._tables[name].append(source)
        self._rows[name] |= rows

    def _upsert(self, name: str) -> None:
        rows, source = self._source(name, self._rng.sample(range(IDS), SIZE))
        self._tables[name].upsert(source, on=["id"])
        self._rows[name] |= rows

    def _overwrite(self, name: str) -> None:
        known, low = self._rows[name], self._rng.randrange(IDS)
        kept = {id_: row for id_, row in known.items() if id_ < low}
        rows, source = self._source(name, self._rng.sample(range(low, IDS + SIZE), self._rng.randint(1, SIZE)))
        self._tables[name].overwrite(source, f"id >= {low}")
        self._rows[name] = kept | rows

    def _merge(self, name: str) -> None:
        known = self._rows[name]
        rows, source = self._source(name, self._rng.sample(range(IDS), SIZE))
        merge = self._tables[name].merge(source, on="t.id = s.id").when_matched_delete("s.n % 3 = 0")
        merge = merge.when_matched_update({"n": "t.n + s.n", "note": "concat(s.note, '!')"})
        merge.when_not_matched_insert_all("s.n % 2 = 0").execute()
        for id_, (part, n, note) in rows.items():
            old = known.get(id_)
            if old is None:
                if n % 2 == 0:
                    known[id_] = (part, n, note)
            elif n % 3 == 0:
                del known[id_]
            else:
                known[id_] = (old[0], old[1] + n, f"{note}!")

    def _check(self, name: str) -> None:
        rows = self._tables[name].scan(columns=["id", "part", "n", "note"]).to_arrow().to_pylist()
        found = sorted((row["id"], row["part"], row["n"], row["note"]) for row in rows)
        right = sorted((id_, *row) for id_, row in self._rows[name].items())
        assert found == right, f"{name}: rows differ: {sorted(set(found) ^ set(right))[:5]}"

    def finish(self) -> None:
        """Check the metadata of all tables, and that every file under ``data`` is named by a snapshot."""
        for name, table in self._tables.items():
            findings = check_table(table)
            assert findings == [], f"{name}: {findings[:3]}"
            folder = f"{table.location}/data"
            stored = {file.location for file in pointer_of(table).load().store.io.list(folder)}
            left = stored - set(locations_of(table))
            assert left == set(), f"{name}: {len(left)} files are left: {sorted(left)[:3]}"


def locations_of(table: Table) -> Iterator[str]:
    """The data and delete files that the snapshots of a table name."""
    base = pointer_of(table).load()
    for snapshot in base.metadata.snapshots:
        plan = plan_scan(base.store, base.metadata, snapshot)
        for column in (plan.tasks["location"], plan.tasks["dv_location"], plan.deletes["location"]):
            yield from (location for location in column.to_pylist() if location is not None)


def session(folder: Path) -> SparkSession:
    """A cluster of two executors on this machine, which starts second attempts of slow tasks."""
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": "3",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.deploy.maxExecutorRetries": "-1",
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.multiplier": "1.5",
        "spark.speculation.quantile": "0.3",
        "spark.speculation.minTaskRuntime": "500ms",
    }
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("icefloe faults")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def main(folder: Path, operations: int, seed: int, store: Store) -> None:
    """Do the operations, check after each, and report."""
    spark = session(folder)
    try:
        work = Work(spark, folder, seed, store)
        for _ in range(operations):
            work.step()
        work.finish()
    finally:
        spark.stop()
    print(json.dumps({"operations": operations, "verbs": work.verbs, "faults": work.faults.done}))


if __name__ == "__main__":
    _, place, number, start, *s3 = sys.argv
    local = Store(warehouse=f"file://{place}/wh", properties={})
    chosen = Store(warehouse=s3[0], properties=json.loads(s3[1])) if len(s3) == 2 else local
    main(Path(place), int(number), int(start), chosen)
