"""What the text of a table property may be: a number, a flag, one of some words (spec: Table Metadata).

Properties are text in the metadata, whatever they mean; these rules are as strict as the programs that share a table.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from icefloe.errors import FormatError
from icefloe.model.locations import parse_location

INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1
_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")
_METRICS = re.compile(r"none|counts|full|truncate\((?=[0-9]*[1-9])[0-9]{1,9}\)")


@dataclass(frozen=True, slots=True)
class Rule:
    """Which texts are good; ``allowed`` says it in words."""

    allowed: str
    accepts: Callable[[str], bool]


def whole(least: int = 0, most: int = LONG_MAX) -> Rule:
    """A whole number of a range, as other programs write it.

    >>> whole(1).allowed, whole(1).accepts("0"), whole(1).accepts("1_000"), whole(1).accepts("1000")
    ('a whole number of 1 or more', False, False, True)
    """
    words = "a whole number" if least < 0 else f"a whole number from {least} to {most}"
    if most == LONG_MAX:
        words = f"a whole number of {least} or more"
    return Rule(words, lambda text: _NUMBER.fullmatch(text) is not None and least <= int(text) <= most)


def one_of(*words: str) -> Rule:
    """One of some words, in any case; no text at all is like no property, and is good where it is among them."""
    shown = [word for word in words if word != ""]
    return Rule(" or ".join((", ".join(shown[:-1]), shown[-1])), lambda text: text.lower() in words)


def _is_share(text: str) -> bool:
    try:
        return 0 < float(text) < 1
    except ValueError:
        return False


def _is_location(text: str) -> bool:
    try:
        return text == "" or parse_location(text).is_plain
    except FormatError:
        return False


ANY = Rule("text", lambda text: True)
FLAG = one_of("true", "false")
LEVEL = Rule("a whole number", lambda text: text == "" or whole(-INT_MAX, INT_MAX).accepts(text))
LOCATION = Rule("an absolute location such as s3://bucket/folder, without . or .. in it", _is_location)
SHARE = Rule("a number between 0 and 1", _is_share)
METRICS = Rule(
    "none, counts, truncate(n) with n of 1 or more, or full",
    lambda text: _METRICS.fullmatch(text.strip().lower()) is not None,
)
