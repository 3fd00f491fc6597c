"""Calls of engines with the values that tests have."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from icefloe.engines.arrow.engine import ArrowEngine
from icefloe.engines.work import FinalLineage, PlannedFiles, TableFiles
from icefloe.io.file_io import FileIO
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.scan.tasks import Plan


def write_entries(io: FileIO, rows: Any, metadata: TableMetadata) -> pa.Table:
    """Write rows to new data files in this process, and commit nothing; returns their entries."""
    return ArrowEngine().write(TableFiles(io=io, metadata=metadata), rows)


def planned_for_engine(
    io: FileIO, metadata: TableMetadata, plan: Plan, deleted_rows: Any = None, final: FinalLineage | None = None
) -> PlannedFiles:
    """Planned files; ``deleted_rows`` are by default those that the plan states, and all lineage is final."""
    return PlannedFiles(
        table=TableFiles(io=io, metadata=metadata),
        plan=plan,
        deleted_rows=plan.deleted_rows(io) if deleted_rows is None else deleted_rows,
        final_lineage=FinalLineage.of(metadata) if final is None else final,
    )
