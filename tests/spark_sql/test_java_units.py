"""The Java classes for streams are compiled apart: a Spark whose classes for streams differ still runs statements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder
from py4j.protocol import Py4JError
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import icefloe
from icefloe.engines.spark.failures import recovered
from icefloe.engines.spark.java_classes import JavaClasses, java_sources
from icefloe.engines.spark.session import PerJvm
from icefloe.errors import UnsupportedError
from icefloe.spark_sql import sessions

REPO = Path(__file__).resolve().parents[2]
SECONDS = 60
MOVED = "org.apache.spark.sql.connector.read.moved.MicroBatchStream"


def damaged_sources(anchor: str, folder: str = "java") -> dict[str, str]:
    """The sources, made for a Spark whose interface of streams is in another package."""
    texts = java_sources(anchor, folder)
    for name in ("IcefloeStream.java",) if folder.endswith("streams") else ():
        texts[name] = texts[name].replace("org.apache.spark.sql.connector.read.streaming.MicroBatchStream", MOVED)
    return texts


@pytest.fixture
def without_streams(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    """A session with the catalog ``demo``, whose Java classes for streams do not compile."""
    loader = sessions.SQL_CLASSES.of(spark).loader
    source = JavaClasses(source_package="icefloe", package="icefloe", loader=loader).field("DefaultSource", "source")
    before = source.get(None)
    monkeypatch.setattr(sessions, "java_sources", damaged_sources)
    monkeypatch.setattr(sessions, "SQL_CLASSES", PerJvm(sessions.sql_classes))
    session = spark.newSession()
    catalog = icefloe.catalog("demo", uri=f"sqlite:///{tmp_path}/cat.db", warehouse=f"file://{tmp_path}/wh")
    icefloe.attach(session, "demo", catalog)
    yield session
    icefloe.detach(session, "demo")
    source.set(None, before)


def contents(rows: DataFrame) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in rows.collect())


def test_statements_run_without_the_classes_for_streams(without_streams: SparkSession) -> None:
    sql = without_streams.sql
    sql("CREATE TABLE demo.db.t (id bigint, note string)")
    sql("INSERT INTO demo.db.t VALUES (1, 'a'), (2, 'a'), (3, 'a')")
    sql("UPDATE demo.db.t SET note = 'b' WHERE id = 2 OR length(note) > 5")
    sql("DELETE FROM demo.db.t WHERE id = 3")
    source = "(SELECT * FROM VALUES (1L, 'c'), (4L, 'd') AS s(id, note)) s"
    sql(
        f"MERGE INTO demo.db.t t USING {source} ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
        " WHEN NOT MATCHED THEN INSERT *"
    )
    assert contents(sql("SELECT * FROM demo.db.t")) == [(1, "c"), (2, "b"), (4, "d")]
    without_streams.table("demo.db.t").where("id = 4").writeTo("demo.db.t").overwritePartitions()
    assert contents(without_streams.read.format("icefloe").load("demo.db.t")) == [(4, "d")]
    assert len(sql("CALL demo.system.ancestors_of('db.t')").collect()) == 5


def test_a_stream_without_its_classes_fails_with_the_version_of_spark_and_what_is_missing(
    without_streams: SparkSession, tmp_path: Path
) -> None:
    without_streams.sql("CREATE TABLE demo.db.t AS SELECT 1L AS id")
    without_streams.sql("CREATE TABLE demo.db.copy (id bigint)")
    rates = without_streams.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    reads = without_streams.readStream.table("demo.db.t").writeStream.format("noop")
    writes = rates.selectExpr("value AS id").writeStream.option("checkpointLocation", str(tmp_path / "points"))
    for start in (reads.trigger(availableNow=True).start, lambda: writes.trigger(once=True).toTable("demo.db.copy")):
        with pytest.raises((StreamingQueryException, Py4JError)) as failure:
            start().awaitTermination(SECONDS)
        error = recovered(str(failure.value))
        assert isinstance(error, UnsupportedError)
        expected = rf"streams are not available: Spark {re.escape(without_streams.version)}: .*IcefloeStream\.java"
        assert re.match(expected, str(error))
    assert contents(without_streams.table("demo.db.copy")) == []


def test_the_wheel_has_every_java_file() -> None:
    included = {file.distribution_path for file in WheelBuilder(str(REPO)).recurse_included_files()}
    files = {path.relative_to(REPO / "src").as_posix() for path in (REPO / "src").rglob("*.java")}
    assert "icefloe/spark_sql/java/streams/Streams.java" in files
    assert files <= included
