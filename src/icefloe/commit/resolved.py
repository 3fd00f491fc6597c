"""What an update means on one base: entries that come, and planned files and deletes that leave."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.model.entries import empty
from icefloe.scan.tasks import TASK
from icefloe.tree.change import Change
from icefloe.tree.locate import PLACE

_NO_TASKS, _NO_PLACES = TASK.empty_table(), PLACE.empty_table()  # made once, as an empty table takes a while too


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """The change of the tree, and the planned rows of what leaves, for the summary."""

    added: pa.Table = field(default_factory=empty)
    removed: pa.Table = field(default_factory=lambda: _NO_TASKS)  # tasks of data files that leave
    replaced: pa.Table = field(default_factory=lambda: _NO_TASKS)  # tasks of data files whose vector is replaced
    dropped: pa.Table = field(default_factory=empty)  # entries of delete files that leave, with manifest
    merge: bool = True  # whether small manifests may be merged in passing

    def change(self) -> Change:
        """The change of the tree: a data file takes its deletion vector along."""
        columns = ["location", "dv_manifest", "dv_ordinal"]
        touched = [t for t in (self.removed, self.replaced) if t.num_rows > 0]
        leaving = [t.filter(pc.is_valid(t["dv_location"])).select(columns) for t in touched]
        vectors = _NO_PLACES if len(leaving) == 0 else pa.concat_tables(leaving).rename_columns(PLACE.names)
        return Change(
            added=self.added,
            removed=self.removed.select(PLACE.names) if self.removed.num_rows > 0 else _NO_PLACES,
            replaced=vectors,
            dropped=self.dropped.select(PLACE.names) if self.dropped.num_rows > 0 else _NO_PLACES,
            merge=self.merge,
        )
