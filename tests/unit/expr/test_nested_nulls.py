"""Structs, lists, maps and variants in filters: they can be tested for null, and for nothing else."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icefloe.codecs.json.expressions import expr_from_json, expr_to_json
from icefloe.errors import InputError
from icefloe.expr.filter.batch_filter import evaluate_rows, to_arrow
from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import ALWAYS_FALSE, ALWAYS_TRUE, Bound, BoundPredicate, Op
from icefloe.expr.prune.residual import residuals
from icefloe.expr.prune.stats_eval import Match, evaluate
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.expr.text.filter_printer import to_text
from icefloe.expr.text.spark_sql import to_sql
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.entries import entries
from icefloe.model.partition.spec import PartitionField
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import LONG, STRING, VARIANT, Field, List, Map, Struct
from support.row_matching import matches

INNER = Struct((Field(11, "x", LONG), Field(12, "ls", List(13, LONG)), Field(16, "must", List(17, LONG), True)))
SCHEMA = Schema(
    fields=(
        Field(1, "id", LONG),
        Field(2, "tags", List(3, STRING)),
        Field(4, "m", Map(5, STRING, 6, LONG)),
        Field(7, "v", VARIANT),
        Field(10, "s", INNER),
        Field(14, "always", List(15, LONG), True),
    )
)
ROWS = [
    {"id": 1, "tags": ["a"], "m": [("k", 1)], "v": {"metadata": b"", "value": b""}, "always": [], "s": None},
    {"id": 2, "tags": [], "m": [], "v": None, "always": [1], "s": {"x": None, "ls": None, "must": []}},
    {"id": 3, "tags": None, "m": None, "v": None, "always": [1], "s": {"x": 1, "ls": [1], "must": []}},
]
ANSWERS = [
    ("tags IS NULL", [3]),
    ("tags IS NOT NULL", [1, 2]),
    ("NOT (m IS NULL)", [1, 2]),
    ("v IS NULL AND id < 3", [2]),
    ("s IS NULL", [1]),
    ("s.x IS NULL", [1, 2]),
    ("s.ls IS NULL", [1, 2]),
    ("s.must IS NOT NULL", [2, 3]),
    ("isnull(tags) OR isnull(s)", [1, 3]),
    ("always IS NOT NULL", [1, 2, 3]),
]


def bound(text: str) -> Bound:
    return bind(parse_filter(text), SCHEMA)


@pytest.mark.parametrize(("text", "ids"), ANSWERS)
def test_rows_are_found_by_arrow_and_by_the_plain_definition(text: str, ids: list[int]) -> None:
    found = bound(text)
    table = pa.Table.from_pylist(ROWS, schema=arrow_schema(SCHEMA))

    assert table.filter(to_arrow(found))["id"].to_pylist() == ids
    assert table.filter(evaluate_rows(found, table.to_batches()[0]))["id"].to_pylist() == ids
    assert [row["id"] for row in ROWS if matches(found, row)] == ids


def test_a_required_column_is_never_null_unless_a_struct_around_it_is() -> None:
    assert bound("always IS NULL") == ALWAYS_FALSE
    assert bound("always IS NOT NULL") == ALWAYS_TRUE
    assert bound("s.must IS NULL") == BoundPredicate(Op.IS_NULL, 16, ("s", "must"), INNER.fields[2].type)


@pytest.mark.parametrize("text", ["tags = 'a'", "s IN (1)", "isnan(v)", "bucket(4, tags) IS NULL", "m > 1"])
def test_anything_but_a_test_for_null_is_refused_by_name(text: str) -> None:
    with pytest.raises(InputError, match="can only be tested for null"):
        bound(text)


def test_counts_that_a_writer_gave_such_a_column_are_not_believed() -> None:
    """Writers count the elements of a list, or its rows; both stand under ids of the same schema."""
    counted = {"record_count": 2, "value_count:2": 2, "null_value_count:2": 0}
    files = entries([counted, {**counted, "null_value_count:2": 2}])

    for text in ("tags IS NULL", "tags IS NOT NULL"):
        assert evaluate(bound(text), files).to_pylist() == [int(Match.SOME), int(Match.SOME)]


def test_partitions_say_nothing_about_such_a_column() -> None:
    void = PartitionField(source_id=2, field_id=1000, name="tags_null", transform="void")
    found = bound("tags IS NULL")

    files = entries([{"record_count": 2, "value_count:p1000": 2, "null_value_count:p1000": 2}])
    assert evaluate(found, files, (void,)).to_pylist() == [int(Match.SOME)]
    assert residuals(found, [void], SCHEMA, files)[0] == [found]


def test_such_a_filter_is_written_and_read_like_any_other() -> None:
    found = bound("tags IS NULL AND s.ls IS NOT NULL")

    assert to_text(found) == "tags IS NULL AND s.ls IS NOT NULL"
    assert to_sql(found) == "(`tags` IS NULL AND `s`.`ls` IS NOT NULL)"
    assert bind(expr_from_json(expr_to_json(found)), SCHEMA) == found
