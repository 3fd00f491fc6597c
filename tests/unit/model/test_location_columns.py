"""Columns of locations compared as single locations are, and cheaply where nothing needs to be brought to one form."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icefloe.model import location_columns
from icefloe.model.location_columns import (
    canonical,
    canonical_ranges,
    index_of,
    is_among,
    respelled,
    spelled_alike,
    undecided,
)
from icefloe.model.locations import S3, resolve, same_location
from support.selection import examples

TABLE = "file:///wh/t"
STORES = [
    "",
    "file:",
    "file://",
    "file://localhost",
    "FILE://",
    "file://host",
    "s3://b",
    "s3a://b",
    "S3N://b",
    "gs://b",
]
PATHS = ["/wh/t/a", "/wh/t//a", "//wh/t/a", "/wh/t/data/b", "/wh/u/a", "/wh/u:/a", "/wh/u://a", "/a"]
LOCATIONS = st.sampled_from([store + path for store in STORES for path in PATHS]) | st.sampled_from(["a", "data/b"])
COLUMNS = st.lists(LOCATIONS, max_size=6)


def texts(values: list[str] | list[str | None]) -> pa.Array:
    return pa.array(values, pa.string())


def same(one: str, other: str) -> bool:
    return same_location(resolve(one, TABLE), resolve(other, TABLE), same_schemes=S3)


@pytest.mark.slow
@settings(max_examples=examples(1000))
@given(COLUMNS, COLUMNS)
def test_locations_are_found_in_any_spelling(names: list[str], locations: list[str]) -> None:
    found = index_of(texts(names), texts(locations), TABLE).to_pylist()
    for name, place in zip(names, found, strict=True):
        matches = [number for number, location in enumerate(locations) if same(name, location)]
        equal = [number for number, location in enumerate(locations) if name == location]
        assert place == next(iter([*equal, *matches]), None)
    assert is_among(texts(names), texts(locations), TABLE).to_pylist() == [place is not None for place in found]


@settings(max_examples=examples(1000))
@given(COLUMNS, COLUMNS)
def test_columns_that_are_spelled_alike_have_no_two_spellings_of_one_file(names: list[str], others: list[str]) -> None:
    if spelled_alike(texts(names), texts(others)):
        both = [*names, *others]
        assert all(one == other or not same(one, other) for one in both for other in both)


@pytest.mark.slow
@settings(max_examples=examples(2000))
@given(LOCATIONS, LOCATIONS, LOCATIONS)
def test_a_canonical_range_holds_whatever_the_range_held(lower: str, upper: str, inside: str) -> None:
    if lower <= inside <= upper:
        low, high = (end[0].as_py() for end in canonical_ranges(texts([lower]), texts([upper]), TABLE))
        held = canonical(texts([inside]), TABLE)[0].as_py()
        assert low is None or low <= held <= high


@pytest.mark.parametrize(
    ("lower", "upper", "known"),
    [
        ("file:///wh/a", "file:///wh/b", True),
        ("s3://b/x", "s3://b/y", True),
        ("/wh/a", "file:///wh/b", False),
        ("file:/wh/a", "file:///wh/b", False),
        ("fil", "file:///wh/b", False),
        ("file:///wh//a", "file:///wh/b", False),
        (None, "file:///wh/b", False),
    ],
)
def test_a_range_is_known_only_if_all_of_it_is_spelled_alike(lower: str | None, upper: str, known: bool) -> None:
    low, high = canonical_ranges(texts([lower]), texts([upper]), TABLE)
    assert (low.null_count == 0, high.null_count == 0) == (known, known)


def test_null_is_never_found_and_stays_null() -> None:
    names = texts([None, "/wh/t/a"])
    assert index_of(names, texts(["file:///wh/t/a"]), TABLE).to_pylist() == [None, 0]
    assert respelled(names, texts(["file:///wh/t/a"]), TABLE).to_pylist() == [None, "file:///wh/t/a"]
    assert index_of(texts([None]), texts([None]), TABLE).to_pylist() == [None]


def test_a_relative_location_is_one_of_the_table() -> None:
    assert index_of(texts(["data/a"]), texts(["/wh/t/data/a"]), TABLE).to_pylist() == [0]
    assert index_of(texts(["data/a"]), texts(["/wh/t/data/a"]), None).to_pylist() == [None]


@pytest.mark.parametrize(
    ("names", "locations"),
    [
        (["file:///wh/t/a"], ["file:///wh/t/a", "/elsewhere/b"]),
        (["file:///wh/t/a", "file:///wh/t/gone"], ["file:///wh/t/a", "file:///wh/t/b"]),
        (["s3://b/t/gone//x"], ["s3://b/t/a"]),
    ],
)
def test_nothing_is_brought_to_one_form_where_texts_match_or_are_spelled_alike(names, locations, monkeypatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("not needed")

    monkeypatch.setattr(location_columns, "canonical", never)
    found = index_of(texts(names), texts(locations), TABLE)
    assert found.equals(pc.index_in(texts(names), value_set=texts(locations)))


@pytest.mark.parametrize(
    ("name", "location", "open_"),
    [
        ("file:///wh/t/x/../data/a", "file:///wh/t/data/a", True),
        ("file:///wh/t/%2e/data/a", "file:///wh/t/data/a", True),
        ("file:///wh/t/data/a", "file:///wh/t/./data/a", True),
        ("hdfs://nn/wh/t/data/a", "file:///wh/t/data/a", True),
        ("hdfs://nn:8020/wh/t/data/a", "hdfs://nn/wh/t/data/a", True),
        ("s3://old/wh/t/data/a", "file:///wh/t/data/a", True),
        ("/old/t/data/a", "file:///wh/t/data/a", True),
        ("/old/t/p=1/a", "file:///wh/t/p=2/a", False),
        ("file:///wh/t/p=1/a", "file:///wh/t/p=2/a", False),
        ("file:///wh/t/old/data/a", "file:///wh/t/data/a", False),
        ("file:///wh/t/x/../data/a", "file:///wh/t/data/b", False),
        ("/elsewhere/x/a", "/other/y/a", False),
    ],
)
def test_a_pair_that_may_be_one_file_is_found(name: str, location: str, open_: bool) -> None:
    """Two files of one name in two folders of the table are two files."""
    found = undecided(texts(["file:///wh/t/gone", name, None]), texts(["file:///wh/t/other", location]), TABLE)
    assert found == ((name, location) if open_ else None)
