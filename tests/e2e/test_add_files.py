"""Files by reference: what a table takes over, how it reads it, and what it refuses."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest
from added_files import entry_of, file_of
from pyarrow import orc

import icefloe
from icefloe.commit.draft import draft_of
from icefloe.commit.loop import commit
from icefloe.commit.operations.add_files import known_files
from icefloe.env import SYSTEM
from icefloe.errors import ConflictError, CorruptFile, InputError, NoSuchFile
from icefloe.model.schema.name_mapping import NAME_MAPPING_PROPERTY
from icefloe.model.text.ddl import parse_ddl
from icefloe.rows.add_files import add_files
from icefloe.rows.target import Target
from icefloe.table.held_table import pointer_of
from support.row_histories.history import without_ids
from support.tables import VERSIONS, new_catalog, sorted_rows

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "note": ["a", None, "c"]})


@pytest.fixture
def lake(tmp_path):
    return new_catalog(tmp_path)


@pytest.fixture
def table(lake):
    return lake.create_table("db.t", schema="id bigint, note string")


def with_ids(rows: pa.Table, *ids: int) -> pa.Table:
    fields = [f.with_metadata({"PARQUET:field_id": str(id_)}) for f, id_ in zip(rows.schema, ids, strict=True)]
    return rows.cast(pa.schema(fields))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_without_ids_is_read_by_its_names(version, tmp_path, lake):
    table = lake.create_table("db.t", schema="id bigint, note string", format_version=version)
    table.append(pa.table({"id": pa.array([9], pa.int64()), "note": ["own"]}))
    path = file_of(tmp_path, ROWS)
    before = Path(path).read_bytes()
    result = table.add_files(path)
    assert (result.files_added, result.rows_added, result.operation) == (1, 3, "set properties, append")
    assert sorted_rows(table.scan().to_arrow()) == sorted_rows(
        pa.concat_tables([ROWS, pa.table({"id": pa.array([9], pa.int64()), "note": ["own"]})])
    )
    assert table.scan("id = 2").to_arrow().to_pylist() == [{"id": 2, "note": None}]
    assert NAME_MAPPING_PROPERTY in table.properties
    assert Path(path).read_bytes() == before
    assert f"file://{path}" in table.scan().plan().tasks["location"].to_pylist()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_with_ids_is_read_by_them(version, tmp_path, lake):
    table = lake.create_table("db.t", schema="id bigint, note string", format_version=version)
    with table.update_schema() as edit:
        edit.rename_column("note", "memo")
    swapped = with_ids(ROWS.select(["note", "id"]), 2, 1)
    assert table.add_files([file_of(tmp_path, swapped)]).operation == "append"
    assert table.scan().to_arrow().to_pylist() == ROWS.rename_columns(["id", "memo"]).to_pylist()
    assert NAME_MAPPING_PROPERTY not in table.properties


def test_an_entry_tells_what_the_footer_tells(tmp_path, table):
    table.add_files(file_of(tmp_path, ROWS, row_group_size=2))
    entry = entry_of(table)
    assert (entry["record_count"], entry["file_format"]) == (3, "parquet")
    assert entry["file_size_in_bytes"] == (tmp_path / "a.parquet").stat().st_size
    assert (entry["lower_bound:1"], entry["upper_bound:1"], entry["null_value_count:2"]) == (1, 3, 1)
    assert len(entry["split_offsets"]) == 2
    assert table.scan("id > 3").plan().files == 0


@pytest.mark.parametrize("kind", ["orc", "avro"])
def test_files_of_other_formats_are_measured_by_reading_them(kind, tmp_path, table):
    path = tmp_path / f"a.{kind}"
    if kind == "orc":
        orc.write_table(ROWS, path)
    else:
        schema = {
            "type": "record",
            "name": "r",
            "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"]}],
        }
        with open(path, "wb") as out:
            fastavro.writer(out, schema, ROWS.to_pylist())
    table.add_files(str(path))
    assert table.scan().to_arrow().to_pylist() == ROWS.to_pylist()
    entry = entry_of(table)
    assert (entry["record_count"], entry["file_format"]) == (3, kind)
    assert (entry["lower_bound:1"], entry["upper_bound:1"], entry["null_value_count:2"]) == (1, 3, 1)
    assert table.scan("id > 3").plan().files == 0


def test_a_column_that_a_file_lacks_is_not_measured(tmp_path, table):
    orc.write_table(ROWS.select(["id"]), tmp_path / "a.orc")
    table.add_files(str(tmp_path / "a.orc"))
    assert entry_of(table).get("value_count:2") is None
    assert table.scan("note is null").count() == 3


def test_the_format_is_known_by_the_first_bytes_where_the_name_does_not_tell(tmp_path, table):
    table.add_files(file_of(tmp_path, ROWS, "part-00000"))
    assert table.scan().count() == 3
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(InputError, match=r"notes\.txt is no Parquet, ORC or Avro file"):
        table.add_files(str(tmp_path / "notes.txt"))


def test_a_folder_is_all_its_data_files(tmp_path, table):
    for number in range(3):
        file_of(tmp_path, ROWS, f"old/part-{number}.parquet")
    (tmp_path / "old" / "_SUCCESS").touch()
    (tmp_path / "old" / ".part-0.parquet.crc").write_bytes(b"crc")
    file_of(tmp_path, ROWS, "old/_temporary/0/part-9.parquet")
    assert table.add_files(str(tmp_path / "old")).files_added == 3
    assert table.scan().count() == 9
    with pytest.raises(NoSuchFile, match="there is no file at"):
        table.add_files(str(tmp_path / "absent"))


def test_a_file_without_rows_adds_nothing(tmp_path, table):
    result = table.add_files(file_of(tmp_path, ROWS.slice(0, 0)))
    assert (result.snapshot_id, result.files_added, len(table.snapshots)) == (None, 0, 0)


def test_a_file_is_not_added_twice(tmp_path, table):
    path = file_of(tmp_path, ROWS)
    with pytest.raises(InputError, match="is given twice"):
        table.add_files([path, f"file:{path}"])
    table.add_files(path)
    for spelled in (path, f"file:{path}", f"file://{path}"):
        with pytest.raises(InputError, match="is in the table already"):
            table.add_files([file_of(tmp_path, ROWS, "b.parquet"), spelled])
    assert table.scan().count() == 3


def test_slashes_too_many_or_a_host_do_not_make_another_file(tmp_path, lake):
    """A path joined carelessly named the same file again, and its rows came twice."""
    path = file_of(tmp_path, ROWS, "in/a.parquet")
    doubled = f"file://{tmp_path}/in//a.parquet"
    folder = f"file://{tmp_path}//in"
    for number, first in enumerate((path, doubled, folder, f"file://localhost{path}", f"FILE://{path}")):
        table = lake.create_table(f"db.t{number}", schema="id bigint, note string")
        with pytest.raises(InputError, match="is given twice"):
            table.add_files([first, f"file:///{path}"])
        table.add_files(first)
        assert table.scan().plan().tasks["location"].to_pylist() == [f"file://{path}"]
        for again in (path, doubled, f"file:///{path}", folder, f"{folder}/", f"file:{path}"):
            with pytest.raises(InputError, match="is in the table already"):
                table.add_files(again)
        assert table.scan().count() == 3


def steps_that_add(table, path):
    return add_files(path).prepared(Target(base=pointer_of(table).load(), env=SYSTEM)).steps


def test_a_file_that_another_commit_added_meanwhile_is_a_conflict(tmp_path, table):
    path = file_of(tmp_path, ROWS)
    late = steps_that_add(table, path)
    table.add_files(path)
    with pytest.raises(ConflictError, match=r"has already added .*a.parquet|changed the schema or the name mapping"):
        commit(pointer_of(table), late)
    assert Path(path).exists()
    assert table.scan().count() == 3


def test_a_schema_that_changed_meanwhile_is_a_conflict(tmp_path, table):
    late = steps_that_add(table, file_of(tmp_path, with_ids(ROWS, 1, 2)))
    with table.update_schema() as edit:
        edit.add_column("more", "int")
    with pytest.raises(ConflictError, match="changed the schema"):
        commit(pointer_of(table), late)


def test_a_name_mapping_that_another_commit_gave_meanwhile_is_a_conflict(tmp_path, table):
    """It was replaced by one without its aliases: files that others had added by these read as nulls."""
    late = table.transaction()
    late.add_files(file_of(tmp_path, ROWS))
    given = '[{"field-id": 1, "names": ["id", "key"]}, {"field-id": 2, "names": ["note"]}]'
    table.set_properties({NAME_MAPPING_PROPERTY: given})
    table.add_files(file_of(tmp_path, ROWS.rename_columns(["key", "note"]), "b.parquet"))
    with pytest.raises(ConflictError, match="another commit has set the name mapping"):
        late.commit()
    assert table.properties[NAME_MAPPING_PROPERTY] == given
    assert sorted_rows(table.scan().to_arrow()) == sorted_rows(ROWS)


def test_two_writers_that_give_a_table_the_same_name_mapping_both_land(tmp_path, table):
    late = table.transaction()
    late.add_files(file_of(tmp_path, ROWS))
    table.add_files(file_of(tmp_path, ROWS, "b.parquet"))
    assert late.commit().attempts == 2
    assert table.scan().count() == 6


def test_files_in_the_table_folder_survive_a_commit_that_fails(table):
    folder = Path(table.location.removeprefix("file://")) / "data"
    path = file_of(folder, with_ids(ROWS, 1, 2), "given.parquet")
    late = steps_that_add(table, path)
    table.add_files(path)
    with pytest.raises(ConflictError):
        commit(pointer_of(table), late)
    with table.transaction() as transaction, pytest.raises(InputError):
        transaction.add_files(path)
    assert Path(path).exists()
    assert table.scan().count() == 3


def test_the_summary_of_a_transaction_is_that_of_added_files_too(tmp_path, table):
    with table.transaction(summary={"job": "load-7"}) as transaction:
        transaction.add_files(file_of(tmp_path, with_ids(ROWS, 1, 2)))
    assert table.metadata.current_snapshot.summary["job"] == "load-7"


def test_a_transaction_adds_files_beside_other_changes(tmp_path, table):
    with table.transaction() as transaction:
        transaction.append(ROWS)
        transaction.add_files(file_of(tmp_path, ROWS))
        transaction.delete("id = 1")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [2, 2, 3, 3]


def test_files_go_to_a_branch(tmp_path, table):
    table.append(ROWS)
    table.branch("dev")
    table.add_files(file_of(tmp_path, ROWS), branch="dev")
    assert (table.scan().count(), table.at(branch="dev").scan().count()) == (3, 6)


def test_the_mapping_of_the_table_is_used_where_it_has_one(tmp_path, table):
    table.set_properties(
        {NAME_MAPPING_PROPERTY: '[{"field-id": 1, "names": ["id", "key"]}, {"field-id": 2, "names": ["note", "text"]}]'}
    )
    path = file_of(tmp_path, ROWS.rename_columns(["key", "text"]))
    assert table.add_files(path).operation == "append"
    assert table.scan().to_arrow().to_pylist() == ROWS.to_pylist()


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (ROWS.append_column("extra", pa.array([1, 2, 3])), "the table has no column 'extra'"),
        (with_ids(ROWS, 1, 7), "column 'note' has field id 7, which no column of the table has"),
        (with_ids(ROWS, 2, 1), "column 'id' has field id 2, which in the table is the id of 'note'"),
        (with_ids(ROWS, 1, 2_147_483_540), "field id 2147483540, which no column of the table has"),
        (ROWS.set_column(0, "id", pa.array(["1", "2", "3"])), "column 'id' is string in the file"),
        (ROWS.set_column(0, "id", pa.array([1.0, 2.0, 3.0])), "column 'id' is double in the file"),
        (ROWS.set_column(0, "id", pa.array([1, 2, 3], pa.uint64())), "column 'id' is uint64 in the file"),
    ],
    ids=["extra", "unknown id", "ids of another table", "reserved id", "text", "double", "unsigned"],
)
def test_columns_that_are_not_the_tables_are_refused(rows, says, tmp_path, table):
    with pytest.raises(InputError) as refusal:
        table.add_files([file_of(tmp_path, ROWS, "good.parquet"), file_of(tmp_path, rows, "bad.parquet")])
    assert says in str(refusal.value)
    assert "bad.parquet" in str(refusal.value)
    assert refusal.value.context["location"] == f"file://{tmp_path}/bad.parquet"
    assert len(table.snapshots) == 0


@pytest.mark.parametrize(
    ("type_", "stored"),
    [
        ("float", pa.array([1.5, None], pa.float16())),
        ("bigint", pa.array([200, None], pa.uint8())),
        ("string", pa.array(["a", None]).dictionary_encode()),
        ("string", pa.array(["a", None], pa.large_string())),
        ("date", pa.array([dt.date(1969, 12, 31), None], pa.date64())),
        ("timestamp_ntz", pa.array([dt.datetime(1960, 1, 1), None], pa.timestamp("ms"))),
        ("timestamp", pa.array([0, None], pa.timestamp("us", "Asia/Kolkata"))),
        ("decimal(9,2)", pa.array([Decimal("1.25"), None], pa.decimal128(5, 2))),
        ("array<int>", pa.array([[1], None], pa.large_list(pa.int16()))),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value.type).split("<")[0],
)
def test_arrow_types_that_hold_values_of_a_column_are_taken(type_, stored, tmp_path, lake):
    table = lake.create_table("db.t", schema=f"x {type_}")
    table.add_files(file_of(tmp_path, pa.table({"x": stored})))
    column = table.schema.field("x").type
    expected = stored.cast(icefloe.model.arrow.conform.arrow_type(column)).to_pylist()
    assert table.scan().to_arrow()["x"].to_pylist() == expected
    if not pa.types.is_nested(stored.type):
        assert table.scan("x is not null").to_arrow()["x"].to_pylist() == expected[:1]
        value = expected[0]
        bound = entry_of(table).get("lower_bound:1")
        assert bound is None or bound <= value


@pytest.mark.parametrize("type_", ["timestamp", "timestamp_ntz", "time", "date", "string", "decimal(9,2)", "double"])
def test_a_column_without_any_value_is_taken_as_pandas_writes_it(type_, tmp_path, lake):
    """Its type is null, which has no unit of time: adding the file, and filters, ended in an AttributeError."""
    table = lake.create_table("db.t", schema=f"id bigint, x {type_}")
    table.add_files(file_of(tmp_path, pa.table({"id": [1, 2], "x": pa.nulls(2)})))
    assert table.scan("x is null").to_arrow().to_pylist() == [{"id": 1, "x": None}, {"id": 2, "x": None}]
    assert table.scan("x is not null").count() == 0


@pytest.mark.parametrize("type_", ["{}", "array<{}>", "map<string, {}>", "struct<a: {}>"])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_timestamps_of_96_bits_are_taken_with_and_without_a_zone(type_, zone, tmp_path, lake):
    """Spark's own files have them; where the table has timestamptz, they were read but could not be added."""
    table = lake.create_table("db.t", schema=f"x {type_.format('timestamp' if zone else 'timestamp_ntz')}")
    given = icefloe.model.arrow.conform.arrow_schema(parse_ddl(f"x {type_.format('timestamp_ntz')}")).field("x").type
    moment = dt.datetime(2024, 1, 2, 3, 4, 5)
    whole = moment.replace(tzinfo=dt.UTC) if zone else moment

    def value(inside: dt.datetime) -> object:
        return {"{": inside, "a": [inside], "m": [("k", inside)], "s": {"a": inside}}[type_[0]]

    rows = without_ids(pa.table({"x": pa.array([value(moment), None], given)}))
    table.add_files(file_of(tmp_path, rows, use_deprecated_int96_timestamps=True, store_schema=False))
    assert table.scan().to_arrow()["x"].to_pylist() == [value(whole), None]


def test_narrower_types_and_missing_optional_columns_are_taken(tmp_path, table):
    table.add_files(file_of(tmp_path, pa.table({"id": pa.array([5], pa.int16())})))
    assert table.scan().to_arrow().to_pylist() == [{"id": 5, "note": None}]
    assert entry_of(table)["lower_bound:1"] == 5


def test_a_file_that_is_cut_short_is_corrupt(tmp_path, table):
    path = Path(file_of(tmp_path, ROWS))
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(CorruptFile, match=r"a\.parquet"):
        table.add_files(str(path))


@pytest.mark.parametrize("statistics", [True, False])
def test_required_columns_must_have_all_values(statistics, tmp_path, lake):
    table = lake.create_table("db.t", schema="id bigint not null, note string")
    table.add_files(file_of(tmp_path, ROWS, write_statistics=statistics))
    assert table.scan().count() == 3
    hollow = ROWS.set_column(0, "id", pa.array([1, None, 3], pa.int64()))
    with pytest.raises(InputError, match=r"'id'"):
        table.add_files(file_of(tmp_path, hollow, "hollow.parquet", write_statistics=statistics))
    with pytest.raises(InputError, match="lacks the required column 'id'"):
        table.add_files(file_of(tmp_path, ROWS.select(["note"]), "none.parquet"))


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("struct<x: int not null>", {"x": None}),
        ("array<struct<x: int not null>>", [{"x": 1}, {"x": None}]),
        ("map<string, struct<x: int not null>>", [("k", {"x": None})]),
    ],
)
def test_required_fields_inside_others_must_have_all_values(type_, value, tmp_path, lake):
    table = lake.create_table("db.t", schema=f"id bigint, v {type_}")
    stored = pa.struct([("x", pa.int32())])
    arrow = {"s": stored, "a": pa.list_(stored), "m": pa.map_(pa.string(), stored)}[type_[0]]
    good = {"s": {"x": 1}, "a": [{"x": 1}], "m": [("k", {"x": 1})]}[type_[0]]
    empty = {"s": None, "a": [], "m": []}[type_[0]]

    def rows(*values: object) -> pa.Table:
        return pa.table({"id": pa.array(range(len(values)), pa.int64()), "v": pa.array(values, arrow)})

    table.add_files(file_of(tmp_path, rows(None, good, empty)))
    assert table.scan().count() == 3
    with pytest.raises(InputError, match=r"required column 'v\.(element\.|value\.)?x' has 1 nulls in the file"):
        table.add_files(file_of(tmp_path, rows(good, value), "bad.parquet"))


def test_a_folder_that_states_what_nobody_asks_for_is_no_matter(tmp_path, table):
    table.add_files(file_of(tmp_path, ROWS, "env=prod/a.parquet"), partition="hive")
    assert table.scan().count() == 3


def test_files_are_known_under_every_spelling(tmp_path, table):
    path = file_of(tmp_path, ROWS)
    table.add_files(path)
    draft = draft_of(pointer_of(table).load())
    assert known_files(draft, "main", [f"file:{path}", f"{path}.other"]) == (f"file:{path}",)
    assert known_files(draft, "main", [f"file://{path.replace('/', '//')}"]) == (f"file://{path.replace('/', '//')}",)


def test_reading_is_confined_to_allowed_roots(tmp_path):
    lake = icefloe.catalog(
        "lake",
        uri=f"sqlite:///{tmp_path}/catalog.db",
        warehouse=f"file://{tmp_path}/wh",
        properties={"allowed-roots": f"file://{tmp_path}/trusted"},
    )
    lake.create_namespace("db")
    table = lake.create_table("db.t", schema="id bigint, note string")
    table.add_files(file_of(tmp_path, ROWS, "trusted/a.parquet"))
    with pytest.raises(InputError, match="refused to read"):
        table.add_files(file_of(tmp_path, ROWS, "elsewhere/a.parquet"))
    assert table.scan().count() == 3


def test_rows_of_added_files_have_lineage_like_others(tmp_path, lake):
    table = lake.create_table("db.t", schema="id bigint, note string", format_version=3)
    table.append(ROWS)
    table.add_files(file_of(tmp_path, ROWS))
    assert sorted(table.scan(columns=["_row_id"]).to_arrow()["_row_id"].to_pylist()) == [0, 1, 2, 3, 4, 5]
    table.delete("id = 2")
    assert table.scan().count() == 4
    assert (tmp_path / "a.parquet").exists()
