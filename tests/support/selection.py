"""Which tests run: ``ICEFLOE_TESTS`` is ``fast``, ``test`` or ``thorough``; without it, all that pytest is given.

Every test is in one of three tiers:

* THOROUGH: the files of ``THOROUGH_FILES``, the tests marked ``thorough``, the cases of format versions 1 and 3 of a
  test that also has 2 or 4 (on Spark, of 1 to 3 if it also has 4), and the cases of a slow test that ``make test``
  leaves out;
* TEST: all other slow tests: those marked ``slow`` or ``spark``, those in ``SLOW_FOLDERS``, and those that need Spark
  or a server;
* FAST: all others.

``make test`` runs a slow test, for each format version, with the first value of every argument. It also runs the other
values of the arguments in ``EVERY_VALUE``, and all cases of the files in ``EVERY_CASE``. A test lists its most
important value first.

``make fast`` runs the tier FAST, ``make test`` FAST and TEST, ``make thorough`` the tier THOROUGH, and all hypothesis
tests again with more examples. docs/development.md repeats the lists.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path

import pytest
from hypothesis import settings

CHOICE = os.environ.get("ICEFLOE_TESTS", "")
SHARE = os.environ.get("ICEFLOE_SHARE", "0/1")  # of the thorough run: "1/2" is the second of two parts
SLOW_FOLDERS = frozenset({"e2e", "fuzz", "property", "spark", "spark_sql", "version_4"})
SLOW_PATHS = frozenset(Path(__file__).parents[1] / name for name in SLOW_FOLDERS)
SERVERS = frozenset({"spark", "s3", "postgres_server"})
# Arguments whose value is a format version, or a tuple that begins with one.
VERSION_NAMES = ("version", "format_version", "table", "people")
USUAL_VERSIONS = frozenset({2, 4})
USUAL_ON_SPARK = frozenset({4})
# Arguments of slow tests of which `make test` runs every value.
EVERY_VALUE = frozenset({"catalog", "seeds", "verb"})
# Files of slow tests of which `make test` runs every case.
EVERY_CASE = frozenset({"test_conflicts.py", "test_refusals.py"})
# Files of which `make test` runs nothing.
THOROUGH_FILES = frozenset(
    {
        "test_apply_changes_on_spark.py",
        "test_changes_on_spark.py",
        "test_commits_on_spark.py",
        "test_conditions_on_spark.py",
        "test_data_path_on_spark.py",
        "test_distributed_planning.py",
        "test_distribution.py",
        "test_equality_deletes_on_spark.py",
        "test_faults_on_a_cluster.py",
        "test_float_filters.py",
        "test_identity_partitions.py",
        "test_kept_rows.py",
        "test_killed_streams.py",
        "test_lineage_on_spark.py",
        "test_local_cluster.py",
        "test_many_statements.py",
        "test_metadata_columns_on_spark.py",
        "test_nested_selection_on_spark.py",
        "test_object_store_on_spark.py",
        "test_parquet_settings.py",
        "test_position_memory.py",
        "test_python_of_tasks.py",
        "test_same_rows_on_both_engines.py",
        "test_sorted_writes_on_spark.py",
        "test_spark_connect.py",
        "test_task_reads_on_spark.py",
        "test_transforms.py",
        "test_transforms_without_python.py",
        "test_types_on_spark.py",
        "test_upsert.py",
    }
)
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
    files = files_of_share([file_of(item) for item in items], SHARE if choice == "thorough" else "0/1")
    chosen: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item, tier in zip(items, tiers_of(items), strict=True):
        again = choice == "thorough" and is_hypothesis_test(item)
        here = file_of(item) in files and (again or tier in TIERS[choice])
        (chosen if here else others).append(item)
    return chosen, others


def files_of_share(files: Iterable[str], share: str) -> frozenset[str]:
    """The files of a part of the thorough run: of ``1/5`` the second of each five files, in the order of their names.

    >>> sorted(files_of_share(["d", "a", "c", "b", "a"], "1/2"))
    ['b', 'd']
    """
    part, _, parts = share.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and int(part) < int(parts)):
        raise pytest.UsageError(f"ICEFLOE_SHARE is {share!r}: set it to a part such as 0/2 or 1/2")
    return frozenset(sorted(set(files))[int(part) :: int(parts)])


def tiers_of(items: Sequence[pytest.Item]) -> list[Tier]:
    """The tiers of tests, some of which are cases of the same test."""
    usual = frozenset(name_of(item) for item in items if version_of(item) in usual_versions(item))
    tiers = [tier_of(item, usual) for item in items]
    slow: dict[tuple[str, int | None], list[pytest.Item]] = {}
    for item, tier in zip(items, tiers, strict=True):
        if tier is Tier.TEST and item.path.name not in EVERY_CASE:
            slow.setdefault((name_of(item), version_of(item)), []).append(item)
    left_out = {item for cases in slow.values() for item in set(cases) - first_cases(cases)}
    return [Tier.THOROUGH if item in left_out else tier for item, tier in zip(items, tiers, strict=True)]


def first_cases(cases: Sequence[pytest.Item]) -> set[pytest.Item]:
    """The cases with the first value of each argument but those in ``EVERY_VALUE``, or the first case."""
    values = [values_of(case) for case in cases]
    return {case for case, own in zip(cases, values, strict=True) if _are_equal(own, values[0])} or {cases[0]}


def values_of(case: pytest.Item) -> dict[str, object]:
    """The values of the arguments of a case, but of those in ``EVERY_VALUE``."""
    callspec = getattr(case, "callspec", None)
    return {} if callspec is None else {n: value for n, value in callspec.params.items() if n not in EVERY_VALUE}


def _are_equal(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    """Whether values are the same; tables and arrays are only equal to themselves."""
    return all(value is other[n] or (isinstance(value, (str, int)) and value == other[n]) for n, value in one.items())


def tier_of(item: pytest.Item, usual: frozenset[str]) -> Tier:
    """The tier of a test, apart from its other cases; ``usual`` names the tests that have cases of usual versions."""
    if item.get_closest_marker("thorough") is not None or item.path.name in THOROUGH_FILES:
        return Tier.THOROUGH
    if version_of(item) not in (None, *usual_versions(item)) and name_of(item) in usual:
        return Tier.THOROUGH
    marked = any(item.get_closest_marker(name) is not None for name in ("slow", "spark"))
    slow = marked or item.path.parent in SLOW_PATHS
    return Tier.TEST if slow or uses(item, *SERVERS) else Tier.FAST


def usual_versions(item: pytest.Item) -> frozenset[int]:
    """The format versions of which ``make test`` runs the cases of a test."""
    return USUAL_ON_SPARK if uses(item, "spark") else USUAL_VERSIONS


def uses(item: pytest.Item, *fixtures: str) -> bool:
    """Whether a test asks for one of these fixtures, itself or through others."""
    return not frozenset(fixtures).isdisjoint(getattr(item, "fixturenames", ()))


def version_of(item: pytest.Item) -> int | None:
    """The format version that a case is about, if its arguments name one."""
    callspec = getattr(item, "callspec", None)
    values = {} if callspec is None else callspec.params
    for value in (values[name] for name in VERSION_NAMES if name in values):
        version = value[0] if isinstance(value, tuple) and len(value) > 0 else value
        if isinstance(version, int):
            return version
    return None


def name_of(item: pytest.Item) -> str:
    """The name of a test without its case."""
    return item.nodeid.partition("[")[0]


def file_of(item: pytest.Item) -> str:
    """The file of a test."""
    return item.nodeid.partition("::")[0]


def is_hypothesis_test(item: pytest.Item) -> bool:
    """Whether hypothesis makes the examples of a test."""
    return getattr(getattr(item, "obj", None), "is_hypothesis_test", False) is True
