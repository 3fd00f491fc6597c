"""Adds data files to a table (spec: Snapshots)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from icefloe.commit.draft import Draft, Update, Work
from icefloe.commit.operations.snapshot_operation import AddingOperation
from icefloe.model.entries import concat
from icefloe.model.metadata.snapshots import Operation
from icefloe.tree.file_changes import FileChanges


@dataclass(frozen=True, slots=True, kw_only=True)
class Append(AddingOperation):
    """Adds data files. Never conflicts. A ``fast`` append does not merge manifests."""

    fast: bool = False
    operation: Operation = Operation.APPEND

    def resolve(self, draft: Draft, work: Work) -> FileChanges:
        """The added files."""
        return FileChanges(added=self.added, merge_manifests=not self.fast)


def one_append(steps: Sequence[Update]) -> tuple[Update, ...]:
    """The steps with one append instead of all appends, in the place of the last one.

    Changes of the table between them come before it then. The files of the first appends keep the partition specs that
    they were written with.
    """
    appends = [step for step in steps if isinstance(step, Append)]
    if len(appends) < 2:
        return tuple(steps)
    properties = {key: value for step in appends for key, value in step.properties.items()}
    whole = replace(appends[-1], added=concat([step.added for step in appends]), properties=properties)
    return tuple(
        whole if step is appends[-1] else step for step in steps if step is appends[-1] or not isinstance(step, Append)
    )
