"""The statements about version 4 are numbered 1 to 78, and each has a test in tests/version_4 that names its number."""

from __future__ import annotations

import re
from pathlib import Path

from architecture.source_tree import TESTS, expect_none, functions_of, parse_modules, write_tree

STATEMENTS = range(1, 79)
NAME = re.compile(r"test_(\d\d)_[a-z]")


def statements_tested(root: Path) -> dict[int, list[str]]:
    """Map the number of a statement to the tests that name it."""
    found: dict[int, list[str]] = {}
    for module in parse_modules(root):
        for name, function in functions_of(module):
            number = NAME.match(name.split(".")[-1])
            if number is not None:
                found.setdefault(int(number[1]), []).append(f"{module.at(function)}: {name}")
    return found


def untested(root: Path) -> list[str]:
    """List the statements that no test names."""
    tested = statements_tested(root)
    return [f"no test in {root.name} is named test_{number:02}_..." for number in STATEMENTS if number not in tested]


def unknown(root: Path) -> list[str]:
    """List the tests that name a statement which does not exist."""
    tests = statements_tested(root)
    return [test for number, named in sorted(tests.items()) if number not in STATEMENTS for test in named]


def test_every_statement_has_a_test_that_names_it() -> None:
    expect_none(untested(TESTS / "version_4"))


def test_no_test_names_a_statement_that_does_not_exist() -> None:
    expect_none(unknown(TESTS / "version_4"))


def test_a_missing_and_an_unknown_statement_are_seen(tmp_path: Path) -> None:
    tests = "".join(f"def test_{n:02}_it_holds(): ...\n" for n in STATEMENTS if n != 7)
    tree = write_tree(tmp_path / "small", {"test_a.py": tests, "test_b.py": "def test_99_it_holds(): ...\n"})
    assert untested(tree) == ["no test in small is named test_07_..."]
    assert unknown(tree) == ["test_b:1: test_99_it_holds"]
    assert statements_tested(tree)[8] == ["test_a:7: test_08_it_holds"]
