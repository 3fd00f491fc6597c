"""Untrusted JSON into typed records, with errors that name the field (spec: Appendix C: JSON serialization).

Records are msgspec structs that mirror the tables of the specification. An invalid value is a ``FormatError`` whose
message starts with the path of the field, such as ``snapshots[3].timestamp-ms``. Unknown keys are kept beside the
records, by path. The fast path forbids them; only a document that has some is decoded again, with the unknown keys
split off.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec

from icefloe.codecs.json.record_shapes import ANY, UNSET, entry_path, fields_of, holds_records, join, misfit, shape_of
from icefloe.errors import CorruptFile, FormatError, IcefloeError, LimitError
from icefloe.limits import DEFAULT, Limits
from icefloe.model.metadata.version_rules import VERSIONS
from icefloe.model.schema.types import Unknown

Int = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1, title="an int")]
Long = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1, title="a long")]
IntCount = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1, title="an int of 0 or more")]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1, title="a long of 0 or more")]
PositiveInt = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1, title="an int of 1 or more")]
PositiveLong = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1, title="a long of 1 or more")]
Uuid = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z", title="a UUID")]

R = TypeVar("R")
E = TypeVar("E", bound=IcefloeError)
Extras: TypeAlias = Mapping[str, Unknown]  # by the path of the object that has the keys
_NO_EXTRAS: Extras = {}


class Record(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", omit_defaults=True):
    """A JSON object of the specification; keys are the names of its fields with dashes."""


class Extensible(Record, frozen=True, forbid_unknown_fields=True):
    """A record whose unknown keys are kept; decode it with ``decode_extensible`` or ``convert_extensible``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The context for converting records to values: the unknown keys of the document, limits, and the version."""

    extras: Extras = field(default_factory=dict)
    limits: Limits = DEFAULT
    version: int = VERSIONS[-1]

    def unknown(self, path: str) -> Unknown:
        """The keys of the object at this path that its record does not have."""
        return self.extras.get(path, ())


_KEYS: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])


def decode_json(decoder: msgspec.json.Decoder[R], data: bytes | msgspec.Raw, path: str = "") -> R:
    """A value from JSON text; ``path`` is its position in the document."""
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        raise misfit(error, _refused(data, path), decoder.type, path) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptFile(_at(path, f"not JSON: {error}"), field=path) from error
    except RecursionError as error:
        raise LimitError(_at(path, "nested too deeply"), field=path) from error


def convert_json(value: object, kind: Any, path: str = "") -> Any:
    """A value of a type from JSON that was parsed already."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise misfit(error, value, kind, path) from error
    except RecursionError as error:
        raise LimitError(_at(path, "nested too deeply"), field=path) from error


def decode_extensible(decoder: msgspec.json.Decoder[R], data: bytes | msgspec.Raw, path: str = "") -> tuple[R, Extras]:
    """A record from JSON text, and the unknown keys of all objects in it by their paths."""
    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return decoder.decode(data), _NO_EXTRAS
    try:
        rest, extras = _split_text(data, decoder.type, path)
        return decode_json(decoder, msgspec.json.encode(rest), path), extras
    except RecursionError as error:
        raise LimitError(_at(path, "nested too deeply"), field=path) from error


def convert_extensible(value: object, kind: type[R], path: str = "") -> tuple[R, Extras]:
    """A record from JSON that was parsed already, and the unknown keys of all objects in it by their paths."""
    extras: dict[str, Unknown] = {}
    try:
        return convert_json(_split(value, kind, path, extras), kind, path), extras
    except RecursionError as error:
        raise LimitError(_at(path, "nested too deeply"), field=path) from error


def _split_text(data: bytes | msgspec.Raw, kind: Any, path: str) -> tuple[object, Extras]:
    """The object without unknown keys; values without records, such as ten thousand snapshots, stay text."""
    known = fields_of(kind)
    keys = decode_json(_KEYS, data, path)
    unknown = tuple((key, _compact(raw)) for key, raw in keys.items() if key not in known)
    extras = {} if len(unknown) == 0 else {path: unknown}
    rest: dict[str, object] = {}
    for key, raw in keys.items():
        if key in known:
            inner = join(path, key)
            nested = holds_records(known[key])
            rest[key] = _split(_parsed(raw, inner), known[key], inner, extras) if nested else raw
    return rest, extras


def _split(value: object, kind: Any, path: str, extras: dict[str, Unknown]) -> object:
    """A copy of the value without unknown keys, which are added to ``extras``; without recursion."""
    top: dict[Any, Any] = {None: value}
    pending: list[tuple[Any, Any, Any, str]] = [(top, None, kind, path)]
    while len(pending) > 0:
        holder, at, kind, path = pending.pop()
        value, shape = holder[at], shape_of(kind)
        if isinstance(value, list) and shape.items is not None:
            holder[at] = inner = list(value)
            pending.extend((inner, i, shape.items, f"{path}[{i}]") for i in range(len(inner)))
        elif isinstance(value, dict) and shape.values is not None:
            holder[at] = entries = dict(value)
            pending.extend((entries, key, shape.values, entry_path(path, key)) for key in entries)
        elif isinstance(value, dict) and (known := shape.fields(value)) is not None:
            holder[at] = rest = {key: inner for key, inner in value.items() if key in known}
            if len(rest) < len(value):
                extras[path] = tuple((key, _text(inner)) for key, inner in value.items() if key not in known)
            pending.extend((rest, key, known[key], join(path, key)) for key in rest if holds_records(known[key]))
    return top[None]


def _compact(raw: msgspec.Raw) -> str:
    return msgspec.json.format(bytes(raw), indent=-1).decode()


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _parsed(data: bytes | msgspec.Raw, path: str) -> Any:
    return decode_json(ANY, data, path)


def _refused(data: bytes | msgspec.Raw, path: str) -> Any:
    """A description of an unexpected value; invalid JSON after it is reported first."""
    try:
        return ANY.decode(data)
    except msgspec.ValidationError:
        return UNSET  # a number that nothing can hold
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _parsed(data, path)


def with_unknown(written: dict[str, Any], unknown: Unknown) -> dict[str, Any]:
    """A JSON object with the unknown keys that came with it, for msgspec to encode; known keys win."""
    if len(unknown) == 0:
        return written
    return written | {key: msgspec.Raw(text.encode()) for key, text in unknown if key not in written}


def missing(path: str, *keys: str) -> FormatError:
    """The error for keys that must be there."""
    return FormatError(_at(path, f"missing {', '.join(keys)}"), field=join(path, keys[0]))


def in_file(error: E, where: str) -> E:
    """The error with the location of the file that it is about."""
    if error.context.get("location") == where:
        return error
    return type(error)(f"{where}: {error}", **{**error.context, "location": where})


def _at(path: str, problem: str) -> str:
    return problem if path == "" else f"{path}: {problem}"
