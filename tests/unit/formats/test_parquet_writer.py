from __future__ import annotations

import datetime
import decimal
import math
import os
import random
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from icefloe.errors import InputError, StorageError
from icefloe.formats.write.write_files import Memory, write_files
from icefloe.io.local import LocalFileIO
from icefloe.io.memory import MemoryFileIO
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.partition.spec import UNPARTITIONED, PartitionField, PartitionSpec
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Decimal,
    Field,
    Fixed,
    List,
    Map,
    Struct,
)

IO = LocalFileIO()
ID_AND_TEXT = Schema(fields=(Field(1, "id", LONG), Field(2, "text", STRING)))


def spec(*fields: tuple[int, str]) -> PartitionSpec:
    made = (
        PartitionField(source_id=source, field_id=1000 + n, name=f"f{n}_{transform[:3]}", transform=transform)
        for n, (source, transform) in enumerate(fields)
    )
    return PartitionSpec(spec_id=3, fields=tuple(made))


def path_of(location: str) -> str:
    return location.removeprefix("file://")


def write(folder: Path, rows: Any, schema: Schema, spec: PartitionSpec = UNPARTITIONED, **options: Any) -> pa.Table:
    return write_files(IO, rows, schema=schema, spec=spec, data_location=f"file://{folder}/data", **options)


def ids_and_random_texts(count: int) -> pa.Table:
    dice = random.Random(count)
    return pa.table({"id": range(count), "text": [dice.randbytes(16).hex() for _ in range(count)]})


def rows_of(entries: pa.Table) -> list[dict[str, Any]]:
    return [row for location in entries["location"].to_pylist() for row in pq.read_table(path_of(location)).to_pylist()]


def test_an_entry_tells_where_the_file_is_and_what_is_in_it(tmp_path: Path) -> None:
    table = pa.table({"id": [3, 1, None], "text": ["b", "a", "c"]})
    [entry] = write(tmp_path, table, ID_AND_TEXT).to_pylist()
    assert entry["location"].startswith(f"file://{tmp_path}/data/")
    assert entry["file_size_in_bytes"] == Path(path_of(entry["location"])).stat().st_size
    assert (entry["content_type"], entry["status"], entry["file_format"]) == (0, 1, "parquet")
    assert (entry["sequence_number"], entry["snapshot_id"], entry["partition_spec_id"]) == (None, None, 0)
    assert (entry["record_count"], entry["split_offsets"]) == (3, [4])
    assert (entry["lower_bound:1"], entry["upper_bound:1"]) == (1, 3)
    assert (entry["value_count:1"], entry["null_value_count:1"]) == (3, 1)
    assert (entry["lower_bound:2"], entry["upper_bound:2"], entry["null_value_count:2"]) == ("a", "c", 0)
    assert rows_of(write(tmp_path, table, ID_AND_TEXT)) == table.to_pylist()


def test_no_rows_make_no_files(tmp_path: Path) -> None:
    assert write(tmp_path, arrow_schema(ID_AND_TEXT).empty_table(), ID_AND_TEXT).num_rows == 0
    assert write(tmp_path, iter([]), ID_AND_TEXT).num_rows == 0
    assert list(tmp_path.rglob("*.parquet")) == []


def test_every_nested_field_has_its_id_and_the_types_of_the_spec(tmp_path: Path) -> None:
    inner = Struct((Field(5, "u", UUID, True), Field(6, "d", Decimal(9, 2)), Field(7, "e", Decimal(20, 2))))
    schema = Schema(
        fields=(
            Field(1, "tags", List(4, inner)),
            Field(2, "m", Map(8, STRING, 9, List(10, TIME))),
            Field(3, "x", Struct((Field(11, "z", TIMESTAMPTZ), Field(12, "n", TIMESTAMP)))),
        )
    )
    value = {"u": uuid.uuid4().bytes, "d": decimal.Decimal("1.50"), "e": decimal.Decimal("-7.25")}
    moment = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    row = {
        "tags": [value, None],
        "m": [("k", [datetime.time(1, 2, 3, 4)])],
        "x": {"z": moment, "n": datetime.datetime(1960, 1, 1)},
    }
    rows = pa.Table.from_pylist([row, {"tags": None, "m": None, "x": None}], schema=arrow_schema(schema))
    entries = write(tmp_path, rows, schema)
    file = pq.ParquetFile(path_of(entries["location"][0].as_py()))
    text = str(file.schema)
    assert "optional group field_id=1 tags (List)" in text
    assert "repeated group field_id=-1 list" in text
    assert "optional group field_id=4 element" in text
    assert "required fixed_len_byte_array(16) field_id=5 u (UUID)" in text
    assert "optional int32 field_id=6 d (Decimal(precision=9, scale=2))" in text
    assert "optional fixed_len_byte_array(9) field_id=7 e (Decimal(precision=20, scale=2))" in text
    assert "required binary field_id=8 key (String)" in text
    assert "optional group field_id=9 value (List)" in text
    assert "field_id=10 element (Time(isAdjustedToUTC=false, timeUnit=microseconds)" in text
    assert "field_id=11 z (Timestamp(isAdjustedToUTC=true, timeUnit=microseconds" in text
    assert "field_id=12 n (Timestamp(isAdjustedToUTC=false, timeUnit=microseconds" in text
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    assert "lower_bound:5" not in entries.column_names  # inside a list
    assert entries["lower_bound:11"].to_pylist() == [moment]


def test_the_codec_is_a_property_and_an_unknown_one_is_refused(tmp_path: Path) -> None:
    rows = pa.table({"id": [1], "text": ["a"]})
    for codec, stored in (("gzip", "GZIP"), ("uncompressed", "UNCOMPRESSED"), ("SNAPPY", "SNAPPY")):
        entries = write(tmp_path, rows, ID_AND_TEXT, properties={"write.parquet.compression-codec": codec})
        footer = pq.read_metadata(path_of(entries["location"][0].as_py()))
        assert footer.row_group(0).column(0).compression == stored
    with pytest.raises(InputError, match=r"write.parquet.compression-codec.*lzo"):
        write(tmp_path, rows, ID_AND_TEXT, properties={"write.parquet.compression-codec": "lzo"})
    with pytest.raises(InputError, match="expected a whole number of 1 or more"):
        write(tmp_path, rows, ID_AND_TEXT, properties={"write.target-file-size-bytes": "0"})


def test_batches_of_other_types_are_conformed(tmp_path: Path) -> None:
    batch = pa.record_batch({"text": pa.array(["a"], pa.large_string()), "id": pa.array([1], pa.int16())})
    assert rows_of(write(tmp_path, iter([batch]), ID_AND_TEXT)) == [{"id": 1, "text": "a"}]


def test_nan_is_counted_and_kept_out_of_bounds(tmp_path: Path) -> None:
    schema = Schema(fields=(Field(1, "f", FLOAT), Field(2, "s", Struct((Field(3, "d", DOUBLE),)))))
    rows = [{"f": math.nan, "s": {"d": 0.0}}, {"f": math.nan, "s": None}, {"f": None, "s": {"d": math.nan}}]
    [entry] = write(tmp_path, pa.Table.from_pylist(rows, schema=arrow_schema(schema)), schema).to_pylist()
    assert (entry["value_count:1"], entry["null_value_count:1"], entry["nan_value_count:1"]) == (3, 1, 2)
    assert (entry["lower_bound:1"], entry["upper_bound:1"]) == (None, None)
    assert (entry["value_count:3"], entry["null_value_count:3"], entry["nan_value_count:3"]) == (3, 1, 1)
    assert (math.copysign(1, entry["lower_bound:3"]), math.copysign(1, entry["upper_bound:3"])) == (-1, 1)


def test_a_row_group_of_nothing_but_nan_does_not_hide_the_bounds_of_the_others(tmp_path: Path) -> None:
    schema = Schema(fields=(Field(1, "f", DOUBLE),))
    batches = [pa.record_batch({"f": [math.nan] * 200_000}), pa.record_batch({"f": [1.0, 2.0] * 100_000})]
    small = {"write.parquet.row-group-size-bytes": "100000"}
    [entry] = write(tmp_path, batches, schema, properties=small).to_pylist()
    assert len(entry["split_offsets"]) > 1
    assert (entry["lower_bound:1"], entry["upper_bound:1"], entry["nan_value_count:1"]) == (1.0, 2.0, 200_000)


def test_files_roll_at_the_target_size_and_row_groups_are_split_offsets(tmp_path: Path) -> None:
    rows = ids_and_random_texts(150_000)
    sizes = {"write.target-file-size-bytes": "1000000", "write.parquet.row-group-size-bytes": "500000"}
    entries = write(tmp_path, rows, ID_AND_TEXT, properties=sizes)
    assert entries.num_rows > 2
    assert sum(entries["record_count"].to_pylist()) == 150_000
    assert entries["lower_bound:1"].to_pylist() == sorted(entries["lower_bound:1"].to_pylist())
    for entry in entries.to_pylist()[:-1]:
        assert 950_000 <= entry["file_size_in_bytes"] < 1_800_000  # a file is full at 95 % of its target
        footer = pq.read_metadata(path_of(entry["location"]))
        assert len(entry["split_offsets"]) == footer.num_row_groups
        assert entry["split_offsets"] == sorted(entry["split_offsets"])


def test_a_small_target_alone_makes_small_files(tmp_path: Path) -> None:
    rows = ids_and_random_texts(20_000)
    entries = write(tmp_path, rows, ID_AND_TEXT, properties={"write.target-file-size-bytes": "100000"})
    assert entries.num_rows >= 3
    assert max(entries["file_size_in_bytes"].to_pylist()) < 200_000


def test_a_failing_stream_leaves_no_files_behind(tmp_path: Path) -> None:
    def stream() -> Any:
        yield pa.record_batch({"id": range(200_000), "text": ["x"] * 200_000})
        raise RuntimeError("the source broke")

    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    with pytest.raises(RuntimeError, match="the source broke"):
        write(tmp_path, stream(), ID_AND_TEXT, properties={"write.parquet.row-group-size-bytes": "100000"})
    assert list(tmp_path.rglob("*.parquet")) == []
    assert before == 0 or len(os.listdir("/proc/self/fd")) == before


def test_a_place_that_cannot_be_written_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where the folder should be")
    with pytest.raises(StorageError, match="cannot write"):
        write(tmp_path, pa.table({"id": [1], "text": ["a"]}), ID_AND_TEXT)


def test_files_are_synced_once_they_are_complete() -> None:
    class Recording(MemoryFileIO):
        def sync(self, locations: Any) -> None:
            synced.extend((location, self.size(location)) for location in locations)

    synced: list[tuple[str, int]] = []
    rows = pa.table({"id": [1, 2], "text": ["a", "b"]})
    entries = write_files(
        Recording(), rows, schema=ID_AND_TEXT, spec=spec((1, "identity")), data_location="memory://t/data/"
    )
    assert synced == list(zip(entries["location"].to_pylist(), entries["file_size_in_bytes"].to_pylist(), strict=True))


def test_rows_go_to_the_folder_of_their_partition(tmp_path: Path) -> None:
    schema = Schema(fields=(Field(1, "id", LONG), Field(2, "ts", TIMESTAMPTZ), Field(3, "x", STRING)))
    utc = datetime.UTC
    rows = pa.table(
        {
            "id": [1, 2, 3, 4],
            "ts": pa.array([datetime.datetime(1969, 12, 31, 23, tzinfo=utc)] * 3 + [None], pa.timestamp("us", "UTC")),
            "x": ["a/b", "a/b", None, "ü"],
        }
    )
    entries = write(tmp_path, rows, schema, spec((2, "day"), (3, "identity")))
    folders = [location.removeprefix(f"file://{tmp_path}/data/") for location in entries["location"].to_pylist()]
    assert sorted(folder.rpartition("/")[0] for folder in folders) == [
        "f0_day=1969-12-31/f1_ide=a%2Fb",
        "f0_day=1969-12-31/f1_ide=null",
        "f0_day=null/f1_ide=%C3%BC",
    ]
    by_value = {(row["lower_bound:p1000"], row["lower_bound:p1001"]): row for row in entries.to_pylist()}
    first = by_value[(datetime.date(1969, 12, 31), "a/b")]
    assert (first["upper_bound:p1000"], first["upper_bound:p1001"]) == (datetime.date(1969, 12, 31), "a/b")
    assert (first["value_count:p1000"], first["null_value_count:p1000"], first["partition_spec_id"]) == (2, 0, 3)
    last = by_value[(None, "ü")]
    assert (last["value_count:p1000"], last["null_value_count:p1000"]) == (1, 1)


@pytest.mark.parametrize(
    ("source", "transform", "folder", "value"),
    [
        (1, "year", "f0_yea=2026", 56), (1, "month", "f0_mon=2026-11", 682),
        (1, "hour", "f0_hou=2026-11-15-09", 498537),
        (2, "year", "f0_yea=1969", -1), (2, "month", "f0_mon=1969-12", -1), (3, "truncate[10]", "f0_tru=-10", -10),
        (4, "truncate[2]", "f0_tru=%C3%BC%2F", "ü/"), (5, "truncate[2]", "f0_tru=AP8%3D", b"\x00\xff"),
        (6, "truncate[50]", "f0_tru=10.50", decimal.Decimal("10.50")),
    ],
)  # fmt: skip
def test_folders_have_the_names_that_iceberg_gives_them(
    tmp_path: Path, source: int, transform: str, folder: str, value: object
) -> None:
    types = (TIMESTAMPTZ, DATE, LONG, STRING, BINARY, Decimal(9, 2))
    schema = Schema(fields=tuple(Field(i, f"c{i}", type_) for i, type_ in enumerate(types, 1)))
    moment = datetime.datetime(2026, 11, 15, 9, 59, tzinfo=datetime.UTC)
    row = (moment, datetime.date(1969, 12, 31), -1, "ü/x", b"\x00\xff\x01", decimal.Decimal("10.65"))
    nulls = dict.fromkeys(schema.by_name)
    rows = pa.Table.from_pylist([dict(zip(schema.by_name, row, strict=True)), nulls], schema=arrow_schema(schema))
    entries = write(tmp_path, rows, schema, spec((source, transform)))
    named = {
        entry["location"].split("/")[-2]: (entry["lower_bound:p1000"], entry["upper_bound:p1000"])
        for entry in entries.to_pylist()
    }
    assert named == {folder: (value, value), f"{folder.split('=')[0]}=null": (None, None)}


def test_partition_values_are_whole_where_column_bounds_are_cut(tmp_path: Path) -> None:
    value = "x" * 300
    rows = pa.table({"id": [1], "text": [value]})
    [entry] = write(tmp_path, rows, ID_AND_TEXT, spec((2, "identity"))).to_pylist()
    assert (entry["lower_bound:p1000"], entry["upper_bound:p1000"]) == (value, value)
    assert (entry["lower_bound:2"], entry["upper_bound:2"]) == ("x" * 16, "x" * 15 + "y")
    assert all(len(part) <= 255 for part in entry["location"].split("/"))


def test_nan_null_and_zero_partitions(tmp_path: Path) -> None:
    schema = Schema(fields=(Field(1, "d", DOUBLE),))
    batches = [pa.record_batch({"d": pa.array([math.nan, None, 0.0, -0.0], pa.float64())})] * 2
    small = {"write.parquet.row-group-size-bytes": "8"}  # each row is split by itself
    entries = write(tmp_path, batches, schema, spec((1, "identity")), properties=small)
    found = [
        (
            row["lower_bound:p1000"],
            row["value_count:p1000"],
            row["null_value_count:p1000"],
            row["nan_value_count:p1000"],
        )
        for row in entries.to_pylist()
    ]
    assert Counter(found) == Counter([(None, 2, 0, 2), (None, 2, 2, 0), (0.0, 4, 0, 0)])


def test_void_fields_have_no_value_and_unknown_transforms_are_refused(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "text": ["a", "b"]})
    entries = write(tmp_path, rows, ID_AND_TEXT, spec((1, "void")))
    assert entries.num_rows == 1
    assert "lower_bound:p1000" not in entries.column_names
    with pytest.raises(InputError, match=r"zorder\[4\]"):
        write(tmp_path, rows, ID_AND_TEXT, spec((2, "zorder[4]")))
    with pytest.raises(InputError, match="month of column 'text'"):
        write(tmp_path, rows, ID_AND_TEXT, spec((2, "month")))
    with pytest.raises(InputError, match="dropped column"):
        write(tmp_path, rows, ID_AND_TEXT, spec((9, "identity")))


def test_a_partition_source_inside_a_struct(tmp_path: Path) -> None:
    schema = Schema(fields=(Field(1, "s", Struct((Field(2, "x", INT),))),))
    rows = pa.Table.from_pylist([{"s": {"x": 1}}, {"s": None}, {"s": {"x": 1}}], schema=arrow_schema(schema))
    entries = write(tmp_path, rows, schema, spec((2, "identity")))
    assert sorted(zip(entries["lower_bound:p1000"].to_pylist(), entries["record_count"].to_pylist(), strict=True),
                  key=str) == [(1, 2), (None, 1)]  # fmt: skip


def test_times_that_python_cannot_hold_are_partition_values_too(tmp_path: Path) -> None:
    schema = Schema(fields=(Field(1, "ts", TIMESTAMP), Field(2, "day", DATE)))
    far = pa.table(
        {"ts": pa.array([2**62, -(2**62)], pa.int64()).view(pa.timestamp("us")),
         "day": pa.array([2**30, -(2**30)], pa.int32()).view(pa.date32())}
    )  # fmt: skip
    entries = write(tmp_path, far, schema, spec((1, "identity"), (2, "identity")))
    assert entries["lower_bound:p1000"].cast(pa.int64()).to_pylist() == [2**62, -(2**62)]
    assert entries["upper_bound:2"].cast(pa.int32()).to_pylist() == [2**30, -(2**30)]


def test_few_open_files_make_more_files_and_lose_nothing(tmp_path: Path) -> None:
    rows = pa.table({"id": list(range(40)) * 10, "text": ["t"] * 400})
    batches = rows.to_batches(max_chunksize=40)
    entries = write(
        tmp_path,
        (batch for batch in batches),
        ID_AND_TEXT,
        spec((1, "bucket[8]")),
        memory=Memory(open_files=3, waiting_bytes=1000),
    )
    assert entries.num_rows >= 8
    assert Counter(row["id"] for row in rows_of(entries)) == Counter(dict.fromkeys(range(40), 10))
    for row in entries.to_pylist():
        assert row["lower_bound:p1000"] == row["upper_bound:p1000"]


ALL_TYPES = Schema(
    fields=(
        Field(1, "b", BOOLEAN),
        Field(2, "i", INT),
        Field(3, "d", DATE),
        Field(4, "t", TIME),
        Field(5, "ts", TIMESTAMP),
        Field(6, "dec", Decimal(12, 3)),
        Field(7, "s", STRING),
        Field(8, "bin", BINARY),
        Field(9, "fix", Fixed(4)),
        Field(10, "u", UUID),
        Field(11, "wide", Decimal(38, 0)),
        Field(12, "tz", TIMESTAMPTZ),
    )
)
_STRATEGIES: dict[str, st.SearchStrategy[Any]] = {
    "b": st.booleans(),
    "i": st.integers(-(2**31), 2**31 - 1),
    "d": st.dates(),
    "t": st.times(),
    "ts": st.datetimes(),
    "dec": st.decimals(-999_999_999, 999_999_999, places=3),
    "s": st.text(st.characters(exclude_categories=("Cs",)), max_size=20),
    "bin": st.binary(max_size=20),
    "fix": st.binary(min_size=4, max_size=4),
    "u": st.uuids().map(lambda value: value.bytes),
    "wide": st.integers(-(10**38) + 1, 10**38 - 1).map(decimal.Decimal),
    "tz": st.datetimes(timezones=st.just(datetime.UTC)),
}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.fixed_dictionaries({n: st.none() | s for n, s in _STRATEGIES.items()}), min_size=1, max_size=8),
    by=st.lists(st.integers(1, 12), max_size=2, unique=True),
)
def test_bounds_bound_and_partitions_hold_one_value(tmp_path: Path, rows: list[dict[str, Any]], by: list[int]) -> None:
    table = pa.Table.from_pylist(rows, schema=arrow_schema(ALL_TYPES))
    entries = write(tmp_path, table, ALL_TYPES, spec(*((id_, "identity") for id_ in by)))
    assert Counter(map(str, rows_of_plain(entries))) == Counter(map(str, table.to_pylist()))
    for entry in entries.to_pylist():
        inside = rows_of_plain(entries.filter(pa.compute.field("location") == entry["location"]))
        for field in ALL_TYPES.fields:
            values = [row[field.name] for row in inside]
            check_bounds(field, entry, values)
        for position, id_ in enumerate(by):
            name, key = ALL_TYPES.by_id[id_].name, f"p{1000 + position}"
            assert {entry[f"lower_bound:{key}"]} == {row[name] for row in inside}
            assert entry[f"null_value_count:{key}"] == sum(row[name] is None for row in inside)


def rows_of_plain(entries: pa.Table) -> list[dict[str, Any]]:
    """Rows as stored, UUIDs as bytes."""
    rows = rows_of(entries)
    return [{**row, "u": None if row["u"] is None else row["u"].bytes} for row in rows]


def check_bounds(field: Field, entry: dict[str, Any], values: list[Any]) -> None:
    present = [value for value in values if value is not None]
    lower, upper = entry[f"lower_bound:{field.id}"], entry[f"upper_bound:{field.id}"]
    assert entry[f"value_count:{field.id}"] == len(values)
    assert entry[f"null_value_count:{field.id}"] == len(values) - len(present)
    if len(present) == 0:
        assert (lower, upper) == (None, None)
        return
    if field.type in (STRING, BINARY):
        assert lower <= min(present)
        assert len(lower) <= 16
        assert lower == min(present)[:16]
        assert upper is None or (upper >= max(present) and len(upper) <= 16)
    else:
        assert (lower, upper) == (min(present), max(present))


def test_a_file_with_a_nan_has_no_footer_statistics_for_that_column_alone(tmp_path: Path) -> None:
    """Spark skips row groups by their bounds and holds NaN to be the greatest number: it lost rows that way."""
    schema = Schema(
        fields=(Field(1, "x", DOUBLE), Field(2, "s", Struct((Field(3, "y", DOUBLE),))), Field(4, "z", DOUBLE))
    )
    rows = [{"x": 1.0, "s": {"y": math.nan}, "z": 2.0}, {"x": 3.0, "s": {"y": 5.0}, "z": None}]
    [entry] = write(tmp_path, pa.Table.from_pylist(rows, schema=arrow_schema(schema)), schema).to_pylist()
    group = pq.read_metadata(entry["location"].removeprefix("file://")).row_group(0)
    told = {group.column(i).path_in_schema: group.column(i).is_stats_set for i in range(group.num_columns)}
    assert told == {"x": True, "s.y": False, "z": True}
    assert (entry["lower_bound:3"], entry["upper_bound:3"], entry["nan_value_count:3"]) == (5.0, 5.0, 1)
    assert (entry["value_count:3"], entry["null_value_count:3"]) == (2, 0)


def test_a_nan_that_comes_late_begins_another_file(tmp_path: Path) -> None:
    schema = Schema(fields=(Field(1, "x", DOUBLE),))
    batches = [pa.record_batch({"x": [1.0, 2.0] * 100_000}), pa.record_batch({"x": [math.nan, 7.0] * 100_000})]
    small = {"write.parquet.row-group-size-bytes": "100000"}
    first, second = write(tmp_path, batches, schema, properties=small).to_pylist()
    assert (first["upper_bound:1"], first["nan_value_count:1"]) == (2.0, 0)
    assert (second["lower_bound:1"], second["upper_bound:1"], second["nan_value_count:1"]) == (7.0, 7.0, 100_000)
