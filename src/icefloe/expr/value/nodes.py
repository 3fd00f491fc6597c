"""SQL value expressions as frozen nodes.

Functions have one name here whatever their spelling in SQL. What must be known before any row, such as a pattern or
the type of a cast, is an option of the call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Reference:
    """A column by the names down to it, with the name of its table in front if the text has it."""

    path: tuple[str, ...]

    @property
    def name(self) -> str:
        """The dotted name."""
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class Constant:
    """A value from the text; it takes the type of what it meets."""

    value: Any  # an Arrow scalar


@dataclass(frozen=True, slots=True)
class Call:
    """A function or an operator; ``options`` are what it must know before any row."""

    function: str
    arguments: tuple[Node, ...]
    options: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """The result of the first condition that is true, else ``default``."""

    conditions: tuple[Node, ...]
    results: tuple[Node, ...]
    default: Node


Node: TypeAlias = Reference | Constant | Call | Case
NULL = Constant(pa.scalar(None))
ARRAY = "array"  # of its arguments
MAP = "map"  # of its arguments: keys, and as many values
STRUCT = "struct"  # of its arguments, whose names are its option
WITH_FIELDS = "with fields"  # a struct, and new values of the fields whose paths are its option


def walk(node: Node) -> Iterator[Node]:
    """A node and all below it."""
    pending: list[Node] = [node]
    while len(pending) > 0:
        found = pending.pop()
        yield found
        match found:
            case Call():
                pending.extend(found.arguments)
            case Case():
                pending.extend((*found.conditions, *found.results, found.default))
