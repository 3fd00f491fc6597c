"""Data files of a plan, or of entries, as values for readers (spec: Column Projection; Reserved Field IDs)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import repeat

import pyarrow as pa

from icefloe.formats.read.file_read import FileRead
from icefloe.formats.read.inherited_columns import Lineage
from icefloe.model.partition.spec import PartitionSpec
from icefloe.model.schema.metadata_columns import PARTITION_ID
from icefloe.model.schema.types import Struct
from icefloe.scan.partition_values import identity_columns, identity_values, partition_tuples

_FILE = ["location", "file_format", "record_count", "first_row_id", "sequence_number", "partition_spec_id"]
_BATCH_ROWS = 1024


def file_reads(files: pa.Table, read: FileRead, specs: Sequence[PartitionSpec]) -> Iterator[FileRead]:
    """``read`` for each of the files: with its location, format, lineage and partition values.

    ``files`` are entries or tasks; ``read`` has the columns, the filter and what else all files have in common.
    """
    columns = [read.table.by_id[id_] for id_ in identity_columns(specs) if id_ in read.table.by_id]
    values = {column.id: identity_values(files, specs, column) for column in columns}
    tuples: Iterator[pa.StructScalar | None] = repeat(None)
    for field in read.schema.fields:
        if field.id == PARTITION_ID and isinstance(field.type, Struct):
            tuples = iter(partition_tuples(files, field.type))
    row = 0
    for batch in files.select(_FILE).to_batches(max_chunksize=_BATCH_ROWS):
        for location, file_format, record_count, first_row_id, sequence_number, spec_id in zip(
            *(column.to_pylist() for column in batch.columns), strict=True
        ):
            yield replace(
                read,
                location=location,
                file_format=file_format,
                record_count=record_count,
                constants={id_: one.values[row] for id_, one in values.items() if one.known[row].as_py()},
                lineage=Lineage(
                    first_row_id=first_row_id,
                    sequence_number=sequence_number,
                    spec_id=spec_id,
                    partition=next(tuples),
                ),
            )
            row += 1
