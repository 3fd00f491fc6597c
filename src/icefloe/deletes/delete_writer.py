"""Writes delete files of any format, one after the other (spec: Delete Formats).

Delete files are written like data files. A property ``write.delete.<format>.*`` overrides ``write.<format>.*``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from types import TracebackType

import pyarrow as pa

from icefloe.errors import StorageError
from icefloe.formats.write.entries import WrittenFile
from icefloe.formats.write.layout import layout
from icefloe.formats.write.writers import DataWriter, check_format, open_writer
from icefloe.io.file_io import FileIO
from icefloe.model.metadata.properties import DELETE_FORMAT, DELETE_TARGET_FILE_SIZE, FILE_FORMAT, TARGET_FILE_SIZE
from icefloe.model.schema.schema import Schema

_DELETE_PREFIX = "write.delete."
_PREFIX = "write."
_FORMATS = ("parquet", "orc", "avro")
_BLOOM = ("write.parquet.bloom-filter-", "write.orc.bloom.filter.")


def delete_format(properties: Mapping[str, str]) -> str:
    """The format of new delete files, by default that of data files.

    >>> delete_format({"write.format.default": "orc"}), delete_format({"write.delete.format.default": "AVRO"})
    ('orc', 'avro')
    """
    own = DELETE_FORMAT.of(properties).lower()
    return FILE_FORMAT.of(properties).lower() if own == "" else own


def delete_properties(properties: Mapping[str, str]) -> Mapping[str, str]:
    """The properties for writing delete files, without bloom filters, as their columns are not those of the table.

    >>> delete_properties({"write.parquet.compression-codec": "gzip"})["write.parquet.compression-codec"]
    'gzip'
    """
    shared = {name: value for name, value in properties.items() if not name.startswith(_BLOOM)}
    own = {
        _PREFIX + name.removeprefix(_DELETE_PREFIX): value
        for name, value in properties.items()
        if name.startswith(tuple(f"{_DELETE_PREFIX}{kind}." for kind in _FORMATS))
    }
    return {**shared, **own, TARGET_FILE_SIZE.name: str(DELETE_TARGET_FILE_SIZE.of(properties))}


class DeleteWriter:
    """Writes delete files of one schema. If the ``with`` block ends with an error, the files are deleted."""

    def __init__(
        self, io: FileIO, schema: Schema, *, data_location: str, properties: Mapping[str, str], run: str
    ) -> None:
        self.written: list[WrittenFile] = []
        self._io = io
        self._format = delete_format(properties)
        check_format(self._format)
        self._layout = layout(schema, delete_properties(properties))
        self._prefix = f"{data_location.rstrip('/')}/{run}"
        self._begun: list[str] = []
        self._open: DataWriter | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Write rows with the schema; a file that has reached its target size is finished."""
        if self._open is None:
            location = f"{self._prefix}-deletes-{len(self._begun):05d}.{self._format}"
            self._begun.append(location)
            self._open = open_writer(self._io, location, self._format, self._layout)
        self._open.add(batch, {})
        if self._open.is_full:
            self.end()

    def end(self) -> None:
        """Finish the open file; the next rows are written to a new one."""
        if self._open is not None:
            self.written.append(self._open.close())
            self._open = None

    def finish(self) -> list[WrittenFile]:
        """All files; they are durable on return."""
        self.end()
        self._io.sync([file.location for file in self.written])
        return self.written

    def __enter__(self) -> DeleteWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            return
        if self._open is not None:
            self._open.abandon()
        with contextlib.suppress(StorageError):
            self._io.delete(self._begun)
