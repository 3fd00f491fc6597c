"""Data files that somebody else wrote, brought into a table where they lie (spec: Snapshots).

It is an append but for two things. The files are not this library's, so that none of them is ever deleted when the
commit fails. And they may be in the table already, which is looked up on every base that the commit is tried on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from icefloe.commit.draft import State, Work
from icefloe.commit.operations.metadata_update import MetadataUpdate
from icefloe.commit.operations.snapshot_operation import SnapshotOperation, file_locations
from icefloe.commit.resolved import Resolved
from icefloe.errors import ConflictError
from icefloe.model.locations import FILE, S3, parse_location
from icefloe.model.metadata.snapshots import Operation
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.name_mapping import NAME_MAPPING_PROPERTY
from icefloe.scan.lookup import files_at


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginMapping(MetadataUpdate):
    """Give a table its first name mapping; one that another commit gave it means other files, and stays."""

    mapping: str  # the text of the property
    name: str = "set properties"

    def change(self, metadata: TableMetadata, moment: int, work: Work) -> TableMetadata:
        """The table with the mapping."""
        if metadata.properties.get(NAME_MAPPING_PROPERTY, self.mapping) != self.mapping:
            raise ConflictError(
                f"table {metadata.location}: another commit has set the name mapping (property {NAME_MAPPING_PROPERTY})"
                " by which its files are read; look at it and add the files again",
                property=NAME_MAPPING_PROPERTY,
            )
        return metadata.with_properties({NAME_MAPPING_PROPERTY: self.mapping})


@dataclass(frozen=True, slots=True, kw_only=True)
class AddFiles(SnapshotOperation):
    """Add data files by reference; they were checked against a schema and a name mapping, the text of the property."""

    added: pa.Table
    schema_id: int
    mapping: str | None
    operation: Operation = Operation.APPEND

    def resolve(self, state: State) -> Resolved:
        """The table must still mean the same by the columns of the files, and hold none of them."""
        metadata = state.metadata
        mapping = metadata.properties.get(NAME_MAPPING_PROPERTY)
        if metadata.current_schema_id != self.schema_id or mapping != self.mapping:
            raise ConflictError(
                f"table {metadata.location}: another commit changed the schema or the name mapping that the files were"
                " checked against; look at it and add them again"
            )
        known = known_files(state, file_locations(self.added))
        if len(known) > 0:
            raise ConflictError(
                f"table {metadata.location}: another commit has added {known[0]} since", files=list(known[:20])
            )
        return Resolved(added=self.added)


def known_files(state: State, names: Iterable[str]) -> tuple[str, ...]:
    """Those of the files that the table has, under this name or another spelling of it."""
    spelled = {spelling: name for name in names for spelling in spellings(name)}
    found = files_at(state.store, state.metadata, state.head, pa.array(list(spelled), pa.string()))
    return tuple(dict.fromkeys(spelled[location] for location in found["location"].to_pylist()))


def spellings(location: str) -> tuple[str, ...]:
    """The ways in which programs write one location.

    >>> spellings("file:/wh/a.parquet")
    ('file:/wh/a.parquet', '/wh/a.parquet', 'file:///wh/a.parquet')
    >>> "/wh/a.parquet" in spellings("file:///wh//a.parquet")
    True
    >>> spellings("s3a://b/k")
    ('s3a://b/k', 's3n://b/k', 's3://b/k')
    """
    parsed = parse_location(location)
    others: tuple[str, ...] = ()
    if parsed.scheme == FILE and parsed.authority == "":
        paths = (parsed.path, "/" + "/".join(parsed.segments))
        others = tuple(form + path for path in paths for form in ("", "file:", "file://"))
    elif parsed.scheme in S3:
        others = tuple(f"{scheme}://{parsed.authority}{parsed.path}" for scheme in sorted(S3, reverse=True))
    return tuple(dict.fromkeys((location, *others)))
