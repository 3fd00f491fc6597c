"""Bench ``spark_scan``: rows per second that Spark reads, through icefloe, Apache Iceberg and as plain Parquet.

One Spark reads the same rows, written by each contender itself, with the same four queries. Contenders take turns run
by run, in another order every time, after runs that do not count. Then 1 % of the rows is deleted, by deletion vectors
in both table formats, and everything is read again; plain Parquet keeps its rows and stays the measure.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import icefloe
from lineitem import DELETE_SHARE, QUESTIONS, lineitem, totals
from measure import Clock, Sample, median, ratio, spread
from report import Table
from spark_session import start

TITLE = "spark_scan: reading with Spark"
CONTENDERS = ("plain Parquet", "icefloe", "Apache Iceberg")
PHASES = ("no deletes", "1 % deleted")
Reader = Callable[[], DataFrame]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much to do: rows of the table, files they are in, runs that count and runs before those."""

    rows: int = 6_000_000
    files: int = 8
    runs: int = 7
    warm_up: int = 2


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Write, read, delete, read again; samples by phase, query and contender."""
    with tempfile.TemporaryDirectory(prefix="icefloe-bench-") as folder:
        spark = start(Path(folder))
        try:
            tables_of = _Contenders(spark, Path(folder), sizes, tell)
            samples = {PHASES[0]: _measure(spark, tables_of.readers(), sizes, tell, PHASES[0])}
            tables_of.delete()
            samples[PHASES[1]] = _measure(spark, tables_of.readers(), sizes, tell, PHASES[1])
        finally:
            spark.stop()
    versions = {"Apache Iceberg": tables_of.iceberg_version}
    return {"sizes": asdict(sizes), "versions": versions, "files": tables_of.files, "samples": samples}


class _Contenders:
    """The same rows in three places."""

    def __init__(self, spark: SparkSession, folder: Path, sizes: Sizes, tell: Callable[[str], None]) -> None:
        self._spark = spark
        self._plain = str(folder / "plain")
        rows = lineitem(spark, sizes.rows, sizes.files)
        self._schema = rows.schema  # given to plain Parquet, so that it need not open a file to find its columns
        tell(f"spark_scan: writing {sizes.rows:,} rows three times")
        rows.write.option("compression", "zstd").parquet(self._plain)
        cat = icefloe.catalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/icefloe")
        self._table = cat.create_table("db.lineitem", schema=rows.schema, format_version=4)
        self._table.append(rows)
        rows.writeTo("iceberg.db.lineitem").tableProperty("format-version", "3").tableProperty(
            "write.delete.mode", "merge-on-read"
        ).create()
        version = spark.sparkContext._jvm.org.apache.iceberg.IcebergBuild.version()
        self.iceberg_version = str(version)
        self.files = {
            "plain Parquet": len(list(Path(self._plain).glob("*.parquet"))),
            "icefloe": self._table.scan().plan().files,
            "Apache Iceberg": spark.table("iceberg.db.lineitem.files").count(),
        }

    def readers(self) -> dict[str, Reader]:
        """How to get each contender's rows; every query opens them anew."""
        return {
            "plain Parquet": lambda: self._spark.read.schema(self._schema).parquet(self._plain),
            "icefloe": lambda: self._table.scan().to_spark(self._spark),
            "Apache Iceberg": lambda: self._spark.table("iceberg.db.lineitem"),
        }

    def delete(self) -> None:
        """Delete 1 % of the rows, spread over all files, by deletion vectors."""
        self._table.delete(DELETE_SHARE, spark=self._spark)
        self._spark.sql(f"DELETE FROM iceberg.db.lineitem WHERE {DELETE_SHARE}")
        self._spark.sql("REFRESH TABLE iceberg.db.lineitem")


def _measure(
    spark: SparkSession, readers: Mapping[str, Reader], sizes: Sizes, tell: Callable[[str], None], phase: str
) -> dict[str, dict[str, list[Sample]]]:
    tell(f"spark_scan: {phase}, {sizes.warm_up} runs to warm up and {sizes.runs} that count")
    _check(readers, phase)
    jvm = spark.sparkContext._gateway.proc.pid
    samples: dict[str, dict[str, list[Sample]]] = {query: {name: [] for name in CONTENDERS} for query in QUESTIONS}
    for number in range(-sizes.warm_up, sizes.runs):
        shift = number % len(CONTENDERS)
        for query, ask in QUESTIONS.items():
            for name in CONTENDERS[shift:] + CONTENDERS[:shift]:
                before = Clock.now(jvm)
                ask(readers[name]())
                sample = before.until(Clock.now(jvm))
                if number >= 0:
                    samples[query][name].append({key: round(value, 1) for key, value in sample.items()})
    return samples


def _check(readers: Mapping[str, Reader], phase: str) -> None:
    """Contenders that do not hold the same rows are not worth timing."""
    plain = readers["plain Parquet"]()
    right = totals(plain if phase == PHASES[0] else plain.where(f"NOT ({DELETE_SHARE})")).collect()
    for name, rows in readers.items():
        if name != "plain Parquet" and (found := totals(rows()).collect()) != right:
            raise RuntimeError(f"{name}, {phase}: the rows are not those that were written: {found}, not {right}")


def tables(result: Mapping[str, Any]) -> list[Table]:
    """Times of both phases, and ratios of throughput."""
    sizes, samples = result["sizes"], result["samples"]
    what = f"{sizes['rows']:,} rows of 16 columns in {_files(result['files'])} files, median of {sizes['runs']} runs"
    clocks = {"wall ms": "wall_ms", "CPU ms": "cpu_ms"}
    found = [
        _times(samples[phase], f"{phase.capitalize()}: {clock}, {what}", key)
        for phase in PHASES
        for clock, key in clocks.items()
    ]
    return [*found, _ratios(samples, result["versions"]["Apache Iceberg"])]


def _files(files: Mapping[str, int]) -> str:
    return " / ".join(str(count) for count in dict.fromkeys(files.values()))


def _times(samples: Mapping[str, Any], title: str, key: str) -> Table:
    rows = [[query, *(spread(samples[query][name], key) for name in CONTENDERS)] for query in QUESTIONS]
    return Table(title=title, columns=("", *CONTENDERS), rows=rows)


def _ratios(samples: Mapping[str, Any], iceberg_version: str) -> Table:
    """Throughput as ratios: the time of the one that is compared with, divided by the contender's."""
    plain, own, iceberg = CONTENDERS
    rows = []
    for phase in PHASES:
        for query in QUESTIONS:
            wall = {name: median(samples[phase][query][name], "wall_ms") for name in CONTENDERS}
            cpu = {name: median(samples[phase][query][name], "cpu_ms") for name in CONTENDERS}
            rows.append(
                [
                    f"{query}, {phase}",
                    ratio(wall[plain], wall[own]),
                    ratio(wall[plain], wall[iceberg]),
                    ratio(wall[iceberg], wall[own]),
                    ratio(cpu[iceberg], cpu[own]),
                ]
            )
    columns = ("", "icefloe / Parquet", "Iceberg / Parquet", "icefloe / Iceberg", "the same by CPU")
    note = (
        f"Apache Iceberg {iceberg_version} reads a version 3 table, icefloe a version 4 table. All use the same local"
        " Spark with two cores, in turns. CPU includes the JVM and the Python driver. Plain Parquet has a given schema"
        " and reads all rows in both phases."
    )
    return Table(
        title="Throughput ratios by wall time: above 1, the first is faster", columns=columns, rows=rows, note=note
    )
