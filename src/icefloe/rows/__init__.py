"""Operations on rows: each plans files, lets an engine find or write rows, and returns a change to commit."""

from __future__ import annotations

from icefloe.rows.add_files import add_files
from icefloe.rows.delete import delete
from icefloe.rows.merge import merge
from icefloe.rows.prepared import Prepared, RowChange
from icefloe.rows.target import AS_TABLE, Target, WriteSettings, branch_of
from icefloe.rows.update import update
from icefloe.rows.upsert import upsert
from icefloe.rows.write import append, overwrite, overwrite_partitions

__all__ = [
    "AS_TABLE",
    "Prepared",
    "RowChange",
    "Target",
    "WriteSettings",
    "add_files",
    "append",
    "branch_of",
    "delete",
    "merge",
    "overwrite",
    "overwrite_partitions",
    "update",
    "upsert",
]
