"""Updates: new values for columns of rows that match, in every version and mode."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from icefloe.errors import ConflictError, InputError, UnsupportedError
from icefloe.expr.value.expressions import parse_value
from icefloe.table.table import Table
from support.people import (
    ALL_VERSIONS,
    COPY,
    EACH_MODE,
    MERGE,
    check,
    delete_files,
    ids_of,
    lineage_of,
    new_table,
    people,
    rows_of,
    stored,
)

pytestmark = pytest.mark.slow


@pytest.fixture(params=EACH_MODE)
def table(request, tmp_path) -> Table:
    version, mode = request.param
    return new_table(tmp_path, version, mode, partition_by=("city",))


def test_values_are_computed_from_the_old_row(table):
    table.append(people(1, 2, 3, amount=5))
    table.append(people(4, city="Rome", amount=None))
    result = table.update({"amount": "amount * 2 + id", "id": "id + 100"}, where="id >= 2")
    assert (result.rows_added, result.rows_deleted, result.operation) == (3, 3, "overwrite")
    assert rows_of(table) == [
        (1, "Oslo", 5),
        (102, "Oslo", 12),
        (103, "Oslo", 13),
        (104, "Rome", None),
    ]
    check(table)


def test_figures_tell_updated_rows_from_copied_ones(table):
    table.append(people(*range(10)))
    result = table.update({"amount": "7"}, where="id < 3")
    copies = table.properties["write.update.mode"] == COPY
    assert (result.rows_added, result.rows_deleted, result.rows_copied) == (3, 3, 7 if copies else 0)
    assert result.files_removed == (1 if copies else 0)
    assert (result.files_read, result.files_skipped) == (1, 0)
    assert min(result.phases.plan, result.phases.match, result.phases.write, result.phases.commit) > 0
    assert len(delete_files(table)) == result.delete_files_added
    whole = table.update({"amount": "8"})
    assert (whole.rows_added, whole.rows_deleted, whole.rows_copied) == (10, 10, 0)
    assert delete_files(table) == []  # no file is left that they would be about, or they name none that is
    assert {row[2] for row in rows_of(table)} == {8}


def test_rows_for_which_the_condition_is_null_stay_as_they_are(table):
    table.append(people(1, amount=None))
    table.append(people(2, amount=5))
    table.update({"city": "'Bern'"}, where="amount > 1")
    assert rows_of(table) == [(1, "Oslo", None), (2, "Bern", 5)]


def test_a_row_moves_to_the_partition_of_its_new_value(table):
    table.append(people(1, 2))
    table.update({"city": "concat(city, '-', cast(id as string))"}, where="id = 2")
    assert table.scan("city = 'Oslo-2'").plan().files == 1
    assert [row["id"] for row in table.scan("city = 'Oslo-2'").to_arrow().to_pylist()] == [2]


def test_without_matches_there_is_no_snapshot(table):
    table.append(people(1))
    assert table.update({"amount": "2"}, where="id = 9").snapshot_id is None
    assert new_snapshots(table) == 1
    assert repr(table.update({"amount": "2"}, where="id = 9")).startswith("overwrite db.people: nothing to do")


def new_snapshots(table: Table) -> int:
    return len(table.snapshots)


def test_an_update_of_an_update_and_of_deleted_rows(table):
    table.append(people(*range(8)))
    table.delete("id in (0, 5)")
    table.update({"amount": "amount + 1"}, where="id < 4")
    table.update({"amount": "amount + 10"}, where="id between 2 and 6")
    assert rows_of(table) == [
        (1, "Oslo", 2),
        (2, "Oslo", 12),
        (3, "Oslo", 12),
        (4, "Oslo", 11),
        (6, "Oslo", 11),
        (7, "Oslo", 1),
    ]
    check(table)


def test_an_updated_row_keeps_its_id_and_the_others_their_number(table):
    if table.format_version < 3:
        return
    table.append(people(1, 2, 3))
    table.append(people(4, 5))
    before = lineage_of(table)
    table.update({"amount": "9"}, where="id in (2, 4, 5)")
    assert lineage_of(table) == {key: (id_, 3 if key in (2, 4, 5) else was) for key, (id_, was) in before.items()}
    table.update({"amount": "10"}, where="id in (2, 3)")
    after = lineage_of(table)
    assert {key: number for key, (_, number) in after.items()} == {1: 1, 2: 4, 3: 4, 4: 3, 5: 3}
    assert {key: id_ for key, (id_, _) in after.items()} == {key: id_ for key, (id_, _) in before.items()}


def test_values_that_could_fail_are_computed_for_matching_rows_alone(table):
    table.append(people(1, 2, amount=0))
    table.append(people(3, 4, amount=2))
    table.update({"amount": "cast(10 / amount as int)"}, where="amount <> 0")
    assert [row[2] for row in rows_of(table)] == [0, 0, 5, 5]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "update: say what to set"),
        ({"colour": "1"}, "update: the table has no column colour; it has: amount, city, id"),
        ({"amount": "colour + 1"}, "the table has no column colour"),
        ({"amount": "city"}, "column 'amount' is int; Arrow string is another kind of type"),
        ({"amount": "3000000000"}, "'amount' is int"),
        ({"id": "null"}, "column 'id' is required and has 1 nulls"),
        ({"amount": "amount +"}, "it is not a value in SQL"),
        ({"amount": 5}, "a value is SQL text, not int"),
    ],
)
def test_wrong_changes_are_named_and_leave_nothing_behind(table, tmp_path, changes, message):
    table.append(people(1, 2))
    before = stored(tmp_path)
    with pytest.raises(InputError, match=message.replace("+", r"\+")):
        table.update(changes, where="id = 1")
    assert stored(tmp_path) == before
    assert rows_of(table) == [(1, "Oslo", 1), (2, "Oslo", 1)]


def test_an_unknown_function_is_named(table):
    table.append(people(1))
    with pytest.raises(UnsupportedError, match="soundex"):
        table.update({"city": "soundex(city)"})


def test_a_parsed_value_will_do(table):
    table.append(people(1))
    table.update({"city": parse_value("upper(city)")})
    assert rows_of(table) == [(1, "OSLO", 1)]


def test_a_branch_is_updated_alone(table):
    table.append(people(1, 2))
    table.branch("dev")
    table.update({"amount": "0"}, where="id = 1", branch="dev")
    assert rows_of(table) == [(1, "Oslo", 1), (2, "Oslo", 1)]
    assert rows_of(table, branch="dev") == [(1, "Oslo", 0), (2, "Oslo", 1)]


def test_an_update_does_not_miss_rows_that_came_meanwhile(table):
    table.append(people(1, 2))
    late = table.transaction()
    late.update({"amount": "5"}, where="id >= 2")
    table.append(people(3))
    with pytest.raises(ConflictError, match="may contain rows that this operation reads"):
        late.commit()
    assert rows_of(table) == [(1, "Oslo", 1), (2, "Oslo", 1), (3, "Oslo", 1)]


def test_an_update_goes_on_beside_commits_that_do_not_touch_it(table):
    table.append(people(1, 2))
    late = table.transaction()
    late.update({"amount": "5"}, where="id = 2 and city = 'Oslo'")
    table.append(people(3, city="Rome"))
    assert late.commit().attempts == 2
    assert rows_of(table) == [(1, "Oslo", 1), (2, "Oslo", 5), (3, "Rome", 1)]
    check(table)


def test_two_updates_of_one_row_do_not_both_land(table):
    table.append(people(1, 2))
    late = table.transaction()
    late.update({"amount": "amount + 5"}, where="id = 2")
    table.update({"amount": "amount + 7"}, where="id = 2")
    with pytest.raises(ConflictError):
        late.commit()
    assert rows_of(table) == [(1, "Oslo", 1), (2, "Oslo", 8)]


def test_isolation_of_updates_is_what_the_table_says(table):
    table.append(people(1, 2))
    table.set_properties({"write.update.isolation-level": "snapshot"})
    late = table.transaction()
    late.update({"amount": "5"}, where="id >= 2")
    table.append(people(3))
    late.commit()
    assert [row[2] for row in rows_of(table)] == [1, 5, 1]


NESTED = """id bigint not null, at struct<city: string, zip: int>, tags array<string>, price decimal(9, 2),
            day date, seen timestamp, of_struct struct<inner: struct<n: int>>"""


@pytest.mark.parametrize("mode", [COPY, MERGE])
@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_columns_of_every_shape_are_read_set_and_kept(tmp_path, version, mode):
    table = new_table(tmp_path, version, mode, schema=NESTED)
    moment = dt.datetime(2026, 11, 15, 12, 30, tzinfo=dt.UTC)
    rows = [
        {
            "id": number,
            "at": None if number == 2 else {"city": f"c{number}", "zip": number},
            "tags": [f"t{number}", None],
            "price": Decimal("1.25"),
            "day": dt.date(2026, 11, number),
            "seen": moment,
            "of_struct": {"inner": {"n": number * 10}},
        }
        for number in (1, 2, 3, 4)
    ]
    table.append(pa.Table.from_pylist(rows, schema=pa.schema(arrow_columns())))
    table.update(
        {
            "id": "id + coalesce(at.zip, 0) + of_struct.inner.n",
            "price": "price * 2",
            "day": "date '2026-01-01'",
            "at": "null",
        },
        where="id < 4",
    )
    found = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    assert set(found) == {12, 22, 36, 4}
    assert [found[key]["price"] for key in (12, 4)] == [Decimal("2.50"), Decimal("1.25")]
    assert [found[key]["day"] for key in (12, 4)] == [dt.date(2026, 1, 1), dt.date(2026, 11, 4)]
    assert [found[key]["at"] for key in (12, 22, 4)] == [None, None, {"city": "c4", "zip": 4}]
    assert [found[key]["tags"] for key in (12, 22, 36, 4)] == [["t1", None], ["t2", None], ["t3", None], ["t4", None]]
    assert found[36]["of_struct"] == {"inner": {"n": 30}}
    with pytest.raises(InputError, match=r"the table has no column tags\.element, or it lies in a list or map"):
        table.update({"id": "length(tags.element)"})


@pytest.mark.parametrize("mode", [COPY, MERGE])
@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_fields_inside_structs_are_set_one_by_one(tmp_path, version, mode):
    table = new_table(tmp_path, version, mode, schema=NESTED)
    rows = [
        {
            "id": number,
            "at": None if number == 2 else {"city": f"c{number}", "zip": number},
            "of_struct": {"inner": None if number == 3 else {"n": number}},
        }
        for number in (1, 2, 3, 4)
    ]
    table.append(pa.Table.from_pylist(rows, schema=pa.schema(arrow_columns())))
    table.update(
        {"at.zip": "id * 100", "of_struct.inner.n": "5", "at.city": "concat(at.city, '-', at.zip)", "price": "id"},
        where="id < 4",
    )
    found = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    assert [found[key]["at"] for key in (1, 2, 3, 4)] == [
        {"city": "c1-1", "zip": 100},
        {"city": None, "zip": 200},  # a struct that was null is there now
        {"city": "c3-3", "zip": 300},
        {"city": "c4", "zip": 4},
    ]
    assert [found[key]["of_struct"]["inner"]["n"] for key in (1, 2, 3, 4)] == [5, 5, 5, 4]
    assert [found[key]["price"] for key in (1, 4)] == [Decimal("1.00"), None]


def test_fields_that_cannot_be_set_are_refused_by_name(tmp_path):
    table = new_table(
        tmp_path, 2, MERGE, schema=f"{NESTED}, of_list array<struct<x: int>>, must struct<a: int not null, b: int>"
    )
    table.append(pa.table({"id": [1]}))
    with pytest.raises(InputError, match=r"update: 'of_list\.element\.x' lies in a list or map; set the whole column"):
        table.update({"of_list.element.x": "1"})
    with pytest.raises(InputError, match=r"update: the table has no column at\.street; it has: at, day, id"):
        table.update({"at.street": "'x'"})
    with pytest.raises(InputError, match=r"'of_struct\.inner' and 'of_struct\.inner\.n' cannot both be set"):
        table.update({"of_struct.inner.n": "1", "at.zip": "3", "of_struct.inner": "null"})
    with pytest.raises(InputError, match=r"column 'at\.zip' is int"):
        table.update({"at.zip": "id * 3000000000"})
    with pytest.raises(InputError, match=r"must\.a"):
        table.update({"must.b": "1"})
    table.update({"must.b": "1", "must.a": "2", "tags": "array('x', null)", "of_list": "array(struct(id AS x))"})
    assert table.scan(columns=["tags", "of_list"]).to_arrow().to_pylist() == [
        {"tags": ["x", None], "of_list": [{"x": 1}]}
    ]
    assert table.scan().to_arrow()["must"].to_pylist() == [{"a": 2, "b": 1}]


def arrow_columns() -> list[tuple[str, pa.DataType]]:
    return [
        ("id", pa.int64()),
        ("at", pa.struct([("city", pa.string()), ("zip", pa.int32())])),
        ("tags", pa.list_(pa.string())),
        ("price", pa.decimal128(9, 2)),
        ("day", pa.date32()),
        ("seen", pa.timestamp("us", tz="UTC")),
        ("of_struct", pa.struct([("inner", pa.struct([("n", pa.int32())]))])),
    ]


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_rows_of_older_schemas_and_specs_are_updated_as_they_are_now(tmp_path, version):
    table = new_table(tmp_path, version, partition_by=("city",))
    table.append(people(1, 2))
    with table.update_schema() as edit:
        edit.rename_column("amount", "price")
        edit.update_column("price", type="bigint")
        edit.add_column("note", "string")
    with table.update_partitioning() as edit:
        edit.add("bucket(4, id)")
    table.append(pa.table({"id": [3], "city": ["Rome"], "price": [5_000_000_000], "note": ["n"]}))
    table.update({"note": "coalesce(note, 'none')", "price": "price + 5000000000"}, where="price > 0")
    assert rows_of(table) == [
        (1, "Oslo", 5_000_000_001, "none"),
        (2, "Oslo", 5_000_000_001, "none"),
        (3, "Rome", 10_000_000_000, "n"),
    ]
    assert ids_of(table) == [1, 2, 3]
    check(table)
