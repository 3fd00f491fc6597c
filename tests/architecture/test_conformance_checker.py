"""The checker of the conformance kit is a second implementation: one file that imports nothing of icefloe."""

from __future__ import annotations

import ast
import sys

import pytest

from architecture.source_tree import REPO

CHECKER = REPO / "conformance" / "check_v4.py"
ALLOWED = frozenset({"pyarrow", "pyroaring"}) | sys.stdlib_module_names
FORBIDDEN = frozenset({"importlib", "runpy"})


def foreign_imports(text: str) -> list[str]:
    """List the modules that a source file imports, other than those that the checker may use."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add("." * node.level + (node.module or ""))
        elif isinstance(node, ast.Name) and node.id == "__import__":
            names.add("__import__")
    packages = {name: name.partition(".")[0] for name in names}
    return sorted(name for name, package in packages.items() if package not in ALLOWED or package in FORBIDDEN)


def test_the_checker_imports_nothing_of_the_library() -> None:
    assert foreign_imports(CHECKER.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import icefloe.errors", "icefloe.errors"),
        ("def f():\n    from icefloe import errors", "icefloe"),
        ("from . import stage", "."),
        ("import stage", "stage"),
        ("import numpy", "numpy"),
        ("import importlib", "importlib"),
        ("__import__('icefloe')", "__import__"),
    ],
)
def test_other_imports_are_found(text: str, name: str) -> None:
    assert foreign_imports(f"import json\nimport pyarrow.parquet\n{text}") == [name]
