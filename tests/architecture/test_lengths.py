"""Modules, functions and tests stay short enough to be read in one go."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

from architecture.source_tree import SRC, TESTS, Function, expect_none, functions_of, parse_modules, write_tree

MODULE_LINES = 400
FUNCTION_LINES = 50
TEST_MODULE_LINES = 600
# Dotted name of the module or function -> why it is longer.
EXCEPTIONS: Mapping[str, str] = {}


def long_modules(root: Path, limit: int) -> dict[str, int]:
    """Map the modules of more than ``limit`` lines to their number of lines."""
    lengths = {module.name: len(module.text.splitlines()) for module in parse_modules(root)}
    return {name: length for name, length in lengths.items() if length > limit}


def long_functions(root: Path, limit: int) -> dict[str, int]:
    """Map the functions of more than ``limit`` lines, docstring apart, to their number of lines."""
    lengths = {
        f"{module.name}.{name}": _length(function)
        for module in parse_modules(root)
        for name, function in functions_of(module)
    }
    return {name: length for name, length in lengths.items() if length > limit}


def _length(function: Function) -> int:
    # A docstring may be long because it holds an example; only the code must fit on a screen.
    first = function.body[0]
    documented = ast.get_docstring(function, clean=False) is not None
    docstring = (first.end_lineno or first.lineno) - first.lineno + 1 if documented else 0
    return (function.end_lineno or function.lineno) - function.lineno + 1 - docstring


def test_modules_are_short() -> None:
    expect_none({name: n for name, n in long_modules(SRC, MODULE_LINES).items() if name not in EXCEPTIONS})


def test_functions_are_short() -> None:
    expect_none({name: n for name, n in long_functions(SRC, FUNCTION_LINES).items() if name not in EXCEPTIONS})


def test_test_modules_are_short() -> None:
    expect_none(long_modules(TESTS, TEST_MODULE_LINES))


def test_every_exception_is_still_needed() -> None:
    assert set(EXCEPTIONS) <= {*long_modules(SRC, MODULE_LINES), *long_functions(SRC, FUNCTION_LINES)}


def test_a_long_module_and_a_long_function_are_seen(tmp_path: Path) -> None:
    body = "    x = 1\n" * 50
    documented = f'def g():\n    """Say\n    much.\n    """\n{body[10:]}'
    tree = write_tree(tmp_path, {"icefloe/a.py": f"def f():\n{body}", "icefloe/b.py": documented})
    assert long_functions(tree, FUNCTION_LINES) == {"icefloe.a.f": 51}
    assert long_modules(tree, 50) == {"icefloe.a": 51, "icefloe.b": 53}
