"""Imports are at the top of a file: an import inside a function hides a cycle of dependencies."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

import pytest

from architecture.source_tree import SRC, expect_none, functions_of, parse_modules, write_tree

# Qualified function name -> why it has to import late.
EXCEPTIONS: Mapping[str, str] = {
    "icefloe.lazy.LazyModule.__getattr__": "modules that are slow to load wait for their first use",
    "icefloe.lazy.load_optional": "optional libraries are loaded when something needs them",
}


def late_imports(root: Path) -> dict[str, str]:
    """Map every function that imports something while it runs to the place where it does."""
    found: dict[str, str] = {}
    for module in parse_modules(root):
        for name, function in functions_of(module):
            for node in ast.walk(function):
                if _is_import(node):
                    found[f"{module.name}.{name}"] = module.at(node)
    return found


def _is_import(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        called = ast.unparse(node.func)
        return called == "__import__" or called.split(".")[-1] == "import_module"
    return isinstance(node, (ast.Import, ast.ImportFrom))


def test_imports_stand_at_the_top() -> None:
    expect_none({name: place for name, place in late_imports(SRC).items() if name not in EXCEPTIONS})


def test_every_exception_is_still_needed() -> None:
    assert set(EXCEPTIONS) <= set(late_imports(SRC))


@pytest.mark.parametrize(
    "body", ["import os", "from os import path", "importlib.import_module('os')", "__import__('os')"]
)
def test_a_late_import_is_seen(tmp_path: Path, body: str) -> None:
    tree = write_tree(tmp_path, {"icefloe/a.py": f"import importlib\nclass C:\n    def f(self):\n        {body}\n"})
    assert late_imports(tree) == {"icefloe.a.C.f": "icefloe.a:4"}
