"""What an engine needs to read the rows that changed between two snapshots."""

from __future__ import annotations

from dataclasses import dataclass

from icefloe.commit.base import Base
from icefloe.errors import InputError
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Expr
from icefloe.io.file_io import FileIO
from icefloe.scan.changes.pairing import UpdatePairs
from icefloe.scan.changes.plan import ChangePlan
from icefloe.scan.changes.planner import plan_changes
from icefloe.scan.changes.snapshot_range import SnapshotRange


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRequest:
    """The changes of the rows that match ``filter``, with ``columns`` or all of them.

    With ``net`` the changes of all snapshots are folded into one. ``pairs`` says how the rows before and after an
    update are paired; without it an update is a deleted and an inserted row.
    """

    base: Base
    between: SnapshotRange
    filter: Expr = ALWAYS_TRUE
    columns: tuple[str, ...] | None = None
    net: bool = False
    pairs: UpdatePairs | None = None

    @property
    def io(self) -> FileIO:
        """The storage of the files."""
        return self.base.store.io

    def plan(self) -> ChangePlan:
        """The files to read, by snapshot."""
        return plan_changes(
            self.base.store,
            self.base.metadata,
            self.between,
            filter=self.filter,
            columns=self.columns,
            table=self.base.name,
        )


def repeated_key(key: object) -> InputError:
    """The error for a key that several deleted or several inserted rows have, so that it identifies no row."""
    return InputError(
        f"changes: images=True pairs rows by their key, but several changed rows have the key {key}; give keys= that"
        " identify a row",
        key=key,
    )
