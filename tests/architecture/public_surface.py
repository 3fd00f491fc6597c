"""The public surface as text: every name of ``icefloe.__all__`` with its signature, read without importing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from architecture.source_tree import FUNCTIONS, Function, Module, parse_modules

LONGEST_VALUE = 80
Found = tuple[Module, ast.stmt] | None


def public_surface(root: Path) -> str:
    """Write the public names of the tree under ``root``, one block each, in the order of their names."""
    modules = {module.name: module for module in parse_modules(root)}
    names = sorted(_exported(modules["icefloe"]))
    return "".join(f"{line}\n" for name in names for line in _lines(name, modules))


def _exported(module: Module) -> list[str]:
    for node in module.tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            return list(ast.literal_eval(node.value))  # type: ignore[attr-defined]
    return []


def _lines(name: str, modules: dict[str, Module]) -> Iterator[str]:
    found = _resolve(name, modules["icefloe"], modules)
    if found is None:
        yield f"module {name}" if f"icefloe.{name}" in modules else f"{name}: not defined"
        return
    module, node = found
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(ast.unparse(base) for base in node.bases)
        yield f"class {name}({bases})" if node.bases else f"class {name}"
        members = _members(module, node, modules)
        yield from (f"    {line}" for member in sorted(members) for line in members[member])
    elif isinstance(node, FUNCTIONS):
        yield _signature(node, name)
    elif isinstance(node, ast.AnnAssign):
        yield f"{name}: {ast.unparse(node.annotation)}"
    else:
        yield f"{name} = {ast.unparse(node.value)[:LONGEST_VALUE]}"  # type: ignore[attr-defined]


def _resolve(name: str, module: Module, modules: dict[str, Module]) -> Found:
    """Find the statement that defines a name, through any number of re-exports."""
    for node in _statements(module.tree):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and node.name == name:
            return module, node
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            return module, node
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            return module, node
        if isinstance(node, ast.ImportFrom) and node.module in modules:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _resolve(alias.name, modules[node.module], modules)
    return None


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements of a module, with those for type checkers, which import what is loaded late."""
    for node in tree.body:
        yield from node.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" else (node,)


def _members(module: Module, node: ast.ClassDef, modules: dict[str, Module]) -> dict[str, list[str]]:
    """Map the public members of a class to their lines; its own hide those of its bases."""
    inherited: dict[str, list[str]] = {}
    for base in reversed(node.bases):
        found = _resolve(ast.unparse(base), module, modules)
        if found is not None and isinstance(found[1], ast.ClassDef):
            inherited |= _members(found[0], found[1], modules)
    own: dict[str, list[str]] = {}
    for child in node.body:
        name, line = _member(child)
        if name is not None and _is_public(name):
            own.setdefault(name, []).append(line)
    return inherited | own


def _member(node: ast.stmt) -> tuple[str | None, str]:
    if isinstance(node, FUNCTIONS):
        return node.name, _signature(node, node.name)
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id, ast.unparse(node)
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id, ast.unparse(node)[:LONGEST_VALUE]
    return None, ""


def _is_public(name: str) -> bool:
    return not name.startswith("_") or (name.startswith("__") and name.endswith("__"))


def _signature(function: Function, name: str) -> str:
    decorators = [ast.unparse(decorator) for decorator in function.decorator_list]
    returns = "" if function.returns is None else f" -> {ast.unparse(function.returns)}"
    if "property" in decorators or "cached_property" in decorators or "functools.cached_property" in decorators:
        return f"property {name}{returns}"
    kinds = "".join(f"@{kind} " for kind in decorators if kind in ("classmethod", "staticmethod", "overload"))
    asynchronous = "async " if isinstance(function, ast.AsyncFunctionDef) else ""
    return f"{kinds}{asynchronous}def {name}({ast.unparse(function.args)}){returns}"
