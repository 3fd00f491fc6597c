"""The structure of JSON records, for errors and for unknown keys (spec: Appendix C: JSON serialization).

The annotations of the structs give the keys of an object, the keys with nested objects, and error messages in the
words of the specification: ``expected a long, got "x"``.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from icefloe.errors import FormatError

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_MISSING = re.compile(r"Object missing required field `(.*)`")
_SHOWN = 40  # characters of a wrong value
_WORDS = {str: "a string", bool: "a boolean", float: "a number", int: "a long"}
_TAG = "type"

UNSET = msgspec.UNSET
# Numbers with a point stay text, so that they can be written again digit by digit.
ANY = msgspec.json.Decoder(float_hook=msgspec.Raw)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The values allowed at a path: a list of ``items``, a map of ``values``, or one of ``records`` by tag."""

    items: Any = None
    values: Any = None
    records: Mapping[str | None, type[msgspec.Struct]]

    def fields(self, value: Mapping[str, object]) -> Mapping[str, Any] | None:
        """The keys of the record that matches an object, with their annotations; None if no record matches."""
        if len(self.records) == 1:
            return fields_of(next(iter(self.records.values())))
        tag = value.get(_TAG)
        record = self.records.get(tag) if isinstance(tag, str) else None
        return None if record is None else fields_of(record)


@cache
def shape_of(kind: Any) -> Shape:
    """The shape of an annotation."""
    items = values = None
    records: dict[str | None, type[msgspec.Struct]] = {}
    for option in _options(kind):
        origin, args = get_origin(option), get_args(option)
        if origin in (list, tuple):
            items = args[0]
        elif origin is dict:
            values = args[1]
        elif isinstance(option, type) and issubclass(option, msgspec.Struct):
            tag = option.__struct_config__.tag
            records[tag if isinstance(tag, str) else None] = option
    return Shape(items=items, values=values, records=records)


@cache
def fields_of(record: type[msgspec.Struct]) -> Mapping[str, Any]:
    """The keys of a record's JSON object, with their annotations."""
    own = {field.encode_name: field.type for field in msgspec.structs.fields(record)}
    tag = record.__struct_config__.tag
    return own if tag is None else {_TAG: Literal[tag], **own}


@cache
def holds_records(kind: Any) -> bool:
    """Whether the value may contain records whose unknown keys must be kept."""
    shape = shape_of(kind)
    inner = [nested for nested in (shape.items, shape.values) if nested is not None]
    kept = any(record.__struct_config__.forbid_unknown_fields for record in shape.records.values())
    return kept or any(holds_records(nested) for nested in inner)


def _options(kind: Any) -> Iterator[Any]:
    """The members of a union, without its null and without what ``Annotated`` adds."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        for option in get_args(kind):
            yield from _options(option)
    elif origin is Annotated:
        yield get_args(kind)[0]
    elif kind is not type(None):
        yield kind


def join(path: str, key: str) -> str:
    """The path of a key below a path.

    >>> join("schemas[0]", "fields"), join("", "location"), join("snapshots", "[3]")
    ('schemas[0].fields', 'location', 'snapshots[3]')
    """
    return f"{path}{key}" if path == "" or key == "" or key.startswith("[") else f"{path}.{key}"


def entry_path(path: str, key: str) -> str:
    """The path of an entry of a map, whose key may be any text.

    >>> entry_path("refs", "main")
    'refs["main"]'
    """
    return f'{path}["{key}"]'


def misfit(error: msgspec.ValidationError, value: object, kind: Any, path: str) -> FormatError:
    """The error for a value that msgspec refused: its path, what was expected, and what is there."""
    reason, _, inner = str(error).partition(" - at `$")
    steps = _STEP.findall(inner.removesuffix("`"))
    field, kind, value = _located(steps, path, kind, value)
    at = "" if field == "" else f"{field}: "
    if (absent := _MISSING.fullmatch(reason)) is not None:
        return FormatError(f"{at}missing {absent[1]}", field=join(field, absent[1]))
    if kind is None:
        plain = reason.replace("`", "")
        return FormatError(f"{at}{plain[:1].lower()}{plain[1:]}", field=field)
    got = "" if value is UNSET else f", got {shown(value)}"
    return FormatError(f"{at}expected {_words(kind)}{got}", field=field)


def _located(steps: list[tuple[str, str]], path: str, kind: Any, value: Any) -> tuple[str, Any, Any]:
    """Follow msgspec's path from a value and its annotation; the annotation is None where any value is allowed."""
    for key, index in steps:
        value = _plain(value)
        shape = shape_of(kind)
        if key != "":
            known = shape.fields(value if isinstance(value, dict) else {})
            kind = _tags(shape) if known is None else known.get(key)
            value = value.get(key, UNSET) if isinstance(value, dict) else UNSET
            path = join(path, key)
        elif index == "...":
            kind = shape.values
            name, value = _first_misfit(value, kind)
            path = entry_path(path, name)
        else:
            kind = shape.items
            value = value[int(index)] if isinstance(value, list) and int(index) < len(value) else UNSET
            path = f"{path}[{index}]"
    return path, None if kind is Any else kind, _plain(value)


def _tags(shape: Shape) -> Any:
    """The allowed tags of an object: no record matches because its tag is another one."""
    tags = tuple(tag for tag in shape.records if tag is not None)
    return Literal[tags] if len(tags) > 0 else None


def _first_misfit(value: Any, kind: Any) -> tuple[str, Any]:
    """The first invalid entry of a map, whose key msgspec does not report."""
    for key, inner in value.items() if isinstance(value, dict) else ():
        try:
            msgspec.convert(inner, kind)
        except msgspec.ValidationError:
            return key[:_SHOWN], inner
    return "...", UNSET


def _plain(value: Any) -> Any:
    """The decoded value of a JSON text; the text itself if it cannot be decoded, such as a very long number."""
    if not isinstance(value, msgspec.Raw):
        return value
    try:
        return ANY.decode(value)
    except msgspec.ValidationError:
        return value


def _words(kind: Any) -> str:
    """What an annotation expects."""
    if get_origin(kind) is Annotated:
        return str(get_args(kind)[1].title)
    if get_origin(kind) in (Union, types.UnionType):
        words = [_words(option) for option in get_args(kind) if option is not type(None)]
        return " or ".join(dict.fromkeys(words))
    if get_origin(kind) is Literal:
        return " or ".join(f'"{option}"' for option in get_args(kind))
    if get_origin(kind) in (list, tuple):
        return "a list"
    return _WORDS.get(kind, "an object")


def shown(value: object) -> str:
    """A wrong value as JSON, shortened for error messages.

    >>> shown("x"), shown(None), shown([1, 2]), shown(1.5)
    ('"x"', 'null', 'a list', '1.5')
    """
    if isinstance(value, msgspec.Raw):
        value = msgspec.Raw(bytes(value)[: _SHOWN + 1])
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = msgspec.json.encode(value[: _SHOWN + 1] if isinstance(value, str) else value).decode()
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
