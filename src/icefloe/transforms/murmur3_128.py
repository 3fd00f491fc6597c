"""128-bit Murmur3, x64 variant, over whole Arrow arrays, for sketches (Puffin spec, apache-datasketches-theta-v1).

Like the 32-bit hash of partition buckets, it works on numpy views of the array's buffers: many values advance together,
one 16-byte block per step.
"""

from __future__ import annotations

from typing import TypeAlias

import mmh3
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefloe.transforms.murmur3 import Bytes, Offsets, binary_slices, portions

Words: TypeAlias = npt.NDArray[np.uint64]

_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
_ROUND1, _ROUND2 = np.uint64(0x52DCE729), np.uint64(0x38495AB5)
_MIX1, _MIX2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_FIVE = np.uint64(5)
_BLOCK_BITS = 4
_BLOCK, _WORD = 1 << _BLOCK_BITS, 8
_LONG_BLOCKS = 64  # a step over few values costs as much as one over many, so longer values are hashed one by one
_TAIL_MASKS = np.array([(1 << 8 * size) - 1 for size in range(_WORD + 1)], np.uint64)  # by the bytes of a tail
_MAX_WORD = 2**64 - 1


def hash_halves(array: pa.Array, seed: int) -> Words:
    """The first 64 bits of the hash of each binary value. Null slots get an arbitrary hash.

    >>> [hex(half) for half in hash_halves(pa.array([b"iceberg"]), seed=0).tolist()]
    ['0x81433da1f56eb178']
    """
    data, starts, lengths = binary_slices(array)
    hashes = np.empty(len(array), np.uint64)
    for part in portions(starts, lengths):
        _hash_part(data, starts[part], lengths[part], hashes[part], seed)
    return hashes


def _hash_part(data: Bytes, starts: Offsets, lengths: Offsets, hashes: Words, seed: int) -> None:
    start, end = int(starts[0]), int(starts[-1] + lengths[-1])
    padded = np.zeros(end - start + _BLOCK, np.uint8)  # so that a word can be read at every place
    padded[: end - start] = data[start:end]
    words = np.ndarray((len(padded) - _WORD + 1,), np.dtype("<u8"), padded.data, 0, (1,))
    blocks = np.minimum(lengths >> _BLOCK_BITS, _LONG_BLOCKS).astype(np.uint8)
    if not blocks.any():
        hashes[:] = _hash_together(words, starts - start, lengths, [], seed)
        return
    # Longest first, so that the values still having a block at each step are a prefix. Bytes sort in linear time.
    order = np.argsort(_LONG_BLOCKS - blocks, kind="stable")
    longer = len(blocks) - np.cumsum(np.bincount(blocks, minlength=_LONG_BLOCKS + 1))  # values of more blocks than that
    alone = int(longer[_LONG_BLOCKS - 1])
    for row in order[:alone].tolist():
        value = data[starts[row] : starts[row] + lengths[row]].tobytes()
        hashes[row] = mmh3.hash64(value, seed, x64arch=True)[0] & _MAX_WORD
    rows = order[alone:]
    active = (longer[: _LONG_BLOCKS - 1] - alone).tolist()
    hashes[rows] = _hash_together(words, (starts - start).take(rows), lengths.take(rows), active, seed)


def _hash_together(words: Words, starts: Offsets, lengths: Offsets, active: list[int], seed: int) -> Words:
    """Hashes of slices ordered by falling number of blocks; ``active`` counts those that have one at each step."""
    positions = starts.astype(np.intp)
    first, second = (np.full(len(starts), seed, np.uint64) for _ in range(2))
    for count in active:
        if count == 0:
            break
        _add_block(first[:count], second[:count], words, positions[:count])
        positions[:count] += _BLOCK
    tails = lengths & (_BLOCK - 1)
    first ^= _scrambled(words[positions] & _TAIL_MASKS.take(np.minimum(tails, _WORD)), _C1, 31, _C2)
    second ^= _scrambled(
        words[positions + _WORD * (tails > _WORD)] & _TAIL_MASKS.take(np.maximum(tails - _WORD, 0)), _C2, 33, _C1
    )
    for half in (first, second):
        half ^= lengths.astype(np.uint64)
    first += second
    second += first
    for half in (first, second):
        _finish(half)
    first += second
    return first


def _add_block(first: Words, second: Words, words: Words, positions: npt.NDArray[np.intp]) -> None:
    """Mix the two words at each position into both halves of the states."""
    first ^= _scrambled(words[positions], _C1, 31, _C2)
    _rotate(first, 27)
    first += second
    first *= _FIVE
    first += _ROUND1
    second ^= _scrambled(words[positions + _WORD], _C2, 33, _C1)
    _rotate(second, 31)
    second += first
    second *= _FIVE
    second += _ROUND2


def _scrambled(words: Words, before: np.uint64, bits: int, after: np.uint64) -> Words:
    words *= before
    _rotate(words, bits)
    words *= after
    return words


def _rotate(words: Words, bits: int) -> None:
    carried = words >> np.uint64(64 - bits)
    words <<= np.uint64(bits)
    words |= carried


def _finish(state: Words) -> None:
    for factor in (_MIX1, _MIX2):
        state ^= state >> np.uint64(33)
        state *= factor
    state ^= state >> np.uint64(33)
