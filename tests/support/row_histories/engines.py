"""The engine on which a history runs its operations and reads its rows, with storage that it can read."""

from __future__ import annotations

from typing import Any, Protocol

import pyarrow as pa

from icefloe.io.file_io import FileIO
from icefloe.io.memory import MemoryFileIO
from icefloe.table.scan import Scan


class HistoryEngine(Protocol):
    """What a history needs of an engine."""

    warehouse: str
    io: FileIO
    options: dict[str, Any]  # of operations that take no rows

    def data(self, rows: pa.Table) -> Any:
        """Rows as operations take them."""
        ...

    def rows(self, scan: Scan) -> list[dict[str, object]]:
        """The rows of a scan."""
        ...


class InProcess:
    """Operations on Arrow, in memory."""

    def __init__(self) -> None:
        self.warehouse = "memory://wh"
        self.io: FileIO = MemoryFileIO()
        self.options: dict[str, Any] = {}

    def data(self, rows: pa.Table) -> pa.Table:
        """The rows unchanged."""
        return rows

    def rows(self, scan: Scan) -> list[dict[str, object]]:
        """The rows of a scan in this process."""
        rows: list[dict[str, object]] = scan.to_arrow().to_pylist()
        return rows
