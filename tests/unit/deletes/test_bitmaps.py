"""Sets of positions made of arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from icefloe.deletes.bitmaps import bitmap_of
from icefloe.errors import FormatError

EDGES = st.sampled_from([0, 1, 65_535, 65_536, 2**32 - 1, 2**32, 2**32 + 1, 2**40, 2**63 - 1])


@given(st.lists(st.integers(0, 70_000) | EDGES, max_size=60))
def test_a_bitmap_has_exactly_the_positions_of_the_array(positions: list[int]) -> None:
    assert bitmap_of(np.array(positions, np.int64)) == BitMap64(positions)


@given(st.integers(0, 2**40), st.integers(1, 100_000))
def test_a_run_of_positions_is_kept_as_a_run(start: int, length: int) -> None:
    found = bitmap_of(np.arange(start, start + length))
    assert (len(found), found.min(), found.max()) == (length, start, start + length - 1)


def test_positions_that_only_look_like_a_run_are_none() -> None:
    assert bitmap_of(np.array([1, 3, 3])) == BitMap64([1, 3])
    assert bitmap_of(np.array([3, 2, 1])) == BitMap64([1, 2, 3])


def test_a_negative_position_is_refused() -> None:
    with pytest.raises(FormatError, match="row position -1 is negative"):
        bitmap_of(np.array([4, -1]))
