"""The protocol ``Catalog``: names of tables, and a pointer for each that a commit swaps (spec: Optimistic Concurrency).

A catalog maps the name of a table to the location of its current metadata file. Only ``swap`` moves the pointer. It
returns one of three values, because a failed commit differs from one of unknown outcome: after the first, the files of
the attempt may be deleted; after the second, no file may be deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from icefloe.catalogs.names import Identifier, NameLike
from icefloe.errors import InputError

EXISTS = "exists"  # the JDBC catalog's mark of a namespace without properties


class Pointer(str):
    """A metadata location whose name may be reused for another file; ``mark`` identifies the file.

    It can be used like the plain location. Catalogs that number metadata files return it, because the third version of
    a table that was dropped and recreated has the same name as the third version of the old table.

    >>> Pointer("v3.metadata.json", mark=b"new") == Pointer("v3.metadata.json", mark=b"old")
    True
    >>> same_file(Pointer("v3.metadata.json", mark=b"new"), Pointer("v3.metadata.json", mark=b"old"))
    False
    """

    __slots__ = ("mark",)

    mark: bytes

    def __new__(cls, location: str, mark: bytes) -> Pointer:
        """A location and the mark of its file."""
        made = super().__new__(cls, location)
        made.mark = mark
        return made

    def __getnewargs__(self) -> tuple[str, bytes]:  # type: ignore[override]  # str has no mark
        return str(self), self.mark


def same_file(one: str, other: str) -> bool:
    """Whether two pointers mean the same metadata file; without a mark a location never comes again."""
    return one == other and getattr(one, "mark", None) == getattr(other, "mark", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Swapped:
    """The pointer moved from the expected location to the new one, durably.

    ``pointer`` is where it is now, if the catalog keeps metadata files under names of its own.
    """

    pointer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stale:
    """The pointer certainly did not move: it had another location, or the catalog was busy before any change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """The pointer may have moved, or may still move: delete nothing, and load the table again.

    ``cause`` may be a ``KeyboardInterrupt``; the code that decides the outcome raises it again.
    """

    cause: BaseException


Swap = Swapped | Stale | Unknown


class Pointers(Protocol):
    """What a commit needs from a catalog: the pointer of a table, and its swap."""

    def load(self, identifier: NameLike) -> str:
        """The table's metadata location; ``NoSuchTable`` names the tables with similar names.

        It is a ``Pointer`` where the location may be that of another file later.
        """
        ...

    def swap(self, identifier: NameLike, expected: str, new: str) -> Swap:
        """Move the pointer to ``new`` if it is at ``expected``, which ``load`` returned, as one atomic step.

        A catalog that names metadata files itself stores the file ``new`` under that name, which ``Swapped`` and
        ``load`` return. After an ``IcefloeError`` (``NoSuchTable``, ``StorageError``) the pointer certainly did not
        move; after an interrupt it may have moved.
        """
        ...


class Catalog(Pointers, Protocol):
    """Table names and pointers; implementations are safe to share between threads and usable after a fork.

    Names are dotted text (``"db.orders"``) or tuples (``("db", "orders")``). A table whose own name holds a dot is
    given as a tuple or between backticks (``"db.`orders.v1`"``).
    """

    @property
    def name(self) -> str:
        """The catalog's own name; in shared databases it is part of every key."""
        ...

    @property
    def warehouse(self) -> str | None:
        """The location under which new tables are placed, without a trailing slash."""
        ...

    @property
    def names_locations(self) -> bool:
        """Whether a table's name decides its location, so that no other can be chosen."""
        ...

    def create(self, identifier: NameLike, metadata_location: str) -> None:
        """Enter a new table; ``AlreadyExists``, ``NoSuchNamespace``, or ``CommitStateUnknown``."""
        ...

    def register(self, identifier: NameLike, metadata_location: str) -> None:
        """Enter a table that was written before; the file at ``metadata_location`` stays where it is."""
        ...

    def drop(self, identifier: NameLike) -> str | None:
        """Remove the table from the catalog; returns the location of its last metadata, or None. All files stay."""
        ...

    def rename(self, identifier: NameLike, new_identifier: NameLike) -> None:
        """Give the table another name; its files stay where they are."""
        ...

    def list_tables(self, namespace: NameLike) -> tuple[Identifier, ...]:
        """The tables directly in a namespace, in order of name."""
        ...

    def others(self, identifier: NameLike) -> Mapping[str, str]:
        """The metadata locations of all other tables by name, including other catalogs in the same storage.

        Empty for a catalog with a folder for each table.
        """
        ...

    def create_namespace(self, namespace: NameLike, properties: Mapping[str, str] | None = None) -> None:
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

    def namespace_properties(self, namespace: NameLike) -> Mapping[str, str]:
        """The properties of a namespace."""
        ...

    def set_namespace_properties(
        self, namespace: NameLike, updates: Mapping[str, str], removals: Collection[str] = ()
    ) -> None:
        """Set some properties of a namespace and remove others, in one step; removals may be absent."""
        ...

    def default_location(self, identifier: NameLike) -> str:
        """Where a new table of this name is placed when the caller does not say."""
        ...


class CatalogBase:
    """The name and warehouse of a catalog whose tables may be anywhere."""

    _name: str
    _warehouse: str | None
    names_locations = False

    @property
    def name(self) -> str:
        """The catalog's own name."""
        return self._name

    @property
    def warehouse(self) -> str | None:
        """The location under which new tables are placed."""
        return self._warehouse


def check_properties(updates: Mapping[str, str], removals: Collection[str]) -> None:
    """Refuse properties that are not text, or that are both set and removed."""
    if isinstance(removals, str):
        raise InputError(f"properties to remove are a list of names; write [{removals!r}]", property=removals)
    for key, value in updates.items():
        if not isinstance(key, str) or not isinstance(value, str) or key == "":
            raise InputError(f"property {key!r} = {value!r}: both must be text", property=key)
        if key in removals:
            raise InputError(f"property {key!r} is both set and removed", property=key)
        if key == EXISTS:
            raise InputError(f"property {EXISTS!r} is how databases mark namespaces; pick another name", property=key)
