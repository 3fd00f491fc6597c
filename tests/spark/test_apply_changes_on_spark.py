"""Change data on Spark: the tests of change data on Arrow, with DataFrames."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from e2e import test_apply_changes as on_arrow
from e2e.test_apply_changes import (  # noqa: F401  # tests that run here with the fixture below
    test_a_late_change_does_not_bring_a_deleted_row_back,
    test_batches_in_any_order_and_number_leave_the_last_state,
    test_changes_that_cannot_be_ordered_are_refused,
    test_chosen_columns_alone_are_set,
)
from support.on_spark import on_spark

pytestmark = pytest.mark.spark


@pytest.fixture
def wrap(spark: SparkSession) -> Callable[[Any], Any]:
    """The table or transaction with changes that run on Spark."""
    return lambda changed: on_spark(changed, spark)


def test_changes_are_applied_once_by_key_and_together_with_other_operations(
    wrap: Callable[[Any], Any], tmp_path: Path
) -> None:
    on_arrow.test_changes_are_applied_once_by_key_and_together_with_other_operations(wrap, tmp_path)
