"""Theta sketches: the smallest hashes, their bytes, and what they estimate."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.codecs.puffin.theta_sketch import (
    EVERYTHING,
    NOMINAL_ENTRIES,
    SEED,
    SketchBuilder,
    ThetaSketch,
    decode_sketch,
)
from icefloe.errors import CorruptFile, UnsupportedError
from icefloe.transforms.murmur3_128 import hash_halves

# Sketches of the texts "0", "1" and so on, as Spark's theta_sketch_agg returns them.
BY_SPARK = {
    0: "01030300001e0000",
    1: "01030300003acc9363424f08aa0a4276",
    2: "0104033f011acc930213864298760fa6abb1fba577351dbc38",
}


def text_hashes(count: int) -> np.ndarray:
    values = pa.array([str(number).encode() for number in range(count)], pa.binary())
    return hash_halves(values, SEED) >> np.uint64(1)


def sketch_of(hashes: np.ndarray) -> ThetaSketch:
    builder = SketchBuilder()
    builder.add(hashes)
    return builder.sketch()


@pytest.mark.parametrize("count", BY_SPARK)
def test_the_sketch_of_spark_has_the_same_hashes(count: int) -> None:
    theirs = decode_sketch(bytes.fromhex(BY_SPARK[count]), where="here")
    assert theirs.hashes.tolist() == sketch_of(text_hashes(count)).hashes.tolist()


def test_small_sketches_are_exact_and_their_bytes_are_those_of_apache_datasketches() -> None:
    assert sketch_of(text_hashes(0)).encode().hex() == "01030300001ecc93"
    assert sketch_of(text_hashes(1)).encode().hex() == BY_SPARK[1]
    two = sketch_of(text_hashes(2))
    assert two.encode()[:16].hex() == "02030300001acc93" + "02000000" + "0000803f"
    assert np.frombuffer(two.encode(), "<u8", offset=16).tolist() == sorted(text_hashes(2).tolist())


@pytest.mark.parametrize("count", [0, 1, 2, 100, NOMINAL_ENTRIES])
def test_up_to_4096_values_are_counted_exactly(count: int) -> None:
    sketch = sketch_of(np.concatenate([text_hashes(count), text_hashes(count)]))
    assert (sketch.distinct_values, sketch.theta, len(sketch.hashes)) == (count, EVERYTHING, count)


@pytest.mark.parametrize("count", [NOMINAL_ENTRIES + 1, 10_000, 200_000])
def test_more_values_are_estimated_from_the_4096_smallest_hashes(count: int) -> None:
    hashes = text_hashes(count)
    sketch, ordered = sketch_of(hashes), np.sort(hashes)
    assert sketch.hashes.tolist() == ordered[:NOMINAL_ENTRIES].tolist()
    assert sketch.theta == ordered[NOMINAL_ENTRIES]
    assert sketch.distinct_values == pytest.approx(count, rel=0.05)


@given(
    st.lists(st.integers(1, 2**63 - 2), max_size=50),
    st.lists(st.integers(0, 50), max_size=8),
    st.sampled_from([0, 5_000]),
)
def test_the_order_and_the_parts_of_hashes_do_not_matter(hashes: list[int], cuts: list[int], more: int) -> None:
    everything = np.concatenate([np.array(hashes, np.uint64), text_hashes(more)])
    builder = SketchBuilder()
    for part in np.split(everything[::-1], sorted(cuts)):
        inner = SketchBuilder()
        inner.add(part)
        builder.add_sketch(decode_sketch(inner.sketch().encode(), where="here"))
    assert builder.sketch().encode() == sketch_of(everything).encode()


@pytest.mark.parametrize("count", [0, 1, 2, 5_000])
def test_a_sketch_is_decoded_as_it_was(count: int) -> None:
    before = sketch_of(text_hashes(count))
    after = decode_sketch(before.encode(), where="here")
    assert (after.theta, after.hashes.tolist()) == (before.theta, before.hashes.tolist())


@pytest.mark.parametrize("size", [0, 7, 12, 20])
def test_a_sketch_that_is_cut_short_is_refused(size: int) -> None:
    with pytest.raises(CorruptFile, match="here: the Theta sketch is cut short"):
        decode_sketch(sketch_of(text_hashes(3)).encode()[:size], where="here")
    with pytest.raises(CorruptFile, match="here: the Theta sketch is cut short"):
        decode_sketch(bytes.fromhex(BY_SPARK[2])[:size], where="here")


def test_a_sketch_of_another_kind_is_refused() -> None:
    data = sketch_of(text_hashes(2)).encode()
    with pytest.raises(UnsupportedError, match="family 1"):
        decode_sketch(data[:2] + b"\x01" + data[3:], where="here")
    with pytest.raises(UnsupportedError, match="another seed"):
        decode_sketch(data[:6] + b"\x00\x00" + data[8:], where="here")
