"""Checks that names, comments and properties of a table are strings (spec: Table Metadata).

JSON could store numbers instead, but no reader would accept the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from icefloe.errors import InputError

T = TypeVar("T")


def text_problem(value: object) -> str | None:
    """Why a value cannot be a text of the metadata; ``None`` if it can.

    >>> text_problem(5)
    "expected text, got 5; write '5'"
    """
    if not isinstance(value, str):
        written = _written(value)
        return f"expected text, got {value!r}" + ("" if written is None else f"; write {written!r}")
    try:
        value.encode()
    except UnicodeEncodeError:
        return f"{value!r} has half of a surrogate pair, which no file can hold"
    return None


def _written(value: object) -> str | None:
    """The text that was probably meant, for numbers and booleans."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (int, float)) else None


def named_problem(name: object, doc: object) -> str | None:
    """Why a column cannot have this name and comment, as far as both must be text; ``None`` if it can."""
    for what, text in (("name", name), ("comment", doc)):
        problem = None if text is None and what == "comment" else text_problem(text)
        if problem is not None:
            return f"its {what}: {problem}"
    return None


def check_text(value: object, what: str) -> None:
    """Refuse what is not text; ``what`` names it in the error."""
    problem = text_problem(value)
    if problem is not None:
        raise InputError(f"{what}: {problem}")


def check_property_texts(properties: Mapping[str, str]) -> None:
    """Refuse properties whose name or value is not text; the error shows the text that was meant.

    >>> check_property_texts({"write.target-file-size-bytes": 1000})
    Traceback (most recent call last):
    icefloe.errors.InputError: property 'write.target-file-size-bytes': expected text, got 1000; write '1000'
    """
    for name, value in properties.items():
        check_text(name, f"name of property {name!r}")
        problem = text_problem(value)
        if problem is not None:
            hint = "; to remove it, name it in remove" if value is None else ""
            raise InputError(f"property {name!r}: {problem}{hint}", property=name)


def listed(values: Iterable[T], argument: str) -> tuple[T, ...]:
    """The values of an argument as a tuple. A single text is not the list of its letters.

    >>> listed("city", "columns")
    Traceback (most recent call last):
    icefloe.errors.InputError: columns='city' is a text, and a list is expected; write columns=['city']
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        kind = "a text" if isinstance(values, str) else f"of type {type(values).__name__}"
        raise InputError(
            f"{argument}={values!r} is {kind}, and a list is expected; write {argument}=[{values!r}]", argument=argument
        )
    return tuple(values)


def property_names(names: Iterable[str]) -> tuple[str, ...]:
    """Names of properties as a tuple; a single text is not the names of its letters.

    >>> property_names("owner")
    Traceback (most recent call last):
    icefloe.errors.InputError: remove='owner' is a text, and a list is expected; write remove=['owner']
    """
    return listed(names, "remove")
