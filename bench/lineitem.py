"""Rows like those of TPC-H's lineitem, made by Spark: sixteen columns, the same in every run."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

PARTS = 200_000
SUPPLIERS = 10_000
FILTER = f"l_partkey < {PARTS // 100}"  # 1 % of the rows, spread over all files
WORDS = ("carefully", "final", "deposits", "sleep", "quickly", "above", "the", "ironic", "accounts", "packages")
MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
INSTRUCTIONS = ("COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN")


QUESTIONS: dict[str, Callable[[DataFrame], object]] = {
    "count + 3 sums": lambda rows: totals(rows).collect(),
    "1 % filter": lambda rows: rows.where(FILTER).agg(F.sum("l_extendedprice")).collect(),
    "2 of 16 columns": lambda rows: drain(rows.select("l_orderkey", "l_extendedprice")),
    "all columns": lambda rows: drain(rows),
}


def totals(rows: DataFrame) -> DataFrame:
    """The number of rows and three sums, by which contenders are compared."""
    return rows.agg(F.count("*"), F.sum("l_quantity"), F.sum("l_extendedprice"), F.sum("l_partkey"))


def drain(rows: DataFrame) -> None:
    """Read all rows and columns; Delta Lake cannot write a table with vectors to the format ``noop``."""
    rows._jdf.queryExecution().toRdd().count()


def lineitem(spark: SparkSession, rows: int, files: int) -> DataFrame:
    """``rows`` rows that are written as ``files`` files."""
    quantity = _dice("quantity", 50) + 1
    shipped = F.date_add(F.lit("1992-01-02"), _dice("shipped", 2500).cast("int"))
    price = (quantity * (_dice("price", 100_000) + 90_000)).cast("decimal(18, 2)") / 100
    return spark.range(0, rows, numPartitions=files).select(
        F.expr("id div 4").alias("l_orderkey"),
        _dice("part", PARTS).alias("l_partkey"),
        _dice("supplier", SUPPLIERS).alias("l_suppkey"),
        F.expr("cast(id % 4 + 1 as int)").alias("l_linenumber"),
        quantity.cast("decimal(12, 2)").alias("l_quantity"),
        price.cast("decimal(12, 2)").alias("l_extendedprice"),
        _hundredths(_dice("discount", 11)).alias("l_discount"),
        _hundredths(_dice("tax", 9)).alias("l_tax"),
        _one_of("returned", ("A", "N", "R")).alias("l_returnflag"),
        _one_of("status", ("F", "O")).alias("l_linestatus"),
        shipped.alias("l_shipdate"),
        F.date_add(shipped, _dice("commit", 60).cast("int")).alias("l_commitdate"),
        F.date_add(shipped, _dice("receipt", 30).cast("int")).alias("l_receiptdate"),
        _one_of("instruction", INSTRUCTIONS).alias("l_shipinstruct"),
        _one_of("mode", MODES).alias("l_shipmode"),
        F.concat_ws(" ", *(_one_of(f"word{i}", WORDS) for i in range(4))).alias("l_comment"),
    )


def _dice(what: str, sides: int) -> Column:
    """A number from 0 to before ``sides`` that depends on the row and on what it is for."""
    return F.pmod(F.xxhash64("id", F.lit(what)), F.lit(sides))


def _hundredths(value: Column) -> Column:
    return (value.cast("decimal(12, 2)") / 100).cast("decimal(12, 2)")


def _one_of(what: str, values: tuple[str, ...]) -> Column:
    return F.element_at(F.array(*map(F.lit, values)), (_dice(what, len(values)) + 1).cast("int"))
