"""Thrift's compact protocol: what is written is read again, and copied as it is; damage is refused."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.codecs.parquet.pages import ParquetTail, decode_page_bounds, decode_pages
from icefloe.codecs.parquet.pages.thrift import (
    BINARY,
    BYTE,
    DOUBLE,
    INT,
    LIST,
    LONG,
    MAP,
    STRUCT,
    TRUE,
    Message,
    binary,
    number,
    sequence,
    struct,
)
from icefloe.errors import CorruptFile

LONGS = st.integers(-(2**63), 2**63 - 1)


@given(
    st.lists(st.integers(1, 30_000), unique=True, min_size=6, max_size=6).map(sorted),
    LONGS,
    st.binary(max_size=300),
    st.lists(LONGS, max_size=40),
    st.lists(st.binary(max_size=5), max_size=40),
    st.lists(st.booleans(), max_size=40),
)
def test_every_kind_of_field_is_read_as_it_was_written(
    ids: list[int], value: int, data: bytes, numbers: list[int], texts: list[bytes], flags: list[bool]
) -> None:
    inner = struct((3, LONG, number(value)))
    written = struct(
        (ids[0], LONG, number(value)),
        (ids[1], BINARY, binary(data)),
        (ids[2], LIST, sequence(LONG, [number(each) for each in numbers])),
        (ids[3], LIST, sequence(BINARY, [binary(each) for each in texts])),
        (ids[4], LIST, sequence(TRUE, [b"\x01" if each else b"\x02" for each in flags])),
        (ids[5], LIST, sequence(STRUCT, [inner] * len(numbers))),
    )
    message = Message(b"before" + written + b"after", len(b"before"))
    assert message.end == len(b"before" + written)
    assert message.number(ids[0]) == value
    assert message.text(ids[1]) == data
    assert message.numbers(ids[2]) == numbers
    assert message.texts(ids[3]) == texts
    assert message.flags(ids[4]) == flags
    assert [each.number(3) for each in message.messages(ids[5])] == [value] * len(numbers)
    assert struct(*message.copied(*ids)) == written


def test_fields_of_kinds_that_nobody_asks_for_are_passed_over() -> None:
    pairs = number(-1) + bytes([BINARY << 4 | DOUBLE]) + binary(b"k") + bytes(8)  # one pair: -1 is written as 1
    written = struct(
        (1, MAP, pairs), (2, MAP, b"\x00"), (3, DOUBLE, bytes(8)), (4, BYTE, b"\x07"), (5, TRUE, b""), (6, INT, b"\x04")
    )
    assert Message(written).number(6) == 2


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "cut short"),
        (b"\x15", "cut short"),
        (struct((1, BINARY, binary(b"text")))[:-3], "cut short"),
        (struct((1, LIST, sequence(LONG, [number(5)] * 20)))[:-4], "cut short"),
        (struct((1, LIST, b"\xf7" + b"\xff" * 8 + b"\x01")), "cut short"),  # doubles without end
        (b"\x1c" * 40, "nested deeper"),
        (b"\x1e\x00", "kind 14"),
    ],
)
def test_damaged_messages_are_refused(data: bytes, says: str) -> None:
    with pytest.raises(CorruptFile, match=says):
        Message(data)


def test_a_field_of_another_kind_or_none_is_refused_by_its_number() -> None:
    message = Message(
        struct((1, BINARY, binary(b"x")), (2, LIST, sequence(BINARY, [binary(b"x")])), (4, LONG, b"\xff" * 9 + b"\x7f"))
    )
    with pytest.raises(CorruptFile, match=r"field 1 .* of kind 8"):
        message.number(1)
    with pytest.raises(CorruptFile, match=r"field 2 .* elements of kind 8"):
        message.numbers(2)
    with pytest.raises(CorruptFile, match=r"field 3 .* missing"):
        message.text(3)


def test_the_index_of_pages_tells_what_the_file_was_written_with() -> None:
    sink = pa.BufferOutputStream()
    column = pa.array([*range(1_000), *[None] * 1_000], pa.int64())
    options = {"data_page_size": 400, "write_batch_size": 50, "use_dictionary": False, "write_page_index": True}
    pq.write_table(pa.table({"n": column}), sink, compression="none", **options)
    data = bytes(sink.getvalue())
    tail = ParquetTail(data[-8 - int.from_bytes(data[-8:-4], "little") : -8])
    pages_at, bounds_at = tail.pages_at(0, 0), tail.bounds_at(0, 0)
    assert pages_at is not None
    assert bounds_at is not None
    pages = decode_pages(data[slice(*pages_at)], rows=2_000, within=tail.stored(0, 0))
    assert pages is not None
    bounds = decode_page_bounds(data[slice(*bounds_at)], pages=len(pages.firsts))
    assert bounds is not None
    for place, first in enumerate(pages.firsts.tolist()):
        end = [*pages.firsts.tolist()[1:], 2_000][place]
        if bounds.null_pages[place]:
            assert first >= 1_000
        else:
            assert int.from_bytes(bounds.lowers[place], "little") == first
            assert int.from_bytes(bounds.uppers[place], "little") == min(end, 1_000) - 1
    assert pages.covering(0, 0) == (0, 0)
    assert pages.covering(0, 1_999) == (0, len(pages.firsts) - 1)


@pytest.mark.parametrize(
    "spoiled",
    [
        [(4, 10, 1)],
        [(4, 10, 0), (20, 10, 0)],
        [(4, 10, 0), (10, 10, 5)],
        [(4, 10, 0), (20, 0, 5)],
        [(0, 10, 0)],
        [(4, 200, 0)],
        [(4, 10, 0), (20, 10, 50)],
        [(-4, 10, 0)],
        [],
    ],
    ids=["late", "no rows", "overlap", "empty", "before", "behind", "past", "negative", "none"],
)
def test_pages_that_are_not_one_after_the_other_inside_their_chunk_are_none(
    spoiled: list[tuple[int, int, int]],
) -> None:
    locations = [struct((1, LONG, number(a)), (2, INT, number(b)), (3, LONG, number(c))) for a, b, c in spoiled]
    data = struct((1, LIST, sequence(STRUCT, locations)))
    assert decode_pages(data, rows=50, within=(4, 100)) is None
