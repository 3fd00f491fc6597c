"""Deletion vectors: sets of row positions as ``deletion-vector-v1`` blobs (Puffin spec; V4 proposal).

A blob is ``length (4 bytes, big-endian) | D1 D3 39 64 | vector | CRC-32 (4 bytes, big-endian)``. Length and checksum
cover magic and vector; the vector is a 64-bit Roaring bitmap in its portable form, little-endian.
"""

from __future__ import annotations

import struct
import zlib

from pyroaring import BitMap64

from icefloe.errors import CorruptFile, FormatError, InputError, LimitError, damaged
from icefloe.limits import DEFAULT, Limits

MAGIC = bytes.fromhex("d1d33964")
MIN_BLOB_BYTES = 20  # the blob of no positions
MAX_BLOB_BYTES = 2**31 - 1
MAX_POSITION = 2**63 - 1

_WORD = struct.Struct(">I")
_FRAME = 2 * _WORD.size  # the length before and the checksum after the bitmap; the length counts neither


def encode_dv(bitmap: BitMap64) -> bytes:
    """The blob of a set of positions; equal sets give equal bytes.

    >>> encode_dv(BitMap64()).hex()
    '0000000cd1d339640000000000000000bf18480c'
    """
    if len(bitmap) > 0 and bitmap.max() > MAX_POSITION:
        raise InputError(f"row position {bitmap.max()} is not a positive long", position=bitmap.max())
    compact = bitmap.copy()
    compact.run_optimize()
    body = MAGIC + compact.serialize()
    if len(body) + _FRAME > MAX_BLOB_BYTES:
        raise LimitError(f"a deletion vector of {len(body)} bytes does not fit in a blob; rewrite the data file")
    return b"".join((_WORD.pack(len(body)), body, _WORD.pack(zlib.crc32(body))))


def decode_dv(data: bytes, *, where: str, cardinality: int | None, limits: Limits = DEFAULT) -> BitMap64:
    """The positions in a blob, checked against its length, magic, checksum and, if known, number of positions."""
    if len(data) > limits.deletion_vector_bytes:
        raise LimitError(
            f"{where}: a deletion vector of {len(data)} bytes, more than the limit of {limits.deletion_vector_bytes}",
            location=where,
        )
    vector = _vector_of(data, where)
    try:
        bitmap = BitMap64.deserialize(vector)
    except (ValueError, IndexError) as error:
        raise damaged(error, f"{where}: the deletion vector is no Roaring bitmap: {error}", location=where) from error
    if len(bitmap) > 0 and bitmap.max() > MAX_POSITION:
        raise FormatError(f"{where}: the deletion vector has position {bitmap.max()}, beyond a long", location=where)
    if cardinality is not None and len(bitmap) != cardinality:
        raise FormatError(
            f"{where}: the deletion vector has {len(bitmap)} positions, its entry says {cardinality}", location=where
        )
    return bitmap


def _vector_of(data: bytes, where: str) -> bytes:
    """The serialized bitmap inside a blob whose frame is right."""
    if len(data) < MIN_BLOB_BYTES:
        raise CorruptFile(f"{where}: a deletion vector of {len(data)} bytes is cut short", location=where)
    (length,) = _WORD.unpack_from(data)
    if length != len(data) - _FRAME:
        raise CorruptFile(
            f"{where}: the deletion vector says {length} bytes, there are {len(data) - _FRAME}", location=where
        )
    body = data[_WORD.size : -_WORD.size]
    if not body.startswith(MAGIC):
        raise CorruptFile(f"{where}: these bytes are no deletion vector", location=where)
    (checksum,) = _WORD.unpack_from(data, len(data) - _WORD.size)
    if zlib.crc32(body) != checksum:
        raise CorruptFile(f"{where}: the checksum of the deletion vector is wrong", location=where)
    return body[len(MAGIC) :]
