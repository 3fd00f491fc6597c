"""Default values of columns: which there may be, and their JSON form (spec: Default values).

A field holds its defaults in the JSON form of the metadata. People may give Python values instead. The default of a
struct is ``{}``, a struct made of the defaults of its fields, or none; a list, a map, and a type whose values have no
JSON form have none.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Any

from icefloe.errors import FormatError, InputError
from icefloe.model.schema.json_values import value_from_json, value_to_json
from icefloe.model.schema.types import (
    DATE,
    TIMESTAMP,
    UNKNOWN,
    Field,
    Geography,
    Geometry,
    List,
    Map,
    Struct,
    Type,
    Variant,
    is_primitive,
)

_EPOCH_DAY = datetime.date(1970, 1, 1)
_NANOS_PER_DAY = 86_400 * 1_000_000_000


def default_json(default: object, type_: Type) -> Any:
    """The JSON form of a default; an ``InputError`` says why it is none of the type.

    >>> default_json(datetime.date(2026, 1, 31), DATE), default_json("2026-01-31", DATE)
    ('2026-01-31', '2026-01-31')
    """
    if default is None:
        return None
    if isinstance(type_, Struct):
        if not isinstance(default, Mapping) or len(default) > 0:
            raise InputError("a struct's default is {} or none; give the fields inside it defaults of their own")
        return {}
    if type_ == UNKNOWN or isinstance(type_, (List, Map, Variant, Geometry, Geography)):
        raise InputError(f"a column of type {type_} has no default but null")
    try:
        # All texts are JSON forms: a string is its own, and a Python value of another type is no text.
        value = value_from_json(default, type_) if isinstance(default, str) else default
        return value_to_json(value, type_)
    except FormatError as error:
        raise InputError(str(error)) from error


def without_default(default: object, fields: Iterable[Field], kind: str) -> str | None:
    """The name of a required field that keeps a struct from the default ``{}``, for it has none of its own."""
    if default is None:
        return None
    for field in fields:
        own = field.initial_default if kind == "initial" else field.write_default
        if field.required and own is None:
            return field.name
    return None


def promoted_default(default: Any, old: Type, new: Type) -> Any:
    """The JSON form, in a wider type, of the same default; an ``InputError`` if the wider type lacks that value.

    >>> from icefloe.model.schema.types import DOUBLE, FLOAT
    >>> promoted_default("2026-01-31", DATE, TIMESTAMP), promoted_default(0.1, FLOAT, DOUBLE)
    ('2026-01-31T00:00:00.000000', 0.10000000149011612)
    """
    if default is None or old == new or not is_primitive(old):
        return default
    value = value_from_json(default, old)
    if isinstance(value, datetime.date) and old == DATE:
        if new == TIMESTAMP:
            value = datetime.datetime.combine(value, datetime.time.min)
        else:
            value = (value - _EPOCH_DAY).days * _NANOS_PER_DAY
    return value_to_json(value, new)
