"""LZ4 and Zstandard frames in the form that Puffin wants: they tell the size of their content (Puffin spec).

Arrow reads every frame. Those it writes lack the content size (LZ4) and the checksum (Zstandard) that other writers
of Puffin files give, so the frames are completed here around the blocks that Arrow packs.
"""

from __future__ import annotations

import struct

import pyarrow as pa

_LZ4_MAGIC = 0x184D2204
_LZ4_FLAGS = 0b01101000  # version 1, independent blocks, content size; no checksums
_LZ4_BLOCK_BYTES = 4 * 1024 * 1024
_LZ4_BLOCK_CODE = 7 << 4  # blocks of up to 4 MB
_LZ4_STORED = 1 << 31  # a block that did not get smaller
_ZSTD_LEVEL = 3
_ZSTD_DESCRIPTOR = 4  # where it is, behind the magic
_ZSTD_CHECKSUM = 1 << 2  # its flag in there
_WORD = (1 << 32) - 1
_LONG = (1 << 64) - 1


def lz4_frame(data: bytes) -> bytes:
    """One LZ4 frame of these bytes.

    >>> pa.decompress(lz4_frame(b"abc" * 100), 300, "lz4", asbytes=True) == b"abc" * 100
    True
    """
    descriptor = struct.pack("<BBQ", _LZ4_FLAGS, _LZ4_BLOCK_CODE, len(data))
    parts = [struct.pack("<I", _LZ4_MAGIC), descriptor, bytes([_short_xxh32(descriptor) >> 8 & 0xFF])]
    for start in range(0, len(data), _LZ4_BLOCK_BYTES):
        block = data[start : start + _LZ4_BLOCK_BYTES]
        packed = pa.compress(block, "lz4_raw", asbytes=True)
        if len(packed) < len(block):
            parts += [struct.pack("<I", len(packed)), packed]
        else:
            parts += [struct.pack("<I", len(block) | _LZ4_STORED), block]
    return b"".join([*parts, struct.pack("<I", 0)])


def zstd_frame(data: bytes) -> bytes:
    """One Zstandard frame of these bytes, with a checksum.

    >>> pa.decompress(zstd_frame(b"abc" * 100), 300, "zstd", asbytes=True) == b"abc" * 100
    True
    """
    frame = bytearray(pa.Codec("zstd", _ZSTD_LEVEL).compress(data, asbytes=True))
    frame[_ZSTD_DESCRIPTOR] |= _ZSTD_CHECKSUM
    return bytes(frame) + struct.pack("<I", xxh64(data) & _WORD)


# -- the checksums of both formats

_PRIMES_32 = (2654435761, 2246822519, 3266489917, 668265263, 374761393)
_PRIMES_64 = (
    11400714785074694791,
    14029467366897019727,
    1609587929392839161,
    9650029242287828579,
    2870177450012600261,
)


def _short_xxh32(data: bytes) -> int:
    """xxHash of 32 bits of fewer than 16 bytes, with seed 0."""
    one, two, three, four, five = _PRIMES_32
    value = (five + len(data)) & _WORD
    whole = len(data) // 4 * 4
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        value = _rotated(value + word * three, 17, 32) * four & _WORD
    for byte in data[whole:]:
        value = _rotated(value + byte * five, 11, 32) * one & _WORD
    return _mixed(value, ((15, two), (13, three), (16, 1)), _WORD)


def xxh64(data: bytes) -> int:
    """xxHash of 64 bits, with seed 0.

    >>> hex(xxh64(b"abc"))
    '0x44bc2cf5ad770999'
    """
    one, two, three, four, five = _PRIMES_64
    striped = len(data) // 32 * 32
    value = five
    if striped > 0:
        value = _stripes(data[:striped])
    value = (value + len(data)) & _LONG
    longs = striped + (len(data) - striped) // 8 * 8
    for (long,) in struct.iter_unpack("<Q", data[striped:longs]):
        value ^= _round(0, long)
        value = (_rotated(value, 27) * one + four) & _LONG
    words = longs + (len(data) - longs) // 4 * 4
    for (word,) in struct.iter_unpack("<I", data[longs:words]):
        value ^= word * one & _LONG
        value = (_rotated(value, 23) * two + three) & _LONG
    for byte in data[words:]:
        value ^= byte * five & _LONG
        value = _rotated(value, 11) * one & _LONG
    return _mixed(value, ((33, two), (29, three), (32, 1)), _LONG)


def _stripes(data: bytes) -> int:
    one, two, _, four, _ = _PRIMES_64
    lanes = [(one + two) & _LONG, two, 0, -one & _LONG]
    for stripe in struct.iter_unpack("<4Q", data):
        lanes = [_round(lane, long) for lane, long in zip(lanes, stripe, strict=True)]
    value = sum(_rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _LONG
    for lane in lanes:
        value = ((value ^ _round(0, lane)) * one + four) & _LONG
    return value


def _round(lane: int, long: int) -> int:
    one, two = _PRIMES_64[:2]
    return _rotated(lane + long * two, 31) * one & _LONG


def _rotated(value: int, bits: int, width: int = 64) -> int:
    value &= (1 << width) - 1
    return (value << bits | value >> width - bits) & (1 << width) - 1


def _mixed(value: int, steps: tuple[tuple[int, int], ...], mask: int) -> int:
    for shift, prime in steps:
        value = (value ^ value >> shift) * prime & mask
    return value
