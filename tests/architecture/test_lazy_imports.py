"""``import icefloe`` is fast: optional and slow modules are loaded on first use, by ``icefloe.lazy``."""

from __future__ import annotations

import ast
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import icefloe
from architecture.source_tree import SRC, Module, expect_none, imports_of, parse_modules, write_tree
from icefloe.errors import UnsupportedError
from icefloe.lazy import LazyModule, load_optional

# What must not be loaded -> what a program has to do before it is.
LATE = {
    "sqlalchemy": "open a catalog in a database",
    "sqlglot": "filter or compute by text",
    "pyspark": "use Spark",
    "obstore": "use an object store",
    "psycopg": "open a catalog in PostgreSQL",
    "fsspec": "use a scheme that neither icefloe nor Arrow knows",
    "polars": "call to_polars()",
    "duckdb": "call to_duckdb()",
    "yaml": "configure catalogs in the file of pyiceberg",
}


def loaded_by(statement: str) -> set[str]:
    """The modules that a new process has loaded after a statement."""
    code = f"import sys\n{statement}\nprint(*sorted(sys.modules))"
    environment = {"PYTHONPATH": str(SRC), "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return set(done.stdout.split())


def lazy_problems(root: Path) -> list[str]:
    """List modules that are loaded late without an import under TYPE_CHECKING, which the check of layers needs."""
    modules = parse_modules(root)
    names = frozenset(module.name for module in modules)
    return [problem for module in modules for problem in _problems_of(module, names)]


def _problems_of(module: Module, names: frozenset[str]) -> list[str]:
    imported = {found.target for found in imports_of(module, names)}
    calls = [node for node in ast.walk(module.tree) if isinstance(node, ast.Call)]
    late = [
        (node, str(ast.literal_eval(node.args[0])))
        for node in calls
        if ast.unparse(node.func) == "LazyModule" and isinstance(node.args[0], ast.Constant)
    ]
    return [
        f"{module.at(node)}: import {name} under TYPE_CHECKING too"
        for node, name in late
        if name.split(".")[0] == "icefloe" and name not in imported
    ]


def test_importing_icefloe_loads_neither_arrow_nor_anything_slow() -> None:
    loaded = loaded_by("import icefloe")
    expect_none([f"{name} is loaded" for name in (*LATE, "pyarrow", "pandas", "icefloe.table") if name in loaded])


def test_every_public_name_is_there_and_loads_nothing_optional() -> None:
    loaded = loaded_by("import icefloe\nassert {*icefloe.__all__} <= {*dir(icefloe)}\nfrom icefloe import *")
    assert "icefloe.table.table" in loaded
    expect_none({name: f"loaded before anybody has to {reason}" for name, reason in LATE.items() if name in loaded})


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'icefloe' has no attribute 'no_such_name'"):
        _ = icefloe.no_such_name


def test_what_is_loaded_late_is_known_to_the_check_of_layers() -> None:
    expect_none(lazy_problems(SRC))


def test_a_late_module_without_its_import_is_seen(tmp_path: Path) -> None:
    good = "if TYPE_CHECKING:\n    from icefloe.io import local\nelse:\n    local = LazyModule('icefloe.io.local')\n"
    bad = "local = LazyModule('icefloe.io.local')\nother = LazyModule('sqlglot')\n"
    tree = write_tree(tmp_path, {"icefloe/io/local.py": "", "icefloe/good.py": good, "icefloe/bad.py": bad})
    assert lazy_problems(tree) == ["icefloe.bad:1: import icefloe.io.local under TYPE_CHECKING too"]


def test_a_lazy_module_is_loaded_by_its_first_name() -> None:
    code = (
        "from icefloe.lazy import LazyModule\nlate = LazyModule('colorsys')\nbefore = 'colorsys' in sys.modules\n"
        "late.rgb_to_hsv\nassert (before, 'colorsys' in sys.modules) == (False, True)"
    )
    assert "colorsys" in loaded_by(code)
    with pytest.raises(AttributeError):
        _ = LazyModule("colorsys").no_such_name


def test_a_lazy_module_crosses_processes_by_its_name() -> None:
    again = pickle.loads(pickle.dumps(LazyModule("colorsys")))
    assert (again.__name__, again.rgb_to_hsv(0, 0, 0)) == ("colorsys", (0.0, 0.0, 0))


@pytest.mark.parametrize(
    ("library", "install"),
    [("obstore", "'icefloe[s3]'"), ("psycopg", "'icefloe[postgres]'"), ("yaml", "pyyaml"), ("pandas", "pandas")],
)
def test_a_missing_library_is_named_with_what_installs_it(
    monkeypatch: pytest.MonkeyPatch, library: str, install: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(UnsupportedError) as raised:
        load_optional(library, needed_by="this test")
    assert str(raised.value) == f"this test needs {library}, which is not installed: pip install {install}"
    assert raised.value.next_step == f"Run pip install {install}."


def test_a_module_that_is_broken_is_not_called_missing() -> None:
    with pytest.raises(ModuleNotFoundError):
        load_optional("icefloe.no_such_module", needed_by="this test")
