"""Default values of columns: which are allowed, and their JSON form (spec: Default values).

A field stores its defaults in the JSON form of the metadata. Callers may pass Python values instead. The only default
of a struct is ``{}``, a struct made of the defaults of its fields. A list, a map, and a type whose values have no JSON
form cannot have a default.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Any

from icefloe.errors import FormatError, InputError
from icefloe.model.schema import types as iceberg
from icefloe.model.schema.json_values import value_from_json, value_to_json

_WITHOUT_DEFAULTS = (iceberg.List, iceberg.Map, iceberg.Variant, iceberg.Geometry, iceberg.Geography)
_EPOCH_DAY = datetime.date(1970, 1, 1)
_NANOS_PER_DAY = 86_400 * 1_000_000_000


def default_json(default: object, type_: iceberg.Type) -> Any:
    """The JSON form of a default; InputError if it is no value of the type.

    >>> default_json(datetime.date(2026, 1, 31), iceberg.DATE), default_json("2026-01-31", iceberg.DATE)
    ('2026-01-31', '2026-01-31')
    """
    if default is None:
        return None
    if isinstance(type_, iceberg.Struct):
        if not isinstance(default, Mapping) or len(default) > 0:
            raise InputError("a struct's default is {} or none; give the fields inside it defaults of their own")
        return {}
    if type_ == iceberg.UNKNOWN or isinstance(type_, _WITHOUT_DEFAULTS):
        raise InputError(f"a column of type {type_} has no default but null")
    try:
        # All texts are JSON forms: a string is its own, and a Python value of another type is no text.
        value = value_from_json(default, type_) if isinstance(default, str) else default
        return value_to_json(value, type_)
    except FormatError as error:
        raise InputError(str(error)) from error


def without_default(default: object, fields: Iterable[iceberg.Field], kind: str) -> str | None:
    """The name of a required field without a default, because of which a struct cannot have the default ``{}``."""
    if default is None:
        return None
    for field in fields:
        own = field.initial_default if kind == "initial" else field.write_default
        if field.required and own is None:
            return field.name
    return None


def promoted_default(default: Any, old: iceberg.Type, new: iceberg.Type) -> Any:
    """The JSON form of a default after a promotion of its type; InputError if the new type lacks that value.

    >>> from icefloe.model.schema.types import DOUBLE, FLOAT
    >>> promoted_default("2026-01-31", iceberg.DATE, iceberg.TIMESTAMP), promoted_default(0.1, FLOAT, DOUBLE)
    ('2026-01-31T00:00:00.000000', 0.10000000149011612)
    """
    if default is None or old == new or not iceberg.is_primitive(old):
        return default
    value = value_from_json(default, old)
    if isinstance(value, datetime.date) and old == iceberg.DATE:
        if new == iceberg.TIMESTAMP:
            value = datetime.datetime.combine(value, datetime.time.min)
        else:
            value = (value - _EPOCH_DAY).days * _NANOS_PER_DAY
    return value_to_json(value, new)
