"""One Parquet data file, written row group by row group (spec: Appendix A, Parquet).

Every field at every depth carries its id, lists have three levels, decimals and UUIDs have the physical and logical
types of the spec. Nothing is read back: sizes come from the stream, statistics from the footer that was just written,
and NaNs, which a footer does not count, are counted as rows pass by.

Arrow leaves NaN out of a column's bounds, but Spark holds NaN to be the greatest number and skips row groups by their
bounds: it would lose such rows. So a file that holds a NaN has no footer statistics for that column.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icefloe.errors import IcefloeError, InputError, StorageError
from icefloe.formats.parquet_stats import LeftOut, WrittenFile
from icefloe.formats.relabel import relabel
from icefloe.formats.supported import check_types
from icefloe.io.file_io import FileIO
from icefloe.model.arrow import FIELD_ID, arrow_schema, arrow_type
from icefloe.model.properties import PARQUET_COMPRESSION, PARQUET_ROW_GROUP_SIZE, TARGET_FILE_SIZE
from icefloe.model.schema import Schema, derived
from icefloe.model.types import DOUBLE, FLOAT, UUID, Field, List, Map, Struct, Type, children
from icefloe.transforms.columns import column_at, column_path

ROW_GROUP_ROWS = 1024 * 1024
_CODECS = frozenset({"zstd", "gzip", "snappy", "lz4", "brotli", "uncompressed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How the files of a table are written; ``rows`` is the schema of batches, ``stored`` that of the file."""

    rows: pa.Schema
    stored: pa.Schema
    floats: Mapping[int, tuple[str, ...]]  # the path of each column that may hold NaN, by field id
    codec: str
    row_group_bytes: int
    target_bytes: int


def layout(schema: Schema, properties: Mapping[str, str]) -> Layout:
    """The layout that a table's schema and properties ask for."""
    stored, floats = derived(schema, "parquet", _parquet_schema)
    codec = PARQUET_COMPRESSION.of(properties).lower()
    if codec not in _CODECS:
        known = ", ".join(sorted(_CODECS))
        raise InputError(f"property {PARQUET_COMPRESSION.name}: {codec!r} is none of {known}", property=codec)
    target = _positive(TARGET_FILE_SIZE.name, TARGET_FILE_SIZE.of(properties))
    group = _positive(PARQUET_ROW_GROUP_SIZE.name, PARQUET_ROW_GROUP_SIZE.of(properties))
    return Layout(
        rows=arrow_schema(schema),
        stored=stored,
        floats=floats,
        codec="none" if codec == "uncompressed" else codec,
        row_group_bytes=min(group, target),
        target_bytes=target,
    )


def _parquet_schema(schema: Schema) -> tuple[pa.Schema, Mapping[int, tuple[str, ...]]]:
    """The schema of a file, and the paths of columns that may hold NaN."""
    check_types(schema)
    floats = [field.id for field in schema.measured.values() if field.type in (FLOAT, DOUBLE)]
    stored = pa.schema([_stored(field) for field in schema.fields])
    return stored, {id_: column_path(schema, id_) for id_ in floats}


def _positive(name: str, value: int) -> int:
    if value <= 0:
        raise InputError(f"property {name}: must be positive, is {value}", property=name)
    return value


def _stored(field: Field) -> pa.Field:
    """The field as a Parquet writer needs it: like ``arrow_field``, with UUIDs marked as such."""
    metadata = {FIELD_ID: str(field.id).encode()}
    return pa.field(field.name, _stored_type(field.type), nullable=not field.required, metadata=metadata)


def _stored_type(type_: Type) -> pa.DataType:
    inner = [_stored(child) for child in children(type_)]
    match type_:
        case Struct():
            return pa.struct(inner)
        case List():
            return pa.list_(*inner)
        case Map():
            return pa.map_(*inner)
        case _:
            return pa.uuid() if type_ == UUID else arrow_type(type_)


def count_nans(batch: pa.RecordBatch, layout: Layout) -> dict[int, int]:
    """How many NaNs each floating-point column has, by field id."""
    counts = {id_: pc.sum(pc.is_nan(column_at(batch, path))).as_py() for id_, path in layout.floats.items()}
    return {id_: 0 if count is None else count for id_, count in counts.items()}


class FileWriter:
    """An open file: rows wait in memory until they fill a row group."""

    def __init__(self, io: FileIO, location: str, layout: Layout, partition: tuple[object, ...] = ()) -> None:
        self.location = location
        self.pending_bytes = 0
        self.written_bytes = 0
        self._layout = layout
        self._partition = partition
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0
        self._nan_counts = dict.fromkeys(layout.floats, 0)
        self._footers: list[Any] = []
        self._sink = _open(io, location)
        self._writer: Any = None  # begun with the first row group, when it is known which columns hold a NaN
        self._unmeasured: frozenset[int] = frozenset()  # columns without footer statistics
        self._left_out: dict[int, LeftOut] = {}  # what we measure of them instead

    def takes(self, nans: Mapping[int, int]) -> bool:
        """Whether rows with these NaNs may go into this file: not if a column is measured and turns out to hold one."""
        return self._writer is None or all(n == 0 or id_ in self._unmeasured for id_, n in nans.items())

    def add(self, batch: pa.RecordBatch, nans: Mapping[int, int]) -> None:
        """Take rows that have the layout's schema, and this many NaNs."""
        for id_, count in nans.items():
            self._nan_counts[id_] += count
        self._pending.append(batch)
        self._pending_rows += batch.num_rows
        self.pending_bytes += batch.nbytes
        if self.pending_bytes >= self._layout.row_group_bytes or self._pending_rows >= ROW_GROUP_ROWS:
            self.flush()

    @property
    def is_full(self) -> bool:
        """Whether the file has reached its target size."""
        return self.written_bytes >= self._layout.target_bytes

    def flush(self) -> None:
        """Write the waiting rows as a row group."""
        if self._pending_rows == 0:
            return
        rows = pa.Table.from_batches([relabel(batch, self._layout.stored) for batch in self._pending])
        with _storage_errors(self.location):
            if self._writer is None:
                self._begin()
            self._measure()
            self._writer.write_table(rows, row_group_size=ROW_GROUP_ROWS)
            self.written_bytes = self._sink.tell()
        self._pending, self._pending_rows, self.pending_bytes = [], 0, 0

    def _begin(self) -> None:
        self._unmeasured = frozenset(id_ for id_, count in self._nan_counts.items() if count > 0)
        self._writer = _writer(self._sink, self._layout, self._unmeasured, self._footers)

    def _measure(self) -> None:
        """Measure what the footer will leave out in the waiting rows."""
        for id_ in self._unmeasured:
            for batch in self._pending:
                column = column_at(batch, self._layout.floats[id_])
                self._left_out[id_] = _with(self._left_out.get(id_, LeftOut()), column)

    def close(self) -> WrittenFile:
        """Finish the file; it is not durable before ``FileIO.sync``."""
        self.flush()
        with _storage_errors(self.location):
            if self._writer is None:
                self._begin()
            self._writer.close()
            size = self._sink.tell()
            self._sink.close()
        (footer,) = self._footers
        return WrittenFile(
            location=self.location,
            size=size,
            footer=footer,
            partition=self._partition,
            nan_counts=self._nan_counts,
            left_out=self._left_out,
        )

    def abandon(self) -> None:
        """Let go of the file without finishing it; deleting it is the caller's part."""
        self._pending = []
        if self._writer is not None:
            with contextlib.suppress(OSError, pa.ArrowException):
                self._writer.close()
        with contextlib.suppress(OSError, pa.ArrowException):
            self._sink.close()


def _with(known: LeftOut, column: pa.Array) -> LeftOut:
    """What is known of a column after more of its values."""
    numbers = column.filter(pc.fill_null(pc.invert(pc.is_nan(column)), False))
    ends = pc.min_max(numbers)
    lows = [low for low in (known.lower, ends["min"].as_py()) if low is not None]
    highs = [high for high in (known.upper, ends["max"].as_py()) if high is not None]
    return LeftOut(nulls=known.nulls + column.null_count, lower=min(lows, default=None), upper=max(highs, default=None))


def _open(io: FileIO, location: str) -> Any:
    files, path = io.arrow_path(location)
    with _storage_errors(location):
        files.create_dir(path.rpartition("/")[0], recursive=True)
        return files.open_output_stream(path)


def _writer(sink: Any, layout: Layout, unmeasured: frozenset[int], footers: list[Any]) -> Any:
    return pq.ParquetWriter(
        sink,
        layout.stored,
        write_statistics=_measured_columns(layout, unmeasured) if len(unmeasured) > 0 else True,
        compression=layout.codec,
        store_schema=False,
        store_decimal_as_integer=True,
        use_compliant_nested_type=True,
        write_page_index=True,
        metadata_collector=footers,
    )


def _measured_columns(layout: Layout, unmeasured: frozenset[int]) -> list[str]:
    """The Parquet columns of a file, by path, but for some."""
    left_out = {".".join(layout.floats[id_]) for id_ in unmeasured}
    footer: list[Any] = []
    with pq.ParquetWriter(pa.BufferOutputStream(), layout.stored, store_schema=False, metadata_collector=footer):
        pass
    columns = [footer[0].schema.column(index).path for index in range(footer[0].num_columns)]
    return [path for path in columns if path not in left_out]


@contextlib.contextmanager
def _storage_errors(location: str) -> Any:
    try:
        yield
    except IcefloeError:  # storage of this library speaks for itself, also through Arrow
        raise
    except OSError as error:
        raise StorageError(f"cannot write {location}: {error}", location=location) from error
