"""Replaces all older rows with the same keys, without reading them (spec: Equality Delete Files).

Equality deletes apply to every row with a lower sequence number, whichever commits land in between. Nothing was read,
so there is nothing that other commits could conflict with.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.draft import Draft, Work
from icefloe.commit.operations.snapshot_operation import AddingOperation
from icefloe.errors import ConflictError
from icefloe.model.entries import ContentType, of_type
from icefloe.model.metadata.snapshots import Operation
from icefloe.tree.file_changes import FileChanges


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceKeys(AddingOperation):
    """Adds data files, and equality delete files for the rows that they replace.

    ``specs`` are the partition specs of the table that the deletes were written for. Deletes of a partition do not
    apply to files of other specs, so a spec that was added since is a conflict, unless the deletes are unpartitioned.
    """

    added: pa.Table  # data files and equality delete files
    specs: frozenset[int]
    operation: Operation = Operation.OVERWRITE

    def resolve(self, draft: Draft, work: Work) -> FileChanges:
        """The added files, if the deletes apply to every file of the table."""
        metadata = draft.metadata
        deletes = self.added.filter(of_type(self.added, ContentType.EQUALITY_DELETES))
        used_specs = pc.unique(deletes["partition_spec_id"]).to_pylist()
        partitioned = any(metadata.spec_by_id(spec_id).is_partitioned for spec_id in used_specs)
        new_specs = [spec.spec_id for spec in metadata.specs if spec.spec_id not in self.specs]
        if partitioned and len(new_specs) > 0:
            raise ConflictError(
                f"table {metadata.location}: another commit changed the partitioning, and the equality deletes of this"
                " one do not apply to files of the new partition spec; repeat the operation",
                specs=new_specs,
            )
        return FileChanges(added=self.added)
