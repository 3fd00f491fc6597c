from __future__ import annotations

import math
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from icefloe.engines.arrow.change.delete import find_rows, write_survivors
from icefloe.engines.arrow.read.plan_reader import read_plan
from icefloe.errors import InputError, NoSuchFile, UnsupportedError
from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Bound
from icefloe.expr.prune.stats_eval import evaluate
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.formats.read.file_read import FileDeletes
from icefloe.io.local import LocalFileIO
from icefloe.model import entries as model_entries
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.spec import UNPARTITIONED, PartitionField, PartitionSpec
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import DOUBLE, LONG, STRING, Field, Struct
from icefloe.scan.tasks import TASK, Plan
from support.engine_work import planned_for_engine, write_entries
from support.row_matching import matches

IO = LocalFileIO()
SCHEMA = Schema(fields=(Field(1, "id", LONG), Field(2, "x", DOUBLE), Field(3, "note", STRING)))
BUCKETS = PartitionSpec(fields=(PartitionField(source_id=1, field_id=1000, name="id_bucket", transform="bucket[3]"),))


def table_at(folder: Path, schema: Schema = SCHEMA, spec: PartitionSpec = UNPARTITIONED) -> TableMetadata:
    return TableMetadata(
        format_version=4,
        table_uuid=str(uuid.uuid4()),
        location=f"file://{folder}/{uuid.uuid4()}",
        last_updated_ms=0,
        last_column_id=schema.highest_id,
        schemas=(schema,),
        specs=(spec,),
    )


def plan_of(entries: pa.Table, filter: Bound = ALWAYS_TRUE, schema: Schema = SCHEMA, columns: Any = None) -> Plan:
    """What a planner makes of these entries."""
    found = evaluate(filter, entries)
    known = {name: entries[name] for name in TASK.names if name in entries.column_names}
    known["match"] = pa.chunked_array([found])
    columns_ = [known.get(f.name, pa.nulls(entries.num_rows, f.type)) for f in TASK]
    tasks = pa.table(columns_, schema=TASK).filter(pa.compute.not_equal(found, 0))
    wanted = schema if columns is None else schema.select(columns)
    return Plan(tasks=tasks, schema=wanted, table_schema=schema, filter=filter)


class Vectors(dict[str, BitMap64]):
    """What files have lost by position, told the way ``icefloe.deletes.deleted_rows.DeletedRows`` does."""

    def of(self, location: str) -> FileDeletes:
        return FileDeletes(positions=self.get(location))


@dataclass(frozen=True)
class Rewrite:
    added: pa.Table
    removed: tuple[str, ...]
    rows_deleted: int


def rewrite_without(plan: Plan, vectors: Vectors, metadata: TableMetadata) -> Rewrite:
    """Copy-on-write as the table does it: find the rows, then write what the touched files keep."""
    found = find_rows(planned_for_engine(IO, metadata, plan, vectors))
    counts = dict(zip(plan.tasks["location"].to_pylist(), plan.tasks["record_count"].to_pylist(), strict=True))
    gone = {name: rows | vectors.get(name, BitMap64()) for name, rows in found.items()}
    partly = {name: rows for name, rows in gone.items() if len(rows) < counts[name]}
    added = write_survivors(planned_for_engine(IO, metadata, plan, vectors), partly)
    return Rewrite(added, tuple(name for name in counts if name in gone), sum(map(len, found.values())))


def where(text: str, schema: Schema = SCHEMA) -> Bound:
    return bind(parse_filter(text), schema)


def rows(count: int, start: int = 0) -> pa.Table:
    numbers = range(start, start + count)
    return pa.table({"id": numbers, "x": [n / 2 for n in numbers], "note": [f"n{n}" for n in numbers]})


def files(metadata: TableMetadata, *tables: pa.Table) -> pa.Table:
    return model_entries.concat([write_entries(IO, table, metadata) for table in tables])


def test_rows_written_are_read_back_in_the_order_of_the_plan(tmp_path: Path) -> None:
    metadata = table_at(tmp_path)
    entries = files(metadata, *(rows(10, start) for start in range(0, 100, 10)))
    assert all(name.startswith(metadata.location + "/data/") for name in entries["location"].to_pylist())
    reader = read_plan(IO, plan_of(entries))
    assert reader.schema.equals(arrow_schema(SCHEMA), check_metadata=True)
    assert reader.read_all()["id"].to_pylist() == list(range(100))


def test_a_plan_is_read_with_its_filter_projection_and_deleted_rows(tmp_path: Path) -> None:
    entries = files(table_at(tmp_path), rows(10), rows(10, 10))
    first, second = entries["location"].to_pylist()
    vectors = Vectors({first: BitMap64([8]), second: BitMap64([0])})
    plan = plan_of(entries, where("x >= 3.5"), columns=("note",))
    assert plan.tasks["match"].to_pylist() == [1, 2]
    found = read_plan(IO, plan, vectors).read_all()
    assert found.column_names == ["note"]
    assert found["note"].to_pylist() == ["n7", "n9", *(f"n{n}" for n in range(11, 20))]


def test_an_empty_plan_has_a_schema_and_no_rows(tmp_path: Path) -> None:
    reader = read_plan(IO, plan_of(files(table_at(tmp_path), rows(1)).slice(0, 0)))
    assert reader.read_all().equals(arrow_schema(SCHEMA).empty_table())


def test_a_missing_file_and_another_format_are_named(tmp_path: Path) -> None:
    entries = files(table_at(tmp_path), rows(3), rows(3))
    lost = entries["location"][1].as_py()
    Path(lost.removeprefix("file://")).unlink()
    with pytest.raises(NoSuchFile, match=lost):
        read_plan(IO, plan_of(entries)).read_all()
    other = model_entries.put(entries, "file_format", "lance")
    with pytest.raises(UnsupportedError, match=r"format lance"):
        read_plan(IO, plan_of(other)).read_all()


def test_a_reader_given_up_early_stops_its_threads(tmp_path: Path) -> None:
    entries = files(table_at(tmp_path), *(rows(5, start) for start in range(0, 50, 5)))
    reader = read_plan(IO, plan_of(entries))
    assert reader.read_next_batch().num_rows == 5
    reader.close()


def test_streams_and_foreign_types_are_written(tmp_path: Path) -> None:
    metadata = table_at(tmp_path, spec=BUCKETS)
    stream = pa.RecordBatchReader.from_batches(rows(1).schema, iter(rows(30).to_batches(max_chunksize=7)))
    entries = write_entries(IO, stream, metadata)
    assert entries.num_rows == 3
    assert sorted(read_plan(IO, plan_of(entries)).read_all()["id"].to_pylist()) == list(range(30))
    narrow = pa.table({"id": pa.array([1], pa.int8()), "note": pa.array(["x"], pa.large_string())})
    assert write_entries(IO, narrow, metadata)["null_value_count:2"].to_pylist() == [1]


def test_wrong_rows_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    metadata = table_at(tmp_path)
    extra = pa.table({"id": [1], "other": [2]})
    empty = pa.RecordBatchReader.from_batches(extra.schema, iter([]))
    for data in (extra, extra.to_reader(), empty):
        with pytest.raises(InputError, match="other"):
            write_entries(IO, data, metadata)
    with pytest.raises(InputError, match="cannot read rows from"):
        write_entries(IO, [{"id": 1}], metadata)
    assert list(tmp_path.rglob("*.parquet")) == []


def test_found_rows_are_physical_positions_of_live_rows(tmp_path: Path) -> None:
    metadata = table_at(tmp_path)
    entries = files(metadata, rows(10), rows(10, 10), rows(10, 20))
    first, second, third = entries["location"].to_pylist()
    vectors = Vectors({first: BitMap64([9]), second: BitMap64([0, 5])})
    found = find_rows(planned_for_engine(IO, metadata, plan_of(entries, where("id > 7")), vectors))
    assert found == {first: BitMap64([8]), second: BitMap64([1, 2, 3, 4, 6, 7, 8, 9]), third: BitMap64(range(10))}


def test_a_file_whose_rows_all_match_is_not_opened(tmp_path: Path) -> None:
    metadata = table_at(tmp_path)
    entries = files(metadata, rows(4))
    location = entries["location"][0].as_py()
    Path(location.removeprefix("file://")).unlink()
    plan, vectors = plan_of(entries, where("id >= 0")), Vectors({location: BitMap64([1])})
    assert find_rows(planned_for_engine(IO, metadata, plan, vectors)) == {location: BitMap64([0, 2, 3])}


def test_rows_found_already_deleted_are_no_rows(tmp_path: Path) -> None:
    metadata = table_at(tmp_path)
    entries = files(metadata, rows(4))
    location = entries["location"][0].as_py()
    plan, vectors = plan_of(entries, where("id = 2")), Vectors({location: BitMap64([2])})
    assert find_rows(planned_for_engine(IO, metadata, plan, vectors)) == {}


def test_only_files_that_keep_some_rows_are_rewritten(tmp_path: Path) -> None:
    metadata = table_at(tmp_path)
    untouched = pa.table({"id": [1, 900], "x": [0.0, 1.0], "note": ["a", "b"]})
    entries = files(metadata, rows(10), untouched, rows(10, 100))
    first, _, third = entries["location"].to_pylist()
    Path(third.removeprefix("file://")).unlink()  # planning knows that all its rows go: it need not be read
    gone = Vectors({first: BitMap64([0, 6])})
    done = rewrite_without(plan_of(entries, where("id BETWEEN 5 AND 500")), gone, metadata)
    assert done.removed == (first, third)
    assert done.rows_deleted == 4 + 10
    assert read_plan(IO, plan_of(done.added)).read_all()["id"].to_pylist() == [1, 2, 3, 4]


def test_a_delete_that_matches_nothing_does_nothing(tmp_path: Path) -> None:
    metadata = table_at(tmp_path)
    entries = files(metadata, rows(10))
    done = rewrite_without(plan_of(entries, where("note = 'n3x'")), Vectors(), metadata)
    assert (done.added.num_rows, done.removed, done.rows_deleted) == (0, (), 0)


def test_rows_whose_filter_is_null_are_kept(tmp_path: Path) -> None:
    metadata = table_at(tmp_path)
    data = pa.table({"id": [1, None, 3], "x": [None, math.nan, 1.0], "note": [None, "b", "c"]})
    entries = files(metadata, data)
    done = rewrite_without(plan_of(entries, where("NOT (id = 3)")), Vectors(), metadata)
    assert read_plan(IO, plan_of(done.added)).read_all()["id"].to_pylist() == [None, 3]


def test_required_fields_below_null_structs_survive_a_rewrite(tmp_path: Path) -> None:
    schema = Schema(fields=(Field(1, "id", LONG, True), Field(2, "s", Struct((Field(3, "a", STRING, True),)))))
    metadata = table_at(tmp_path, schema)
    data = pa.table({"id": [1, 2, 3], "s": [None, {"a": "x"}, None]})
    entries = write_entries(IO, data, metadata)
    done = rewrite_without(plan_of(entries, where("id = 2", schema), schema), Vectors(), metadata)
    assert read_plan(IO, plan_of(done.added, schema=schema)).read_all().to_pylist() == [
        {"id": 1, "s": None},
        {"id": 3, "s": None},
    ]


_ROW = st.fixed_dictionaries(
    {
        "id": st.none() | st.integers(0, 5),
        "x": st.none() | st.sampled_from([0.0, 1.0, math.nan]),
        "note": st.none() | st.sampled_from(["", "a", "b"]),
    }
)
_FILTERS = [
    "id < 3",
    "x > 0",
    "NOT (x > 0)",
    "note = 'a' OR id = 1",
    "id IS NULL",
    "note LIKE 'a%' AND x <= 1",
    "id >= 0",
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    tables=st.lists(st.lists(_ROW, min_size=1, max_size=6), min_size=1, max_size=3),
    gone=st.lists(st.sets(st.integers(0, 5)), min_size=3, max_size=3),
    text=st.sampled_from(_FILTERS),
    partitioned=st.booleans(),
)
def test_reading_finding_and_rewriting_agree_with_brute_force(
    tmp_path: Path, tables: list[list[dict[str, Any]]], gone: list[set[int]], text: str, partitioned: bool
) -> None:
    metadata = table_at(tmp_path, spec=BUCKETS if partitioned else UNPARTITIONED)
    entries = files(metadata, *(pa.Table.from_pylist(table, schema=arrow_schema(SCHEMA)) for table in tables))
    locations, counts = entries["location"].to_pylist(), entries["record_count"].to_pylist()
    vectors = Vectors(
        (location, BitMap64(p for p in chosen if p < count))
        for location, count, chosen in zip(locations, counts, gone, strict=False)
    )
    content = {
        name: read_plan(IO, plan_of(entries.slice(i, 1))).read_all().to_pylist() for i, name in enumerate(locations)
    }
    filter = where(text)
    plan = plan_of(entries, filter)
    live = {name: [(p, r) for p, r in enumerate(content[name]) if p not in vectors.get(name, ())] for name in locations}
    hits = {name: [p for p, row in live[name] if matches(filter, row)] for name in locations}

    found = read_plan(IO, plan, vectors).read_all().to_pylist()
    assert str(found) == str([content[name][p] for name in locations for p in hits[name]])
    assert find_rows(planned_for_engine(IO, metadata, plan, vectors)) == {
        name: BitMap64(p) for name, p in hits.items() if len(p) > 0
    }

    done = rewrite_without(plan, vectors, metadata)
    assert done.removed == tuple(name for name in locations if len(hits[name]) > 0)
    assert done.rows_deleted == sum(map(len, hits.values()))
    kept = [row for name in done.removed for p, row in live[name] if p not in hits[name]]
    added = read_plan(IO, plan_of(done.added)).read_all().to_pylist()
    assert sorted(map(str, added)) == sorted(map(str, kept))
