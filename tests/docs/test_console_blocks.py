"""The sessions of the command line in docs/ run: every block that opens with ```` ```console run ```` is executed.

A line that begins with ``$ icefloe`` is run in this process, in the folder of its page; what it prints must be what the
lines below it say, where ``...`` stands for any text. ``$ cat > name`` writes the lines below it to a file.
"""

from __future__ import annotations

import doctest
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from docs.test_code_blocks import REPO
from icefloe.cli.program import VERBS, app

BLOCK = re.compile(r"^```console run[ \t]*\n(?P<lines>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
PAGES = [page for page in sorted((REPO / "docs").glob("*.md")) if BLOCK.search(page.read_text(encoding="utf-8"))]


def commands(page: Path) -> Iterator[tuple[str, str]]:
    """The commands of a page, each with the lines below it."""
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block["lines"], flags=re.MULTILINE)[1:]:
            command, _, below = part.partition("\n")
            yield command, below


def run_page(page: Path) -> list[str]:
    """Run the commands of a page; returns what differs. There is a folder ``visits`` of one Parquet file."""
    Path("visits/year=2026").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2]}), "visits/year=2026/part-0.parquet")
    problems = []
    for command, expected in commands(page):
        if command.startswith("cat > "):
            Path(command.removeprefix("cat > ")).write_text(expected, encoding="utf-8")
            continue
        program, *arguments = shlex.split(command)
        assert program == "icefloe", command
        result = CliRunner().invoke(app, arguments)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        printed = "".join(f"{line.rstrip()}\n" for line in (result.stdout + result.stderr).splitlines())
        if not doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS):
            problems.append(f"$ {command}\nexpected:\n{expected}got:\n{printed}")
    return problems


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_print_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "\n".join(run_page(page)) == ""


def test_every_verb_is_shown_on_the_page_of_the_command_line() -> None:
    shown = {shlex.split(command)[1] for command, _ in commands(REPO / "docs/command-line.md") if "icefloe" in command}
    assert {name for _, name, _ in VERBS} - shown == set()


def test_a_wrong_line_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("```console run\n$ icefloe --version\nicefloe 0\n```\n", encoding="utf-8")
    assert len(run_page(page)) == 1
