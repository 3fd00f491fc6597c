from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from icefloe.codecs.puffin.deletion_vector import MAX_POSITION, decode_dv, encode_dv
from icefloe.errors import CorruptFile, FormatError, InputError, LimitError
from icefloe.limits import Limits
from support.shared_files import shared

GOLDEN = {
    (): "0000000cd1d339640000000000000000bf18480c",
    (1,): "00000022d1d339640100000000000000000000003a3000000100000000000000100000000100eebd85f4",
    (1, 2): "00000024d1d339640100000000000000000000003a30000001000000000001001000000001000200712fa6e8",
    (1, 3, 5, 7, 9): (
        "0000002ad1d339640100000000000000000000003a30000001000000000004001000000001000300050007000900b3fb20be"
    ),
    tuple(range(10)): "0000001fd1d339640100000000000000000000003b30000001000009000100000009005605ea77",
}
APACHE = ("all-container-types", "empty", "small-alternating-values", "small-and-large-values")


def decode(blob: bytes, cardinality: int | None = None) -> BitMap64:
    return decode_dv(blob, where="here", cardinality=cardinality)


def framed(vector: bytes) -> bytes:
    """A blob whose length, magic and checksum are right, whatever the vector is."""
    body = bytes.fromhex("d1d33964") + vector
    return len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


@pytest.mark.parametrize(("positions", "blob"), GOLDEN.items())
def test_blobs_are_the_known_bytes_in_both_directions(positions: tuple[int, ...], blob: str) -> None:
    assert encode_dv(BitMap64(positions)).hex() == blob
    assert decode(bytes.fromhex(blob), len(positions)) == BitMap64(positions)


@pytest.mark.parametrize("name", APACHE)
def test_apaches_blobs_are_written_back_byte_for_byte(name: str) -> None:
    blob = shared(f"golden/apache/deletion-vectors/{name}-position-index.bin").read_bytes()
    assert encode_dv(decode(blob)) == blob


def test_encoding_leaves_the_bitmap_as_it_is() -> None:
    positions = BitMap64(range(0, 100_000, 2))
    before = positions.serialize()
    encode_dv(positions)
    assert positions.serialize() == before


@given(st.sets(st.one_of(st.integers(0, 300), st.integers(0, MAX_POSITION)), max_size=50))
def test_any_positions_come_back(positions: set[int]) -> None:
    assert set(decode(encode_dv(BitMap64(positions)), len(positions))) == positions


@given(st.sets(st.integers(0, 2**34), max_size=20), st.data())
def test_no_changed_or_lost_byte_goes_unnoticed(positions: set[int], data: st.DataObject) -> None:
    blob = encode_dv(BitMap64(positions))
    place = data.draw(st.integers(0, len(blob) - 1))
    flipped = blob[:place] + bytes([blob[place] ^ data.draw(st.integers(1, 255))]) + blob[place + 1 :]
    for damaged in (flipped, blob[:place], blob + b"\x00"):
        with pytest.raises(FormatError, match="here"):
            decode(damaged, len(positions))


def test_a_wrong_cardinality_is_refused() -> None:
    with pytest.raises(FormatError, match="has 2 positions, its entry says 3"):
        decode(encode_dv(BitMap64([1, 2])), 3)


def test_a_right_checksum_over_no_bitmap_is_refused() -> None:
    for vector in (b"\xff" * 8, b"\x01" + b"\x00" * 7, b"\x01" + b"\x00" * 11 + b"\x3a\x30\x00\x00\xff\xff\xff\xff"):
        with pytest.raises(CorruptFile, match="Roaring"):
            decode(framed(vector))


def test_positions_beyond_a_long_are_refused_both_ways() -> None:
    beyond = BitMap64([MAX_POSITION + 1])
    with pytest.raises(InputError, match="positive long"):
        encode_dv(beyond)
    with pytest.raises(FormatError, match="beyond a long"):
        decode(framed(beyond.serialize()))


def test_the_limit_is_checked_before_decoding() -> None:
    with pytest.raises(LimitError, match="limit of 10"):
        decode_dv(b"\x00" * 11, where="here", cardinality=None, limits=Limits(deletion_vector_bytes=10))
