"""Errors are one paragraph with the next step; exit codes tell scripts what happened."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import typer

import icefloe
from icefloe.cli.arguments import complete_table
from icefloe.cli.program import app
from icefloe.cli.verb import ExitCode
from support.command_line import CommandLine


def test_an_error_is_one_paragraph_with_the_next_step_and_exit_code_1(run: CommandLine) -> None:
    run.catalog()
    answer = run("describe", "shop.absent")
    assert (answer.code, answer.out) == (ExitCode.ERROR, "")
    assert answer.err == (
        "error: catalog default has no table shop.absent. Next step: Check the name; list_tables() lists the tables of"
        " a namespace.\n"
    )


def test_a_catalog_that_does_not_exist_is_no_empty_one(
    run: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Scar: a misspelt name had 0 tables, and a URI with a wrong folder made it.
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    answer = run("tables", "-c", "nosuch", options=False)
    assert (answer.code, answer.out) == (ExitCode.ERROR, "")
    assert answer.err.startswith("error: no catalog 'nosuch'; none is configured. Next step: Correct the name")
    answer = run("tables")
    assert (answer.code, answer.out) == (ExitCode.ERROR, "")
    assert answer.err.startswith(f"error: catalog 'default' does not exist: there is no {tmp_path}/cat.db. Next step: ")
    assert list(tmp_path.iterdir()) == []
    create = ("create", "db.t", "--schema", "id bigint", "-c", "new")
    assert run(*create, options=False).code == ExitCode.ERROR
    assert run(*create, "--create-catalog", options=False).code == ExitCode.OK
    assert run("tables", "-c", "new", options=False).lines[-1] == "1 tables in catalog new"
    answer = run("tables", "-c", "nosuch", options=False)
    assert answer.err.startswith("error: no catalog 'nosuch'; there are: new. Next step: ")


@pytest.mark.parametrize(
    ("uri", "code", "message"),
    [
        ("sqlit:///cat.db", ExitCode.USAGE, "no kind of catalog has the scheme 'sqlit'; write sqlite:///"),
        ("s3://bucket/wh", ExitCode.USAGE, "no kind of catalog has the scheme 's3'; write sqlite:///"),
        ("https://host/api", ExitCode.ERROR, "catalog 'default' is of type 'rest', by the scheme of its uri"),
        ("mysql://host/db", ExitCode.ERROR, "uri=mysql://...: no driver for such databases is installed"),
        ("cat.db", ExitCode.USAGE, "'cat.db' is not a database URL; write sqlite:///path/to/catalog.db"),
        ("sqlite://", ExitCode.USAGE, "a SQLite catalog needs a file"),
        ("sqlite:///setup.cfg", ExitCode.ERROR, "catalog database sqlite:////"),
        (
            "postgresql://127.0.0.1:1/db",
            ExitCode.ERROR,
            "catalog database postgresql+psycopg://127.0.0.1:1/db failed: ",
        ),
    ],
)
def test_an_error_about_the_catalog_names_what_is_wrong(
    run: CommandLine, uri: str, code: ExitCode, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "setup.cfg").write_text("[metadata]\n" * 20, "utf-8")
    answer = run("tables", "--uri", uri.format(tmp_path), options=False)
    assert (answer.code, answer.out) == (code, "")
    assert answer.err.startswith(f"error: {message.format(tmp_path)}")
    assert answer.err.count("\n") == 1


def test_a_wrong_argument_has_exit_code_2(run: CommandLine, orders: icefloe.Table) -> None:
    answer = run("scan", "shop.orders", "price > 3")
    assert answer.code == ExitCode.USAGE
    assert answer.err.startswith("error: no column 'price'; the table has: id, city, amount")


def test_an_unknown_option_has_exit_code_2(run: CommandLine) -> None:
    assert run("tables", "--colour").code == ExitCode.USAGE


def test_an_unknown_form_of_output_has_exit_code_2(run: CommandLine) -> None:
    assert run("tables", "--output", "xml").code == ExitCode.USAGE


def test_debug_shows_the_traceback(run: CommandLine) -> None:
    run.catalog()
    answer = run("describe", "shop.absent", "--debug")
    assert answer.code == ExitCode.ERROR
    assert "Traceback (most recent call last)" in answer.err
    assert "NoSuchTable" in answer.err


def test_a_closed_pipe_ends_the_program_quietly(run: CommandLine, orders: icefloe.Table) -> None:
    code = "from icefloe.cli.entry import main; main()"
    options = ["--uri", run.uri, "--warehouse", run.warehouse]
    program = [sys.executable, "-c", code, "scan", "shop.orders", "-o", "csv", *options]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read()
    assert (process.returncode, errors) == (0, b"")


def test_the_version_is_printed(run: CommandLine) -> None:
    assert run("--version", options=False).out == f"icefloe {icefloe.__version__}\n"


def test_without_typer_the_program_says_what_to_install() -> None:
    code = "import sys; sys.modules['typer'] = None; from icefloe.cli.entry import main; main()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr == "the command line needs typer, which is not installed: pip install 'icefloe[cli]'\n"


def test_help_loads_neither_pyarrow_nor_spark() -> None:
    code = (
        "import sys; from icefloe.cli.program import app; app(['--help'], standalone_mode=False);"
        "sys.stderr.write(','.join(m for m in ('pyarrow', 'pyspark', 'sqlalchemy', 'sqlglot') if m in sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stderr == ""


def test_the_shell_completes_the_names_of_tables(run: CommandLine, orders: icefloe.Table) -> None:
    context = typer.Context(typer.main.get_command(app))
    context.params = {"uri": run.uri, "warehouse": run.warehouse}
    assert complete_table(context, "shop.o") == ["shop.orders"]
    assert complete_table(context, "x") == []
    context.params = {"uri": "thrift://nowhere"}
    assert complete_table(context, "") == []
