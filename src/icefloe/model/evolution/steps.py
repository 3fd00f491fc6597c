"""The steps of schema evolution as values (spec: Schema Evolution).

Columns are named by their full dotted name, as ``Schema.by_name`` has them: ``address.zip``, ``tags.element.label``,
``prices.value.net``. ``evolve`` applies the steps. Changes without a step (making a column required, turning a
primitive into a struct, moving a field into another struct) are not allowed by the format.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from icefloe.model.schema.types import Type


@dataclass(frozen=True, slots=True)
class First:
    """Before every other field of the struct."""


@dataclass(frozen=True, slots=True)
class Before:
    """Directly before a column of the same struct, identified by its full name."""

    column: str


@dataclass(frozen=True, slots=True)
class After:
    """Directly after a column of the same struct, identified by its full name."""

    column: str


Position: TypeAlias = First | Before | After


@dataclass(frozen=True, slots=True, kw_only=True)
class AddColumn:
    """A new column: of the table, or of the struct ``parent``, or of the struct in the list or map ``parent``.

    Ids inside ``type`` are ignored: a new column always gets new ids. ``default`` (format version 3 and later) is the
    value of existing rows, and of new rows without a value: a Python value of the type, or its JSON form, or ``{}`` for
    a struct made of the defaults of its fields.
    """

    name: str
    type: Type
    parent: str | None = None
    required: bool = False
    doc: str | None = None
    default: Any = None
    position: Position | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropColumn:
    """Remove a column from the schema; its id is never used again."""

    column: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameColumn:
    """Another name for a column in its struct; ``name`` is the last part only, and its dots are plain characters."""

    column: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveColumn:
    """Move a column within its struct."""

    column: str
    position: Position


@dataclass(frozen=True, slots=True, kw_only=True)
class PromoteColumn:
    """A wider type: int to long, float to double, a decimal of more digits.

    From format version 3 on also date to timestamp or timestamp_ns, and unknown to any type, whose inner fields get new
    ids then.
    """

    column: str
    type: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeOptional:
    """Let a required column, list element or map value be null."""

    column: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDoc:
    """Another comment, or none."""

    column: str
    doc: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDefault:
    """Sets or removes the default of new rows (format version 3 and later); a value as in ``AddColumn``.

    Existing rows keep the default with which the column was added.
    """

    column: str
    default: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class SetIdentifiers:
    """The columns that identify a row; there may be none."""

    columns: tuple[str, ...]


SchemaChange: TypeAlias = (
    AddColumn
    | DropColumn
    | RenameColumn
    | MoveColumn
    | PromoteColumn
    | MakeOptional
    | SetDoc
    | SetDefault
    | SetIdentifiers
)
