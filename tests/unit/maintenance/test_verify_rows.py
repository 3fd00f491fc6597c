"""The check of rows finds nothing in sound tables, and every rule finds the data file that was made to break it."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable
from itertools import count

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from icefloe.errors import InputError, NoSuchTable
from icefloe.io.memory import MemoryFileIO
from icefloe.io.select import file_io
from icefloe.maintenance.verify.findings import CONSEQUENCES, Finding, Rule, Severity
from icefloe.maintenance.verify.verify import VerifyResult
from icefloe.table.catalog import Catalog, catalog
from icefloe.table.table import Table
from support.tables import VERSIONS, reopened

SCHEMA = "id bigint, x double, city string, s struct<n: int>"
ROWS = pa.table(
    {
        "id": [1, 2, 3, 4],
        "x": [0.5, None, float("nan"), -1.5],
        "city": ["Oslo", "Oslo", "Oslo", "Oslo"],
        "s": [{"n": 1}, None, {"n": None}, {"n": 7}],
    }
)
NAMES = count()
# Built beside this module: see tests/unit/maintenance/test_verify_metadata.py for the findings about metadata.


def new_table(version: int, **options: object) -> Table:
    lake = catalog(f"lake{next(NAMES)}", uri="memory://")
    options = {"partition_by": ["city", "bucket(4, id)"], **options} if "partition_by" not in options else options
    return lake.create_table("db.t", schema=SCHEMA, format_version=version, **options)


def one_file(version: int, **options: object) -> Table:
    """A table with one data file of four rows."""
    table = new_table(version, partition_by=["city"], **options)
    table.append(ROWS)
    return table


def storage(table: Table) -> MemoryFileIO:
    io = file_io(table.location)
    assert isinstance(io, MemoryFileIO)
    return io


def rewrite(table: Table, change: Callable[[pa.Table], pa.Table], location: str | None = None) -> str:
    """Change the rows of a data file behind the table's back; its location."""
    where = table.scan().plan().tasks["location"][0].as_py() if location is None else location
    io, sink = storage(table), pa.BufferOutputStream()
    pq.write_table(change(pq.read_table(pa.BufferReader(io.read(where)))), sink)
    io.replace(where, sink.getvalue().to_pybytes())
    return where


def with_column(rows: pa.Table, name: str, values: list[object]) -> pa.Table:
    index = rows.schema.get_field_index(name)
    return rows.set_column(index, rows.schema.field(index), pa.array(values, rows.schema.field(index).type))


def rules(findings: Iterable[Finding]) -> set[Rule]:
    return {each.rule for each in findings}


def faults(result: VerifyResult) -> set[Rule]:
    return {each.rule for each in result.findings if each.severity is not Severity.INFO}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_sound_table_of_every_version_has_no_findings(version):
    table = new_table(version, sort_by=["id"])
    table.append(ROWS)
    table.append(pa.table({"id": [9, 8], "city": ["Rome", None]}))
    table.tag("before")
    table.update({"x": "id"}, where="id = 2")
    table.delete("id = 3")
    with table.update_schema() as edit:
        edit.add_column("late", "int")
        edit.rename_column("x", "y")
    table.append(pa.table({"id": [5], "city": ["Rome"], "late": [1]}))
    result = table.verify("all", files=True, rows=True)
    assert result.ok
    assert result.findings == ()
    assert result.checked.snapshots == len(table.snapshots)
    assert result.checked.data_files > 3
    assert result.checked.rows >= 7
    assert result.checked.files > result.checked.data_files


DAMAGE = {
    "a row more": (lambda t: pa.concat_tables([t, t.slice(0, 1)]), {Rule.RECORD_COUNTS, Rule.VALUE_COUNTS}),
    "no rows": (lambda t: t.slice(0, 0), {Rule.RECORD_COUNTS, Rule.VALUE_COUNTS}),
    "a larger value": (lambda t: with_column(t, "id", [1, 2, 3, 99]), {Rule.BOUNDS}),
    "a smaller value": (lambda t: with_column(t, "id", [-1, 2, 3, 4]), {Rule.BOUNDS}),
    "a smaller float": (lambda t: with_column(t, "x", [0.5, None, float("nan"), -9.0]), {Rule.BOUNDS}),
    "a null more": (lambda t: with_column(t, "id", [1, None, 3, 4]), {Rule.VALUE_COUNTS}),
    "a NaN less": (lambda t: with_column(t, "x", [0.5, None, 0.0, -1.5]), {Rule.VALUE_COUNTS}),
    "a null less in a struct": (
        lambda t: with_column(t, "s", [{"n": 1}, {"n": 2}, {"n": None}, {"n": 7}]),
        {Rule.VALUE_COUNTS},
    ),
    "another partition": (
        lambda t: with_column(t, "city", ["Oslo", "Oslo", "Oslo", "Rome"]),
        {Rule.PARTITIONS, Rule.BOUNDS},
    ),
    "no partition": (
        lambda t: with_column(t, "city", ["Oslo", None, "Oslo", "Oslo"]),
        {Rule.PARTITIONS, Rule.VALUE_COUNTS},
    ),
}


@pytest.mark.parametrize("case", DAMAGE)
@pytest.mark.parametrize("version", VERSIONS)
def test_rows_that_differ_from_their_entry_are_found(version, case):
    change, expected = DAMAGE[case]
    table = one_file(version)
    where = rewrite(table, change)
    assert table.verify().findings == ()
    result = table.verify(rows=True)
    unassigned = {Rule.ROW_IDS} if case == "a row more" and version > 2 else set()  # the row's id is not given yet
    assert faults(result) == expected | unassigned
    assert {each.location for each in result.findings} == {where}
    assert not result.ok


@pytest.mark.parametrize("version", VERSIONS)
def test_rows_out_of_the_stated_order_are_a_warning(version):
    table = one_file(version, sort_by=["id desc"])
    assert table.verify(rows=True).findings == ()
    rewrite(table, lambda t: t.take(pa.array([0, 2, 1, 3])))
    result = table.verify(rows=True)
    assert [(each.rule, each.severity) for each in result.findings] == [(Rule.SORT_ORDER, Severity.WARNING)]
    assert result.ok
    assert "row 2 " in result.findings[0].message


@pytest.mark.parametrize("version", [3, 4])
def test_row_ids_that_are_not_unique_or_not_given_yet_are_found(version):
    table = one_file(version)
    table.append(pa.table({"id": [8, 9], "city": ["Rome", "Rome"]}))
    table.update({"x": "1.5"}, where="id = 2")
    tasks = table.scan().plan().tasks
    (updated,) = [at for at in tasks["location"].to_pylist() if "_row_id" in columns(table, at)]
    assert table.verify(rows=True).findings == ()
    rewrite(table, lambda t: with_column(t, "_row_id", [5] * t.num_rows), updated)
    found = table.verify(rows=True).findings
    assert rules(found) == {Rule.ROW_IDS}
    assert "row id 5 of" in found[0].message
    rewrite(table, lambda t: with_column(t, "_row_id", [10**6] * t.num_rows), updated)
    assert any("beyond next-row-id" in each.message for each in table.verify(rows=True).findings)
    rewrite(table, lambda t: with_column(t, "_last_updated_sequence_number", [10**6] * t.num_rows), updated)
    assert any("sequence number" in each.message for each in table.verify(rows=True).findings)


def columns(table: Table, location: str) -> list[str]:
    return pq.ParquetFile(pa.BufferReader(storage(table).read(location))).schema_arrow.names


@pytest.mark.parametrize("version", VERSIONS)
def test_a_data_file_that_cannot_be_read_is_a_finding(version):
    table = one_file(version)
    (where,) = table.scan().plan().tasks["location"].to_pylist()
    storage(table).replace(where, b"PAR1 and nothing else PAR1")
    result = table.verify(rows=True)
    assert [(each.rule, each.location) for each in result.findings] == [(Rule.READABLE, where)]
    storage(table).delete([where])
    assert faults(table.verify(rows=True)) == {Rule.READABLE}
    assert faults(table.verify(files=True)) == {Rule.FILES}
    assert f"t.remove_files(['{where}'])" in table.verify(files=True).findings[0].remedy


def test_an_equality_delete_file_that_cannot_be_read_is_a_finding():
    table = one_file(2, properties={"write.upsert.deletes": "equality"})
    table.upsert(pa.table({"id": [1], "city": ["Oslo"]}), on=["id", "city"])
    assert table.verify(rows=True).findings == ()
    (where,) = table.scan().plan().deletes["location"].to_pylist()
    rewrite(table, lambda t: t.drop_columns(["id"]), where)
    assert faults(table.verify(rows=True)) == {Rule.EQUALITY_DELETES}


def test_only_the_heads_are_checked_unless_all_snapshots_are_asked_for():
    table = one_file(4)
    old = table.scan().plan().tasks["location"][0].as_py()
    table.overwrite(ROWS, where="city = 'Oslo'")
    storage(table).delete([old])
    assert table.verify(files=True, rows=True).ok
    assert faults(table.verify("all", files=True)) == {Rule.FILES}
    table.tag("old", snapshot=table.snapshots[0].snapshot_id)
    assert faults(table.verify(files=True)) == {Rule.FILES}
    assert table.verify(files=True).checked.snapshots == 2


def test_a_file_without_a_reference_is_reported_and_no_error():
    table = one_file(4)
    storage(table).write_new(f"{table.location}/data/lost.parquet", b"12345")
    assert table.verify(files=True).findings == ()  # older snapshots may need it
    (found,) = table.verify("all", files=True).findings
    assert (found.rule, found.severity) == (Rule.UNREFERENCED, Severity.INFO)
    assert "1 files of 5 bytes" in found.message


@pytest.mark.broken_tables
@pytest.mark.parametrize("version", VERSIONS)
def test_a_metadata_file_that_cannot_be_read_is_a_finding(version):
    table = one_file(version)
    where = table.metadata_location
    storage(table).replace(where, b"{ no json")
    fresh = reopened(table)
    for one in (table, fresh):
        result = one.verify("all", rows=True)
        assert (Rule.READABLE, where) in {(each.rule, each.location) for each in result.findings}
        assert not result.ok
    assert "cat.register_table" in fresh.verify().findings[0].remedy


def test_a_former_metadata_file_of_another_table_is_found():
    table = one_file(2)
    former = table.metadata.metadata_log[-1].metadata_file
    text = storage(table).read(former).decode()
    storage(table).replace(former, text.replace(table.metadata.table_uuid, "0" * 8).encode())
    (found,) = table.verify().findings
    assert (found.rule, found.severity) == (Rule.TABLE_UUID, Severity.ERROR)
    storage(table).replace(former, b"not json")
    (found,) = table.verify().findings
    assert (found.rule, found.severity) == (Rule.READABLE, Severity.WARNING)
    storage(table).delete([former])
    (found,) = table.verify().findings
    assert (found.rule, found.severity) == (Rule.FILES, Severity.WARNING)


def test_a_table_that_does_not_exist_and_a_wrong_argument_are_errors():
    lake: Catalog = catalog(f"lake{next(NAMES)}", uri="memory://")
    table = lake.create_table("db.t", schema=SCHEMA)
    assert table.verify("all", files=True, rows=True).findings == ()
    with pytest.raises(InputError, match="current"):
        table.verify("newest")
    with pytest.raises(InputError, match="Spark"):
        table.verify(rows=True, spark=object())
    lake.drop_table("db.t")
    with pytest.raises(NoSuchTable):
        table.verify()


def test_a_result_can_be_read_and_passed_on():
    table = one_file(4)
    rewrite(table, DAMAGE["a larger value"][0])
    result = table.verify(rows=True)
    text = repr(result)
    assert text.splitlines()[0] == "verify db.t: NOT SOUND: 1 error, 0 warnings"
    assert "next step: " in text
    assert "not checked: storage (files=True)" in text
    told = result.as_dict()
    assert told["ok"] is False
    assert told["findings"][0]["rule"] == "bounds"
    assert told["checked"]["rows"] == 4
    assert "and 30 more" in repr(with_many(result))


def with_many(result: VerifyResult) -> VerifyResult:
    fields = {name: getattr(result, name) for name in VerifyResult.__dataclass_fields__}
    return VerifyResult(**{**fields, "findings": result.findings * 50})


def test_progress_is_reported():
    steps: list[tuple[int, int, str]] = []
    one_file(4).verify(rows=True, progress=lambda *step: steps.append(step))
    assert (1, 1, "snapshots checked") in steps
    assert (1, 1, "data files read") in steps


def test_every_rule_has_a_severity_and_a_remedy_that_names_a_command():
    assert set(CONSEQUENCES) == set(Rule)
    for rule, consequence in CONSEQUENCES.items():
        named = set(re.findall(r"\bt\.(\w+)\(", consequence.remedy))
        in_catalog = set(re.findall(r"\bcat\.(\w+)\(", consequence.remedy))
        assert len(named | in_catalog) > 0, rule
        assert all(hasattr(Table, name) for name in named), rule
        assert all(hasattr(Catalog, name) for name in in_catalog), rule


def test_a_column_is_measured_in_every_batch_of_a_file():
    """Rows are checked in batches of 128 x 1024; a fault in the second one is found."""
    table = new_table(4, partition_by=[], sort_by=["id"])
    rows = 128 * 1024 + 10
    table.append(pa.table({"id": pa.array(range(rows), pa.int64())}))
    assert table.verify(rows=True).findings == ()
    ids = pc.if_else(pc.equal(pa.array(range(rows)), rows - 2), rows * 5, pa.array(range(rows)))
    rewrite(table, lambda t: with_column(t, "id", ids.to_pylist()))
    assert faults(table.verify(rows=True)) == {Rule.BOUNDS, Rule.SORT_ORDER}


@pytest.mark.parametrize(("version", "found"), [(3, set()), (4, {Rule.BOUNDS})])
def test_bounds_that_are_claimed_to_be_tight_are_values_of_the_file(version, found):
    table = one_file(version)
    rewrite(table, lambda rows: with_column(rows, "id", [1, 2, 3, 3]))
    table = reopened(table)
    assert faults(table.verify(rows=True)) == found


@pytest.mark.parametrize("type_", ["geometry", "geography"])
@pytest.mark.parametrize(("x", "found"), [(1.0, set()), (9.0, {Rule.BOUNDS}), (-9.0, {Rule.BOUNDS})])
def test_a_box_of_shapes_encloses_the_points_of_the_file(type_, x, found):
    def points(*xs: float) -> list[bytes]:
        return [struct.pack("<BIdd", 1, 1, x, 0.0) for x in xs]

    lake = catalog(f"lake{next(NAMES)}", uri="memory://")
    table = lake.create_table("db.t", schema=f"id bigint, place {type_}", format_version=4)
    table.append(pa.table({"id": [1, 2], "place": pa.array(points(-1.0, 2.0), pa.binary())}))
    entry = table.scan().plan().tasks["location"][0].as_py()
    io, sink = storage(table), pa.BufferOutputStream()
    stored = pq.read_table(pa.BufferReader(io.read(entry)))
    index = stored.schema.get_field_index("place")
    field = pa.field("place", pa.binary(), metadata=stored.schema.field(index).metadata)
    pq.write_table(stored.set_column(index, field, pa.array(points(-1.0, x), pa.binary())), sink)
    io.replace(entry, sink.getvalue().to_pybytes())
    assert faults(table.verify(rows=True)) == found


def numbers_table(codec: str = "uncompressed") -> tuple[Table, str]:
    """A table of one file, and its location. Any bits are a number, so a flipped one breaks nothing but a value."""
    lake = catalog(f"lake{next(NAMES)}", uri="memory://")
    properties = {"write.parquet.compression-codec": codec, "write.parquet.page-row-limit": "500"}
    table = lake.create_table("db.t", schema="id bigint, x int", format_version=4, properties=properties)
    values = list(range(2000))
    table.append(pa.table({"id": [n * 2**40 for n in values], "x": pa.array(values[::-1], pa.int32())}))
    return table, table.scan().plan().tasks["location"][0].as_py()


@pytest.mark.parametrize("codec", ["uncompressed", "zstd"])
def test_a_flipped_bit_of_a_page_is_found(codec):
    """The table was sound, as the changed value lay between the bounds of its column."""
    table, location = numbers_table(codec)
    io = storage(table)
    data = io.read(location)
    assert table.verify(rows=True).ok
    footer = pq.read_metadata(pa.BufferReader(data))
    for chunk in (footer.row_group(0).column(place) for place in range(2)):
        start = min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset)))
        end = start + chunk.total_compressed_size
        for at in range(end - 1, start + 100, -(end - start) // 5):  # the header before the page is not in its checksum
            io.replace(location, data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
            result = table.verify(rows=True)
            assert [finding.rule for finding in result.findings if finding.severity is Severity.ERROR] == [
                Rule.READABLE
            ]
            assert location in result.findings[0].location
    assert result.checked.rows_without_checksums == 0


def test_rows_of_files_without_checksums_are_counted():
    table = one_file(4)
    assert table.verify(rows=True).checked.rows_without_checksums == 0
    rewrite(table, lambda rows: rows)
    table.append(ROWS)
    result = table.verify(rows=True)
    assert (result.checked.rows, result.checked.rows_without_checksums) == (8, 4)
    assert "8 rows in 2 data files (4 of them in files without checksums)" in repr(result)
    lake = catalog(f"lake{next(NAMES)}", uri="memory://")
    avro = lake.create_table("db.t", schema="id bigint", properties={"write.format.default": "avro"})
    avro.append(pa.table({"id": [1, 2]}))
    assert avro.verify(rows=True).checked.rows_without_checksums == 2


def test_a_file_without_rows_needs_no_checksum():
    table = one_file(4)
    rewrite(table, lambda rows: rows.slice(0, 0))
    assert table.verify(rows=True).checked.rows_without_checksums == 0


@pytest.mark.parametrize("kind", ["position", "equality"])
def test_a_flipped_bit_of_a_delete_file_is_found(kind):
    """It deleted another row, and the table was sound."""
    lake = catalog(f"lake{next(NAMES)}", uri="memory://")
    properties = {"write.parquet.compression-codec": "uncompressed", "write.delete.mode": "merge-on-read"}
    table = lake.create_table("db.t", schema="id bigint", format_version=2, properties=properties)
    table.append(pa.table({"id": list(range(100))}))
    before = {file.location for file in storage(table).list(table.location)}
    if kind == "position":
        table.delete("id = 3 or id = 4 or id = 6")
    else:
        table.upsert(pa.table({"id": [3, 4, 6]}), on=["id"], deletes="equality")
    io, plan = storage(table), table.scan().plan()
    (location,) = [file for file in plan.deletes["location"].to_pylist() if file not in before]
    data = io.read(location)
    footer = pq.read_metadata(pa.BufferReader(data))
    chunk = footer.row_group(0).column(footer.num_columns - 1)
    start = min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset)))
    at = data.rindex((4).to_bytes(8, "little"), start, start + chunk.total_compressed_size)
    assert table.verify(rows=True).ok
    io.replace(location, data[:at] + b"\x05" + data[at + 1 :])
    assert not table.verify(rows=True).ok
