"""``make fast``, ``make test`` and ``make thorough`` together run every test, and each runs what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from architecture.source_tree import TESTS
from support.selection import Tier, divide, every, examples, first, in_share, sampled

CASES = """
import pytest
from hypothesis import given, strategies as st
from support.selection import first

@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_rule_of_all_versions(version): ...

@pytest.mark.parametrize("version", [1])
def test_a_rule_of_version_1_alone(version): ...

@pytest.mark.parametrize("case", first(1, ["a", "b"]))
def test_a_rule_with_cases(case): ...

@pytest.mark.slow
def test_a_slow_rule(): ...

@pytest.mark.spark
def test_a_rule_on_spark(): ...

@given(st.integers())
def test_a_law(number): ...
"""
FAST = {"of_all_versions[2]", "of_all_versions[4]", "of_version_1_alone[1]", "with_cases[a]", "law"}
SLOW = {"slow_rule", "on_spark"}
REST = {"of_all_versions[1]", "of_all_versions[3]", "with_cases[b]"}


def collected(folder: Path, choice: str) -> set[str]:
    """The tests that pytest runs by a choice, by the end of their names."""
    (folder / "test_cases.py").write_text(CASES, encoding="utf-8")
    (folder / "conftest.py").write_text(
        "from support.selection import CHOICE, divide\n"
        "def pytest_collection_modifyitems(config, items):\n    items[:] = divide(items, CHOICE)[0]\n",
        encoding="utf-8",
    )
    environment = {**os.environ, "ICEFLOE_TESTS": choice, "PYTHONPATH": str(TESTS)}
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-c", os.devnull]
    done = subprocess.run(
        [*command, "--rootdir", str(folder), str(folder)], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    names = [line.split("::test_a_")[1] for line in done.stdout.splitlines() if "::" in line]
    return {name.removeprefix("rule_") for name in names}


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ("fast", FAST),
        ("test", FAST | SLOW),
        ("thorough", REST | {"law"}),  # laws once more, with more examples
        ("", FAST | SLOW | REST),
    ],
)
def test_each_target_runs_the_tests_of_its_tiers(tmp_path: Path, choice: str, names: set[str]) -> None:
    assert collected(tmp_path, choice) == names


def test_an_unknown_choice_is_refused() -> None:
    with pytest.raises(pytest.UsageError, match="ICEFLOE_TESTS is 'quick': set it to fast, test or thorough"):
        divide([], "quick")


def test_some_cases_are_left_to_the_thorough_run() -> None:
    def usual(cases: list[object]) -> list[object]:
        return [case for case in cases if isinstance(case, str)]

    assert usual(first(2, "abcde")) == ["a", "b"]
    assert usual(every(2, "abcde")) == ["a", "c", "e"]


def test_a_slow_test_with_many_cases_leaves_two_of_three_to_the_thorough_run() -> None:
    tiers = sampled([("many", Tier.TEST)] * 9 + [("fast", Tier.FAST)] * 9)
    assert tiers[9:] == [Tier.FAST] * 9
    kept = [place for place, tier in enumerate(tiers[:9]) if tier is Tier.TEST]
    assert len(kept) == 3
    assert {place % 3 for place in kept} == {0, 1, 2}  # all values of an argument that has three
    assert set(tiers[:9]) == {Tier.TEST, Tier.THOROUGH}


def test_one_of_few_cases_of_a_slow_test_stays_and_not_always_the_first() -> None:
    kept = set()
    for name in "abcdefgh":
        tiers = sampled([(name, Tier.TEST)] * 2)
        assert sorted(tier.name for tier in tiers) == ["TEST", "THOROUGH"]
        kept.add(tiers.index(Tier.TEST))
    assert kept == {0, 1}
    assert sampled([("one", Tier.TEST)]) == [Tier.TEST]


def test_a_law_with_a_number_of_its_own_has_as_large_a_share_of_it() -> None:
    assert examples(50) <= examples(500)
    assert examples(1) >= 1


def test_the_shares_of_the_thorough_run_are_the_whole_and_do_not_overlap() -> None:
    files = [f"tests/unit/test_{number}.py" for number in range(50)]
    halves = [{file for file in files if in_share(file, share)} for share in ("0/2", "1/2")]
    assert halves[0] | halves[1] == set(files)
    assert halves[0] & halves[1] == set()
    assert all(in_share(file, "0/1") for file in files)
    for wrong in ("2/2", "half", "1"):
        with pytest.raises(pytest.UsageError, match="ICEFLOE_SHARE"):
            in_share("tests/x.py", wrong)
