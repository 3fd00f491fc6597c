"""Every verb has help, prints for people and as JSON, and reports a table that does not exist."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefloe
from icefloe.cli import program
from icefloe.cli.verb import ExitCode
from support.command_line import CommandLine

VERBS = [name for _, name, _ in program.VERBS]
WITHOUT_TABLE = {"tables": [], "create": ["shop.new", "--schema", "id bigint"], "import": ["shop.new", "rows"]}
MORE_ARGUMENTS = {
    "append": ["rows.parquet"],
    "branch": ["b"],
    "changes": ["--since", "first"],
    "delete": ["id = 1"],
    "diff": ["first", "main"],
    "erase": ["id = 1"],
    "fast-forward": ["behind", "main"],
    "inspect": ["files"],
    "relocate": ["elsewhere"],
    "rollback": ["--at", "2100-01-01T00:00:00+00:00"],
    "set-current-snapshot": ["--ref", "first"],
    "tag": ["t"],
    "upgrade": ["4"],
}
FINDINGS = {"health"}  # verbs that find something in this table


def arguments_of(verb: str, table: str) -> list[str]:
    return WITHOUT_TABLE.get(verb, [table, *MORE_ARGUMENTS.get(verb, [])])


@pytest.fixture
def visits(run: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> icefloe.Table:
    """A table of version 2: a deleted row, a tag and a branch at its first snapshot; and files to append and import."""
    monkeypatch.chdir(tmp_path)
    table = run.catalog().create_table("shop.visits", schema="id bigint, page string", format_version=2)
    table.append(pa.table({"id": [1, 2], "page": ["a", "b"]}))
    table.tag("first")
    table.branch("behind")
    table.delete("id = 2")
    (tmp_path / "rows").mkdir()
    for name in ("rows.parquet", "rows/part-0.parquet"):
        pq.write_table(pa.table({"id": [3], "page": ["c"]}), tmp_path / name)
    return table


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_that_shows_its_arguments(run: CommandLine, verb: str) -> None:
    answer = run(verb, "--help", options=False)
    assert answer.code == ExitCode.OK
    assert "--output" in answer.out
    assert "--catalog" in answer.out


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_prints_for_people(run: CommandLine, visits: icefloe.Table, verb: str) -> None:
    answer = run(verb, *arguments_of(verb, "shop.visits"))
    assert (answer.code, answer.err) == (ExitCode.FINDINGS if verb in FINDINGS else ExitCode.OK, "")
    assert len(answer.lines) > 0
    assert not answer.out.lstrip().startswith(("{", "["))


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_prints_json(run: CommandLine, visits: icefloe.Table, verb: str) -> None:
    answer = run(verb, *arguments_of(verb, "shop.visits"), "--output", "json")
    assert (answer.code, answer.err) == (ExitCode.FINDINGS if verb in FINDINGS else ExitCode.OK, "")
    assert isinstance(answer.json, dict | list)
    assert len(answer.json) > 0


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in WITHOUT_TABLE])
def test_every_verb_reports_a_table_that_does_not_exist(run: CommandLine, visits: icefloe.Table, verb: str) -> None:
    answer = run(verb, *arguments_of(verb, "shop.absent"))
    assert answer.code == ExitCode.ERROR
    assert "shop.absent" in answer.err
