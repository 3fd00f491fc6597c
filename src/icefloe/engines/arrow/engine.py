"""The engine that works in this process on Arrow, for small work and without a JVM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyroaring import BitMap64

from icefloe.deletes.deleted_rows import DeletedRows
from icefloe.deletes.equality_writer import write_equality_deletes
from icefloe.engines.arrow.change.delete import find_rows, write_survivors
from icefloe.engines.arrow.change.update import write_updated
from icefloe.engines.arrow.change.upsert import find_keys, key_range, unique_keys
from icefloe.engines.arrow.write.write import write_rows
from icefloe.engines.engine import Horizon, Keyed, Matched, Positions
from icefloe.expr.value.expressions import Value
from icefloe.io.file_io import FileIO
from icefloe.model.arrow.conform import as_table, conform
from icefloe.model.entries import empty
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.types import Field
from icefloe.scan.tasks import Plan


class ArrowEngine:
    """Rows as Arrow tables and streams."""

    def write(self, io: FileIO, rows: Any, metadata: TableMetadata, *, lineage: tuple[Field, ...] = ()) -> pa.Table:
        """Write rows to new data files of the table; their entries."""
        return write_rows(io, rows, metadata, lineage=lineage)

    def find_rows(self, io: FileIO, plan: Plan, drops: DeletedRows) -> dict[str, BitMap64]:
        """Live rows that match the plan's filter, by file."""
        return find_rows(io, plan, drops)

    @contextmanager
    def keyed(self, rows: Any, metadata: TableMetadata, on: tuple[str, ...]) -> Iterator[Keyed]:
        """The source as one table, with distinct keys."""
        metadata.schema.select(on)
        source = conform(as_table(rows), metadata.schema)
        yield Keyed(rows=source, on=on, range=key_range(source, on), index=unique_keys(source, on))

    def find_keys(
        self, io: FileIO, plan: Plan, drops: DeletedRows, source: Keyed, *, settled: int | None = None
    ) -> Matched:
        """Live rows whose key is one of the source's, and the source with their ids."""
        return find_keys(io, plan, drops, source, settled=settled)

    def write_key_deletes(self, io: FileIO, source: Keyed, metadata: TableMetadata) -> pa.Table:
        """The keys of the source in equality delete files."""
        keys = source.rows.select(list(source.on)).drop_null()
        if keys.num_rows == 0:
            return empty()
        return write_equality_deletes(io, keys, metadata.schema.select(source.on).fields, metadata=metadata)

    def write_updated(
        self,
        io: FileIO,
        plan: Plan,
        drops: DeletedRows,
        found: Positions,
        values: Mapping[str, Value],
        metadata: TableMetadata,
        *,
        others: bool,
        horizon: Horizon | None = None,
    ) -> pa.Table:
        """Rows with new values in new files, alone or with the others of their files."""
        return write_updated(io, plan, drops, found, values, metadata, others=others, horizon=horizon)

    def write_survivors(
        self,
        io: FileIO,
        plan: Plan,
        drops: DeletedRows,
        found: Positions,
        metadata: TableMetadata,
        *,
        horizon: Horizon | None = None,
    ) -> pa.Table:
        """The rows that touched files keep, in new files."""
        return write_survivors(io, plan, drops, found, metadata, horizon=horizon)
