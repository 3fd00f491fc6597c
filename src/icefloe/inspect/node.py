"""A tree of short texts that prints itself, and texts for names, sizes and ranges."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from itertools import islice

from icefloe.model.text.figures import Figures, plural

_UUID = re.compile(r"([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_INNER_SUFFIXES = re.compile(r"(?:\.[\w-]+)+(?=\.(?:parquet|avro|orc|puffin)$)")
_LONG_NUMBER = re.compile(r"(\d{6})\d{6,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node(Figures):
    """One line of an outline, with its children.

    ``kind`` is metadata, root, manifest, file, vector or more. A ``removed`` node is no longer part of the snapshot.

    >>> print(Node(kind="root", name="r", facts=("1 row",), children=(Node(kind="file", name="f"),)))
    r  1 row
    └── f
    """

    kind: str
    name: str
    facts: tuple[str, ...] = ()
    removed: bool = False
    children: tuple[Node, ...] = ()

    def __str__(self) -> str:
        return "\n".join(_lines(self, "", ""))

    @property
    def text(self) -> str:
        """The line of this node alone."""
        return self.name if len(self.facts) == 0 else f"{self.name}  {', '.join(self.facts)}"


def _lines(node: Node, first: str, later: str) -> Iterator[str]:
    yield first + node.text
    for number, child in enumerate(node.children, 1):
        is_last = number == len(node.children)
        yield from _lines(child, later + ("└── " if is_last else "├── "), later + ("    " if is_last else "│   "))


def short_name(location: str) -> str:
    """The file name of a location, with long numbers abbreviated and without inner suffixes.

    >>> short_name("file:///wh/t/metadata/00003-0d3b1f4e-93f5-4a0c-8a51-6b1f70a2c9d3.metadata.json")
    '00003-0d3b1f4e….metadata.json'
    >>> short_name("part-00000-0d3b1f4e-93f5-4a0c-8a51-6b1f70a2c9d3.c000.zstd.parquet")
    'part-00000-0d3b1f4e….parquet'
    """
    name = _INNER_SUFFIXES.sub("", location.rsplit("/", 1)[-1])
    return _LONG_NUMBER.sub(r"\1…", _UUID.sub(r"\1…", name)).replace("……", "…")


def range_text(lower: object, upper: object) -> str:
    """One value, or a range; the common part of two dates is not repeated.

    >>> range_text(5, 5), range_text(date(2026, 10, 31), date(2026, 11, 2))
    ('5', '2026-10-31..11-02')
    """
    if lower == upper:
        return str(lower)
    first, last = str(lower), str(upper)
    if isinstance(lower, date) and not isinstance(lower, datetime):
        shared = next((n for n in (8, 5) if first[:n] == last[:n]), 0)  # the year and month, or the year
        last = last[shared:]
    return f"{first}..{last}"


def listing(numbers: Iterable[int], most: int = 5) -> str:
    """The first few numbers.

    >>> listing(range(3)), listing(range(100))
    ('0, 1, 2', '0, 1, 2, 3, 4, …')
    """
    few = [str(number) for number in islice(numbers, most + 1)]
    return ", ".join(few if len(few) <= most else [*few[:most], "…"])


def rows_text(count: int | None) -> str:
    """A number of rows, which the entry of a file may not state."""
    return "unknown number of rows" if count is None else plural(count, "row")
