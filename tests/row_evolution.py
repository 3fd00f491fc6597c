"""Random changes of the columns and of the layout of a table, and what they do to the model."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from icefloe.errors import InputError
from icefloe.model.snapshots import MAIN
from row_columns import VALUES, WIDER, Column, Columns, Kind, Value, changed, plain, structs
from row_model import CORE, FIELDS, SETTINGS, RowModel


class EvolvingRows(RowModel):
    """A table whose schema, partitioning and properties change."""

    def edit_schema(self, rng: random.Random) -> None:
        path, inside = rng.choice(list(structs(self.columns)))
        verb = rng.choice(("add", "add", "add", "drop", "rename", "move", "widen", "default"))
        prefix = "" if path == "" else f"{path}."
        if verb == "add" and len(inside) < 14:
            self._add_column(rng, path)
            return
        free = [column for column in inside if path != "" or column.name not in CORE]
        if verb in ("drop", "rename", "default"):
            inside = tuple(free)
        if len(inside) == 0:
            return
        column = rng.choice(inside)
        name = prefix + column.name
        match verb:
            case "drop" if path == "" or len(inside) > 1:
                self._edit(path, lambda edit: edit.drop_column(name), lambda old: _without(old, column))
            case "rename":
                new = replace(column, name=f"c{next(self._keys)}")
                self._edit(path, lambda edit: edit.rename_column(name, new.name), lambda old: _with(old, column, new))
            case "move":
                self._edit(path, lambda e: e.move_first(name), lambda old: (column, *_without(old, column)))
            case "widen":
                self._widen(path, column)
            case "default" if self.table.format_version >= 3 and column.kind.name in VALUES:
                new = replace(column, default=rng.choice([*_defaults(column.kind), None]))
                self._edit(path, lambda edit: edit.set_default(name, new.default), lambda old: _with(old, column, new))

    def _widen(self, path: str, column: Column) -> None:
        name = column.name if path == "" else f"{path}.{column.name}"
        wider = WIDER.get(column.kind.name)
        if column.kind.name == "date" and self.table.format_version >= 3:
            wider = "timestamp_ntz"
        if wider is not None:
            new = replace(column, kind=plain(wider))
            self._edit(path, lambda e: e.update_column(name, type=wider), lambda old: _with(old, column, new))

    def _add_column(self, rng: random.Random, path: str) -> None:
        kind = plain(rng.choice(tuple(VALUES)))
        default = None
        if self.table.format_version >= 3 and rng.random() < 0.5:
            default = rng.choice(_defaults(kind))
        elif rng.random() < 0.3:
            fields = (self._column("x", plain("int")), self._column("y", plain("string")))
            inner = rng.choice((plain("int"), plain("date"), Kind(name="struct", fields=fields)))
            name = rng.choice(("list", "map", "struct"))
            kind = Kind(name="struct", fields=fields) if name == "struct" else Kind(name=name, inside=inner)
        new = self.new_column(kind, default)
        name = new.name if path == "" else f"{path}.{new.name}"
        self._edit(path, lambda e: e.add_column(name, str(kind), default=default), lambda old: (*old, new))

    def _edit(self, path: str, change: Callable[[Any], object], model: Callable[[Columns], Columns]) -> None:
        with self.table.update_schema() as edit:
            change(edit)
        self.columns = changed(self.columns, path, model)

    def edit_partitioning(self, rng: random.Random) -> None:
        text = rng.choice(FIELDS)
        try:
            with self.table.update_partitioning() as edit:
                edit.add(text)
        except InputError:  # it is there already, or one like it
            names = [field.name for field in self.table.spec.fields if field.transform != "void"]
            if len(names) > 0:
                with self.table.update_partitioning() as edit:
                    edit.remove(rng.choice(names))

    def set_property(self, rng: random.Random) -> None:
        name = rng.choice(tuple(SETTINGS))
        self.table.set_properties({name: rng.choice(SETTINGS[name])})

    def sort(self, rng: random.Random) -> None:
        self.table.set_sort_order(*rng.sample(("id desc", "city", "bucket(3, uid)", "at"), rng.randrange(3)))

    def upgrade(self, rng: random.Random) -> None:
        version = self.table.format_version
        if version < 4:
            self.end_branch()
            self.table.upgrade(version + 1)
            self.do("append", rng)
            self.states.clear()  # what rolls back across it would lose its row ids
            self.settle(MAIN)


def _without(columns: Columns, gone: Column) -> Columns:
    return tuple(column for column in columns if column.key != gone.key)


def _with(columns: Columns, old: Column, new: Column) -> Columns:
    return tuple(new if column.key == old.key else column for column in columns)


def _defaults(kind: Kind) -> list[Value]:
    return [value for value in VALUES[kind.name] if value == value and value not in (float("inf"), float("-inf"))]
