"""ALTER TABLE: columns and properties, all changes of a statement as one commit."""

from __future__ import annotations

import json
from collections.abc import Iterable

from icefloe.errors import UnsupportedError
from icefloe.model.evolution.steps import (
    AddColumn,
    After,
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
)
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field
from icefloe.model.text.spark_schema_json import WRITE_DEFAULT, fields_from_spark_json
from icefloe.model.text.sql_literals import parse_literal
from icefloe.spark_sql import messages
from icefloe.spark_sql.staged_tables import check_settable_in_sql
from icefloe.table.table import Table

_LOCATION = "location"


def alter_table(table: Table, changes: Iterable[messages.TableChange]) -> None:
    """Apply the changes of a statement."""
    steps: list[SchemaChange] = []
    updates: dict[str, str] = {}
    removals: list[str] = []
    for change in changes:
        if isinstance(change, messages.SetProperty):
            updates[_changeable(change.property)] = change.value
        elif isinstance(change, messages.RemoveProperty):
            removals.append(_changeable(change.property))
        elif isinstance(change, messages.ColumnChange):
            steps += _steps(change, table.schema)
        else:
            raise UnsupportedError(f"ALTER TABLE cannot do {getattr(change, 'name', change)} here", feature="alter")
    with table.transaction() as transaction:
        if len(steps) > 0:
            with transaction.update_schema() as schema:
                schema.step(*steps)
        if len(updates) + len(removals) > 0:
            transaction.set_properties(updates, removals)


def _changeable(name: str) -> str:
    check_settable_in_sql([name])
    if name == _LOCATION:
        raise UnsupportedError(
            "ALTER TABLE SET LOCATION is not supported: the files of a table are where they were written",
            feature="set location",
        )
    return name


def _steps(change: messages.ColumnChange, schema: Schema) -> list[SchemaChange]:
    column = ".".join(change.column)
    match change:
        case messages.AddColumn():
            return [_added(change)]
        case messages.DropColumn():
            return [] if change.if_exists and column not in schema.by_name else [DropColumn(column=column)]
        case messages.RenameColumn():
            return [RenameColumn(column=column, name=change.new_name)]
        case messages.SetType():
            return [PromoteColumn(column=column, type=_field(change.column[-1], change.type).type)]
        case messages.SetNullability(nullable=True):
            return [MakeOptional(column=column)]
        case messages.SetNullability():
            if schema.field(column).required:
                return []
            raise UnsupportedError(
                f"column {column!r} cannot be made NOT NULL: rows may hold null; add a NOT NULL column with a default",
                feature="set not null",
            )
        case messages.SetComment():
            return [SetDoc(column=column, doc=change.comment)]
        case messages.MoveColumn():
            return [MoveColumn(column=column, position=_position(change.column, after=change.after))]
        case messages.SetDefault():
            return [SetDefault(column=column, default=_default(schema, column, change.default))]
    raise UnsupportedError(f"ALTER COLUMN cannot do {getattr(change, 'name', change)} here", feature="alter column")


def _added(change: messages.AddColumn) -> AddColumn:
    field = _field(change.column[-1], change.type, default=change.default)
    is_placed = change.first or change.after is not None
    return AddColumn(
        name=field.name,
        type=field.type,
        parent=None if len(change.column) == 1 else ".".join(change.column[:-1]),
        required=not change.nullable,
        doc=change.comment,
        default=field.write_default,
        position=_position(change.column, after=change.after) if is_placed else None,
    )


def _position(path: tuple[str, ...], *, after: str | None) -> Position:
    return First() if after is None else After(".".join((*path[:-1], after)))


def _default(schema: Schema, column: str, sql: str | None) -> object:
    """The value of a default in SQL; the text is empty if the default is removed."""
    return None if sql is None or sql == "" else parse_literal(sql, schema.field(column).type, column)


def _field(name: str, type_json: str, *, default: str | None = None) -> Field:
    """A column of a type in Spark's JSON, with a default in SQL."""
    metadata = {} if default is None else {WRITE_DEFAULT: default}
    column = {"name": name, "type": json.loads(type_json), "nullable": True, "metadata": metadata}
    (field,) = fields_from_spark_json({"type": "struct", "fields": [column]})
    return field
