"""icefloe: the Iceberg table format in Python, with its data pipeline on Spark through PySpark.

>>> import icefloe
>>> cat = icefloe.catalog("demo")  # doctest: +SKIP
>>> t = cat.create_table("db.orders", schema="id bigint, ts timestamp",
...                      partition_by=["day(ts)"], format_version=4)  # doctest: +SKIP

Names are imported when they are first used, so that ``import icefloe`` alone is quick.
"""

from typing import TYPE_CHECKING, Any

from icefloe.env import VERSION
from icefloe.errors import (
    AlreadyExists,
    CommitFailed,
    CommitStateUnknown,
    ConflictError,
    CorruptFile,
    FormatError,
    IcefloeError,
    InputError,
    LimitError,
    NoSuchFile,
    NoSuchNamespace,
    NoSuchSnapshot,
    NoSuchTable,
    NotFound,
    OutOfMemory,
    StorageError,
    UnsupportedError,
)
from icefloe.lazy import LazyModule

if TYPE_CHECKING:
    from icefloe.commit.result import CommitResult
    from icefloe.expr.filter.nodes import Expr
    from icefloe.inspect.metadata_tables.log_tables import HistoryEntry
    from icefloe.maintenance.compact.compaction_plan import CompactPlan
    from icefloe.maintenance.compact.rewrite_deletes import RewriteDeletesPlan
    from icefloe.maintenance.compact.rewrite_manifests import RewriteManifestsPlan
    from icefloe.maintenance.erase import ErasePlan
    from icefloe.maintenance.expire import ExpirePlan
    from icefloe.maintenance.maintain import MaintainPlan
    from icefloe.maintenance.orphans import OrphanPlan
    from icefloe.maintenance.purge import DropResult
    from icefloe.maintenance.relocate.relocation_plan import RelocatePlan
    from icefloe.model.metadata.snapshots import Ref, Snapshot
    from icefloe.model.partition.sort_order import SortOrder
    from icefloe.model.partition.spec import PartitionSpec
    from icefloe.model.schema.schema import Schema
    from icefloe.model.schema.types import Field
    from icefloe.scan.changes.plan import ChangePlan
    from icefloe.scan.tasks import Plan
    from icefloe.spark_sql.attach import attach, detach
    from icefloe.table.catalog import Catalog, catalog
    from icefloe.table.edits import PartitionEdit, SchemaEdit
    from icefloe.table.inspect import Inspect
    from icefloe.table.merge_builder import MergeBuilder, MergeResult
    from icefloe.table.open import open_table
    from icefloe.table.scan import Scan
    from icefloe.table.snapshot_changes import Changes
    from icefloe.table.table import Table
    from icefloe.table.table_at import TableAt
    from icefloe.table.transaction import Transaction

__version__ = VERSION
__all__ = [
    "AlreadyExists",
    "Catalog",
    "ChangePlan",
    "Changes",
    "CommitFailed",
    "CommitResult",
    "CommitStateUnknown",
    "CompactPlan",
    "ConflictError",
    "CorruptFile",
    "DropResult",
    "ErasePlan",
    "ExpirePlan",
    "Expr",
    "Field",
    "FormatError",
    "HistoryEntry",
    "IcefloeError",
    "InputError",
    "Inspect",
    "LimitError",
    "MaintainPlan",
    "MergeBuilder",
    "MergeResult",
    "NoSuchFile",
    "NoSuchNamespace",
    "NoSuchSnapshot",
    "NoSuchTable",
    "NotFound",
    "OrphanPlan",
    "OutOfMemory",
    "PartitionEdit",
    "PartitionSpec",
    "Plan",
    "Ref",
    "RelocatePlan",
    "RewriteDeletesPlan",
    "RewriteManifestsPlan",
    "Scan",
    "Schema",
    "SchemaEdit",
    "Snapshot",
    "SortOrder",
    "StorageError",
    "Table",
    "TableAt",
    "Transaction",
    "UnsupportedError",
    "attach",
    "catalog",
    "detach",
    "open_table",
]
_MODULES = {  # name -> module that it is imported from when it is first used
    "Catalog": "icefloe.table.catalog",
    "ChangePlan": "icefloe.scan.changes.plan",
    "Changes": "icefloe.table.snapshot_changes",
    "CommitResult": "icefloe.commit.result",
    "CompactPlan": "icefloe.maintenance.compact.compaction_plan",
    "DropResult": "icefloe.maintenance.purge",
    "ErasePlan": "icefloe.maintenance.erase",
    "ExpirePlan": "icefloe.maintenance.expire",
    "Expr": "icefloe.expr.filter.nodes",
    "Field": "icefloe.model.schema.types",
    "HistoryEntry": "icefloe.inspect.metadata_tables.log_tables",
    "Inspect": "icefloe.table.inspect",
    "MaintainPlan": "icefloe.maintenance.maintain",
    "MergeBuilder": "icefloe.table.merge_builder",
    "MergeResult": "icefloe.table.merge_builder",
    "OrphanPlan": "icefloe.maintenance.orphans",
    "PartitionEdit": "icefloe.table.edits",
    "PartitionSpec": "icefloe.model.partition.spec",
    "Plan": "icefloe.scan.tasks",
    "Ref": "icefloe.model.metadata.snapshots",
    "RelocatePlan": "icefloe.maintenance.relocate.relocation_plan",
    "RewriteDeletesPlan": "icefloe.maintenance.compact.rewrite_deletes",
    "RewriteManifestsPlan": "icefloe.maintenance.compact.rewrite_manifests",
    "Scan": "icefloe.table.scan",
    "Schema": "icefloe.model.schema.schema",
    "SchemaEdit": "icefloe.table.edits",
    "Snapshot": "icefloe.model.metadata.snapshots",
    "SortOrder": "icefloe.model.partition.sort_order",
    "Table": "icefloe.table.table",
    "TableAt": "icefloe.table.table_at",
    "Transaction": "icefloe.table.transaction",
    "attach": "icefloe.spark_sql.attach",
    "catalog": "icefloe.table.catalog",
    "detach": "icefloe.spark_sql.attach",
    "open_table": "icefloe.table.open",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'icefloe' has no attribute {name!r}")
    value = globals()[name] = getattr(LazyModule(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
