"""Which single changes the format allows (spec: Schema Evolution, Default values, Identifier Field IDs).

Each rule is a function that answers with the reason against a change, or with none; who asks makes it an error.
"""

from __future__ import annotations

import datetime
import re
import uuid
from collections.abc import Callable, Mapping

from icefloe.model.types import DOUBLE, FLOAT, INT, LONG, Decimal, Fixed, PrimitiveType, Type, is_primitive

MAX_COLUMN_ID = 2_147_483_447  # spec: Reserved Field IDs

_WIDER: Mapping[Type, Type] = {INT: LONG, FLOAT: DOUBLE}
_DECIMAL_TEXT = re.compile(r"[+-]?(\d+)(?:\.(\d+))?")


def promotes(old: Type, new: Type) -> bool:
    """Whether every value of the old type is one of the new, by a promotion of the spec.

    >>> promotes(INT, LONG), promotes(LONG, INT), promotes(Decimal(9, 2), Decimal(12, 2))
    (True, False, True)
    """
    if isinstance(old, Decimal) and isinstance(new, Decimal):
        return old.scale == new.scale and old.precision < new.precision
    return _WIDER.get(old) == new


def promotion_problem(old: Type, new: Type) -> str | None:
    """Why a column may not go from one type to another; ``None`` if it may, or if nothing changes."""
    if old == new or promotes(old, new):
        return None
    if not is_primitive(old) or not is_primitive(new):
        return f"{_kind(old)} and {_kind(new)} never turn into each other; change the fields inside instead"
    if isinstance(old, Decimal) and isinstance(new, Decimal) and old.scale != new.scale:
        return f"the scale of {old} is fixed, only its precision may grow"
    if promotes(new, old):
        return f"{new} is narrower than {old}, and written values may not fit"
    return f"{old} is not promoted to {new}; allowed are int to long, float to double, and decimals of more digits"


def default_problem(value: object, type_: PrimitiveType) -> str | None:
    """Why a JSON value is not a default of a type; ``None`` if it is one."""
    fits = _decimal if isinstance(type_, Decimal) else _fixed if isinstance(type_, Fixed) else _FITS[str(type_)]
    try:
        fine = fits(value, type_)
    except (TypeError, ValueError):
        fine = False
    return None if fine else f"{value!r} is not the JSON form of a {type_}"


def identifier_problem(type_: Type, *, required: bool, owners: tuple[tuple[str, Type, bool], ...]) -> str | None:
    """Why a column cannot identify rows; ``owners`` are name, type and required of the fields around it."""
    if not is_primitive(type_):
        return f"it is a {_kind(type_)}, and only primitive columns identify rows"
    if type_ in (FLOAT, DOUBLE):
        return f"a {type_} cannot identify rows"
    if not required:
        return "it is optional, and null identifies nothing"
    for name, around, always in owners:
        if _kind(around) != "struct":
            return f"it is inside the {_kind(around)} {name!r}"
        if not always:
            return f"it is inside {name!r}, which is optional"
    return None


def _kind(type_: Type) -> str:
    return str(type_) if is_primitive(type_) else type(type_).__name__.lower()


def _integer(bits: int) -> Callable[[object, Type], bool]:
    def fits(value: object, _: Type) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)

    return fits


def _number(value: object, _: Type) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _decimal(value: object, type_: Type) -> bool:
    found = _DECIMAL_TEXT.fullmatch(value) if isinstance(value, str) and isinstance(type_, Decimal) else None
    if found is None or not isinstance(type_, Decimal):
        return False
    whole, fraction = found[1].lstrip("0"), found[2] or ""
    return len(fraction) == type_.scale and len(whole) + len(fraction) <= type_.precision


def _fixed(value: object, type_: Type) -> bool:
    return isinstance(type_, Fixed) and isinstance(value, str) and len(bytes.fromhex(value)) == type_.length


def _zone(*, present: bool) -> Callable[[object, Type], bool]:
    def fits(value: object, _: Type) -> bool:
        if not isinstance(value, str):
            return False
        zone = datetime.datetime.fromisoformat(value).tzinfo
        return "T" in value and (zone is None if not present else value.endswith("+00:00"))

    return fits


def _text(parse: Callable[[str], object]) -> Callable[[object, Type], bool]:
    def fits(value: object, _: Type) -> bool:
        return isinstance(value, str) and parse(value) is not None

    return fits


_FITS: Mapping[str, Callable[[object, Type], bool]] = {
    "boolean": lambda value, _: isinstance(value, bool),
    "int": _integer(32),
    "long": _integer(64),
    "float": _number,
    "double": _number,
    "date": _text(datetime.date.fromisoformat),
    "time": _text(datetime.time.fromisoformat),
    "timestamp": _zone(present=False),
    "timestamptz": _zone(present=True),
    "string": _text(str),
    "uuid": _text(uuid.UUID),
    "binary": _text(bytes.fromhex),
}
