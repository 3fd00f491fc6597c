"""Operations reach rows through the protocol ``Engine`` alone: only one module imports the engines themselves.

``spark_sql`` is above the operations and is all about Spark: it uses the Spark engine's own modules.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from architecture.source_tree import SRC, Module, expect_none, imports_of, parse_modules, write_tree

ENGINES = ("icefloe.engines.arrow", "icefloe.engines.spark")
CHOOSER = "icefloe.engines.choose"
ON_SPARK = "icefloe.spark_sql."


def seam_problems(root: Path) -> list[str]:
    """List every module that imports an engine, or names one of its modules in a text, and is not the chooser."""
    modules = parse_modules(root)
    names = frozenset(module.name for module in modules)
    return [problem for module in modules if not _may_import(module.name) for problem in _problems_of(module, names)]


def _may_import(name: str) -> bool:
    return name == CHOOSER or name.startswith(ON_SPARK) or _engine_of(name) is not None


def _problems_of(module: Module, names: frozenset[str]) -> list[str]:
    imported = [(found.where, found.target) for found in imports_of(module, names)]
    named = [
        (module.at(node), node.value)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isascii()
    ]
    return [
        f"{where}: {target} is part of an engine, which only {CHOOSER} imports; use the protocol Engine"
        for where, target in (*imported, *named)
        if _engine_of(target) is not None
    ]


def _engine_of(name: str) -> str | None:
    return next((engine for engine in ENGINES if name == engine or name.startswith(f"{engine}.")), None)


def test_only_one_module_imports_the_engines() -> None:
    expect_none(seam_problems(SRC))


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("rows/bad.py", "from icefloe.engines.arrow.change.merge import find_merged"),
        ("table/bad.py", "from icefloe.engines.arrow import read"),
        ("table/bad.py", "import icefloe.engines.spark.engine"),
        ("engines/bad.py", "from .arrow import read"),
        ("rows/bad.py", "import importlib\nmodule = importlib.import_module('icefloe.engines.spark.engine')"),
        ("testing/bad.py", "from icefloe.engines.arrow.engine import ArrowEngine"),
    ],
)
def test_a_way_past_the_protocol_is_seen(tmp_path: Path, file: str, line: str) -> None:
    tree = write_tree(tmp_path, {"icefloe/engines/arrow/read.py": "", f"icefloe/{file}": line})
    (problem,) = seam_problems(tree)
    assert "is part of an engine" in problem


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("engines/choose.py", "from icefloe.engines.arrow.engine import ArrowEngine"),
        ("engines/arrow/good.py", "from icefloe.engines.arrow import read"),
        ("rows/good.py", "from icefloe.engines.engine import Engine"),
        ("rows/good.py", "from icefloe.engines.choose import engine_of"),
        ("spark_sql/good.py", "from icefloe.engines.spark.session import PerJvm"),
    ],
)
def test_the_way_through_the_protocol_is_left_alone(tmp_path: Path, file: str, line: str) -> None:
    tree = write_tree(tmp_path, {"icefloe/engines/arrow/read.py": "", f"icefloe/{file}": line})
    assert seam_problems(tree) == []
