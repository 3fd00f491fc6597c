"""Single values as JSON values: defaults, partition values, literals (spec: JSON single-value serialization).

``value_from_json`` takes parsed JSON, ``value_to_json`` returns values for a JSON encoder. As in Arrow, a struct is a
dictionary by field name (in JSON by field id) and a map is a list of pairs. A ``uuid`` is its 16 bytes, a timestamp in
nanoseconds their number since 1970.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from icefloe.errors import FormatError, InputError, LimitError, UnsupportedError
from icefloe.limits import DEFAULT
from icefloe.model.schema.json_scalars import (
    READERS,
    WRITERS,
    decimal_from_json,
    decimal_to_json,
    hex_from_json,
    hex_to_json,
)
from icefloe.model.schema.types import (
    Decimal,
    Field,
    Fixed,
    Geography,
    Geometry,
    List,
    Map,
    Primitive,
    Struct,
    Type,
    Variant,
)

Defaults: TypeAlias = Literal["initial", "write"]


def value_from_json(value: object, type_: Type, path: str = "", *, defaults: Defaults = "initial") -> object:
    """The value that a JSON value represents; ``path`` is its position in the document, for errors.

    Null is a value of every type. A field that is missing in the object of a struct gets its own default, of the kind
    ``defaults``: fields may be added to a struct after the struct got a default.

    >>> value_from_json("14.20", Decimal(9, 2))
    Decimal('14.20')
    >>> from icefloe.model.schema.types import INT
    >>> value_from_json({"1": [3, "x"]}, Struct((Field(1, "a", List(2, INT)),)), "initial-default")
    Traceback (most recent call last):
    icefloe.errors.FormatError: initial-default.1[1]: expected an int, got 'x'
    """
    return None if value is None else _read(value, type_, path, defaults, DEFAULT.type_depth)


def value_to_json(value: object, type_: Type, path: str = "") -> object:
    """The JSON value that represents a value; InputError if the value is not of the type.

    >>> from icefloe.model.schema.types import STRING
    >>> value_to_json({"name": "bar"}, Struct((Field(2, "name", STRING),)))
    {'2': 'bar'}
    """
    return None if value is None else _write(value, type_, path, DEFAULT.type_depth)


def _read(value: object, type_: Type, path: str, defaults: Defaults, depth: int) -> object:
    if depth <= 0:
        raise LimitError(_at(path, "values are nested too deeply"), field=path)
    match type_:
        case Struct():
            return _read_struct(value, type_, path, defaults, depth)
        case List():
            if not isinstance(value, list):
                raise _misfit(path, value, "a list")
            return [
                _read_slot(v, type_.element, type_.element_required, f"{path}[{i}]", defaults, depth)
                for i, v in enumerate(value)
            ]
        case Map():
            return _read_map(value, type_, path, defaults, depth)
        case Variant() | Geometry() | Geography():
            raise _no_form(path, type_)
    try:
        return _read_scalar(value, type_)
    except (ValueError, OverflowError) as error:
        raise _misfit(path, value, str(error)) from error


def _read_scalar(value: object, type_: Primitive | Decimal | Fixed) -> object:
    match type_:
        case Decimal(precision, scale):
            return decimal_from_json(value, precision, scale)
        case Fixed(length):
            return hex_from_json(value, length)
        case Primitive():
            return READERS[type_](value)


def _read_struct(value: object, type_: Struct, path: str, defaults: Defaults, depth: int) -> dict[str, object]:
    if not isinstance(value, dict):
        raise _misfit(path, value, "an object by field id")
    # Unknown ids belong to fields that were dropped later; a name instead of an id is an error.
    strange = next((key for key in value if not (isinstance(key, str) and key.isdecimal())), None)
    if strange is not None:
        raise FormatError(_at(path, f"expected field ids as keys, got {_shown(strange)}"), field=path)
    read: dict[str, object] = {}
    for field in type_.fields:
        key = str(field.id)
        field_value = value[key] if key in value else _default(field, defaults)
        read[field.name] = _read_slot(field_value, field.type, field.required, _join(path, key), defaults, depth)
    return read


def _default(field: Field, defaults: Defaults) -> object:
    return field.initial_default if defaults == "initial" else field.write_default


def _read_map(value: object, type_: Map, path: str, defaults: Defaults, depth: int) -> list[tuple[object, object]]:
    if not isinstance(value, dict) or set(value) != {"keys", "values"}:
        raise _misfit(path, value, "an object of keys and values")
    for name in ("keys", "values"):
        if not isinstance(value[name], list):
            raise _misfit(_join(path, name), value[name], "a list")
    keys, values = value["keys"], value["values"]
    if len(keys) != len(values):
        raise FormatError(_at(path, f"{len(keys)} keys but {len(values)} values"), field=path)
    at_key, at_value = _join(path, "keys"), _join(path, "values")
    return [
        (
            _read_slot(k, type_.key, True, f"{at_key}[{i}]", defaults, depth),
            _read_slot(v, type_.value, type_.value_required, f"{at_value}[{i}]", defaults, depth),
        )
        for i, (k, v) in enumerate(zip(keys, values, strict=True))
    ]


def _read_slot(value: object, type_: Type, required: bool, path: str, defaults: Defaults, depth: int) -> object:
    if value is not None:
        return _read(value, type_, path, defaults, depth - 1)
    if required:
        raise FormatError(_at(path, f"expected a value of type {type_}, got null or nothing"), field=path)
    return None


def _write(value: object, type_: Type, path: str, depth: int) -> object:
    if depth <= 0:
        raise LimitError(_at(path, "values are nested too deeply"), field=path)
    match type_:
        case Struct():
            return _write_struct(value, type_, path, depth)
        case List():
            if not isinstance(value, (list, tuple)):
                raise _unfit(path, value, type_, "expected a list")
            return [
                _write_slot(v, type_.element, type_.element_required, f"{path}[{i}]", depth)
                for i, v in enumerate(value)
            ]
        case Map():
            return _write_map(value, type_, path, depth)
        case Variant() | Geometry() | Geography():
            raise _no_form(path, type_)
    try:
        return _write_scalar(value, type_)
    except (ValueError, OverflowError) as error:
        raise _unfit(path, value, type_, str(error)) from error


def _write_scalar(value: object, type_: Primitive | Decimal | Fixed) -> object:
    match type_:
        case Decimal(precision, scale):
            return decimal_to_json(value, precision, scale)
        case Fixed(length):
            return hex_to_json(value, length)
        case Primitive():
            return WRITERS[type_](value)


def _write_struct(value: object, type_: Struct, path: str, depth: int) -> dict[str, object]:
    if not isinstance(value, Mapping):
        raise _unfit(path, value, type_, "expected a mapping by field name")
    strange = [name for name in value if name not in {field.name for field in type_.fields}]
    if len(strange) > 0:
        raise _unfit(path, strange[0], type_, "the struct has no such field")
    return {
        str(f.id): _write_slot(value.get(f.name), f.type, f.required, _join(path, f.name), depth) for f in type_.fields
    }


def _write_map(value: object, type_: Map, path: str, depth: int) -> dict[str, object]:
    pairs = list(value.items()) if isinstance(value, Mapping) else value
    if not isinstance(pairs, list) or any(not isinstance(pair, tuple) or len(pair) != 2 for pair in pairs):
        raise _unfit(path, value, type_, "expected a mapping or a list of pairs")
    at_key, at_value = _join(path, "keys"), _join(path, "values")
    return {
        "keys": [_write_slot(k, type_.key, True, f"{at_key}[{i}]", depth) for i, (k, _) in enumerate(pairs)],
        "values": [
            _write_slot(v, type_.value, type_.value_required, f"{at_value}[{i}]", depth)
            for i, (_, v) in enumerate(pairs)
        ],
    }


def _write_slot(value: object, type_: Type, required: bool, path: str, depth: int) -> object:
    if value is not None:
        return _write(value, type_, path, depth - 1)
    if required:
        raise InputError(_at(path, f"a value of type {type_} is required here, got None"), field=path)
    return None


def _join(path: str, key: str) -> str:
    return key if path == "" else f"{path}.{key}"


def _at(path: str, problem: str) -> str:
    return problem if path == "" else f"{path}: {problem}"


def _misfit(path: str, value: object, expected: str) -> FormatError:
    return FormatError(_at(path, f"expected {expected}, got {_shown(value)}"), field=path)


def _unfit(path: str, value: object, type_: Type, reason: str) -> InputError:
    return InputError(_at(path, f"{_shown(value)} is no value of type {type_}: {reason}"), field=path, type=str(type_))


def _no_form(path: str, type_: Type) -> UnsupportedError:
    reason = f"values of type {type_} have no JSON form; only null is allowed here"
    return UnsupportedError(_at(path, reason), field=path, type=str(type_))


def _shown(value: object) -> str:
    """A value for a message, however large or deep it is."""
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, int) and value.bit_length() > 128:
        return "a huge number"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
