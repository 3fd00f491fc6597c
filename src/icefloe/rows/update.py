"""Updates rows: sets columns of the rows that match a condition (spec: Row-level Deletes)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pyarrow.compute as pc

from icefloe.commit.phases import Phase
from icefloe.engines.choose import engine_for
from icefloe.engines.engine import Engine
from icefloe.errors import InputError
from icefloe.expr.filter.nodes import Expr
from icefloe.expr.value.expressions import Value, columns_of
from icefloe.expr.value.nodes import Reference
from icefloe.expr.value.struct_fields import column_values, path_of
from icefloe.model.metadata.properties import UPDATE_ISOLATION, UPDATE_MODE
from icefloe.model.metadata.snapshots import Operation
from icefloe.model.schema.schema import Schema
from icefloe.rows.prepared import CountedChanges, Prepared, RowChange, prepared
from icefloe.rows.removal import Mode, mode_of, remove_rows, replace_files, tasks_of
from icefloe.rows.target import Scratch, Target


def update(changes: Mapping[str, str | Value], where: str | Expr | None, spark: Any = None) -> RowChange:
    """Set columns of the rows that match ``where``; rows for which it is null do not change."""
    engine = engine_for(spark)
    return RowChange(engine=engine, prepare=lambda target: _update(target, changes, where, engine))


def _update(target: Target, changes: Mapping[str, str | Value], where: str | Expr | None, engine: Engine) -> Prepared:
    values = new_values(changes, target.metadata.schema, lambda text: engine.value(text, target.env))
    condition = engine.condition(where, target.metadata.schema)
    files = target.planned(condition.filter)
    plan, change = files.plan, partial(prepared, target, files.plan.filter, UPDATE_ISOLATION)
    copies = mode_of(UPDATE_MODE, target.metadata) is Mode.COPY_ON_WRITE
    with Scratch(target.io) as scratch:
        rows = engine.update_rows(files, condition, values, copy_others=copies)
        added, positions = scratch.keep(rows.entries), rows.positions
        if len(positions) == 0:
            return change(CountedChanges(), operation=Operation.OVERWRITE)
        if not copies:
            with target.timer.of(Phase.WRITE):
                deletion = remove_rows(target, files, positions, engine, UPDATE_MODE)
            return change(deletion.with_added(added))
    live, updated = pc.sum(added["record_count"]).as_py(), sum(len(rows) for rows in positions.values())
    return change(replace_files(plan, tasks_of(plan, positions), added, live=live, copied=live - updated))


def new_values(
    changes: Mapping[str, str | Value], schema: Schema, parse: Callable[[str | Value], Value]
) -> dict[str, Value]:
    """The new values by column, parsed; assignments to fields inside structs become values of their columns.

    InputError names a column that the table does not have.

    >>> from icefloe.expr.value.expressions import parse_value
    >>> from icefloe.model.text.ddl import parse_ddl
    >>> {name: str(value) for name, value in new_values({"n": "n + 1"}, parse_ddl("n int"), parse_value).items()}
    {'n': 'n + 1'}
    """
    if len(changes) == 0:
        raise InputError("update: say what to set, such as {'note': \"upper(note)\"}")
    parsed = {}
    for name, text in changes.items():
        _check_settable(name, schema)
        parsed[name] = parse(text)
        for column in columns_of(parsed[name]):
            if path_of(column, schema.fields) is None:
                raise InputError(
                    f"update: {name} = {parsed[name]}: the table has no column {column}, or it lies in a list or map",
                    field=column,
                )
    return column_values(parsed, schema.fields, lambda name: Reference((name,)))


def _check_settable(name: str, schema: Schema) -> None:
    if path_of(name, schema.fields) is not None:
        return
    if name in schema.by_name:
        raise InputError(f"update: {name!r} lies in a list or map; set the whole column", field=name)
    columns = ", ".join(sorted(field.name for field in schema.fields))
    raise InputError(f"update: the table has no column {name}; it has: {columns}", field=name)
