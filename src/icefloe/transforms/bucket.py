"""Values spread over buckets by a hash (spec: Bucket Transform Details, Appendix B: 32-bit Hash Requirements)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from icefloe.errors import FormatError
from icefloe.model.schema import types as iceberg
from icefloe.transforms.base import MAX_INT, HashBuckets, ResultNumbers, Transform, masked, numbers, parts
from icefloe.transforms.murmur3 import Hashes, decimal_bytes, hash_binary, hash_decimals, hash_integers

_NARROW = frozenset({iceberg.INT, iceberg.DATE})
_NANOSECONDS = frozenset({iceberg.TIMESTAMP_NS, iceberg.TIMESTAMPTZ_NS})
_INTEGERS = _NARROW | _NANOSECONDS | {iceberg.LONG, iceberg.TIME, iceberg.TIMESTAMP, iceberg.TIMESTAMPTZ}
_BYTES = frozenset({iceberg.STRING, iceberg.BINARY, iceberg.UUID})


@dataclass(frozen=True, slots=True)
class Bucket(Transform):
    """A hash of the value, modulo the number of buckets."""

    count: int

    def __post_init__(self) -> None:
        if not 1 <= self.count <= MAX_INT:
            raise FormatError(f"bucket[{self.count}]: the number of buckets is 1 to {MAX_INT}", transform=str(self))

    def __str__(self) -> str:
        return f"bucket[{self.count}]"

    def accepts(self, source: iceberg.Type) -> bool:
        """Numbers that are exact, dates, times, texts and bytes."""
        return source in _INTEGERS or source in _BYTES or isinstance(source, (iceberg.Decimal, iceberg.Fixed))

    def result_type(self, source: iceberg.Type) -> iceberg.Type:
        """An int from 0 to the number of buckets less one."""
        return iceberg.INT

    @property
    def result_numbers(self) -> ResultNumbers:
        """The numbers of the buckets."""
        return ResultNumbers(lowest=0, highest=self.count - 1)

    def spark_method(self, source: iceberg.Type) -> HashBuckets:
        """The hash of Spark is that of the format."""
        return HashBuckets(self.count)

    def _apply(self, array: pa.Array, source: iceberg.Type) -> pa.Array:
        return masked(modulo(_hashes(array, source), self.count), pa.int32(), array)


def _hashes(array: pa.Array, source: iceberg.Type) -> Hashes:
    if isinstance(source, iceberg.Decimal):
        return hash_decimals(array)
    if source in _NARROW:
        return hash_integers(numbers(array, np.int32))
    if source in _NANOSECONDS:  # hashed as microseconds, so that buckets outlive a change of the unit
        return hash_integers(numbers(array, np.int64), 1000)
    return hash_integers(numbers(array, np.int64)) if source in _INTEGERS else hash_binary(array)


def hashed_bytes(array: pa.Array, source: iceberg.Type) -> pa.Array:
    """The bytes that are hashed of each value, null where the value is; the array has the Arrow type of the source.

    >>> hashed_bytes(pa.array([1, None], pa.int32()), iceberg.INT).to_pylist()
    [b'\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00', None]
    """
    if isinstance(source, iceberg.Decimal):
        return decimal_bytes(array)
    if source not in _INTEGERS:
        return array.cast(pa.large_binary())
    longs = numbers(array, np.int32 if source in _NARROW else np.int64).astype("<i8")
    longs = longs // 1000 if source in _NANOSECONDS else longs
    return masked(longs, pa.binary(8), array).cast(pa.large_binary())


def modulo(hashes: Hashes, count: int) -> Hashes:
    """The hashes without their sign, modulo ``count``, computed in place."""
    divisor = np.int32(count)
    for part in parts(len(hashes)):
        chunk = hashes[part]
        chunk &= np.int32(MAX_INT)
        # By way of the quotient: numpy divides by one number with vector instructions, but has none for remainders.
        chunk -= chunk // divisor * divisor
    return hashes
