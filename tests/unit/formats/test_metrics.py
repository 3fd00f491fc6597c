"""Metrics modes: what the metadata tells of each column, by property."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icefloe.errors import InputError
from icefloe.formats.write.metrics import COUNTS, DEFAULT, FULL, NONE, MetricsMode, metrics_modes, parse_mode
from icefloe.formats.write.write_files import write_files
from icefloe.io.local import LocalFileIO
from icefloe.model.schema.schema import Schema
from icefloe.model.text.ddl import parse_ddl

SCHEMA = parse_ddl("id bigint, name string, s struct<x: double, t: string>, l array<string>")
PREFIX = "write.metadata.metrics."


def names(schema: Schema, properties: dict[str, str], sorted_ids: frozenset[int] = frozenset()) -> dict[str, Any]:
    modes = metrics_modes(schema, properties, sorted_ids)
    return {schema.names[id_]: mode for id_, mode in modes.items()}


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("none", NONE),
        ("counts", COUNTS),
        ("full", FULL),
        ("truncate(16)", DEFAULT),
        ("Truncate(1)", MetricsMode(length=1)),
        (" FULL ", FULL),
    ],
)
def test_modes_are_read_in_any_case(text: str, mode: MetricsMode) -> None:
    assert parse_mode(text, "p") == mode


@pytest.mark.parametrize("text", ["", "all", "truncate", "truncate()", "truncate(0)", "truncate(-1)", "truncate(1"])
def test_a_mode_that_is_none_is_refused_by_the_name_of_its_property(text: str) -> None:
    with pytest.raises(InputError, match=r"write\.metadata\.metrics\.column\.name.*truncate\(n\)"):
        metrics_modes(SCHEMA, {PREFIX + "column.name": text})


def test_by_default_columns_outside_lists_have_bounds_of_sixteen_characters() -> None:
    assert names(SCHEMA, {}) == {"id": DEFAULT, "name": DEFAULT, "s.x": DEFAULT, "s.t": DEFAULT}


def test_a_column_goes_by_its_own_property_and_nested_ones_by_their_full_name() -> None:
    asked = {PREFIX + "default": "counts", PREFIX + "column.s.t": "truncate(3)", PREFIX + "column.gone": "full"}
    assert names(SCHEMA, asked) == {"id": COUNTS, "name": COUNTS, "s.x": COUNTS, "s.t": MetricsMode(length=3)}


def test_without_a_default_only_the_first_columns_are_measured() -> None:
    limit = {PREFIX + "max-inferred-column-defaults": "2"}
    assert names(SCHEMA, limit) == {"id": DEFAULT, "name": DEFAULT, "s.x": NONE, "s.t": NONE}
    assert set(names(SCHEMA, {**limit, PREFIX + "default": "full"}).values()) == {FULL}
    assert names(SCHEMA, {**limit, PREFIX + "column.s.t": "full"})["s.t"] == FULL
    wide = Schema(fields=parse_ddl(", ".join(f"c{n} int" for n in range(101))).fields)
    assert list(names(wide, {}).values()) == [DEFAULT] * 100 + [NONE]


def test_sorted_columns_have_bounds_unless_their_own_property_says_otherwise() -> None:
    name = SCHEMA.field("name").id
    none = {PREFIX + "default": "none"}
    assert names(SCHEMA, none, frozenset({name})) == {"id": NONE, "name": DEFAULT, "s.x": NONE, "s.t": NONE}
    assert names(SCHEMA, {**none, PREFIX + "column.name": "counts"}, frozenset({name}))["name"] == COUNTS
    assert names(SCHEMA, {PREFIX + "default": "full"}, frozenset({name}))["name"] == FULL


def entry_with(folder: Path, mode: str) -> dict[str, Any]:
    rows = pa.table({"id": [1, 2], "name": ["a" * 40, None], "s": [{"x": 0.0, "t": "b" * 9}, None], "l": [["q"], []]})
    properties = {PREFIX + "default": mode}
    made = write_files(LocalFileIO(), rows, schema=SCHEMA, data_location=f"file://{folder}", properties=properties)
    [entry] = made.to_pylist()
    return {name: value for name, value in entry.items() if ":" in name}


def test_the_mode_none_tells_nothing_of_a_column(tmp_path: Path) -> None:
    told = entry_with(tmp_path, "none")
    assert set(told) == {f"column_size:{SCHEMA.field('l.element').id}"}  # which no mode speaks of


def test_the_mode_counts_tells_counts_and_sizes(tmp_path: Path) -> None:
    told = entry_with(tmp_path, "counts")
    id_, x = SCHEMA.field("id").id, SCHEMA.field("s.x").id
    assert {name.split(":")[0] for name in told} == {
        "value_count",
        "null_value_count",
        "nan_value_count",
        "column_size",
        "avg_value_size_in_bytes",
    }
    assert (told[f"value_count:{id_}"], told[f"null_value_count:{x}"], told[f"nan_value_count:{x}"]) == (2, 1, 0)


def test_bounds_are_cut_or_whole(tmp_path: Path) -> None:
    name, inner = SCHEMA.field("name").id, SCHEMA.field("s.t").id
    cut = entry_with(tmp_path, "truncate(3)")
    assert (cut[f"lower_bound:{name}"], cut[f"upper_bound:{name}"]) == ("aaa", "aab")
    assert (cut[f"lower_bound:{inner}"], cut[f"upper_bound:{inner}"]) == ("bbb", "bbc")
    whole = entry_with(tmp_path, "full")
    assert (whole[f"lower_bound:{name}"], whole[f"upper_bound:{name}"]) == ("a" * 40, "a" * 40)
