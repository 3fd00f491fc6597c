"""Upgrades a table to a later format version, a change of its metadata only (spec: Appendix E: Format version changes).

Snapshots and files stay as they were written; later versions read what earlier ones wrote.
"""

from __future__ import annotations

from dataclasses import replace

from icefloe.errors import InputError, UnsupportedError
from icefloe.model.metadata.snapshots import Snapshots
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.metadata.version_rules import rules
from icefloe.model.partition.spec_history import with_expressions


def upgraded(metadata: TableMetadata, version: int, *, table_uuid: str | None = None) -> TableMetadata:
    """The table in a later format version; the same table if it has that version.

    ``table_uuid`` is the id to give a table of version 1 that has none. Sequence numbers of version 1 are 0, and so is
    the first row id of a table that becomes version 3 or later. In V4 derived partition values get expressions, with
    ids after those of the columns.
    """
    target, before = rules(version), metadata.rules
    if version == metadata.format_version:
        return metadata
    if version < metadata.format_version:
        raise InputError(
            f"table {metadata.location} has format version {metadata.format_version} and cannot go back to {version}",
            version=version,
        )
    # Lazy snapshots hold the JSON of the earlier version; as values they are encoded again.
    after = replace(metadata, format_version=version, snapshots=Snapshots(tuple(metadata.snapshots)))
    if not before.sequence_numbers:
        after = _numbered(after, table_uuid)
    if target.row_lineage and not before.row_lineage:
        after = replace(after, next_row_id=0)
    return with_expressions(after) if target.expressions else after


def _numbered(table: TableMetadata, table_uuid: str | None) -> TableMetadata:
    """A table of version 1 with the fields that version 2 requires."""
    listless = next((s.snapshot_id for s in table.snapshots if s.root is None), None)
    if listless is not None:
        raise UnsupportedError(
            f"table {table.location}: snapshot {listless} names its manifests itself, which only version 1 can store;"
            " expire it before the upgrade",
            snapshot_id=listless,
        )
    uuid = table.table_uuid if table.table_uuid != "" else table_uuid
    if uuid is None:
        raise InputError(f"table {table.location} has no UUID, which version 2 needs; give it one (table_uuid)")
    snapshots = Snapshots(tuple(replace(snapshot, sequence_number=0) for snapshot in table.snapshots))
    return replace(table, table_uuid=uuid, last_sequence_number=0, snapshots=snapshots)
