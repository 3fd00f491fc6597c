"""Transforms that Spark does not have, or not exactly, computed on Arrow arrays in a task (spec: Partition Transforms).

The Spark SQL of other transforms is part of the transform: ``spark_key`` and ``spark_folder``.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.types import DataType

from icefloe.engines.spark.failures import marking
from icefloe.engines.spark.task_python import arrow_function
from icefloe.model.schema.types import Type
from icefloe.transforms import Transform


def computed(transform: Transform, source: Type, result: DataType, arrow: pa.DataType) -> Callable[[Column], Column]:
    """A transform computed on Arrow arrays in a task, cast to the Arrow type of ``result``."""
    return arrow_function(_on_arrays(transform, source, arrow), result)


def _on_arrays(transform: Transform, source: Type, arrow: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    def apply(values: pa.Array) -> pa.Array:
        with marking():
            return transform.apply(values, source).cast(arrow)

    return apply
