"""Sort orders: how rows are ordered inside files (spec: Sorting)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class SortField:
    """One key of a sort order."""

    source_id: int
    transform: str = "identity"
    direction: Literal["asc", "desc"] = "asc"
    null_order: Literal["nulls-first", "nulls-last"] = "nulls-first"


@dataclass(frozen=True, slots=True, kw_only=True)
class SortOrder:
    """A numbered list of sort keys; order 0 is "unsorted"."""

    order_id: int = 0
    fields: tuple[SortField, ...] = ()


UNSORTED = SortOrder()
