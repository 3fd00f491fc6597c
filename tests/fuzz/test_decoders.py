"""Every decoder of bytes from storage, fed mutated files: typed errors or a result, nothing else."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

from fuzz.harness import INPUTS, fuzz
from icefloe.codecs.avro import container as avro_container
from icefloe.codecs.avro.container import read_container
from icefloe.codecs.avro.encode import encode_metadata, number
from icefloe.codecs.json.table_metadata import decode_metadata
from icefloe.codecs.json.table_metadata import encode_metadata as encode_table_metadata
from icefloe.codecs.manifest.manifests import decode_leaf, decode_root, encode_leaf, encode_root
from icefloe.codecs.parquet.pages import Copied, ParquetTail, decode_page_bounds, decode_pages
from icefloe.codecs.puffin.deletion_vector import MAGIC, decode_dv, encode_dv
from icefloe.codecs.puffin.puffin_file import Blob, decode_puffin_footer, encode_puffin
from icefloe.limits import MIB, Limits
from icefloe.model.entries import ContentType
from support.manifests.random_entries import data_dv, equality_delete, manifest, mixed_manifest
from support.manifests.sample import column_stats, context, data_file, metadata, mixed_partition, table
from unit.codecs.test_manifest_parquet_v3 import parquet, stored

TIGHT = Limits(manifest_bytes=4 * MIB, manifest_entries=10_000, puffin_footer_bytes=MIB, deletion_vector_bytes=4 * MIB)
V2, V3, V4 = (context(version, limits=TIGHT) for version in (2, 3, 4))
FILES = [
    data_file(n, **mixed_partition(), **column_stats("id", n, n), **column_stats("name", "a", "b")) for n in range(3)
]
LEAVES = [
    encode_leaf(table(FILES), context(version), content=ContentType.DATA_MANIFEST, spec_id=1) for version in (1, 2, 3)
]
DELETES = encode_leaf(table([equality_delete(1), data_dv(2)]), V3, content=ContentType.DELETE_MANIFEST, spec_id=0)
LISTS = [
    encode_root(table([mixed_manifest(1), manifest(2)]), at, snapshot_id=7, parent_id=6, sequence_number=5)
    for at in (V2, V3)
]
POSITIONS = BitMap64([1, 5, *range(100, 200), 70_000, 2**40])
VECTOR = encode_dv(POSITIONS)


def puffin_of_others() -> bytes:
    """A Puffin file with an LZ4 footer, which others may write and this library does not."""
    file, places = encode_puffin(BLOBS, "fuzz")
    end = places[-1].offset + places[-1].length
    payload = pa.compress(file[end + 4 : -12], "lz4", asbytes=True)
    return file[: end + 4] + payload + struct.pack("<iI4s", len(payload), 1, file[:4])


BLOBS = [
    Blob(type="note", data=b"hello" * 9, compression_codec=codec, properties={"a": "b"}) for codec in (None, "zstd")
]
PUFFINS = [encode_puffin(BLOBS, "fuzz")[0], puffin_of_others()]
SYNC = bytes(range(16))


@contextmanager
def reading_together() -> Iterator[None]:
    """Few records are read together too."""
    before = avro_container.FEWEST_RECORDS
    avro_container.FEWEST_RECORDS = 1
    try:
        yield
    finally:
        avro_container.FEWEST_RECORDS = before


def leaf(data: bytes, *, content: ContentType = ContentType.DATA_MANIFEST) -> None:
    decode_leaf(data, V3, where="m", content=content).validate(full=True)


def root(data: bytes) -> None:
    decode_root(data, V3, where="l").validate(full=True)


def payload_of(file: bytes) -> bytes:
    (block,) = read_container(file, where="m", limits=TIGHT).blocks
    return block.data


def around(file: bytes) -> Callable[[bytes], bytes]:
    """The file with another payload, not compressed, so that changes reach the records."""
    container = read_container(file, where="m", limits=TIGHT)
    keys = {key: value.encode() for key, value in container.metadata.items()}
    header = {"avro.schema": json.dumps(container.schema).encode(), "avro.codec": b"null", **keys}
    begin = b"Obj\x01" + encode_metadata(header) + SYNC + number(container.count)
    return lambda payload: b"".join((begin, number(len(payload)), payload, SYNC))


def schema_of(file: bytes) -> bytes:
    return json.dumps(read_container(file, where="m", limits=TIGHT).schema).encode()


def with_schema(file: bytes) -> Callable[[bytes], bytes]:
    container = read_container(file, where="m", limits=TIGHT)
    keys = {key: value.encode() for key, value in container.metadata.items()}
    payload = b"".join(block.data for block in container.blocks)
    end = SYNC + number(container.count) + number(len(payload)) + payload + SYNC
    return lambda text: b"Obj\x01" + encode_metadata({"avro.schema": text, "avro.codec": b"null", **keys}) + end


@pytest.mark.parametrize("together", [False, True])
def test_damaged_avro_manifests_are_read_or_refused(together: bool) -> None:
    if not together:
        fuzz(LEAVES, leaf)
        return
    with reading_together():
        fuzz(LEAVES, leaf)


@pytest.mark.slow
@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("file", [LEAVES[2], DELETES], ids=["data", "deletes"])
def test_damaged_records_of_avro_manifests_are_read_or_refused(file: bytes, together: bool) -> None:
    def decode(data: bytes) -> None:
        leaf(data, content=ContentType.DELETE_MANIFEST if file is DELETES else ContentType.DATA_MANIFEST)

    if not together:
        assert fuzz([payload_of(file)], decode, wrap=around(file))["read"] > 0
        return
    with reading_together():
        assert fuzz([payload_of(file)], decode, wrap=around(file))["read"] > 0


def test_damaged_schemas_of_avro_manifests_are_read_or_refused() -> None:
    with reading_together():
        fuzz([schema_of(LEAVES[2])], leaf, wrap=with_schema(LEAVES[2]))


def test_damaged_manifest_lists_are_read_or_refused() -> None:
    fuzz(LISTS, root)


@pytest.mark.slow
@pytest.mark.parametrize("together", [False, True])
def test_damaged_records_of_manifest_lists_are_read_or_refused(together: bool) -> None:
    if not together:
        fuzz([payload_of(LISTS[1])], root, wrap=around(LISTS[1]))
        return
    with reading_together():
        fuzz([payload_of(LISTS[1])], root, wrap=around(LISTS[1]))


def unchecked(data: bytes) -> bytes:
    """A Parquet file again without checksums of its pages, so that changes reach the values."""
    sink, file = pa.BufferOutputStream(), pq.read_table(pa.BufferReader(data))
    keys = pq.read_metadata(pa.BufferReader(data)).metadata
    with pq.ParquetWriter(sink, file.schema, compression="none", use_dictionary=False, store_schema=False) as writer:
        writer.write_table(file)
        writer.add_key_value_metadata({k.decode(): v.decode() for k, v in keys.items() if k != b"ARROW:schema"})
    return bytes(sink.getvalue())


def test_damaged_version_4_manifests_are_read_or_refused() -> None:
    whole = encode_leaf(table(FILES), V4, content=ContentType.DATA_MANIFEST, spec_id=1)
    fuzz(
        [whole, unchecked(whole)],
        lambda data: decode_leaf(data, V4, where="m", content=ContentType.DATA_MANIFEST).validate(full=True),
    )


def test_damaged_parquet_manifests_with_version_3_entries_are_read_or_refused() -> None:
    whole = parquet([stored(n) for n in range(2)])
    fuzz(
        [whole, unchecked(whole)],
        lambda data: decode_leaf(data, V4, where="m", content=ContentType.DATA_MANIFEST).validate(full=True),
    )


def test_damaged_deletion_vectors_are_read_or_refused() -> None:
    fuzz([VECTOR], lambda data: decode_dv(data, where="v", cardinality=None, limits=TIGHT))


def test_damaged_bitmaps_in_a_right_frame_are_read_or_refused() -> None:
    def framed(vector: bytes) -> bytes:
        body = MAGIC + vector
        return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))

    fuzz([VECTOR[8:-4]], lambda data: decode_dv(data, where="v", cardinality=None, limits=TIGHT), wrap=framed)


def test_damaged_puffin_files_are_read_or_refused() -> None:
    fuzz(PUFFINS, lambda data: decode_puffin_footer(data, where="p", limits=TIGHT))


def test_damaged_table_metadata_are_read_or_refused() -> None:
    seeds = [encode_table_metadata(metadata(version)) for version in (1, 2, 3, 4)]
    fuzz(seeds, lambda data: list(decode_metadata(data, where="t").snapshots))


def footer_and_indexes() -> tuple[bytes, bytes, bytes]:
    """Of a Parquet file: its footer, the places of the pages of its first column, and their bounds."""
    sink, numbers = pa.BufferOutputStream(), pa.table({"n": range(3_000), "s": ["a", None, "b"] * 1_000})
    pq.write_table(numbers, sink, data_page_size=500, write_batch_size=50, write_page_index=True)
    data = bytes(sink.getvalue())
    footer = data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
    pages, bounds = ParquetTail(footer).pages_at(0, 0), ParquetTail(footer).bounds_at(0, 0)
    assert pages is not None
    assert bounds is not None
    return footer, data[slice(*pages)], data[slice(*bounds)]


def test_damaged_footers_and_indexes_of_pages_are_read_or_refused() -> None:
    footer, pages, bounds = footer_and_indexes()

    def tail(data: bytes) -> None:
        found = ParquetTail(data)
        place = found.pages_at(0, 1), found.bounds_at(0, 1), found.stored(0, 1), found.dictionary(0, 1, 900)
        assert len(place) == 4
        copied = Copied(start=4, dictionary=10, size=90, values=5)
        assert len(found.footer_of(0, [(5, {1: copied})])) > 8

    fuzz([footer], tail)
    fuzz([pages], lambda data: decode_pages(data, rows=3_000, within=(0, 100_000)))
    fuzz([bounds], lambda data: decode_page_bounds(data, pages=60))


def test_the_number_of_inputs_can_be_chosen() -> None:
    assert sum(fuzz([VECTOR], lambda data: decode_dv(data, where="v", cardinality=None), inputs=7).values()) == 7
    assert INPUTS > 0
