"""The source of a merge on Arrow: its keys are indexed, and they prune the files of the table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from icefloe.engines.arrow.change.merge_source import IndexedSource
from icefloe.engines.merge_plan import Action, Clause, Merge, MergePlan, When
from icefloe.expr.filter.nodes import ALWAYS_FALSE, ALWAYS_TRUE, Op, Predicate
from icefloe.expr.value.expressions import parse_value
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import DATE, DOUBLE, INT, LONG, STRING, Field, Struct

SCHEMA = Schema(
    fields=(
        Field(1, "id", LONG),
        Field(2, "n", INT),
        Field(3, "x", DOUBLE),
        Field(4, "note", STRING),
        Field(5, "day", DATE),
        Field(6, "who", Struct((Field(7, "age", INT),))),
    )
)
DELETE = Clause(when=When.MATCHED, action=Action.DELETE)


def plan_of(on: str, *clauses: Clause) -> MergePlan:
    return MergePlan.of(Merge(on=parse_value(on), clauses=clauses or (DELETE,)), SCHEMA, ["id"])


def source_of(on: str, keys: list[Any], *clauses: Clause, type_: pa.DataType | None = None) -> IndexedSource:
    rows = pa.table({"id": pa.array(keys, pa.int64() if type_ is None else type_)})
    return IndexedSource(plan_of(on, *clauses), rows)


def test_keys_make_a_list_or_a_range_of_values() -> None:
    assert source_of("t.id = s.id", [3, 1, None, 3]).filter == Predicate(Op.IN, "id", (3, 1))
    assert str(source_of("t.id = s.id", list(range(500))).filter).count("Predicate") == 2
    assert source_of("t.id = s.id", [None]).filter == ALWAYS_FALSE
    assert source_of("t.id = s.id", []).filter == ALWAYS_FALSE
    assert source_of("t.x = s.id", [1]).filter == ALWAYS_TRUE
    assert source_of("t.id + 1 = s.id", [1]).filter == ALWAYS_TRUE


@pytest.mark.parametrize(
    "type_",
    [
        pa.string_view(),
        pa.large_string(),
        pa.dictionary(pa.int32(), pa.string()),
        pa.run_end_encoded(pa.int32(), pa.string()),
    ],
    ids=str,
)
def test_texts_prune_however_they_are_laid_out(type_: pa.DataType) -> None:
    """Texts of polars are views: they could not be taken, and as keys of another type they pruned nothing."""
    keys = pa.array(["b", "a"], pa.string()) if pa.types.is_run_end_encoded(type_) else pa.array(["b", "a"], type_)
    keys = pc.run_end_encode(keys) if pa.types.is_run_end_encoded(type_) else keys
    rows = pa.table({"id": keys})
    for part, found in ((rows, Predicate(Op.IN, "note", ("b", "a"))), (rows.schema.empty_table(), ALWAYS_FALSE)):
        source = IndexedSource(plan_of("t.note = s.id"), part)
        assert source.filter == found
        assert source.columns["id"].type == pa.string()


def test_rows_that_only_the_table_has_widen_what_is_read() -> None:
    def alone(condition: str | None) -> Clause:
        value = None if condition is None else parse_value(condition)
        return Clause(when=When.NOT_MATCHED_BY_SOURCE, action=Action.DELETE, condition=value)

    assert source_of("t.id = s.id", [1], alone(None)).filter == ALWAYS_TRUE
    found = source_of("t.id = s.id", [], alone("t.n = 5")).filter
    assert found == Predicate(Op.EQ, "n", (5,))


def test_only_columns_that_matter_are_read() -> None:
    update = Clause(
        when=When.MATCHED,
        action=Action.UPDATE,
        condition=parse_value("t.n > 1"),
        assignments={"note": parse_value("upper(t.note)")},
    )
    plan = plan_of("t.id = s.id AND t.day > '2026-01-01'", update)
    assert plan.deciding_columns == {"id", "day", "n"}
    assert plan.updating_columns == {"id", "n", "x", "note", "day", "who"}


@pytest.mark.parametrize("type_", [pa.int8(), pa.int32(), pa.uint16(), pa.decimal128(5, 0), pa.float64()])
def test_keys_of_other_number_types_are_compared_as_numbers(type_: pa.DataType) -> None:
    keys = pa.array([2, 9], pa.int64()).cast(pa.decimal128(19, 0)).cast(type_) if pa.types.is_decimal(type_) else [2, 9]
    source = source_of("t.id = s.id", keys if isinstance(keys, list) else keys.to_pylist(), type_=type_)
    rows = pa.record_batch({"id": pa.array([None, 0, 1, 2, 3], pa.int64())})
    assert source.index.key_numbers(source.keys_of(rows), 5).tolist() == [-1, -1, -1, 0, -1]
