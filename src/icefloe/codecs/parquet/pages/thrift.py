"""Messages of Thrift's compact protocol, the encoding of Parquet footers (spec: Appendix A, Parquet).

The positions of the fields of a message are found in one pass, and a field is decoded on access: of a footer with
thousands of columns, few are read. Fields can also be copied unchanged into a new message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from icefloe.codecs.varint import read_varint
from icefloe.errors import CorruptFile

TRUE, FALSE, BYTE, SHORT, INT, LONG, DOUBLE, BINARY, LIST, SET, MAP, STRUCT, UUID = range(1, 14)

Written: TypeAlias = tuple[int, int, bytes]  # a field's number, its kind and its value

_NUMBERS = (SHORT, INT, LONG)
_FLAGS = (TRUE, FALSE)
_WIDTHS = {BYTE: 1, DOUBLE: 8, UUID: 16}
_DEEPEST = 16


class Message:
    """A message in ``data``, from ``start`` on.

    >>> message = Message(struct((1, INT, number(-3)), (20, BINARY, binary(b"text")), (21, LIST, sequence(INT, []))))
    >>> message.number(1), message.text(20), message.numbers(21), 2 in message
    (-3, b'text', [], False)
    """

    __slots__ = ("_data", "_fields", "end")

    def __init__(self, data: bytes, start: int = 0) -> None:
        self._data = data
        self._fields: dict[int, tuple[int, int, int]] = {}  # kind, first byte and end, by number
        try:
            self.end = self._walk(start)
        except IndexError as error:
            raise CorruptFile("a message of the Parquet file is cut short") from error
        if self.end > len(data):
            raise CorruptFile("a message of the Parquet file is cut short")

    def _walk(self, at: int) -> int:
        data, id_ = self._data, 0
        while True:
            header, at = data[at], at + 1
            if header == 0:
                return at
            if header < 16:
                id_, at = _number(data, at)
            else:
                id_ += header >> 4
            kind = header & 15
            end = _skipped(data, at, kind, 1)
            self._fields[id_] = (kind, at, end)
            at = end

    def __contains__(self, id_: int) -> bool:
        return id_ in self._fields

    def number(self, id_: int) -> int:
        """A field that is a number."""
        at = self._field(id_, *_NUMBERS)
        return _number(self._data, at)[0]

    def text(self, id_: int) -> bytes:
        """A field of text or bytes."""
        at = self._field(id_, BINARY)
        return _binary(self._data, at)[0]

    def message(self, id_: int) -> Message:
        """A nested message."""
        at = self._field(id_, STRUCT)
        return Message(self._data, at)

    def messages(self, id_: int) -> list[Message]:
        """A list of messages."""
        count, at = self._list(id_, STRUCT)
        messages = []
        for _ in range(count):
            messages.append(Message(self._data, at))
            at = messages[-1].end
        return messages

    def records(self, id_: int, *ids: int) -> list[tuple[int, ...]]:
        """These numeric fields of each message in a list; faster than ``messages``."""
        data, records = self._data, []
        count, at = self._list(id_, STRUCT)
        for _ in range(count):
            values, field = {}, 0
            while (header := data[at]) != 0:
                if header < 16:
                    field, at = _number(data, at + 1)
                else:
                    field, at = field + (header >> 4), at + 1
                if header & 15 in _NUMBERS:
                    values[field], at = _number(data, at)
                else:
                    at = _skipped(data, at, header & 15, 1)
            at += 1
            if not values.keys() >= set(ids):
                raise CorruptFile(f"a message of the Parquet file lacks one of its fields {', '.join(map(str, ids))}")
            records.append(tuple(values[field_id] for field_id in ids))
        return records

    def numbers(self, id_: int) -> list[int]:
        """A list of numbers."""
        count, at = self._list(id_, *_NUMBERS)
        numbers = []
        for _ in range(count):
            value, at = _number(self._data, at)
            numbers.append(value)
        return numbers

    def flags(self, id_: int) -> list[bool]:
        """A list of truth values."""
        count, at = self._list(id_, *_FLAGS)
        return [flag == TRUE for flag in self._data[at : at + count]]

    def texts(self, id_: int) -> list[bytes]:
        """A list of texts or bytes."""
        count, at = self._list(id_, BINARY)
        texts = []
        for _ in range(count):
            value, at = _binary(self._data, at)
            texts.append(value)
        return texts

    def copied(self, *ids: int) -> list[Written]:
        """The encoded fields of these ids, to copy into another message; missing ones are omitted."""
        fields = [(id_, *self._fields[id_]) for id_ in ids if id_ in self._fields]
        return [(id_, kind, self._data[at:end]) for id_, kind, at, end in fields]

    def _list(self, id_: int, *kinds: int) -> tuple[int, int]:
        at = self._field(id_, LIST)
        kind, count, at = _list_header(self._data, at)
        if kind not in kinds and count > 0:
            raise CorruptFile(f"field {id_} of a message of the Parquet file has elements of kind {kind}")
        return count, at

    def _field(self, id_: int, *kinds: int) -> int:
        kind, at, _ = self._fields.get(id_, (0, 0, 0))
        if kind not in kinds:
            what = "missing" if kind == 0 else f"of kind {kind}"
            raise CorruptFile(f"field {id_} of a message of the Parquet file is {what}")
        return at


def _skipped(data: bytes, at: int, kind: int, depth: int) -> int:
    """Where a value ends."""
    if kind in _NUMBERS:
        while data[at] > 127:
            at += 1
        return at + 1
    if kind == BINARY:
        length, at = read_varint(data, at, "Parquet")
        return _within(data, at + length)
    if kind in _FLAGS:
        return at
    if depth > _DEEPEST:
        raise CorruptFile(f"messages of the Parquet file are nested deeper than {_DEEPEST}")
    if kind == STRUCT:
        while (header := data[at]) != 0:
            at += 1
            if header < 16:
                at = _skipped(data, at, SHORT, depth)
            inner = header & 15
            if inner in _NUMBERS:  # most fields are numbers, and a call would take longer than skipping one
                while data[at] > 127:
                    at += 1
                at += 1
            elif inner not in _FLAGS:
                at = _skipped(data, at, inner, depth + 1)
        return at + 1
    if kind in (LIST, SET):
        element, count, at = _list_header(data, at)
        return _skipped_all(data, at, (element,), count, depth)
    if kind == MAP:
        count, at = read_varint(data, at, "Parquet")
        return at if count == 0 else _skipped_all(data, at + 1, (data[at] >> 4, data[at] & 15), count, depth)
    return _within(data, at + _width(kind))


def _skipped_all(data: bytes, at: int, kinds: tuple[int, ...], count: int, depth: int) -> int:
    """Where so many values end, of these kinds in turn. Each takes a byte at least, so the bytes bound the work."""
    if len(kinds) == 1 and kinds[0] in (*_FLAGS, *_WIDTHS):
        return _within(data, at + count * (1 if kinds[0] in _FLAGS else _WIDTHS[kinds[0]]))
    for _ in range(count):
        for kind in kinds:
            at = at + 1 if kind in _FLAGS else _skipped(data, at, kind, depth + 1)
        _within(data, at)
    return at


def _list_header(data: bytes, at: int) -> tuple[int, int, int]:
    """The kind of the elements, how many there are, and where the first is."""
    header, at = data[at], at + 1
    if header < 0xF0:
        return header & 15, header >> 4, at
    count, at = read_varint(data, at, "Parquet")
    return header & 15, count, at


def _width(kind: int) -> int:
    if kind not in _WIDTHS:
        raise CorruptFile(f"a message of the Parquet file has a field of kind {kind}")
    return _WIDTHS[kind]


def _within(data: bytes, at: int) -> int:
    if at > len(data):
        raise CorruptFile("a message of the Parquet file is cut short")
    return at


def _binary(data: bytes, at: int) -> tuple[bytes, int]:
    length, at = read_varint(data, at, "Parquet")
    return data[at : at + length], at + length


def _number(data: bytes, at: int) -> tuple[int, int]:
    value, at = read_varint(data, at, "Parquet")
    return (value >> 1) ^ -(value & 1), at


def struct(*fields: Written) -> bytes:
    """A message of these fields, in the order of their numbers."""
    out, before = bytearray(), 0
    for id_, kind, value in fields:
        step = id_ - before
        out += bytes([step << 4 | kind]) if 0 < step < 16 else bytes([kind]) + number(id_)
        out += value
        before = id_
    return bytes(out) + b"\x00"


def number(value: int) -> bytes:
    """A number, as the value of a field."""
    return _length(value << 1 if value >= 0 else (-value << 1) - 1)


def binary(data: bytes) -> bytes:
    """Text or bytes, as the value of a field."""
    return _length(len(data)) + data


def sequence(kind: int, items: Sequence[bytes]) -> bytes:
    """A list, as the value of a field."""
    count = len(items)
    head = bytes([count << 4 | kind]) if count < 15 else bytes([0xF0 | kind]) + _length(count)
    return head + b"".join(items)


def _length(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
