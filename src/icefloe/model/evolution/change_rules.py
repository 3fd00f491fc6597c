"""Which changes of a column the format allows (spec: Schema Evolution, Identifier Field IDs, Reserved Field IDs).

Each rule is a function that returns the reason against a change, or None; its callers raise the error.
"""

from __future__ import annotations

from collections.abc import Mapping

from icefloe.model.metadata.version_rules import DEFAULT_FORMAT_VERSION
from icefloe.model.partition.transform_names import TRANSFORM_NAMES
from icefloe.model.schema import types as iceberg
from icefloe.model.schema.metadata_columns import is_metadata_column

# The first format version of each promotion. Promotions of decimal and unknown are not in it: they have rules instead.
_PROMOTIONS: Mapping[tuple[iceberg.Type, iceberg.Type], int] = {
    (iceberg.INT, iceberg.LONG): 1,
    (iceberg.FLOAT, iceberg.DOUBLE): 1,
    (iceberg.DATE, iceberg.TIMESTAMP): 3,
    (iceberg.DATE, iceberg.TIMESTAMP_NS): 3,
}
_ALLOWED = "int to long, float to double, decimals of more digits, and from format version 3 on date to timestamp"
_SAME_FOR_DATES = frozenset(transform.name for transform in TRANSFORM_NAMES if transform.same_for_dates)


def promotion_since(old: iceberg.Type, new: iceberg.Type) -> int | None:
    """The first format version that promotes one type to another; ``None`` if none does.

    >>> promotion_since(iceberg.INT, iceberg.LONG), promotion_since(iceberg.LONG, iceberg.INT)
    (1, None)
    """
    if old == new:
        return None
    if old == iceberg.UNKNOWN:
        return max(iceberg.since(old), iceberg.since(new))
    if isinstance(old, iceberg.Decimal) and isinstance(new, iceberg.Decimal):
        return 1 if old.scale == new.scale and old.precision < new.precision else None
    return _PROMOTIONS.get((old, new)) if iceberg.is_primitive(old) and iceberg.is_primitive(new) else None


def promotes(old: iceberg.Type, new: iceberg.Type, format_version: int = DEFAULT_FORMAT_VERSION) -> bool:
    """Whether every value of the old type is one of the new, by a promotion of the format version.

    >>> promotes(iceberg.INT, iceberg.LONG), promotes(iceberg.LONG, iceberg.INT)
    (True, False)
    """
    first = promotion_since(old, new)
    return first is not None and first <= format_version


def promotion_problem(old: iceberg.Type, new: iceberg.Type, format_version: int = DEFAULT_FORMAT_VERSION) -> str | None:
    """Why a column may not change from one type to another; ``None`` if it may, or if the types are equal."""
    if old == new or promotes(old, new, format_version):
        return None
    first = promotion_since(old, new)
    if first is not None:
        return f"{old} is promoted to {new} from format version {first} on, and this is {format_version}"
    if not iceberg.is_primitive(old) or not iceberg.is_primitive(new):
        return f"{kind(old)} and {kind(new)} never turn into each other; {_REMEDY.get(kind(old), 'add a new column')}"
    if isinstance(old, iceberg.Decimal) and isinstance(new, iceberg.Decimal) and old.scale != new.scale:
        return f"the scale of {old} is fixed, only its precision may grow"
    if promotion_since(new, old) is not None:
        return f"{new} is narrower than {old}, and written values may not fit"
    return f"{old} is not promoted to {new}; allowed are {_ALLOWED}"


_REMEDY = dict.fromkeys(("struct", "list", "map"), "change the fields inside instead")


def keeps_partition_values(transform: str, old: iceberg.Type) -> bool:
    """Whether a partition transform gives a promoted column the values it gave before.

    Integers, floats and decimals hash, truncate and compare alike at every width, and all values of unknown are null.
    A date and its midnight are stored as different numbers, so only transforms of the calendar keep their values.
    """
    return old != iceberg.DATE or transform in _SAME_FOR_DATES


def partition_source_problem(type_: iceberg.Type) -> str | None:
    """Why no partition field can have a source of this type."""
    if iceberg.is_primitive(type_) and not isinstance(type_, (iceberg.Geometry, iceberg.Geography)):
        return None
    return f"a {kind(type_)} cannot be partitioned by"


def reserved_name_problem(name: str) -> str | None:
    """Why no column of a table, as opposed to a field of a struct, can have this name.

    >>> reserved_name_problem("_file")
    "'_file' is the name of a metadata column; choose another name"
    """
    return f"{name!r} is the name of a metadata column; choose another name" if is_metadata_column(name) else None


def identifier_problem(
    type_: iceberg.Type, *, required: bool, owners: tuple[tuple[str, iceberg.Type, bool], ...]
) -> str | None:
    """Why a column cannot identify rows; ``owners`` are name, type and required of the fields around it."""
    if not iceberg.is_primitive(type_):
        return f"it is a {kind(type_)}, and only primitive columns identify rows"
    if type_ in (iceberg.FLOAT, iceberg.DOUBLE):
        return f"a {type_} cannot identify rows"
    if not required:
        return "it is optional, and null identifies nothing"
    for name, around, always in owners:
        if kind(around) != "struct":
            return f"it is inside the {kind(around)} {name!r}"
        if not always:
            return f"it is inside {name!r}, which is optional"
    return None


def kind(type_: iceberg.Type) -> str:
    """What sort of type it is, in a word or two: ``struct``, ``long``, ``decimal(9, 2)``."""
    return str(type_) if iceberg.is_primitive(type_) else type(type_).__name__.lower()
