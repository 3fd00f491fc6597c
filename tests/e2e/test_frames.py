"""Frames of pandas and polars as their users have them, written and merged as they are."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from icefloe.errors import InputError
from support.tables import new_catalog


@pytest.fixture
def lake(tmp_path):
    return new_catalog(tmp_path)


def rows(table) -> list[dict[str, object]]:
    return table.scan().to_arrow().sort_by("id").to_pylist()


def test_an_index_without_a_name_is_no_column(lake):
    """Filtered and re-ordered pandas frames keep theirs: they were refused, or gave the table a column for good."""
    frame = pd.DataFrame({"id": [1, 2, 3, 4], "name": ["a", "b", "c", "d"]})
    chosen = frame[frame.id.isin([1, 3, 4])]
    labelled = frame[:2].set_axis(pd.MultiIndex.from_tuples([("x", 1), ("y", 2)]))
    table = lake.create_table("db.t", schema="id bigint, name string")
    table.append(chosen)
    table.append(chosen, schema_mode="merge")
    table.upsert(frame.iloc[[3, 0, 1]], on=["id"], deletes="equality")
    table.overwrite(labelled, "id < 9")
    table.merge(chosen, on=["id"]).when_not_matched_insert_all().execute()
    assert table.scan().to_arrow().column_names == ["id", "name"]
    assert [(row["id"], row["name"]) for row in rows(table)] == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]


def test_an_index_that_the_table_has_a_column_for_is_written(lake):
    frame = pd.DataFrame({"name": ["a", "b"]}, index=[7, 9])
    table = lake.create_table("db.t", schema="id bigint, name string")
    table.append(frame.rename_axis("id"))
    assert [(row["id"], row["name"]) for row in rows(table)] == [(7, "a"), (9, "b")]
    other = lake.create_table("db.u", schema="`__index_level_0__` bigint, name string")
    other.append(frame)
    assert sorted(other.scan().to_arrow()["__index_level_0__"].to_pylist()) == [7, 9]


def test_a_column_that_only_looks_like_an_index_is_refused(lake):
    table = lake.create_table("db.t", schema="id bigint")
    with pytest.raises(InputError, match="no column __index_level_0__"):
        table.append(pa.table({"id": [1], "__index_level_0__": [5]}))


def test_a_polars_frame_with_texts_is_merged(lake):
    """Arrow cannot take rows of views, which polars' texts are: every merge with one failed by an error of Arrow."""
    table = lake.create_table("db.t", schema="id bigint, name string, who struct<city: string, tags: array<string>>")
    who = {"city": "Oslo", "tags": ["a"]}
    table.append(pl.DataFrame({"id": [1, 2], "name": ["a", "b"], "who": [who, None]}))
    source = pl.DataFrame({"id": [2, 3], "name": ["B", "C"], "who": [who, who]})
    source = pl.concat([source[:1], source[1:]], rechunk=False)
    table.merge(source, on="t.id = s.id").when_matched_update_all().when_not_matched_insert_all(
        "s.name <> 'x'"
    ).execute()
    assert rows(table) == [
        {"id": 1, "name": "a", "who": who},
        {"id": 2, "name": "B", "who": who},
        {"id": 3, "name": "C", "who": who},
    ]


@pytest.mark.parametrize(
    ("type_", "series"),
    [
        ("string", pl.Series(["x", None, "x"], dtype=pl.Categorical)),
        ("string", pl.Series(["x", None, "y"], dtype=pl.Enum(["x", "y"]))),
        ("array<string>", pl.Series([["x"], None, ["y", None]])),
        ("array<binary>", pl.Series([[b"x"], None, []])),
        ("array<string>", pl.Series([["x", "y"], None, ["z", None]], dtype=pl.Array(pl.String, 2))),
        ("struct<a: array<string>>", pl.Series([{"a": ["x"]}, {"a": None}, {"a": []}])),
        ("array<struct<a: string>>", pl.Series([[{"a": "x"}], None, [{"a": None}]])),
        ("array<string>", pl.Series([["x"], None, ["x"]], dtype=pl.List(pl.Categorical))),
    ],
    ids=str,
)
def test_columns_of_polars_come_back_as_they_went_in(lake, type_, series):
    """Categories and lists of texts were refused by Arrow: it has no way to take rows of a view."""
    table = lake.create_table("db.t", schema=f"id bigint, c {type_}")
    frame = pl.DataFrame({"id": range(len(series)), "c": series})
    for part in (frame, frame[1:]):
        table.append(part)
    table.merge(frame.with_columns(id=pl.lit(9)), on="t.id = s.id").when_not_matched_insert_all().execute()
    whole = series.to_list()
    assert [row["c"] for row in rows(table)] == [whole[0], whole[1], whole[1], whole[2], whole[2], *whole]
