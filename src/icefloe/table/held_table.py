"""The state that a table object holds, for all of its methods."""

from __future__ import annotations

from collections.abc import Sequence

from icefloe import rows
from icefloe.commit.base import TablePointer
from icefloe.commit.draft import Update
from icefloe.commit.loop import commit
from icefloe.commit.result import CommitResult
from icefloe.env import SYSTEM, Env


class HeldTable:
    """A table by its pointer in a catalog, with the state that was loaded last."""

    def __init__(self, pointer: TablePointer, env: Env = SYSTEM) -> None:
        self._pointer = pointer
        self._env = env

    @property
    def name(self) -> str:
        """The name in the catalog."""
        return str(self._pointer)

    def _target(self, branch: str | None, *, create_branch: bool = False) -> rows.Target:
        base = self._pointer.load()
        name = rows.branch_of(branch, base.metadata, create=create_branch)
        return rows.Target(base=base, env=self._env, branch=name)

    def _commit(self, update: Update | Sequence[Update]) -> CommitResult:
        return commit(self._pointer, update, self._env)
