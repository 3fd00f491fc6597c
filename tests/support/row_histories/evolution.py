"""Random changes of the columns and of the layout of a table, and what they do to the model."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from icefloe.errors import InputError
from icefloe.model.metadata.snapshots import MAIN
from icefloe.model.schema.name_mapping import NAME_MAPPING_PROPERTY
from support.row_histories.columns import VALUES, WIDER, Column, Columns, Kind, Value, changed, plain, structs
from support.row_histories.model import CORE, FIELDS, SETTINGS, RowModel


class EvolvingRows(RowModel):
    """A table whose schema, partitioning and properties change."""

    def edit_schema(self, rng: random.Random) -> None:
        path, inside = rng.choice(list(structs(self.columns)))
        verb = rng.choice(("add", "add", "add", "drop", "rename", "swap", "move", "widen", "default"))
        if verb == "add" and len(inside) < 14:
            self._add_column(rng, path, self._name(rng, inside))
            return
        free = [column for column in inside if path != "" or column.name not in CORE]
        if verb in ("drop", "rename", "swap", "default"):
            inside = tuple(free)
        if len(inside) == 0:
            return
        column = rng.choice(inside)
        name = _full(path, column.name)
        match verb:
            case "drop" if path == "" or len(inside) > 1:
                self._drop(path, column)
            case "rename":
                self._rename(path, column, self._name(rng, inside))
            case "swap":
                self._swap(path, column, rng.choice(inside))
            case "move":
                self._edit(path, lambda e: e.move_first(name), lambda old: (column, *_without(old, column)))
            case "widen":
                self._widen(path, column)
            case "default" if self.table.format_version >= 3 and column.kind.name in VALUES:
                new = replace(column, default=rng.choice([*_defaults(column.kind), None]))
                self._edit(path, lambda edit: edit.set_default(name, new.default), lambda old: _with(old, column, new))

    def _drop(self, path: str, column: Column) -> None:
        name = _full(path, column.name)
        self._edit(path, lambda edit: edit.drop_column(name), lambda old: _without(old, column))
        self.freed.append(column.name)

    def _rename(self, path: str, column: Column, new: str) -> Column:
        name, renamed = _full(path, column.name), replace(column, name=new)
        self._edit(path, lambda edit: edit.rename_column(name, new), lambda old: _with(old, column, renamed))
        self.freed.append(column.name)
        return renamed

    def _swap(self, path: str, one: Column, other: Column) -> None:
        """Two columns of a struct get the names of each other."""
        if one.key == other.key or not self.names_come_back:
            return
        aside = self._rename(path, one, f"c{next(self._keys)}")
        self._rename(path, other, one.name)
        self._rename(path, aside, other.name)

    @property
    def names_come_back(self) -> bool:
        """Whether a name may mean another column than before: not where files without ids go by names."""
        return NAME_MAPPING_PROPERTY not in self.table.properties

    def _name(self, rng: random.Random, inside: Columns) -> str:
        """A name that a struct does not have; now and then one that a column had before."""
        known = {column.name for column in inside} | set(CORE)
        freed = [name for name in self.freed[-4:] if name not in known]
        if len(freed) > 0 and self.names_come_back and rng.random() < 0.5:
            return rng.choice(freed)
        return f"c{next(self._keys)}"

    def name_again(self, rng: random.Random, path: str, column: Column) -> None:
        """Another column of a struct, an old one or a new one, gets the name of a column."""
        inside = dict(structs(self.columns))[path]
        others = [other for other in inside if other.name not in CORE and other.kind.name in VALUES and other != column]
        if len(others) > 0 and (path != "" or rng.random() < 0.5):
            self._swap(path, column, rng.choice(others))
        elif path == "":
            self._drop(path, column)
            self._add_column(rng, path, column.name, plain_only=True)

    def _widen(self, path: str, column: Column) -> None:
        name = _full(path, column.name)
        wider = WIDER.get(column.kind.name)
        if column.kind.name == "date" and self.table.format_version >= 3:
            wider = "timestamp_ntz"
        if wider is not None:
            new = replace(column, kind=plain(wider))
            self._edit(path, lambda e: e.update_column(name, type=wider), lambda old: _with(old, column, new))

    def _add_column(self, rng: random.Random, path: str, called: str, *, plain_only: bool = False) -> None:
        kind = plain(rng.choice(tuple(VALUES)))
        default = None
        if self.table.format_version >= 3 and rng.random() < 0.5:
            default = rng.choice(_defaults(kind))
        elif not plain_only and rng.random() < 0.3:
            fields = (self._column("x", plain("int")), self._column("y", plain("string")))
            inner = rng.choice((plain("int"), plain("date"), Kind(name="struct", fields=fields)))
            shape = rng.choice(("list", "map", "struct"))
            kind = Kind(name="struct", fields=fields) if shape == "struct" else Kind(name=shape, inside=inner)
        new = self._column(called, kind, default)
        name = _full(path, called)
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


def _full(path: str, name: str) -> str:
    return name if path == "" else f"{path}.{name}"


def _without(columns: Columns, gone: Column) -> Columns:
    return tuple(column for column in columns if column.key != gone.key)


def _with(columns: Columns, old: Column, new: Column) -> Columns:
    return tuple(new if column.key == old.key else column for column in columns)


def _defaults(kind: Kind) -> list[Value]:
    return [value for value in VALUES[kind.name] if value == value and value not in (float("inf"), float("-inf"))]
