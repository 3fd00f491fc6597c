"""How a manifest is stored in Parquet: its columns, their encodings and codecs, and a short footer (V4 proposal).

The footer of a manifest has one entry for each of its columns, and most bytes of a small root are there. Arrow's writer
adds to each entry how many pages have which encoding, and how many values have which level, and at the end the order of
the values of each column. These fields are optional, Arrow's writer cannot leave them out, and without column
statistics they say nothing. They take about a fifth of the footer.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, lru_cache

import pyarrow as pa

from icefloe.codecs.manifest.content_stats import StatsShape, with_id
from icefloe.codecs.manifest.field_ids import CONTENT_ENTRY, CONTENT_STATS, Group, Slot
from icefloe.model.entries import ENTRY

_CODEC = "zstd"
_PACKED = "DELTA_BINARY_PACKED"
_VARYING = ("file_size_in_bytes", "record_count", "first_row_id")  # numbers that differ from row to row
_COUNTS = (".value_count", ".nan_value_count", "record_count")  # one number for files, other ones for leaves

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


class Size(IntEnum):
    """The most rows of a manifest that is stored in one way (decision 010).

    Delta encoding fills blocks of 32 or 64 values, so few values that vary take more bytes with it than without.
    """

    TINY = 4  # plain and not compressed: compression adds more bytes than it saves
    SMALL = 128  # integers that vary are compressed, which removes the filled blocks; counts are plain
    LARGE = 2**63 - 1  # integers are only delta-encoded: compressing them saves 2 % and takes a fifth more time


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a manifest is stored: which columns are delta-encoded, and the codec of the compressed ones."""

    schema: pa.Schema
    column_count: int
    packed: Mapping[str, str]
    compressed: Mapping[str, str] | str


@lru_cache(maxsize=256)
def layout_of(stored: tuple[int, ...], stats: StatsShape | None, size: Size) -> Layout:
    """The layout of a manifest with these fields and statistics."""
    fields: list[pa.Field] = []
    for item in CONTENT_ENTRY:
        if item.id == CONTENT_STATS and stats is not None:
            fields.append(stats.field)
        elif item.id in stored:
            fields.append(group_field(item) if isinstance(item, Group) else field_of(item))
    schema = pa.schema(fields)
    columns = list(_parquet_columns(schema))
    if size is Size.TINY:
        return Layout(schema=schema, column_count=len(columns), packed={}, compressed="none")
    seen = Counter(path for path, _ in columns)
    packed = [path for path, type_ in columns if _is_number(type_) and seen[path] == 1]
    compressed = [path for path, type_ in columns if not _is_number(type_) and not pa.types.is_boolean(type_)]
    if size is Size.SMALL:
        compressed += [path for path in packed if path in _VARYING or path.startswith("content_stats.")]
        packed = [path for path in packed if not path.endswith(_COUNTS)]
    return Layout(
        schema=schema,
        column_count=len(columns),
        packed=dict.fromkeys(packed, _PACKED),
        compressed=dict.fromkeys(compressed, _CODEC),
    )


def _parquet_columns(schema: pa.Schema) -> Iterator[tuple[str, pa.DataType]]:
    """The columns that a Parquet file has, by path."""
    pending = [(field.name, field.type) for field in schema]
    for path, type_ in pending:
        if pa.types.is_struct(type_):
            pending.extend((f"{path}.{member.name}", member.type) for member in type_)
        elif pa.types.is_list(type_):
            pending.append((f"{path}.list.element", type_.value_type))
        else:
            yield path, type_


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_temporal(type_))


@cache
def field_of(slot: Slot) -> pa.Field:
    """The field of a column, with its id."""
    type_ = ENTRY.field(slot.entry).type
    if slot.element_id is not None:
        type_ = pa.list_(with_id("element", type_.value_type, slot.element_id, required=True))
    return with_id(slot.name, type_, slot.id, required=slot.required)


@cache
def group_field(group: Group) -> pa.Field:
    """The field of a group of columns, with its id."""
    return with_id(group.name, pa.struct([field_of(slot) for slot in group.slots]), group.id)


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
