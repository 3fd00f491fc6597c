"""Damaged deletion vectors and Puffin files are refused with an error of ours, or read; nothing else."""

from __future__ import annotations

import contextlib
import struct
import zlib

from hypothesis import given
from pyroaring import BitMap64

from icefloe.codecs.puffin.deletion_vector import MAGIC, decode_dv, encode_dv
from icefloe.codecs.puffin.puffin_file import Blob, decode_puffin_footer, encode_puffin
from icefloe.errors import FormatError, UnsupportedError
from support.damage import damaged

POSITIONS = BitMap64([0, 1, 2, 3, 70_000, 2**33, *range(5_000, 6_000), *range(100_000, 900_000, 7)])
VECTOR = encode_dv(POSITIONS)
SMALL = encode_dv(BitMap64([1, 5, *range(100, 200), 2**40]))
PUFFIN = encode_puffin([Blob(type="note", data=b"hello"), Blob(type="deletion-vector-v1", data=SMALL)], "fuzz")[0]


@given(damaged(VECTOR))
def test_a_damaged_blob_is_refused_or_unchanged(data: bytes) -> None:
    with contextlib.suppress(FormatError):
        assert decode_dv(data, where="blob", cardinality=None) == POSITIONS


@given(damaged(SMALL[8:-4]))
def test_a_damaged_bitmap_in_a_right_frame_is_refused_or_read(vector: bytes) -> None:
    body = MAGIC + vector
    data = struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))
    with contextlib.suppress(FormatError):
        positions = decode_dv(data, where="blob", cardinality=None)
        # What was read is a set: it can be written, and read again as the same set.
        assert decode_dv(encode_dv(positions), where="again", cardinality=len(positions)) == positions


@given(damaged(PUFFIN))
def test_a_damaged_puffin_file_is_refused_or_read(data: bytes) -> None:
    with contextlib.suppress(FormatError, UnsupportedError):
        decode_puffin_footer(data, where="file")
