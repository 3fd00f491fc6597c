"""Converts assignments to fields of structs: ``at.city = 'Oslo'`` becomes a new value of the column ``at``.

All assignments to fields of one column become one value. The other fields keep their values. A struct that was null
becomes a struct whose other fields are null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise

from icefloe.errors import InputError
from icefloe.expr.value.expressions import Value
from icefloe.expr.value.nodes import WITH_FIELDS, Call, Reference
from icefloe.model.schema.types import Field, Struct


def path_of(name: str, fields: tuple[Field, ...]) -> tuple[int, ...] | None:
    """The indices down to a column or a field inside structs, by its full name; none if there is no such column.

    >>> from icefloe.model.text.ddl import parse_ddl
    >>> path_of("at.city", parse_ddl("id int, at struct<zip: int, city: string>").fields)
    (1, 1)
    """
    for index, field in enumerate(fields):
        if field.name == name:
            return (index,)
        if isinstance(field.type, Struct) and name.startswith(f"{field.name}."):
            inner = path_of(name[len(field.name) + 1 :], field.type.fields)
            if inner is not None:
                return (index, *inner)
    return None


def column_values(
    values: Mapping[str, Value], fields: tuple[Field, ...], column: Callable[[str], Reference]
) -> dict[str, Value]:
    """New values of whole columns, from assignments to columns and to fields inside them; all of them must exist.

    ``column`` makes the reference by which values read a column.

    >>> import pyarrow as pa
    >>> from icefloe.expr.value.expressions import evaluate_value, parse_value
    >>> from icefloe.model.text.ddl import parse_ddl
    >>> fields = parse_ddl("at struct<zip: string, city: string>").fields
    >>> assigned = column_values({"at.city": parse_value("upper(at.city)")}, fields, lambda name: Reference((name,)))
    >>> evaluate_value(assigned["at"], {"at": pa.array([{"zip": "0150", "city": "Oslo"}])}, 1).to_pylist()
    [{'zip': '0150', 'city': 'OSLO'}]
    """
    paths = {name: path for name in values if (path := path_of(name, fields)) is not None}
    _check_disjoint(paths)
    assigned: dict[str, Value] = {}
    for top in dict.fromkeys(path[0] for path in paths.values()):
        names = [name for name, path in paths.items() if path[0] == top]
        whole = fields[top].name
        if len(paths[names[0]]) == 1:
            assigned[whole] = values[names[0]]
            continue
        inner_paths = tuple(_names_of(paths[name][1:], fields[top]) for name in names)
        new_values = tuple(values[name].node for name in names)
        text = ", ".join(f"{name} = {values[name]}" for name in names)
        assigned[whole] = Value(text, Call(WITH_FIELDS, (column(whole), *new_values), (inner_paths,)))
    return assigned


def _names_of(path: Iterable[int], field: Field) -> tuple[str, ...]:
    """The names on the path from a struct to a field inside it."""
    names = []
    for index in path:
        if not isinstance(field.type, Struct):
            break
        field = field.type.fields[index]
        names.append(field.name)
    return tuple(names)


def _check_disjoint(paths: Mapping[str, tuple[int, ...]]) -> None:
    """InputError if a column or field is assigned twice, once as a part of another one."""
    ordered = sorted(paths.items(), key=lambda item: item[1])
    for (outer, path), (inner, longer) in pairwise(ordered):
        if longer[: len(path)] == path:
            raise InputError(f"{outer!r} and {inner!r} cannot both be set: one is a part of the other", field=inner)
