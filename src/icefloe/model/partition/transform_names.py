"""The names of partition transforms and the facts that follow from a name (spec: Partition Transforms).

What a transform computes is in ``icefloe.transforms``, which is above the model.
"""

from __future__ import annotations

from dataclasses import dataclass

IDENTITY = "identity"
VOID = "void"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformName:
    """A transform by its name: ``is_sized`` means that a number follows it, as in ``bucket[16]``.

    ``function`` is its name in filters, and in partition texts besides its own; ``suffix`` ends the names of its
    partition fields. ``same_for_dates`` says that dates and the timestamps they are promoted to have equal results.
    """

    name: str
    function: str | None
    suffix: str
    is_sized: bool = False
    is_time: bool = False
    same_for_dates: bool = False


def _time(unit: str, *, same_for_dates: bool = True) -> TransformName:
    return TransformName(name=unit, function=f"{unit}s", suffix=f"_{unit}", is_time=True, same_for_dates=same_for_dates)


TRANSFORM_NAMES = (
    TransformName(name=IDENTITY, function=None, suffix=""),
    _time("year"),
    _time("month"),
    _time("day"),
    _time("hour", same_for_dates=False),
    TransformName(name="bucket", function="bucket", suffix="_bucket", is_sized=True),
    TransformName(name="truncate", function="truncate", suffix="_trunc", is_sized=True),
    TransformName(name=VOID, function="void", suffix="_null", same_for_dates=True),
)

_BY_FUNCTION = {transform.function: transform for transform in TRANSFORM_NAMES if transform.function is not None}
PLAIN_FUNCTIONS = {function: transform.name for function, transform in _BY_FUNCTION.items() if not transform.is_sized}
SIZED_FUNCTIONS = tuple(function for function, transform in _BY_FUNCTION.items() if transform.is_sized)
