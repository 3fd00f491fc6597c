"""What a procedure of CALL is: its parameters, the columns of its rows, and the function that runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from icefloe.table.catalog import Catalog

Row = tuple[object, ...]
Arguments = Mapping[str, Any]  # texts, tuples and maps of texts, the table as an identifier; no nulls
Run = Callable[[Catalog, Arguments], list[Row]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter: its type, and the SQL of its default; without one it must be given."""

    name: str
    type: str = "string"
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """A procedure; ``result`` are the columns of the rows that it returns."""

    description: str
    parameters: tuple[Parameter, ...]
    result: str
    run: Run
