"""Operations on rows: each plans files, lets an engine find or write rows, and returns a change to commit."""

from __future__ import annotations

from icefloe.rows.delete import delete
from icefloe.rows.merge import merge
from icefloe.rows.prepared import Prepared
from icefloe.rows.target import Target, branch_of
from icefloe.rows.update import update
from icefloe.rows.upsert import upsert
from icefloe.rows.write import append, check_overwrite, overwrite, overwrite_partitions
from icefloe.rows.write_settings import AS_TABLE, WriteSettings

__all__ = [
    "AS_TABLE",
    "Prepared",
    "Target",
    "WriteSettings",
    "append",
    "branch_of",
    "check_overwrite",
    "delete",
    "merge",
    "overwrite",
    "overwrite_partitions",
    "update",
    "upsert",
]
