"""A partition transform is asked what it does, never which one it is: a new transform is a new class and no more.

Only ``icefloe.transforms`` itself may test the class of a transform, by ``isinstance``, ``type`` or ``match``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from architecture.source_tree import SRC, Module, expect_none, parse_modules, write_tree

PACKAGE = "icefloe.transforms"


def class_tests(root: Path) -> list[str]:
    """List the places outside the package that test for the class of a transform."""
    modules = parse_modules(root)
    classes = frozenset(name for module in modules if module.name.startswith(PACKAGE) for name in _transforms(module))
    return [
        f"{module.at(node)}: ask the transform instead of testing for {name}"
        for module in modules
        if not module.name.startswith(PACKAGE)
        for node, name in _tested(module, classes)
    ]


def _transforms(module: Module) -> Iterator[str]:
    """The classes of a module that are transforms by the names of their bases."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ClassDef):
            bases = (base.id for base in node.bases if isinstance(base, ast.Name))
            if any(base.endswith("Transform") for base in bases):
                yield node.name


def _tested(module: Module, classes: frozenset[str]) -> Iterator[tuple[ast.AST, str]]:
    imported = {name for name in _imported(module) if name in classes}
    for node in ast.walk(module.tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("isinstance", "issubclass")
        ):
            tested: list[ast.AST] = [*node.args[1:]]
        elif isinstance(node, ast.MatchClass):
            tested = [node.cls]
        elif isinstance(node, ast.Compare) and any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            tested = [*node.comparators]
        else:
            continue
        names = {inner.id for part in tested for inner in ast.walk(part) if isinstance(inner, ast.Name)}
        yield from ((node, name) for name in sorted(names & imported))


def _imported(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE):
            yield from (alias.asname or alias.name for alias in node.names)


def test_no_module_outside_the_package_tests_the_class_of_a_transform() -> None:
    expect_none(class_tests(SRC))


def test_tests_by_isinstance_and_by_match_are_found(tmp_path: Path) -> None:
    files = {
        "icefloe/transforms/new.py": "class Transform: pass\nclass Zorder(Transform): pass\n",
        "icefloe/scan.py": (
            "from icefloe.transforms.new import Zorder\n"
            "def f(t):\n    return isinstance(t, (int, Zorder))\n"
            "def g(t):\n    match t:\n        case Zorder():\n            return 1\n"
            "def h(t):\n    return type(t) is Zorder\n"
        ),
    }
    assert sorted(problem.split(": ")[0] for problem in class_tests(write_tree(tmp_path, files))) == [
        "icefloe.scan:3",
        "icefloe.scan:6",
        "icefloe.scan:9",
    ]
