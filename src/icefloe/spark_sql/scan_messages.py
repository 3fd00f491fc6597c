"""The calls about scans of tables, and what answers them."""

from __future__ import annotations

from typing import Literal

import msgspec

from icefloe.spark_sql.conditions import Node


class ScanCall(msgspec.Struct, frozen=True, kw_only=True, tag_field="call"):
    """A call about a scan."""

    handle: str
    options: dict[str, str]


class PlanScan(ScanCall, frozen=True, kw_only=True, tag="plan scan"):
    """The plan of a scan; the call passes the session, and the answer is a logical plan."""

    columns: tuple[str, ...]
    filters: tuple[Node, ...] = ()  # parts of a conjunction, which the query applies to the rows
    operation: str | None = None  # the id of the row change that reads


class AggregateCall(msgspec.Struct, frozen=True, kw_only=True):
    """A count, minimum or maximum: of a column, or a count of all rows."""

    function: Literal["count", "min", "max"]
    column: str | None = None


class PlanAggregates(ScanCall, frozen=True, kw_only=True, tag="plan aggregates"):
    """The plan of aggregates of a scan; the call passes the session, and the answer is a logical plan or nothing.

    The columns of the plan are the grouping columns, then the aggregates. ``where`` are parts of a conjunction.
    """

    where: tuple[Node, ...]
    groups: tuple[str, ...]
    aggregates: tuple[AggregateCall, ...]


class EstimateScan(ScanCall, frozen=True, kw_only=True, tag="estimate scan"):
    """What a scan reads of the files that its filters leave; ``columns`` are those that Spark asks about."""

    columns: tuple[str, ...]
    filters: tuple[Node, ...]


class ColumnEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a column. Bounds are texts of the values as Spark stores them."""

    nulls: int | None = None
    least: str | None = None
    greatest: str | None = None
    distinct: int | None = None


class ScanEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """Rows and bytes of the files of a scan."""

    rows: int | None
    size_bytes: int
    columns: dict[str, ColumnEstimate]
