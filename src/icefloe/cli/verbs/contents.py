"""Verbs that look into a table: scan, explain, tree."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from icefloe.cli.arguments import BranchName, Limit, SnapshotId, TableName, TagName, Time, limit_of
from icefloe.cli.drawing import tree as drawn_tree
from icefloe.cli.output import Listing, Output, Record, listing_of
from icefloe.cli.session import Session
from icefloe.lazy import LazyModule

if TYPE_CHECKING:
    from icefloe.inspect import drawing
    from icefloe.inspect.node import Node
else:
    drawing = LazyModule("icefloe.inspect.drawing")

Where = Annotated[str | None, typer.Argument(metavar="FILTER", help="Such as \"id > 5 and note = 'a'\".")]


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
    return Record(fields=fields, text=text, drawing=drawn_tree(node) if form is TreeForm.TEXT else None)


def _drawn(node: Node, form: TreeForm) -> str:
    match form:
        case TreeForm.TEXT:
            return str(node)
        case TreeForm.MERMAID:
            return drawing.mermaid(node)
        case TreeForm.SVG:
            return drawing.svg(node)
