"""The checks of ``Table.verify`` as a list of faults, which tests expect to be empty."""

from __future__ import annotations

from icefloe.commit.base import Base
from icefloe.maintenance.verify.check import Check
from icefloe.maintenance.verify.findings import Finding, Severity
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.tree.store import ManifestStore


def check_table(
    table: Table | Base | tuple[ManifestStore, TableMetadata], *, data: bool = True, rows: bool = False
) -> list[Finding]:
    """All faults of a table, or of metadata and the manifests that it names; empty if there are none.

    All snapshots are checked. Without ``data`` only metadata files are looked for in storage, not data files and their
    deletes. With ``rows`` the rows of data files are compared with their entries. Findings that are only reports are
    left out.

    >>> import icefloe, pyarrow as pa
    >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.check", schema="id bigint", format_version=4)
    >>> result = t.append(pa.table({"id": [1, 2, 3]}))
    >>> check_table(t)
    []
    """
    if isinstance(table, tuple):
        store, metadata = table
        check = Check(store, metadata, files=data, deletes=data, rows=rows)
    else:
        base = pointer_of(table).load() if isinstance(table, Table) else table
        check = Check(base.store, base.metadata, pointer=base.pointer, files=data, deletes=data, rows=rows)
    return [finding for finding in check.findings() if finding.severity is not Severity.INFO]
