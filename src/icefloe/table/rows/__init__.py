"""Operations on rows: plan, let an engine find or move the rows, and make one intent of it."""

from __future__ import annotations

from icefloe.table.rows.add import append
from icefloe.table.rows.delete import delete
from icefloe.table.rows.merge import merge
from icefloe.table.rows.overwrite import overwrite, overwrite_partitions, overwritten
from icefloe.table.rows.prepared import Prepared
from icefloe.table.rows.target import Target, branch_of
from icefloe.table.rows.update import update
from icefloe.table.rows.upsert import upsert

__all__ = [
    "Prepared",
    "Target",
    "append",
    "branch_of",
    "delete",
    "merge",
    "overwrite",
    "overwrite_partitions",
    "overwritten",
    "update",
    "upsert",
]
