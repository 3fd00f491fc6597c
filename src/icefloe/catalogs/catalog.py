"""What the library asks of a catalog: names, and a pointer per table with check-and-put (spec: Optimistic Concurrency).

A catalog maps a table's name to the location of its current metadata file. ``swap`` is the only way to move the
pointer, and its answer is a value with three cases, because "the commit failed" and "nobody knows" must never be mixed
up: after the first the files of the attempt may be deleted, after the second nothing may.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from icefloe.catalogs.names import Identifier, NameLike


@dataclass(frozen=True, slots=True, kw_only=True)
class Swapped:
    """The pointer moved from the expected location to the new one, durably."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stale:
    """Proved not moved: the pointer was elsewhere, or the catalog was busy before anything was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """The pointer may or may not have moved, now or later: delete nothing, load again and look.

    ``cause`` may be a ``KeyboardInterrupt``; whoever settles the outcome raises it again.
    """

    cause: BaseException


Swap = Swapped | Stale | Unknown


class Catalog(Protocol):
    """Table names and pointers; implementations are safe to share between threads and usable after a fork.

    Names are dotted text (``"db.orders"``) or tuples (``("db", "orders")``).
    """

    @property
    def name(self) -> str:
        """The catalog's own name; in shared databases it is part of every key."""
        ...

    @property
    def warehouse(self) -> str | None:
        """The location under which new tables are placed, without a trailing slash."""
        ...

    def load(self, identifier: NameLike) -> str:
        """The table's metadata location; ``NoSuchTable`` names the tables with similar names."""
        ...

    def create(self, identifier: NameLike, metadata_location: str) -> None:
        """Enter a new table; ``AlreadyExists``, ``NoSuchNamespace``, or ``CommitStateUnknown``."""
        ...

    def swap(self, identifier: NameLike, expected: str, new: str) -> Swap:
        """Move the pointer to ``new`` if it is at ``expected``, as one atomic step.

        An ``IcefloeError`` (``NoSuchTable``, ``StorageError``) proves that nothing moved; an interrupt proves nothing.
        """
        ...

    def drop(self, identifier: NameLike) -> None:
        """Forget the table; its files stay."""
        ...

    def rename(self, identifier: NameLike, new_identifier: NameLike) -> None:
        """Give the table another name; its files stay where they are."""
        ...

    def list_tables(self, namespace: NameLike) -> tuple[Identifier, ...]:
        """The tables directly in a namespace, in order of name."""
        ...

    def create_namespace(self, namespace: NameLike) -> None:
        """Create a namespace; ``AlreadyExists`` if there is one."""
        ...

    def drop_namespace(self, namespace: NameLike) -> None:
        """Remove a namespace that holds nothing; ``InputError`` if it holds something."""
        ...

    def namespace_exists(self, namespace: NameLike) -> bool:
        """Whether the namespace was created, or holds a table or a namespace that was."""
        ...

    def list_namespaces(self, parent: NameLike = ()) -> tuple[Identifier, ...]:
        """The namespaces one level below ``parent``, or the top ones, in order of name."""
        ...

    def default_location(self, identifier: NameLike) -> str:
        """Where a new table of this name is placed when the caller does not say."""
        ...
