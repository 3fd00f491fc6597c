"""Fields of structs that are set one by one: ``at.city = 'Oslo'`` is a new value of the column ``at``.

All fields of a column that are set become one value of it. Its other fields stay as they are; a struct that was null
is there afterwards, its other fields null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise

from icefloe.errors import InputError
from icefloe.expr.value.expressions import Value
from icefloe.expr.value.nodes import WITH_FIELDS, Call, Reference
from icefloe.model.schema.types import Field, Struct


def path_of(name: str, fields: tuple[Field, ...]) -> tuple[int, ...] | None:
    """The place of a column by its full name, through structs alone; none if there is no such column.

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


def by_column(
    values: Mapping[str, Value], fields: tuple[Field, ...], column: Callable[[str], Reference]
) -> dict[str, Value]:
    """New values of whole columns, given those of columns and of fields in them, all of which there are.

    ``column`` is how values refer to a column by its name.

    >>> import pyarrow as pa
    >>> from icefloe.expr.value.expressions import evaluate_value, parse_value
    >>> from icefloe.model.text.ddl import parse_ddl
    >>> fields = parse_ddl("at struct<zip: string, city: string>").fields
    >>> set_ = by_column({"at.city": parse_value("upper(at.city)")}, fields, lambda name: Reference((name,)))
    >>> evaluate_value(set_["at"], {"at": pa.array([{"zip": "0150", "city": "Oslo"}])}, 1).to_pylist()
    [{'zip': '0150', 'city': 'OSLO'}]
    """
    places = {name: path for name in values if (path := path_of(name, fields)) is not None}
    _check_apart(places)
    found: dict[str, Value] = {}
    for top in dict.fromkeys(path[0] for path in places.values()):
        inside = [name for name, path in places.items() if path[0] == top]
        whole = fields[top].name
        if len(places[inside[0]]) == 1:
            found[whole] = values[inside[0]]
            continue
        names = tuple(_names(places[name][1:], fields[top]) for name in inside)
        given = tuple(values[name].node for name in inside)
        text = ", ".join(f"{name} = {values[name]}" for name in inside)
        found[whole] = Value(text, Call(WITH_FIELDS, (column(whole), *given), (names,)))
    return found


def _names(path: Iterable[int], field: Field) -> tuple[str, ...]:
    """The names on the way to a field inside of another one."""
    names = []
    for place in path:
        if not isinstance(field.type, Struct):
            break
        field = field.type.fields[place]
        names.append(field.name)
    return tuple(names)


def _check_apart(places: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse to set a column or field twice, once as a part of another one."""
    ordered = sorted(places.items(), key=lambda item: item[1])
    for (outer, path), (inner, longer) in pairwise(ordered):
        if longer[: len(path)] == path:
            raise InputError(f"{outer!r} and {inner!r} cannot both be set: one is a part of the other", field=inner)
