"""Tables that icefloe's Spark engine and Apache Iceberg change in turns: both read the rows of a model after each step.

A failure shows the steps that led to it; the seed is in the name of the case.
"""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from icefloe.table.catalog import Catalog
from interop.turns_model import Turns, steps_of

pytestmark = pytest.mark.interop
LENGTH = 9


@pytest.mark.parametrize("seed", range(9))  # each version with each file format
def test_both_programs_read_the_rows_of_the_model_after_each_step(
    seed: int, catalog: Catalog, spark: SparkSession
) -> None:
    if "turns" not in catalog.list_namespaces():
        catalog.create_namespace("turns")
    Turns(catalog, spark, f"turns.t{seed}", 1 + seed % 3, seed).run(steps_of(seed, LENGTH))
