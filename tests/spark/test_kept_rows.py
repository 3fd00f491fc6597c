"""Rows that a change keeps between finding and writing rows: computed again only if that gives the same rows."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from icefloe.engines.spark.change.kept_rows import keep_rows
from icefloe.engines.spark.failures import translated
from icefloe.engines.spark.write.conform import conformed
from icefloe.errors import StorageError
from icefloe.model.text.ddl import parse_ddl
from support.people import new_table

pytestmark = pytest.mark.spark


def kept_ids(spark: SparkSession) -> set[int]:
    return set(spark.sparkContext._jsc.getPersistentRDDs())


def lose_blocks(spark: SparkSession, ids: set[int]) -> None:
    """Removes kept blocks, as the loss of an executor does."""
    manager = spark._jvm.org.apache.spark.SparkEnv.get().blockManager()
    for id_ in ids:
        manager.removeRdd(id_)


def test_lost_rows_are_computed_again_only_if_the_query_is_deterministic(spark: SparkSession) -> None:
    before = kept_ids(spark)
    with ExitStack() as until:
        source = conformed(spark.range(5).repartition(2), parse_ddl("id bigint not null"))
        kept = keep_rows(source, until)
        assert kept.count() == 5
        lose_blocks(spark, kept_ids(spark) - before)
        assert sorted(row.id for row in kept.collect()) == [0, 1, 2, 3, 4]
        numbered = keep_rows(spark.range(5).repartition(2).selectExpr("id", "rand() AS r"), until)
        first = sorted(numbered.collect())
        assert sorted(numbered.collect()) == first
        lose_blocks(spark, kept_ids(spark) - before)
        with pytest.raises(StorageError, match="lost with rows that cannot be computed again"), translated():
            numbered.collect()
    assert kept_ids(spark) <= before


def test_a_source_with_random_values_is_merged_and_upserted_by_the_same_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = new_table(tmp_path, 4, schema="id bigint, r double")
    table.append(spark.range(10).selectExpr("id", "double(-1) AS r"))
    source = spark.range(20).selectExpr("id", "rand() AS r").where("r < 0.5")
    merge = table.merge(source, on=["id"]).when_matched_update_all().when_not_matched_insert_all()
    result = merge.execute()
    rows = table.scan().to_arrow().to_pylist()
    assert len({row["id"] for row in rows}) == len(rows) == 10 + result.rows_inserted
    assert sum(row["r"] >= 0 for row in rows) == result.rows_inserted + result.rows_updated
    table.upsert(spark.range(5, 15).selectExpr("id", "2 + rand() AS r"), on=["id"])
    table.update({"r": "5 + rand()"}, where="rand() < 0.5", spark=spark)
    rows = table.scan().to_arrow().to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    assert {row["id"] for row in rows} >= set(range(15))
    assert all(row["r"] >= 2 for row in rows if 5 <= row["id"] < 15)
