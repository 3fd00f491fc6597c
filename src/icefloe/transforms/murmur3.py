"""32-bit Murmur3, x86 variant, seed 0, over whole Arrow arrays (spec: Appendix B, 32-bit Hash Requirements).

The hash works on numpy views of the array's buffers: all values advance together, one 4-byte block per step. Null
slots get a hash of no meaning; the caller masks them.
"""

from __future__ import annotations

from typing import TypeAlias

import mmh3
import numpy as np
import numpy.typing as npt
import pyarrow as pa

Words: TypeAlias = npt.NDArray[np.uint32]
Longs: TypeAlias = npt.NDArray[np.int64]
Bytes: TypeAlias = npt.NDArray[np.uint8]

_C1, _C2 = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)
_ROUND, _MIX1, _MIX2 = np.uint32(0xE6546B64), np.uint32(0x85EBCA6B), np.uint32(0xC2B2AE35)
_BLOCK = 4
# A step costs the same for one value as for thousands, so long values are better hashed one by one.
_LONG_VALUE = 512
_DECIMAL_WIDTH = 16


def hash_integers(values: Longs) -> npt.NDArray[np.int32]:
    """Hashes of integers, each as the 8 little-endian bytes of a long."""
    bits = values.astype("<i8", copy=False).view("<u8")
    low = (bits & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    high = (bits >> np.uint64(32)).astype(np.uint32)
    state = _add_block(_add_block(np.zeros(len(values), np.uint32), low), high)
    return _finish(state, np.full(len(values), 8, np.uint32))


def hash_binary(array: pa.Array) -> npt.NDArray[np.int32]:
    """Hashes of the bytes of strings, binaries and fixed-size binaries."""
    if pa.types.is_fixed_size_binary(array.type):
        width = array.type.byte_width
        starts = (np.arange(len(array), dtype=np.int64) + array.offset) * width
        return _hash_slices(_buffer(array.buffers()[1]), starts, np.full(len(array), width, np.int64))
    array = array.cast(pa.large_binary())
    offsets = np.frombuffer(array.buffers()[1] or b"\0" * 8, np.int64)[array.offset : array.offset + len(array) + 1]
    return _hash_slices(_buffer(array.buffers()[2]), offsets[:-1], np.diff(offsets))


def hash_decimals(array: pa.Array) -> npt.NDArray[np.int32]:
    """Hashes of unscaled values, each as its shortest two's-complement big-endian bytes."""
    end = array.offset + len(array)
    stored = _buffer(array.buffers()[1])[array.offset * _DECIMAL_WIDTH : end * _DECIMAL_WIDTH]
    big = np.ascontiguousarray(stored.reshape(-1, _DECIMAL_WIDTH)[:, ::-1])
    sign = big[:, :1] >> 7
    # A leading byte is padding while it only repeats the sign bit of the byte behind it.
    padding = (big[:, :-1] == sign * np.uint8(0xFF)) & (big[:, 1:] >> 7 == sign)
    skipped = np.logical_and.accumulate(padding, axis=1).sum(axis=1, dtype=np.int64)
    starts = np.arange(len(array), dtype=np.int64) * _DECIMAL_WIDTH + skipped
    return _hash_slices(big.reshape(-1), starts, _DECIMAL_WIDTH - skipped)


def _buffer(buffer: pa.Buffer | None) -> Bytes:
    return np.frombuffer(b"" if buffer is None else buffer, np.uint8)


def _hash_slices(data: Bytes, starts: Longs, lengths: Longs) -> npt.NDArray[np.int32]:
    """Hashes of many slices of one buffer."""
    # Longest first, so that the values still having a block at each step are a prefix.
    order = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[order], lengths[order]
    long = int(np.searchsorted(-lengths, -_LONG_VALUE, side="left"))
    hashes = np.empty(len(starts), np.int32)
    slices = zip(starts[:long].tolist(), lengths[:long].tolist(), strict=True)
    hashes[:long] = [mmh3.hash(data[start : start + length].tobytes(), 0) for start, length in slices]
    hashes[long:] = _hash_together(data, starts[long:], lengths[long:])
    result = np.empty_like(hashes)
    result[order] = hashes
    return result


def _hash_together(data: Bytes, starts: Longs, lengths: Longs) -> npt.NDArray[np.int32]:
    """Hashes of slices ordered by falling length, block by block."""
    state = np.zeros(len(starts), np.uint32)
    blocks = lengths // _BLOCK
    for step in range(int(blocks[0]) if len(blocks) > 0 else 0):
        active = int(np.searchsorted(-blocks, -step, side="left"))
        state[:active] = _add_block(state[:active], _gather(data, starts[:active] + step * _BLOCK, _BLOCK))
    ends = starts + blocks * _BLOCK
    for size in range(1, _BLOCK):
        rows = np.flatnonzero(lengths % _BLOCK == size)
        state[rows] ^= _scramble(_gather(data, ends[rows], size))
    return _finish(state, lengths.astype(np.uint32))


def _gather(data: Bytes, positions: Longs, size: int) -> Words:
    """Little-endian words of ``size`` bytes at these positions."""
    words = np.zeros(len(positions), np.uint32)
    for byte in range(size):
        words |= data[positions + byte].astype(np.uint32) << np.uint32(8 * byte)
    return words


def _rotate(words: Words, bits: int) -> Words:
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))


def _scramble(words: Words) -> Words:
    return _rotate(words * _C1, 15) * _C2


def _add_block(state: Words, words: Words) -> Words:
    return _rotate(state ^ _scramble(words), 13) * np.uint32(5) + _ROUND


def _finish(state: Words, lengths: Words) -> npt.NDArray[np.int32]:
    state = state ^ lengths
    state = (state ^ (state >> np.uint32(16))) * _MIX1
    state = (state ^ (state >> np.uint32(13))) * _MIX2
    return (state ^ (state >> np.uint32(16))).view(np.int32)
