"""Imports point one way: a layer may use the layers before it and never those beside or after it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from architecture.source_tree import REPO, SRC, Module, expect_none, imports_of, parse_modules, write_tree

PAGE = REPO / "docs" / "architecture.md"


def layers_of(page: str) -> tuple[tuple[str, ...], ...]:
    """The layers that the page lists, from the ground up; layers of one row do not import each other."""
    (block,) = re.findall(r"```layers\n(.*?)```", page, re.DOTALL)
    return tuple(tuple(row.split(" | ")) for row in reversed(block.splitlines()))


LAYERS = layers_of(PAGE.read_text(encoding="utf-8"))
GROUND = frozenset({"errors", "limits", "env", "lazy", "progress"})
HEIGHT = {layer: height for height, row in enumerate(LAYERS) for layer in row}
# `import icefloe` itself gives the public names, which only the layers above `table` may use.
FACADE = "icefloe"
SPARK_ONLY = frozenset({"pyspark", "py4j"})
ON_SPARK = ("icefloe.engines.spark", "icefloe.spark_sql")


def layer_problems(root: Path) -> list[str]:
    """List every import that points up or sideways, and every module that is in no layer."""
    modules = [module for module in parse_modules(root) if module.name.split(".")[0] == "icefloe"]
    names = frozenset(module.name for module in modules)
    return list(dict.fromkeys(problem for module in modules for problem in _problems_of(module, names)))


def _problems_of(module: Module, names: frozenset[str]) -> list[str]:
    layer = _layer_of(module.name)
    if layer not in HEIGHT and layer not in (FACADE, "testing"):
        return [f"icefloe.{layer} is in no layer; add it to the layers in docs/architecture.md"]
    found = ((imported, _objection(module.name, imported.target)) for imported in imports_of(module, names))
    return [f"{imported.where}: {objection}" for imported, objection in found if objection is not None]


def _objection(importer: str, target: str) -> str | None:
    above, below = _layer_of(importer), _layer_of(target)
    if target.split(".")[0] in SPARK_ONLY:
        is_on_spark = any(_inside(importer, package) for package in ON_SPARK)
        return None if is_on_spark else f"only engines.spark and spark_sql may import {target}"
    if target.split(".")[0] != "icefloe" or above == "testing":
        return None
    if below == "testing":
        return f"nothing may import {target}"
    if _engine_of(importer) != _engine_of(target) and None not in (_engine_of(importer), _engine_of(target)):
        return f"{_engine_of(importer)} and {_engine_of(target)} engines may not import each other"
    if above in (below, FACADE):
        return None
    if HEIGHT.get(below, HEIGHT["table"]) >= HEIGHT[above]:
        return f"{above} may not import {target}, which is not below it"
    return None


def _layer_of(name: str) -> str:
    parts = name.split(".")
    if len(parts) == 1:
        return FACADE
    return "ground" if parts[1] in GROUND else parts[1]


def _engine_of(name: str) -> str | None:
    return next((engine for engine in ("arrow", "spark") if _inside(name, f"icefloe.engines.{engine}")), None)


def _inside(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def test_imports_point_one_way() -> None:
    expect_none(layer_problems(SRC))


@pytest.mark.parametrize(
    ("file", "line", "objection"),
    [
        ("codecs/bad.py", "from icefloe.io import local", "codecs may not import icefloe.io.local"),
        ("io/bad.py", "import icefloe.codecs.puffin", "io may not import icefloe.codecs.puffin"),
        ("model/bad.py", "from icefloe.expr.nodes import And", "model may not import icefloe.expr.nodes"),
        ("model/bad.py", "from ..expr import nodes", "model may not import icefloe.expr.nodes"),
        ("errors.py", "from icefloe.model import types", "ground may not import icefloe.model"),
        ("deletes/bad.py", "from icefloe import scan", "deletes may not import icefloe.scan"),
        ("commit/bad.py", "import icefloe", "commit may not import icefloe,"),
        ("table.py", "from icefloe.testing import suites", "nothing may import icefloe.testing"),
        ("__init__.py", "import icefloe.testing", "nothing may import icefloe.testing"),
        ("engines/arrow/bad.py", "from icefloe.engines.spark import read", "arrow and spark engines may not"),
        ("engines/spark/bad.py", "from icefloe.engines import arrow", "spark and arrow engines may not"),
        ("engines/arrow/bad.py", "import pyspark.sql", "engines.spark and spark_sql may import pyspark.sql"),
        (
            "table.py",
            "def f():\n    from pyspark.sql import Row",
            "engines.spark and spark_sql may import pyspark.sql",
        ),
        ("table/bad.py", "from icefloe.spark_sql import attach", "table may not import icefloe.spark_sql"),
        ("inspect/bad.py", "from icefloe.maintenance import purge", "inspect may not import icefloe.maintenance"),
        ("utils/bad.py", "", "icefloe.utils is in no layer"),
    ],
)
def test_a_wrong_import_is_seen(tmp_path: Path, file: str, line: str, objection: str) -> None:
    packages = ("expr/nodes.py", "io/local.py", "scan/plan.py", "engines/spark/read.py", "engines/arrow/read.py")
    tree = write_tree(tmp_path, {**{f"icefloe/{name}": "" for name in packages}, f"icefloe/{file}": line})
    (problem,) = layer_problems(tree)
    assert objection in problem


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("limits.py", "from icefloe.errors import LimitError"),
        ("expr/good.py", "from icefloe import errors"),
        ("catalogs/good.py", "from icefloe.io import local"),
        ("engines/spark/good.py", "from pyspark.sql import Row"),
        ("engines/spark/good.py", "from icefloe.engines import engine"),
        ("spark_sql/good.py", "from pyspark.sql import Row"),
        ("spark_sql/good.py", "from icefloe.table import catalog"),
        ("testing/good.py", "import icefloe"),
        ("__init__.py", "from icefloe.errors import IcefloeError"),
        ("testing/good.py", "from icefloe.io import local"),
    ],
)
def test_a_right_import_is_left_alone(tmp_path: Path, file: str, line: str) -> None:
    packages = ("errors.py", "io/local.py", "engines/engine.py")
    tree = write_tree(tmp_path, {**{f"icefloe/{name}": "" for name in packages}, f"icefloe/{file}": line})
    assert layer_problems(tree) == []
