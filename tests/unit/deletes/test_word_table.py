"""The hash table of words finds exactly the equal words, also those that share a slot."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.deletes.word_table import Words, WordTable, bits_of, slots_of, spread, words_of

WORDS = st.lists(st.sampled_from([0, 1, 2, 3, 2**32, 2**32 + 1, 2**63, 2**64 - 1, *range(100, 140)]), max_size=40)


def words(values: list[int]) -> Words:
    return np.array(values, np.uint64)


@given(stored=WORDS, searched=WORDS)
def test_all_pairs_of_equal_words_are_found(stored: list[int], searched: list[int]) -> None:
    pairs = [
        pair
        for indices, rows in WordTable(words(stored)).equal_words(words(searched))
        for pair in zip(indices.tolist(), rows.tolist(), strict=True)
    ]
    assert sorted(pairs) == [
        (at, row) for at, one in enumerate(searched) for row, other in enumerate(stored) if one == other
    ]


@given(stored=WORDS, searched=WORDS)
def test_with_first_only_each_word_has_one_pair_at_most(stored: list[int], searched: list[int]) -> None:
    found = {}
    for indices, rows in WordTable(words(stored)).equal_words(words(searched), first_only=True):
        for at, row in zip(indices.tolist(), rows.tolist(), strict=True):
            assert at not in found
            found[at] = stored[row]
    assert found == {at: word for at, word in enumerate(searched) if word in stored}


def test_neighbouring_words_are_spread_over_the_slots() -> None:
    slots = slots_of(spread(np.arange(1 << 12, dtype=np.uint64)), 12)
    assert len(np.unique(slots)) > 1 << 11
    assert slots.min() >= 0
    assert slots.max() < 1 << 12


@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()])
def test_every_nan_is_the_same_word_and_the_zeros_are_not(type_: pa.DataType) -> None:
    width = type_.to_pandas_dtype()
    other_nan = (np.array([math.nan], width).view(f"i{width().itemsize}") + 1).view(width)[0]
    found = words_of(bits_of(pa.array(np.array([math.nan, other_nan, 0.0, -0.0], width)))).tolist()
    assert found[0] == found[1]
    assert found[2] != found[3]
