"""The engine that works in this process on Arrow, for small work and without a JVM."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyroaring import BitMap64

from icefloe.engines.arrow.delete import find_rows, write_survivors
from icefloe.engines.arrow.upsert import check_unique, find_keys, key_range
from icefloe.engines.arrow.write import write_rows
from icefloe.engines.engine import Keyed, Matched, Positions
from icefloe.io.file_io import FileIO
from icefloe.model.arrow import as_table, conform
from icefloe.model.metadata import TableMetadata
from icefloe.model.types import Field
from icefloe.scan.tasks import Plan


class ArrowEngine:
    """Rows as Arrow tables and streams."""

    def write(self, io: FileIO, rows: Any, metadata: TableMetadata, *, lineage: tuple[Field, ...] = ()) -> pa.Table:
        """Write rows to new data files of the table; their entries."""
        return write_rows(io, rows, metadata, lineage=lineage)

    def find_rows(self, io: FileIO, plan: Plan, deleted: Positions) -> dict[str, BitMap64]:
        """Live rows that match the plan's filter, by file."""
        return find_rows(io, plan, deleted)

    @contextmanager
    def keyed(self, rows: Any, metadata: TableMetadata, on: tuple[str, ...]) -> Iterator[Keyed]:
        """The source as one table, with distinct keys."""
        metadata.schema.select(on)
        source = conform(as_table(rows), metadata.schema)
        check_unique(source, on)
        yield Keyed(rows=source, on=on, range=key_range(source, on))

    def find_keys(
        self, io: FileIO, plan: Plan, deleted: Positions, source: Keyed, *, settled: int | None = None
    ) -> Matched:
        """Live rows whose key is one of the source's, and the source with their ids."""
        return find_keys(io, plan, deleted, source.rows, source.on, settled=settled)

    def write_survivors(self, io: FileIO, plan: Plan, deleted: Positions, metadata: TableMetadata) -> pa.Table:
        """The rows that touched files keep, in new files."""
        return write_survivors(io, plan, deleted, metadata)
