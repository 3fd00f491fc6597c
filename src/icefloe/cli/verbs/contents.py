"""Verbs that look into a table: scan, explain, tree, files, partitions, inspect, diff, changes."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text
from rich.tree import Tree

from icefloe.cli.arguments import BranchName, Limit, SnapshotId, TableName, TagName, Time, limit_of, point_of
from icefloe.cli.output import Listing, Output, Record, listing_of
from icefloe.cli.session import Session
from icefloe.lazy import LazyModule

if TYPE_CHECKING:
    from icefloe.inspect import drawing
    from icefloe.inspect.metadata_tables import tables
    from icefloe.inspect.node import Node
else:
    drawing = LazyModule("icefloe.inspect.drawing")
    tables = LazyModule("icefloe.inspect.metadata_tables.tables")

Where = Annotated[str | None, typer.Argument(metavar="FILTER", help="Such as \"id > 5 and note = 'a'\".")]
_STYLES = {"metadata": "bold", "root": "bold cyan", "manifest": "cyan", "file": "green", "vector": "magenta"}
_FILE_COLUMNS = ("content", "file_path", "file_format", "partition", "record_count", "file_size_in_bytes")
_PARTITION_COLUMNS = (
    "partition",
    "record_count",
    "file_count",
    "total_data_file_size_in_bytes",
    "position_delete_record_count",
    "equality_delete_record_count",
    "last_updated_at",
)


def scan(
    session: Session,
    table: TableName,
    where: Where = None,
    columns: Annotated[str | None, typer.Option(help="Names, separated by commas.")] = None,
    count: Annotated[bool, typer.Option("--count", help="Only the number of rows.")] = False,
    snapshot: SnapshotId = None,
    branch: BranchName = None,
    tag: TagName = None,
    at: Time = None,
    limit: Limit = 20,
) -> Listing | Record:
    """Read rows of a table that match a filter."""
    point = session.table(table).at(snapshot=snapshot, branch=branch, tag=tag, timestamp=at)
    names = None if columns is None else [name.strip() for name in columns.split(",")]
    chosen = point.scan(where, columns=names)
    if count:
        rows = chosen.count()
        return Record(fields={"rows": rows}, text=str(rows))
    return listing_of(chosen.to_arrow_batch_reader(), limit=limit_of(limit))


def explain(
    session: Session,
    table: TableName,
    where: Where = None,
    snapshot: SnapshotId = None,
    branch: BranchName = None,
    tag: TagName = None,
    at: Time = None,
) -> Listing | Record:
    """Say which manifests and files a scan reads or skips, and why. No data file is read."""
    chosen = session.table(table).at(snapshot=snapshot, branch=branch, tag=tag, timestamp=at).scan(where)
    if session.output is Output.TABLE:
        return Record(fields={}, text=chosen.explain())
    return listing_of(chosen.plan(trace=True).trace)


class TreeForm(StrEnum):
    """The forms of a drawn tree."""

    TEXT = "text"
    MERMAID = "mermaid"
    SVG = "svg"


def tree(
    session: Session,
    table: TableName,
    snapshot: SnapshotId = None,
    branch: BranchName = None,
    tag: TagName = None,
    at: Time = None,
    form: Annotated[TreeForm, typer.Option("--form", help="Text for the terminal, or a drawing.")] = TreeForm.TEXT,
    shown: Annotated[int, typer.Option(min=1, help="Siblings of a kind that are drawn.")] = 3,
    file: Annotated[Path | None, typer.Option(help="Write the drawing to this file.")] = None,
) -> Record:
    """Draw the metadata tree of a snapshot: metadata file, root, leaves, data files and deletion vectors."""
    point = session.table(table).at(snapshot=snapshot, branch=branch, tag=tag, timestamp=at)
    node = point.outline(shown=shown)
    text = _drawn(node, form)
    if file is not None:
        file.write_text(f"{text}\n", encoding="utf-8")
        return Record(fields={"file": str(file), "form": str(form)}, text=f"wrote {file}")
    fields = node.as_dict() if form is TreeForm.TEXT else {"form": str(form), "drawing": text}
    return Record(fields=fields, text=text, drawing=coloured_tree(node) if form is TreeForm.TEXT else None)


def _drawn(node: Node, form: TreeForm) -> str:
    match form:
        case TreeForm.TEXT:
            return str(node)
        case TreeForm.MERMAID:
            return drawing.mermaid(node)
        case TreeForm.SVG:
            return drawing.svg(node)


def files(
    session: Session,
    table: TableName,
    snapshot: SnapshotId = None,
    branch: BranchName = None,
    tag: TagName = None,
    at: Time = None,
    limit: Limit = 100,
) -> Listing:
    """List the data files and delete files of a snapshot, with their rows, bytes, partitions and statistics."""
    found = session.table(table).inspect.files(snapshot=snapshot, branch=branch, tag=tag, timestamp=at)
    return listing_of(found, shown_columns=_shown_columns(found, _FILE_COLUMNS), limit=limit_of(limit))


def partitions(
    session: Session,
    table: TableName,
    snapshot: SnapshotId = None,
    branch: BranchName = None,
    tag: TagName = None,
    at: Time = None,
    limit: Limit = 100,
) -> Listing:
    """List the partitions of a snapshot, with their rows, files and bytes."""
    found = session.table(table).inspect.partitions(snapshot=snapshot, branch=branch, tag=tag, timestamp=at)
    return listing_of(found, shown_columns=_shown_columns(found, _PARTITION_COLUMNS), limit=limit_of(limit))


def complete_name(incomplete: str) -> list[str]:
    """The metadata tables whose names begin with a text, for the completion of the shell."""
    return [name for name in tables.METADATA_TABLES if name.startswith(incomplete)]


def inspect(
    session: Session,
    table: TableName,
    name: Annotated[
        str, typer.Argument(help="A metadata table, such as entries or manifests.", autocompletion=complete_name)
    ],
    limit: Limit = 100,
) -> Listing:
    """Show one of the metadata tables, such as entries, manifests or all_files, with all of its columns."""
    return listing_of(session.table(table).inspect.rows(name), limit=limit_of(limit))


def diff(
    session: Session,
    table: TableName,
    a: Annotated[
        str | None, typer.Argument(help="Snapshot id, tag, branch or time; by default the parent of B.")
    ] = None,
    b: Annotated[str | None, typer.Argument(help="The same; by default the current snapshot.")] = None,
) -> Record:
    """Show what differs between two snapshots: files, rows, bytes, columns, properties and refs."""
    result = session.table(table).diff(point_of(a), point_of(b))
    return Record(fields=result.as_dict(), text=repr(result))


def changes(
    session: Session,
    table: TableName,
    since: Annotated[str | None, typer.Option(help="Snapshot id, tag, branch or time; not included.")] = None,
    until: Annotated[str | None, typer.Option(help="The same; included. By default the current snapshot.")] = None,
    net: Annotated[bool, typer.Option("--net", help="Fold all snapshots into one change.")] = False,
    images: Annotated[bool, typer.Option("--images", help="Show updates as rows before and after.")] = False,
    key: Annotated[list[str] | None, typer.Option(help="Column that pairs the rows of an update.")] = None,
    limit: Limit = 20,
) -> Listing:
    """List the rows that were inserted, deleted and updated between two snapshots."""
    chosen = session.table(table).changes(point_of(since), point_of(until), net=net, images=images, keys=key or None)
    return listing_of(chosen.to_arrow_batch_reader(), limit=limit_of(limit))


def _shown_columns(table: Any, names: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the columns that the table has: an unpartitioned one has no partition."""
    return tuple(name for name in names if name in table.schema.names)


def coloured_tree(root: Node) -> Tree:
    """An outline in the colours of a terminal; nodes that were removed are struck out."""
    drawn = Tree(_line(root), guide_style="dim")
    _add(drawn, root.children)
    return drawn


def _add(parent: Tree, children: Iterable[Node]) -> None:
    for child in children:
        _add(parent.add(_line(child)), child.children)


def _line(node: Node) -> Text:
    style = "dim strike" if node.removed else _STYLES.get(node.kind, "dim")
    line = Text(node.name, style=style)
    return line.append(f"  {', '.join(node.facts)}", style="dim" if node.removed or node.kind == "more" else "not bold")
