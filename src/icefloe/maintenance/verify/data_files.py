"""Reads data files and compares their rows with their entries; an engine runs this here or in tasks (spec: Manifests).

Every file is read batch by batch, with its deleted rows, as an entry describes all rows of a file.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.json.name_mapping import decode_mapping
from icefloe.errors import IcefloeError
from icefloe.formats.parquet.checksums import Checksums
from icefloe.formats.read.inherited_columns import Lineage
from icefloe.formats.read.reader import read_file
from icefloe.io.file_io import FileIO
from icefloe.maintenance.verify.file_measures import FileChecks
from icefloe.maintenance.verify.findings import Finding, finding, guarded, problem_of
from icefloe.maintenance.verify.rules import Rule
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.metadata_columns import LAST_UPDATED, LINEAGE, ROW_ID
from icefloe.model.schema.name_mapping import NAME_MAPPING_PROPERTY, NameMapping, assumed_mapping
from icefloe.model.schema.schema import Schema
from icefloe.scan.partition_values import identity_columns, identity_values

_BATCH_ROWS = 128 * 1024
_FILE = ("location", "file_format", "first_row_id", "sequence_number", "partition_spec_id")
REPORT = pa.schema(
    [
        pa.field("location", pa.string()),
        pa.field("rows", pa.int64()),
        pa.field("is_readable", pa.bool_()),
        pa.field("has_checksums", pa.bool_()),
        pa.field("findings", pa.binary()),  # pickled
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """One data file: its entry as a table of one row, and what is needed to read it."""

    entry: pa.Table
    location: str
    file_format: str | None
    lineage: Lineage
    constants: Mapping[int, pa.Scalar]


class _Reading:
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
        for file in self.files(entries):
            reading = _Reading()
            found = tuple(guarded(self._findings(io, file, reading), file.location))
            report = {
                "location": [file.location],
                "rows": [reading.rows],
                "is_readable": [reading.is_complete],
                "has_checksums": [reading.checksums.present],
                "findings": [pickle.dumps(found)],
            }
            yield pa.table(report, schema=REPORT)

    def _findings(self, io: FileIO, file: DataFile, reading: _Reading) -> Iterator[Finding]:
        with_ids = file.lineage.first_row_id is not None
        wanted = Schema(fields=(*self.schema.fields, *LINEAGE)) if with_ids else self.schema
        checks = FileChecks(file.entry, self.schema, self.metadata)
        try:
            for batch in self.batches(io, file, wanted, checksums=reading.checksums):
                reading.rows += batch.num_rows
                checks.add(batch)
                if with_ids:
                    yield from self._lineage(batch, file.location)
        except IcefloeError as error:
            reading.is_complete = False
            yield finding(rule=Rule.READABLE, location=file.location, message=problem_of(error))
            return
        yield from checks.findings()

    def files(self, entries: pa.Table) -> Iterator[DataFile]:
        """The rows of an entry table as files to read; constants are the values of identity partitions."""
        specs = self.metadata.specs
        fields = [self.schema.by_id[id_] for id_ in identity_columns(specs) if id_ in self.schema.by_id]
        values = {field.id: identity_values(entries, specs, field) for field in fields}
        for number, row in enumerate(entries.select(_FILE).to_pylist()):
            yield DataFile(
                entry=entries.slice(number, 1),
                location=row["location"],
                file_format=row["file_format"],
                lineage=Lineage(
                    first_row_id=row["first_row_id"],
                    sequence_number=row["sequence_number"],
                    spec_id=row["partition_spec_id"],
                ),
                constants={id_: one.values[number] for id_, one in values.items() if one.known[number].as_py()},
            )

    def batches(self, io: FileIO, file: DataFile, wanted: Schema, **options: object) -> Iterator[pa.RecordBatch]:
        """The rows of a file, with the wanted columns."""
        mapping = self.mapping
        return read_file(
            io,
            file.location,
            file_format=file.file_format,
            schema=wanted,
            table_schema=self.schema,
            constants=file.constants,
            lineage=file.lineage,
            mapping=assumed_mapping(self.schema) if mapping is None else mapping,
            batch_rows=_BATCH_ROWS,
            **options,  # type: ignore[arg-type]
        )

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
