"""Schema and partition edits are typed: completion and type checkers see their methods and arguments."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from architecture.source_tree import REPO
from icefloe.model.evolution.schema_update import SchemaUpdate
from icefloe.model.partition.spec_evolution import PartitionUpdate
from icefloe.table.edits import Edit, PartitionEdit, SchemaEdit

SNIPPET = """
import icefloe

table = icefloe.open_table("t")
with table.update_schema() as columns:
    reveal_type(columns)
    columns.add_column("note", "string", doc="a remark")
    columns.add_colum("note", "string")
    columns.rename_column("note")
with table.update_partitioning() as fields:
    reveal_type(fields)
    fields.add("day(ts)")
    fields.remove(3)
with table.transaction() as work:
    with work.update_schema() as columns:
        columns.move_frist("note")
"""
EXPECTED = [
    (6, 'Revealed type is "icefloe.table.edits.SchemaEdit"'),
    (8, '"SchemaEdit" has no attribute "add_colum"'),
    (9, 'Missing positional argument "name" in call to "rename_column" of "SchemaEdit"'),
    (11, 'Revealed type is "icefloe.table.edits.PartitionEdit"'),
    (13, 'Argument 1 to "remove" of "PartitionEdit" has incompatible type "int"'),
    (16, '"SchemaEdit" has no attribute "move_frist"'),
]


def test_a_type_checker_sees_the_methods_of_edits(tmp_path: Path) -> None:
    snippet = tmp_path / "snippet.py"
    snippet.write_text(SNIPPET, encoding="utf-8")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", str(snippet)],
        cwd=REPO,
        capture_output=True,
        text=True,
    )
    lines = [line for line in checked.stdout.splitlines() if "snippet.py:" in line]
    assert len(lines) == len(EXPECTED), checked.stdout + checked.stderr
    for line, (number, message) in zip(lines, EXPECTED, strict=True):
        assert f"snippet.py:{number}:" in line
        assert message in line


@pytest.mark.parametrize(("edit", "update"), [(SchemaEdit, SchemaUpdate), (PartitionEdit, PartitionUpdate)])
def test_an_edit_has_every_step_of_the_update_with_the_same_arguments(edit: type, update: type) -> None:
    steps = {
        name: parameters(method)
        for name, method in inspect.getmembers(update, inspect.isfunction)
        if not name.startswith("_") and inspect.signature(method).return_annotation == update.__name__
    }
    own = {name for name in vars(edit) if not name.startswith("_")}
    assert len(steps) >= 3
    assert {name: parameters(getattr(edit, name)) for name in own} == steps
    assert own.isdisjoint(vars(Edit))


def parameters(method: object) -> list[str]:
    return [str(parameter) for parameter in inspect.signature(method).parameters.values()]  # type: ignore[arg-type]


def test_the_package_tells_type_checkers_that_it_is_typed() -> None:
    assert (REPO / "src" / "icefloe" / "py.typed").exists()
