"""Decodes the protocol buffer messages in ORC footers, and the blocks in which they are compressed."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from icefloe.codecs.varint import read_varint
from icefloe.errors import CorruptFile, LimitError, UnsupportedError, damaged

_NONE, _ZLIB = 0, 1
_ARROW_CODECS = {2: "snappy", 4: "lz4_raw", 5: "zstd"}
_LARGEST_BLOCK = 2**23
_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5

Message = dict[int, list[Any]]  # the values of each field: ints, or bytes


def message_of(data: int | bytes) -> Message:
    """The fields of a message; a number where a message should be is an error."""
    if isinstance(data, int):
        raise CorruptFile("a message in the ORC file is only a number")
    fields: Message = {}
    for number, value in _values(data):
        fields.setdefault(number, []).append(value)
    return fields


def _values(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at, "ORC")
        kind = tag & 7
        if kind == _VARINT:
            value, at = read_varint(data, at, "ORC")
            yield tag >> 3, value
            continue
        if kind == _BYTES:
            length, at = read_varint(data, at, "ORC")
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
            length = 8 if kind == _EIGHT_BYTES else 4
        else:
            raise CorruptFile(f"a message in the ORC file has a field of kind {kind}")
        if at + length > len(data):
            raise CorruptFile("a message in the ORC file is cut short")
        yield tag >> 3, data[at : at + length]
        at += length


def number_of(message: Message, number: int) -> int:
    """The number of a field, 0 if it is missing."""
    value = message.get(number, (0,))[-1]
    if not isinstance(value, int):
        raise CorruptFile(f"field {number} of a message in the ORC file is no number")
    return value


def bytes_of(message: Message, number: int) -> bytes:
    """The bytes of a field that is present; CorruptFile if it is a number."""
    value = message[number][-1]
    if not isinstance(value, bytes):
        raise CorruptFile(f"field {number} of a message in the ORC file is only a number")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """How the messages of a file are compressed: in blocks, each with a header of three bytes."""

    codec: int
    block: int
    limit: int

    def plain(self, data: bytes) -> bytes:
        """The bytes as they were before compression."""
        if self.codec == _NONE:
            return data
        if self.block > _LARGEST_BLOCK:
            raise LimitError(f"an ORC file with compression blocks of {self.block} bytes")
        parts, at, total = [], 0, 0
        while at < len(data):
            header = int.from_bytes(data[at : at + 3], "little")
            chunk = data[at + 3 : at + 3 + (header >> 1)]
            parts.append(chunk if header & 1 == 1 else self._checked(chunk))
            at += 3 + (header >> 1)
            total += len(parts[-1])
            if total > self.limit:
                raise LimitError(f"the end of the ORC file is larger than {self.limit} bytes")
        return b"".join(parts)

    def _checked(self, chunk: bytes) -> bytes:
        try:
            return self._block(chunk)
        except OSError as error:  # raised by Arrow for damaged bytes
            raise damaged(error, f"a compressed block in the ORC file is damaged: {error}") from error

    def _block(self, chunk: bytes) -> bytes:
        if self.codec == _ZLIB:
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(chunk, self.block)
        name = _ARROW_CODECS.get(self.codec)
        if name is None:
            raise UnsupportedError(f"ORC files with compression {self.codec} cannot be read")
        if name == "zstd":
            return bytes(pa.CompressedInputStream(pa.BufferReader(chunk), name).read(self.block))
        if name == "snappy":
            size, _ = read_varint(chunk, 0, "ORC")
            return bytes(pa.decompress(chunk, decompressed_size=min(size, self.block), codec=name, asbytes=True))
        return _lz4(chunk, self.block)


def _lz4(chunk: bytes, block: int) -> bytes:
    """An LZ4 block: Arrow needs its decompressed length, which is not stored."""
    out = bytearray()
    at = 0
    while True:
        token = chunk[at]
        count, at = _lz4_length(chunk, at + 1, token >> 4)
        out += chunk[at : at + count]
        at += count
        if at >= len(chunk):
            return bytes(out)
        back = int.from_bytes(chunk[at : at + 2], "little")
        count, at = _lz4_length(chunk, at + 2, token & 15)
        if back == 0 or back > len(out) or len(out) + count > block:
            raise CorruptFile("a block of LZ4 in an ORC file is damaged")
        start, count = len(out) - back, count + 4
        while count > 0:  # what is copied may overlap what it is copied to
            part = out[start : start + count]
            out += part
            count -= len(part)


def _lz4_length(chunk: bytes, at: int, length: int) -> tuple[int, int]:
    if length < 15:
        return length, at
    while True:
        length += chunk[at]
        at += 1
        if chunk[at - 1] < 255:
            return length, at
