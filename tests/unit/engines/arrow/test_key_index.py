"""The key index finds exactly the rows whose keys are equal, for every type that can be a key."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.engines.arrow.change.key_index import KeyIndex

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "close": (pa.int64(), [0, 1, 2, 3, None]),
    "far": (pa.int64(), [-(2**63), -1, 0, 5, 2**40, 2**63 - 1, None]),
    "narrow": (pa.int32(), [-(2**31), 7, 2**31 - 1, None]),
    "text": (pa.string(), ["", "a", "b", "é", None]),
    "day": (pa.date32(), [dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(2026, 1, 1), None]),
    "moment": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(1969, 1, 1, tzinfo=dt.UTC), dt.datetime(2026, 1, 1, tzinfo=dt.UTC)],
    ),
    "amount": (pa.decimal128(9, 2), [decimal.Decimal("0.10"), decimal.Decimal("-1.00"), None]),
    "flag": (pa.bool_(), [True, False, None]),
    "id": (pa.binary(16), [bytes(16), bytes(range(16)), None]),
    "ratio": (pa.float64(), [0.0, -0.0, 1.5, math.nan, None]),
}


@st.composite
def _tables(draw: st.DrawFn) -> tuple[list[str], list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    names = draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=4, unique=True))
    row = st.tuples(*(st.sampled_from(VALUES[name][1]) for name in names))
    return names, draw(st.lists(row, max_size=12)), draw(st.lists(row, max_size=12))


def _columns(names: list[str], rows: list[tuple[Any, ...]]) -> list[pa.Array]:
    return [pa.array([row[at] for row in rows], VALUES[name][0]) for at, name in enumerate(names)]


def _equal(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    def same(left: Any, right: Any) -> bool:
        both_nan = isinstance(left, float) and isinstance(right, float) and math.isnan(left) and math.isnan(right)
        return left is not None and right is not None and (both_nan or left == right)

    return all(map(same, one, other))


@given(tables=_tables())
def test_pairs_are_the_rows_with_equal_keys(
    tables: tuple[list[str], list[tuple[Any, ...]], list[tuple[Any, ...]]],
) -> None:
    names, source, asked = tables
    index = KeyIndex(_columns(names, source), len(source))
    groups = index.key_numbers(_columns(names, asked), len(asked))
    places, rows = index.pairs(groups)
    expected = [(at, row) for at, key in enumerate(asked) for row, other in enumerate(source) if _equal(key, other)]
    assert sorted(zip(places.tolist(), rows.tolist(), strict=True)) == expected
    assert places.tolist() == sorted(places.tolist())
    assert index.row_counts(groups).sum() == len(expected)
    counts = [sum(_equal(key, other) for other in source) for key in source]
    assert index.is_unique == all(count <= 1 for count in counts)
    repeated = {at for at, count in enumerate(counts) if count > 1}
    assert set(index.repeated.tolist()) <= repeated
    assert (len(index.repeated) == 0) == (len(repeated) == 0)


@pytest.mark.parametrize("spread", [1, 1_000_003])
def test_many_numbers_are_found_whether_close_together_or_not(spread: int) -> None:
    rng = np.random.default_rng(7)
    keys = rng.permutation(50_000) * spread - 10_000
    index = KeyIndex([pa.chunked_array([keys[:10], keys[10:]])], len(keys))
    asked = np.concatenate([keys[:1000], keys[:1000] + 50_000 * spread, [-(2**63), 2**63 - 1]])
    places, rows = index.pairs(index.key_numbers([pa.array(asked)], len(asked)))
    assert places.tolist() == list(range(1000))
    assert rows.tolist() == list(range(1000))
    assert index.is_unique
    assert index.batch_rows == 0


def test_words_in_one_slot_are_all_found() -> None:
    words = np.arange(1, 4000, dtype=np.int64) << 52  # they differ in few bits
    index = KeyIndex([pa.array(words)], len(words))
    assert index.key_numbers([pa.array(words)], len(words)).min() >= 0
    assert index.key_numbers([pa.array(words + 1)], len(words)).max() == -1


def test_text_keys_ask_for_as_many_rows_as_there_are_keys() -> None:
    texts = pa.array([f"k{n}" for n in range(300)]).dictionary_encode()
    assert KeyIndex([texts, pa.array(range(300))], 300).batch_rows == 300
