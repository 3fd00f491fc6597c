"""Avro object container files: header, blocks and codecs (Avro specification, Object Container Files).

The frame is read here, so that sizes are checked before anything is decompressed or decoded. Records are read without
logical types: dates stay numbers, decimals and uuids stay bytes. Many are read together, few in order by fastavro.
"""

from __future__ import annotations

import hashlib
import io
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import fastavro
import msgspec
import numpy as np
import pyarrow as pa

from icefloe.codecs.avro_decode import FEWEST_RECORDS, decode_together
from icefloe.codecs.avro_encode import encode_metadata, encode_records, number
from icefloe.codecs.avro_lanes import PADDING
from icefloe.codecs.avro_shapes import Found, Shape, arrow_struct, joined, taken_apart
from icefloe.errors import CorruptFile, IcefloeError, LimitError, UnsupportedError
from icefloe.limits import Limits

MAGIC = b"Obj\x01"
BLOCK_BYTES = 64 * 1024
_SYNC_BYTES = 16
_LEVEL = 2  # of deflate: the next ones take far more time and hardly less room
_INFLATED_PER_LIMIT = 4  # blocks may inflate to this many times the limit on stored bytes
_MAX_VARINT_BYTES = 10
_ZERO = b"\x00"
_GROUP_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Block:
    """Some records, decompressed."""

    count: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """An opened file: the schema it was written with, its key-value metadata and its blocks, not yet decoded."""

    schema: Mapping[str, Any]
    metadata: Mapping[str, str]
    blocks: tuple[Block, ...]

    @property
    def count(self) -> int:
        """How many records the file has."""
        return sum(block.count for block in self.blocks)

    def rows(self, shape: Shape) -> Found:
        """The wanted fields of all records, in file order, under the names they have in the file."""
        schema = _without_logical_types(self.schema)
        parts = [_decoded(group, schema, shape) for group in _groups(self.blocks)]
        return joined(parts, shape)


def read_container(data: bytes, *, where: str, limits: Limits) -> Container:
    """Open a file: check and decompress everything, decode nothing."""
    if len(data) > limits.manifest_bytes:
        raise LimitError(f"{where}: {len(data)} bytes, limit {limits.manifest_bytes}", location=where)
    if not data.startswith(MAGIC):
        raise CorruptFile(f"{where}: not an Avro file, it begins with {data[:4].hex()}", location=where)
    try:
        return _read(_Cursor(data, len(MAGIC)), where, limits)
    except IcefloeError:
        raise
    except Exception as error:  # whatever damaged bytes make the decoder do
        raise CorruptFile(f"{where}: not a readable Avro file: {error}", location=where) from error


def _read(cursor: _Cursor, where: str, limits: Limits) -> Container:
    header = cursor.metadata()
    sync = cursor.take(_SYNC_BYTES)
    schema = msgspec.json.decode(header.pop("avro.schema"))
    codec = header.pop("avro.codec", b"null").decode()
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise CorruptFile(f"{where}: the Avro schema is not a record", location=where)
    blocks: list[Block] = []
    total = inflated = 0
    budget = limits.manifest_bytes * _INFLATED_PER_LIMIT
    while not cursor.at_end:
        count, block = cursor.long(), cursor.take(cursor.long())
        if cursor.take(_SYNC_BYTES) != sync:
            raise CorruptFile(f"{where}: a block does not end with the sync marker", location=where)
        payload = _decompress(block, codec, budget - inflated, where)
        total, inflated = total + count, inflated + len(payload)
        if not 0 <= count <= len(payload) or total > limits.manifest_entries:
            raise LimitError(f"{where}: a block of {count} records in {len(payload)} bytes", location=where)
        if count > 0:
            blocks.append(Block(count, payload))
    text = {key: value.decode() for key, value in header.items()}
    return Container(schema=schema, metadata=text, blocks=tuple(blocks))


def _groups(blocks: tuple[Block, ...]) -> Iterator[list[Block]]:
    """Blocks to be decoded together, which bounds memory and makes small blocks large."""
    group: list[Block] = []
    size = 0
    for block in blocks:
        if len(group) > 0 and size + len(block.data) > _GROUP_BYTES:
            yield group
            group, size = [], 0
        group.append(block)
        size += len(block.data)
    if len(group) > 0:
        yield group


def _decoded(group: list[Block], schema: Any, shape: Shape) -> tuple[int, Found]:
    counts = np.array([block.count for block in group], np.int64)
    total = int(counts.sum())
    if total >= FEWEST_RECORDS:
        ends = np.cumsum([len(block.data) for block in group])
        try:
            padded = b"".join([*(block.data for block in group), PADDING])
            return total, decode_together(padded, counts, ends, schema, shape)
        except UnsupportedError:
            pass  # read in order, which also says what is wrong if something is
    parsed = fastavro.parse_schema({"type": "array", "items": schema})
    type_ = arrow_struct(shape)
    # Block by block, so that few Python objects are alive at any time.
    rows = pa.concat_arrays([pa.array(_records(block, parsed), type_) for block in group])
    return total, taken_apart(rows, shape)


def _records(block: Block, schema: Any) -> list[dict[str, Any]]:
    """A block has the form of an Avro array, so one call decodes all its records."""
    stream = io.BytesIO(number(block.count) + block.data + _ZERO)
    found: list[dict[str, Any]] = fastavro.schemaless_reader(stream, schema, None)
    if stream.read(1) != b"":
        raise ValueError("bytes are left over behind the last record")
    return found


def _without_logical_types(schema: Any) -> Any:
    match schema:
        case {"type": "array", "items": items} if _is_empty(items):
            raise ValueError("an array of nothing")  # could claim any number of items without a byte
        case dict():
            kept = ("type", "name", "fields", "items", "values", "size", "symbols", "namespace")
            return {key: _without_logical_types(schema[key]) for key in kept if key in schema}
        case list():
            return [_without_logical_types(item) for item in schema]
        case _:
            return schema


def _is_empty(items: Any) -> bool:
    """Whether items of this type may take no bytes at all."""
    match items:
        case "null":
            return True
        case {"type": "record", "fields": fields}:
            return all(_is_empty(field.get("type")) for field in fields)
        case {"type": "fixed", "size": size}:
            return bool(size == 0)
        case {"type": inner} if not isinstance(inner, str) or inner == "null":
            return _is_empty(inner)
        case _:
            return False


def _decompress(block: bytes, codec: str, budget: int, where: str) -> bytes:
    match codec:
        case "null":
            return block
        case "deflate":
            engine = zlib.decompressobj(-zlib.MAX_WBITS)
            found = engine.decompress(block, budget + 1)
            if len(found) <= budget and not engine.eof:
                raise ValueError("a deflate block is cut short")
        case "snappy":
            found = bytes(pa.Codec("snappy").decompress(block[:-4], _snappy_size(block, budget), asbytes=True))
            if zlib.crc32(found) != int.from_bytes(block[-4:], "big"):
                raise ValueError("the checksum of a block is wrong")
        case "zstandard":
            with pa.CompressedInputStream(pa.BufferReader(block), "zstd") as stream:
                found = bytes(stream.read(budget + 1))
        case _:
            raise UnsupportedError(f"{where}: Avro codec {codec!r}", location=where)
    if len(found) > budget:
        raise LimitError(f"{where}: blocks inflate beyond the limit", location=where)
    return found


def _snappy_size(block: bytes, budget: int) -> int:
    """The size before compression, with which a snappy block begins."""
    size = shift = 0
    for byte in block[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return min(size, budget + 1)


class _Cursor:
    """A position in the bytes of a file; reading past the end is an error."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self._position = position

    @property
    def at_end(self) -> bool:
        """Whether every byte has been read."""
        return self._position == len(self._data)

    def take(self, count: int) -> bytes:
        """The next bytes."""
        end = self._position + count
        if count < 0 or end > len(self._data):
            raise ValueError(f"the file ends inside {count} bytes at offset {self._position}")
        found = self._data[self._position : end]
        self._position = end
        return found

    def long(self) -> int:
        """The next zigzag number."""
        number = shift = 0
        for byte in self._data[self._position : self._position + _MAX_VARINT_BYTES]:
            self._position += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (number >> 1) ^ -(number & 1)
            shift += 7
        raise ValueError(f"no number at offset {self._position}")

    def metadata(self) -> dict[str, bytes]:
        """The next map of bytes."""
        found: dict[str, bytes] = {}
        while (count := self.long()) != 0:
            if count < 0:
                self.long()  # the size of the block in bytes, for those who skip it
            for _ in range(abs(count)):
                key = self.take(self.long()).decode()
                found[key] = self.take(self.long())
        return found


def write_container(rows: pa.StructArray, schema: Mapping[str, Any], metadata: Mapping[str, str]) -> bytes:
    """A file of these rows in deflate-compressed blocks; the same rows give the same bytes."""
    header = {"avro.schema": msgspec.json.encode(schema), "avro.codec": b"deflate"}
    header |= {key: value.encode() for key, value in metadata.items()}
    begin = MAGIC + encode_metadata(header)
    encoded = encode_records(rows, schema)
    blocks = list(_blocks(encoded))
    digest = hashlib.sha256(begin)
    for _, block in blocks:
        digest.update(block)
    sync = digest.digest()[:_SYNC_BYTES]
    parts = [begin, sync]
    for count, block in blocks:
        parts += [number(count), number(len(block)), block, sync]
    return b"".join(parts)


def _blocks(encoded: pa.Array) -> Iterator[tuple[int, bytes]]:
    """Numbers of records and their bytes, compressed, in blocks of at least BLOCK_BYTES but the last."""
    if len(encoded) == 0:
        return
    ends = np.frombuffer(encoded.buffers()[1], np.int32, len(encoded) + 1, encoded.offset * 4)
    payload = memoryview(encoded.buffers()[2])
    start = 0
    while start < len(encoded):
        stop = min(int(np.searchsorted(ends, ends[start] + BLOCK_BYTES)), len(encoded))
        engine = zlib.compressobj(_LEVEL, wbits=-zlib.MAX_WBITS)
        yield stop - start, engine.compress(payload[ends[start] : ends[stop]]) + engine.flush()
        start = stop
