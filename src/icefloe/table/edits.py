"""Changes that are recorded step by step and committed at the end of a ``with`` block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from icefloe.commit.result import CommitResult
from icefloe.model.evolution.schema_update import SchemaUpdate
from icefloe.model.evolution.steps import Position, SchemaChange
from icefloe.model.partition.spec_evolution import PartitionUpdate
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Type

U = TypeVar("U", SchemaUpdate, PartitionUpdate)


class CommittedBlock(ABC):
    """A ``with`` block that commits when it ends; ``result`` is then what the commit returned."""

    result: CommitResult | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(failed=kind is not None)

    @abstractmethod
    def _end(self, *, failed: bool) -> None:
        """Commit, unless the block failed."""


class Edit(CommittedBlock, Generic[U]):
    """A schema or partition update. The block commits when it ends, unless it ends with an error."""

    def __init__(self, update: U, land: Callable[[U], CommitResult | None]) -> None:
        self._update: U = update
        self._land: Callable[[U], CommitResult | None] = land
        self._landed = False

    def _end(self, *, failed: bool) -> None:
        if not failed:
            self.commit()

    def commit(self) -> CommitResult | None:
        """Commit the steps, once; without steps nothing happens."""
        if len(self._update.steps) > 0 and not self._landed:
            self._landed = True
            self.result = self._land(self._update)
        return self.result


class SchemaEdit(Edit[SchemaUpdate]):
    """A change of columns. Columns are named by their full dotted names; types are Spark SQL text or a ``Type``.

    >>> from icefloe.model.text.ddl import parse_ddl
    >>> with SchemaEdit(SchemaUpdate(parse_ddl("id int")), lambda update: print(len(update.steps), "steps")) as edit:
    ...     edit.add_column("note", "string")
    ...     edit.rename_column("id", "key")
    2 steps
    """

    def add_column(
        self,
        name: str,
        type: Type | str,
        *,
        required: bool = False,
        doc: str | None = None,
        default: Any = None,
        position: Position | None = None,
    ) -> None:
        """Add a column: ``address.city`` is added to the struct ``address``, or to the struct in a list or map.

        A default needs format version 3. For a name that contains a dot, use ``step`` with an ``AddColumn``.
        """
        self._update = self._update.add_column(
            name, type, required=required, doc=doc, default=default, position=position
        )

    def drop_column(self, column: str) -> None:
        """Remove a column, with everything inside it."""
        self._update = self._update.drop_column(column)

    def rename_column(self, column: str, name: str) -> None:
        """Change the last part of a column's name; ``name`` is that part alone."""
        self._update = self._update.rename_column(column, name)

    def move_first(self, column: str) -> None:
        """Move a column before all others of its struct."""
        self._update = self._update.move_first(column)

    def move_before(self, column: str, other: str) -> None:
        """Move a column directly before another of its struct."""
        self._update = self._update.move_before(column, other)

    def move_after(self, column: str, other: str) -> None:
        """Move a column directly after another of its struct."""
        self._update = self._update.move_after(column, other)

    def update_column(
        self,
        column: str,
        *,
        type: Type | str | None = None,
        doc: str | None = None,
        required: bool | None = None,
    ) -> None:
        """Set a wider type or a comment of a column, or allow nulls with ``required=False``."""
        self._update = self._update.update_column(column, type=type, doc=doc, required=required)

    def set_doc(self, column: str, doc: str | None) -> None:
        """Set the comment of a column, or remove it."""
        self._update = self._update.set_doc(column, doc)

    def set_default(self, column: str, default: Any) -> None:
        """Set the value that writers use for rows without the column, or remove it."""
        self._update = self._update.set_default(column, default)

    def set_identifiers(self, *columns: str) -> None:
        """Set the columns that identify a row, or none."""
        self._update = self._update.set_identifiers(*columns)

    def union_by_name(self, other: Schema | str) -> None:
        """Add columns, widen types and allow nulls until all columns of another schema, or its Spark SQL text, fit."""
        self._update = self._update.union_by_name(other)

    def step(self, *steps: SchemaChange) -> None:
        """Append steps as values, such as an ``AddColumn`` for a name that contains a dot."""
        self._update = self._update.step(*steps)


class PartitionEdit(Edit[PartitionUpdate]):
    """A change of the partitioning."""

    def add(self, text: str, name: str | None = None) -> None:
        """Partition by one more value, such as ``day(ts)``, ``bucket(16, id)`` or a column."""
        self._update = self._update.add(text, name)

    def remove(self, field: str) -> None:
        """Stop partitioning by a field, named by its name or by its transform, such as ``day(ts)``."""
        self._update = self._update.remove(field)

    def rename(self, field: str, name: str) -> None:
        """Rename a partition field."""
        self._update = self._update.rename(field, name)
