"""Removes from the footer of a manifest what no reader of manifests uses (V4 proposal).

The footer of a manifest has one entry for each of its columns, and most bytes of a small root are there. Arrow's writer
adds to each entry how many pages have which encoding, and how many values have which level, and at the end the order of
the values of each column. These fields are optional, Arrow's writer cannot leave them out, and without column
statistics they say nothing. They take about a fifth of the footer.
"""

from __future__ import annotations

import re
import struct

_MAGIC = b"PAR1"
_NUMBER = rb"[\x80-\xff]*[\x00-\x7f]"
_NUMBERS = b"(?:" + b"|".join(bytes([n << 4 | 6]) + b"(?:" + _NUMBER + b"){%d}" % n for n in range(9)) + b")"
# The end of the entry of a column chunk: ColumnMetaData.encoding_stats (field 13) with one kind of pages, then
# size_statistics (field 16) if there are any, then the ends of ColumnMetaData and ColumnChunk.
_UNUSED = re.compile(
    rb"\x49\x1c\x15\x00\x15.\x15" + _NUMBER + rb"\x00"
    rb"(?:\x3c(?:\x16" + _NUMBER + rb"(?:\x19" + _NUMBERS + rb")?|\x29" + _NUMBERS + rb")?"
    rb"(?:[\x19\x29\x39]" + _NUMBERS + rb")?\x00)?\x00\x00",
    re.DOTALL,
)
_ENDS = b"\x00\x00"
_TYPE_ORDER = b"\x1c\x00\x00"  # ColumnOrder: the order that the type defines


def with_short_footer(file: bytes, columns: int) -> bytes:
    """A Parquet file with so many columns and one row group, without the unused fields of its footer.

    A footer of another form than Arrow 26 writes is left as it is.
    """
    (length,) = struct.unpack("<I", file[-8:-4])
    start = len(file) - 8 - length
    footer, found = _UNUSED.subn(_ENDS, file[start:-8])
    if found != columns:  # no row group, another writer, or a column whose name has the bytes of such fields
        return file
    header = bytes([columns << 4 | 0xC]) if columns < 15 else b"\xfc" + _varint(columns)
    orders = b"\x19" + header + _TYPE_ORDER * columns + b"\x00"
    if footer.endswith(orders):
        footer = footer[: -len(orders)] + b"\x00"
    return b"".join((file[:start], footer, struct.pack("<I", len(footer)), _MAGIC))


def _varint(value: int) -> bytes:
    data = bytearray()
    while value >= 0x80:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*data, value])
