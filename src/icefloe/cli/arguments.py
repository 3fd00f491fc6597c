"""The arguments and options that several verbs have, and the texts that they are given in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from icefloe.cli.session import Session
from icefloe.errors import IcefloeError, InputError

if TYPE_CHECKING:
    import icefloe


def list_tables(catalog: icefloe.Catalog, namespaces: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The tables of some namespaces and of those in them: namespace and name."""
    for namespace in sorted(namespaces):
        yield from ((namespace, name) for name in sorted(catalog.list_tables(namespace)))
        yield from list_tables(catalog, catalog.list_namespaces(namespace))


def complete_table(context: typer.Context, incomplete: str) -> list[str]:
    """The names of tables that begin with a text, for the completion of the shell."""
    given = {name: context.params.get(name) for name in ("catalog_name", "uri", "warehouse")}
    try:
        catalog = Session(**given).catalog()  # type: ignore[arg-type]
        names = [name for _, name in list_tables(catalog, catalog.list_namespaces())]
    except IcefloeError:
        return []  # a shell cannot show an error while it completes a word
    return [name for name in names if name.startswith(incomplete)]


TableName: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="Name in the catalog, or folder or metadata file of a table.",
        autocompletion=complete_table,
    ),
]
SnapshotId: TypeAlias = Annotated[int | None, typer.Option("--snapshot", help="Id of a snapshot.")]
BranchName: TypeAlias = Annotated[str | None, typer.Option("--branch", help="Name of a branch.")]
TagName: TypeAlias = Annotated[str | None, typer.Option("--tag", help="Name of a tag.")]
Time: TypeAlias = Annotated[
    str | None, typer.Option("--at", help="Time with a zone, such as 2026-11-15T09:00:00+01:00.")
]
Limit: TypeAlias = Annotated[int, typer.Option(help="Rows of a table for people; 0 for all. JSON and CSV have all.")]
OnSpark: TypeAlias = Annotated[
    bool, typer.Option("--spark", help="Run on Spark, with the settings of spark-defaults.conf; for large tables.")
]
CreateCatalog: TypeAlias = Annotated[
    bool, typer.Option("--create-catalog", help="Make the catalog, and its folder, if it does not exist.")
]
Execute: TypeAlias = Annotated[bool, typer.Option("--execute", help="Do it. Without this, only show the plan.")]


def limit_of(limit: int) -> int | None:
    """The number of rows to show; none for all."""
    if limit < 0:
        raise InputError(f"--limit {limit}: give a number of rows, or 0 for all")
    return None if limit == 0 else limit


def pairs(texts: Iterable[str], option: str) -> dict[str, str]:
    """Names and values of ``name=value`` texts.

    >>> pairs(["owner=me", "note=a=b"], "--property")
    {'owner': 'me', 'note': 'a=b'}
    """
    split = [text.partition("=") for text in texts]
    wrong = [name for name, separator, _ in split if separator == ""]
    if len(wrong) > 0:
        raise InputError(f"{option} {wrong[0]}: expected name=value")
    return {name: value for name, _, value in split}


def point_of(text: str | None) -> int | str | None:
    """A point of the history: a snapshot id, or the text of a tag, branch or time.

    >>> point_of("42"), point_of("v1"), point_of(None)
    (42, 'v1', None)
    """
    return int(text) if text is not None and text.isdigit() else text
