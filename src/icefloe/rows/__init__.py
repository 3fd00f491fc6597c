"""Operations on rows: plan, let an engine find or move the rows, and return one operation to commit."""

from __future__ import annotations

from icefloe.rows.append import append
from icefloe.rows.delete import delete
from icefloe.rows.merge import merge
from icefloe.rows.overwrite import overwrite, overwrite_partitions, overwritten
from icefloe.rows.prepared import Prepared
from icefloe.rows.target import Target, branch_of
from icefloe.rows.update import update
from icefloe.rows.upsert import upsert

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
