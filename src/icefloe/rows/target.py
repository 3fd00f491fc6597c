"""What an operation on rows works on: a branch of a table as it was loaded, and what is final of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import pyarrow as pa

from icefloe.commit.base import Base
from icefloe.commit.draft import head_of
from icefloe.commit.loop import discard
from icefloe.commit.operations.snapshot_operation import file_locations
from icefloe.engines.engine import Horizon
from icefloe.env import Env
from icefloe.errors import InputError
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Expr
from icefloe.io.file_io import FileIO
from icefloe.model.metadata.snapshots import MAIN, Ref, Snapshot, ref_problem
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.scan.plan import plan_scan
from icefloe.scan.tasks import Plan


def branch_of(branch: str | None) -> str:
    """The branch that a caller means: main if none is named; InputError if it can be no branch.

    >>> branch_of(None)
    'main'
    """
    name = MAIN if branch is None else branch
    problem = ref_problem(name, Ref(snapshot_id=0))
    if problem is not None:
        raise InputError(f"branch {name!r}: {problem}", ref=name)
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A branch to change; ``horizon`` says what of its row lineage is final, inside of a commit under way."""

    base: Base
    env: Env
    branch: str = MAIN
    horizon: Horizon | None = None

    @property
    def io(self) -> FileIO:
        """The files of the table."""
        return self.base.store.io

    @property
    def metadata(self) -> TableMetadata:
        """The table as it was loaded."""
        return self.base.metadata

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties of the table."""
        return self.base.metadata.properties

    @property
    def head(self) -> Snapshot | None:
        """The snapshot that is read."""
        return head_of(self.base.metadata, self.branch)

    @property
    def settled(self) -> int | None:
        """Row ids below this one are final; none where rows have no ids."""
        return self.metadata.next_row_id if self.horizon is None else self.horizon.next_row_id

    def plan(self, where: Expr = ALWAYS_TRUE) -> Plan:
        """The files that may hold rows that match, read in terms of the current columns, as they will be written.

        All of them have a number of rows, because it decides whether a file leaves with its last row.
        """
        plan = plan_scan(self.base.store, self.metadata, self.head, filter=where, schema=self.metadata.schema)
        return plan.counted(self.io)


class Scratch(AbstractContextManager["Scratch"]):
    """Files that are written for an operation; they are deleted again if it cannot be prepared."""

    def __init__(self, io: FileIO) -> None:
        self._io = io
        self._written: list[str] = []

    def keep(self, entries: pa.Table) -> pa.Table:
        """Entries of new files, as they are."""
        self._written.extend(file_locations(entries))
        return entries

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            discard(self._io, self._written)
