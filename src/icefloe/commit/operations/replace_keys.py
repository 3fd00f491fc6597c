"""Rows put in the place of all older ones with the same keys, without looking at those (spec: Equality Delete Files).

The deletes apply to every row that is older than the snapshot, whenever that lands: nothing was read, so nothing that
others commit can be in the way.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.draft import State
from icefloe.commit.operations.snapshot_operation import SnapshotOperation, file_locations
from icefloe.commit.resolved import Resolved
from icefloe.errors import ConflictError
from icefloe.model.entries import ContentType, of_type
from icefloe.model.metadata.snapshots import Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceKeys(SnapshotOperation):
    """Add data files, and equality delete files for what they replace; ``specs`` are those the deletes were made for.

    Deletes of a partition reach no file of another spec. So one that came since is a conflict, unless the deletes are
    about the whole table.
    """

    added: pa.Table  # data files and equality delete files
    specs: frozenset[int]
    operation: Operation = Operation.OVERWRITE

    @property
    def files(self) -> tuple[str, ...]:
        """Data files and delete files."""
        return file_locations(self.added)

    def resolve(self, state: State) -> Resolved:
        """The deletes must reach every file of the table."""
        metadata = state.metadata
        deletes = self.added.filter(of_type(self.added, ContentType.EQUALITY_DELETES))
        scoped = [id_ for id_ in pc.unique(deletes["partition_spec_id"]).to_pylist() if _is_scoped(state, id_)]
        since = [spec.spec_id for spec in metadata.specs if spec.spec_id not in self.specs]
        if len(scoped) > 0 and len(since) > 0:
            raise ConflictError(
                f"table {metadata.location}: another commit changed the partitioning, and the equality deletes of this"
                " one do not reach files that are partitioned so; repeat the operation",
                specs=since,
            )
        return Resolved(added=self.added)


def _is_scoped(state: State, spec_id: int) -> bool:
    return state.metadata.spec_by_id(spec_id).is_partitioned
