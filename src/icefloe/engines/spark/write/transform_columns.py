"""Transforms as Spark expressions, for partition folders and sort keys (spec: Partition Transforms).

Times are those of UTC, whatever the time zone of the session. Transforms that Spark does not have, or not exactly, are
computed on Arrow arrays in a task.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType

from icefloe.engines.spark.failures import marked
from icefloe.engines.spark.task_python import arrow_function
from icefloe.errors import IcefloeError
from icefloe.model.schema.types import TIMESTAMPTZ, Type
from icefloe.transforms import Transform

_MICROS_PER_DAY = "86400000000L"
_MICROS_PER_HOUR = "3600000000L"


def utc_day(name: str, source: Type) -> Column:
    """The UTC day as a date; casting a local timestamp or a date to a date knows no time zone."""
    if source != TIMESTAMPTZ:
        return F.col(name).cast("date")
    micros = f"unix_micros({name})"
    days = f"({micros} - pmod({micros}, {_MICROS_PER_DAY})) div {_MICROS_PER_DAY}"
    return F.expr(f"date_from_unix_date(cast({days} as int))")


def utc_hour(name: str, source: Type) -> Column:
    """The UTC hour within the day; that of a local timestamp knows no time zone."""
    if source != TIMESTAMPTZ:
        return F.hour(F.col(name))
    return F.expr(f"pmod(unix_micros({name}), {_MICROS_PER_DAY}) div {_MICROS_PER_HOUR}")


def truncated_number(name: str, width: int) -> Column:
    """An integer cut to a multiple of a width, as a decimal wide enough that no value overflows."""
    return F.expr(f"cast({name} as decimal(20, 0)) - pmod(cast({name} as bigint), {width}L)")


def computed(transform: Transform, source: Type, result: DataType, arrow: pa.DataType) -> Callable[[Column], Column]:
    """A transform computed on Arrow arrays in a task, cast to the Arrow type of ``result``."""
    return arrow_function(_on_arrays(transform, source, arrow), result)


def _on_arrays(transform: Transform, source: Type, arrow: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    def apply(values: pa.Array) -> pa.Array:
        try:
            return transform.apply(values, source).cast(arrow)
        except IcefloeError as error:
            raise RuntimeError(marked(type(error), str(error))) from error

    return apply
