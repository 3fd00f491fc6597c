"""Entries of finished files: the same whether a footer or a writer measured them."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.formats.write.entries import WrittenFile, entries_of
from icefloe.formats.write.layout import layout
from icefloe.formats.write.measure import Measurer, count_nans
from icefloe.formats.write.metrics import COUNTS, FULL
from icefloe.formats.write.writers import open_writer
from icefloe.io.memory import MemoryFileIO
from icefloe.model.arrow.conform import arrow_schema, conform
from icefloe.model.entries import ContentType
from icefloe.model.partition.spec import UNPARTITIONED, PartitionField, PartitionSpec
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMPTZ,
    UUID,
    Decimal,
    Field,
    Fixed,
    List,
    Struct,
)

VALUES: dict[str, tuple[Any, Any]] = {
    "b": (BOOLEAN, st.booleans()),
    "i": (INT, st.integers(-(2**31), 2**31 - 1)),
    "d": (DOUBLE, st.floats() | st.sampled_from([0.0, -0.0])),
    "n": (Decimal(20, 3), st.integers(-(10**19), 10**19).map(lambda n: decimal.Decimal(n).scaleb(-3))),
    "t": (DATE, st.dates()),
    "z": (TIMESTAMPTZ, st.datetimes(timezones=st.just(datetime.UTC))),
    "s": (STRING, st.text(st.sampled_from("ab\x00\ue000\U0010ffff"), max_size=20)),
    "x": (BINARY, st.binary(max_size=20)),
    "f": (Fixed(3), st.binary(min_size=3, max_size=3)),
    "u": (UUID, st.binary(min_size=16, max_size=16)),
}
FIELDS = tuple(Field(n, name, type_) for n, (name, (type_, _)) in enumerate(VALUES.items(), 10))
SCHEMA = Schema(fields=(Field(1, "id", LONG), Field(2, "in", Struct(FIELDS)), Field(3, "l", List(4, STRING))))
CUT = "a" * 15 + "b"
inner = st.fixed_dictionaries({name: st.none() | values for name, (_, values) in VALUES.items()})
rows = st.lists(st.fixed_dictionaries({"id": st.integers(0, 9), "in": st.none() | inner}), min_size=1, max_size=6)


def parquet_file(batch: pa.RecordBatch, io: MemoryFileIO) -> WrittenFile:
    chosen = layout(SCHEMA, {})
    writer = open_writer(io, "memory://t/f.parquet", "parquet", chosen, ())
    writer.add(batch, count_nans(batch, chosen.floats))
    return writer.close()


@given(rows)
def test_a_footer_and_a_measurer_tell_the_same(values: list[dict[str, Any]]) -> None:
    plain = pa.schema([field.remove_metadata() for field in arrow_schema(SCHEMA)])
    [batch] = conform(pa.Table.from_pylist(values, schema=plain), SCHEMA).to_batches()
    measurer = Measurer(SCHEMA)
    measurer.add(batch)
    file = WrittenFile(location="f", size=1, file_format="avro", rows=len(values), measures=measurer.measures())
    told = list(entries_of([file], schema=SCHEMA, spec=UNPARTITIONED).to_pylist()[0].items())
    with_footer = entries_of([parquet_file(batch, MemoryFileIO())], schema=SCHEMA, spec=UNPARTITIONED).to_pylist()[0]
    for name, value in told:
        if ":" in name:
            assert repr(value) == repr(with_footer[name]), name  # which also tells 0.0 from -0.0
    assert {name for name, _ in told if ":" in name} == {
        name for name in with_footer if ":" in name and not name.startswith("column_size")
    }


def test_an_entry_of_any_format_has_what_its_writer_tells() -> None:
    spec = PartitionSpec(
        spec_id=2, fields=(PartitionField(source_id=1, field_id=1000, name="id", transform="identity"),)
    )
    file = WrittenFile(
        location="f.orc",
        size=70,
        file_format="orc",
        rows=5,
        partition=(4,),
        split_offsets=(3, 40),
    )
    [entry] = entries_of(
        [file], schema=SCHEMA, spec=spec, content=ContentType.EQUALITY_DELETES, sort_order_id=6
    ).to_pylist()
    assert (entry["file_format"], entry["record_count"], entry["file_size_in_bytes"]) == ("orc", 5, 70)
    assert (entry["content_type"], entry["sort_order_id"], entry["split_offsets"]) == (2, 6, [3, 40])
    assert (entry["lower_bound:p1000"], entry["value_count:p1000"]) == (4, 5)
    assert (entry["lower_bound:1"], entry["value_count:1"]) == (None, None)  # not measured: not known
    [bare] = entries_of([WrittenFile(location="f", size=1, rows=1)], schema=SCHEMA, spec=UNPARTITIONED).to_pylist()
    assert bare["split_offsets"] is None


@pytest.mark.parametrize(
    ("mode", "upper"), [(None, "a" * 15 + "b"), ({12: FULL}, "a" * 15 + "b"), ({2: FULL}, "a" * 20)]
)
def test_a_column_without_a_mode_has_that_of_the_default(mode: Any, upper: str) -> None:
    schema = Schema(fields=(Field(2, "s", STRING),))
    measurer = Measurer(schema)
    measurer.add(pa.record_batch({"s": ["a" * 20]}))
    file = WrittenFile(location="a", size=1, rows=1, measures=measurer.measures())
    [entry] = entries_of([file], schema=schema, spec=UNPARTITIONED, modes=mode).to_pylist()
    assert entry["upper_bound:2"] == upper


def test_bounds_that_are_not_asked_for_have_no_columns() -> None:
    table = entries_of(
        [WrittenFile(location="a", size=1, rows=1)],
        schema=Schema(fields=(Field(2, "s", STRING),)),
        spec=UNPARTITIONED,
        modes={2: COUNTS},
    )
    assert [name for name in table.column_names if ":" in name] == ["value_count:2", "null_value_count:2"]
