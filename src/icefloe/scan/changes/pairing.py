"""How the rows before and after an update are paired (spec: Reserved Field IDs, Identifier Field IDs)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from icefloe.errors import InputError
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.schema import Schema
from icefloe.model.text.text_checks import listed
from icefloe.scan.changes.snapshot_range import SnapshotRange


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatePairs:
    """What identifies a row: the columns ``keys``, or without any its row id."""

    keys: tuple[str, ...] = ()


def update_pairs(metadata: TableMetadata, schema: Schema, keys: Sequence[str] | None) -> UpdatePairs:
    """The given keys, else row ids if the table has row lineage, else the identifier fields of the schema.

    InputError if a key does not exist, or if there is nothing to identify rows by.
    """
    if keys is not None:
        keys = listed(keys, "keys")
        if len(keys) == 0:
            raise InputError("keys=[]: name the columns that identify a row, or leave keys out")
        schema.select(keys)
        return UpdatePairs(keys=keys)
    if metadata.rules.row_lineage:
        return UpdatePairs()
    names = tuple(schema.names[id_] for id_ in schema.identifier_field_ids)
    if len(names) == 0:
        raise InputError(
            f"table {metadata.location}: images=True needs to know which row an update replaced: format version"
            f" {metadata.format_version} has no row ids, and the schema has no identifier fields; give keys=[...], or"
            " upgrade the table to format version 3"
        )
    if any("." in name for name in names):
        raise InputError(
            f"table {metadata.location}: the identifier fields {names} are inside structs; give keys=[...]"
        )
    return UpdatePairs(keys=names)


def check_row_ids(metadata: TableMetadata, between: SnapshotRange) -> None:
    """InputError if rows got their ids within a range: a row that is read with and without an id is not one row."""
    first = () if between.since is None else (between.since,)
    without = next((each for each in (*first, *between.snapshots) if each.first_row_id is None), None)
    if without is not None:
        raise InputError(
            f"table {metadata.location}: net=True cannot pair rows by their row ids here, because those of snapshot"
            f" {without.snapshot_id} have none: it is older than the upgrade to format version 3. Give keys=[...]",
            snapshot_id=without.snapshot_id,
        )
