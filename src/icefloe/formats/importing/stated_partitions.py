"""Partition values that the caller states for a file: in its path, as Hive writes them, or explicitly.

A path such as ``region=eu/day=2026-11-15/part-0.parquet`` states two of them. Text becomes a value of the column's type
where that is unambiguous; other text is refused with the name of the field (spec: Partitioning).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, unquote_plus

import pyarrow as pa

from icefloe.errors import InputError
from icefloe.formats.write.partition_values import PartitionColumn, folder, plain_values
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.locations import parse_location
from icefloe.model.schema.types import BINARY, BOOLEAN, UUID, Fixed, Type

HIVE: Final = "hive"
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedByFile:
    """Partition values of each file, by its location and the name of the column."""

    values: Mapping[str, Mapping[str, object]]


def hive_values(location: str) -> dict[str, str | None]:
    """The values that the folders of a location state, as text.

    >>> hive_values("file:///wh/region=eu%20west/day=__HIVE_DEFAULT_PARTITION__/a.parquet")
    {'region': 'eu west', 'day': None}
    """
    folders = parse_location(location).segments[:-1]
    parts = [part.partition("=") for part in folders if not part.startswith("=") and "=" in part]
    return {unquote(name): None if value == HIVE_NULL else unquote(value) for name, _, value in parts}


def stated(column: PartitionColumn, values: Mapping[str, object]) -> tuple[object] | None:
    """The value stated for a partition field, by its name or, for identity, by that of its column; none if absent."""
    name = column.field.name
    if name not in values and column.transform.is_identity:
        name = ".".join(column.path)
    return (values[name],) if name in values else None


def value_of(stated_value: object, column: PartitionColumn) -> object:
    """A stated value of an identity field in the form of partition tuples; text is parsed as the column's type.

    >>> from icefloe.formats.write.partition_values import partition_fields
    >>> from icefloe.model.text.ddl import parse_ddl
    >>> from icefloe.model.partition.spec import PartitionField, PartitionSpec
    >>> field = PartitionField(source_id=1, field_id=1000, transform="identity", name="day")
    >>> columns = partition_fields(parse_ddl("day date"), PartitionSpec(fields=(field,)))
    >>> value_of("1970-01-03", columns[0])
    2
    """
    name, type_ = column.field.name, column.source
    if stated_value is None:
        return None
    try:
        value = _from_text(stated_value, type_) if isinstance(stated_value, str) else stated_value
        array = pa.array([value.bytes if isinstance(value, uuid.UUID) else value], arrow_type(type_))
    except MemoryError:
        raise
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise InputError(
            f"partition {name}={stated_value!r} is no value of type {type_}: {error}", field=name
        ) from error
    return plain_values(array)[0]


def constant_of(value: object, column: PartitionColumn) -> pa.Scalar:
    """A value of an identity field as a constant for the rows of its file."""
    type_ = arrow_type(column.source)
    if isinstance(value, int) and not pa.types.is_boolean(type_) and not pa.types.is_integer(type_):
        days = pa.types.is_date(type_) or pa.types.is_time32(type_)
        return pa.array([value], pa.int32() if days else pa.int64()).view(type_)[0]
    return pa.scalar(value, type_)


def _from_text(text: str, type_: Type) -> object:
    if type_ == BOOLEAN and text.lower() in _BOOLEANS:
        return _BOOLEANS[text.lower()]
    if type_ == UUID:
        return uuid.UUID(text).bytes
    if type_ == BINARY or isinstance(type_, Fixed):
        raise InputError("bytes have no agreed form in a path; give them with partition={...}")
    return pa.scalar(text).cast(arrow_type(type_))


def agrees(stated_value: object, stored_value: object, column: PartitionColumn) -> bool:
    """Whether a stated value equals the one in the rows of a file."""
    if stated_value is None or stored_value is None:
        return stated_value is None and stored_value is None
    if column.transform.is_identity:
        return (value_of(stated_value, column),) == (stored_value,)  # tuples, so that NaN equals NaN
    shown = unquote_plus(folder((stored_value,), (column,)).partition("=")[2])
    return str(stated_value) in (shown, str(stored_value))
