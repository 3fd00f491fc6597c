"""Writers of data files, one for each file format (spec: Appendix A)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import pyarrow as pa

from icefloe.errors import UnsupportedError
from icefloe.formats.avro.writer import AVRO, AvroWriter
from icefloe.formats.orc.writer import ORC, OrcWriter
from icefloe.formats.parquet.stats import PARQUET
from icefloe.formats.parquet.writer import ParquetWriter
from icefloe.formats.write.entries import WrittenFile
from icefloe.formats.write.layout import Layout
from icefloe.io.file_io import FileIO


class DataWriter(Protocol):
    """An open file: rows may be buffered before they are written."""

    location: str
    pending_bytes: int  # of buffered rows
    written_bytes: int  # of the file so far

    @property
    def is_full(self) -> bool:
        """Whether the file has reached its target size."""
        ...

    def takes(self, nans: Mapping[int, int]) -> bool:
        """Whether rows with these NaNs may go into this file."""
        ...

    def add(self, batch: pa.RecordBatch, nans: Mapping[int, int]) -> None:
        """Take rows that have the layout's schema, and this many NaNs by field id."""
        ...

    def flush(self) -> None:
        """Write the buffered rows."""
        ...

    def close(self) -> WrittenFile:
        """Finish the file; it is not durable before ``FileIO.sync``."""
        ...

    def abandon(self) -> None:
        """Close the file without finishing it; the caller deletes it."""
        ...


_WRITERS: Mapping[str, Callable[[FileIO, str, Layout, tuple[object, ...]], DataWriter]] = {
    PARQUET: ParquetWriter,
    AVRO: AvroWriter,
    ORC: OrcWriter,
}


def open_writer(
    io: FileIO, location: str, file_format: str, layout: Layout, partition: tuple[object, ...] = ()
) -> DataWriter:
    """Begin a file of a format."""
    check_format(file_format)
    return _WRITERS[file_format](io, location, layout, partition)


def check_format(file_format: str) -> None:
    """Refuse a format that has no writer."""
    if file_format not in _WRITERS:
        known = ", ".join(_WRITERS)
        raise UnsupportedError(f"data files of format {file_format!r} are not written; written are {known}")
