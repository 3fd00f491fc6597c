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
    from icefloe.inspect.history import HistoryEntry
    from icefloe.maintenance.purge import DropResult
    from icefloe.model.metadata.snapshots import Ref, Snapshot
    from icefloe.model.schema.schema import Schema
    from icefloe.scan.tasks import Plan
    from icefloe.spark_sql.attach import attach, detach
    from icefloe.table.catalog import Catalog, catalog
    from icefloe.table.edits import PartitionEdit, SchemaEdit
    from icefloe.table.inspect import Inspect
    from icefloe.table.merge import MergeBuilder, MergeResult
    from icefloe.table.open import open_table
    from icefloe.table.scan import Scan
    from icefloe.table.table import Table
    from icefloe.table.table_at import TableAt
    from icefloe.table.transaction import Transaction

__version__ = VERSION
__all__ = [
    "AlreadyExists",
    "Catalog",
    "CommitFailed",
    "CommitResult",
    "CommitStateUnknown",
    "ConflictError",
    "CorruptFile",
    "DropResult",
    "FormatError",
    "HistoryEntry",
    "IcefloeError",
    "InputError",
    "Inspect",
    "LimitError",
    "MergeBuilder",
    "MergeResult",
    "NoSuchFile",
    "NoSuchNamespace",
    "NoSuchSnapshot",
    "NoSuchTable",
    "NotFound",
    "OutOfMemory",
    "PartitionEdit",
    "Plan",
    "Ref",
    "Scan",
    "Schema",
    "SchemaEdit",
    "Snapshot",
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
    "CommitResult": "icefloe.commit.result",
    "DropResult": "icefloe.maintenance.purge",
    "HistoryEntry": "icefloe.inspect.history",
    "Inspect": "icefloe.table.inspect",
    "MergeBuilder": "icefloe.table.merge",
    "MergeResult": "icefloe.table.merge",
    "PartitionEdit": "icefloe.table.edits",
    "Plan": "icefloe.scan.tasks",
    "Ref": "icefloe.model.metadata.snapshots",
    "Scan": "icefloe.table.scan",
    "Schema": "icefloe.model.schema.schema",
    "SchemaEdit": "icefloe.table.edits",
    "Snapshot": "icefloe.model.metadata.snapshots",
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
