"""The frame of Avro object container files: header and blocks, read by ranges (Avro specification, Object Container
Files).

Each block starts with its numbers of records and bytes, so blocks can be listed without reading their data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from icefloe.errors import CorruptFile, LimitError
from icefloe.limits import MIB

MAGIC = b"Obj\x01"
SYNC_BYTES = 16
_MAX_VARINT_BYTES = 10
HEADER_BYTES = 64 * 1024  # most headers are smaller
_MAX_HEADER_BYTES = 64 * MIB

Fetch: TypeAlias = Callable[[int, int], bytes]  # offset and length; fewer bytes at the end of the file


class Cursor:
    """A position in some bytes; reading past the end is an EOFError."""

    def __init__(self, data: bytes, position: int = 0) -> None:
        self._data = data
        self.position = position

    @property
    def at_end(self) -> bool:
        """Whether every byte has been read."""
        return self.position == len(self._data)

    def take(self, count: int) -> bytes:
        """Reads the next ``count`` bytes; EOFError if fewer are left."""
        end = self.position + count
        if count < 0 or end > len(self._data):
            raise EOFError(f"the file ends inside {count} bytes at offset {self.position}")
        chunk = self._data[self.position : end]
        self.position = end
        return chunk

    def long(self) -> int:
        """The next zigzag number; EOFError where the bytes end, ValueError where there is none."""
        number = shift = 0
        read = self._data[self.position : self.position + _MAX_VARINT_BYTES]
        for byte in read:
            self.position += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (number >> 1) ^ -(number & 1)
            shift += 7
        if len(read) < _MAX_VARINT_BYTES:
            raise EOFError(f"no number at offset {self.position}")
        raise ValueError(f"no number at offset {self.position}")

    def metadata(self) -> dict[str, bytes]:
        """Reads the next map of strings to bytes."""
        entries: dict[str, bytes] = {}
        while (count := self.long()) != 0:
            if count < 0:
                self.long()  # the size of the block in bytes, which lets readers skip it
            for _ in range(abs(count)):
                key = self.take(self.long()).decode()
                entries[key] = self.take(self.long())
        return entries


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The header of a file: the schema of its records, the codec of its blocks, and the marker that ends each."""

    schema: object
    metadata: Mapping[str, bytes]
    codec: str
    sync: bytes
    size: int  # of the header: where the first block begins


@dataclass(frozen=True, slots=True)
class BlockPlace:
    """The byte range of a block's data, and its number of records."""

    offset: int
    size: int
    count: int


def read_header(fetch: Fetch, size: int, where: str) -> Header:
    """The header of a file of a size."""
    length = HEADER_BYTES
    while True:
        data = fetch(0, min(length, size))
        if not data.startswith(MAGIC):
            raise CorruptFile(f"{where}: not an Avro file", location=where)
        try:
            return _header(Cursor(data, len(MAGIC)), where)
        except EOFError as error:
            if length >= size:
                raise CorruptFile(f"{where}: the header of the Avro file is cut short", location=where) from error
            if length >= _MAX_HEADER_BYTES:
                raise LimitError(f"{where}: the header of the Avro file is too long", location=where) from error
        length *= 16


def _header(cursor: Cursor, where: str) -> Header:
    try:
        metadata = cursor.metadata()
        sync = cursor.take(SYNC_BYTES)
        schema = msgspec.json.decode(metadata["avro.schema"])
        codec = metadata.get("avro.codec", b"null").decode()
    except EOFError:
        raise
    except (ValueError, KeyError, msgspec.MsgspecError, RecursionError) as error:
        raise CorruptFile(
            f"{where}: the header of the Avro file is not readable: {error!r:.200}", location=where
        ) from error
    return Header(schema=schema, metadata=metadata, codec=codec, sync=sync, size=cursor.position)


def find_blocks(fetch: Fetch, header: Header, size: int, where: str) -> list[BlockPlace]:
    """Lists the blocks of a file except empty ones. CorruptFile if a block does not end with the sync marker."""
    blocks: list[BlockPlace] = []
    offset, most = header.size, 2 * _MAX_VARINT_BYTES
    data = fetch(offset, min(most, size - offset))
    while offset < size:
        cursor = Cursor(data)
        try:
            count, length = cursor.long(), cursor.long()
        except (ValueError, EOFError) as error:
            raise CorruptFile(f"{where}: no block at offset {offset}: {error}", location=where) from error
        begin = offset + cursor.position
        if count < 0 or length < 0 or begin + length + SYNC_BYTES > size:
            message = f"{where}: a block of {count} records and {length} bytes at offset {offset} of {size}"
            raise CorruptFile(message, location=where)
        offset = begin + length + SYNC_BYTES
        after = fetch(begin + length, min(SYNC_BYTES + most, size - begin - length))  # and the next block header
        if after[:SYNC_BYTES] != header.sync:
            raise CorruptFile(f"{where}: the block at offset {begin} does not end with the sync marker", location=where)
        data = after[SYNC_BYTES:]
        if count > 0:
            blocks.append(BlockPlace(begin, length, count))
    return blocks
