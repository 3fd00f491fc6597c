"""Tests, benches and the conformance kit use the public names of the library: private ones may change at any time.

``ALLOWED`` lists the exceptions by file, each with its reason. A name is private if it starts with an underscore and
the library defines it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from architecture.source_tree import FUNCTIONS, REPO, SRC, TESTS, Module, expect_none, parse_modules, write_tree

# By file, then by name: why a test uses it.
ALLOWED: Mapping[str, Mapping[str, str]] = {
    # Helpers that give tests access to what has no public name.
    "support/memory_files.py": {"_files": "the one place where tests copy a storage or change the age of its files"},
    "support/tables.py": {"_pointers": "the one place where tests create tables from metadata in a catalog"},
    # Changes by others between two steps of one call.
    "e2e/test_merge.py": {"_target": "another commit after the merge has loaded the table"},
    "e2e/test_rewrite_deletes.py": {"_target": "another commit after the rewrite has loaded the table"},
    # Faults, which no caller can cause.
    "unit/codecs/test_manifest_parquet.py": {"_required": "a writer without checks"},
    "unit/commit/test_transactions.py": {"_work": "a step of a transaction that fails when it writes roots"},
    "unit/commit/test_unknown_outcomes.py": {"_has_landed": "a commit that has landed and is not found again"},
    "version_4/test_checker_notices_faults.py": {
        "_RootRows": "writers with a fault each",
        "_carry_over": "writers with a fault each",
        "_check_unchanged": "writers with a fault each",
        "_vector_row": "writers with a fault each",
        "_write": "writers with a fault each",
    },
    # Memory and reads, which results do not show.
    "support/avro_rows.py": {"_decoder": "which of two decoders has read a file"},
    "unit/codecs/test_gzip_members.py": {"_entries": "what a cache holds"},
    "unit/formats/test_avro_damage.py": {"_runs": "that empty blocks are not read"},
    "unit/formats/test_parquet_pages.py": {
        "_pages": "where indexes of pages are, to damage them",
        "_read": "the bytes that are read",
        "_tail": "where indexes of pages are, to damage them",
    },
    "unit/formats/test_partition_writer.py": {
        "_gathered_bytes": "the memory of waiting rows",
        "_waiting": "the memory of waiting rows",
    },
    "unit/io/test_select_and_wrappers.py": {"_known": "what a copy in another process does not know"},
    "unit/maintenance/test_reachable.py": {
        "_parts": "the memory of files that many snapshots name",
        "_read_trees": "the memory of files that many snapshots name",
    },
    # Declarations.
    "unit/codecs/test_metadata_versions.py": {"_Document": "the keys that the parser of table metadata knows"},
    # Names of other libraries that icefloe has too.
    "unit/codecs/test_manifest_interop.py": {"_data": "of pyiceberg"},
    "unit/io/test_arrow_file_io.py": {"_open": "of fsspec"},
    "unit/model/test_evolution_peer.py": {"_apply": "of pyiceberg", "_updates": "of pyiceberg"},
}
# Functions whose text arguments are names of attributes.
BY_TEXT = ("setattr", "delattr", "getattr", "patch", "object", "around")


def private_names(root: Path) -> frozenset[str]:
    """The names with one underscore that a source tree defines: modules, classes, functions, variables, attributes."""
    return frozenset(
        name
        for module in parse_modules(root)
        for name in (module.name.rpartition(".")[2], *map(_defined, ast.walk(module.tree)))
        if name is not None and _is_private(name)
    )


def _defined(node: ast.AST) -> str | None:
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        return node.name
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        return node.attr
    return None


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"


def used_private_names(tests: Path, private: frozenset[str]) -> dict[tuple[str, str], str]:
    """Where tests use private names of the library, by file and name."""
    return {
        (module.path.relative_to(tests).as_posix(), name): module.at(node)
        for module in parse_modules(tests)
        for node, name in _uses(module)
        if name in private
    }


def _uses(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """The private names that a module takes from elsewhere: imports, attributes of other objects, names as texts."""
    own = {_defined(node) for node in ast.walk(module.tree)}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "icefloe":
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.Attribute) and not _is_own(node) and node.attr not in own:
            yield node, node.attr
        elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in BY_TEXT:
            texts = (argument.value for argument in node.args if isinstance(argument, ast.Constant))
            yield from ((node, text.rpartition(".")[2]) for text in texts if isinstance(text, str))


def _is_own(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def test_tests_use_no_private_name_that_is_not_listed() -> None:
    used = used_private_names(TESTS, private_names(SRC))
    expect_none(
        [
            f"{where}: {name} is private; use a public name, or list it in {Path(__file__).name} with a reason"
            for (file, name), where in used.items()
            if name not in ALLOWED.get(file, {})
        ]
    )


@pytest.mark.parametrize("folder", ["bench", "conformance", "demo"])
def test_programs_use_no_private_name(folder: str) -> None:
    assert used_private_names(REPO / folder, private_names(SRC)) == {}


def test_every_listed_name_is_used() -> None:
    used = used_private_names(TESTS, private_names(SRC))
    listed = {(file, name) for file, names in ALLOWED.items() for name in names}
    expect_none(sorted(f"{file}: {name} is listed and not used" for file, name in listed - used.keys()))


def test_every_way_to_a_private_name_is_seen(tmp_path: Path) -> None:
    library = "_LIMIT = 1\n\n\nclass Table:\n    def _load(self):\n        self._held = 1\n"
    tests = """
from icefloe.table import _LIMIT
from support.tables import _LIMIT as mine
table._load()
patch.setattr("icefloe.table._held", 2)
self._load()
other._unknown
"""
    private = private_names(write_tree(tmp_path / "src", {"icefloe/table.py": library}))
    assert private == {"_LIMIT", "_load", "_held"}
    used = used_private_names(write_tree(tmp_path / "tests", {"unit/test_a.py": tests}), private)
    assert used == {
        ("unit/test_a.py", "_LIMIT"): "unit.test_a:2",
        ("unit/test_a.py", "_load"): "unit.test_a:4",
        ("unit/test_a.py", "_held"): "unit.test_a:5",
    }
