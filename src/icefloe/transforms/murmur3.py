"""32-bit Murmur3, x86 variant, seed 0, over whole Arrow arrays (spec: Appendix B: 32-bit Hash Requirements).

The hash works on numpy views of the array's buffers: many values advance together, one 4-byte block per step, as many
at a time as fit into the processor's cache. Null slots get an arbitrary hash; the caller masks them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import mmh3
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefloe.transforms.base import ROWS, Longs, parts

Words: TypeAlias = npt.NDArray[np.uint32]
Hashes: TypeAlias = npt.NDArray[np.int32]
Bytes: TypeAlias = npt.NDArray[np.uint8]
Offsets: TypeAlias = npt.NDArray[np.int32] | npt.NDArray[np.int64]

_C1, _C2 = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)
_ROUND, _MIX1, _MIX2 = np.uint32(0xE6546B64), np.uint32(0x85EBCA6B), np.uint32(0xC2B2AE35)
_FIVE = np.uint32(5)
_BLOCK_BITS = 2  # masks and shifts, for numpy has no vector code for remainders
_BLOCK = 1 << _BLOCK_BITS
_TAIL_MASKS = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF], np.uint32)  # by the number of bytes after the last block

_BYTES = 2**21
# A step over few values costs as much as one over many, so values much longer than the others, and all very long ones,
# are cheaper one by one.
_FEW_VALUES = 64
_SHORT_BLOCKS, _LONG_BLOCKS = 16, 128

_DECIMAL_WIDTH = 16
# A magnitude of n bytes needs one more as soon as its highest bit would be taken for the sign.
_BYTE_EDGES = [np.uint64(1 << (8 * size - 1)) for size in range(1, 9)]


def hash_integers(values: npt.NDArray[np.int32] | Longs, divisor: int = 1) -> Hashes:
    """Hashes of integers, each floor-divided and then taken as the 8 little-endian bytes of a long.

    >>> hash_integers(np.array([34], np.int64)).tolist()
    [2017239379]
    """
    hashes = np.empty(len(values), np.uint32)
    for part in parts(len(values)):
        longs = values[part].astype(np.int64, order="C", copy=False)
        longs = longs if divisor == 1 else longs // divisor
        _hash_columns(longs.view(np.uint32).reshape(-1, 2), hashes[part])
    return hashes.view(np.int32)


def hash_binary(array: pa.Array) -> Hashes:
    """Hashes of the bytes of strings, binaries and fixed-size binaries.

    >>> hash_binary(pa.array(["iceberg"])).tolist()
    [1210000089]
    """
    if pa.types.is_fixed_size_binary(array.type):
        return _hash_fixed(array)
    hashes = np.empty(len(array), np.uint32)
    _hash_slices(*binary_slices(array), hashes)
    return hashes.view(np.int32)


def binary_slices(array: pa.Array) -> tuple[Bytes, Offsets, Offsets]:
    """The bytes of strings or binaries of varying length, and where each value starts in them and how long it is."""
    if pa.types.is_string_view(array.type) or pa.types.is_binary_view(array.type):
        array = array.cast(pa.large_binary())
    if len(array) == 0:
        return _buffer(None), np.empty(0, np.int32), np.empty(0, np.int32)
    large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    width = 8 if large else 4
    offsets = np.frombuffer(array.buffers()[1], f"i{width}", count=len(array) + 1, offset=array.offset * width)
    return _buffer(array.buffers()[2]), offsets[:-1], np.diff(offsets)


def _hash_fixed(array: pa.Array) -> Hashes:
    count, width = len(array), array.type.byte_width
    hashes = np.empty(count, np.uint32)
    data = _buffer(array.buffers()[1])[array.offset * width : (array.offset + count) * width]
    if width > 0 and width % _BLOCK == 0 and width // _BLOCK <= _SHORT_BLOCKS:
        words = data.view(np.uint32).reshape(count, width // _BLOCK)
        for part in parts(count):
            _hash_columns(words[part], hashes[part])
    else:
        _hash_slices(data, np.arange(count, dtype=np.int64) * width, np.full(count, width, np.int64), hashes)
    return hashes.view(np.int32)


def hash_decimals(array: pa.Array) -> Hashes:
    """Hashes of unscaled values, each as its shortest two's-complement big-endian bytes.

    >>> from decimal import Decimal
    >>> hash_decimals(pa.array([Decimal("14.20")])).tolist()
    [-500754589]
    """
    start, end = array.offset * _DECIMAL_WIDTH, (array.offset + len(array)) * _DECIMAL_WIDTH
    stored = _buffer(array.buffers()[1])[start:end].view(np.uint64).reshape(-1, 2)
    hashes = np.empty(len(array), np.uint32)
    for part in parts(len(array)):
        lengths = _shortest(stored[part])
        big_endian = np.ascontiguousarray(stored[part][:, ::-1]).byteswap(inplace=True).view(np.uint8)
        ends = np.arange(1, len(lengths) + 1, dtype=np.int64) * _DECIMAL_WIDTH
        _hash_slices(big_endian.reshape(-1), ends - lengths, lengths, hashes[part])
    return hashes.view(np.int32)


def decimal_bytes(array: pa.Array) -> pa.Array:
    """Unscaled values as their shortest two's-complement big-endian bytes, null where the value is.

    >>> from decimal import Decimal
    >>> decimal_bytes(pa.array([Decimal("14.20"), None])).to_pylist()
    [b'\\x05\\x8c', None]
    """
    start, end = array.offset * _DECIMAL_WIDTH, (array.offset + len(array)) * _DECIMAL_WIDTH
    stored = _buffer(array.buffers()[1])[start:end].view(np.uint64).reshape(-1, 2)
    lengths = np.where(np.asarray(array.is_valid()), _shortest(stored), 0)
    big_endian = np.ascontiguousarray(stored[:, ::-1]).byteswap(inplace=True).view(np.uint8).reshape(-1, _DECIMAL_WIDTH)
    data = big_endian[np.arange(_DECIMAL_WIDTH) >= _DECIMAL_WIDTH - lengths[:, None]]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    validity = None if array.null_count == 0 else array.is_valid().buffers()[1]
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(array), buffers, array.null_count)


def _shortest(halves: npt.NDArray[np.uint64]) -> Longs:
    """How many bytes each 128-bit number needs in two's complement; its low half comes first."""
    sign = (halves[:, 1].view(np.int64) >> 63).view(np.uint64)
    low, high = halves[:, 0] ^ sign, halves[:, 1] ^ sign
    lengths = np.ones(len(halves), np.uint8)
    if high.any():
        low[high > 0] = np.uint64(2**64 - 1)
        _count_edges(high, lengths)
    _count_edges(low, lengths)
    return lengths.astype(np.int64)


def _count_edges(magnitudes: npt.NDArray[np.uint64], lengths: npt.NDArray[np.uint8]) -> None:
    """Add a byte for every edge that a magnitude has reached."""
    highest = magnitudes.max()
    for edge in _BYTE_EDGES:
        if edge > highest:
            break
        lengths += (magnitudes >= edge).view(np.uint8)


def _buffer(buffer: pa.Buffer | None) -> Bytes:
    return np.frombuffer(b"" if buffer is None else buffer, np.uint8)


def _hash_columns(words: Words, hashes: Words) -> None:
    """Hash values that all have the same whole number of blocks: a row of words each."""
    word, spare = np.empty_like(hashes), np.empty_like(hashes)
    hashes[:] = 0
    for column in words.T:
        _add_block(hashes, column, word, spare)
    hashes ^= np.uint32(words.shape[1] * _BLOCK)
    _finish(hashes, spare)


def _hash_slices(data: Bytes, starts: Offsets, lengths: Offsets, hashes: Words) -> None:
    """Hash slices of one buffer that follow each other."""
    for part in portions(starts, lengths):
        _hash_part(data, starts[part], lengths[part], hashes[part])


def portions(starts: Offsets, lengths: Offsets) -> Iterator[slice]:
    """Ranges of slices of one buffer that follow each other, each of a limited number of rows and bytes."""
    first = 0
    while first < len(starts):
        last = min(first + ROWS, len(starts))
        limit = int(starts[first]) + _BYTES
        if starts[last - 1] + lengths[last - 1] > limit:
            last = max(first + 1, first + int(np.searchsorted(starts[first:last], limit)) - 1)
        yield slice(first, last)
        first = last


def _hash_part(data: Bytes, starts: Offsets, lengths: Offsets, hashes: Words) -> None:
    blocks = np.minimum(lengths >> _BLOCK_BITS, _LONG_BLOCKS + 1).astype(np.uint8)
    longer = len(blocks) - np.cumsum(np.bincount(blocks, minlength=_LONG_BLOCKS + 2))  # rows of more than so many
    limit = min(max(int(np.argmax(longer <= _FEW_VALUES)), _SHORT_BLOCKS), _LONG_BLOCKS)
    alone = int(longer[limit])
    # Longest first, so that the values still having a block at each step are a prefix. Bytes sort in linear time.
    order = np.argsort(_LONG_BLOCKS + 1 - blocks, kind="stable")
    for row in order[:alone].tolist():
        hashes[row] = mmh3.hash(data[starts[row] : starts[row] + lengths[row]].tobytes(), 0, False)
    if alone < len(order):
        rows, start = order[alone:], starts[0]
        end = starts[-1] + lengths[-1]
        active = (longer[:limit] - alone).tolist()
        hashes[rows] = _hash_together(data[start:end], (starts - start).take(rows), lengths.take(rows), active)


def _hash_together(data: Bytes, starts: Offsets, lengths: Offsets, active: list[int]) -> Words:
    """Hashes of slices ordered by falling number of blocks; ``active`` counts those that have one at each step."""
    # The bytes four times, each time one later: every word of the data, aligned or not, is an aligned word here.
    quarter = len(data) // _BLOCK + 1
    shifted = np.empty((_BLOCK, quarter * _BLOCK), np.uint8)
    for shift, row in enumerate(shifted):
        row[: max(len(data) - shift, 0)] = data[shift:]
    words = shifted.reshape(-1).view(np.uint32)
    positions = ((starts & (_BLOCK - 1)) * quarter + (starts >> _BLOCK_BITS)).astype(np.intp, copy=False)
    state = np.zeros(len(starts), np.uint32)
    word, spare = np.empty_like(state), np.empty_like(state)
    for count in active:
        if count == 0:
            break
        np.take(words, positions[:count], out=word[:count], mode="clip")  # any other mode fills a copy first
        _add_block(state[:count], word[:count], word[:count], spare[:count])
        positions[:count] += 1
    np.take(words, positions, out=word, mode="clip")
    word &= _TAIL_MASKS.take(lengths & (_BLOCK - 1))
    _scramble(word, word, spare)
    state ^= word
    state ^= lengths.astype(np.uint32)
    _finish(state, spare)
    return state


def _add_block(state: Words, words: Words, word: Words, spare: Words) -> None:
    """Mix a word into every state; ``word`` and ``spare`` are scratch space."""
    _scramble(words, word, spare)
    state ^= word
    _rotate(state, 13, spare)
    state *= _FIVE
    state += _ROUND


def _scramble(words: Words, out: Words, spare: Words) -> None:
    np.multiply(words, _C1, out=out)
    _rotate(out, 15, spare)
    out *= _C2


def _rotate(words: Words, bits: int, spare: Words) -> None:
    np.right_shift(words, np.uint32(32 - bits), out=spare)
    words <<= np.uint32(bits)
    words |= spare


def _finish(state: Words, spare: Words) -> None:
    for bits, factor in ((16, _MIX1), (13, _MIX2)):
        np.right_shift(state, np.uint32(bits), out=spare)
        state ^= spare
        state *= factor
    np.right_shift(state, np.uint32(16), out=spare)
    state ^= spare
