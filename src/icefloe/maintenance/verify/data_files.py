"""Compares the rows of data files with their entries; an engine runs this, in tasks if it is Spark (spec: Manifests).

Every file is read once, batch by batch, with its deleted rows, as entries describe all rows. Counts, bounds,
partition values and the order of rows are compared; only measures of the rows are kept in memory.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.json.name_mapping import decode_mapping
from icefloe.errors import IcefloeError, InputError
from icefloe.formats.parquet.pages import Checksums
from icefloe.formats.read.file_read import FileRead
from icefloe.formats.read.reader import read_file
from icefloe.formats.write.measure import Measurer, Measures
from icefloe.formats.write.partition_values import PartitionColumn, partition_fields, plain_values
from icefloe.formats.write.sort_rows import usable
from icefloe.io.file_io import FileIO
from icefloe.maintenance.verify.findings import Finding, Rule, finding, guarded, problem_of
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.corners import REQUIRED_AXES, coordinates
from icefloe.model.entries import BOUNDS, Measure, StatKey, column_key, partition_key, stat
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.sort_order import UNSORTED, SortOrder
from icefloe.model.partition.spec import PartitionSpec
from icefloe.model.schema.metadata_columns import LAST_UPDATED, LINEAGE, ROW_ID
from icefloe.model.schema.name_mapping import NAME_MAPPING_PROPERTY, NameMapping, assumed_mapping
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Geography, Geometry
from icefloe.scan.file_reads import file_reads
from icefloe.scan.partition_values import partition_value
from icefloe.transforms.ordering import sort_indices

_BATCH_ROWS = 128 * 1024
REPORT = pa.schema(
    [
        pa.field("location", pa.string()),
        pa.field("rows", pa.int64()),
        pa.field("is_readable", pa.bool_()),
        pa.field("has_checksums", pa.bool_()),
        pa.field("findings", pa.binary()),  # pickled
    ]
)


class _Progress:
    """How much of a file was read."""

    def __init__(self) -> None:
        self.rows = 0
        self.is_complete = True
        self.checksums = Checksums()


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFileChecks:
    """The checks of the data files of one snapshot, as work for an engine; ``metadata`` needs no snapshots."""

    metadata: TableMetadata
    schema: Schema
    sequence_number: int  # of the snapshot

    def __call__(self, io: FileIO, entries: pa.Table) -> Iterator[pa.Table]:
        """A report of one row for each file: how many rows it has, whether it can be read, and the findings."""
        for number, file in enumerate(self.files(entries)):
            progress = _Progress()
            found = tuple(guarded(self._findings(io, file, entries.slice(number, 1), progress), file.location))
            report = {
                "location": [file.location],
                "rows": [progress.rows],
                "is_readable": [progress.is_complete],
                "has_checksums": [progress.checksums.present],
                "findings": [pickle.dumps(found)],
            }
            yield pa.table(report, schema=REPORT)

    def _findings(self, io: FileIO, file: FileRead, entry: pa.Table, progress: _Progress) -> Iterator[Finding]:
        has_row_ids = file.lineage.first_row_id is not None
        if has_row_ids:
            file = replace(file, schema=Schema(fields=(*self.schema.fields, *LINEAGE)))
        checks = FileChecks(entry, self.schema, self.metadata)
        try:
            for batch in read_file(io, file, checksums=progress.checksums):
                progress.rows += batch.num_rows
                checks.add(batch)
                if has_row_ids:
                    yield from self._lineage(batch, file.location)
        except IcefloeError as error:
            progress.is_complete = False
            yield finding(rule=Rule.READABLE, location=file.location, message=problem_of(error))
            return
        yield from checks.findings()

    def files(self, entries: pa.Table) -> Iterator[FileRead]:
        """The files of an entry table, to be read with all columns of the schema."""
        mapping = assumed_mapping(self.schema) if self.mapping is None else self.mapping
        read = FileRead(
            location="", schema=self.schema, table_schema=self.schema, mapping=mapping, batch_rows=_BATCH_ROWS
        )
        return file_reads(entries, read, self.metadata.specs)

    @property
    def mapping(self) -> NameMapping | None:
        """The name mapping of the table, if it has one."""
        text = self.metadata.properties.get(NAME_MAPPING_PROPERTY)
        return None if text is None else decode_mapping(text)

    def _lineage(self, batch: pa.RecordBatch, location: str) -> Iterator[Finding]:
        """Row ids and sequence numbers that rows store are those of earlier rows and commits."""
        for field, limit, what in (
            (ROW_ID, self.metadata.next_row_id - 1, "next-row-id"),
            (LAST_UPDATED, self.sequence_number, "the snapshot's sequence number"),
        ):
            highest = pc.max(batch.column(field.name)).as_py()
            if highest is not None and highest > limit:
                message = f"a row has {field.name} {highest}, which is beyond {what}"
                yield finding(rule=Rule.ROW_IDS, location=location, message=message)


class FileChecks:
    """Measures one data file and compares the measures with its entry, a table of one row."""

    def __init__(self, entry: pa.Table, schema: Schema, metadata: TableMetadata) -> None:
        self._entry = entry
        self._schema = schema
        self._location: str = entry["location"][0].as_py()
        self._names = frozenset(entry.column_names)  # a table builds its list of names for each call
        recorded = [id_ for id_ in schema.measured if any(self._recorded(m, column_key(id_)) for m in Measure)]
        self._measurer = Measurer(schema, only=frozenset(recorded))
        self._rows = 0
        spec = metadata.spec_by_id(entry["partition_spec_id"][0].as_py())
        self._partition = tuple(_PartitionCheck(column, entry) for column in _computable(schema, spec))
        self._order = _OrderCheck(_stated_order(entry, schema, metadata), schema)

    def add(self, batch: pa.RecordBatch) -> None:
        """Measure more rows."""
        self._rows += batch.num_rows
        self._measurer.add(batch)
        self._order.add(batch)
        for check in self._partition:
            check.add(batch)

    def findings(self) -> Iterator[Finding]:
        """The differences between the entry and the rows."""
        said = self._entry["record_count"][0].as_py()
        if said is not None and said != self._rows:
            yield self._finding(Rule.RECORD_COUNTS, f"has {self._rows} rows, its entry says {said}")
        for id_, measures in self._measurer.measures().items():
            yield from self._counts(id_, measures)
            yield from self._bounds(id_, measures)
        for check in self._partition:
            for message in check.problems():
                yield self._finding(Rule.PARTITIONS, message)
        if self._order.first_wrong is not None:
            message = f"row {self._order.first_wrong} is before its place in the stated sort order"
            yield self._finding(Rule.SORT_ORDER, message)

    def _counts(self, id_: int, measures: Measures) -> Iterator[Finding]:
        counted = {
            Measure.VALUES: measures.values,
            Measure.NULLS: measures.nulls,
            Measure.NANS: measures.nans,
        }
        for measure, count in counted.items():
            said = self._recorded(measure, column_key(id_))
            if said is not None and count is not None and said.as_py() != count:
                message = f"{measure} of column {self._schema.names[id_]!r} is {said}, its rows say {count}"
                yield self._finding(Rule.VALUE_COUNTS, message)

    def _bounds(self, id_: int, measures: Measures) -> Iterator[Finding]:
        if isinstance(self._schema.by_id[id_].type, (Geometry, Geography)):
            yield from self._box(id_, measures)
            return
        tight = self._recorded(Measure.TIGHT, column_key(id_))
        for measure, value, outside in (
            (Measure.LOWER, measures.lower, pc.less),
            (Measure.UPPER, measures.upper, pc.greater),
        ):
            said = self._recorded(measure, column_key(id_))
            if said is None or value is None:
                continue
            comparable = value if value.type == said.type else value.cast(said.type)
            if outside(comparable, said).as_py() is True:
                message = f"{measure} of column {self._schema.names[id_]!r} is {said.as_py()!r}, a row has {value}"
                yield self._finding(Rule.BOUNDS, message)
            elif tight is not None and tight.as_py() is True and comparable != said:
                message = f"{measure} of column {self._schema.names[id_]!r} is not tight: {said.as_py()!r}, not {value}"
                yield self._finding(Rule.BOUNDS, message)

    def _box(self, id_: int, measures: Measures) -> Iterator[Finding]:
        """Points outside of the box that the entry states; other shapes are not measured."""
        said = [self._recorded(measure, column_key(id_)) for measure in BOUNDS]
        if any(corner is None for corner in (*said, measures.lower, measures.upper)):
            return
        (low, high), (least, greatest) = (
            coordinates(pa.array(corners, pa.binary()))[:, :REQUIRED_AXES]
            for corners in (said, [measures.lower, measures.upper])
        )
        if low[0] <= high[0] and ((least < low).any() or (greatest > high).any()):
            message = (
                f"the box of column {self._schema.names[id_]!r} is {low} to {high}, rows have {least} to {greatest}"
            )
            yield self._finding(Rule.BOUNDS, message)

    def _recorded(self, measure: Measure, key: StatKey) -> pa.Scalar | None:
        name = stat(measure, key)
        value = self._entry[name][0] if name in self._names else None
        return None if value is None or not value.is_valid else value

    def _finding(self, rule: Rule, message: str) -> Finding:
        return finding(rule=rule, location=self._location, message=message)


def _computable(schema: Schema, spec: PartitionSpec) -> Iterator[PartitionColumn]:
    """The partition fields that can be computed from the columns of a schema."""
    for field in spec.fields:
        try:
            yield from partition_fields(schema, PartitionSpec(fields=(field,)))
        except InputError:
            continue  # of a column that was dropped, or by an unknown transform


class _PartitionCheck:
    """Compares the values of one partition field with the one in the file's entry."""

    def __init__(self, column: PartitionColumn, entry: pa.Table) -> None:
        self._column = column
        values, known = partition_value(entry, partition_key(column.field.field_id), arrow_type(column.result))
        self._is_known = known[0].as_py() is True
        (self._said,) = plain_values(values)
        self._others: dict[str, object] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Compare the values of more rows."""
        if self._is_known:
            for value in plain_values(pc.unique(self._column.values(batch))):
                if not _is_same(value, self._said):
                    self._others.setdefault(repr(value), value)

    def problems(self) -> Iterator[str]:
        """Messages about other values than the stated one."""
        if len(self._others) > 0:
            few = ", ".join(list(self._others)[:3])
            yield f"partition field {self._column.field.name!r} is {self._said!r}, rows have {few}"


def _is_same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return one == other


def _stated_order(entry: pa.Table, schema: Schema, metadata: TableMetadata) -> SortOrder:
    id_ = entry["sort_order_id"][0].as_py()
    stated = next((order for order in metadata.sort_orders if order.order_id == id_), UNSORTED)
    return usable(stated, schema)


class _OrderCheck:
    """Finds the first row that is not in order; only the last row of a batch is kept."""

    def __init__(self, order: SortOrder, schema: Schema) -> None:
        self._order = order
        self._schema = schema
        self._last: pa.RecordBatch | None = None
        self._rows = 0
        self.first_wrong: int | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Check more rows."""
        if not self._order.is_sorted or self.first_wrong is not None or batch.num_rows == 0:
            return
        before: list[Any] = [] if self._last is None else [self._last]
        rows = pa.Table.from_batches([*before, batch]).combine_chunks()
        places = np.asarray(sort_indices(rows, self._order, self._schema))
        wrong = np.flatnonzero(places != np.arange(len(places), dtype=places.dtype))
        if len(wrong) > 0:
            self.first_wrong = int(self._rows - len(before) + places[wrong[0]])
        self._last = batch.slice(batch.num_rows - 1, 1)
        self._rows += batch.num_rows
