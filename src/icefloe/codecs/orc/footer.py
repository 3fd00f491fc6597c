"""ORC footers: the stripes of a file and their statistics (spec: Appendix A, ORC).

Arrow reads the rows of ORC files but reports neither the row count of a stripe nor its statistics. Both are in the last
bytes of the file, as protocol buffers. Few of their messages are needed, so they are decoded here.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from icefloe.codecs.varint import read_varint
from icefloe.errors import CorruptFile, LimitError, UnsupportedError
from icefloe.limits import DEFAULT, Limits

ReadRange = Callable[[int, int], bytes]  # offset and length

_FIRST_READ = 64 * 1024
_MAGIC = b"ORC"
_NONE, _ZLIB = 0, 1
_ARROW_CODECS = {2: "snappy", 4: "lz4_raw", 5: "zstd"}
_LARGEST_BLOCK = 2**23
_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class OrcColumn:
    """One column of one stripe: how many values are not null, and bounds that no value exceeds.

    Bounds of integers, dates (days) and times are ints, of timestamps ints of milliseconds, of floating-point numbers
    floats, of decimals and text bytes of UTF-8, of booleans bools. ``no_nans`` is true if there is proof of it.
    """

    values: int | None = None
    lower: Any = None
    upper: Any = None
    no_nans: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OrcStripe:
    """A stripe; ``columns`` are by ORC's own column numbers, none if the file does not record them."""

    offset: int
    rows: int
    columns: tuple[OrcColumn, ...] = ()


def read_stripes(read: ReadRange, size: int, *, limits: Limits = DEFAULT) -> tuple[OrcStripe, ...]:
    """The stripes of a file of ``size`` bytes, of which only the end is read."""
    try:
        return _stripes(read, size, limits)
    except (IndexError, struct.error, zlib.error, pa.ArrowException, ValueError) as error:
        raise CorruptFile(f"the end of the ORC file cannot be read: {error}") from error


def _stripes(read: ReadRange, size: int, limits: Limits) -> tuple[OrcStripe, ...]:
    length = min(size, _FIRST_READ)
    end = read(size - length, length)
    if length == 0 or end[-1] >= length:
        raise CorruptFile(f"an ORC file of {size} bytes has no end")
    post = _message(end[-1 - end[-1] : -1])
    if post.get(8000, (b"",))[-1] != _MAGIC:
        raise CorruptFile("the file is not ORC, or cut short")
    footer_length, metadata_length = _number(post, 1), _number(post, 5)
    needed = 1 + end[-1] + footer_length + metadata_length
    if needed > size or footer_length + metadata_length > limits.manifest_bytes:
        raise CorruptFile(f"the ORC file says that its last {needed} of {size} bytes describe it")
    if needed > length:
        end = read(size - needed, needed)
    stop = len(end) - 1 - end[-1]
    blocks = _Blocks(codec=_number(post, 2), block=_number(post, 3), limit=limits.manifest_bytes)
    footer = _message(blocks.plain(end[stop - footer_length : stop]))
    metadata = _message(blocks.plain(end[stop - footer_length - metadata_length : stop - footer_length]))
    stripes = [_message(stripe) for stripe in footer.get(3, ())]
    columns = [
        tuple(_column(_message(column)) for column in _message(stripe).get(1, ())) for stripe in metadata.get(1, ())
    ]
    if len(columns) != len(stripes):
        columns = [()] * len(stripes)
    return tuple(
        OrcStripe(offset=_number(stripe, 1), rows=_number(stripe, 5), columns=known)
        for stripe, known in zip(stripes, columns, strict=True)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Blocks:
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
            raise CorruptFile(f"a compressed block in the ORC file is damaged: {error}") from error

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


Message = dict[int, list[Any]]  # the values of each field: ints, or bytes


def _message(data: int | bytes) -> Message:
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


def _number(message: Message, number: int) -> int:
    value = message.get(number, (0,))[-1]
    if not isinstance(value, int):
        raise CorruptFile(f"field {number} of a message in the ORC file is no number")
    return value


def _bytes(message: Message, number: int) -> bytes:
    """The bytes of a field that is there; never ``bytes(value)``, which makes as many zeros as a number says."""
    value = message[number][-1]
    if not isinstance(value, bytes):
        raise CorruptFile(f"field {number} of a message in the ORC file is only a number")
    return value


def _column(message: Message) -> OrcColumn:
    """The statistics of a column, from the one kind of bounds that its type has."""
    values = _number(message, 1) if 1 in message else None
    for number, read in _BOUNDS.items():
        if number in message:
            lower, upper, no_nans = read(_message(message[number][-1]), values)
            return OrcColumn(values=values, lower=lower, upper=upper, no_nans=no_nans)
    return OrcColumn(values=values)


def _integers(message: Message, first: int = 1) -> tuple[int | None, int | None, bool]:
    lower, upper = (_zigzag(_number(message, n)) if n in message else None for n in (first, first + 1))
    return lower, upper, False


def _zigzag(value: int) -> int:
    return (value >> 1) ^ -(value & 1)


def _doubles(message: Message) -> tuple[float | None, float | None, bool]:
    """Bounds of floating-point numbers, if there is proof that none is NaN: writers lose values beside one."""
    numbers = [struct.unpack("<d", _bytes(message, n))[0] if n in message else math.nan for n in (1, 2, 3)]
    return (numbers[0], numbers[1], True) if not any(math.isnan(n) for n in numbers) else (None, None, False)


def _texts(message: Message) -> tuple[bytes | None, bytes | None, bool]:
    """Bounds of text; bounds of very long text are truncated and stored in separate fields."""
    ends = [next((_bytes(message, n) for n in numbers if n in message), None) for numbers in ((1, 4), (2, 5))]
    return ends[0], ends[1], False


def _flags(message: Message, values: int | None) -> tuple[bool | None, bool | None, bool]:
    packed = message.get(1, (b"",))[-1]
    trues = packed if isinstance(packed, int) else read_varint(packed, 0, "ORC")[0] if len(packed) > 0 else None
    if trues is None or values is None or values == 0:
        return None, None, False
    return trues >= values, trues > 0, False


# By the number of the field that holds them: integers, floating-point numbers, text, booleans, decimals, dates,
# timestamps (their bounds in UTC: the older ones depend on a time zone).
_BOUNDS: dict[int, Callable[[Message, int | None], tuple[Any, Any, bool]]] = {
    2: lambda message, _: _integers(message),
    3: lambda message, _: _doubles(message),
    4: lambda message, _: _texts(message),
    5: _flags,
    6: lambda message, _: _texts(message),
    7: lambda message, _: _integers(message),
    9: lambda message, _: _integers(message, 3),
}
