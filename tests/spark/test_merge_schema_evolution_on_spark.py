"""Merges on Spark that add columns: the tests of such merges on Arrow, with DataFrames."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from e2e import test_merge_schema_evolution as on_arrow
from e2e.test_merge_schema_evolution import (  # noqa: F401  # a test that runs here with the fixture below
    test_a_merge_adds_columns_and_fields_that_its_clauses_set,
)
from support.on_spark import on_spark

pytestmark = pytest.mark.spark


@pytest.fixture
def wrap(spark: SparkSession) -> Callable[[Any], Any]:
    """The table or transaction with changes that run on Spark."""
    return lambda changed: on_spark(changed, spark)


@pytest.mark.thorough
def test_columns_are_added_only_if_asked_for_set_and_written(wrap: Callable[[Any], Any], tmp_path: Path) -> None:
    on_arrow.test_columns_are_added_only_if_asked_for_set_and_written(wrap, tmp_path)
