"""The builder of schema changes: a chain of calls that makes the steps (spec: Schema Evolution)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from icefloe.errors import InputError
from icefloe.model.evolution.evolve import Evolved, evolve
from icefloe.model.evolution.protected_columns import NOTHING_PROTECTED, Protected, protected_of
from icefloe.model.evolution.schema_union import union_by_name
from icefloe.model.evolution.steps import (
    AddColumn,
    After,
    Before,
    DropColumn,
    First,
    MakeOptional,
    MoveColumn,
    Position,
    PromoteColumn,
    RenameColumn,
    SchemaChange,
    SetDefault,
    SetDoc,
    SetIdentifiers,
)
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.metadata.version_rules import DEFAULT_FORMAT_VERSION
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Type
from icefloe.model.text.ddl import parse_ddl
from icefloe.model.text.text_checks import check_text


@dataclass(frozen=True, slots=True)
class SchemaUpdate:
    """A schema and the steps that change it; every call returns a new value with one more step.

    Columns are identified by their full dotted names. Types are Spark SQL text or types of the model. Each step sees
    the result of the steps before it. ``apply`` applies all steps or raises an error.

    >>> from icefloe.model.text.ddl import parse_ddl
    >>> update = SchemaUpdate(parse_ddl("id int not null, note string"), format_version=3)
    >>> update = update.update_column("id", type="bigint").rename_column("note", "remark")
    >>> update = update.add_column("score", "double", default=0.5).move_after("score", "id")
    >>> [(field.id, field.name, str(field.type)) for field in update.apply().schema.fields]
    [(1, 'id', 'long'), (3, 'score', 'double'), (2, 'remark', 'string')]
    """

    schema: Schema
    _: KW_ONLY
    steps: tuple[SchemaChange, ...] = ()
    last_column_id: int | None = None  # the highest id in the schema if nothing is known about former columns
    protected: Protected = NOTHING_PROTECTED
    format_version: int = DEFAULT_FORMAT_VERSION

    def step(self, *steps: SchemaChange) -> SchemaUpdate:
        """Append steps as they are."""
        return replace(self, steps=(*self.steps, *steps))

    def add_column(
        self,
        name: str,
        type: Type | str,
        *,
        required: bool = False,
        doc: str | None = None,
        default: Any = None,
        position: Position | None = None,
    ) -> SchemaUpdate:
        """Add a column: ``address.city`` goes into the struct ``address``, or into that of a list or map.

        For a name that has a dot of its own, use ``step`` with an ``AddColumn``.
        """
        check_text(name, "name of a column")
        parent, _, last = name.rpartition(".")
        return self.step(
            AddColumn(
                name=last,
                type=_as_type(type, name),
                parent=None if parent == "" else parent,
                required=required,
                doc=doc,
                default=default,
                position=position,
            )
        )

    def drop_column(self, column: str) -> SchemaUpdate:
        """Drop a column, with everything inside it."""
        return self.step(DropColumn(column=column))

    def rename_column(self, column: str, name: str) -> SchemaUpdate:
        """Give a column another last name; ``name`` is that name alone."""
        return self.step(RenameColumn(column=column, name=name))

    def move_first(self, column: str) -> SchemaUpdate:
        """Put a column before all others of its struct."""
        return self.step(MoveColumn(column=column, position=First()))

    def move_before(self, column: str, other: str) -> SchemaUpdate:
        """Put a column directly before another of its struct."""
        return self.step(MoveColumn(column=column, position=Before(other)))

    def move_after(self, column: str, other: str) -> SchemaUpdate:
        """Put a column directly after another of its struct."""
        return self.step(MoveColumn(column=column, position=After(other)))

    def update_column(
        self,
        column: str,
        *,
        type: Type | str | None = None,
        doc: str | None = None,
        required: bool | None = None,
    ) -> SchemaUpdate:
        """Change the type of a column to a wider one, change its comment, or make it optional; the rest stays."""
        if required is True:
            raise InputError(
                f"column {column!r} cannot be made required: rows may hold null; add a required column with a default",
                field=column,
            )
        if type is None and doc is None and required is None:
            raise InputError(f"column {column!r}: say what to change: type, doc or required=False", field=column)
        steps: list[SchemaChange] = []
        if type is not None:
            steps.append(PromoteColumn(column=column, type=_as_type(type, column)))
        if required is False:
            steps.append(MakeOptional(column=column))
        if doc is not None:
            steps.append(SetDoc(column=column, doc=doc))
        return self.step(*steps)

    def set_doc(self, column: str, doc: str | None) -> SchemaUpdate:
        """Give a column another comment, or none."""
        return self.step(SetDoc(column=column, doc=doc))

    def set_default(self, column: str, default: Any) -> SchemaUpdate:
        """Set or remove the value that writers use for a column without values."""
        return self.step(SetDefault(column=column, default=default))

    def set_identifiers(self, *columns: str) -> SchemaUpdate:
        """Set the columns that identify a row; there may be none."""
        return self.step(SetIdentifiers(columns=columns))

    def union_by_name(self, other: Schema | str) -> SchemaUpdate:
        """Add columns, promote types and make columns optional until every column of another schema fits."""
        wanted = parse_ddl(other) if isinstance(other, str) else other
        return self.step(*union_by_name(self.apply().schema, wanted, format_version=self.format_version))

    def apply(self) -> Evolved:
        """The schema after all steps; a step that the format does not allow is an ``InputError`` with the reason."""
        return evolve(
            self.schema,
            self.steps,
            last_column_id=self.schema.highest_id if self.last_column_id is None else self.last_column_id,
            protected=self.protected,
            format_version=self.format_version,
        )


def update_of(metadata: TableMetadata) -> SchemaUpdate:
    """An update of the current schema of a table, with the rules of its version and its protected columns."""
    return SchemaUpdate(
        metadata.schema,
        last_column_id=metadata.last_column_id,
        protected=protected_of(metadata),
        format_version=metadata.format_version,
    )


def _as_type(type_: Type | str, name: str) -> Type:
    if not isinstance(type_, str):
        return type_
    fields = parse_ddl(f"x {type_}").fields
    if len(fields) != 1 or fields[0].required or fields[0].doc is not None:
        raise InputError(f"column {name!r}: {type_!r} is more than a type", field=name)
    return fields[0].type
