"""The vectorised hash equals the reference implementation and the vectors of the spec's Appendix B."""

from __future__ import annotations

import decimal
import itertools
import random
import struct
import uuid
from typing import Any

import mmh3
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.transforms.murmur3 import hash_binary, hash_decimals, hash_integers


def test_integers_hash_as_in_the_specification() -> None:
    seconds = 22 * 3600 + 31 * 60 + 8
    timestamp = 1_510_871_468_000_000  # 2017-11-16T22:31:08
    vectors = {34: 2017239379, 17_486: -653330422, seconds * 1_000_000: -662762989, timestamp: -2047944441}
    assert hash_integers(np.array(list(vectors), np.int64)).tolist() == list(vectors.values())


def test_bytes_hash_as_in_the_specification() -> None:
    assert hash_binary(pa.array(["iceberg"])).tolist() == [1210000089]
    assert hash_binary(pa.array([b"\x00\x01\x02\x03"])).tolist() == [-188683207]
    assert hash_binary(pa.array([b"\x00\x01\x02\x03"], pa.binary(4))).tolist() == [-188683207]
    value = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes
    assert hash_binary(pa.array([value], pa.binary(16))).tolist() == [1488055340]


def test_decimals_hash_as_in_the_specification_whatever_their_scale() -> None:
    assert hash_decimals(pa.array([decimal.Decimal("14.20")], pa.decimal128(9, 2))).tolist() == [-500754589]
    assert hash_decimals(pa.array([decimal.Decimal(1420)], pa.decimal128(38, 0))).tolist() == [-500754589]


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_integers_equal_the_reference(values: list[int]) -> None:
    expected = [mmh3.hash(struct.pack("<q", value)) for value in values]
    assert hash_integers(np.array(values, np.int64)).tolist() == expected


@given(st.lists(st.none() | st.text(max_size=40)), st.integers(0, 3))
def test_strings_equal_the_reference_also_in_slices(values: list[str | None], start: int) -> None:
    for type_ in (pa.string(), pa.large_string(), pa.string_view()):
        array = pa.array(values, type_).slice(start)
        found = [None if v is None else h for v, h in zip(array.to_pylist(), hash_binary(array).tolist(), strict=True)]
        assert found == [None if v is None else mmh3.hash(v) for v in values[start:]]


@given(st.lists(st.binary(max_size=20) | st.integers(500, 530).map(lambda n: b"\xfe" * n)))
def test_binaries_of_any_length_equal_the_reference(values: list[bytes]) -> None:
    assert hash_binary(pa.array(values, pa.binary())).tolist() == [mmh3.hash(value) for value in values]


@given(st.integers(1, 9).flatmap(lambda n: st.lists(st.binary(min_size=n, max_size=n), min_size=1)), st.integers(0, 2))
def test_fixed_size_binaries_equal_the_reference_also_in_slices(values: list[bytes], start: int) -> None:
    array = pa.array(values, pa.binary(len(values[0]))).slice(start)
    assert hash_binary(array).tolist() == [mmh3.hash(value) for value in values[start:]]


def shortest(unscaled: int) -> bytes:
    length = next(n for n in range(1, 17) if -(2 ** (8 * n - 1)) <= unscaled < 2 ** (8 * n - 1))
    return unscaled.to_bytes(length, "big", signed=True)


BOUNDARIES = [sign * 2**bits + step for bits in range(120) for sign in (1, -1) for step in (-1, 0, 1)]


@given(st.lists(st.integers(-(10**38) + 1, 10**38 - 1) | st.sampled_from(BOUNDARIES)), st.integers(0, 2))
def test_decimals_equal_the_reference_also_in_slices(values: list[int], start: int) -> None:
    array = pa.array([decimal.Decimal(value) for value in values], pa.decimal128(38, 0)).slice(start)
    assert hash_decimals(array).tolist() == [mmh3.hash(shortest(value)) for value in values[start:]]


def test_decimals_at_every_byte_boundary_are_as_short_as_they_can_be() -> None:
    array = pa.array([decimal.Decimal(value) for value in BOUNDARIES], pa.decimal128(38, 0))
    assert hash_decimals(array).tolist() == [mmh3.hash(shortest(value)) for value in BOUNDARIES]


@pytest.mark.parametrize("type_", [pa.string(), pa.binary(), pa.binary(4), pa.large_string()])
def test_no_values_have_no_hashes(type_: Any) -> None:
    assert hash_binary(pa.array([], type_)).tolist() == []
    assert hash_binary(pa.nulls(2, type_)).shape == (2,)


def lengths_of(kind: str) -> list[int]:
    draw = random.Random(kind)
    count = 70_000  # more than two rounds of the loop over parts
    if kind == "equal":
        return [9] * count
    if kind == "with a few long ones":
        return [*draw.choices(range(30), k=count), 200, 4 * 2**20, 65, 0, 2**20, *draw.choices(range(600), k=20)]
    if kind == "long":
        return draw.choices(range(450, 560), k=6000)
    return draw.choices(range(140), k=count)


@pytest.mark.parametrize("kind", ["equal", "with a few long ones", "long", "mixed"])
@pytest.mark.parametrize("type_", [pa.binary(), pa.large_binary()])
def test_many_values_of_all_lengths_equal_the_reference(kind: str, type_: Any) -> None:
    offsets = np.cumsum([3, *lengths_of(kind)]).astype(np.int32 if type_ == pa.binary() else np.int64)
    data = np.random.default_rng(1).integers(0, 256, offsets[-1], np.uint8)
    array = pa.Array.from_buffers(type_, len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    raw, ends = data.tobytes(), offsets.tolist()
    expected = [mmh3.hash(raw[start:end]) for start, end in itertools.pairwise(ends)]
    assert hash_binary(array).tolist() == expected
    assert hash_binary(array.slice(5, 40_000)).tolist() == expected[5:40_005]


@pytest.mark.parametrize("width", [1, 3, 4, 16, 64, 68, 600])
def test_many_values_of_one_width_equal_the_reference(width: int) -> None:
    data = np.random.default_rng(width).integers(0, 256, 33_000 * width, np.uint8)
    array = pa.Array.from_buffers(pa.binary(width), 33_000, [None, pa.py_buffer(data)])
    raw = data.tobytes()
    expected = [mmh3.hash(raw[i * width : (i + 1) * width]) for i in range(33_000)]
    assert hash_binary(array).tolist() == expected
    assert hash_binary(array.slice(32_990)).tolist() == expected[32_990:]


@given(st.lists(st.integers(-(2**63), 2**63 - 1)), st.sampled_from([1, 1000]))
def test_integers_are_divided_towards_minus_infinity(values: list[int], divisor: int) -> None:
    expected = [mmh3.hash(struct.pack("<q", value // divisor)) for value in values]
    assert hash_integers(np.array(values, np.int64), divisor).tolist() == expected


@given(st.lists(st.integers(-(2**31), 2**31 - 1)))
def test_ints_hash_as_longs(values: list[int]) -> None:
    assert hash_integers(np.array(values, np.int32)).tolist() == hash_integers(np.array(values, np.int64)).tolist()
