"""Variable-length integers, seven bits to a byte, as in the metadata of Parquet and ORC files."""

from __future__ import annotations

from icefloe.errors import CorruptFile

_LONGEST = 70  # bits


def read_varint(data: bytes, at: int, file_format: str) -> tuple[int, int]:
    """The number at a position, and the position after it; IndexError if the data ends before.

    >>> read_varint(bytes([0xAC, 0x02, 0xFF]), 0, "ORC")
    (300, 2)
    """
    value = shift = 0
    while shift < _LONGEST:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise CorruptFile(f"a number in a message of the {file_format} file is too long")
