"""Values never change: every dataclass of the package is frozen."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

import pytest

from architecture.source_tree import SRC, expect_none, parse_modules, write_tree

# Dotted class name -> why it has to change after it was made.
EXCEPTIONS: Mapping[str, str] = {
    "icefloe.expr.text.boolean_parser._Group": "an open parenthesis, filled while the text behind it is read",
    "icefloe.formats.write.write_files.PartitionWriter": "it owns the files that are open during a write",
}


def changeable_values(root: Path) -> dict[str, str]:
    """Map every dataclass that is not frozen to the place where it is defined."""
    return {
        f"{module.name}.{node.name}": module.at(node)
        for module in parse_modules(root)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef) and any(_is_changeable(decorator) for decorator in node.decorator_list)
    }


def _is_changeable(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    if ast.unparse(called) not in ("dataclass", "dataclasses.dataclass"):
        return False
    keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
    return not any(k.arg == "frozen" and isinstance(k.value, ast.Constant) and k.value.value is True for k in keywords)


def test_values_are_frozen() -> None:
    expect_none({name: place for name, place in changeable_values(SRC).items() if name not in EXCEPTIONS})


def test_every_exception_is_still_needed() -> None:
    assert set(EXCEPTIONS) <= set(changeable_values(SRC))


@pytest.mark.parametrize(
    "decorator", ["dataclass", "dataclasses.dataclass", "dataclass(slots=True)", "dataclass(frozen=False)"]
)
def test_a_changeable_value_is_seen(tmp_path: Path, decorator: str) -> None:
    tree = write_tree(tmp_path, {"icefloe/a.py": f"@{decorator}\nclass Point:\n    x: int\n"})
    assert changeable_values(tree) == {"icefloe.a.Point": "icefloe.a:2"}


def test_a_frozen_value_is_left_alone(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, {"icefloe/a.py": "@dataclass(frozen=True, slots=True)\nclass Point:\n    x: int\n"})
    assert changeable_values(tree) == {}
