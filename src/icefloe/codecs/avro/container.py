"""Avro object container files: header, blocks and codecs (Avro specification, Object Container Files).

Sizes are checked before anything is decompressed or decoded. Records are read without logical types: dates stay
numbers, decimals and uuids stay bytes. Many records are decoded together with numpy, few in order by fastavro.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import fastavro
import msgspec
import numpy as np
import pyarrow as pa

from icefloe.codecs.avro.block_index import MAGIC, SYNC_BYTES, Cursor
from icefloe.codecs.avro.compression import compressor, decompress
from icefloe.codecs.avro.encode import encode_metadata, encode_records, number
from icefloe.codecs.avro.projection import ColumnTree, Shape, arrow_struct, joined, taken_apart
from icefloe.codecs.avro.vectorized import FEWEST_RECORDS, decode_together
from icefloe.errors import CorruptFile, IcefloeError, LimitError, UnsupportedError, damaged
from icefloe.limits import Limits

BLOCK_BYTES = 64 * 1024
_LEVEL = 2  # of deflate: higher levels take much longer and save little
_INFLATED_PER_LIMIT = 4  # blocks may inflate to this many times the limit on stored bytes
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

    def rows(self, shape: Shape) -> ColumnTree:
        """The wanted fields of all records, in file order, under the names they have in the file."""
        schema = _without_logical_types(self.schema)
        parts = [_decoded(group, schema, shape) for group in _groups(self.blocks)]
        return joined(parts, shape)


def read_container(data: bytes, *, where: str, limits: Limits) -> Container:
    """Open a file: check and decompress everything, decode nothing."""
    if len(data) > limits.manifest_bytes:
        raise LimitError(f"{where}: {len(data)} bytes, limit {limits.manifest_bytes}", location=where)
    if not data.startswith(MAGIC):
        raise CorruptFile(f"{where}: not an Avro file", location=where)
    try:
        budget = limits.inflated(len(data), limits.manifest_bytes * _INFLATED_PER_LIMIT)
        return _read(Cursor(data, len(MAGIC)), where, limits, budget)
    except IcefloeError:
        raise
    except Exception as error:  # of any kind, for damaged bytes
        raise damaged(error, f"{where}: not a readable Avro file: {error}", location=where) from error


def _read(cursor: Cursor, where: str, limits: Limits, budget: int) -> Container:
    header = cursor.metadata()
    sync = cursor.take(SYNC_BYTES)
    schema = msgspec.json.decode(header.pop("avro.schema"))
    codec = header.pop("avro.codec", b"null").decode()
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise CorruptFile(f"{where}: the Avro schema is not a record", location=where)
    blocks: list[Block] = []
    total = inflated = 0
    while not cursor.at_end:
        count, block = cursor.long(), cursor.take(cursor.long())
        if cursor.take(SYNC_BYTES) != sync:
            raise CorruptFile(f"{where}: a block does not end with the sync marker", location=where)
        payload = decompress(block, codec, budget - inflated, where)
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


def _decoded(group: list[Block], schema: Any, shape: Shape) -> tuple[int, ColumnTree]:
    counts = np.array([block.count for block in group], np.int64)
    total = int(counts.sum())
    if total >= FEWEST_RECORDS:
        try:
            return total, decode_together([block.data for block in group], counts, schema, shape)
        except UnsupportedError:
            pass  # read in order, which also finds the error if there is one
    parsed = fastavro.parse_schema({"type": "array", "items": schema})
    type_ = arrow_struct(shape)
    # Block by block, so that few Python objects are alive at any time.
    rows = pa.concat_arrays([pa.array(records_of(block, parsed), type_) for block in group])
    return total, taken_apart(rows, shape)


def records_of(block: Block, schema: Any) -> list[dict[str, Any]]:
    """Decodes all records of a block with fastavro; ValueError if there are bytes after the last one.

    A block is decoded as one Avro array, so a single call reads all of its records.
    """
    stream = io.BytesIO(number(block.count) + block.data + _ZERO)
    records: list[dict[str, Any]] = fastavro.schemaless_reader(stream, schema, None)
    if stream.read(1) != b"":
        raise ValueError("there are bytes after the last record")
    return records


def _without_logical_types(schema: Any) -> Any:
    match schema:
        case {"type": "array", "items": items} if _is_empty(items):
            raise ValueError("an array of items without bytes")  # could have any number of items in no bytes
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


def write_container(
    rows: pa.StructArray,
    schema: Mapping[str, Any],
    metadata: Mapping[str, str],
    *,
    stored_schema: Mapping[str, Any] | None = None,
) -> bytes:
    """A file of these rows in deflate-compressed blocks; the same rows give the same bytes.

    ``stored_schema`` is the schema in the header, if ``schema`` is its plain form.
    """
    header_schema = schema if stored_schema is None else stored_schema
    header = {"avro.schema": msgspec.json.encode(header_schema), "avro.codec": b"deflate"}
    header |= {key: value.encode() for key, value in metadata.items()}
    begin = MAGIC + encode_metadata(header)
    encoded = encode_records(rows, schema)
    blocks = list(encoded_blocks(encoded, compressor("deflate", _LEVEL), BLOCK_BYTES))
    digest = hashlib.sha256(begin)
    for _, block in blocks:
        digest.update(block)
    sync = digest.digest()[:SYNC_BYTES]
    parts = [begin, sync]
    for count, block in blocks:
        parts += [number(count), number(len(block)), block, sync]
    return b"".join(parts)


def encoded_blocks(
    encoded: pa.Array, compress: Callable[[memoryview], bytes], block_bytes: int
) -> Iterator[tuple[int, bytes]]:
    """The number of records and the compressed bytes of each block; all but the last have at least ``block_bytes``."""
    if len(encoded) == 0:
        return
    ends = np.frombuffer(encoded.buffers()[1], np.int32, len(encoded) + 1, encoded.offset * 4)
    payload = memoryview(encoded.buffers()[2])
    start = 0
    while start < len(encoded):
        stop = min(int(np.searchsorted(ends, ends[start] + block_bytes)), len(encoded))
        yield stop - start, compress(payload[ends[start] : ends[stop]])
        start = stop
