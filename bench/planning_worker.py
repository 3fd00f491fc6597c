"""The processes of bench ``planning``: one makes a table, another one plans and removes a file, and answers in JSON.

Started as ``planning_worker.py make <version> <folder> <entries> <per manifest>``, then as ``planning_worker.py run
<contender> <folder> <entries>``. The data files do not exist: planning and removing a file look at metadata only.
"""

from __future__ import annotations

import gc
import importlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from icefloe.table.held_table import pointer_of
from measure import Clock, Sample

COLUMNS = 10
ROWS = 1000  # of each data file
NAME = ("db", "t")


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """What is measured: planning with an open table, and removing one file; ``process`` is another one that works."""

    plan: Callable[[], int]
    remove: Callable[[], object]
    process: int | None = None


def make_table(folder: Path, entries: int, per_manifest: int, version: int) -> None:
    """A table of so many data files in manifests of equal size, written by icefloe."""
    library = importlib.import_module("icefloe")
    append = importlib.import_module("icefloe.commit.operations.append")
    loop = importlib.import_module("icefloe.commit.loop")
    cat = library.catalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/wh")
    columns = ", ".join(["part int", *(f"c{i} bigint" for i in range(COLUMNS))])
    properties = {"commit.manifest-merge.enabled": "false", "commit.root.max-data-files": "0"}
    table = cat.create_table(
        "db.t", schema=columns, partition_by=["part"], format_version=version, properties=properties
    )
    for start in range(0, entries, per_manifest):
        added = _entries(table.location, start, min(per_manifest, entries - start))
        loop.commit(pointer_of(table), append.Append(added=added, fast=True))


def _entries(location: str, start: int, count: int) -> pa.Table:
    model = importlib.import_module("icefloe.model.entries")
    numbers = np.arange(start, start + count, dtype=np.int64)
    dice = np.random.default_rng(start)
    columns: dict[str, Any] = {field.name: pa.nulls(count, field.type) for field in model.ENTRY}
    names = [
        f"{location}/data/part={n % 100}/{n:08d}-{n * 2_654_435_761 % 2**32:08x}.parquet" for n in numbers.tolist()
    ]
    fixed = {"content_type": 0, "file_format": "parquet", "status": 1, "partition_spec_id": 0, "record_count": ROWS}
    for name, value in fixed.items():
        columns[name] = pa.repeat(pa.scalar(value, model.ENTRY.field(name).type), count)
    columns["location"] = pa.array(names)
    columns["file_size_in_bytes"] = pa.array(dice.integers(10**6, 10**8, count))
    rows, none = pa.repeat(pa.scalar(ROWS, pa.int64()), count), pa.repeat(pa.scalar(0, pa.int64()), count)
    part = pa.array(numbers % 100, pa.int32())
    bounds = {"p1000": (part, part), "1": (part, part)}
    # The first column rises from file to file, as ids and times do; the others are all over the place.
    bounds["2"] = (pa.array(numbers * ROWS), pa.array(numbers * ROWS + ROWS - 1))
    for column in range(3, COLUMNS + 2):
        lower = dice.integers(0, 10**9, count)
        bounds[str(column)] = (pa.array(lower), pa.array(lower + dice.integers(0, 10**9, count)))
    for key, (lower, upper) in bounds.items():
        columns |= {f"lower_bound:{key}": lower, f"upper_bound:{key}": upper}
        columns |= {f"value_count:{key}": rows, f"null_value_count:{key}": none}
    return pa.table(columns)


def wanted_value(entries: int) -> int:
    """A value of the first column that one file has."""
    return entries // 2 * ROWS + 7


def victim(folder: Path, entries: int) -> str:
    """The data file to remove."""
    found: str = _entries(f"file://{folder}/wh/db/t", entries // 3, 1)["location"][0].as_py()
    return found


def icefloe(folder: Path, entries: int) -> Contender:
    library = importlib.import_module("icefloe")
    cat = library.catalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/wh")
    table = cat.load_table("db.t")
    return Contender(
        plan=lambda: int(table.scan(f"c0 = {wanted_value(entries)}").plan().files),
        remove=lambda: table.remove_files([victim(folder, entries)]),
    )


def pyiceberg(folder: Path, entries: int) -> Contender:
    sql = importlib.import_module("pyiceberg.catalog.sql")
    cat = sql.SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/wh")
    table = cat.load_table("db.t")
    first = entries // 3 * ROWS
    return Contender(
        plan=lambda: len(list(table.scan(f"c0 = {wanted_value(entries)}").plan_files())),
        remove=lambda: table.delete(f"c0 >= {first} and c0 <= {first + ROWS - 1}"),
    )


def apache(folder: Path, entries: int) -> Contender:
    session = importlib.import_module("spark_session").start(folder)
    jvm = session._jvm
    settings = jvm.java.util.HashMap()
    for name, value in {"uri": f"jdbc:sqlite:{folder}/catalog.db", "warehouse": f"file://{folder}/wh"}.items():
        settings.put(name, value)
    cat = jvm.org.apache.iceberg.jdbc.JdbcCatalog()
    cat.setConf(session._jsc.hadoopConfiguration())
    cat.initialize("bench", settings)
    table = cat.loadTable(jvm.org.apache.iceberg.catalog.TableIdentifier.parse("db.t"))
    wanted = jvm.org.apache.iceberg.expressions.Expressions.equal("c0", jvm.java.lang.Long(wanted_value(entries)))

    def plan() -> int:
        found = table.newScan().filter(wanted).planFiles()
        rows, count = found.iterator(), 0
        while rows.hasNext():
            rows.next()
            count += 1
        found.close()
        return count

    def remove() -> None:
        # A name alone is not found by this version, so the file is given as far as anyone knows it.
        path = victim(folder, entries)
        file = jvm.org.apache.iceberg.DataFiles.builder(table.spec()).withPath(path).withFormat("parquet")
        file = file.withPartitionPath(path.split("/")[-2]).withFileSizeInBytes(1).withRecordCount(1).build()
        table.newDelete().deleteFile(file).commit()
        if table.currentSnapshot().summary().get("deleted-data-files") != "1":
            raise RuntimeError("Apache Iceberg removed nothing")

    return Contender(
        plan=plan,
        remove=remove,
        process=int(jvm.java.lang.ProcessHandle.current().pid()),
    )


CONTENDERS: dict[str, Callable[[Path, int], Contender]] = {
    "icefloe v2": icefloe,
    "icefloe v4": icefloe,
    "pyiceberg": pyiceberg,
    "Apache Iceberg": apache,
}


def measured(work: Callable[[], object], process: int | None) -> tuple[Sample, object]:
    gc.collect()
    before = Clock.now(process)
    answer = work()
    return before.until(Clock.now(process)), answer


def _peak_mb() -> float:
    """The most memory this process ever had, from Linux's /proc: getrusage would count the parent's too."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def run(contender: str, folder: Path, entries: int) -> dict[str, Any]:
    made = CONTENDERS[contender](folder, entries)
    first, files = measured(made.plan, made.process)
    again = [measured(made.plan, made.process)[0] for _ in range(3)]
    peak = _peak_mb()
    before = _metadata_files(folder)
    removal, _ = measured(made.remove, made.process)
    written = sum(size for path, size in _metadata_files(folder).items() if path not in before)
    return {
        "first": [first],
        "again": again,
        "removal": [removal],
        "removal_bytes": written,
        "files": files,
        "peak_mb": peak,
    }


def _metadata_files(folder: Path) -> dict[Path, int]:
    """Manifests and manifest lists with their sizes; not metadata.json, nor Hadoop's checksums."""
    kinds = (".avro", ".parquet")
    places = (path for place in folder.glob("**/metadata") for path in place.iterdir())
    return {path: path.stat().st_size for path in places if path.suffix in kinds}


def main(verb: str, what: str, folder: str, entries: str, per_manifest: str = "0") -> None:
    if verb == "make":
        make_table(Path(folder), int(entries), int(per_manifest), int(what))
    else:
        print(json.dumps(run(what, Path(folder), int(entries))))


if __name__ == "__main__":
    main(*sys.argv[1:])
