"""Delete files and Puffin files of deletion vectors, rewritten for a relocated table (spec: Delete Formats).

A position delete file contains the locations of data files. The footer of a Puffin file does too; its blobs keep their
bytes and offsets. Parquet files keep all columns, their ids and their metadata; in ORC and Avro files the columns must
be those of the specification.

The sizes of delete files are part of three keys of summaries, so these change too. Deletion vectors count with the size
of their blob, which stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icefloe.codecs.manifest.manifests import AVRO_MAGIC, PARQUET_MAGIC
from icefloe.codecs.puffin.puffin_file import MAGIC as PUFFIN_MAGIC
from icefloe.codecs.puffin.puffin_file import REFERENCED_DATA_FILE, decode_puffin_footer, with_references
from icefloe.commit.base import Base
from icefloe.deletes.delete_writer import delete_properties
from icefloe.deletes.position_files import POSITION_DELETES
from icefloe.errors import FormatError, UnsupportedError
from icefloe.formats.parquet.field_ids import field_id
from icefloe.formats.read.reader import open_file
from icefloe.formats.write.layout import layout
from icefloe.formats.write.writers import open_writer
from icefloe.io.file_io import FileIO
from icefloe.io.memory import MemoryFileIO
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.entries import ContentType, Status, concat, live, of_status, of_type
from icefloe.model.metadata.snapshots import Snapshot, SummaryKey
from icefloe.model.moved_locations import Moves
from icefloe.model.schema.metadata_columns import DELETE_FILE_PATH, DELETE_POS
from icefloe.tree.root import leaves_of, read_leaves, read_root
from icefloe.tree.store import NO_STATISTICS

PUFFIN = "puffin"
_PARQUET = "parquet"
_FORMATS = {PARQUET_MAGIC: _PARQUET, PUFFIN_MAGIC: PUFFIN, AVRO_MAGIC: "avro", b"ORC": "orc"}
_MAGIC_BYTES = 4
_ROWS = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedDeletes:
    """A rewritten delete file, with the bounds of the paths in it if it has a column of them."""

    data: bytes
    lower_path: str | None = None
    upper_path: str | None = None


def delete_format(io: FileIO, location: str, table: str) -> str:
    """The format of a file of position deletes, by its first bytes; UnsupportedError for any other."""
    magic = io.read_range(location, 0, _MAGIC_BYTES)
    known = next((name for begin, name in _FORMATS.items() if magic.startswith(begin)), None)
    if known is None:
        raise UnsupportedError(
            f"table {table}: {location} has position deletes in an unknown format."
            " Convert the deletes with t.rewrite_deletes() and expire older snapshots, then plan again",
            location=location,
        )
    return known


def moved_deletes(
    data: bytes, file_format: str, moves: Moves, *, where: str, properties: Mapping[str, str]
) -> MovedDeletes:
    """The bytes of a delete file with the new locations of data files."""
    if file_format == PUFFIN:
        return MovedDeletes(data=_moved_puffin(data, moves, where))
    if file_format == _PARQUET:
        return _moved_parquet(data, moves, where)
    return _moved_rows(data, file_format, moves, where, properties)


def _moved_puffin(data: bytes, moves: Moves, where: str) -> bytes:
    blobs = decode_puffin_footer(data, where=where).blobs
    named = [name for blob in blobs if (name := blob.properties.get(REFERENCED_DATA_FILE)) is not None]
    moved = moves.moved(pa.array(named, pa.string())).to_pylist()
    return with_references(data, dict(zip(named, moved, strict=True)), where=where)


def _moved_parquet(data: bytes, moves: Moves, where: str) -> MovedDeletes:
    file = pq.ParquetFile(pa.BufferReader(data))
    rows = file.read()
    paths, positions = (_index(rows.schema, field.id, field.name, where) for field in (DELETE_FILE_PATH, DELETE_POS))
    rows = _sorted(rows.set_column(paths, rows.schema.field(paths), moves.moved(rows.column(paths))), paths, positions)
    codec = file.metadata.row_group(0).column(0).compression if file.metadata.num_row_groups > 0 else "ZSTD"
    sink = pa.BufferOutputStream()
    compression = "none" if codec == "UNCOMPRESSED" else codec
    pq.write_table(rows, sink, compression=compression, store_schema=False, write_page_checksum=True)
    return _bounded(sink.getvalue().to_pybytes(), rows.column(paths))


def _index(schema: pa.Schema, id_: int, name: str, where: str) -> int:
    for index, stored in enumerate(schema):
        if field_id(stored) == id_ or (field_id(stored) is None and stored.name == name):
            return index
    raise FormatError(f"{where}: a position delete file lacks column {name!r}", location=where)


def _moved_rows(data: bytes, file_format: str, moves: Moves, where: str, properties: Mapping[str, str]) -> MovedDeletes:
    """An ORC or Avro file, read and written in memory by the usual reader and writer."""
    io, source, target = MemoryFileIO(), f"memory://deletes/old.{file_format}", f"memory://deletes/new.{file_format}"
    io.write_new(source, data)
    with open_file(io, source, file_format) as file:
        if set(file.ids) != {DELETE_FILE_PATH.id, DELETE_POS.id}:
            raise UnsupportedError(
                f"{where}: a position delete file in {file_format} with columns {file.schema.names} is not rewritten."
                " Convert the deletes with t.rewrite_deletes() and expire older snapshots, then plan again",
                location=where,
            )
        names = [name for field in POSITION_DELETES.fields for name in _named(file.schema, field.id)]
        batches = [b for group in file.row_groups for b in file.read(group, POSITION_DELETES.fields, _ROWS)]
    stored = pa.Table.from_batches(batches).select(names)
    schema = arrow_schema(POSITION_DELETES)
    columns = [moves.moved(stored.column(0).cast(pa.string())), stored.column(1).cast(pa.int64())]
    rows = _sorted(pa.Table.from_arrays(columns, schema=schema), 0, 1)
    writer = open_writer(io, target, file_format, layout(POSITION_DELETES, delete_properties(properties)))
    for batch in rows.to_batches():
        writer.add(batch, {})
    writer.close()
    return _bounded(io.read(target), rows.column(0))


def _named(schema: pa.Schema, id_: int) -> list[str]:
    return [stored.name for stored in schema if field_id(stored) == id_]


def _sorted(rows: pa.Table, paths: int, positions: int) -> pa.Table:
    """The rows by path and position, as they are already unless the files had several spellings or folders."""
    texts = rows.column(paths).combine_chunks()
    if pc.all(pc.less_equal(texts[:-1], texts[1:])).as_py() is not False:
        return rows
    names = rows.column_names
    return rows.sort_by([(names[paths], "ascending"), (names[positions], "ascending")])


def _bounded(data: bytes, paths: pa.ChunkedArray) -> MovedDeletes:
    ends = pc.min_max(paths).as_py()
    return MovedDeletes(data=data, lower_path=ends["min"], upper_path=ends["max"])


def with_new_sizes(base: Base, snapshot: Snapshot, moves: Moves) -> Mapping[str, str]:
    """The summary of a snapshot, with the sizes that its delete files have now; keys that it lacks stay absent."""
    sizes = {SummaryKey.TOTAL_FILES_SIZE, SummaryKey.ADDED_FILES_SIZE, SummaryKey.REMOVED_FILES_SIZE}
    if sizes.isdisjoint(snapshot.summary):
        return snapshot.summary
    rows = _position_files(base, snapshot)
    old = rows["file_size_in_bytes"]
    growth = pc.fill_null(pc.subtract(moves.sizes(rows["location"], old), old), 0)
    own = pc.equal(rows["snapshot_id"], snapshot.snapshot_id)
    masks = {
        SummaryKey.TOTAL_FILES_SIZE: live(rows),
        SummaryKey.ADDED_FILES_SIZE: pc.and_(own, of_status(rows, Status.ADDED)),
        SummaryKey.REMOVED_FILES_SIZE: pc.and_(own, of_status(rows, Status.DELETED)),
    }
    changes = {key: int(pc.sum(growth.filter(mask), min_count=0).as_py()) for key, mask in masks.items()}
    return {
        key: _added(value, changes.get(SummaryKey(key), 0)) if key in sizes else value
        for key, value in snapshot.summary.items()
    }


def _added(recorded: str, change: int) -> str:
    return str(int(recorded) + change) if change != 0 and recorded.isdecimal() else recorded


def _position_files(base: Base, snapshot: Snapshot) -> pa.Table:
    """The entries of position delete files, of any status; deletion vectors are not among them."""
    root = read_root(base.store, snapshot)
    leaves = list(leaves_of(root.rows(ContentType.DELETE_MANIFEST)))
    rows = concat([root.entries, *read_leaves(base.store, leaves, NO_STATISTICS)])
    return rows.filter(pc.and_(of_type(rows, ContentType.POSITION_DELETES), pc.is_null(rows["dv_offset"])))
