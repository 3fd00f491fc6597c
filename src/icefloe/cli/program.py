"""The verbs of the command line, with their names, in the groups that the help shows."""

from __future__ import annotations

from typing import Annotated

import typer

from icefloe.cli.verb import Verb, add_verb
from icefloe.cli.verbs import contents, history, maintenance, rows, tables
from icefloe.env import VERSION

_TABLES, _HISTORY, _CONTENTS, _ROWS, _MAINTENANCE = "Tables", "History", "Contents", "Rows", "Maintenance"
VERBS: tuple[tuple[str, str, Verb], ...] = (
    (_TABLES, "tables", tables.tables),
    (_TABLES, "create", tables.create),
    (_TABLES, "describe", tables.describe),
    (_TABLES, "schema", tables.schema),
    (_TABLES, "upgrade", tables.upgrade),
    (_TABLES, "drop", tables.drop),
    (_HISTORY, "snapshots", history.snapshots),
    (_HISTORY, "refs", history.refs),
    (_HISTORY, "branch", history.branch),
    (_HISTORY, "tag", history.tag),
    (_HISTORY, "rollback", history.rollback),
    (_HISTORY, "set-current-snapshot", history.set_current_snapshot),
    (_HISTORY, "fast-forward", history.fast_forward),
    (_CONTENTS, "scan", contents.scan),
    (_CONTENTS, "explain", contents.explain),
    (_CONTENTS, "tree", contents.tree),
    (_CONTENTS, "files", contents.files),
    (_CONTENTS, "partitions", contents.partitions),
    (_CONTENTS, "inspect", contents.inspect),
    (_CONTENTS, "diff", contents.diff),
    (_CONTENTS, "changes", contents.changes),
    (_ROWS, "append", rows.append),
    (_ROWS, "import", rows.import_folder),
    (_ROWS, "delete", rows.delete),
    (_MAINTENANCE, "verify", maintenance.verify),
    (_MAINTENANCE, "health", maintenance.health),
    (_MAINTENANCE, "maintain", maintenance.maintain),
    (_MAINTENANCE, "compact", maintenance.compact),
    (_MAINTENANCE, "rewrite-deletes", maintenance.rewrite_deletes),
    (_MAINTENANCE, "rewrite-manifests", maintenance.rewrite_manifests),
    (_MAINTENANCE, "analyze", maintenance.analyze),
    (_MAINTENANCE, "expire", maintenance.expire),
    (_MAINTENANCE, "orphans", maintenance.orphans),
    (_MAINTENANCE, "erase", maintenance.erase),
    (_MAINTENANCE, "relocate", maintenance.relocate),
)

app = typer.Typer(
    name="icefloe",
    help="Iceberg tables, versions 1 to 4, from the command line.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"icefloe {VERSION}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options before the verb."""


for panel, name, function in VERBS:
    add_verb(app, function, name, panel)


def run() -> None:
    """Run the program with the arguments of the process."""
    app()
