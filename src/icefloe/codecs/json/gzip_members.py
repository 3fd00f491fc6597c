"""A JSON object as several gzip members, so that unchanged parts of long lists are compressed only once.

A metadata file lists every snapshot, and a commit adds one. Lists are cut into blocks of the same number of elements;
each full block is its own gzip member, which ``MemberCache`` keeps for later files. Readers see one text: a gzip file
may consist of several members (RFC 1952, 2.2). The bytes depend only on the object, not on the cache.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from icefloe.errors import CorruptFile, damaged

GZIP = b"\x1f\x8b"  # the first bytes
_WINDOW = 31  # makes zlib write a gzip header, with a timestamp of 0
_LEVEL = 1  # ids and uuids are most of what is left: the best level is 12 % smaller and takes six times as long
_PART = 64 * 1024  # bytes
_BLOCK = 64  # elements: 40 kB of snapshots, more than the window of the compression

_Entry = tuple[tuple[Any, ...], bytes]  # the elements of a block, and its member


class MemberCache:
    """The compressed blocks of lists; a block that has other elements now is compressed again."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, int], _Entry] = {}

    def member(self, key: str, start: int, elements: Sequence[Any]) -> bytes:
        """The block of a list that begins at an element, followed by a comma."""
        block = tuple(elements)
        entry = self._entries.get((key, start))
        if entry is None or entry[0] != block:  # elements that are the same objects are not compared
            entry = block, compressed(_elements(block) + b",")
            self._entries[key, start] = entry
        return entry[1]

    def shorten(self, key: str, length: int) -> None:
        """Forget the blocks after the end of a list."""
        for place in list(self._entries):
            if place[0] == key and place[1] >= length:
                self._entries.pop(place, None)


def encode_members(document: Mapping[str, Any], lists: Collection[str], cache: MemberCache) -> bytes:
    """The JSON object in gzip members; ``lists`` are the keys of the long lists.

    >>> import gzip
    >>> document = {"n": 1, "log": list(range(100))}
    >>> gzip.decompress(encode_members(document, ["log"], MemberCache())) == msgspec.json.encode(document)
    True
    """
    members: list[bytes] = []
    text = bytearray(b"{")
    for number, (key, value) in enumerate(document.items()):
        text += (b"," if number > 0 else b"") + msgspec.json.encode(key) + b":"
        cut = 0
        if key in lists:
            cut = max(0, (len(value) - 1) // _BLOCK * _BLOCK)  # the last element has no comma, so it is in no block
            cache.shorten(key, cut)
        if cut == 0:
            text += msgspec.json.encode(value)
            continue
        members.append(compressed(bytes(text) + b"["))
        members.extend(cache.member(key, at, value[at : at + _BLOCK]) for at in range(0, cut, _BLOCK))
        text = bytearray(_elements(value[cut:]) + b"]")
    members.append(compressed(bytes(text) + b"}"))
    return b"".join(members)


def decompressed(data: bytes, limit: int) -> bytes:
    """The text of all members of a gzip file; decompression stops after ``limit`` bytes."""
    rest, inflated = memoryview(data), bytearray()
    while len(rest) > 0 and len(inflated) <= limit:
        rest = rest[_decompress_member(rest, limit, inflated) :]
    return bytes(inflated)


def _decompress_member(data: memoryview, limit: int, inflated: bytearray) -> int:
    """Inflate the first member: how many bytes it has. It is read in parts, as zlib copies what follows a member."""
    stream, read = zlib.decompressobj(wbits=_WINDOW), 0
    while not stream.eof and len(inflated) <= limit:
        if read == len(data):
            raise CorruptFile("damaged gzip: it is cut short")
        part = data[read : read + _PART]
        try:
            inflated += stream.decompress(part, limit + 1 - len(inflated))
        except zlib.error as error:
            raise damaged(error, f"damaged gzip: {error}") from error
        read += len(part) - len(stream.unused_data)
    return read


def beginning(data: bytes, length: int) -> bytes:
    """The beginning of the text of a file, gzipped or not, as far as its first bytes contain it."""
    if data[:2] != GZIP:
        return data[:length]
    try:
        return zlib.decompressobj(wbits=_WINDOW).decompress(data, length)
    except zlib.error:
        return b""


def compressed(text: bytes, level: int = _LEVEL) -> bytes:
    """One gzip member."""
    stream = zlib.compressobj(level, wbits=_WINDOW)
    return stream.compress(text) + stream.flush()


def _elements(elements: Sequence[Any]) -> bytes:
    return msgspec.json.encode(elements)[1:-1]
