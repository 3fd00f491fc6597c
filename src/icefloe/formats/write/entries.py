"""Manifest entries of finished data files of any format (spec: Manifests).

Entries record as much of a writer's measures as the table's metrics modes require. Nothing is read back; unknown
values are null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from icefloe.formats.column_stats import Measured, Source, statistics_of
from icefloe.formats.parquet.field_ids import require_ids
from icefloe.formats.parquet.stats import PARQUET, column_sizes, footer_unit, split_offsets
from icefloe.formats.write.measure import Measures
from icefloe.formats.write.metrics import DEFAULT, Modes
from icefloe.formats.write.partition_values import partition_columns
from icefloe.model.entries import ENTRY, ContentType, Measure, Status, column_key, empty, stat
from icefloe.model.partition.spec import PartitionSpec
from icefloe.model.schema.schema import Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """A finished file: its footer, and what only its writer knows.

    ``partition`` has one plain value for each partition field that is not void; dates and times may be given as
    days or microseconds from 1970. ``measures`` is by field id: of every column where there is no ``footer``, else of
    those that the footer leaves out. ``nan_counts`` and ``value_bytes`` add to a footer; a column that is not in one of
    them was not counted. ``labels`` is the file's schema with ids, for a footer that has none. A footer also has rows,
    sizes of columns and split offsets.
    """

    location: str
    size: int
    file_format: str = PARQUET
    rows: int | None = None
    partition: tuple[object, ...] = ()
    footer: Any = None  # pyarrow.parquet.FileMetaData
    labels: pa.Schema | None = None
    nan_counts: Mapping[int, int] = field(default_factory=dict)
    value_bytes: Mapping[int, int] = field(default_factory=dict)
    measures: Mapping[int, Measures] = field(default_factory=dict)
    split_offsets: tuple[int, ...] = ()

    @property
    def record_count(self) -> int:
        """How many rows the file has."""
        return int(self.footer.num_rows) if self.rows is None else self.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class _Details:
    """The parts of a file's entry that are read from its footer, or were recorded by its writer."""

    source: Source
    column_sizes: Mapping[int, int]
    split_offsets: tuple[int, ...] | None


def entries_of(
    files: Sequence[WrittenFile],
    *,
    schema: Schema,
    spec: PartitionSpec,
    modes: Modes | None = None,
    content: ContentType = ContentType.DATA,
    sort_order_id: int | None = None,
) -> pa.Table:
    """The entries (ADDED, sequence numbers to be inherited) of new files; without modes, bounds have 16 characters."""
    if len(files) == 0:
        return empty()
    details = [_details(file) for file in files]
    rows = pa.array([file.record_count for file in files], pa.int64())
    offsets = [None if detail.split_offsets is None else list(detail.split_offsets) for detail in details]
    columns: dict[str, pa.Array] = {
        "content_type": pa.repeat(pa.scalar(int(content), pa.int32()), len(files)),
        "location": pa.array([file.location for file in files], pa.string()),
        "file_format": pa.array([file.file_format for file in files], pa.string()),
        "status": pa.repeat(pa.scalar(int(Status.ADDED), pa.int32()), len(files)),
        "partition_spec_id": pa.repeat(pa.scalar(spec.spec_id, pa.int32()), len(files)),
        "sort_order_id": pa.repeat(pa.scalar(sort_order_id, pa.int32()), len(files)),
        "record_count": rows,
        "file_size_in_bytes": pa.array([file.size for file in files], pa.int64()),
        "split_offsets": pa.array(offsets, pa.list_(pa.int64())),
    }
    fixed = {f.name: columns.get(f.name) for f in ENTRY}
    filled = {n: pa.nulls(len(files), ENTRY.field(n).type) if a is None else a for n, a in fixed.items()}
    measured = statistics_of([detail.source for detail in details], schema, {} if modes is None else modes)
    sizes = _size_columns([detail.column_sizes for detail in details], schema, {} if modes is None else modes)
    parts = partition_columns([file.partition for file in files], rows, schema=schema, spec=spec)
    return pa.table({**filled, **measured, **sizes, **parts})


def _details(file: WrittenFile) -> _Details:
    if file.footer is None:
        offsets = file.split_offsets if len(file.split_offsets) > 0 else None
        return _Details(source=Measured(file.measures), column_sizes={}, split_offsets=offsets)
    labels = file.footer.schema.to_arrow_schema() if file.labels is None else file.labels
    require_ids(labels, file.location)
    return _Details(
        source=footer_unit(
            file.footer, labels, nan_counts=file.nan_counts, value_bytes=file.value_bytes, measures=file.measures
        ),
        column_sizes=column_sizes(file.footer, labels),
        split_offsets=split_offsets(file.footer),
    )


def _size_columns(sizes: Sequence[Mapping[int, int]], schema: Schema, modes: Modes) -> dict[str, pa.Array]:
    """The sizes of columns that the table has and whose mode is not ``none``, one row for each file."""
    ids = [
        id_ for id_ in schema.by_id if any(id_ in file_sizes for file_sizes in sizes) and modes.get(id_, DEFAULT).counts
    ]
    together = pa.array([file_sizes.get(id_) for id_ in ids for file_sizes in sizes], pa.int64())
    names = [stat(Measure.COLUMN_SIZE, column_key(id_)) for id_ in ids]
    return {name: together.slice(i * len(sizes), len(sizes)) for i, name in enumerate(names)}
