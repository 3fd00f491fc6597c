"""Untrusted JSON into typed records, with errors that name the field (spec: Appendix C: JSON serialization).

Records are msgspec structs that look like the tables of the specification. What does not fit them is a ``FormatError``
whose message starts with the path of the field, such as ``snapshots[3].timestamp-ms``.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec

from icefloe.errors import CorruptFile, FormatError, LimitError

Int = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Long = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

R = TypeVar("R")


class Record(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", omit_defaults=True):
    """A JSON object of the specification; keys are the names of its fields with dashes."""


def decode_json(decoder: msgspec.json.Decoder[R], data: bytes | msgspec.Raw, path: str = "") -> R:
    """A value from JSON text; ``path`` says where in the document the text stands."""
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        raise _misfit(error, path) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptFile(_at(path, f"not JSON: {error}"), field=path) from error
    except RecursionError as error:
        raise LimitError(_at(path, "nested too deeply"), field=path) from error


def convert_json(value: object, kind: Any, path: str = "") -> Any:
    """A value of a type from JSON that was parsed already."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise _misfit(error, path) from error
    except RecursionError as error:
        raise LimitError(_at(path, "nested too deeply"), field=path) from error


def missing(path: str, *keys: str) -> FormatError:
    """The error for keys that must be there."""
    return FormatError(_at(path, f"missing {', '.join(keys)}"), field=join(path, keys[0]))


def join(path: str, key: str) -> str:
    """The path of a key below a path.

    >>> join("schemas[0]", "fields"), join("", "location"), join("snapshots", "[3]")
    ('schemas[0].fields', 'location', 'snapshots[3]')
    """
    return f"{path}{key}" if path == "" or key == "" or key.startswith("[") else f"{path}.{key}"


def _at(path: str, problem: str) -> str:
    return problem if path == "" else f"{path}: {problem}"


def _misfit(error: msgspec.ValidationError, path: str) -> FormatError:
    reason, _, inner = str(error).partition(" - at `$")
    field = join(path, inner.removesuffix("`").removeprefix("."))
    problem = reason.replace("`", "")
    return FormatError(_at(field, problem[:1].lower() + problem[1:]), field=field)
