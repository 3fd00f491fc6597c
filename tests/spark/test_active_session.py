"""The active session of the user, which operations of icefloe do not replace."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from icefloe.engines.spark.session import child_session, java_class, local_frame
from icefloe.engines.spark.write import write as write_module
from icefloe.engines.spark.write.write import write
from icefloe.io.local import LocalFileIO
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import LONG, Field
from spark.fakes import metadata_of

pytestmark = pytest.mark.spark


def active(spark: SparkSession) -> tuple[object, object]:
    """The active session, in Python and in the JVM."""
    return SparkSession.active(), java_class(spark, "org.apache.spark.sql.classic.SparkSession").active()


def test_a_write_of_many_files_leaves_the_active_session(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_module, "MANY_FILES", 1)
    before = active(spark)
    schema = Schema(fields=(Field(1, "id", LONG),))
    entries = write(spark.range(10).repartition(3), metadata=metadata_of(tmp_path / "t", schema), io=LocalFileIO())
    assert entries.num_rows == 3
    assert active(spark) == before


def test_a_frame_of_local_rows_leaves_the_active_session(spark: SparkSession) -> None:
    before = active(spark)
    assert local_frame(child_session(spark, {}), pa.table({"id": [1, 2]})).count() == 2
    assert active(spark) == before
