"""Frames with the columns of a table: which calls into the JVM they take, and the metadata of their columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from py4j.java_gateway import GatewayClient
from py4j.protocol import MEMORY_COMMAND_NAME
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from icefloe.engines.spark.write.conform import conformed
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import INT, LONG, STRING, Field
from icefloe.model.text.spark_schema_json import FIELD_ID

pytestmark = pytest.mark.spark


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commands that are sent to the JVM from now on, without those that release objects of other tests."""
    sent: list[str] = []
    send: Callable[..., Any] = GatewayClient.send_command

    def sending(client: GatewayClient, command: str, *arguments: Any, **named: Any) -> Any:
        if not command.startswith(MEMORY_COMMAND_NAME):
            sent.append(command)
        return send(client, command, *arguments, **named)

    monkeypatch.setattr(GatewayClient, "send_command", sending)
    return sent


def test_a_column_that_matches_takes_few_calls(spark: SparkSession, calls: list[str]) -> None:
    schema = Schema(fields=tuple(Field(100 + number, f"c{number}", INT) for number in range(50)))
    frame = spark.range(1).selectExpr(*(f"cast({number} AS int) AS c{number}" for number in reversed(range(50))))
    assert len(frame.schema) == 50
    calls.clear()
    rows = conformed(frame, schema)
    assert len(calls) < 6 * 50
    assert rows.columns == [f"c{number}" for number in range(50)]
    assert [column.metadata for column in rows.schema] == [{FIELD_ID: 100 + number} for number in range(50)]
    assert rows.first() == tuple(range(50))


def test_metadata_of_the_frame_is_not_kept(spark: SparkSession) -> None:
    frame = spark.range(3).select(F.col("id").alias("id", metadata={"comment": "of another table", FIELD_ID: 7}))
    rows = conformed(frame, Schema(fields=(Field(1, "id", LONG),)))
    assert rows.schema["id"].metadata == {FIELD_ID: 1}


def test_the_id_of_a_column_without_one_reaches_the_plan_that_spark_executes(spark: SparkSession) -> None:
    rows = conformed(spark.range(3).where("id > 0"), Schema(fields=(Field(1, "id", LONG),)))
    executed = rows._jdf.queryExecution().executedPlan().schema().json()
    assert f'"{FIELD_ID}":1' in executed


def test_names_that_differ_in_case_get_those_of_the_table(spark: SparkSession) -> None:
    rows = conformed(spark.range(3).toDF("ID"), Schema(fields=(Field(1, "id", LONG), Field(2, "a.b", STRING))))
    assert [(column.name, column.metadata) for column in rows.schema] == [("id", {FIELD_ID: 1}), ("a.b", {FIELD_ID: 2})]
