"""A Spark with Hadoop's file system for S3, which Maven fetches on first use, and a catalog on the S3 server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import icefloe
from icefloe.table.catalog import Catalog
from support.jars import s3a_classpath
from support.servers.s3 import S3Server
from support.servers.spark import local_spark


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local Spark that starts failed tasks again; nothing in its settings leads to the server."""
    if SparkSession.getActiveSession() is not None:
        pytest.skip("this process has a Spark without hadoop-aws; run make spark-s3")
    folder = tmp_path_factory.mktemp("spark-s3")
    with local_spark(folder, "local[2, 3]", {"spark.jars": s3a_classpath()}) as session:
        yield session


@pytest.fixture
def warehouse(s3: S3Server) -> str:
    """A location in a new bucket."""
    return f"s3://{s3.new_bucket()}/wh"


@pytest.fixture
def lake(s3: S3Server, warehouse: str, tmp_path: Path) -> Catalog:
    """A catalog whose properties alone say how the server is reached."""
    return icefloe.catalog(
        "lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=warehouse, properties=s3.properties
    )
