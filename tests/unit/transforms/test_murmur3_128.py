"""128-bit hashes of whole arrays are those of the library that hashes one value."""

from __future__ import annotations

import mmh3
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.transforms.murmur3_128 import hash_halves

LENGTHS = (0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 255, 1007, 1008, 1023, 1024, 1025, 5000)
TYPES = (pa.binary(), pa.large_binary(), pa.binary_view())


def half(value: bytes, seed: int) -> int:
    return int(mmh3.hash64(value, seed, x64arch=True)[0]) % 2**64


@given(st.lists(st.binary(max_size=70)), st.integers(0, 2**32 - 1), st.integers(0, 3))
def test_hashes_are_those_of_single_values(values: list[bytes], seed: int, start: int) -> None:
    array = pa.array(values, pa.binary()).slice(start)
    assert hash_halves(array, seed).tolist() == [half(value, seed) for value in values[start:]]


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_values_of_every_length_have_their_hash(type_: pa.DataType) -> None:
    values = [bytes(number * 7 % 256 for number in range(length)) for length in LENGTHS] * 3
    assert hash_halves(pa.array(values, type_), 9001).tolist() == [half(value, 9001) for value in values]


def test_many_values_are_hashed_in_portions() -> None:
    values = [str(number).encode() * (number % 9) for number in range(70_000)]
    values[40_000] = b"long" * 1_000_000
    assert hash_halves(pa.array(values, pa.binary()), 5).tolist() == [half(value, 5) for value in values]
