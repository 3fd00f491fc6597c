"""The programs beside the package, which ``make test`` does not run, import names that the package has."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator

import pytest

from architecture.source_tree import SRC, expect_none

FOLDERS = ("demo", "bench", "conformance")


def missing_names(source: str) -> Iterator[str]:
    """The names that a program imports from the package and that it lacks."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ImportFrom) or node.module is None or node.module.split(".")[0] != "icefloe":
            continue
        for alias in node.names:
            try:
                if not hasattr(importlib.import_module(node.module), alias.name):
                    importlib.import_module(f"{node.module}.{alias.name}")
            except ModuleNotFoundError:
                yield f"{node.module}.{alias.name}"


@pytest.mark.parametrize("folder", FOLDERS)
def test_programs_import_names_that_the_package_has(folder: str) -> None:
    # The demo failed at once after a module that only it and one verb used was moved.
    programs = sorted((SRC.parent / folder).rglob("*.py"))
    assert len(programs) > 0
    expect_none([f"{path.name}: {name}" for path in programs for name in missing_names(path.read_text("utf-8"))])


def test_a_name_that_is_missing_is_found() -> None:
    source = "from icefloe.errors import IcefloeError, Lost\nfrom icefloe.lost import x\nfrom icefloe import errors\n"
    assert list(missing_names(source)) == ["icefloe.errors.Lost", "icefloe.lost.x"]
