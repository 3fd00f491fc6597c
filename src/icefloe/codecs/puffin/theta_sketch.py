"""Theta sketches: estimates of the number of distinct values (Puffin spec, apache-datasketches-theta-v1).

A sketch has the smallest hashes of the values, each once, and ``theta``: all hashes below it are in the sketch. The
hash of a value is that of its bytes (spec: Appendix D: Single-value serialization), without the lowest bit. A sketch of
at most 4096 values is exact. The bytes are those of Apache DataSketches: its compact form is written; its compact form
and the compressed one, in which Spark returns sketches, are read.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from icefloe.errors import CorruptFile, UnsupportedError

Hashes: TypeAlias = npt.NDArray[np.uint64]

SEED = 9001  # the default of Apache DataSketches
NOMINAL_ENTRIES = 4096  # hashes that a sketch keeps
EVERYTHING = 2**63 - 1  # the theta of a sketch that has the hashes of all values

_MERGE_AT = 16 * NOMINAL_ENTRIES
_HEAD = struct.Struct("<BBBBBBH")  # longs before the hashes, version, family, two sizes, flags, hash of the seed
_COUNT = struct.Struct("<If")  # number of hashes, sampling probability
_WORD = struct.Struct("<Q")
_COMPACT, _COMPRESSED = 3, 4  # versions
_FAMILY = 3
_SEED_HASH = 0x93CC
_READ_ONLY, _EMPTY, _IS_COMPACT, _ORDERED, _SINGLE = 2, 4, 8, 16, 32  # flags


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ThetaSketch:
    """The distinct hashes below ``theta``, in order.

    >>> ThetaSketch(hashes=np.array([5, 7], np.uint64)).distinct_values
    2
    """

    hashes: Hashes
    theta: int = EVERYTHING

    @property
    def distinct_values(self) -> int:
        """The estimated number of distinct values, rounded down; exact if the sketch has all hashes."""
        return int(len(self.hashes) * (float(EVERYTHING) / self.theta))

    def encode(self) -> bytes:
        """The bytes of the compact form; equal sketches have equal bytes.

        >>> ThetaSketch(hashes=np.array([], np.uint64)).encode().hex()
        '01030300001ecc93'
        """
        flags, count = _READ_ONLY | _IS_COMPACT | _ORDERED, len(self.hashes)
        hashes = self.hashes.astype("<u8").tobytes()
        if self.theta < EVERYTHING:
            return _head(3, flags) + _COUNT.pack(count, 1.0) + _WORD.pack(self.theta) + hashes
        if count > 1:
            return _head(2, flags) + _COUNT.pack(count, 1.0) + hashes
        return _head(1, flags | (_EMPTY if count == 0 else _SINGLE)) + hashes


def _head(longs: int, flags: int) -> bytes:
    return _HEAD.pack(longs, _COMPACT, _FAMILY, 0, 0, flags, _SEED_HASH)


class SketchBuilder:
    """Collects the hashes of values for a sketch; memory is bounded, however many there are."""

    def __init__(self) -> None:
        self._parts: list[Hashes] = []
        self._pending = 0
        self._theta = EVERYTHING

    def add(self, hashes: Hashes) -> None:
        """Add hashes of values, in any order and any number of times."""
        kept = hashes[(hashes < np.uint64(self._theta)) & (hashes > 0)]
        self._parts.append(kept)
        self._pending += len(kept)
        if self._pending > _MERGE_AT:
            self._merge()

    def add_sketch(self, sketch: ThetaSketch) -> None:
        """Add the values of another sketch."""
        self._theta = min(self._theta, sketch.theta)
        self.add(sketch.hashes)

    def sketch(self) -> ThetaSketch:
        """The sketch of all values so far."""
        return ThetaSketch(hashes=self._merge(), theta=self._theta)

    def _merge(self) -> Hashes:
        merged = np.unique(np.concatenate([np.empty(0, np.uint64), *self._parts]))
        merged = merged[merged < np.uint64(self._theta)]
        if len(merged) > NOMINAL_ENTRIES:
            self._theta = int(merged[NOMINAL_ENTRIES])
            merged = merged[:NOMINAL_ENTRIES]
        self._parts, self._pending = [merged], 0
        return merged


def decode_sketch(data: bytes, *, where: str) -> ThetaSketch:
    """The sketch in these bytes, which Apache DataSketches or Spark may have written, with its 4096 smallest hashes."""
    try:
        longs, version, family, width, count_bytes, flags, seed_hash = _HEAD.unpack_from(data)
        if family != _FAMILY or version not in (_COMPACT, _COMPRESSED):
            raise UnsupportedError(f"{where}: a Theta sketch of family {family}, version {version}", location=where)
        if flags & _EMPTY != 0:
            return ThetaSketch(hashes=np.empty(0, np.uint64))
        if seed_hash != _SEED_HASH:
            raise UnsupportedError(f"{where}: a Theta sketch with another seed than {SEED}", location=where)
        if version == _COMPRESSED:
            hashes, theta = _compressed(data, longs, width, count_bytes)
        else:
            hashes, theta = _compact(data, longs)
    except (struct.error, ValueError) as error:
        raise CorruptFile(f"{where}: the Theta sketch is cut short: {error}", location=where) from error
    builder = SketchBuilder()
    builder.add_sketch(ThetaSketch(hashes=hashes, theta=theta))
    return builder.sketch()


def _compact(data: bytes, longs: int) -> tuple[Hashes, int]:
    count = 1 if longs == 1 else _COUNT.unpack_from(data, _HEAD.size)[0]
    theta = _WORD.unpack_from(data, 2 * _WORD.size)[0] if longs > 2 else EVERYTHING
    return np.frombuffer(data, "<u8", count, longs * _WORD.size).astype(np.uint64), theta


def _compressed(data: bytes, longs: int, width: int, count_bytes: int) -> tuple[Hashes, int]:
    """Hashes as differences of ``width`` bits, the highest bit first."""
    theta = _WORD.unpack_from(data, _HEAD.size)[0] if longs > 1 else EVERYTHING
    start = longs * _WORD.size + count_bytes
    count = int.from_bytes(data[longs * _WORD.size : start], "little")
    bits = np.unpackbits(np.frombuffer(data, np.uint8, -(-count * width // 8), start))
    differences = np.zeros((count, 64), np.uint8)
    differences[:, 64 - width :] = bits[: count * width].reshape(count, width)
    return np.cumsum(np.packbits(differences, axis=1).view(">u8").reshape(-1).astype(np.uint64)), theta
