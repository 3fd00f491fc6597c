"""Fields of structs, of elements and of map values, selected by their full names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from icefloe.errors import CorruptFile, InputError
from icefloe.formats.parquet.field_ids import field_id
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import LONG, STRING, Field, Struct
from icefloe.table.table import Table
from support.tables import new_catalog

pytestmark = pytest.mark.slow

FORMATS = ("parquet", "orc", "avro")
SCHEMA = """id bigint, who struct<name: string, age: int, home: struct<city: string, zip: int>>,
    tags array<struct<key: string, n: int>>, prices map<string, struct<low: int, high: int>>"""
ROWS: list[dict[str, Any]] = [
    {
        "id": 1,
        "who": {"name": "Ada", "age": 36, "home": {"city": "Oslo", "zip": 150}},
        "tags": [{"key": "a", "n": 1}, None],
        "prices": [("x", {"low": 1, "high": 2})],
    },
    {"id": 2, "who": None, "tags": None, "prices": None},
    {"id": 3, "who": {"name": None, "age": 3, "home": None}, "tags": [], "prices": [("y", None)]},
]


@pytest.fixture(params=[(version, name) for version in (2, 4) for name in FORMATS], ids=str)
def people(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    version, file_format = request.param
    return new_table(tmp_path, version, file_format)


def new_table(folder: Path, version: int = 4, file_format: str = "parquet", **options: Any) -> Table:
    table = new_catalog(folder).create_table(
        "db.people",
        schema=SCHEMA,
        format_version=version,
        properties={"write.format.default": file_format},
        **options,
    )
    append(table, ROWS)
    return table


def append(table: Table, rows: list[dict[str, Any]]) -> None:
    table.append(pa.Table.from_pylist(rows, schema=table.scan().to_arrow().schema))


def selected(table: Table, *columns: str, where: str | None = None) -> list[dict[str, Any]]:
    scan = table.scan(where, columns=columns)
    found = scan.to_arrow()
    assert scan.count() == found.num_rows
    return found.to_pylist()


def test_a_field_comes_in_its_struct_and_keeps_its_id(people: Table) -> None:
    found = people.scan(columns=["who.age"]).to_arrow()
    assert found.to_pylist() == [{"who": {"age": 36}}, {"who": None}, {"who": {"age": 3}}]
    who = found.schema.field("who")
    assert [field_id(who), field_id(who.type.field(0))] == [people.schema.field(n).id for n in ("who", "who.age")]
    assert people.scan(columns=["who.age"]).to_pandas()["who"].tolist() == [{"age": 36}, None, {"age": 3}]


def test_the_names_of_one_struct_are_merged_in_the_order_of_the_schema(people: Table) -> None:
    assert selected(people, "who.home.zip", "id", "who.name") == [
        {"who": {"name": "Ada", "home": {"zip": 150}}, "id": 1},
        {"who": None, "id": 2},
        {"who": {"name": None, "home": None}, "id": 3},
    ]
    assert people.scan(columns=["who.home.zip", "id", "who.name"]).to_arrow().column_names == ["who", "id"]


@pytest.mark.parametrize("names", [("who", "who.name"), ("who.home.zip", "who", "who.home")])
def test_a_struct_that_is_named_comes_whole(people: Table, names: tuple[str, ...]) -> None:
    assert selected(people, *names) == [{"who": row["who"]} for row in ROWS]
    assert people.scan(columns=names).plan().schema.fields == (people.schema.field("who"),)


def test_elements_and_values_are_cut_down_and_maps_keep_their_keys(people: Table) -> None:
    assert selected(people, "tags.element.n", "prices.value.high") == [
        {"tags": [{"n": 1}, None], "prices": [("x", {"high": 2})]},
        {"tags": None, "prices": None},
        {"tags": [], "prices": [("y", None)]},
    ]
    assert selected(people, "prices.key", "tags.element") == [
        {"prices": row["prices"], "tags": row["tags"]} for row in ROWS
    ]


def test_a_null_struct_is_told_from_one_whose_fields_an_old_file_lacks(people: Table) -> None:
    with people.update_schema() as edit:
        edit.add_column("who.email", "string")
        edit.add_column("who.home.street", "string")
        edit.add_column("tags.element.more", "int")
        edit.add_column("prices.value.more", "int")
    names = ["who.home.street", "who.email", "tags.element.more", "prices.value.more"]
    lacking = [
        {
            "who": {"home": {"street": None}, "email": None},
            "tags": [{"more": None}, None],
            "prices": [("x", {"more": None})],
        },
        {"who": None, "tags": None, "prices": None},
        {"who": {"home": None, "email": None}, "tags": [], "prices": [("y", None)]},
    ]
    assert selected(people, *names) == lacking
    assert selected(people, "who.email") == [{"who": {"email": None}}, {"who": None}, {"who": {"email": None}}]
    append(people, [{"id": 4, "who": {"name": "Eve", "home": {"street": "High"}}, "tags": [{"more": 1}]}])
    new = {"who": {"home": {"street": "High"}, "email": None}, "tags": [{"more": 1}], "prices": None}
    assert selected(people, *names) == [*lacking, new]


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_field_that_an_old_file_lacks_has_its_initial_default(tmp_path: Path, file_format: str) -> None:
    table = new_table(tmp_path, 4, file_format)
    with table.update_schema() as edit:
        edit.add_column("who.rank", "int", default=7)
        edit.add_column("who.home.land", "string", default="NO")
    assert selected(table, "who.rank", "who.home.land") == [
        {"who": {"home": {"land": "NO"}, "rank": 7}},
        {"who": None},
        {"who": {"home": None, "rank": 7}},
    ]
    assert selected(table, "who.home.land", where="who.rank = 7 and who.home.land is null") == [{"who": {"home": None}}]


def test_renamed_dropped_and_promoted_fields_are_found_by_id(people: Table) -> None:
    with people.update_schema() as edit:
        edit.drop_column("who.name")
        edit.rename_column("who.age", "name")
        edit.update_column("who.name", type="bigint")
    assert selected(people, "who.name") == [{"who": {"name": 36}}, {"who": None}, {"who": {"name": 3}}]
    with pytest.raises(InputError, match=r"no column 'who\.age'"):
        selected(people, "who.age")


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("who.age > 3", [0]),
        ("who.age <= 3", [2]),
        ("who is null", [1]),
        ("who.home.city is null", [1, 2]),
        ("id >= 2 and who.name is null", [1, 2]),
        ("who.age = 99", []),
    ],
)
def test_a_filter_may_test_what_is_not_selected(people: Table, where: str, kept: list[int]) -> None:
    every = [{"home": {"zip": 150}}, None, {"home": None}]
    assert selected(people, "who.home.zip", where=where) == [{"who": every[row]} for row in kept]


def test_metadata_columns_stand_beside(people: Table) -> None:
    people.delete("id = 2")
    found = people.scan("id > 1", columns=["_pos", "who.age", "_spec_id"]).to_arrow()
    assert [row["who"] for row in found.to_pylist()] == [{"age": 3}]
    assert found.column_names == ["_pos", "who", "_spec_id"]


def test_fields_of_the_partition_of_a_row_are_selected_too(tmp_path: Path) -> None:
    table = new_table(tmp_path, 4, partition_by=["bucket(4, id)", "who.age"])
    found = selected(table, "_partition.who.age", "who.age")
    assert sorted(found, key=repr) == sorted(
        [{"_partition": {"who.age": age}, "who": None if age is None else {"age": age}} for age in (36, None, 3)],
        key=repr,
    )
    with pytest.raises(InputError, match=r"no column '_partition\.x'.*; struct '_partition' has fields id_bucket, who"):
        selected(table, "_partition.x")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("who.rank", "no column 'who.rank' in table db.people; struct 'who' has fields name, age, home"),
        ("who.home.x.y", "no column 'who.home.x.y' in table db.people; struct 'who.home' has fields city, zip"),
        ("who.Age", "no column 'who.Age' in table db.people; struct 'who' has fields name, age, home"),
        ("whom", "no column 'whom' in table db.people; the table has: id, who, tags, prices"),
        ("whom.age", "no column 'whom.age' in table db.people; the table has: id, who, tags, prices"),
        ("id.x", "no column 'id.x' in table db.people; column 'id' is of type long and has no fields"),
        ("tags.n", "no column 'tags.n' in table db.people; list 'tags' has field element"),
        ("prices.low", "no column 'prices.low' in table db.people; map 'prices' has fields key, value"),
    ],
)
def test_a_name_that_is_not_there_is_refused_with_those_beside_it(tmp_path: Path, name: str, message: str) -> None:
    table = new_table(tmp_path)
    for scan in (table.scan(columns=["id", name]), table.at(branch="main").scan(columns=[name])):
        with pytest.raises(InputError) as caught:
            scan.to_arrow()
        assert str(caught.value) == message
        assert caught.value.context["field"] == name


def test_a_field_is_not_selected_twice(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"column 'who\.age' is selected twice"):
        selected(new_table(tmp_path), "who.age", "id", "who.age")


def test_names_with_dots_are_found_as_filters_find_them(tmp_path: Path) -> None:
    inner = Struct((Field(3, "b.c", LONG), Field(4, "d", STRING)))
    schema = Schema(fields=(Field(1, "x.y", LONG), Field(2, "a", inner)))
    table = new_catalog(tmp_path).create_table("db.dots", schema=schema, format_version=2)
    append(table, [{"x.y": 1, "a": {"b.c": 2, "d": "e"}}, {"x.y": 3, "a": None}])
    assert selected(table, "a.b.c") == [{"a": {"b.c": 2}}, {"a": None}]
    assert selected(table, "a.d", "x.y", where="a.b.c = 2") == [{"a": {"d": "e"}, "x.y": 1}]
    with pytest.raises(InputError, match=r"no column 'x\.z' in table db\.dots; the table has: x\.y, a"):
        selected(table, "x.z")
    with pytest.raises(InputError, match=r"no column 'a\.b' in table db\.dots; struct 'a' has fields b\.c, d"):
        selected(table, "a.b")


def test_time_travel_selects_fields_of_its_time(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    first = table.scan().snapshot
    assert first is not None
    with table.update_schema() as edit:
        edit.rename_column("who.age", "years")
    append(table, [{"id": 4, "who": {"years": 40}}])
    assert selected(table, "who.years", where="id = 4") == [{"who": {"years": 40}}]
    then = table.at(snapshot=first.snapshot_id).scan(columns=["who.age"]).to_arrow()
    assert then.to_pylist() == [{"who": {"age": 36}}, {"who": None}, {"who": {"age": 3}}]


# -- what is read of files


@pytest.fixture
def parquet_columns(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The primitive columns that Arrow was asked for, one list for each row group."""
    asked: list[list[str]] = []
    original = pq.ParquetFile.iter_batches

    def recording(self: Any, *args: Any, columns: list[str] | None, **options: Any) -> Any:
        every = [self.metadata.schema.column(index).path for index in range(len(self.metadata.schema))]
        asked.append(sorted(every if columns is None else columns))
        return original(self, *args, columns=columns, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", recording)
    return asked


@pytest.mark.parametrize(
    ("names", "where", "read"),
    [
        (["who.age"], None, ["who.age"]),
        (["who.home.zip", "id"], None, ["id", "who.home.zip"]),
        (["who.home"], None, ["who.home.city", "who.home.zip"]),
        (["tags.element.n"], None, ["tags.list.element.n"]),
        (["prices.value.low"], None, ["prices.key_value.key", "prices.key_value.value.low"]),
        (["who.age"], "who.home.zip = 150", ["who.age", "who.home.zip"]),
        (["who.age", "_pos"], None, ["who.age"]),
    ],
)
def test_only_the_leaves_that_are_needed_are_read_from_parquet(
    tmp_path: Path, parquet_columns: list[list[str]], names: list[str], where: str | None, read: list[str]
) -> None:
    table = new_table(tmp_path)
    parquet_columns.clear()
    table.scan(where, columns=names).to_arrow()
    assert parquet_columns == [read]


def test_a_light_leaf_tells_which_structs_are_null(tmp_path: Path, parquet_columns: list[list[str]]) -> None:
    """Where none of the fields that are wanted is in a file; the first one may be a long text."""
    table = new_table(tmp_path)
    with table.update_schema() as edit:
        edit.add_column("who.email", "string")
        edit.add_column("who.home.street", "string")
        edit.add_column("tags.element.more", "int")
    read = {
        "who.email": ["who.age"],
        "who.home.street": ["who.home.zip"],
        "tags.element.more": ["tags.list.element.n"],
    }
    for name, leaves in read.items():
        parquet_columns.clear()
        table.scan(columns=[name]).to_arrow()
        assert parquet_columns == [leaves]


@pytest.mark.parametrize(
    ("where", "read"),
    [("who is null", ["who.age"]), ("who is not null and who.name is null", ["who.name"]), ("who.home is null", None)],
)
def test_a_test_for_null_reads_one_leaf_of_a_struct(
    tmp_path: Path, parquet_columns: list[list[str]], where: str, read: list[str] | None
) -> None:
    table = new_table(tmp_path)
    parquet_columns.clear()
    count = table.scan(where).count()
    assert parquet_columns == [["who.home.zip"] if read is None else read]
    assert count == sum(len(table.scan(f"id = {n} and {where}").to_arrow()) for n in (1, 2, 3)) > 0


def test_the_leaves_of_a_filter_are_read_before_those_that_are_selected(
    tmp_path: Path, parquet_columns: list[list[str]]
) -> None:
    table = new_table(tmp_path)
    parquet_columns.clear()
    table.scan("id = 3 and id != 1", columns=["who.home.zip"]).to_arrow()
    assert parquet_columns == [["id"], ["who.home.zip"]]


def test_damage_in_a_field_that_is_not_selected_is_not_met(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    path = Path(table.scan().plan().tasks["location"][0].as_py().removeprefix("file://"))
    footer, data = pq.read_metadata(path), bytearray(path.read_bytes())
    for index in range(footer.num_columns):
        chunk = footer.row_group(0).column(index)
        if chunk.path_in_schema not in ("id", "who.age"):
            start = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
            data[start : start + chunk.total_compressed_size] = bytes(chunk.total_compressed_size)
    path.write_bytes(data)
    ages = [{"who": {"age": 36}}, {"who": None}, {"who": {"age": 3}}]
    assert selected(table, "who.age") == ages
    assert selected(table, "who.age", where="id < 3") == ages[:2]
    with pytest.raises(CorruptFile, match="cannot read data file"):
        selected(table, "who.age", "who.home.zip")


def test_only_the_fields_that_are_needed_are_read_from_orc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table(tmp_path, 4, "orc")
    asked: list[Any] = []
    original = orc.ORCFile.read_stripe

    def recording(self: Any, n: int, columns: list[str] | None = None) -> Any:
        asked.append(columns)
        return original(self, n, columns)

    monkeypatch.setattr(orc.ORCFile, "read_stripe", recording)
    assert selected(table, "who.home.zip", "id", where="who.age > 3") == [{"who": {"home": {"zip": 150}}, "id": 1}]
    assert [sorted(columns) for columns in asked] == [["who.age", "who.home.zip"], ["id"], ["who.age"]]
    with table.update_schema() as edit:
        edit.add_column("who.email", "string")
    asked.clear()
    assert selected(table, "who.email") == [{"who": {"email": None}}, {"who": None}, {"who": {"email": None}}]
    assert asked == [["who.age"]]
