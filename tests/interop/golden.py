"""Tables that other programs wrote, kept as files: where they are, and what icefloe plans and reads of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from icefloe.codecs.json.table_metadata import decode_metadata
from icefloe.codecs.manifest.context import manifest_context
from icefloe.engines.arrow.read.plan_reader import read_plan
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Expr
from icefloe.io.local import LocalFileIO
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.scan.plan import plan_scan
from icefloe.scan.tasks import Plan
from icefloe.tree.store import ManifestCache, ManifestStore

OF_VERSION_1 = "iceberg_v1_repro/repro/merch_v1"
NAME_MAPPING = "name_mapping/warehouse_1/mydb/t1"
LINEITEM = "iceberg/lineitem_iceberg"
TABLES = (  # by their folders
    "add_columns_with_defaults/default.db/add_columns_with_defaults",
    "case_sensitive_names/default.db/case_sensitive_names",
    "column_mapping/warehouse/default.db/my_table",
    "equality_deletes/warehouse/mydb/mytable",
    "equality_deletes/warehouse/mydb/mytable_partitioned",
    "expression_filter",
    "hive_partitioned_table",
    LINEITEM,
    OF_VERSION_1,
    NAME_MAPPING,
    "null_stats/default/test_nulls",
    "partition_bigint",
    "partition_binary",
    "partition_decimal_bigint",
    "partition_decimal_integer",
    "partition_double",
    "partition_timestamp/default.db/partition_timestamp",
    "uuid",
)


class Relative(LocalFileIO):
    """Local files named relative to the working folder, which icefloe itself does not take."""

    def read(self, location: str, limit: int | None = None) -> bytes:
        return super().read(absolute(location), limit)

    def arrow_path(self, location: str) -> tuple[Any, str]:
        return super().arrow_path(absolute(location))


def absolute(location: str) -> str:
    return location if ":" in location or location.startswith("/") else str(Path.cwd() / location)


def metadata_files(table: str) -> list[str]:
    return sorted(map(str, Path("data/persistent", table, "metadata").glob("*.metadata.json")))


def metadata_of(file: str) -> TableMetadata:
    return decode_metadata(Path(file).read_bytes(), where=file)


def has_root(snapshot: Snapshot | None) -> bool:
    """Whether the manifests of a snapshot are still there: of some older ones they are gone."""
    return snapshot is not None and Path(snapshot.root_location).exists()


def plan_of(
    metadata: TableMetadata,
    filter_: Expr = ALWAYS_TRUE,
    columns: Sequence[str] | None = None,
    snapshot: Snapshot | None = None,
) -> Plan:
    """The plan of a snapshot, by default the current one."""
    store = ManifestStore(Relative(), manifest_context(metadata), ManifestCache())
    chosen = metadata.current_snapshot if snapshot is None else snapshot
    return plan_scan(store, metadata, chosen, filter=filter_, columns=columns)


def read(
    metadata: TableMetadata,
    filter_: Expr = ALWAYS_TRUE,
    columns: Sequence[str] | None = None,
    snapshot: Snapshot | None = None,
) -> pa.Table:
    """The rows of a snapshot, by default the current one."""
    return read_plan(Relative(), plan_of(metadata, filter_, columns, snapshot)).read_all()
