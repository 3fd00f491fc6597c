"""``make fast``, ``make test`` and ``make thorough`` together run every test, and each runs what it says."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from architecture.source_tree import REPO, TESTS, expect_none, functions_of, parse_modules
from support.selection import (
    EVERY_CASE,
    EVERY_VALUE,
    SLOW_FOLDERS,
    THOROUGH_FILES,
    divide,
    examples,
    files_of_share,
    first,
)

PAGE = (REPO / "docs" / "development.md").read_text(encoding="utf-8")
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

@pytest.mark.parametrize("size", [10, 20])
def test_a_rule_of_sizes(size): ...

@pytest.mark.slow
def test_a_slow_rule(): ...

@pytest.mark.spark
def test_a_rule_on_spark(): ...

@pytest.mark.slow
@pytest.mark.parametrize("size", [10, 20])
@pytest.mark.parametrize("verb", ["add", "drop"])
@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_slow_rule_of_versions(version, verb, size): ...

@pytest.mark.slow
@pytest.mark.parametrize(("version", "size"), [(2, 10), (2, 20), (4, 20)])
def test_a_slow_rule_of_pairs(version, size): ...

@pytest.fixture(params=[(2, "one"), (2, "two"), (4, "two"), (4, "one")], ids=lambda pair: f"{pair[0]}-{pair[1]}")
def table(request): ...

@pytest.mark.slow
def test_a_slow_rule_of_tables(table): ...

@pytest.fixture
def spark(): ...

@pytest.mark.parametrize("version", [2, 4])
def test_a_rule_of_versions_on_spark(version, spark): ...

@given(st.integers())
def test_a_law(number): ...
"""
FAST = {"of_all_versions[2]", "of_all_versions[4]", "of_version_1_alone[1]", "with_cases[a]", "law"}
FAST |= {"of_sizes[10]", "of_sizes[20]"}
SLOW = {"slow_rule", "on_spark", "of_versions_on_spark[4]", "slow_rule_of_pairs[2-10]", "slow_rule_of_pairs[4-20]"}
SLOW |= {f"slow_rule_of_versions[{version}-{verb}-10]" for version in (2, 4) for verb in ("add", "drop")}
SLOW |= {"slow_rule_of_tables[2-one]", "slow_rule_of_tables[4-two]"}
REST = {"of_all_versions[1]", "of_all_versions[3]", "with_cases[b]", "of_versions_on_spark[2]"}
REST |= {f"slow_rule_of_versions[{version}-{verb}-20]" for version in (2, 4) for verb in ("add", "drop")}
REST |= {f"slow_rule_of_versions[3-{verb}-{size}]" for verb in ("add", "drop") for size in (10, 20)}
REST |= {"slow_rule_of_pairs[2-20]", "slow_rule_of_tables[2-two]", "slow_rule_of_tables[4-one]"}


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
        ("thorough", REST | {"law"}),  # hypothesis tests again, with more examples
        ("", FAST | SLOW | REST),
    ],
)
def test_each_target_runs_the_tests_of_its_tiers(tmp_path: Path, choice: str, names: set[str]) -> None:
    assert collected(tmp_path, choice) == names


def test_an_unknown_choice_is_refused() -> None:
    with pytest.raises(pytest.UsageError, match="ICEFLOE_TESTS is 'quick': set it to fast, test or thorough"):
        divide([], "quick")


def test_some_cases_are_left_to_the_thorough_run() -> None:
    assert [case for case in first(2, "abcde") if isinstance(case, str)] == ["a", "b"]


def test_every_name_in_the_lists_exists() -> None:
    modules = parse_modules(TESTS)
    files = {module.path.name for module in modules}
    arguments = {a.arg for module in modules for _, function in functions_of(module) for a in function.args.args}
    expect_none(sorted({*EVERY_CASE, *THOROUGH_FILES} - files | EVERY_VALUE - arguments))


def listed(heading: str) -> list[str]:
    """The names between backticks in the paragraph of the page that begins with a text."""
    paragraph = PAGE.split(heading, 1)[1].split("\n\n", 1)[0]
    return re.findall(r"`([^`]+)`", paragraph)


@pytest.mark.parametrize(
    ("heading", "names"),
    [
        ("Every value of these arguments runs:", EVERY_VALUE),
        ("Every case of these files runs:", {f"tests/**/{name}" for name in EVERY_CASE}),
        ("Nothing of these files runs:", THOROUGH_FILES),
        ("Slow are the tests in the folders", SLOW_FOLDERS),
    ],
)
def test_the_page_has_the_lists(heading: str, names: frozenset[str]) -> None:
    assert listed(heading) == sorted(names)


def test_the_page_names_the_files_with_marked_tests() -> None:
    """Tests that are marked by ``thorough``, and values that ``first`` and ``thorough`` leave to ``make thorough``."""
    own = {Path(__file__).name, *THOROUGH_FILES}
    modules = [m for m in parse_modules(TESTS) if m.path.name.startswith("test_") and m.path.name not in own]
    marked = {module.path.name for module in modules if any(map(_is_mark, ast.walk(module.tree)))}
    assert listed("Some tests or values of these files are marked `thorough`:") == sorted(marked)


def _is_mark(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom) and node.module == "support.selection":
        return any(alias.name in ("first", "thorough") for alias in node.names)
    return isinstance(node, ast.Attribute) and ast.unparse(node) == "pytest.mark.thorough"


def test_the_page_has_the_numbers_of_the_makefile_and_of_the_run_for_every_change() -> None:
    makefile = (REPO / "Makefile").read_text(encoding="utf-8")
    script = (REPO / ".ci" / "run").read_text(encoding="utf-8")
    defaults = dict(re.findall(r"^(\w+) \?= (\d+)$", makefile, re.MULTILINE))
    smaller = re.findall(r" ([A-Z]+)=(\d+)", script.split("make thorough", 1)[1])
    assert len(smaller) == 5
    rows = [f"| `{name}` | {defaults[name]} | {number} |" for name, number in smaller]
    expect_none([f"docs/development.md lacks the row {row}" for row in rows if row not in PAGE])


def test_a_law_with_a_number_of_its_own_has_as_large_a_share_of_it() -> None:
    assert examples(50) <= examples(500)
    assert examples(1) >= 1


def test_the_shares_of_the_thorough_run_are_the_whole_and_do_not_overlap() -> None:
    files = [f"tests/unit/test_{number}.py" for number in range(51)]
    shares = [files_of_share(files, f"{part}/5") for part in range(5)]
    assert sorted(file for share in shares for file in share) == sorted(files)
    assert {len(share) for share in shares} == {10, 11}
    assert files_of_share(files, "0/1") == set(files)
    for wrong in ("2/2", "half", "1"):
        with pytest.raises(pytest.UsageError, match="ICEFLOE_SHARE"):
            files_of_share(files, wrong)
