"""New equality delete files: where they go, what their entries say, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe.deletes.equality_writer import write_equality_deletes
from icefloe.errors import InputError, StorageError
from icefloe.io.memory import MemoryFileIO
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.spec import PartitionField, PartitionSpec
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import DOUBLE, LONG, STRING, UUID, Field, List, Struct
from unit.deletes.files import FORMATS

SCHEMA = Schema(
    fields=(
        Field(1, "id", LONG),
        Field(2, "region", STRING),
        Field(3, "x", DOUBLE),
        Field(4, "tags", List(5, STRING)),
        Field(6, "s", Struct((Field(7, "a", LONG), Field(8, "b", STRING)))),
    )
)
WHOLE = PartitionSpec(spec_id=0)
BY_REGION = PartitionSpec(
    spec_id=1, fields=(PartitionField(source_id=2, field_id=1000, name="region", transform="identity"),)
)
BY_BUCKET = PartitionSpec(
    spec_id=2, fields=(PartitionField(source_id=1, field_id=1001, name="id_bucket", transform="bucket[4]"),)
)
ROWS = pa.table({"id": [1, 2, 3], "region": ["n", "s", None], "x": [0.5, 0.5, 0.5]})


def metadata(*specs: PartitionSpec, version: int = 2, **properties: str) -> TableMetadata:
    plain = TableMetadata(
        format_version=version,
        table_uuid="00000000-0000-0000-0000-000000000001",
        location="memory://t",
        last_updated_ms=0,
        schemas=(SCHEMA,),
        current_schema_id=0,
        specs=specs,
        default_spec_id=specs[-1].spec_id,
        last_column_id=8,
        last_partition_id=1001,
    )
    return replace(plain, properties={name.replace("_", "."): value for name, value in properties.items()})


def columns(*names: str) -> tuple[Field, ...]:
    return tuple(SCHEMA.field(name) for name in names)


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_table_without_partitions_gets_one_file(file_format: str) -> None:
    io = MemoryFileIO()
    table = metadata(WHOLE, write_delete_format_default=file_format)
    entries = write_equality_deletes(io, ROWS, columns("id", "region"), metadata=table)
    (row,) = entries.to_pylist()
    assert (row["content_type"], row["status"], row["equality_ids"]) == (2, 1, [1, 2])
    assert (row["record_count"], row["file_format"], row["partition_spec_id"]) == (3, file_format, 0)
    assert (row["lower_bound:1"], row["upper_bound:1"], row["null_value_count:2"]) == (1, 3, 1)
    assert row["file_size_in_bytes"] == io.size(row["location"])


UUIDS = Schema(fields=(Field(1, "key", UUID), Field(2, "n", LONG), Field(3, "s", Struct((Field(4, "key", UUID),)))))


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("mode", ["truncate(16)", "full", "counts"])
def test_uuid_columns_have_counts_but_no_bounds(file_format: str, mode: str) -> None:
    """Apache Iceberg compares their bounds as signed numbers, and would take the deletes for those of other rows."""
    properties = {"write.delete.format.default": file_format, "write.metadata.metrics.default": mode}
    table = replace(metadata(WHOLE), schemas=(UUIDS,), properties=properties)
    rows = pa.table(
        {
            "key": pa.array([bytes(16), b"\xff" * 16, None], pa.uuid()),
            "n": pa.array([1, 2, 3], pa.int64()),
            "s": pa.StructArray.from_arrays([pa.array([b"\x80" * 16, None, None], pa.uuid())], names=["key"]),
        }
    )
    delete_columns = tuple(UUIDS.field(name) for name in ("key", "n", "s.key"))
    (row,) = write_equality_deletes(MemoryFileIO(), rows, delete_columns, metadata=table).to_pylist()
    for key in ("1", "4"):
        assert row.get(f"lower_bound:{key}") is row.get(f"upper_bound:{key}") is None
        assert row[f"value_count:{key}"] == 3
    assert row["null_value_count:1"] == 1
    assert row.get("lower_bound:2") == (None if mode == "counts" else 1)


def test_the_partition_of_a_uuid_column_keeps_its_value() -> None:
    """The value of an identity partition decides which data files the deletes apply to."""
    by_key = PartitionSpec(
        spec_id=0, fields=(PartitionField(source_id=1, field_id=1000, name="key", transform="identity"),)
    )
    table = replace(metadata(by_key), schemas=(UUIDS,))
    rows = pa.table({"key": pa.array([b"\xff" * 16], pa.uuid())})
    (row,) = write_equality_deletes(MemoryFileIO(), rows, (UUIDS.field("key"),), metadata=table).to_pylist()
    assert row["lower_bound:p1000"] is not None
    assert row.get("lower_bound:1") is None


def test_only_the_delete_columns_are_stored_with_their_ids() -> None:
    io = MemoryFileIO()
    entries = write_equality_deletes(io, ROWS, columns("region"), metadata=metadata(WHOLE))
    stored = pq.read_table(pa.BufferReader(io.read(entries["location"][0].as_py())))
    assert stored.to_pylist() == [{"region": "n"}, {"region": "s"}, {"region": None}]
    assert stored.schema.field("region").metadata[b"PARQUET:field_id"] == b"2"


def test_a_field_of_a_struct_is_stored_inside_of_it() -> None:
    io = MemoryFileIO()
    rows = pa.table({"s": [{"a": 1, "b": "x"}, None], "id": [1, 2]})
    entries = write_equality_deletes(io, rows, columns("s.a"), metadata=metadata(WHOLE))
    assert entries["equality_ids"].to_pylist() == [[7]]
    stored = pq.read_table(pa.BufferReader(io.read(entries["location"][0].as_py())))
    assert stored.to_pylist() == [{"s": {"a": 1}}, {"s": None}]


def test_each_partition_gets_a_file_in_every_spec_that_has_data() -> None:
    io = MemoryFileIO()
    table = metadata(BY_REGION, BY_BUCKET)
    entries = write_equality_deletes(io, ROWS, columns("region", "id"), metadata=table)
    by_spec = [entries.filter(pa.compute.equal(entries["partition_spec_id"], spec)) for spec in (1, 2)]
    assert sorted(by_spec[0]["lower_bound:p1000"].to_pylist(), key=str) == [None, "n", "s"]
    assert sum(by_spec[1]["record_count"].to_pylist()) == 3
    assert entries["equality_ids"].to_pylist() == [[2, 1]] * entries.num_rows


def test_deletes_of_the_whole_table_cover_files_of_every_spec() -> None:
    io = MemoryFileIO()
    table = metadata(WHOLE, BY_REGION)
    # The files of spec 0 lie in no partition, so deletes by region would not reach them.
    assert write_equality_deletes(io, ROWS, columns("region"), metadata=table)["partition_spec_id"].to_pylist() == [0]
    # By id the partition is not known.
    assert write_equality_deletes(io, ROWS, columns("id"), metadata=table)["partition_spec_id"].to_pylist() == [0]


def test_columns_that_do_not_tell_the_partition_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"equality deletes by id do not determine the partition.*partitioned by region"
    ):
        write_equality_deletes(MemoryFileIO(), ROWS, columns("id"), metadata=metadata(BY_REGION))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ((), "at least one column"),
        (("x",), "column 'x' cannot be a delete column: it is a double"),
        (("tags",), "column 'tags' cannot be a delete column"),
        (("tags.element",), "column 'tags.element' cannot be a delete column"),
        (("s",), "column 's' cannot be a delete column"),
        (("s.a",), "lack the delete column 's'"),
    ],
)
def test_columns_that_cannot_be_compared_are_refused_by_name(names: tuple[str, ...], message: str) -> None:
    io = MemoryFileIO()
    with pytest.raises(InputError, match=message):
        write_equality_deletes(io, ROWS, columns(*names), metadata=metadata(WHOLE))
    assert list(io.list("memory://t/")) == []


def test_version_1_has_no_delete_files() -> None:
    with pytest.raises(InputError, match="format version 1"):
        write_equality_deletes(MemoryFileIO(), ROWS, columns("id"), metadata=metadata(WHOLE, version=1))


def test_nothing_is_left_behind_when_the_second_spec_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    io, calls = MemoryFileIO(), []

    def full(locations: object) -> None:
        calls.append(locations)
        if len(calls) > 1:
            raise StorageError("no space left")

    monkeypatch.setattr(io, "sync", full)
    with pytest.raises(StorageError, match="no space left"):
        write_equality_deletes(io, ROWS, columns("id", "region"), metadata=metadata(BY_REGION, BY_BUCKET))
    assert list(io.list("memory://t/")) == []
