"""A mutable schema, used inside one call of ``evolve``: its fields by id and by full name (spec: Schema Evolution).

It keeps names unique; which changes are allowed is decided in ``evolve``. Fields are stored separately, so that the
cost of a step depends only on the fields that it changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from icefloe.errors import InputError
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field, children, is_primitive, with_children

TABLE = None  # the owner of top-level columns


class Draft:
    """The fields of a schema while they change; ``build`` returns the changed fields."""

    def __init__(self, schema: Schema) -> None:
        self._fields: dict[int, Field] = {}
        self._owners: dict[int, int | None] = {}
        self._inside: dict[int | None, list[int]] = {TABLE: []}
        self._ids: dict[str, int] = {}
        self._lowered: dict[str, list[str]] = {}
        for field in schema.fields:
            self._take(field, TABLE)
        for name, field_id in ((name, field.id) for name, field in schema.by_name.items()):
            self._enter(name, field_id)

    def field(self, field_id: int) -> Field:
        """The field of an id; the fields inside a nested type are those of ``inside``, not of its type."""
        return self._fields[field_id]

    def has(self, field_id: int) -> bool:
        """Whether a field is still there."""
        return field_id in self._fields

    def find(self, name: str) -> int | None:
        """The id of a full name."""
        return self._ids.get(name)

    def name(self, field_id: int) -> str:
        """The full name of an id."""
        parts = [self._fields[field_id].name]
        while (owner := self._owners[field_id]) is not None:
            field_id = owner
            parts.append(self._fields[field_id].name)
        return ".".join(reversed(parts))

    def names(self) -> list[str]:
        """Every full name."""
        return list(self._ids)

    def owner(self, field_id: int) -> int | None:
        """The id of the field around a field; ``TABLE`` for a top-level column."""
        return self._owners[field_id]

    def owners(self, field_id: int) -> Iterator[int]:
        """The ids of the field and of the fields around it, from the inside out."""
        inner: int | None = field_id
        while inner is not None:
            yield inner
            inner = self._owners[inner]

    def inside(self, owner: int | None) -> list[int]:
        """The ids directly inside a field, in order."""
        return list(self._inside[owner])

    def subtree(self, field_id: int) -> list[int]:
        """The id of a field and of everything inside it."""
        ids = [field_id]
        for inner in ids:  # grows during the loop
            ids.extend(self._inside[inner])
        return ids

    def add(self, owner: int | None, field: Field) -> None:
        """Append a field, with its nested fields, to its struct."""
        self._take(field, owner)
        self._enter_all(field.id)

    def drop(self, field_id: int) -> None:
        """Remove a field, with everything inside it."""
        self._leave_all(field_id)
        self._inside[self._owners[field_id]].remove(field_id)
        for inner in self.subtree(field_id):
            del self._fields[inner], self._owners[inner], self._inside[inner]

    def change(self, field: Field) -> None:
        """Replace the field of the same id, with the same name and the same kind of type."""
        self._fields[field.id] = field

    def retype(self, field: Field) -> None:
        """Replace the field of the same id, which had no fields inside, and add the fields inside its new type."""
        self._fields[field.id] = field
        for child in children(field.type):
            self.add(field.id, child)

    def rename(self, field_id: int, name: str) -> None:
        """Give a field another name."""
        self._leave_all(field_id)
        self._fields[field_id] = replace(self._fields[field_id], name=name)
        self._enter_all(field_id)

    def place(self, field_id: int, neighbour: int | None, offset: int = 0) -> None:
        """Move a field to ``offset`` positions after a neighbour in its struct, or to the front."""
        siblings = self._inside[self._owners[field_id]]
        siblings.remove(field_id)
        siblings.insert(0 if neighbour is None else siblings.index(neighbour) + offset, field_id)

    def build(self) -> tuple[Field, ...]:
        """The fields of the table as they are now."""
        order = list(self._inside[TABLE])
        for field_id in order:  # grows while it is read
            order.extend(self._inside[field_id])
        built: dict[int, Field] = {}
        for field_id in reversed(order):  # what is inside a field comes before it
            field = self._fields[field_id]
            if not is_primitive(field.type):
                inner = tuple(built[child] for child in self._inside[field_id])
                field = replace(field, type=with_children(field.type, inner))
            built[field_id] = field
        return tuple(built[field_id] for field_id in self._inside[TABLE])

    def _take(self, field: Field, owner: int | None) -> None:
        pending = [(owner, field)]
        for around, inner in pending:  # grows while it is read
            self._fields[inner.id] = inner
            self._owners[inner.id] = around
            self._inside[around].append(inner.id)
            self._inside[inner.id] = []
            pending.extend((inner.id, child) for child in children(inner.type))

    def _names_in(self, field_id: int) -> list[tuple[str, int]]:
        named = [(self.name(field_id), field_id)]
        for name, inner in named:  # grows while it is read
            named.extend((f"{name}.{self._fields[child].name}", child) for child in self._inside[inner])
        return named

    def _enter(self, name: str, field_id: int) -> None:
        self._ids[name] = field_id
        self._lowered.setdefault(name.lower(), []).append(name)

    def _enter_all(self, field_id: int) -> None:
        for name, inner in self._names_in(field_id):
            if name in self._ids:
                raise InputError(f"there would be two columns named {name!r}; choose another name", field=name)
            alike = self._lowered.get(name.lower(), [])
            if len(alike) > 0:
                raise InputError(
                    f"column {name!r} would differ from {alike[0]!r} only in case, and engines that ignore case could"
                    " read neither; choose another name",
                    field=name,
                )
            self._enter(name, inner)

    def _leave_all(self, field_id: int) -> None:
        for name, _ in self._names_in(field_id):
            del self._ids[name]
            self._lowered[name.lower()].remove(name)
