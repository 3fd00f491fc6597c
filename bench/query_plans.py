"""Bench ``query_plans``: questions that the metadata of a table answers, or makes shorter, by Spark SQL.

One Spark runs everything. Contenders take turns, in another order every round, after rounds that do not count. Rows are
compared before they are timed. The tables of the join of buckets are not broadcast: they stand for large ones.
Apache Iceberg has the setting without which it shuffles both sides of a join of buckets.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import icefloe
from measure import Sample, Work, check_same, in_turns, median, ratio
from report import Table
from spark_session import start

TITLE = "query_plans: questions that metadata answers, or makes shorter"
OWN, JAVA, PLAIN = "icefloe", "Apache Iceberg", "plain Parquet"
QUESTIONS = {
    "count, min, max": "SELECT count(*), min(id), max(day), count(note) FROM {0}sales",
    "count by partition": "SELECT day, count(*) FROM {0}sales GROUP BY day",
    "last 10 by a column": "SELECT id FROM {0}sales ORDER BY id DESC LIMIT 10",
    "any 10": "SELECT count(*) FROM (SELECT id FROM {0}sales LIMIT 10)",
    "join by keys of another": (
        "SELECT /*+ BROADCAST(c) */ count(s.note) FROM {0}sales s JOIN {0}chosen c ON s.id = c.id WHERE c.kind = 3"
    ),
    "join of buckets": "SELECT count(*), sum(a.x + b.x) FROM {0}left a JOIN {0}right b ON a.id = b.id",
}
BUCKETS = 16
SETTINGS = {
    "spark.sql.iceberg.planning.preserve-data-grouping": "true",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Rows of each table, the partitions of one of them, and rounds."""

    rows: int = 2_000_000
    days: int = 40
    rounds: int = 7
    first_rounds: int = 2


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Samples by question and contender."""
    with tempfile.TemporaryDirectory(prefix="icefloe-bench-") as name:
        folder = Path(name)
        spark = start(folder, extended=True)
        try:
            icefloe.attach(
                spark, "own", icefloe.catalog("own", uri=f"sqlite:///{name}/c.db", warehouse=folder.as_uri())
            )
            prefixes = {OWN: "own.db.", JAVA: "iceberg.db.", PLAIN: "plain_"}
            tell(f"query_plans: writing {sizes.rows:,} rows of each table")
            for contender, prefix in prefixes.items():
                _write(spark, contender, prefix, folder, sizes)
            for setting, value in SETTINGS.items():
                spark.conf.set(setting, value)
            return {"sizes": asdict(sizes), "samples": _measured(spark, prefixes, sizes, tell)}
        finally:
            spark.stop()


def _write(spark: SparkSession, contender: str, prefix: str, folder: Path, sizes: Sizes) -> None:
    rows = spark.range(sizes.rows).selectExpr("id", "concat('note ', id % 1000) AS note", "cast(id % 7 AS bigint) AS x")
    sales = rows.withColumn(
        "day", F.expr(f"date_add(date'2026-01-01', cast(id * {sizes.days} div {sizes.rows} AS int))")
    )
    chosen = rows.where(f"id % {sizes.rows // 50} = 1").selectExpr("id", f"id div {sizes.rows // 50} AS kind")
    tables = (
        ("sales", sales.repartitionByRange(sizes.days, "id").sortWithinPartitions("day", "id"), F.col("day")),
        ("chosen", chosen.coalesce(1), None),
        ("left", rows, F.partitioning.bucket(BUCKETS, "id")),
        ("right", rows, F.partitioning.bucket(BUCKETS, "id")),
    )
    if contender != PLAIN:
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {prefix.removesuffix('.')}")
    for name, frame, by in tables:
        if contender == PLAIN:
            writer = frame.write.option("compression", "zstd")
            (writer.partitionBy("day") if name == "sales" else writer).parquet(str(folder / "plain" / name))
            spark.read.parquet(str(folder / "plain" / name)).createOrReplaceTempView(prefix + name)
            continue
        new = frame.writeTo(prefix + name).using("icefloe" if contender == OWN else "iceberg")
        (new if by is None else new.partitionedBy(by)).tableProperty("format-version", "3").create()


def _measured(
    spark: SparkSession, prefixes: Mapping[str, str], sizes: Sizes, tell: Callable[[str], None]
) -> dict[str, dict[str, list[Sample]]]:
    process, samples = spark.sparkContext._gateway.proc.pid, {}
    for question, text in QUESTIONS.items():
        tell(f"query_plans: {question}")
        asked = {name: text.format(prefix) for name, prefix in prefixes.items()}
        check_same({name: sorted(map(tuple, spark.sql(query).collect())) for name, query in asked.items()}, question)
        works: dict[str, Work] = {
            name: (lambda query=query: spark.sql(query).collect(), lambda: None) for name, query in asked.items()
        }
        samples[question] = in_turns(works, sizes.rounds, warm_up=sizes.first_rounds, process=process)
    return samples


def tables(result: Mapping[str, Any]) -> list[Table]:
    """The time of each question by contender."""
    rows = []
    for question, samples in result["samples"].items():
        own, java, plain = (median(samples[name], "wall_ms") for name in (OWN, JAVA, PLAIN))
        rows.append([question, *(f"{ms:,.0f}" for ms in (own, java, plain)), ratio(own, java), ratio(own, plain)])
    sizes = result["sizes"]
    title = f"ms of a query, {sizes['rows']:,} rows in {sizes['days']} partitions or {BUCKETS} buckets"
    columns = ["question", OWN, JAVA, PLAIN, f"of {JAVA}", f"of {PLAIN}"]
    return [Table(title=title, columns=columns, rows=rows, note="Medians; ratios below 1 are in favour of icefloe.")]
