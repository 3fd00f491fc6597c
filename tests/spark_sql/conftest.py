"""The Spark session, with the catalog ``demo`` attached to it: a new and empty one for every test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import icefloe
from support.servers.spark import spark

__all__ = ["spark"]


@pytest.fixture
def demo(spark: SparkSession, tmp_path: Path) -> Iterator[icefloe.Catalog]:  # the fixture
    """The catalog ``demo`` of the session."""
    catalog = icefloe.catalog("demo", uri=f"sqlite:///{tmp_path}/cat.db", warehouse=f"file://{tmp_path}/wh")
    yield icefloe.attach(spark, "demo", catalog)
    spark.sql("USE spark_catalog.default")
    icefloe.detach(spark, "demo")
