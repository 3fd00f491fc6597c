"""Checks of data files: their rows are compared with what manifest entries say about them (spec: Manifests).

Every data file is read once, batch by batch, with its deleted rows, as entries describe all rows of a file. Row ids are
checked at the heads of branches and tags, without deleted rows: an updated row has its old row's id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.codecs.json.name_mapping import decode_mapping
from icefloe.deletes.bitmaps import bitmap_of
from icefloe.deletes.delete_index import Attached, attach_deletes
from icefloe.deletes.deleted_rows import DeletedRows
from icefloe.deletes.equality_files import DeleteFile, read_index
from icefloe.errors import IcefloeError
from icefloe.formats.read.inherited_columns import Lineage
from icefloe.formats.read.reader import read_file
from icefloe.maintenance.verify.file_measures import FileChecks
from icefloe.maintenance.verify.findings import Finding, finding, guarded
from icefloe.maintenance.verify.rules import Rule
from icefloe.maintenance.verify.snapshots import View
from icefloe.model.entries import DELETES, ContentType
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.metadata_columns import LAST_UPDATED, LINEAGE, ROW_ID
from icefloe.model.schema.name_mapping import NAME_MAPPING_PROPERTY, NameMapping, assumed_mapping
from icefloe.model.schema.schema import Schema
from icefloe.progress import Progress
from icefloe.scan.identity_columns import identity_columns, identity_values
from icefloe.scan.plan import known_fields
from icefloe.tree.store import ManifestStore

_BATCH_ROWS = 128 * 1024
_FILE = ("location", "file_format", "first_row_id", "sequence_number", "partition_spec_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """One data file: its entry as a table of one row, and what is needed to read it."""

    entry: pa.Table
    location: str
    file_format: str | None
    lineage: Lineage
    constants: Mapping[int, pa.Scalar]


class RowChecks:
    """Checks the rows of snapshots; a data file that several of them have is read once."""

    def __init__(self, store: ManifestStore, metadata: TableMetadata, progress: Progress) -> None:
        self._store = store
        self._metadata = metadata
        self._progress = progress
        text = metadata.properties.get(NAME_MAPPING_PROPERTY)
        self._mapping: NameMapping | None = None if text is None else decode_mapping(text)
        self._seen: set[str] = set()
        self._unreadable: set[str] = set()  # reported already
        self.files_read = 0
        self.rows_read = 0

    def of_snapshot(self, view: View) -> Iterator[Finding]:
        """Findings about the rows of a snapshot that were not read yet, and about its row ids if it is a head."""
        schema = self._metadata.schema_of(view.snapshot)
        data = view.of(ContentType.DATA)
        new = _without(data, self._seen)
        for number, file in enumerate(self._data_files(new, schema)):
            self._progress(number, new.num_rows, "data files read")
            self._seen.add(file.location)
            yield from guarded(self._of_file(file, schema, view), file.location)
        self._progress(new.num_rows, new.num_rows, "data files read")
        yield from self._equality_deletes(view)
        heads = {self._metadata.current_snapshot_id, *(ref.snapshot_id for ref in self._metadata.refs.values())}
        if view.is_whole and view.snapshot.snapshot_id in heads and view.snapshot.first_row_id is not None:
            yield from guarded(self._row_ids(view, schema), view.where)

    def _data_files(self, data: pa.Table, schema: Schema) -> Iterator[DataFile]:
        """The rows of an entry table as files to read; constants are the values of identity partitions."""
        specs = self._metadata.specs
        fields = [schema.by_id[id_] for id_ in identity_columns(specs) if id_ in schema.by_id]
        values = {field.id: identity_values(data, specs, field) for field in fields}
        for number, row in enumerate(data.select(_FILE).to_pylist()):
            yield DataFile(
                entry=data.slice(number, 1),
                location=row["location"],
                file_format=row["file_format"],
                lineage=Lineage(
                    first_row_id=row["first_row_id"],
                    sequence_number=row["sequence_number"],
                    spec_id=row["partition_spec_id"],
                ),
                constants={id_: one.values[number] for id_, one in values.items() if one.known[number].as_py()},
            )

    def _of_file(self, file: DataFile, schema: Schema, view: View) -> Iterator[Finding]:
        with_ids = file.lineage.first_row_id is not None
        wanted = Schema(fields=(*schema.fields, *LINEAGE)) if with_ids else schema
        checks = FileChecks(file.entry, schema, self._metadata)
        self.files_read += 1
        try:
            for batch in self._batches(file, wanted, schema):
                self.rows_read += batch.num_rows
                checks.add(batch)
                if with_ids:
                    yield from self._lineage(batch, file.location, view.snapshot.sequence_number)
        except IcefloeError as error:
            self._unreadable.add(file.location)
            yield finding(rule=Rule.READABLE, location=file.location, message=str(error))
            return
        yield from checks.findings()

    def _batches(self, file: DataFile, wanted: Schema, schema: Schema, **options: object) -> Iterator[pa.RecordBatch]:
        mapping = assumed_mapping(schema) if self._mapping is None else self._mapping
        return read_file(
            self._store.io,
            file.location,
            file_format=file.file_format,
            schema=wanted,
            table_schema=schema,
            constants=file.constants,
            lineage=file.lineage,
            mapping=mapping,
            batch_rows=_BATCH_ROWS,
            **options,  # type: ignore[arg-type]
        )

    def _lineage(self, batch: pa.RecordBatch, location: str, latest: int) -> Iterator[Finding]:
        """Row ids and sequence numbers that rows store are those of earlier rows and commits."""
        for field, limit, what in (
            (ROW_ID, self._metadata.next_row_id - 1, "next-row-id"),
            (LAST_UPDATED, latest, "the snapshot's sequence number"),
        ):
            highest = pc.max(batch.column(field.name)).as_py()
            if highest is not None and highest > limit:
                message = f"a row has {field.name} {highest}, which is beyond {what}"
                yield finding(rule=Rule.ROW_IDS, location=location, message=message)

    def _row_ids(self, view: View, schema: Schema) -> Iterator[Finding]:
        """No two live rows have the same row id."""
        attached = attach_deletes(view.of(ContentType.DATA), view.of(*DELETES), self._store.context)
        deleted = self._deleted_rows(attached)
        seen = BitMap64()
        for file in self._data_files(_without(attached.data, self._unreadable), schema):
            try:
                for batch in self._batches(file, Schema(fields=(ROW_ID,)), schema, drops=deleted.of(file.location)):
                    ids = pc.drop_null(batch.column(ROW_ID.name)).to_numpy()
                    own = bitmap_of(ids)
                    repeated = seen & own
                    seen |= own
                    if len(repeated) > 0 or len(own) < len(ids):
                        one = repeated.min() if len(repeated) > 0 else int(_repeated(ids))
                        message = f"row id {one} of {file.location} is that of another live row"
                        yield finding(rule=Rule.ROW_IDS, location=view.where, message=message)
            except IcefloeError as error:
                yield finding(rule=Rule.READABLE, location=file.location, message=str(error))

    def _deleted_rows(self, attached: Attached) -> DeletedRows:
        return DeletedRows(
            self._store.io,
            attached.data,
            attached.files,
            fields=known_fields(self._metadata),
            mapping=self._mapping,
        )

    def _equality_deletes(self, view: View) -> Iterator[Finding]:
        """Equality delete files can be read, with the columns that they compare."""
        files = _without(view.of(ContentType.EQUALITY_DELETES), self._seen)
        names = ["location", "file_format", "sequence_number", "equality_ids", "ordinal"]
        for row in files.select(names).to_pylist():
            self._seen.add(row["location"])
            ids = [] if row["equality_ids"] is None else row["equality_ids"]
            file = DeleteFile(**{name: row[name] for name in names[:3]})
            try:
                read_index(self._store.io, [file], ids, fields=known_fields(self._metadata), mapping=self._mapping)
            except IcefloeError as error:
                yield finding(rule=Rule.EQUALITY_DELETES, location=view.where, row=row["ordinal"], message=str(error))


def _without(files: pa.Table, seen: set[str]) -> pa.Table:
    return files.filter(pc.invert(pc.is_in(files["location"], value_set=pa.array(seen, pa.string()))))


def _repeated(ids: npt.NDArray[np.int64]) -> int:
    values, counts = np.unique(ids, return_counts=True)
    return int(values[counts > 1][0])
