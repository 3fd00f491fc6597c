"""Modules, public classes and public functions have docstrings."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from architecture.source_tree import FUNCTIONS, SRC, Module, expect_none, parse_modules, write_tree

WORDS = 2


def undocumented(root: Path) -> list[str]:
    """List the public modules, classes and functions whose docstring is missing or says nothing."""
    return [problem for module in parse_modules(root) if _is_public(module.name) for problem in _problems_of(module)]


def _is_public(name: str) -> bool:
    return not any(part.startswith("_") and part != "__main__" for part in name.split("."))


def _problems_of(module: Module) -> Iterator[str]:
    if not _says_something(module.tree):
        yield f"{module.name}: say in the module's docstring what it is for"
    for node in module.tree.body:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and _is_public(node.name) and not _says_something(node):
            yield f"{module.at(node)}: {node.name} has no docstring that says something"


def _says_something(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return len((ast.get_docstring(node) or "").split()) >= WORDS


def test_everything_public_is_documented() -> None:
    expect_none(undocumented(SRC))


def test_a_missing_docstring_is_seen(tmp_path: Path) -> None:
    text = '"""A module of the tree."""\ndef f(): ...\ndef _g(): ...\nclass C:\n    """..."""\n'
    tree = write_tree(tmp_path, {"icefloe/a.py": text, "icefloe/b/__init__.py": '"""..."""\n', "icefloe/_c.py": ""})
    assert undocumented(tree) == [
        "icefloe.a:2: f has no docstring that says something",
        "icefloe.a:4: C has no docstring that says something",
        "icefloe.b: say in the module's docstring what it is for",
    ]
