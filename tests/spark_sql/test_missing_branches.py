"""Writes of Spark to branches that do not exist."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import icefloe


def test_a_write_creates_no_branch_unless_the_session_writes_to_it(spark: SparkSession, demo: icefloe.Catalog) -> None:
    # The option made a branch of any name, so that misspelled ones took the rows.
    properties = {"write.wap.enabled": "true"}
    t = demo.create_table("db.t", schema="id bigint", data=pa.table({"id": [1]}), properties=properties)
    t.branch("audit")
    with pytest.raises(PySparkException, match="has no branch 'adit'; it has: main, audit"):
        spark.range(2, 3).writeTo("demo.db.t").option("branch", "adit").append()
    spark.range(2, 3).writeTo("demo.db.t").option("branch", "audit").append()
    spark.conf.set("spark.wap.branch", "staging")
    try:
        spark.sql("DELETE FROM demo.db.t WHERE id = 1")
    finally:
        spark.conf.unset("spark.wap.branch")
    found = {name: t.at(branch=name).scan().count() for name in t.refresh().refs}
    assert found == {"main": 1, "audit": 2, "staging": 0}
