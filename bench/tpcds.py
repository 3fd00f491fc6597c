"""Bench ``tpcds``: the queries of TPC-DS by Spark SQL, on tables of icefloe, of Apache Iceberg, and on plain Parquet.

One Spark runs everything, with one session for each contender, so that all run the same text. The sales of the three
channels are partitioned by their day. Contenders take turns at each query, in another order every round, after a round
that does not count. Their rows are compared in that round.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import icefloe
from measure import Clock, Sample, median, ratio
from report import Table
from spark_jobs import JobTimes
from spark_session import start
from tpcds_data import PARTITIONED, generate, queries

TITLE = "tpcds: the queries of TPC-DS"
OWN, JAVA, PLAIN = "icefloe", "Apache Iceberg", "plain Parquet"
CONTENDERS = (OWN, JAVA, PLAIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much to do: the scale factor in hundredths, rounds that count, and one query alone (0: all)."""

    scale: int = 100
    rounds: int = 3
    query: int = 0


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Samples by query and contender, and the queries that Spark does not run."""
    with _folder(sizes) as folder:
        if not (folder / "data").exists():
            tell(f"tpcds: generating data at scale factor {sizes.scale / 100:g}")
            generate(folder / "data", sizes.scale / 100)
        files = {file.stem: file for file in sorted((folder / "data").glob("*.parquet"))}
        spark = start(folder, extended=True)
        try:
            sessions = {}
            for contender, write, use in (OWN, _icefloe, _attach), (JAVA, _apache, _use), (PLAIN, _plain, _view):
                sessions[contender] = spark.newSession()
                written = folder / f"{contender} is written"
                if not written.exists():
                    tell(f"tpcds: writing the tables of {contender}")
                    write(sessions[contender], folder, files)
                    written.touch()
                use(sessions[contender], folder, files)
            return {"sizes": asdict(sizes), **_measured(sessions, sizes, tell)}
        finally:
            spark.stop()


@contextmanager
def _folder(sizes: Sizes) -> Iterator[Path]:
    """The folder of data and tables: below ``ICEFLOE_BENCH_FOLDER``, which keeps them for other runs, or a new one."""
    kept = os.environ.get("ICEFLOE_BENCH_FOLDER")
    if kept is None:
        with tempfile.TemporaryDirectory(prefix="icefloe-bench-") as name:
            yield Path(name)
        return
    folder = Path(kept).absolute() / f"tpcds-{sizes.scale}"
    folder.mkdir(parents=True, exist_ok=True)
    yield folder


def _rows(spark: SparkSession, name: str, file: Path) -> DataFrame:
    rows = spark.read.parquet(str(file))
    if name not in PARTITIONED:
        return rows
    return rows.repartition(F.col(PARTITIONED[name])).sortWithinPartitions(PARTITIONED[name])


def _catalog(folder: Path) -> icefloe.Catalog:
    (folder / "own").mkdir(exist_ok=True)
    return icefloe.catalog("own", uri=f"sqlite:///{folder}/own/catalog.db", warehouse=f"file://{folder}/own/warehouse")


def _icefloe(spark: SparkSession, folder: Path, files: Mapping[str, Path]) -> None:
    cat = _catalog(folder)
    for name, file in files.items():
        rows = _rows(spark, name, file)
        by = [PARTITIONED[name]] if name in PARTITIONED else []
        cat.create_table(f"db.{name}", schema=rows.schema, partition_by=by, format_version=4).append(rows)


def _attach(spark: SparkSession, folder: Path, files: Mapping[str, Path]) -> None:
    icefloe.attach(spark, "own", _catalog(folder))
    spark.sql("USE own.db")


def _apache(spark: SparkSession, folder: Path, files: Mapping[str, Path]) -> None:
    spark.sql("CREATE NAMESPACE iceberg.db")
    for name, file in files.items():
        writer = _rows(spark, name, file).writeTo(f"iceberg.db.{name}").using("iceberg")
        writer = writer.tableProperty("format-version", "3").tableProperty("write.parquet.compression-codec", "zstd")
        writer = writer.tableProperty("write.spark.fanout.enabled", "false")  # thousands of open files need much memory
        (writer.partitionedBy(F.col(PARTITIONED[name])) if name in PARTITIONED else writer).create()


def _use(spark: SparkSession, folder: Path, files: Mapping[str, Path]) -> None:
    spark.sql("USE iceberg.db")


def _plain(spark: SparkSession, folder: Path, files: Mapping[str, Path]) -> None:
    for name, file in files.items():
        writer = _rows(spark, name, file).write.option("compression", "zstd")
        (writer.partitionBy(PARTITIONED[name]) if name in PARTITIONED else writer).parquet(str(folder / "plain" / name))


def _view(spark: SparkSession, folder: Path, files: Mapping[str, Path]) -> None:
    for name in files:
        spark.read.parquet(str(folder / "plain" / name)).createOrReplaceTempView(name)


def _measured(sessions: Mapping[str, SparkSession], sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    jobs = JobTimes(sessions[OWN])
    process = sessions[OWN].sparkContext._gateway.proc.pid
    samples: dict[str, dict[str, list[Sample]]] = {}
    refused: dict[str, str] = {}
    asked = {number: text for number, text in queries().items() if sizes.query in (0, number)}
    for number, text in asked.items():
        try:
            found = {name: session.sql(text).collect() for name, session in sessions.items()}
        except (AnalysisException, ParseException) as error:
            refused[str(number)] = str(error).splitlines()[0]
            continue
        _check_same(number, found)
        jobs()
        samples[str(number)] = {name: [] for name in sessions}
    for turn in range(sizes.rounds):
        tell(f"tpcds: round {turn + 1} of {sizes.rounds}, {len(samples)} queries")
        names = [*CONTENDERS[turn % 3 :], *CONTENDERS[: turn % 3]]
        for number, found_samples in samples.items():
            for name in names:
                before = Clock.now(process)
                sessions[name].sql(asked[int(number)]).collect()
                sample = before.until(Clock.now(process)) | jobs()
                found_samples[name].append({key: round(value, 1) for key, value in sample.items()})
    return {"samples": samples, "refused": refused}


def _check_same(number: int, found: Mapping[str, Sequence[Row]]) -> None:
    """RuntimeError if contenders return other rows, whatever their order; sums of doubles differ in the last digits."""
    base = sorted(map(_comparable, found[JAVA]), key=repr)
    for name, rows in found.items():
        if sorted(map(_comparable, rows), key=repr) != base:
            raise RuntimeError(f"query {number}: {name} and {JAVA} return different rows")


def _comparable(row: Row) -> tuple[object, ...]:
    return tuple(f"{value:.6e}" if isinstance(value, (float, Decimal)) else value for value in row)


def tables(result: Mapping[str, Any]) -> list[Table]:
    """Ratios over all queries, then the times of each."""
    samples, sizes = result["samples"], result["sizes"]
    walls = {name: {number: median(found[name], "wall_ms") for number, found in samples.items()} for name in CONTENDERS}
    summary = [
        [f"{name} / {base}", *_summary(walls[name], walls[base])]
        for name, base in ((OWN, JAVA), (OWN, PLAIN), (JAVA, PLAIN))
    ]
    rows = []
    for number in sorted(samples, key=lambda number: walls[JAVA][number] / walls[OWN][number]):
        own, java, plain = (walls[name][number] for name in CONTENDERS)
        jobs = [f"{median(samples[number][name], 'jobs_ms'):,.0f}" for name in (OWN, JAVA)]
        rows.append([f"query {number}", *(f"{ms:,.0f}" for ms in (own, java, plain)), *jobs, ratio(own, java)])
    refused = ", ".join(result["refused"]) or "none"
    return [
        Table(
            title=f"{len(samples)} queries, scale factor {sizes['scale'] / 100:g}, {sizes['rounds']} rounds: wall time",
            columns=("", "total", "geometric mean", "least", "greatest", "queries above 1.1", "above 1.3"),
            rows=summary,
            note=f"The rows of all contenders are equal in all queries. Queries that Spark does not run: {refused}."
            " Aims: total and geometric mean at most 0.95 of Apache Iceberg's, no query above 1.3.",
        ),
        Table(
            title="Each query: median wall ms, those with the greatest ratio first",
            columns=("", *CONTENDERS, f"jobs of {OWN}", f"jobs of {JAVA}", f"{OWN} / {JAVA}"),
            rows=rows,
            note="jobs: the wall time in which a Spark job ran; the rest of a query is parsing, planning and results.",
        ),
    ]


def _summary(own: Mapping[str, float], base: Mapping[str, float]) -> list[str]:
    ratios = [own[number] / base[number] for number in own]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    total = sum(own.values()) / sum(base.values())
    above = [str(sum(one > limit for one in ratios)) for limit in (1.1, 1.3)]
    return [f"{total:.2f}", f"{mean:.2f}", f"{min(ratios):.2f}", f"{max(ratios):.2f}", *above]
