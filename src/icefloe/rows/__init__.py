"""Operations on rows: each plans files, lets an engine find or write rows, and returns a change to commit."""

from __future__ import annotations

from icefloe.rows.delete import delete
from icefloe.rows.merge import merge
from icefloe.rows.prepared import Prepared
from icefloe.rows.target import Target, branch_of
from icefloe.rows.update import update
from icefloe.rows.upsert import upsert
from icefloe.rows.write import append, overwrite, overwrite_filter, overwrite_partitions

__all__ = [
    "Prepared",
    "Target",
    "append",
    "branch_of",
    "delete",
    "merge",
    "overwrite",
    "overwrite_filter",
    "overwrite_partitions",
    "update",
    "upsert",
]
