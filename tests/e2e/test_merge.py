"""Merge in every version: the rows that DuckDB's MERGE leaves, the ids of rows that stay, and clear refusals."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import icefloe
from icefloe.errors import ConflictError, InputError, UnsupportedError
from icefloe.table.merge_builder import MergeBuilder
from icefloe.table.table import Table
from support.tables import VERSIONS, new_catalog

pytestmark = pytest.mark.slow

ROWS = pa.schema([("uid", pa.int64()), ("id", pa.int64()), ("n", pa.int32()), ("note", pa.string()), ("p", pa.int32())])
SOURCE = pa.schema([("id", pa.int64()), ("n", pa.int32()), ("op", pa.string()), ("p", pa.int32())])
JOINS = [
    *("t.id = s.id", "t.id = s.id AND t.p = s.p", "s.id = t.id AND t.n > s.n", "t.id + 1 = s.id", "t.n < s.n"),
    *("t.id = s.id AND t.p = 1", "t.id = s.id AND s.op <> 'X'", "t.id = s.id AND t.note = s.op", "id(t) = id(s)"),
]
MATCHED = ["s.op = 'D'", "t.n > s.n", "t.n IS NULL OR s.n = 2", "t.note <> 'a' AND s.op IS NOT NULL", None]
ALONE = ["t.n > 2", "t.p = 0 OR t.note = 'b'", "t.note IS NULL", None]
NEW = ["s.op <> 'X'", "s.n > 2", None]
_names = itertools.count()
_catalog = icefloe.catalog("merges", uri="memory://")


@dataclass(frozen=True)
class Step:
    """One clause: how it is said here and there."""

    kind: str
    condition: str | None
    values: tuple[tuple[str, str], ...] = ()

    def add(self, merge: MergeBuilder[Any]) -> MergeBuilder[Any]:
        method = getattr(merge, self.kind)
        return method(self.condition) if len(self.values) == 0 else method(dict(self.values), self.condition)  # type: ignore[no-any-return]

    @property
    def sql(self) -> str:
        when, _, action = self.kind.replace("_all", "").rpartition("_")
        test = "" if self.condition is None else f" AND ({self.condition})"
        if action == "delete":
            return f"{when.replace('_', ' ')}{test} THEN DELETE"
        values = dict(self.values)
        if action == "update":
            values = values if len(values) > 0 else {name: f"s.{name}" for name in ("id", "n", "p")}
            return (
                f"{when.replace('_', ' ')}{test} THEN UPDATE SET {', '.join(f'{c} = {v}' for c, v in values.items())}"
            )
        values = values if len(values) > 0 else {name: f"s.{name}" for name in ("id", "n", "p")}
        return f"{when.replace('_', ' ')}{test} THEN INSERT ({', '.join(values)}) VALUES ({', '.join(values.values())})"


def steps(kinds: list[Step], conditions: list[str | None]) -> st.SearchStrategy[list[Step]]:
    """Clauses of one group: all but the last have a condition."""

    def made(drawn: list[tuple[Step, str | None]]) -> list[Step]:
        last = len(drawn) - 1
        chosen = [(s, c if at == last or c is not None else conditions[0]) for at, (s, c) in enumerate(drawn)]
        return [Step(step.kind, condition, step.values) for step, condition in chosen]

    return st.lists(st.tuples(st.sampled_from(kinds), st.sampled_from(conditions)), max_size=2).map(made)


_matched = steps(
    [
        Step("when_matched_delete", None),
        Step("when_matched_update_all", None),
        Step("when_matched_update", None, (("n", "t.n + s.n"), ("note", "upper(t.note) || '!'"))),
        Step("when_matched_update", None, (("note", "coalesce(s.op, 'none')"), ("p", "s.p"))),
    ],
    MATCHED,
)
_alone = steps(
    [
        Step("when_not_matched_by_source_delete", None),
        Step("when_not_matched_by_source_update", None, (("note", "'gone'"), ("n", "t.n * 2"))),
    ],
    ALONE,
)
_new = steps(
    [
        Step("when_not_matched_insert_all", None),
        Step("when_not_matched_insert", None, (("uid", "100 + s.n"), ("id", "s.id"), ("note", "'new ' || s.op"))),
    ],
    NEW,
)
_small = st.sampled_from([0, 1, 2, 3, 4, 5, None])
_row = st.tuples(_small, _small, st.sampled_from(["a", "b", None]), st.integers(0, 1))
_change = st.tuples(_small, st.integers(0, 4), st.sampled_from(["D", "X", "a", None]), st.integers(0, 1))
_source = st.one_of(
    st.lists(_change, min_size=3, max_size=6, unique_by=lambda row: row[0]), st.lists(_change, max_size=4)
)
_layouts = st.sampled_from([[], ["p"], ["bucket(3, id)"], ["truncate(2, id)", "p"]])
_modes = st.sampled_from([None, "copy-on-write", "merge-on-read"])


def rows_in(values: list[tuple[Any, ...]]) -> pa.Table:
    """Rows of the table."""
    return pa.Table.from_pylist([dict(zip(ROWS.names, row, strict=True)) for row in values], schema=ROWS)


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, (row.values() for row in table.scan().to_arrow().to_pylist())), key=repr)


def ids_of(table: Table) -> dict[int, int]:
    if table.metadata.format_version < 3:
        return {}
    found = table.scan(columns=["uid", "_row_id"]).to_arrow()
    return dict(zip(*(column.to_pylist() for column in found.columns), strict=True))


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=settings().max_examples * 3 // 5)
@given(
    files=st.lists(st.lists(_row, min_size=3, max_size=8), min_size=1, max_size=3),
    source=_source,
    join=st.sampled_from(JOINS),
    matched=_matched,
    alone=_alone,
    new=_new,
    layout=_layouts,
    mode=_modes,
    earlier=st.sampled_from([None, "n = 1", "n >= 3", "equality"]),
    file_format=st.sampled_from(["parquet", "orc", "avro"]),
)
def test_a_merge_leaves_the_rows_that_duckdb_s_merge_leaves(
    version: int,
    files: list[list[tuple[Any, ...]]],
    source: list[tuple[Any, ...]],
    join: str,
    matched: list[Step],
    alone: list[Step],
    new: list[Step],
    layout: list[str],
    mode: str | None,
    earlier: str | None,
    file_format: str,
) -> None:
    clauses = [*matched, *new, *alone]
    if len(clauses) == 0:
        return
    on: Any = ["id"] if join == "id(t) = id(s)" else join
    join = "t.id = s.id" if join == "id(t) = id(s)" else join
    properties = {"write.format.default": file_format, **({} if mode is None else {"write.merge.mode": mode})}
    table = _catalog.create_table(
        f"db.t{next(_names)}",
        schema="uid bigint, id bigint, n int, note string, p int",
        partition_by=layout,
        format_version=version,
        properties=properties,
    )
    uids = itertools.count()
    for file in files:
        table.append(rows_in([(next(uids), *row) for row in file]))
    if earlier == "equality" and version > 1 and len(layout) == 0:
        table.upsert(rows_in([(0, 1, 1, "e", 0), (50, 2, 2, None, 1)]), on=["uid"], deletes="equality")
    elif earlier is not None and earlier != "equality":
        table.delete(earlier)
    changes = pa.Table.from_pylist([dict(zip(SOURCE.names, row, strict=True)) for row in source], schema=SOURCE)
    before, ids = rows_of(table), ids_of(table)
    merge: MergeBuilder[Any] = table.merge(changes, on=on)
    for step in clauses:
        merge = step.add(merge)
    with duckdb.connect() as duck:
        duck.execute("CREATE TABLE t (uid BIGINT, id BIGINT, n INT, note VARCHAR, p INT)")
        if len(before) > 0:
            duck.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", before)
        duck.register("s", changes)
        twice = duck.execute(f"SELECT uid FROM t JOIN s ON {join} GROUP BY uid HAVING count(*) > 1").fetchall()
        if len(twice) > 0 and len(matched) > 0:
            with pytest.raises(InputError, match="two rows of the source match the same row"):
                merge.execute()
            assert rows_of(table) == before
            return
        duck.execute(f"MERGE INTO t USING s ON {join} {' '.join(step.sql for step in clauses)}")
        expected = sorted(duck.execute("SELECT * FROM t").fetchall(), key=repr)
    result = merge.execute()
    assert rows_of(table) == expected
    kept = ids_of(table)
    assert {uid: id_ for uid, id_ in kept.items() if uid in ids} == {
        uid: id_ for uid, id_ in ids.items() if uid in kept
    }
    assert len(expected) == len(before) + result.rows_inserted - result.rows_deleted
    changed = result.rows_inserted + result.rows_updated + result.rows_deleted
    assert (result.snapshot_id is None) == (changed == 0)


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture
def table(tmp_path: Path, version: int) -> Table:
    """Two files, ids 1 to 3 and 11 to 13."""
    made = new_catalog(tmp_path).create_table("db.t", schema="id bigint, n int, note string", format_version=version)
    for first in (1, 11):
        ids = pa.array(range(first, first + 3), pa.int64())
        made.append(pa.table({"id": ids, "n": pa.array([1, 2, 3], pa.int32()), "note": ["a", "b", "c"]}))
    return made


@pytest.fixture
def create(tmp_path: Path) -> Callable[..., Table]:
    """Makes a table; its arguments are those of ``create_table``."""
    return lambda **options: new_catalog(tmp_path).create_table("db.t", **options)


def notes(table: Table, **where: Any) -> dict[int, str | None]:
    found = table.at(**where).scan(columns=["id", "note"]).to_arrow()
    return dict(zip(*(column.to_pylist() for column in found.columns), strict=True))


def source(ids: list[Any], **columns: Any) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), **columns})


def test_the_result_says_what_happened_and_which_files_were_not_read(table: Table) -> None:
    changes = source([2, 3, 4], note=["B", "", "d"], op=["U", "D", "U"])
    merge = table.merge(changes, on="t.id = s.id").when_matched_delete("s.op = 'D'").when_matched_update_all()
    result = merge.when_not_matched_insert_all().execute()
    assert (result.rows_inserted, result.rows_updated, result.rows_deleted) == (1, 1, 1)
    assert (result.files_read, result.files_skipped) == (1, 1)
    assert result.snapshot_id == table.metadata.current_snapshot_id
    assert result.files_added >= 1
    assert result.data_bytes_written > 0
    copies = table.metadata.format_version < 3
    assert (result.rows_copied, result.vectors_added) == ((1, 0) if copies else (0, 1))
    assert notes(table) == {1: "a", 2: "B", 4: "d", 11: "a", 12: "b", 13: "c"}
    assert "1 rows inserted, 1 updated, 1 deleted, read 1 files and skipped 1" in repr(result)
    assert result.as_dict()["rows_updated"] == 1
    assert min(result.phases.plan, result.phases.match, result.phases.write, result.phases.commit) > 0
    assert repr(result.phases) in repr(result)


def test_a_merge_that_changes_nothing_makes_no_snapshot(table: Table) -> None:
    before = table.metadata.current_snapshot_id
    result = table.merge(source([99]), on="t.id = s.id").when_matched_delete().execute()
    assert result.snapshot_id is None
    assert result.files_read == 0
    assert "nothing to do" in repr(result)
    nothing = table.merge(source([]), on=["id"]).when_matched_delete().when_not_matched_insert_all().execute()
    assert nothing.rows_inserted == 0
    assert table.metadata.current_snapshot_id == before


def test_a_merge_into_an_empty_table_inserts(create: Callable[..., Table]) -> None:
    made = create(schema="id bigint, n int, note string")
    merge = made.merge(source([1, 2], note=["a", "b"]), on=["id"]).when_matched_delete()
    assert (
        merge.when_not_matched_by_source_delete().when_not_matched_insert_all("s.id > 1").execute().rows_inserted == 1
    )
    assert notes(made) == {2: "b"}


def test_many_keys_prune_by_their_range(table: Table) -> None:
    ids = list(range(100, 400))
    result = table.merge(source([*ids, 12]), on="s.id = t.id").when_matched_update({"note": "'hit'"}).execute()
    assert (result.files_read, result.files_skipped, result.rows_updated) == (1, 1, 1)
    assert notes(table)[12] == "hit"


def test_a_row_of_the_table_that_two_source_rows_match_is_refused(table: Table) -> None:
    changes = source([2, 2], note=["x", "y"])
    with pytest.raises(InputError, match=r"two rows of the source match the same row of the table: .*'x'.*'y'"):
        table.merge(changes, on="t.id = s.id").when_matched_update_all().execute()
    added = table.merge(source([7, 7, 2, 2]), on="t.id = s.id").when_not_matched_insert_all().execute()
    assert added.rows_inserted == 2  # nothing is done to matched rows, so it does not matter how often they match


def test_null_keys_match_nothing_and_are_inserted(table: Table) -> None:
    table.append(source([None]))
    merge = table.merge(source([None], note=["new"]), on="t.id = s.id").when_matched_delete()
    assert merge.when_not_matched_insert_all().execute().rows_inserted == 1
    assert table.scan("id IS NULL").count() == 2
    same = table.merge(source([None]), on="t.id <=> s.id").when_matched_delete().execute()
    assert same.rows_deleted == 2


def test_rows_that_only_the_table_has_can_be_updated_and_deleted(table: Table) -> None:
    merge = table.merge(source([1]), on="t.id = s.id").when_not_matched_by_source_delete("t.id > 10")
    result = merge.when_not_matched_by_source_update({"note": "'old'"}).execute()
    assert (result.rows_deleted, result.rows_updated) == (3, 2)
    assert notes(table) == {1: "a", 2: "old", 3: "old"}
    narrow = table.merge(source([1]), on=["id"]).when_not_matched_by_source_delete("id = 3")
    assert narrow.execute().rows_deleted == 1


def test_conditions_without_an_equality_compare_all_pairs_up_to_a_limit(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounds = pa.table({"low": pa.array([1, 12], pa.int64()), "high": pa.array([2, 20], pa.int64())})
    merge = table.merge(bounds, on="t.id BETWEEN s.low AND s.high").when_matched_delete()
    monkeypatch.setattr("icefloe.engines.arrow.change.merge.MAX_PAIRS", 11)
    with pytest.raises(InputError, match="6 x 2 pairs"):
        merge.execute()
    monkeypatch.undo()
    monkeypatch.setattr("icefloe.engines.arrow.change.merge.PAIRS_AT_ONCE", 3)
    assert merge.execute().rows_deleted == 4
    assert notes(table) == {3: "c", 11: "a"}


def test_rows_of_many_row_groups_are_updated_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icefloe.engines.arrow.change.merge.ROWS_AT_ONCE", 7)
    made = new_catalog(tmp_path).create_table(
        "db.t",
        schema="id bigint, n int, note string",
        format_version=3,
        properties={"write.parquet.row-group-size-bytes": "256"},
    )
    ids = list(range(1000))
    made.append(source(ids, n=pa.array(ids, pa.int32()), note=[f"note {id_}" for id_ in ids]))
    assert len(made.scan().plan().tasks["split_offsets"][0]) > 3
    changes = source(ids[::3])
    assert made.merge(changes, on=["id"]).when_matched_update({"n": "-t.n"}).execute().rows_updated == 334
    assert (
        made.merge(changes, on=["id"]).when_matched_update({"n": "-t.n"}, "t.id % 2 = 0").execute().rows_updated == 167
    )
    found = made.scan().to_arrow().sort_by("id").to_pylist()
    assert [row["n"] for row in found] == [-id_ if id_ % 3 == 0 and id_ % 2 == 1 else id_ for id_ in ids]
    assert [row["note"] for row in found] == [f"note {id_}" for id_ in ids]


def test_a_merge_in_a_transaction_sees_what_came_before_it_and_keeps_final_ids(table: Table) -> None:
    with table.transaction() as work:
        work.append(source([5], note=["e"]))
        merge = work.merge(source([1, 5, 6], note=["A", "E", "f"]), on="t.id = s.id")
        assert merge.when_matched_update_all().when_not_matched_insert_all().execute() is None
    assert work.result is not None
    assert work.result.snapshots == 1
    assert notes(table) == {1: "A", 2: "b", 3: "c", 5: "E", 6: "f", 11: "a", 12: "b", 13: "c"}
    if table.metadata.format_version >= 3:
        found = table.scan(columns=["id", "_row_id"]).to_arrow().sort_by("id")
        assert found["_row_id"].to_pylist()[0] == 0
        assert len(set(found["_row_id"].to_pylist())) == 8


def test_a_merge_into_a_branch_leaves_main_alone(table: Table) -> None:
    table.branch("dev")
    table.merge(source([1], note=["A"]), on=["id"], branch="dev").when_matched_update_all().execute()
    assert notes(table)[1] == "a"
    assert notes(table, branch="dev")[1] == "A"


@pytest.mark.parametrize("version", [version for version in VERSIONS if version >= 3], indirect=True)
def test_an_updated_row_is_new_to_those_who_ask_what_changed(table: Table) -> None:
    columns = ["id", "_row_id", "_last_updated_sequence_number"]
    before = {row["id"]: row for row in table.scan(columns=columns).to_arrow().to_pylist()}
    table.merge(source([2]), on=["id"]).when_matched_update({"n": "t.n + 1"}).execute()
    after = {row["id"]: row for row in table.scan(columns=columns).to_arrow().to_pylist()}
    assert after[2]["_row_id"] == before[2]["_row_id"]
    assert after[2]["_last_updated_sequence_number"] == table.metadata.last_sequence_number
    assert {id_: row for id_, row in after.items() if id_ != 2} == {i: row for i, row in before.items() if i != 2}


def test_a_merge_conflicts_with_rows_that_came_meanwhile(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    merge = table.merge(source([2], note=["B"]), on=["id"]).when_matched_update_all()
    target = Table._target

    def late(self: Table, branch: str, **options: Any) -> Any:
        found = target(self, branch, **options)
        monkeypatch.undo()
        self.append(source([2], note=["other"]))
        return found

    monkeypatch.setattr(Table, "_target", late)
    with pytest.raises(ConflictError):
        merge.execute()


def test_a_merge_that_left_rows_as_they_were_conflicts_if_their_file_left_meanwhile(table: Table) -> None:
    """It added 7 and not 1, which was there; another took 1 away with its file, and would have taken 7: no order."""
    table.overwrite(source([1], note=["there"]), overwrite_all=True)
    late, sure = table.transaction(), table.transaction()
    late.merge(source([1, 7], note=["x", "y"]), on=["id"]).when_not_matched_insert_all().execute()
    every = sure.merge(source([7], note=["y"]), on=["id"]).when_matched_delete()
    every.when_not_matched_insert_all().execute()  # which leaves no row that it finds
    table.delete("id in (1, 7)")
    with pytest.raises(ConflictError, match="was removed by another commit and may contain"):
        late.commit()
    assert sure.commit().rows_added == 1
    assert notes(table) == {7: "y"}


def test_values_are_checked_against_the_column_that_takes_them(table: Table) -> None:
    def merge(values: dict[str, str]) -> MergeBuilder[Any]:
        return table.merge(source([1]), on=["id"]).when_matched_update(values)

    with pytest.raises(InputError, match="column 'n' is int"):
        merge({"n": "t.n + 3000000000"}).execute()
    with pytest.raises(InputError, match="column 'n' is int"):
        merge({"n": "upper(t.note)"}).execute()
    merge({"n": "'7'", "note": "null"}).execute()
    assert table.scan("id = 1").to_arrow().to_pylist() == [{"id": 1, "n": 7, "note": None}]


@pytest.mark.parametrize(
    ("on", "condition", "message"),
    [
        ("id = s.id", None, "both sides have 'id'"),
        ("t.id = s.key", None, "the source has no column 'key'"),
        ("t.key = s.id", None, "the table has no column 'key'"),
        ("t.id = s.id AND color = 1", None, "no column 'color' in the table or the source"),
        ("t.id = s.id", "s.op + 1", "s.op"),
        ("t.id = s.id", "t.n", "is not a condition"),
        ("t.note = s.id", None, "have no common type"),
    ],
)
def test_names_and_conditions_that_mean_nothing_are_refused(
    tmp_path: Path, on: str, condition: str | None, message: str
) -> None:
    made = new_catalog(tmp_path).create_table("db.t", schema="id bigint, n int, note string")
    made.append(pa.table({"id": pa.array([1], pa.int64()), "n": pa.array([1], pa.int32()), "note": ["a"]}))
    merge = made.merge(source([1], op=["U"]), on=on)
    with pytest.raises(InputError, match=message):
        merge.when_matched_delete(condition).execute()


def test_clauses_that_cannot_be_are_refused(tmp_path: Path) -> None:
    made = new_catalog(tmp_path).create_table("db.t", schema="id bigint, n int, note string")
    with pytest.raises(InputError, match="say what to do"):
        made.merge(source([1]), on=["id"]).execute()
    with pytest.raises(InputError, match="no row reaches"):
        made.merge(source([1]), on=["id"]).when_matched_delete().when_matched_update_all().execute()
    with pytest.raises(InputError, match="at least one column"):
        made.merge(source([1]), on=["id"]).when_not_matched_insert({})
    with pytest.raises(InputError, match="give a condition"):
        made.merge(source([1]), on=[])
    with pytest.raises(InputError, match="have no columns of the table"):
        made.merge(source([1]), on=["id"]).when_not_matched_insert({"id": "t.id"}).execute()
    with pytest.raises(InputError, match="the table has no column 'color'"):
        made.merge(source([1]), on=["id"]).when_not_matched_insert({"color": "1"}).execute()
    with pytest.raises(InputError, match="none of the table's columns"):
        made.merge(pa.table({"key": [1]}), on="t.id = s.key").when_not_matched_insert_all().execute()
    with pytest.raises(InputError, match="two columns of the source are named 'id'"):
        made.merge(pa.table([[1], [2]], names=["id", "id"]), on=["id"]).when_matched_delete().execute()
    with pytest.raises(UnsupportedError, match="md5"):
        made.merge(source([1]), on="md5(t.id) = s.id")


def test_a_column_that_the_source_lacks_keeps_its_value_or_gets_its_default(create: Callable[..., Table]) -> None:
    made = create(schema="id bigint, n int, note string", format_version=3)
    made.append(pa.table({"id": pa.array([1], pa.int64()), "note": ["kept"]}))
    with made.update_schema() as schema:
        schema.add_column("size", "int", default=5)
    changes = source([1, 2], n=[8, 9])
    made.merge(changes, on=["id"]).when_matched_update_all().when_not_matched_insert_all().execute()
    found = made.scan().to_arrow().sort_by("id").to_pylist()
    assert found == [
        {"id": 1, "n": 8, "note": "kept", "size": 5},
        {"id": 2, "n": 9, "note": None, "size": 5},
    ]


def test_nested_columns_take_part_in_conditions_and_stay_whole(create: Callable[..., Table]) -> None:
    schema = "id bigint, who struct<name: string, age: int>, tags array<string>"
    made = create(schema=schema, format_version=4)
    who = pa.array([{"name": "Ada", "age": 36}, None], pa.struct([("name", pa.string()), ("age", pa.int32())]))
    made.append(pa.table({"id": pa.array([1, 2], pa.int64()), "who": who, "tags": [["x"], None]}))
    merge = made.merge(source([1, 2]), on="t.id = s.id").when_matched_update({"id": "t.id + 10"}, "t.who.age > 30")
    assert merge.execute().rows_updated == 1
    assert made.scan("id = 11").to_arrow().to_pylist() == [{"id": 11, "who": {"name": "Ada", "age": 36}, "tags": ["x"]}]


def test_a_merge_sets_fields_inside_structs_and_refuses_what_it_cannot_set(create: Callable[..., Table]) -> None:
    schema = "id bigint, who struct<name: string, of: struct<age: int>>, tags array<string>"
    made = create(schema=schema, format_version=4)
    rows = [
        {"id": 1, "who": {"name": "Ada", "of": {"age": 36}}, "tags": ["x"]},
        {"id": 2, "who": None, "tags": None},
        {"id": 3, "who": {"name": "Bo", "of": None}, "tags": []},
    ]
    made.append(pa.Table.from_pylist(rows, schema=made.scan().to_arrow().schema))
    changes = {"t.who.of.age": "t.who.of.age + s.n", "who.name": "upper(t.who.name)"}
    merge = made.merge(source([1, 2, 4], n=[4, 5, 6]), on=["id"]).when_matched_update(changes)
    merge = merge.when_not_matched_by_source_update({"who.of": "struct(7 AS age)"})
    new = {"id": "s.id", "who": "named_struct('of', named_struct('age', s.n), 'name', 'Cy')"}
    merge.when_not_matched_insert(new).execute()
    assert made.scan().to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "who": {"name": "ADA", "of": {"age": 40}}, "tags": ["x"]},
        {"id": 2, "who": {"name": None, "of": {"age": None}}, "tags": None},
        {"id": 3, "who": {"name": "Bo", "of": {"age": 7}}, "tags": []},
        {"id": 4, "who": {"name": "Cy", "of": {"age": 6}}, "tags": None},
    ]

    def refused(problem: str, **values: str) -> None:
        named = {name.replace("__", "."): value for name, value in values.items()}
        with pytest.raises(InputError, match=problem):
            made.merge(source([1]), on=["id"]).when_matched_update(named).execute()

    refused("'who.name' is set twice", who__name="'x'", t__who__name="'y'")
    refused("'who' and 'who.name' cannot both be set", who__name="'x'", who="null")
    refused("no column 'tags.element', or it lies in a list or map", tags__element="'x'")
    with pytest.raises(InputError, match=r"'who\.name' lies inside a column; insert the whole column"):
        made.merge(source([9]), on=["id"]).when_not_matched_insert({"who.name": "'x'"}).execute()
