"""Bench ``expiry``: snapshots that expire and orphan files that are looked for, beside Apache Iceberg's procedures.

Both programs get the same table of version 2, which is restored after each run; icefloe also gets one of version 4.
Data files are empty, as neither program opens them. icefloe works in a fresh process each time, Apache Iceberg in a
JVM that has done the same work before. Both must delete, or find, the same number of files.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from expiry_worker import DELETES, ORPHANS_OLDER_S, REMOVED
from measure import Clock, Sample, check_same, median, ratio, reset_peak, resident_mb, spread
from report import Table
from spark_contenders import ApacheIceberg
from spark_session import start

TITLE = "expiry: snapshots that expire, and orphan files"
WORKER = Path(__file__).resolve().parent / "expiry_worker.py"
JAVA, OWN_2, OWN_4 = ApacheIceberg.name, "icefloe v2", "icefloe v4"
EXPIRY, ORPHANS = "expire snapshots", "find orphan files"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Files and snapshots of the table, snapshots to retain, files that are listed, orphans among them, and runs."""

    files: int = 200_000
    snapshots: int = 2_000
    retain: int = 100
    listed: int = 500_000
    orphans: int = 50_000
    runs: int = 3
    warm_up: int = 1


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Expire and look for orphans with both programs."""
    with tempfile.TemporaryDirectory(prefix="icefloe-bench-") as name:
        folder = Path(name)
        spark = start(folder, extended=True)
        try:
            bench = _Bench(spark, folder, sizes, tell)
            found = {EXPIRY: bench.expiry(), ORPHANS: bench.orphans()}
            version = str(spark._jvm.org.apache.iceberg.IcebergBuild.version())  # type: ignore[union-attr]
        finally:
            spark.stop()
    return {"sizes": asdict(sizes), "versions": {JAVA: version}, "samples": found, "counts": bench.counts}


class _Bench:
    def __init__(self, spark: SparkSession, folder: Path, sizes: Sizes, tell: Callable[[str], None]) -> None:
        self._spark, self._folder, self._sizes, self._tell = spark, folder, sizes, tell
        self._jvm = spark.sparkContext._gateway.proc.pid
        self.counts: dict[str, list[int]] = {}

    def expiry(self) -> dict[str, list[Sample]]:
        """All but the newest snapshots expire."""
        sizes = self._sizes
        samples: dict[str, list[Sample]] = {}
        for name, version in (("history2", 2), ("history4", 4)):
            self._tell(f"expiry: making {sizes.files:,} files in {sizes.snapshots:,} snapshots of version {version}")
            self._worker("history", name, version, sizes.files, sizes.snapshots)
            kept = _Kept(self._folder, name)
            works: dict[str, Callable[[], dict[str, Any]]] = {OWN_4: lambda: self._own_expiry("history4")}
            if version == 2:
                works = {OWN_2: lambda: self._own_expiry("history2"), JAVA: lambda: self._java_expiry("history2")}
            samples |= self._in_turns(EXPIRY, works, kept)
            kept.remove()
        return samples

    def orphans(self) -> dict[str, list[Sample]]:
        """Orphan files are found among all files in the folder of a table; none is deleted."""
        sizes = self._sizes
        samples: dict[str, list[Sample]] = {}
        for name, version in (("listed2", 2), ("listed4", 4)):
            self._tell(f"expiry: making {sizes.listed:,} files, {sizes.orphans:,} of them orphans")
            self._worker("listing", name, version, sizes.listed, sizes.orphans)
            works = {OWN_2: lambda: self._worker("orphans", "listed2"), JAVA: self._java_orphans}
            if version == 4:
                works = {OWN_4: lambda: self._worker("orphans", "listed4")}
            samples |= self._in_turns(ORPHANS, works, None)
            _remove(self._folder / "icefloe" / "db" / name)
        return samples

    def _in_turns(
        self, what: str, works: Mapping[str, Callable[[], dict[str, Any]]], kept: _Kept | None
    ) -> dict[str, list[Sample]]:
        """Samples by contender, in another order every time."""
        names = list(works)
        samples: dict[str, list[Sample]] = {name: [] for name in names}
        for number in range(-self._sizes.warm_up, self._sizes.runs):
            shift = number % len(names)
            counts = {}
            for name in names[shift:] + names[:shift]:
                sample = works[name]()
                counts[name] = sample.pop("counts")
                self._tell(f"expiry: {what}, {name}: {sample['wall_ms'] / 1000:.1f} s, {counts[name]}")
                if kept is not None:
                    kept.restore()
                if number >= 0:
                    samples[name].append(sample)
            check_same(counts, what)
            self.counts |= {f"{what}, {name}": found for name, found in counts.items()}
        return samples

    def _own_expiry(self, name: str) -> dict[str, Any]:
        return self._worker("expire", name, self._sizes.retain)

    def _worker(self, verb: str, *arguments: object) -> dict[str, Any]:
        command = [sys.executable, str(WORKER), verb, str(self._folder), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{verb} {arguments} failed:\n{done.stderr.strip()}")
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def _java_expiry(self, name: str) -> dict[str, Any]:
        statement = (
            f"CALL shared.system.expire_snapshots(table => 'db.{name}', older_than => TIMESTAMP '2100-01-01 00:00:00',"
            f" retain_last => {self._sizes.retain})"
        )
        return self._measured(lambda: [int(count) for count in self._spark.sql(statement).collect()[0]])

    def _java_orphans(self) -> dict[str, Any]:
        older = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time.time() - ORPHANS_OLDER_S))
        statement = (
            "CALL shared.system.remove_orphan_files(table => 'db.listed2', dry_run => true,"
            f" older_than => TIMESTAMP '{older}')"
        )
        return self._measured(lambda: [len(self._spark.sql(statement).collect())])

    def _measured(self, work: Callable[[], list[int]]) -> dict[str, Any]:
        """The cost of a statement; memory is that of the JVM, which is not given back between runs."""
        reset_peak(self._jvm)
        idle, before = resident_mb(self._jvm), Clock.now(self._jvm)
        counts = work()
        sample = before.until(Clock.now(self._jvm))
        peak = resident_mb(self._jvm, "VmHWM")
        times = {key: round(value, 1) for key, value in sample.items()}
        return {**times, "idle_mb": idle, "peak_mb": peak, "counts": counts}


class _Kept:
    """The state of a table to return to: its files by hard links, and its pointer."""

    def __init__(self, folder: Path, name: str) -> None:
        self._catalog, self._name = folder / "catalog.db", name
        self._table, self._copy = folder / "icefloe" / "db" / name, folder / f"kept-{name}"
        self._pointer = self._sql("SELECT metadata_location FROM iceberg_tables WHERE table_name = ?", name)[0][0]
        subprocess.run(["cp", "-al", str(self._table), str(self._copy)], check=True)

    def restore(self) -> None:
        """Return to the state."""
        _remove(self._table)
        subprocess.run(["cp", "-al", str(self._copy), str(self._table)], check=True)
        self._sql("UPDATE iceberg_tables SET metadata_location = ? WHERE table_name = ?", self._pointer, self._name)

    def remove(self) -> None:
        """Remove both."""
        _remove(self._table)
        _remove(self._copy)

    def _sql(self, statement: str, *values: str) -> list[tuple[str]]:
        with sqlite3.connect(self._catalog) as connection:
            return connection.execute(statement, values).fetchall()


def _remove(folder: Path) -> None:
    subprocess.run(["rm", "-rf", str(folder)], check=True)


def tables(result: Mapping[str, Any]) -> list[Table]:
    """Both kinds of work."""
    sizes, version = result["sizes"], result["versions"][JAVA]
    deleted = int(sizes["files"] * REMOVED)
    notes = {
        EXPIRY: f"A table of {sizes['files']:,} data files in {sizes['snapshots']:,} snapshots. One snapshot in"
        f" {DELETES} removed files, {deleted:,} in all. All but {sizes['retain']} snapshots expire, and files are"
        " deleted. Statistics of 10 columns.",
        ORPHANS: f"{sizes['listed']:,} files in 100 folders on a local disk, {sizes['orphans']:,} of them unreferenced;"
        " none is deleted.",
    }
    warm = "that has done the same before" if sizes["warm_up"] > 0 else "that has not done the same before"
    common = (
        f" Apache Iceberg {version} on a local Spark with a heap of 3 GB, in a JVM {warm};"
        " icefloe in fresh processes. Tables of version 2 are the same for both. CPU includes all threads; memory is"
        " that of the JVM or of the Python process. Data files are empty."
    )
    return [_table(work, result, notes[work] + common) for work in result["samples"]]


def _table(work: str, result: Mapping[str, Any], note: str) -> Table:
    samples = result["samples"][work]
    java = samples[JAVA]
    rows = [
        [
            name,
            spread(found, "wall_ms"),
            spread(found, "cpu_ms"),
            f"{max(sample['peak_mb'] for sample in found):,.0f}",
            f"{median(found, 'idle_mb'):,.0f}",
            ratio(median(found, "wall_ms"), median(java, "wall_ms")),
            ratio(median(found, "cpu_ms"), median(java, "cpu_ms")),
            f"{sum(result['counts'][f'{work}, {name}']):,}",
        ]
        for name, found in samples.items()
    ]
    columns = ("", "wall ms", "CPU ms", "peak MB", "MB before", "ratio of wall", "ratio of CPU", "files")
    title = f"{work.capitalize()}, {result['sizes']['runs']} runs"
    return Table(title=title, columns=columns, rows=rows, note=note)
