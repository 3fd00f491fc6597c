"""ORC footers: the stripes of a file and their statistics (spec: Appendix A, ORC).

Arrow reads the rows of ORC files but reports neither the row count of a stripe nor its statistics. Both are at the end
of the file, as protocol buffers.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from icefloe.codecs.orc.tail.protobuf import Blocks, Message, bytes_of, message_of, number_of
from icefloe.codecs.varint import read_varint
from icefloe.errors import CorruptFile, damaged
from icefloe.limits import DEFAULT, Limits

ReadRange = Callable[[int, int], bytes]  # offset and length

_FIRST_READ = 64 * 1024
_MAGIC = b"ORC"
_MAGIC_FIELD = 8000  # of the postscript


@dataclass(frozen=True, slots=True, kw_only=True)
class OrcColumn:
    """One column of one stripe: how many values are not null, and bounds that no value exceeds.

    Bounds of integers, dates (days) and times are ints, of timestamps ints of milliseconds, of floating-point numbers
    floats, of decimals and text bytes of UTF-8, of booleans bools. ``no_nans`` is true if the column certainly has no
    NaN.
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
        raise damaged(error, f"the end of the ORC file cannot be read: {error}") from error


def _stripes(read: ReadRange, size: int, limits: Limits) -> tuple[OrcStripe, ...]:
    length = min(size, _FIRST_READ)
    end = read(size - length, length)
    if length == 0 or end[-1] >= length:
        raise CorruptFile(f"an ORC file of {size} bytes has no end")
    # Of the postscript: 1 and 5 are the lengths of footer and metadata, 2 and 3 the codec and its block size.
    postscript = message_of(end[-1 - end[-1] : -1])
    if postscript.get(_MAGIC_FIELD, (b"",))[-1] != _MAGIC:
        raise CorruptFile("the file is not ORC, or cut short")
    footer_length, metadata_length = number_of(postscript, 1), number_of(postscript, 5)
    needed = 1 + end[-1] + footer_length + metadata_length
    if needed > size or footer_length + metadata_length > limits.manifest_bytes:
        raise CorruptFile(f"the ORC file says that its last {needed} of {size} bytes describe it")
    if needed > length:
        end = read(size - needed, needed)
    stop = len(end) - 1 - end[-1]
    blocks = Blocks(codec=number_of(postscript, 2), block=number_of(postscript, 3), limit=limits.manifest_bytes)
    footer = message_of(blocks.plain(end[stop - footer_length : stop]))
    metadata = message_of(blocks.plain(end[stop - footer_length - metadata_length : stop - footer_length]))
    stripes = [message_of(stripe) for stripe in footer.get(3, ())]
    columns = [
        tuple(_column(message_of(column)) for column in message_of(stripe).get(1, ())) for stripe in metadata.get(1, ())
    ]
    if len(columns) != len(stripes):
        columns = [()] * len(stripes)
    return tuple(
        OrcStripe(offset=number_of(stripe, 1), rows=number_of(stripe, 5), columns=known)
        for stripe, known in zip(stripes, columns, strict=True)
    )


def _column(message: Message) -> OrcColumn:
    """The statistics of a column, with the bounds of its type."""
    values = number_of(message, 1) if 1 in message else None
    for number, read in _BOUNDS.items():
        if number in message:
            lower, upper, no_nans = read(message_of(message[number][-1]), values)
            return OrcColumn(values=values, lower=lower, upper=upper, no_nans=no_nans)
    return OrcColumn(values=values)


def _integers(message: Message, first: int = 1) -> tuple[int | None, int | None, bool]:
    lower, upper = (_zigzag(number_of(message, n)) if n in message else None for n in (first, first + 1))
    return lower, upper, False


def _zigzag(value: int) -> int:
    return (value >> 1) ^ -(value & 1)


def _doubles(message: Message) -> tuple[float | None, float | None, bool]:
    """Bounds of floating-point numbers; none if bounds or sum are NaN, as written bounds are wrong if any value is."""
    numbers = [struct.unpack("<d", bytes_of(message, n))[0] if n in message else math.nan for n in (1, 2, 3)]
    return (numbers[0], numbers[1], True) if not any(math.isnan(n) for n in numbers) else (None, None, False)


def _texts(message: Message) -> tuple[bytes | None, bytes | None, bool]:
    """Bounds of text; bounds of very long text are truncated and stored in separate fields."""
    ends = [next((bytes_of(message, n) for n in numbers if n in message), None) for numbers in ((1, 4), (2, 5))]
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
