"""Bench ``spark_sql``: small queries, MERGE and micro-batches by Spark SQL, beside other ways and other table formats.

One Spark runs everything. Contenders take turns, in another order every round, after rounds that do not count. Results
are compared before they are timed. A merge is undone after its run; every stream writes a new table.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lineitem import lineitem, totals
from measure import Sample, Work, check_same, in_turns, median, ratio, spread
from report import Table
from spark_contenders import (
    ApacheIceberg,
    Change,
    Contender,
    DeltaLake,
    Icefloe,
    IcefloeSql,
    Layout,
    PlainParquet,
    changed_rows,
)
from spark_session import start
from spark_streams import BATCH, BATCH_ROWS, FILE_SINK, STEPS, Streams

TITLE = "spark_sql: queries, MERGE and streams by Spark SQL"
SQL, JAVA = IcefloeSql.name, ApacheIceberg.name
ANEW, ONCE, API = "to_spark", "to_spark, one DataFrame", "icefloe t.merge"
SAME, OTHER = "the same range", "another range each time"
PHASES = ("parsing", "analysis", "optimization", "planning")
WIDTH = 1_000  # rows that a small query reads


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much to do: the tables, and how often.

    ``queries``, ``merges`` and ``batches`` count; 0 leaves a part out. A stream runs ``batches`` and, before those,
    ``first_batches`` that do not count; it runs ``streams`` times.
    """

    query_rows: int = 100_000
    query_files: int = 20
    queries: int = 40
    first_queries: int = 10
    rows: int = 3_000_000
    files: int = 8
    merges: int = 5
    first_merges: int = 1
    batches: int = 30
    first_batches: int = 5
    streams: int = 3


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Samples by part and contender; those of queries also by what was asked."""
    with tempfile.TemporaryDirectory(prefix="icefloe-bench-") as folder:
        spark = start(Path(folder), extended=True)
        try:
            bench = _Bench(spark, Path(folder), sizes, tell)
            samples = {
                "query": bench.queries() if sizes.queries > 0 else {},
                "merge": bench.merges() if sizes.merges > 0 else {},
                "batch": bench.batches() if sizes.batches > 0 else {},
            }
        finally:
            spark.stop()
    return {"sizes": asdict(sizes), "versions": bench.versions, "samples": samples}


class _Query:
    """The query of one contender, and how long Spark's phases of its last run took."""

    def __init__(self, make: Callable[[int], DataFrame], ranges: Callable[[int], int]) -> None:
        self._make, self._ranges, self._runs = make, ranges, 0
        self._frame: DataFrame | None = None

    def run(self) -> object:
        self._frame = self._make(self._ranges(self._runs))
        self._runs += 1
        return self._frame.collect()

    def phases(self) -> Sample:
        assert self._frame is not None
        execution = self._frame._jdf.queryExecution()
        jvm: Any = self._frame.sparkSession._jvm
        found = jvm.scala.jdk.javaapi.CollectionConverters.asJava(execution.tracker().phases())
        return {name: float(found[name].durationMs()) if name in found else 0.0 for name in PHASES}


class _Bench:
    def __init__(self, spark: SparkSession, folder: Path, sizes: Sizes, tell: Callable[[str], None]) -> None:
        self._spark, self._folder, self._sizes, self._tell = spark, folder, sizes, tell
        self._jvm = spark.sparkContext._gateway.proc.pid
        self._plain = PlainParquet(spark, folder / "plain")
        self._own = Icefloe(spark, folder)
        self._sql = IcefloeSql(spark, folder / "attached")
        self._java = ApacheIceberg(spark)
        self._delta = DeltaLake(spark, folder / "delta")
        jvm: Any = spark._jvm
        self.versions = {
            JAVA: str(jvm.org.apache.iceberg.IcebergBuild.version()),
            DeltaLake.name: str(getattr(getattr(jvm.io.delta, "package$"), "MODULE$").VERSION()),
        }

    def queries(self) -> dict[str, dict[str, list[Sample]]]:
        """The sum of a few rows of a table with many small files."""
        rows = self._spark.range(self._sizes.query_rows)
        rows = rows.selectExpr("id", "id * 7 % 1000 AS x", "cast(id AS string) AS note")
        rows = rows.repartitionByRange(self._sizes.query_files, "id")  # icefloe unites small tasks otherwise
        for one in (self._plain, self._sql, self._java):
            one.write(rows, "q", Layout.PLAIN)
        table = self._sql.table("q")
        files = {SQL: table.scan().plan().files, JAVA: self._spark.table("iceberg.db.q.files").count()}
        check_same({"asked": self._sizes.query_files, **files}, "the number of files")
        once = table.scan().to_spark(self._spark)
        makers: dict[str, Callable[[int], DataFrame]] = {
            self._plain.name: lambda first: _sum(self._plain.read("q"), first),
            ANEW: lambda first: _sum(table.scan().to_spark(self._spark), first),
            ONCE: lambda first: _sum(once, first),
            SQL: lambda first: self._spark.sql(_sum_in_sql("demo.db.q", first)),
            JAVA: lambda first: self._spark.sql(_sum_in_sql("iceberg.db.q", first)),
        }
        check_same({name: make(0).collect() for name, make in makers.items()}, "the sum of a few rows")
        samples = {}
        spread_out = max(1, self._sizes.query_rows - WIDTH)
        for what, ranges in ((SAME, lambda _: 0), (OTHER, lambda number: number * 7919 % spread_out)):
            self._tell(f"spark_sql: {self._sizes.queries} small queries, {what}")
            asked = {name: _Query(make, ranges) for name, make in makers.items()}
            works: dict[str, Work] = {name: (query.run, query.phases) for name, query in asked.items()}
            samples[what] = in_turns(works, self._sizes.queries, warm_up=self._sizes.first_queries, process=self._jvm)
        return samples

    def merges(self) -> dict[str, list[Sample]]:
        """A MERGE of 1 % of the rows, by merge-on-read."""
        self._tell(f"spark_sql: making {self._sizes.rows:,} rows")
        self._plain.write(lineitem(self._spark, self._sizes.rows, self._sizes.files), "t", Layout.PLAIN)
        rows = self._plain.read("t")
        changed_rows(rows).write.parquet(str(self._folder / "changed"))
        source = self._spark.read.parquet(str(self._folder / "changed"))
        contenders: dict[str, Contender] = {
            SQL: self._sql,
            API: self._own,
            JAVA: self._java,
            self._delta.name: self._delta,
        }
        results, works = {}, {}
        for name, one in contenders.items():
            one.write(rows, "t", Layout.PLAIN)
            one.change("t", Change.MERGE, source)
            results[name] = totals(one.read("t")).collect()
            one.undo("t")
            works[name] = (lambda one=one: one.change("t", Change.MERGE, source), lambda one=one: one.undo("t"))
        check_same(results, "MERGE")
        self._tell(f"spark_sql: MERGE, {self._sizes.merges} times")
        samples = in_turns(works, self._sizes.merges, warm_up=self._sizes.first_merges, process=self._jvm)
        for one in (self._plain, *contenders.values()):
            one.drop("t")
        return samples

    def batches(self) -> dict[str, list[Sample]]:
        """Micro-batches of a few rows."""
        sizes = self._sizes
        streams = Streams(
            self._spark, self._folder, self._sql, self._java, batches=sizes.batches, first=sizes.first_batches
        )
        return streams.in_turns(sizes.streams, self._tell)


def _sum(rows: DataFrame, first: int) -> DataFrame:
    return rows.where(f"id BETWEEN {first} AND {first + WIDTH - 1}").selectExpr("sum(x)")


def _sum_in_sql(table: str, first: int) -> str:
    return f"SELECT sum(x) FROM {table} WHERE id BETWEEN {first} AND {first + WIDTH - 1}"


def tables(result: Mapping[str, Any]) -> list[Table]:
    """Times, ratios and profiles of the parts that ran."""
    shown: list[Table] = []
    samples = result["samples"]
    if len(samples["query"]) > 0:
        shown += _of_queries(samples["query"], result["sizes"])
    if len(samples["merge"]) > 0:
        shown.append(_of_merges(samples["merge"], result["sizes"], result["versions"]))
    if len(samples["batch"]) > 0:
        shown += _of_batches(samples["batch"], result["sizes"])
    return shown


def _of_queries(samples: Mapping[str, Any], sizes: Mapping[str, int]) -> list[Table]:
    what = f"{sizes['query_rows']:,} rows in {sizes['query_files']} files, {sizes['queries']} runs"
    times, profile = [], []
    for asked, found in samples.items():
        base, java = median(found[ANEW], "wall_ms"), median(found[JAVA], "wall_ms")
        for name, runs in found.items():
            wall = median(runs, "wall_ms")
            cells = [spread(runs, "wall_ms"), f"{wall - base:+.1f}", ratio(wall, java)]
            times.append([f"{name}, {asked}", *cells, f"{median(runs, 'cpu_ms'):.0f}"])
            rest = statistics.median(one["wall_ms"] - sum(one[phase] for phase in PHASES) for one in runs)
            profile.append([f"{name}, {asked}", *(f"{median(runs, phase):.0f}" for phase in PHASES), f"{rest:.0f}"])
    return [
        Table(
            title=f"A small query: wall ms, {what}",
            columns=("", "wall ms", "ms over to_spark", f"as a multiple of {JAVA}", "CPU ms"),
            rows=times,
            note="to_spark is called for each query on one table object, which is not refreshed; SQL uses the newest"
            " state. Aim: SQL takes at most 50 ms more than to_spark.",
        ),
        Table(
            title="A small query: median ms of Spark's phases",
            columns=("", *PHASES, "the rest"),
            rows=profile,
            note="Analysis loads the table; optimization puts the scan in the plan. The rest is making DataFrames,"
            " planning files and execution.",
        ),
    ]


def _of_merges(samples: Mapping[str, Any], sizes: Mapping[str, int], versions: Mapping[str, str]) -> Table:
    java = {key: median(samples[JAVA], key) for key in ("wall_ms", "cpu_ms")}
    rows = [
        [name, spread(runs, "wall_ms"), *(ratio(median(runs, key), java[key]) for key in java)]
        for name, runs in samples.items()
    ]
    return Table(
        title=f"MERGE of 1 %: {sizes['rows']:,} rows of 16 columns, merge-on-read, {sizes['merges']} runs",
        columns=("", "wall ms", f"as a multiple of {JAVA}", "the same by CPU"),
        rows=rows,
        note=f"Apache Iceberg {versions[JAVA]} with tables of version 3, icefloe of version 4, Delta Lake"
        f" {versions[DeltaLake.name]} with deletion vectors. CPU includes the JVM and the Python driver. Aim: SQL takes"
        " at most the time of Apache Iceberg.",
    )


def _of_batches(samples: Mapping[str, list[Sample]], sizes: Mapping[str, int]) -> list[Table]:
    times, profile = [], []
    java, files = median(samples[JAVA], BATCH), median(samples[FILE_SINK], BATCH)
    for name, runs in samples.items():
        own = median(runs, BATCH)
        times.append([name, spread(runs, BATCH), ratio(own, java), ratio(own, files)])
        profile.append([name, *(f"{median(runs, step):.0f}" for step in STEPS)])
    title = f"A micro-batch of {BATCH_ROWS} rows"
    return [
        Table(
            title=f"{title}: ms, {sizes['batches']} batches of each of {sizes['streams']} streams",
            columns=("", BATCH, f"as a multiple of {JAVA}", "of the file sink"),
            rows=times,
            note="The source makes the rows; every stream writes a new table. icefloe uses a catalog in SQLite, and"
            " syncs its files; Apache Iceberg uses a catalog in a folder, without syncs. Aim: at most its time.",
        ),
        Table(title=f"{title}: median ms of Spark's steps", columns=("", *STEPS), rows=profile),
    ]
