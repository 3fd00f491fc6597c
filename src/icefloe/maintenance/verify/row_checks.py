"""Checks of data files: their rows are compared with what manifest entries say about them (spec: Manifests).

Every data file is read once, batch by batch, with its deleted rows, as entries describe all rows of a file. Row ids are
checked at the heads of branches and tags, without deleted rows: an updated row has its old row's id.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.deletes.bitmaps import bitmap_of
from icefloe.deletes.delete_index import Attached, attach_deletes
from icefloe.deletes.deleted_rows import DeletedRows
from icefloe.deletes.equality_files import DeleteFile, read_index
from icefloe.engines.engine import Engine
from icefloe.errors import IcefloeError
from icefloe.formats.parquet.pages import Checksums
from icefloe.formats.read.reader import read_file
from icefloe.maintenance.verify.data_files import DataFileChecks
from icefloe.maintenance.verify.findings import Finding, Rule, finding, guarded, problem_of
from icefloe.maintenance.verify.snapshot_checks import View
from icefloe.model.entries import DELETES, ContentType
from icefloe.model.metadata.snapshots import Snapshots
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.metadata_columns import ROW_ID
from icefloe.model.schema.name_mapping import NameMapping
from icefloe.model.schema.schema import Schema
from icefloe.progress import Progress
from icefloe.scan.plan import known_fields
from icefloe.tree.store import ManifestStore


class RowChecks:
    """Checks the rows of snapshots; a data file that several of them have is read once."""

    def __init__(self, store: ManifestStore, metadata: TableMetadata, engine: Engine, progress: Progress) -> None:
        self._store = store
        self._metadata = metadata
        self._engine = engine
        self._progress = progress
        self._seen: set[str] = set()
        self._unreadable: set[str] = set()  # reported already
        self.files_read = 0
        self.rows_read = 0
        self.rows_without_checksums = 0

    def of_snapshot(self, view: View) -> Iterator[Finding]:
        """Findings about the rows of a snapshot that were not read yet, and about its row ids if it is a head."""
        checks = DataFileChecks(
            metadata=replace(self._metadata, snapshots=Snapshots()),
            schema=self._metadata.schema_of(view.snapshot),
            sequence_number=view.snapshot.sequence_number,
        )
        new = _without(view.of(ContentType.DATA), self._seen)
        done = 0
        for report in self._engine.file_sets.work_on(checks, self._store.io, new):
            done += report.num_rows
            self._progress(done, new.num_rows, "data files read")
            yield from self._reported(report)
        yield from self._equality_deletes(view, checks)
        heads = {self._metadata.current_snapshot_id, *(ref.snapshot_id for ref in self._metadata.refs.values())}
        if view.is_whole and view.snapshot.snapshot_id in heads and view.snapshot.first_row_id is not None:
            yield from guarded(self._row_ids(view, checks), view.where)

    def _reported(self, report: pa.Table) -> Iterator[Finding]:
        """The findings of some files; counts the files and rows that were read."""
        self._seen.update(report["location"].to_pylist())
        self._unreadable.update(report["location"].filter(pc.invert(report["is_readable"])).to_pylist())
        self.files_read += report.num_rows
        self.rows_read += pc.sum(report["rows"]).as_py()
        self.rows_without_checksums += pc.sum(pc.if_else(report["has_checksums"], 0, report["rows"])).as_py()
        for found in report["findings"].to_pylist():
            yield from pickle.loads(found)

    def _row_ids(self, view: View, checks: DataFileChecks) -> Iterator[Finding]:
        """No two live rows have the same row id."""
        attached = attach_deletes(view.of(ContentType.DATA), view.of(*DELETES), self._store.context)
        deleted = self._deleted_rows(attached, checks.mapping)
        seen = BitMap64()
        for file in checks.files(_without(attached.data, self._unreadable)):
            try:
                live = replace(file, schema=Schema(fields=(ROW_ID,)), deletes=deleted.of(file.location))
                for batch in read_file(self._store.io, live):
                    ids = pc.drop_null(batch.column(ROW_ID.name)).to_numpy()
                    own = bitmap_of(ids)
                    repeated = seen & own
                    seen |= own
                    if len(repeated) > 0 or len(own) < len(ids):
                        one = repeated.min() if len(repeated) > 0 else int(_repeated(ids))
                        message = f"row id {one} of {file.location} is that of another live row"
                        yield finding(rule=Rule.ROW_IDS, location=view.where, message=message)
            except IcefloeError as error:
                yield finding(rule=Rule.READABLE, location=file.location, message=problem_of(error))

    def _deleted_rows(self, attached: Attached, mapping: NameMapping | None) -> DeletedRows:
        return DeletedRows(
            self._store.io,
            attached.data,
            attached.files,
            fields=known_fields(self._metadata),
            mapping=mapping,
        )

    def _equality_deletes(self, view: View, checks: DataFileChecks) -> Iterator[Finding]:
        """Equality delete files can be read, with the columns that they compare."""
        files = _without(view.of(ContentType.EQUALITY_DELETES), self._seen)
        names = ["location", "file_format", "sequence_number", "equality_ids", "ordinal"]
        for row in files.select(names).to_pylist():
            self._seen.add(row["location"])
            ids = [] if row["equality_ids"] is None else row["equality_ids"]
            file = DeleteFile(**{name: row[name] for name in names[:3]})
            fields, checksums = known_fields(self._metadata), Checksums()
            try:
                read_index(self._store.io, [file], ids, fields=fields, mapping=checks.mapping, checksums=checksums)
            except IcefloeError as error:
                yield finding(
                    rule=Rule.EQUALITY_DELETES, location=view.where, row=row["ordinal"], message=problem_of(error)
                )


def _without(files: pa.Table, seen: set[str]) -> pa.Table:
    return files.filter(pc.invert(pc.is_in(files["location"], value_set=pa.array(seen, pa.string()))))


def _repeated(ids: npt.NDArray[np.int64]) -> int:
    values, counts = np.unique(ids, return_counts=True)
    return int(values[counts > 1][0])
