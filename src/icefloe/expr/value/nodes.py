"""SQL value expressions as frozen nodes.

A function has one name here, however SQL spells it. What must be a constant, such as a pattern or the type of a cast,
is an option of the call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Reference:
    """A column, or a field inside structs, by its path of names; the first may be the alias of a table."""

    path: tuple[str, ...]

    @property
    def name(self) -> str:
        """The dotted name."""
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of the text; it takes the type of the values it is combined with."""

    value: Any  # an Arrow scalar


@dataclass(frozen=True, slots=True)
class Call:
    """A function or an operator; ``options`` are its constant parameters."""

    function: str
    arguments: tuple[Node, ...]
    options: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """The result that belongs to the first condition that is true, else ``default``."""

    conditions: tuple[Node, ...]
    results: tuple[Node, ...]
    default: Node


@dataclass(frozen=True, slots=True)
class SparkText:
    """Spark SQL as its author wrote it, which only Spark evaluates."""

    text: str


Node: TypeAlias = Reference | Constant | Call | Case | SparkText
NULL = Constant(pa.scalar(None))
ARRAY = "array"  # arguments: the elements
MAP = "map"  # arguments: the keys, then as many values
STRUCT = "struct"  # arguments: the field values; option: the field names
WITH_FIELDS = "with fields"  # arguments: a struct, then new values of fields; option: the paths of these fields


def walk(node: Node) -> Iterator[Node]:
    """A node and all nodes below it."""
    pending: list[Node] = [node]
    while len(pending) > 0:
        current = pending.pop()
        yield current
        match current:
            case Call():
                pending.extend(current.arguments)
            case Case():
                pending.extend((*current.conditions, *current.results, current.default))
