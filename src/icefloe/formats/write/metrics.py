"""Metrics modes: how much of each column the metadata records (spec: Manifests).

``none`` records nothing; ``counts`` the numbers of values, nulls and NaNs; ``truncate(n)`` also bounds of at most n
characters or bytes; ``full`` also bounds at full length. Names, defaults and limits are Iceberg's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from icefloe.errors import InputError
from icefloe.model.metadata.properties import METRICS_COLUMN, METRICS_DEFAULT, METRICS_MAX_INFERRED
from icefloe.model.schema.schema import Schema

_TRUNCATE = re.compile(r"truncate\((\d{1,9})\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsMode:
    """What is kept of a column; without a ``length`` its bounds are whole."""

    counts: bool = True
    bounds: bool = True
    length: int | None = None


NONE = MetricsMode(counts=False, bounds=False)
COUNTS = MetricsMode(bounds=False)
FULL = MetricsMode()
DEFAULT = MetricsMode(length=16)

Modes = Mapping[int, MetricsMode]  # by field id


def parse_mode(text: str, name: str) -> MetricsMode:
    """The mode that a property sets; ``name`` is the property, for errors.

    >>> parse_mode("truncate(8)", "write.metadata.metrics.default").length
    8
    """
    plain = text.strip().lower()
    known = {"none": NONE, "counts": COUNTS, "full": FULL}.get(plain)
    if known is not None:
        return known
    match = _TRUNCATE.fullmatch(plain)
    if match is None or int(match[1]) == 0:
        raise InputError(
            f"property {name}: expected none, counts, truncate(n) with n of 1 or more, or full, got {text!r}",
            property=name,
        )
    return MetricsMode(length=int(match[1]))


def metrics_modes(schema: Schema, properties: Mapping[str, str], sorted_ids: frozenset[int] = frozenset()) -> Modes:
    """The mode of each column that may have statistics, by field id.

    If the table sets no default mode, only the first columns have bounds (``write.metadata.metrics.max-inferred-column-
    defaults`` of them). Sort columns always have bounds, unless the property of the column says otherwise.
    """
    asked = properties.get(METRICS_DEFAULT.name)
    others = DEFAULT if asked is None else parse_mode(asked, METRICS_DEFAULT.name)
    first = METRICS_MAX_INFERRED.of(properties)
    modes: dict[int, MetricsMode] = {}
    for position, id_ in enumerate(schema.measured):
        mode = NONE if asked is None and position >= first else others
        if id_ in sorted_ids and not mode.bounds:
            mode = DEFAULT
        own = METRICS_COLUMN + schema.names[id_]
        modes[id_] = parse_mode(properties[own], own) if own in properties else mode
    return modes
