"""The files that an operation adds to a table and removes from it, from the row operation to the metadata tree."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.model.entries import ContentType, concat, count, empty, of_type
from icefloe.model.metadata.snapshots import Operation

# The columns of scan tasks that describe a planned data file, its deletion vector, and where both are listed.
PLANNED_FILE = pa.schema(
    [
        pa.field("location", pa.string()),
        pa.field("file_size_in_bytes", pa.int64()),
        pa.field("record_count", pa.int64()),
        pa.field("partition_spec_id", pa.int32()),
        pa.field("dv_location", pa.string()),  # null if the file has no deletion vector
        pa.field("dv_size_in_bytes", pa.int64()),
        pa.field("dv_cardinality", pa.int64()),
        pa.field("manifest", pa.string()),  # the leaf that lists the file; null if the root does, or if it is not known
        pa.field("ordinal", pa.int64()),
        pa.field("dv_manifest", pa.string()),  # the same for the deletion vector
        pa.field("dv_ordinal", pa.int64()),
    ]
)
_NO_FILES = PLANNED_FILE.empty_table()  # one for all: making an empty table takes a while


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChanges:
    """The files that an operation adds and removes.

    ``removed`` and ``revectored`` are scan tasks, with at least the columns of ``PLANNED_FILE``.
    """

    added: pa.Table = field(default_factory=empty)  # entries of data files, deletion vectors and delete files
    removed: pa.Table = field(default_factory=lambda: _NO_FILES)  # data files; their deletion vectors go with them
    revectored: pa.Table = field(default_factory=lambda: _NO_FILES)  # data files whose deletion vector is replaced
    removed_deletes: pa.Table = field(default_factory=empty)  # entries of delete files, with column ``manifest``
    referenced: tuple[str, ...] = ()  # data files that added position delete files name, besides ``referenced_file``
    merge_manifests: bool = True  # whether the commit may merge and rewrite small manifests

    @property
    def only_adds(self) -> bool:
        """Whether nothing is removed."""
        return all(table.num_rows == 0 for table in (self.removed, self.revectored, self.removed_deletes))

    @property
    def operation(self) -> Operation:
        """The operation for the summary of a snapshot: rows are added, deleted, or both."""
        data_files = count(of_type(self.added, ContentType.DATA))
        if data_files == 0:
            return Operation.DELETE
        return Operation.APPEND if data_files == self.added.num_rows and self.only_adds else Operation.OVERWRITE

    @property
    def with_old_vectors(self) -> pa.Table:
        """The removed and revectored files that have a deletion vector, which is removed; columns ``PLANNED_FILE``."""
        files = [table.select(PLANNED_FILE.names) for table in (self.removed, self.revectored) if table.num_rows > 0]
        if len(files) == 0:
            return _NO_FILES
        every = pa.concat_tables(files)
        return every.filter(pc.is_valid(every["dv_location"]))

    def combined(self, other: FileChanges) -> FileChanges:
        """The changes of both."""
        return FileChanges(
            added=concat([self.added, other.added]),
            removed=_concat(self.removed, other.removed),
            revectored=_concat(self.revectored, other.revectored),
            removed_deletes=_concat(self.removed_deletes, other.removed_deletes),
            referenced=(*self.referenced, *other.referenced),
            merge_manifests=self.merge_manifests and other.merge_manifests,
        )

    def with_added(self, entries: pa.Table) -> FileChanges:
        """The changes with further new files, before those already added."""
        return replace(self, added=concat([entries, self.added]))


def _concat(one: pa.Table, other: pa.Table) -> pa.Table:
    if one.num_rows == 0 or other.num_rows == 0:
        return other if one.num_rows == 0 else one
    return pa.concat_tables([one, other], promote_options="permissive")
