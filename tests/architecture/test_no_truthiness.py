"""An optional number or text is compared with None: zero and the empty text are values.

``if limit`` treats a limit of 0 as no limit at all. The check knows the names that a function annotates as an
optional int, float, str or bytes, in its signature or in its body; it does not follow values any further.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from architecture.source_tree import FUNCTIONS, SRC, Function, expect_none, parse_modules, write_tree

SCALARS = frozenset({"int", "float", "str", "bytes"})


def truth_tests(root: Path) -> list[str]:
    """List the truth tests of names that may be None and may be zero or empty."""
    return [
        f"{module.at(node)}: compare '{node.id}' with None; it may be zero or empty"
        for module in parse_modules(root)
        for node in _tested(module.tree, frozenset())
    ]


def _tested(scope: ast.AST, optional: frozenset[str]) -> Iterator[ast.Name]:
    for child in ast.iter_child_nodes(scope):
        for condition in _conditions(child):
            yield from (name for name in _names_tested(condition) if name.id in optional)
        inner = _optional_in(child, optional) if isinstance(child, FUNCTIONS) else optional
        yield from _tested(child, inner)


def _conditions(node: ast.AST) -> list[ast.expr]:
    """Return the expressions whose truth this node asks for."""
    if isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert)):
        return [node.test]
    if isinstance(node, ast.comprehension):
        return node.ifs
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return [node.operand]
    if isinstance(node, ast.BoolOp):
        # The last operand is the value of the whole; its truth matters only where the whole is a condition.
        return node.values[:-1]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "bool":
        return node.args
    return []


def _names_tested(condition: ast.expr) -> list[ast.Name]:
    if isinstance(condition, ast.Name):
        return [condition]
    # Inner `not`, `and` and `or` report themselves, apart from the last operand.
    return _names_tested(condition.values[-1]) if isinstance(condition, ast.BoolOp) else []


def _optional_in(function: Function, outer: frozenset[str]) -> frozenset[str]:
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    named += [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
    optional = {argument.arg for argument in named if _is_optional_scalar(argument.annotation)}
    for node in ast.walk(function):
        if (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and _is_optional_scalar(node.annotation)
        ):
            optional.add(node.target.id)
    return (outer - {argument.arg for argument in named}) | optional


def _is_optional_scalar(annotation: ast.expr | None) -> bool:
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body
    members = _members(annotation)
    return "None" in members and any(member in SCALARS for member in members)


def _members(annotation: ast.expr | None) -> list[str]:
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        return [*_members(annotation.left), *_members(annotation.right)]
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) in ("Optional", "typing.Optional"):
        return ["None", *_members(annotation.slice)]
    return [] if annotation is None else [ast.unparse(annotation)]


def test_optional_numbers_and_texts_are_compared_with_none() -> None:
    expect_none(truth_tests(SRC))


@pytest.mark.parametrize(
    "body",
    [
        "if x: pass",
        "if not x: pass",
        "while x: pass",
        "return x or 5",
        "return x and 5",
        "return 1 if x else 2",
        "return [y for y in () if x]",
        "if y and x: pass",
        "if not (y or x): pass",
        "return bool(x)",
        "return lambda: not x",
        "assert x",
    ],
)
@pytest.mark.parametrize(
    "annotation", ["int | None", "None | bytes", "Optional[str]", "'float | None'", "int | list | None"]
)
def test_a_truth_test_is_seen(tmp_path: Path, body: str, annotation: str) -> None:
    tree = write_tree(tmp_path, {"icefloe/a.py": f"def f(y: bool, x: {annotation}):\n    {body}\n"})
    assert truth_tests(tree) == ["icefloe.a:2: compare 'x' with None; it may be zero or empty"]


def test_a_truth_test_of_an_annotated_variable_is_seen(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, {"icefloe/a.py": "def f():\n    x: int | None = g()\n    return x or 1\n"})
    assert truth_tests(tree) == ["icefloe.a:3: compare 'x' with None; it may be zero or empty"]


@pytest.mark.parametrize(
    "function",
    [
        "def f(x: int | None): return 1 if x is None else x",
        "def f(x: list | None): return x or []",
        "def f(x: bool | None): return not x",
        "def f(x: int): return not x",
        "def f(y: bool, x: int | None): return y and x",
        "def f(x: int | None):\n    def g(x: bool): return not x",
    ],
)
def test_other_tests_are_left_alone(tmp_path: Path, function: str) -> None:
    assert truth_tests(write_tree(tmp_path, {"icefloe/a.py": f"{function}\n"})) == []
