"""Which tests run: ``ICEFLOE_TESTS`` is ``fast``, ``test`` or ``thorough``; without it, all that pytest is given.

Every test is in one of three tiers:

* THOROUGH: tests marked ``thorough``, the cases of format versions 1 and 3 of a test that also has 2 or 4, and two of
  three cases of a test of the next tier, but not all of them;
* TEST: of the others, those marked ``slow`` or ``spark``, those in ``SLOW_FOLDERS``, and those that
  need Spark or a server;
* FAST: all the others.

``make fast`` runs the last tier, ``make test`` the last two. ``make thorough`` runs the first one, and all hypothesis
tests once more with more examples.
"""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import Enum

import pytest
from hypothesis import settings

CHOICE = os.environ.get("ICEFLOE_TESTS", "")
SHARE = os.environ.get("ICEFLOE_SHARE", "0/1")  # of the thorough run: "1/2" is the second of two parts
SLOW_FOLDERS = frozenset({"e2e", "fuzz", "property", "spark", "spark_sql", "version_4"})
SERVERS = frozenset({"spark", "s3", "postgres_server"})
VERSION_NAMES = ("version", "format_version")
USUAL_VERSIONS = (2, 4)
MANY_CASES = 3  # of more cases of a test, a third stays in the tier TEST; of fewer, one
DEFAULT_EXAMPLES = 50
FEW_EXAMPLES = 15


class Tier(Enum):
    """When a test runs."""

    FAST = "fast"
    TEST = "test"
    THOROUGH = "thorough"


TIERS = {
    "": frozenset(Tier),
    "fast": frozenset({Tier.FAST}),
    "test": frozenset({Tier.FAST, Tier.TEST}),
    "thorough": frozenset({Tier.THOROUGH}),
}


def first(number: int, cases: Iterable[object]) -> list[object]:
    """Cases for ``parametrize`` of which the first few run in ``make test``, and the others in ``make thorough``."""
    return [case if place < number else thorough(case) for place, case in enumerate(cases)]


def every(step: int, cases: Iterable[object]) -> list[object]:
    """Cases for ``parametrize`` of which each n-th runs in ``make test``, and the others in ``make thorough``."""
    return [case if place % step == 0 else thorough(case) for place, case in enumerate(cases)]


def thorough(case: object) -> object:
    """A case for ``parametrize`` that runs in ``make thorough``; a tuple is the values of several arguments."""
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.thorough)


def examples(number: int) -> int:
    """The examples of a hypothesis test that has ``number`` of them where most tests have 50."""
    usual = settings().max_examples
    return max(usual, number) if usual > DEFAULT_EXAMPLES else max(1, number * usual // DEFAULT_EXAMPLES)


def divide(items: Sequence[pytest.Item], choice: str) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The tests that run by a choice, and those that do not."""
    if choice not in TIERS:
        raise pytest.UsageError(f"ICEFLOE_TESTS is {choice!r}: set it to fast, test or thorough, or to nothing")
    usual = frozenset(name_of(item) for item in items if version_of(item) in USUAL_VERSIONS)
    tiers = sampled([(name_of(item), tier_of(item, usual)) for item in items])
    chosen: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item, tier in zip(items, tiers, strict=True):
        again = choice == "thorough" and is_hypothesis_test(item)
        here = choice != "thorough" or in_share(item.nodeid.partition("::")[0], SHARE)
        (chosen if here and (again or tier in TIERS[choice]) else others).append(item)
    return chosen, others


def in_share(path: str, share: str) -> bool:
    """Whether the tests of a file belong to a part of the thorough run, such as ``1/2``, the second of two.

    >>> [sum(in_share(f"test_{n}.py", f"{part}/3") for n in range(300)) > 60 for part in range(3)]
    [True, True, True]
    """
    part, _, parts = share.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and int(part) < int(parts)):
        raise pytest.UsageError(f"ICEFLOE_SHARE is {share!r}: set it to a part such as 0/2 or 1/2")
    return zlib.crc32(path.encode()) % int(parts) == int(part)


def sampled(cases: Sequence[tuple[str, Tier]]) -> list[Tier]:
    """The tiers of cases, with those that tests with several cases leave to the thorough run.

    The third that stays is not every third case: that would be one value of an argument that has three. Of two or three
    cases one stays, a first one here and a last one there, so that all versions run.
    """
    counts = Counter(name for name, tier in cases if tier is Tier.TEST)
    places: Counter[str] = Counter()
    tiers = []
    for name, tier in cases:
        place, number = places[name], counts[name]
        if number > MANY_CASES:
            stays = (place + place // MANY_CASES) % MANY_CASES == 0
        else:
            stays = place == zlib.crc32(name.encode()) % max(number, 1)
        places[name] += tier is Tier.TEST
        tiers.append(Tier.THOROUGH if tier is Tier.TEST and not stays else tier)
    return tiers


def tier_of(item: pytest.Item, usual: frozenset[str]) -> Tier:
    """The tier of a test; ``usual`` names the tests that have cases of usual versions."""
    if item.get_closest_marker("thorough") is not None:
        return Tier.THOROUGH
    if version_of(item) not in (None, *USUAL_VERSIONS) and name_of(item) in usual:
        return Tier.THOROUGH
    marked = any(item.get_closest_marker(name) is not None for name in ("slow", "spark"))
    slow = marked or item.path.parent.name in SLOW_FOLDERS
    return Tier.TEST if slow or uses(item, *SERVERS) else Tier.FAST


def uses(item: pytest.Item, *fixtures: str) -> bool:
    """Whether a test asks for one of these fixtures, itself or through others."""
    return not frozenset(fixtures).isdisjoint(getattr(item, "fixturenames", ()))


def version_of(item: pytest.Item) -> int | None:
    """The format version that a case is about, if its arguments name one."""
    callspec = getattr(item, "callspec", None)
    values = {} if callspec is None else callspec.params
    return next((values[name] for name in VERSION_NAMES if isinstance(values.get(name), int)), None)


def name_of(item: pytest.Item) -> str:
    """The name of a test without its case."""
    return item.nodeid.partition("[")[0]


def is_hypothesis_test(item: pytest.Item) -> bool:
    """Whether hypothesis makes the examples of a test."""
    return getattr(getattr(item, "obj", None), "is_hypothesis_test", False) is True
