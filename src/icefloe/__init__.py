"""icefloe: the Iceberg table format in Python, with its data pipeline on Spark through PySpark.

>>> import icefloe
>>> cat = icefloe.catalog("demo")  # doctest: +SKIP
>>> t = cat.create_table("db.orders", schema="id bigint, ts timestamp",
...                      partition_by=["day(ts)"], format_version=4)  # doctest: +SKIP
"""

from icefloe.commit.result import CommitResult
from icefloe.env import VERSION
from icefloe.maintenance.purge import DropResult
from icefloe.model.schema.schema import Schema
from icefloe.scan.tasks import Plan
from icefloe.table.catalog import Catalog, catalog
from icefloe.table.merge import MergeResult
from icefloe.table.open import open_table
from icefloe.table.scan import Scan
from icefloe.table.table import Table, TableAt

__version__ = VERSION
__all__ = [
    "Catalog",
    "CommitResult",
    "DropResult",
    "MergeResult",
    "Plan",
    "Scan",
    "Schema",
    "Table",
    "TableAt",
    "catalog",
    "open_table",
]
