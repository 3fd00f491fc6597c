"""Changes that are written down step by step and committed at the end of a ``with`` block."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from icefloe.commit.result import CommitResult
from icefloe.model.evolution.schema_update import SchemaUpdate
from icefloe.model.partition.update import PartitionUpdate

U = TypeVar("U", SchemaUpdate, PartitionUpdate)


class Edit(Generic[U]):
    """A schema or partition update under way: it has every method of the update, and keeps what they return.

    The block commits when it ends, unless it ends with an error; ``result`` then says what was done.

    >>> from icefloe.model.text.ddl import parse_ddl
    >>> with Edit(SchemaUpdate(parse_ddl("id int")), lambda update: print(len(update.steps), "steps")) as edit:
    ...     edit.add_column("note", "string")
    ...     edit.rename_column("id", "key")
    2 steps
    """

    def __init__(self, update: U, land: Callable[[U], CommitResult | None]) -> None:
        self._update: U = update
        self._land: Callable[[U], CommitResult | None] = land
        self._landed = False
        self.result: CommitResult | None = None

    def __getattr__(self, name: str) -> Any:
        step = getattr(self._update, name)
        if not callable(step):
            return step

        def then(*arguments: Any, **options: Any) -> None:
            self._update = step(*arguments, **options)

        return then

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.commit()

    def commit(self) -> CommitResult | None:
        """Commit the steps, once; without steps nothing happens."""
        if len(self._update.steps) > 0 and not self._landed:
            self._landed = True
            self.result = self._land(self._update)
        return self.result
