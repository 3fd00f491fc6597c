"""All errors are in the tree that the docstring of ``icefloe.errors`` draws."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from pathlib import Path

from architecture.source_tree import SRC, Module, expect_none, functions_of, parse_modules, write_tree

BUILTIN = frozenset(
    name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, BaseException)
)
DRAWN = re.compile(r"^(?P<indent>(?:│   |    )*(?:[├└]── )?)(?P<name>[A-Z]\w+)\b")


def drawn_tree(root: Path) -> dict[str, str | None]:
    """Read the drawing in the docstring: every error and the one it hangs from."""
    parents: dict[str, str | None] = {}
    path: list[str] = []
    for line in (ast.get_docstring(_errors(root).tree) or "").splitlines():
        found = DRAWN.match(line)
        # Prose above and below the drawing starts in the first column too, but only the root stands alone.
        if found is None or (found["indent"] == "" and line.strip() != found["name"]):
            continue
        depth = len(found["indent"]) // 4
        parents[found["name"]] = path[depth - 1] if depth > 0 else None
        path[depth:] = [found["name"]]
    return parents


def real_tree(root: Path) -> dict[str, str | None]:
    """Read the classes: every error and the error class it extends."""
    parents: dict[str, str | None] = {}
    for node in _errors(root).tree.body:
        if isinstance(node, ast.ClassDef):
            bases = [ast.unparse(base) for base in node.bases]
            parents[node.name] = next((base for base in bases if base in parents), None)
    return parents


def stray_errors(root: Path) -> list[str]:
    """List error classes defined elsewhere, and public functions that raise built-in errors unannounced.

    A private function may raise them, and a public one whose docstring names the error: their callers know the
    location, and raise from the tree. So may ``__getattr__``, which must.
    """
    known = {*BUILTIN, *real_tree(root)}
    modules = [module for module in parse_modules(root) if module.name != "icefloe.errors"]
    # The shipped test suites fail the way tests do, with AssertionError.
    modules = [module for module in modules if not module.name.startswith("icefloe.testing")]
    return [problem for module in modules for problem in (*_defined(module, known), *_raised(module))]


def _defined(module: Module, known: set[str]) -> list[str]:
    classes = [node for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)]
    return [
        f"{module.at(node)}: {node.name} belongs in icefloe.errors"
        for node in classes
        if any(ast.unparse(base).split(".")[-1] in known for base in node.bases)
    ]


def _raised(module: Module) -> Iterator[str]:
    for name, function in functions_of(module):
        if any(part.startswith("_") for part in name.split(".")):
            continue
        announced = (ast.get_docstring(function) or "").replace(";", " ").replace(".", " ").split()
        for node in ast.walk(function):
            if isinstance(node, ast.Raise) and node.exc is not None:
                error = ast.unparse(node.exc.func if isinstance(node.exc, ast.Call) else node.exc)
                if error in BUILTIN and error not in announced:
                    yield f"{module.at(node)}: raise an error of icefloe.errors, or say {error} in the docstring"


def _errors(root: Path) -> Module:
    return next(module for module in parse_modules(root) if module.name == "icefloe.errors")


def test_the_drawing_is_the_tree() -> None:
    assert drawn_tree(SRC) == real_tree(SRC)
    assert set(drawn_tree(SRC)) > {"IcefloeError", "CorruptFile"}


def test_errors_come_from_the_tree() -> None:
    expect_none(stray_errors(SRC))


def test_a_wrong_drawing_is_seen(tmp_path: Path) -> None:
    drawing = '"""Errors.\n\nRoot\n├── Left   a\n│   └── Leaf\n└── Right  b\n"""\n'
    classes = "class Root(Exception): ...\nclass Left(Root): ...\nclass Right(Root): ...\nclass Leaf(Right): ...\n"
    tree = write_tree(tmp_path, {"icefloe/errors.py": drawing + classes})
    assert drawn_tree(tree) == {"Root": None, "Left": "Root", "Leaf": "Left", "Right": "Root"}
    assert real_tree(tree) == {"Root": None, "Left": "Root", "Right": "Root", "Leaf": "Right"}


def test_a_stray_error_is_seen(tmp_path: Path) -> None:
    bad = (
        "from icefloe import errors\nclass Mine(errors.Root): ...\nclass Other(ValueError): ...\n"
        "def f():\n    raise ValueError('x')\ndef g():\n    raise KeyError\n"
        "def told():\n    '''Parse; ValueError otherwise.'''\n    raise ValueError\n"
        "def _h():\n    raise ValueError\n"
        "class D:\n    def __getattr__(self, name):\n        raise AttributeError(name)\n"
    )
    tree = write_tree(tmp_path, {"icefloe/errors.py": "class Root(Exception): ...\n", "icefloe/a.py": bad})
    assert stray_errors(tree) == [
        "icefloe.a:2: Mine belongs in icefloe.errors",
        "icefloe.a:3: Other belongs in icefloe.errors",
        "icefloe.a:5: raise an error of icefloe.errors, or say ValueError in the docstring",
        "icefloe.a:7: raise an error of icefloe.errors, or say KeyError in the docstring",
    ]
