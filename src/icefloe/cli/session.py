"""One call of the command line: the catalog and tables that it names, and how it reports progress."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from icefloe.cli.output import Output, console
from icefloe.lazy import LazyModule
from icefloe.progress import Progress, silent

if TYPE_CHECKING:
    import icefloe
    from icefloe.engines import choose
else:
    choose = LazyModule("icefloe.engines.choose")
    icefloe = LazyModule("icefloe")

_LOCATION = re.compile(r"[/\\]|^\.|\.metadata\.json(\.gz)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The options that all verbs share."""

    catalog_name: str | None = None
    uri: str | None = None
    warehouse: str | None = None
    output: Output = Output.TABLE
    debug: bool = False

    def catalog(self, *, create: bool | None = False) -> icefloe.Catalog:
        """The catalog that the options name, as ``icefloe.catalog`` opens it; by default it has to exist."""
        return icefloe.catalog(self.catalog_name, uri=self.uri, warehouse=self.warehouse, create=create)

    def table(self, name: str) -> icefloe.Table:
        """A table by its name in the catalog, or by its folder or metadata file, which have a slash or a suffix."""
        if _LOCATION.search(name) is None:
            return self.catalog().load_table(name)
        settings = {} if self.catalog_name is None else dict(self.catalog().properties)
        return icefloe.open_table(name, properties=settings)

    def spark(self, wanted: bool) -> Any:
        """A Spark session for ``--spark``, with the user's settings of Spark; none without the option."""
        return choose.new_session(needed_by="--spark") if wanted else None

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        """A progress bar on the terminal; nothing if the errors of the program are piped."""
        screen = console(errors=True)
        if not screen.is_terminal:
            yield silent
            return
        with Bar(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=screen
        ) as bar:
            tasks: dict[str, int] = {}

            def report(done: int, total: int, step: str) -> None:
                if step not in tasks:
                    tasks[step] = bar.add_task(step, total=total)
                bar.update(tasks[step], completed=done, total=total)  # type: ignore[arg-type]

            yield report
