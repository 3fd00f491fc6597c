"""The process of one contender of bench ``append``: reads how many commits to make and answers with samples.

Started as ``append_worker.py <contender> <folder> <rows>``; what a contender imports is imported here and only here,
so that no process carries another one's libraries.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from measure import Clock, Sample

Append = Callable[[], object]
WARM_UP = 50  # commits to another table, after which the JVM has compiled what it needs


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """A contender that works in a process of its own."""

    append: Append
    process: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintained:
    """A contender whose table is maintained after so many commits."""

    append: Append
    maintain: Append
    every: int = 100


def rows(count: int) -> pa.Table:
    """Ten columns of the usual types, the same in every run."""
    dice = np.random.default_rng(7)
    ids = np.arange(count, dtype=np.int64)
    return pa.table(
        {
            "id": ids,
            "customer": dice.integers(0, 100_000, count).astype(np.int64),
            "quantity": dice.integers(1, 50, count).astype(np.int32),
            "price": dice.random(count) * 1000,
            "discount": dice.random(count),
            "paid": dice.random(count) < 0.5,
            "day": pa.array(ids % 365, pa.int32()).cast(pa.date32()),
            "at": pa.array(1_700_000_000_000_000 + ids * 1_000_000, pa.timestamp("us", tz="UTC")),
            "status": pa.array(dice.choice(["placed", "paid", "packed", "shipped"], count)),
            "note": pa.array([f"order number {number} of the morning" for number in ids.tolist()]),
        }
    )


def icefloe(folder: Path, data: pa.Table, version: int) -> Append:
    library = importlib.import_module("icefloe")
    cat = library.catalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/wh")
    table = cat.create_table("db.t", schema=data.schema, format_version=version)
    return lambda: table.append(data)


def maintained(folder: Path, data: pa.Table) -> Maintained:
    library = importlib.import_module("icefloe")
    cat = library.catalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/wh")
    properties = {"history.expire.max-snapshots-to-keep": "100"}
    table = cat.create_table("db.t", schema=data.schema, format_version=4, properties=properties)
    return Maintained(append=lambda: table.append(data), maintain=lambda: table.maintain().execute())


def pyiceberg(folder: Path, data: pa.Table) -> Append:
    sql = importlib.import_module("pyiceberg.catalog.sql")
    cat = sql.SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/wh")
    cat.create_namespace("db")
    table = cat.create_table("db.t", schema=data.schema)
    return lambda: table.append(data)


def delta(folder: Path, data: pa.Table, *, by_path: bool) -> Append:
    """The table object is kept, or the path given for every commit, which is how most programs call it."""
    deltalake = importlib.import_module("deltalake")
    path = str(folder / "wh")
    table = deltalake.DeltaTable.create(path, schema=deltalake.Schema.from_arrow(data.schema))
    return lambda: deltalake.write_deltalake(path if by_path else table, data, mode="append")


def apache(folder: Path, data: pa.Table, *, fast: bool) -> Foreign:
    """Apache Iceberg's own classes; pyarrow writes the data file, as its rows do not come from Java either."""
    session = importlib.import_module("spark_session").start(folder)
    jvm = session._jvm
    settings = jvm.java.util.HashMap()
    for name, value in {"uri": f"jdbc:sqlite:{folder}/catalog.db", "warehouse": f"file://{folder}/wh"}.items():
        settings.put(name, value)
    cat = jvm.org.apache.iceberg.jdbc.JdbcCatalog()
    cat.setConf(session._jsc.hadoopConfiguration())
    cat.initialize("bench", settings)
    cat.createNamespace(jvm.org.apache.iceberg.catalog.Namespace.of(_strings(session, "db")))
    fields = {"long": (1, 2), "int": (3,), "double": (4, 5), "boolean": (6,), "date": (7,), "timestamptz": (8,)}
    types = {number: name for name, numbers in fields.items() for number in numbers}
    columns = [
        {"id": i, "name": name, "required": False, "type": types.get(i, "string")}
        for i, name in enumerate(data.column_names, 1)
    ]
    text = json.dumps({"type": "struct", "schema-id": 0, "fields": columns})
    schema = jvm.org.apache.iceberg.SchemaParser.fromJson(text)

    def append_to(name: str) -> Append:
        table = cat.createTable(jvm.org.apache.iceberg.catalog.TableIdentifier.parse(f"db.{name}"), schema)
        target = folder / "wh" / "db" / name / "data"
        target.mkdir(parents=True)
        numbers = iter(range(10**9))
        metrics = _metrics(jvm, target / "first.parquet", data, table)

        def append() -> None:
            path = target / f"{next(numbers)}.parquet"
            pq.write_table(data, path, compression="zstd")
            file = jvm.org.apache.iceberg.DataFiles.builder(table.spec())
            file = file.withPath(f"file://{path}").withFormat("parquet").withFileSizeInBytes(path.stat().st_size)
            change = table.newFastAppend() if fast else table.newAppend()
            change.appendFile(file.withMetrics(metrics).build()).commit()

        return append

    warm = append_to("warm_up")
    for _ in range(WARM_UP):
        warm()
    return Foreign(append=append_to("t"), process=int(jvm.java.lang.ProcessHandle.current().pid()))


def _strings(session: Any, *values: str) -> Any:
    found = session._sc._gateway.new_array(session._jvm.java.lang.String, len(values))
    for at, value in enumerate(values):
        found[at] = value
    return found


def _metrics(jvm: Any, path: Path, data: pa.Table, table: Any) -> Any:
    """What Apache Iceberg itself reads from the footer of such a file; all files have the same rows."""
    named = [field.with_metadata({"PARQUET:field_id": str(at)}) for at, field in enumerate(data.schema, 1)]
    pq.write_table(data.cast(pa.schema(named)), path, compression="zstd")
    config = jvm.org.apache.iceberg.MetricsConfig.forTable(table)
    return jvm.org.apache.iceberg.parquet.ParquetUtil.fileMetrics(table.io().newInputFile(f"file://{path}"), config)


def data_file_only(folder: Path, data: pa.Table) -> Append:
    target = folder / "wh"
    target.mkdir()
    numbers = iter(range(10**9))
    return lambda: pq.write_table(data, target / f"{next(numbers)}.parquet", compression="zstd")


CONTENDERS: dict[str, Callable[[Path, pa.Table], Append | Foreign | Maintained]] = {
    "icefloe v4": lambda folder, data: icefloe(folder, data, 4),
    "icefloe v4, maintained": maintained,
    "icefloe v2": lambda folder, data: icefloe(folder, data, 2),
    "pyiceberg": pyiceberg,
    "Apache Iceberg fast": lambda folder, data: apache(folder, data, fast=True),
    "Apache Iceberg": lambda folder, data: apache(folder, data, fast=False),
    "delta-rs": lambda folder, data: delta(folder, data, by_path=False),
    "delta-rs by path": lambda folder, data: delta(folder, data, by_path=True),
    "data file only": data_file_only,
}


class MetadataFolder:
    """Counts the metadata files that appear in a table's folder, and their bytes, but for Hadoop's checksums."""

    def __init__(self, folder: Path) -> None:
        self._places = [*folder.glob("**/metadata"), *folder.glob("**/_delta_log")]
        self._seen: set[str] = set()

    def news(self) -> tuple[int, int, int]:
        """Files, bytes, and the bytes of metadata.json among them, since the last call."""
        found = {os.path.join(place, name) for place in self._places for name in os.listdir(place)}
        new = [Path(path) for path in found - self._seen]
        self._seen = found
        sizes = {path.name: path.stat().st_size for path in new if path.is_file() and path.suffix != ".crc"}
        json_bytes = sum(size for name, size in sizes.items() if name.endswith(".metadata.json"))
        return len(sizes), sum(sizes.values()), json_bytes


def one_commit(append: Append, metadata: MetadataFolder, process: int | None) -> Sample:
    before = Clock.now(process)
    append()
    sample = before.until(Clock.now(process))
    files, size, json_size = metadata.news()
    return {**sample, "metadata_files": files, "metadata_bytes": size, "json_bytes": json_size}


def commits(append: Append, metadata: MetadataFolder, process: int | None, count: int) -> list[Sample]:
    """A sample of each commit; the CPU of another process is known to 10 ms only, so it is shared out evenly."""
    before = Clock.now(process)
    samples = [one_commit(append, metadata, process) for _ in range(count)]
    if process is not None:
        total = before.until(Clock.now(process))["cpu_ms"]
        samples = [{**sample, "cpu_ms": total / count} for sample in samples]
    return samples


def main(contender: str, folder: str, count: str) -> None:
    Path(folder).mkdir()
    made = CONTENDERS[contender](Path(folder), rows(int(count)))
    append = made.append if isinstance(made, (Foreign, Maintained)) else made
    process = made.process if isinstance(made, Foreign) else None
    metadata = MetadataFolder(Path(folder))
    metadata.news()
    print("[]", flush=True)  # ready
    done = 0
    for line in sys.stdin:
        samples = commits(append, metadata, process, int(line))
        done += len(samples)
        if isinstance(made, Maintained) and done % made.every == 0:
            made.maintain()
            metadata.news()
        print(json.dumps(samples), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
