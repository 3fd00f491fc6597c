"""Tables that icefloe's Spark engine and Apache Iceberg change in turns: both read the rows of a model after each step.

A failure shows the steps that led to it; the seed is in the name of the case.
"""

from __future__ import annotations

import random

import pytest
from pyspark.sql import SparkSession

from icefloe.table.catalog import Catalog
from interop.turns_model import Turns

pytestmark = pytest.mark.interop
LENGTH = 12


@pytest.mark.parametrize("seed", range(6))
def test_both_programs_read_the_rows_of_the_model_after_each_step(
    seed: int, catalog: Catalog, spark: SparkSession
) -> None:
    if "turns" not in catalog.list_namespaces():
        catalog.create_namespace("turns")
    Turns(catalog, spark, f"turns.t{seed}", 1 + seed % 3, random.Random(seed)).run(LENGTH)
