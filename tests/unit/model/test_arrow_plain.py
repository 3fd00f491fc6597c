"""Dictionaries, runs and views of user data: unpacked before anything is asked of the values."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.errors import InputError
from icefloe.model.arrow.conform import conform
from icefloe.model.arrow.plain_layouts import plain
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import LONG, STRING, Field, List, Struct

_texts = st.none() | st.sampled_from(["", "a", "bb", "text that is too long to lie within a view"])


def coded(values: list[str | None]) -> pa.Array:
    """A dictionary of views; a null may be one of its values, as in frames of other libraries."""
    known = list(dict.fromkeys(values))
    return pa.DictionaryArray.from_arrays(
        pa.array([known.index(value) for value in values], pa.int32()), pa.array(known, pa.string_view())
    )


def runs(values: list[str | None]) -> pa.Array:
    """Runs of one row each, of a dictionary of views."""
    return pa.RunEndEncodedArray.from_arrays(pa.array(range(1, len(values) + 1), pa.int32()), coded(values))


def views(values: list[str | None]) -> pa.Array:
    return pa.array(values, pa.string_view())


def lists(inner: pa.Array, kind: type[pa.Array]) -> pa.Array:
    """Lists of none to three of the values, in turn, each fourth list null."""
    ends, at = [0], 0
    while at < len(inner):
        at = min(at + (len(ends) - 1) % 4, len(inner))
        ends.append(at)
    mask = pa.array([number % 4 == 3 for number in range(len(ends) - 1)], pa.bool_())
    width = pa.int64() if kind is pa.LargeListArray else pa.int32()
    return kind.from_arrays(pa.array(ends, width), inner, mask=mask)


def nested(inner: pa.Array) -> list[pa.Array]:
    """The values at more depths."""
    mask = pa.array([number % 3 == 2 for number in range(len(inner))], pa.bool_())
    keys = pa.array([str(number) for number in range(len(inner))], pa.string_view())
    each = pa.array(range(len(inner) + 1), pa.int32())
    return [
        inner,
        lists(inner, pa.ListArray),
        lists(inner, pa.LargeListArray),
        pa.FixedSizeListArray.from_arrays(inner, 1, mask=mask),
        pa.StructArray.from_arrays([inner, keys], names=["a", "b"], mask=mask),
        pa.MapArray.from_arrays(each, keys, inner),
        lists(pa.StructArray.from_arrays([inner], names=["a"], mask=mask), pa.ListArray),
    ]


def layouts(type_: pa.DataType) -> set[str]:
    """What lies in a type at any depth."""
    if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
        return {"coded"} | layouts(type_.value_type)
    inner = [type_.field(number).type for number in range(type_.num_fields)]
    return {"view"} if pa.types.is_string_view(type_) else {found for each in inner for found in layouts(each)}


@given(st.lists(_texts, max_size=9), st.sampled_from([coded, runs, views]), st.integers(0, 4))
def test_values_come_out_as_they_were_in_layouts_that_rows_can_be_taken_of(values, layout, start):
    for array in nested(layout(values)):
        part = array.slice(start)
        found = plain(part)
        found.validate(full=True)
        assert found.to_pylist() == part.to_pylist()
        assert layouts(found.type) == set()
        assert found.take(pa.array(range(len(found)), pa.int64())).to_pylist() == part.to_pylist()


def test_what_is_plain_is_left_as_it_is():
    for array in nested(pa.array(["a", None, "b"], pa.large_string())):
        if not pa.types.is_map(array.type) and not pa.types.is_struct(array.type):
            assert plain(array) is array


def test_endless_nesting_is_refused():
    array = pa.array(["a"], pa.string_view())
    for _ in range(150):
        array = pa.StructArray.from_arrays([array], names=["x"])
    with pytest.raises(InputError, match="nested"):
        plain(array)


@pytest.mark.parametrize("values", [["x", None, "x"], [7, None, 7]])
@pytest.mark.parametrize("layout", ["dictionary", "runs"])
def test_a_null_that_a_dictionary_or_a_run_hides_is_not_written_as_an_empty_text_or_zero(values, layout):
    """The nulls of a required field of a struct were counted before they were unpacked, and got a made-up value."""
    if layout == "dictionary":
        inner = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(values[:2]))
    else:
        inner = pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3], pa.int32()), pa.array(values))
    required = Field(2, "a", STRING if values[0] == "x" else LONG, True)
    whole = pa.StructArray.from_arrays([inner], names=["a"])
    with pytest.raises(InputError, match=r"column 's\.a' is required and has 1 nulls"):
        conform(pa.table({"s": whole}), Schema(fields=(Field(1, "s", Struct((required,))),)))

    below = pa.StructArray.from_arrays([inner], names=["a"], mask=pa.array([False, True, False]))
    fitted = conform(pa.table({"s": below}), Schema(fields=(Field(1, "s", Struct((required,))),)))
    assert fitted["s"].to_pylist() == [{"a": values[0]}, None, {"a": values[0]}]


def test_lists_of_views_conform():
    """Arrow cannot take lists of views, so that frames of polars with a list of texts were refused by Arrow itself."""
    rows = pa.table({"l": pa.array([["x"], None, ["y", None]], pa.large_list(pa.string_view()))})
    schema = Schema(fields=(Field(1, "l", List(2, STRING)),))
    for part in (rows, rows.slice(1)):
        assert conform(part, schema)["l"].to_pylist() == part["l"].to_pylist()
