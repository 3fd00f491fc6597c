"""Order events, the same in every run: whatever is asked about an order is computed from its number."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

SCHEMA = """
    order_id bigint not null,
    customer_id int,
    status string,
    amount decimal(12, 2),
    ts timestamp,
    note string
"""
PER_COMMIT = 2_000
FIRST_DAY = "2026-11-01T00:00:00Z"
SECONDS_PER_COMMIT = 8 * 3600  # three commits make a day
COLUMNS = ("order_id", "customer_id", "status", "amount", "ts", "note")


def events(spark: SparkSession, first: int, after: int) -> DataFrame:
    """The orders with numbers from ``first`` to before ``after``; one in twenty arrives a day late."""
    ids = spark.range(first, after, numPartitions=1).withColumnRenamed("id", "order_id")
    late = F.when(_dice("late", 20) == 0, 24 * 3600).otherwise(0)
    begin = F.unix_timestamp(F.lit(FIRST_DAY).cast("timestamp"))
    seconds = begin + F.expr(f"order_id div {PER_COMMIT}") * SECONDS_PER_COMMIT + _dice("time", SECONDS_PER_COMMIT)
    statuses = F.array(*(F.lit(s) for s in ["placed"] * 10 + ["paid"] * 6 + ["packed"] * 3 + ["cancelled"]))
    notes = F.when(_dice("note", 3) == 0, F.concat(F.lit("gift for customer "), _dice("friend", 500)))
    return ids.select(
        "order_id",
        _dice("customer", 500).cast("int").alias("customer_id"),
        F.element_at(statuses, (_dice("status", 20) + 1).cast("int")).alias("status"),
        (_dice("amount", 1_000_000) / 100).cast("decimal(12, 2)").alias("amount"),
        (seconds - late).cast("timestamp").alias("ts"),
        notes.alias("note"),
    )


def commit_of_events(spark: SparkSession, number: int) -> DataFrame:
    """The events of the commit with this number, counted from 1."""
    return events(spark, (number - 1) * PER_COMMIT, number * PER_COMMIT)


def changes(spark: SparkSession, commits: int) -> DataFrame:
    """What the upsert brings: every twentieth order of the last ten commits is shipped now, and 500 orders are new."""
    known = events(spark, (commits - 10) * PER_COMMIT, commits * PER_COMMIT).where("order_id % 20 = 0")
    shipped = known.withColumns({"status": F.lit("shipped"), "note": F.lit("left the warehouse")})
    return shipped.unionByName(events(spark, commits * PER_COMMIT, commits * PER_COMMIT + 500)).coalesce(1)


def expected(spark: SparkSession, commits: int, deleted: str) -> DataFrame:
    """The rows that must be left at the end, computed by Spark alone without any table."""
    changed = changes(spark, commits)
    kept = events(spark, 0, commits * PER_COMMIT).join(changed, "order_id", "left_anti")
    return kept.unionByName(changed).where(f"NOT ({deleted})")


def _dice(what: str, sides: int) -> Column:
    """A number from 0 to before ``sides`` that depends on the order and on what it is for."""
    return F.pmod(F.xxhash64("order_id", F.lit(what)), F.lit(sides))
