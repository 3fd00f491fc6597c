"""How the demo looks: tables and trees for a terminal of a hundred columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from icefloe import Table

WIDTH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What one commit wrote; ``json_bytes`` is the size of its metadata.json, which ``manifest_bytes`` leaves out."""

    files: int
    manifest_bytes: int
    json_bytes: int
    data_bytes: int

    @classmethod
    def since(cls, before: Mapping[str, int], table: Table) -> Written:
        """What was written since the sizes of metadata files were taken, by one commit."""
        new = {name: size for name, size in sizes(table).items() if name not in before}
        manifests = {name: size for name, size in new.items() if not name.endswith(".metadata.json")}
        return cls(
            files=len(manifests),
            manifest_bytes=sum(manifests.values()),
            json_bytes=sum(new.values()) - sum(manifests.values()),
            data_bytes=int(table.snapshots[-1].summary.get("added-files-size", "0")),
        )

    def __add__(self, other: Written) -> Written:
        return Written(
            files=self.files + other.files,
            manifest_bytes=self.manifest_bytes + other.manifest_bytes,
            json_bytes=self.json_bytes + other.json_bytes,
            data_bytes=self.data_bytes + other.data_bytes,
        )


def sizes(table: Table) -> dict[str, int]:
    """The metadata files of a table and their sizes in bytes."""
    folder = Path(url2pathname(urlsplit(table.metadata_location).path)).parent
    return {file.name: file.stat().st_size for file in folder.iterdir()}


def console() -> Console:
    return Console(width=WIDTH, highlight=False)


def rows(title: str, columns: Sequence[str], values: Iterable[Sequence[object]]) -> Grid:
    """A small table of rows as a user would print them."""
    grid = _grid(title)
    for name in columns:
        grid.add_column(name, justify="right" if name in ("order_id", "customer_id", "amount") else "left")
    for row in values:
        grid.add_row(*("" if value is None else str(value) for value in row))
    return grid


def counts(values: Iterable[tuple[str, int, int, int]]) -> Grid:
    """Row counts of both tables at points of their history, beside the count that is right."""
    grid = _grid("Row counts, read by time travel")
    grid.add_column("after")
    for name in ("expected", "v2", "V4"):
        grid.add_column(name, justify="right")
    grid.add_column("")
    for when, right, v2, v4 in values:
        ok = right == v2 == v4
        mark = Text("equal", style="green") if ok else Text("DIFFERENT", style="bold red")
        grid.add_row(when, f"{right:,}", f"{v2:,}", f"{v4:,}", mark)
    return grid


def written(lines: Mapping[str, tuple[Written, Written]]) -> Grid:
    """Metadata per commit, v2 beside V4."""
    grid = _grid("What each commit wrote: metadata files and their bytes, metadata.json, data")
    grid.add_column("commit")
    for heading in ("files", "bytes", "json", "data"):
        for version, style in (("v2", "dark_orange"), ("V4", "cyan")):
            grid.add_column(f"{heading}\n{version}", justify="right", style=style)
    for name, (v2, v4) in lines.items():
        if name == "total":
            grid.add_section()
        cells = [
            f"{value:,}"
            for pair in (
                (v2.files, v4.files),
                (v2.manifest_bytes, v4.manifest_bytes),
                (v2.json_bytes, v4.json_bytes),
                (v2.data_bytes, v4.data_bytes),
            )
            for value in pair
        ]
        grid.add_row(name, *cells)
    return grid


def _grid(title: str) -> Grid:
    return Grid(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
