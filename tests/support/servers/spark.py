"""The Spark session of all tests that need one. A conftest.py imports the fixture for its folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.servers.java_options import QUICK_START

TIME_ZONE = "spark.sql.session.timeZone"


@contextmanager
def local_spark(folder: Path, master: str, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """A Spark in this process, with settings besides those of all tests."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master(master)
        .appName("icefloe tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", QUICK_START)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.local.dir", str(folder / "local"))
        .config(map={**settings})
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local Spark, started for the first test that asks for it."""
    with local_spark(tmp_path_factory.mktemp("spark"), "local[2]", {}) as session:
        yield session


@pytest.fixture
def tokyo(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with the time zone of Tokyo."""
    former = spark.conf.get(TIME_ZONE)
    spark.conf.set(TIME_ZONE, "Asia/Tokyo")
    yield spark
    assert former is not None
    spark.conf.set(TIME_ZONE, former)
