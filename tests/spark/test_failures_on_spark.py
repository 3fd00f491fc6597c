"""Errors of icefloe inside exceptions of Spark: people read them there, and icefloe raises them as its own again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import icefloe
from icefloe.engines.spark.failures import marking, recovered, translated
from icefloe.engines.spark.read import file_index
from icefloe.engines.spark.write.conform import VALUE, failure
from icefloe.errors import CorruptFile, InputError

TEXT = "file:///wh/a b.parquet: 3\nlines (of 3)"


def of_a_task(spark: SparkSession, folder: Path) -> DataFrame:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with marking():
            raise CorruptFile(TEXT)
        yield from batches

    return spark.range(1).mapInArrow(work, "id bigint")


def of_an_expression(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.range(3, 4).select(failure(TEXT.replace("3", VALUE, 1), F.col("id")).cast("bigint"))


def of_the_planner(spark: SparkSession, folder: Path) -> DataFrame:
    catalog = icefloe.catalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}/wh")
    table = catalog.create_table("db.t", schema="id bigint")
    table.append(pa.table({"id": [1]}))
    return table.scan().to_spark(spark).groupBy("id").count()


@pytest.mark.parametrize("failing", [of_a_task, of_an_expression, of_the_planner])
def test_an_error_inside_an_exception_of_spark_is_plain_text_and_found_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: Callable[..., DataFrame]
) -> None:
    """Scar: invisible characters around the text, which people copied into searches and logs."""

    def damaged(*_: Any) -> object:
        raise CorruptFile(TEXT)

    monkeypatch.setattr(file_index, "lines", damaged)
    frame = failing(spark, tmp_path)
    with pytest.raises(PySparkException) as raised:
        frame.collect()
    kind = InputError if failing is of_an_expression else CorruptFile
    shown = str(raised.value)
    assert f"icefloe {kind.__name__}: {TEXT}" in shown
    assert [char for char in shown if not (char.isprintable() or char in "\n\t")] == []
    with pytest.raises(kind) as again, translated():
        frame.write.parquet(f"{tmp_path}/rows")
    assert str(again.value) == TEXT


def test_the_end_of_an_error_is_what_spark_adds_to_it() -> None:
    added = [
        "",
        "\n",
        " SQLSTATE: P0001",
        "\n\tat org.apache.spark.Task.run(Task.scala:3)",
        "\n\nDriver stacktrace:",
        "\n\nJVM stacktrace:\norg.apache",
        "\n=== Streaming Query ===\nIdentifier: [id = 1]",
        "\n\nDuring handling of the above exception, another exception occurred:\n",
    ]
    for end in added:
        error = recovered(f"An error occurred: RuntimeError: icefloe CorruptFile: {TEXT}{end}")
        assert (type(error), str(error)) == (CorruptFile, TEXT), end
    assert recovered("icefloe 1.2: done") is None
    assert recovered("icefloe.errors.InputError: of another program") is None
