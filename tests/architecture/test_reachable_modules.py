"""Every module is reached from ``import icefloe`` or from the command line: other modules are deleted."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from architecture.source_tree import SRC, Module, expect_none, imports_of, parse_modules, write_tree

ENTRIES = ("icefloe", "icefloe.cli.entry")
AWAITED = {  # by the REST catalog, whose messages these are
    "icefloe.codecs.json.content_file",
    "icefloe.codecs.json.expressions",
    "icefloe.codecs.json.scan_task",
}


def unreached(root: Path) -> list[str]:
    """The modules that no entry leads to; ``icefloe.testing`` is for tests of other catalogs and storage."""
    modules = {module.name: module for module in parse_modules(root)}
    names = frozenset(modules)
    seen: set[str] = set()
    pending = list(ENTRIES)
    while len(pending) > 0:
        name = pending.pop()
        if name in names and name not in seen:
            seen.add(name)
            pending += [*_packages_of(name), *_targets(modules[name], names)]
    return [name for name in modules if name not in seen and not name.startswith("icefloe.testing")]


def _packages_of(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[:end]) for end in range(1, len(parts)))


def _targets(module: Module, names: frozenset[str]) -> Iterator[str]:
    """What a module imports, and the modules that it names as texts, as those that are imported late."""
    yield from (each.target for each in imports_of(module, names))
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in names:
            yield node.value


def test_every_module_is_reached_from_the_package_or_the_command_line() -> None:
    expect_none([f"{name}: nothing public reaches it" for name in unreached(SRC) if name not in AWAITED])


def test_modules_that_are_awaited_are_not_reached_yet() -> None:
    expect_none([f"{name}: is reached, so it is not awaited" for name in AWAITED - set(unreached(SRC))])


def test_a_module_that_only_tests_import_is_found(tmp_path: Path) -> None:
    files = {
        "icefloe/__init__.py": "from icefloe.used import name\n",
        "icefloe/cli/entry.py": 'LATE = "icefloe.late"\n',
        "icefloe/used.py": "name = 1\n",
        "icefloe/late.py": "",
        "icefloe/lost.py": "from icefloe.used import name\n",
        "icefloe/testing/suite.py": "from icefloe.lost import name\n",
    }
    assert unreached(write_tree(tmp_path, files)) == ["icefloe.lost"]
