"""What readers get of planned files: one value for each, with what its task states."""

from __future__ import annotations

import pyarrow as pa

from icefloe.expr.filter.bind import bind
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.formats.read.file_read import FileRead
from icefloe.model.partition.spec import PartitionField, PartitionSpec
from icefloe.model.schema.metadata_columns import PARTITION_ID
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import LONG, STRING, Field, Struct
from icefloe.scan.file_reads import file_reads

TABLE = Schema(fields=(Field(1, "id", LONG), Field(2, "city", STRING)))
BY_CITY = PartitionSpec(
    spec_id=1, fields=(PartitionField(source_id=2, field_id=1000, name="city", transform="identity"),)
)
FILES = pa.table(
    {
        "location": ["a.parquet", "b.avro", "c.parquet"],
        "file_format": ["parquet", "avro", None],
        "record_count": pa.array([10, None, 30], pa.int64()),
        "first_row_id": pa.array([0, 10, None], pa.int64()),
        "sequence_number": pa.array([1, 2, 3], pa.int64()),
        "partition_spec_id": pa.array([1, 1, 0], pa.int32()),
        "lower_bound:p1000": ["Oslo", "Rome", None],
        "null_value_count:p1000": pa.array([0, 0, None], pa.int64()),
    }
)


def test_each_file_has_what_its_task_states_and_what_all_files_share() -> None:
    bound = bind(parse_filter("id > 5"), TABLE)
    read = FileRead(location="", schema=TABLE.select(("id",)), table_schema=TABLE, filter=bound, use_threads=False)
    first, second, third = file_reads(FILES, read, (BY_CITY, PartitionSpec(spec_id=0)))
    assert [file.location for file in (first, second, third)] == ["a.parquet", "b.avro", "c.parquet"]
    assert [file.file_format for file in (first, second, third)] == ["parquet", "avro", None]
    assert [file.record_count for file in (first, second, third)] == [10, None, 30]
    assert [file.lineage.first_row_id for file in (first, second, third)] == [0, 10, None]
    assert [file.lineage.sequence_number for file in (first, second, third)] == [1, 2, 3]
    assert [file.lineage.spec_id for file in (first, second, third)] == [1, 1, 0]
    assert [dict(file.constants) for file in (first, second, third)] == [
        {2: pa.scalar("Oslo")},
        {2: pa.scalar("Rome")},
        {},
    ]
    assert all(file.filter == bound and file.schema is read.schema and not file.use_threads for file in (first, third))


def test_partition_tuples_are_made_only_if_the_read_selects_them() -> None:
    tuples = Field(PARTITION_ID, "_partition", Struct((Field(1000, "city", STRING),)))
    plain, selecting = (
        FileRead(location="", schema=Schema(fields=fields), table_schema=TABLE)
        for fields in (TABLE.fields, (*TABLE.fields, tuples))
    )
    assert [file.lineage.partition for file in file_reads(FILES, plain, (BY_CITY,))] == [None] * 3
    partitions = [file.lineage.partition for file in file_reads(FILES, selecting, (BY_CITY,))]
    assert [None if one is None else one.as_py() for one in partitions] == [
        {"city": "Oslo"},
        {"city": "Rome"},
        {"city": None},
    ]
