"""Counts and sizes as people read them."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """A value whose fields are figures, such as the result of an operation."""

    def as_dict(self) -> dict[str, object]:
        """All public fields by name."""
        return {name: value for name, value in asdict(self).items() if not name.startswith("_")}


_UNITS = ("kB", "MB", "GB", "TB")


def size_text(size: int) -> str:
    """A number of bytes in a suitable unit.

    >>> size_text(999), size_text(48_213), size_text(5_000_000)
    ('999 B', '48.2 kB', '5.0 MB')
    """
    if size < 1000:
        return f"{size} B"
    power = next((p for p in range(1, len(_UNITS)) if size < 999.95 * 1000**p), len(_UNITS))
    return f"{size / 1000**power:,.1f} {_UNITS[power - 1]}"


def plural(count: int, noun: str) -> str:
    """A count with its noun.

    >>> plural(1, "row"), plural(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
