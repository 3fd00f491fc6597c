"""Adds data files of other programs to a table, without copying them (spec: Snapshots).

This differs from an append in two ways. The files are not deleted if the commit fails, as this library did not write
them. And they may be in the table already, which every attempt checks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from icefloe.commit.draft import Draft, Work
from icefloe.commit.operations.metadata_update import MetadataUpdate
from icefloe.commit.operations.snapshot_operation import SnapshotOperation, file_locations
from icefloe.errors import ConflictError
from icefloe.model.locations import spellings
from icefloe.model.metadata.snapshots import Operation
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.name_mapping import NAME_MAPPING_PROPERTY
from icefloe.scan.lookup import files_at
from icefloe.tree.file_changes import FileChanges


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFirstNameMapping(MetadataUpdate):
    """Sets the name mapping of a table that has none. Conflicts if another commit has set a different one."""

    mapping: str  # the text of the property
    name: str = "set properties"

    def change(self, metadata: TableMetadata, timestamp_ms: int, work: Work) -> TableMetadata:
        """The table with the mapping."""
        if metadata.properties.get(NAME_MAPPING_PROPERTY, self.mapping) != self.mapping:
            raise ConflictError(
                f"table {metadata.location}: another commit has set the name mapping (property {NAME_MAPPING_PROPERTY})"
                "; check it and add the files again",
                property=NAME_MAPPING_PROPERTY,
            )
        return metadata.with_properties({NAME_MAPPING_PROPERTY: self.mapping})


@dataclass(frozen=True, slots=True, kw_only=True)
class AddFiles(SnapshotOperation):
    """Adds data files that were checked against a schema and a name mapping (the text of the table property)."""

    added: pa.Table
    schema_id: int
    mapping: str | None
    operation: Operation = Operation.APPEND

    def resolve(self, draft: Draft, work: Work) -> FileChanges:
        """The added files, if the schema and the name mapping are unchanged and the table has none of the files."""
        metadata = draft.metadata
        mapping = metadata.properties.get(NAME_MAPPING_PROPERTY)
        if metadata.current_schema_id != self.schema_id or mapping != self.mapping:
            raise ConflictError(
                f"table {metadata.location}: another commit changed the schema or the name mapping that the files were"
                " checked against; check them and add the files again"
            )
        known = known_files(draft, self.branch, file_locations(self.added))
        if len(known) > 0:
            raise ConflictError(
                f"table {metadata.location}: another commit has already added {known[0]}", files=list(known[:20])
            )
        return FileChanges(added=self.added)


def known_files(draft: Draft, branch: str, locations: Iterable[str]) -> tuple[str, ...]:
    """Those of the files that the table already has, under the same spelling of their location or another."""
    by_spelling = {spelling: location for location in locations for spelling in spellings(location)}
    tasks = files_at(draft.store, draft.metadata, draft.head(branch), pa.array(list(by_spelling), pa.string()))
    return tuple(dict.fromkeys(by_spelling[location] for location in tasks["location"].to_pylist()))
