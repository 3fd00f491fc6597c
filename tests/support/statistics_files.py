"""Reads statistics files and partition statistics files, which the library writes and never reads."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from icefloe.codecs.manifest.context import ManifestContext
from icefloe.codecs.parquet.partition_statistics import COUNTS
from icefloe.codecs.puffin.puffin_file import Blob, BlobMetadata, decode_puffin_footer
from icefloe.model.arrow.conform import FIELD_ID
from icefloe.model.entries import partition_key
from icefloe.model.metadata.statistics_files import StatisticsFile


def decode_statistics(data: bytes, entry: StatisticsFile) -> tuple[Blob, ...]:
    """The blobs of a statistics file, decompressed; the file must be as long as its entry says."""
    where = entry.statistics_path
    assert len(data) == entry.file_size_in_bytes
    return tuple(
        Blob(
            type=blob.type,
            data=read_blob(data, blob),
            fields=blob.fields,
            snapshot_id=blob.snapshot_id,
            sequence_number=blob.sequence_number,
            properties=blob.properties,
            compression_codec=blob.compression_codec,
        )
        for blob in decode_puffin_footer(data, where=where).blobs
    )


def read_blob(data: bytes, blob: BlobMetadata) -> bytes:
    """The bytes of one blob of a whole Puffin file, decompressed."""
    stored = data[blob.location.offset : blob.location.offset + blob.location.length]
    if blob.compression_codec is None:
        return stored
    return bytes(pa.CompressedInputStream(pa.BufferReader(stored), blob.compression_codec).read())


def decode_partition_statistics(data: bytes, context: ManifestContext) -> pa.Table:
    """The rows of a partition statistics file: a column for each partition field (``p1000``), then the counts."""
    table = pq.read_table(pa.BufferReader(data), page_checksum_verification=True)
    columns = dict(zip(map(_id, table.schema), table.columns, strict=True))
    if len(context.partition_types) > 0:
        members = columns.pop(1).combine_chunks()
        values = {_id(field): member for field, member in zip(members.type, members.flatten(), strict=True)}
        keys = {str(partition_key(id_)): values[id_] for id_ in sorted(context.partition_types)}
    else:
        keys = {}
    none = pa.array([0] * table.num_rows, pa.int32())  # files from before version 3 have no dv_count
    return pa.table({**keys, **{name: columns.get(id_, none) for name, (id_, _, _) in COUNTS.items()}})


def _id(field: pa.Field) -> int:
    return int(field.metadata[FIELD_ID])
