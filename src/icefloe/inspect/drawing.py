"""Outlines as drawings: Mermaid, which Markdown pages show, and SVG, which browsers show."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from icefloe.inspect.node import Node

_COLOURS = {"metadata": "#374151", "root": "#0e7490", "manifest": "#0891b2", "file": "#15803d", "vector": "#a21caf"}
_OTHER = "#6b7280"
_ROW, _INDENT, _MARGIN, _BOX, _LETTER = 28, 26, 16, 20, 7.4  # sizes of the SVG in pixels


def mermaid(root: Node) -> str:
    """A flowchart of Mermaid.

    >>> print(mermaid(Node(kind="root", name="r", facts=("1 row",), children=(Node(kind="file", name="f"),))))
    flowchart LR
        n0["r<br/>1 row"]:::root
        n1["f"]:::file
        n0 --> n1
        classDef file stroke:#15803d
        classDef root stroke:#0e7490
    """
    lines, kinds = ["flowchart LR"], set()
    for number, parent, node, _ in _numbered(root):
        text = "<br/>".join([node.name, *((", ".join(node.facts),) if len(node.facts) > 0 else ())])
        lines.append(f'    n{number}["{_mermaid_text(text)}"]:::{node.kind}')
        if parent is not None:
            lines.append(f"    n{parent} {'-.->' if node.removed else '-->'} n{number}")
        kinds.add(node.kind)
    styles = [f"    classDef {kind} stroke:{_COLOURS.get(kind, _OTHER)}" for kind in sorted(kinds)]
    return "\n".join([*lines, *styles])


def _mermaid_text(text: str) -> str:
    return text.replace('"', "#quot;").replace("[", "#91;").replace("]", "#93;")


def svg(root: Node) -> str:
    """An image with one line for each node; removed nodes are struck out.

    >>> svg(Node(kind="root", name="<r>")).count("&lt;r&gt;")
    1
    """
    rows = list(_numbered(root))
    widest = max(depth * _INDENT + len(node.text) * _LETTER for _, _, node, depth in rows)
    width, height = round(widest + 2 * _MARGIN + _BOX), len(rows) * _ROW + 2 * _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="monospace"'
        ' font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for number, parent, node, depth in rows:
        parts += _edge(number, parent, depth)
        parts += _box(number, node, depth)
    return "\n".join([*parts, "</svg>"])


def _edge(number: int, parent: int | None, depth: int) -> list[str]:
    if parent is None:
        return []
    x, top, y = _x(depth - 1) + 6, _y(parent) + 10, _y(number)
    return [f'<path d="M {x} {top} V {y} H {_x(depth)}" fill="none" stroke="#9ca3af"/>']


def _box(number: int, node: Node, depth: int) -> list[str]:
    x, y, colour = _x(depth), _y(number), _COLOURS.get(node.kind, _OTHER)
    struck = ' text-decoration="line-through"' if node.removed else ""
    facts = "" if len(node.facts) == 0 else f'<tspan fill="#4b5563">  {escape(", ".join(node.facts))}</tspan>'
    return [
        f'<circle cx="{x + 6}" cy="{y}" r="5" fill={quoteattr(colour)}/>',
        f'<text x="{x + _BOX}" y="{y + 4}" xml:space="preserve"{struck}>{escape(node.name)}{facts}</text>',
    ]


def _x(depth: int) -> int:
    return _MARGIN + depth * _INDENT


def _y(number: int) -> int:
    return _MARGIN + number * _ROW + _ROW // 2


def _numbered(root: Node) -> Iterator[tuple[int, int | None, Node, int]]:
    """All nodes in the order of the outline: number, number of the parent, node, depth."""
    waiting: list[tuple[int | None, Node, int]] = [(None, root, 0)]
    number = 0
    while len(waiting) > 0:
        parent, node, depth = waiting.pop()
        yield number, parent, node, depth
        waiting.extend((number, child, depth + 1) for child in reversed(node.children))
        number += 1
