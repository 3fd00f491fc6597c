"""The metadata tree of a snapshot in the colours of a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.text import Text
from rich.tree import Tree

if TYPE_CHECKING:
    from icefloe.inspect.node import Node

_STYLES = {"metadata": "bold", "root": "bold cyan", "manifest": "cyan", "file": "green", "vector": "magenta"}


def tree(root: Node) -> Tree:
    """An outline as a tree of rich; nodes that were removed are struck out."""
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
