"""Tests are found and read by their names: files are named once, and a test's name is a sentence."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from architecture.source_tree import TESTS, expect_none, functions_of, parse_modules, write_tree

WORDS = 3


def repeated_files(root: Path) -> list[str]:
    """List file names that occur twice: pytest imports test files by their bare names."""
    counts = Counter(path.name for path in root.rglob("*.py") if path.name not in ("conftest.py", "__init__.py"))
    return sorted(name for name, count in counts.items() if count > 1)


def terse_names(root: Path) -> list[str]:
    """List the tests whose name is too short to say what holds."""
    return [
        f"{module.at(function)}: {name} does not say what holds"
        for module in parse_modules(root)
        for name, function in functions_of(module)
        if name.split(".")[-1].startswith("test_") and len(name.split(".")[-1].split("_")) - 1 < WORDS
    ]


def test_no_two_test_files_share_a_name() -> None:
    expect_none(repeated_files(TESTS))


def test_the_name_of_a_test_is_a_sentence() -> None:
    expect_none(terse_names(TESTS))


def test_a_repeated_file_and_a_terse_name_are_seen(tmp_path: Path) -> None:
    files = {"a/test_x.py": "def test_scan(): ...\n", "b/test_x.py": "def test_a_scan_reads_all_rows(): ...\n"}
    tree = write_tree(tmp_path, files)
    assert repeated_files(tree) == ["test_x.py"]
    assert terse_names(tree) == ["a.test_x:1: test_scan does not say what holds"]
