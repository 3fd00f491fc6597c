"""The state that a table object holds, for all of its methods."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Self

from icefloe import rows
from icefloe.commit.base import TablePointer
from icefloe.commit.draft import Update
from icefloe.commit.loop import commit
from icefloe.commit.result import CommitResult
from icefloe.env import SYSTEM, Env
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.sort_order import SortOrder
from icefloe.model.partition.spec import PartitionSpec
from icefloe.model.schema.schema import Schema


class HeldTable:
    """A table by its pointer in a catalog, with the state that was loaded last."""

    _settings: rows.WriteSettings = rows.AS_TABLE

    def __init__(self, pointer: TablePointer, env: Env = SYSTEM) -> None:
        self._pointer = pointer
        self._env = env

    def _writing(self, settings: rows.WriteSettings) -> Self:
        """The same table, for changes of rows with settings of their own."""
        other = copy(self)
        other._settings = settings
        return other

    @property
    def name(self) -> str:
        """The name in the catalog."""
        return str(self._pointer)

    @property
    def metadata(self) -> TableMetadata:
        """The metadata of the state that this object holds."""
        return self._pointer.held().metadata

    @property
    def metadata_location(self) -> str:
        """The location of the metadata file, which other Iceberg programs can open."""
        return self._pointer.held().pointer

    @property
    def location(self) -> str:
        """The table's folder."""
        return self.metadata.location

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return self.metadata.schema

    @property
    def spec(self) -> PartitionSpec:
        """The current partition spec."""
        return self.metadata.spec

    @property
    def sort_order(self) -> SortOrder:
        """The sort order that new files are written in.

        >>> import icefloe
        >>> cat = icefloe.catalog("docs", uri="memory://")
        >>> t = cat.create_table("docs.ordered", schema="id bigint, n int", sort_by=["n desc"])
        >>> [(key.source_ids, str(key.direction)) for key in t.sort_order.fields]
        [((2,), 'desc')]
        """
        return self.metadata.sort_order

    def _target(self, branch: str | None, *, create_branch: bool = False) -> rows.Target:
        base = self._pointer.load()
        name = rows.branch_of(branch, base.metadata, create=create_branch)
        return rows.Target(base=base, env=self._env, branch=name, settings=self._settings)

    def _commit(self, update: Update | Sequence[Update]) -> CommitResult:
        return commit(self._pointer, update, self._env)


def pointer_of(table: HeldTable) -> TablePointer:
    """The pointer of a table, for code outside of its class that commits operations or reads files of the table."""
    return table._pointer
