"""What the architecture checks share: the modules of a source tree, parsed but never imported.

A check is a function from the folder that holds the ``icefloe`` package to a list of problems, so that it can be
run on the real sources (no problem) and on a small bad tree (seen to fail).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
SRC = REPO / "src"
TESTS = REPO / "tests"

Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One parsed source file: ``name`` is dotted, and a package is named without its ``__init__``."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    def at(self, node: ast.AST) -> str:
        """The place of a node, as problems name it."""
        return f"{self.name}:{getattr(node, 'lineno', 1)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """A module that another module imports, and where it does."""

    target: str
    where: str


def parse_modules(root: Path) -> list[Module]:
    """Parse every Python file under ``root``, in the order of their names."""
    return list(_of_this_repository(root) if root in (SRC, TESTS) else _parsed(root))


@cache
def _of_this_repository(root: Path) -> tuple[Module, ...]:
    """The modules under a folder of this repository, which tests do not change: parsed once for all checks."""
    return _parsed(root)


def _parsed(root: Path) -> tuple[Module, ...]:
    return tuple(_parse(path, root) for path in sorted(root.rglob("*.py")))


def _parse(path: Path, root: Path) -> Module:
    parts = path.relative_to(root).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    text = path.read_text(encoding="utf-8")
    return Module(name=name, path=path, text=text, tree=ast.parse(text, filename=str(path)))


def imports_of(module: Module, names: frozenset[str]) -> Iterator[Import]:
    """List what a module imports, wherever it does; ``from package import module`` counts as that module."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(target=alias.name, where=module.at(node))
        elif isinstance(node, ast.ImportFrom):
            base = _base_of(node, module)
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield Import(target=inner if inner in names else base, where=module.at(node))


def _base_of(node: ast.ImportFrom, module: Module) -> str:
    if node.level == 0:
        return node.module or ""
    package = module.name.split(".")
    package = package[: len(package) - node.level + (1 if module.is_package else 0)]
    return ".".join([*package, *([node.module] if node.module is not None else [])])


def functions_of(module: Module) -> Iterator[tuple[str, Function]]:
    """List every function of a module at any depth, with its qualified name (``Class.method``)."""
    yield from _functions(module.tree, ())


def _functions(node: ast.AST, outer: tuple[str, ...]) -> Iterator[tuple[str, Function]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (*FUNCTIONS, ast.ClassDef)):
            qualified = (*outer, child.name)
            if isinstance(child, FUNCTIONS):
                yield ".".join(qualified), child
            yield from _functions(child, qualified)
        else:
            yield from _functions(child, outer)


def write_tree(root: Path, files: dict[str, str]) -> Path:
    """Write a small source tree, with the ``__init__.py`` files it needs, and return its root."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        for folder in path.relative_to(root).parents:
            init = root / folder / "__init__.py"
            if folder != Path() and not init.exists():
                init.write_text('"""A package of the small tree."""\n', encoding="utf-8")
        path.write_text(text, encoding="utf-8")
    return root


def expect_none(problems: list[str] | Mapping[str, object]) -> None:
    """Fail the test with every problem in full, one per line."""
    lines = [f"{name}: {what}" for name, what in problems.items()] if isinstance(problems, Mapping) else problems
    if len(lines) > 0:
        pytest.fail("\n".join(lines), pytrace=False)
