"""Helpers of tests have one place each: beside the tests of one folder, or in tests/support for all of them."""

from __future__ import annotations

import sys
from importlib.metadata import packages_distributions
from pathlib import Path

from architecture.source_tree import TESTS, Module, expect_none, imports_of, parse_modules, write_tree


def loose_modules(root: Path) -> list[str]:
    """List modules that lie directly in the folder of all tests."""
    return sorted(path.name for path in root.glob("*.py") if path.name not in ("conftest.py", "__init__.py"))


def lost_imports(root: Path) -> list[str]:
    """List imports of modules that are neither in the folder of tests nor installed."""
    modules = parse_modules(root)
    names = frozenset(module.name for module in modules)
    folders = {".".join(name.split(".")[:depth]) for name in names for depth in range(1, name.count(".") + 1)}
    known = {"icefloe", *sys.stdlib_module_names, *packages_distributions()}
    return [
        f"{found.where}: imports {found.target}, which does not exist (README.md of tests/support lists the helpers)"
        for module in modules
        for found in imports_of(module, names)
        if found.target not in names | folders | _siblings(module) and not _installed(found.target, known, folders)
    ]


def _siblings(module: Module) -> set[str]:
    """The modules beside a module, which tests may import by their bare names."""
    return {path.stem for path in module.path.parent.glob("*.py")}


def _installed(target: str, known: set[str], folders: set[str]) -> bool:
    top = target.partition(".")[0]
    return top in known and (top not in folders or top in sys.stdlib_module_names)


def test_no_helper_lies_loose_in_the_folder_of_all_tests() -> None:
    expect_none(loose_modules(TESTS))


def test_every_module_that_tests_import_exists() -> None:
    expect_none(lost_imports(TESTS))


def test_a_loose_helper_and_a_lost_import_are_seen(tmp_path: Path) -> None:
    files = {
        "loose.py": "import os.path\n",
        "support/tables.py": "import pytest\n",
        "unit/test_a.py": "from support.tables import x\nimport near\nfrom tables import x\n",
        "unit/near.py": "from support.gone import x\n",
    }
    tree = write_tree(tmp_path, files)
    assert loose_modules(tree) == ["loose.py"]
    lost = [problem.split(", which")[0] for problem in lost_imports(tree)]
    assert lost == ["unit.near:1: imports support.gone", "unit.test_a:3: imports tables"]
