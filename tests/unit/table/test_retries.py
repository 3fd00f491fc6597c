"""An operation that meets a conflict is run again on the newest state, as often as ``retries`` allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import icefloe
from icefloe.catalogs.catalog import Swap, Unknown
from icefloe.catalogs.memory import MemoryCatalog
from icefloe.catalogs.names import NameLike
from icefloe.env import SYSTEM
from icefloe.maintenance.reachable import reachable_files
from icefloe.table.catalog import Catalog
from icefloe.table.held_table import pointer_of
from icefloe.table.operation_runs import is_repeatable
from icefloe.table.table import Table
from icefloe.testing.check import check_table

ENV = replace(SYSTEM, sleep=lambda seconds: None)
KEY = "commit.operation.num-retries"


class Interleaved(MemoryCatalog):
    """Runs another writer's commits before the swaps of the writer under test, one for each."""

    def __init__(self, name: str, warehouse: str) -> None:
        super().__init__(name, warehouse=warehouse)
        self.rivals: list[Callable[[], object]] = []

    def swap(self, identifier: NameLike, expected: str, new: str) -> Swap:
        if len(self.rivals) > 0:
            self.rivals.pop(0)()
        return super().swap(identifier, expected, new)


@pytest.fixture
def pointers(tmp_path: Path) -> Interleaved:
    return Interleaved("busy", warehouse=f"file://{tmp_path}/warehouse")


@pytest.fixture
def table(pointers: Interleaved) -> Table:
    made = Catalog(pointers, ENV).create_table(
        "db.t", schema="id bigint, city string", partition_by=["city"], format_version=3
    )
    made.append(rows(1, 2, 3))
    return made


@pytest.fixture
def rival(pointers: Interleaved) -> Callable[[str], Callable[[], object]]:
    """Makes deletes of another writer, which touch the one data file and so conflict with every change of it."""
    quiet = Interleaved("busy", warehouse=pointers.warehouse)
    quiet.__dict__.update({key: value for key, value in pointers.__dict__.items() if key != "rivals"}, rivals=[])
    other = Catalog(quiet, ENV)
    return lambda where: lambda: other.load_table("db.t").delete(where)


def rows(*ids: int, city: str = "Oslo") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "city": [city] * len(ids)})


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def check_files(table: Table, tmp_path: Path) -> None:
    """The table is sound, and no file of a failed run is left."""
    assert check_table(table) == []
    found = {f"file://{path}" for path in (tmp_path / "warehouse/db/t/data").rglob("*") if path.is_file()}
    assert found <= set(reachable_files(pointer_of(table).load())["location"].to_pylist())


def merge(table: Table, **options: Any) -> icefloe.MergeResult:
    source = rows(1, 9, city="Rome")
    return table.merge(source, on=["id"]).when_matched_update_all().when_not_matched_insert_all().execute(**options)


OPERATIONS: dict[str, tuple[Callable[..., Any], list[int]]] = {  # and the ids after a rival has deleted 2
    "delete": (lambda table, **options: table.delete("id = 1", **options), [3]),
    "update": (lambda table, **options: table.update({"id": "id * 10"}, where="id = 1", **options), [3, 10]),
    "upsert": (lambda table, **options: table.upsert(rows(1, 9), on=["id"], **options), [1, 3, 9]),
    "overwrite": (lambda table, **options: table.overwrite(rows(7), where="id = 1", **options), [3, 7]),
    "merge": (merge, [1, 3, 9]),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_second_run_succeeds_after_a_conflict_in_the_first(
    table: Table, pointers: Interleaved, rival: Callable[[str], Callable[[], object]], tmp_path: Path, name: str
) -> None:
    operation, expected = OPERATIONS[name]
    pointers.rivals = [rival("id = 2")]
    result = operation(table, retries=5)
    assert (result.runs, result.attempts, ids(table)) == (2, 1, expected)
    check_files(table, tmp_path)


@pytest.mark.parametrize("name", OPERATIONS)
def test_without_retries_a_conflict_is_raised_at_once(
    table: Table, pointers: Interleaved, rival: Callable[[str], Callable[[], object]], tmp_path: Path, name: str
) -> None:
    pointers.rivals = [rival("id = 2")]
    with pytest.raises(icefloe.ConflictError) as raised:
        OPERATIONS[name][0](table)
    assert "runs" not in raised.value.context
    assert ids(table) == [1, 3]
    check_files(table, tmp_path)


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_table_property_sets_the_number_of_retries(
    table: Table, pointers: Interleaved, rival: Callable[[str], Callable[[], object]], name: str
) -> None:
    table.set_properties({KEY: "1"})
    pointers.rivals = [rival("id = 2")]
    assert OPERATIONS[name][0](table).runs == 2


def test_retries_of_the_call_override_the_table_property(
    table: Table, pointers: Interleaved, rival: Callable[[str], Callable[[], object]]
) -> None:
    table.set_properties({KEY: "1"})
    pointers.rivals = [rival("id = 2")]
    with pytest.raises(icefloe.ConflictError):
        table.delete("id = 1", retries=0)


def test_after_the_last_run_the_last_conflict_is_raised_with_the_number_of_runs(
    table: Table, pointers: Interleaved, rival: Callable[[str], Callable[[], object]], tmp_path: Path
) -> None:
    table.append(rows(*range(10, 20)))
    pointers.rivals = [rival("id in (2, 10)"), rival("id in (3, 11)"), rival("id = 12")]
    with pytest.raises(icefloe.ConflictError) as raised:
        table.update({"city": "'Rome'"}, where="id = 1 or id >= 13", retries=2)
    assert raised.value.context["runs"] == 3
    assert "run 3 times" in raised.value.__notes__[0]
    assert raised.value.context["snapshot_ids"] == [table.snapshots[-1].snapshot_id]
    assert ids(table) == [1, *range(13, 20)]
    check_files(table, tmp_path)


def test_an_append_that_adds_columns_is_run_again_when_another_one_has_added_some(
    table: Table, pointers: Interleaved
) -> None:
    quiet = Catalog(pointers, ENV).load_table("db.t")

    def adds_a_column() -> None:
        with quiet.update_schema() as columns:
            columns.add_column("other", "int")

    pointers.rivals = [adds_a_column]
    result = table.append(pa.table({"id": [4], "city": ["Oslo"], "note": ["x"]}), schema_mode="merge", retries=1)
    assert result.runs == 2
    assert [field.name for field in table.schema.fields] == ["id", "city", "other", "note"]


def test_a_merge_that_adds_columns_is_run_again_when_another_commit_has_added_some(
    table: Table, pointers: Interleaved
) -> None:
    quiet = Catalog(pointers, ENV).load_table("db.t")

    def adds_a_column() -> None:
        with quiet.update_schema() as columns:
            columns.add_column("size", "int")

    pointers.rivals = [adds_a_column]
    source = pa.table({"id": [1, 4], "city": ["Oslo", "Oslo"], "note": ["x", "y"]})
    merge = table.merge(source, on=["id"]).with_schema_evolution().when_matched_update_all()
    result = merge.when_not_matched_insert_all().execute(retries=1)
    assert (result.runs, result.rows_updated, result.rows_inserted) == (2, 1, 1)
    assert [field.name for field in table.schema.fields] == ["id", "city", "size", "note"]


def test_appends_and_partition_overwrites_take_retries_and_need_one_run(table: Table, pointers: Interleaved) -> None:
    quiet = Catalog(pointers, ENV).load_table("db.t")
    pointers.rivals = [lambda: quiet.append(rows(4))]
    result = table.append(rows(5), retries=3)
    assert (result.runs, result.attempts) == (1, 2)
    assert table.overwrite_partitions(rows(6), retries=3).runs == 1
    assert ids(table) == [6]


def test_a_commit_that_lost_every_attempt_is_run_again(table: Table, pointers: Interleaved) -> None:
    table.set_properties({"commit.retry.num-retries": "0"})
    quiet = Catalog(pointers, ENV).load_table("db.t")
    pointers.rivals = [lambda: quiet.append(rows(4)), lambda: None]
    assert table.append(rows(5), retries=1).runs == 2
    pointers.rivals = [lambda: quiet.append(rows(6))]
    with pytest.raises(icefloe.CommitFailed):
        table.append(rows(7))


def test_an_unknown_outcome_is_never_run_again(
    table: Table, pointers: Interleaved, monkeypatch: pytest.MonkeyPatch
) -> None:
    swaps: list[str] = []

    def lost(self: Interleaved, identifier: NameLike, expected: str, new: str) -> Swap:
        swaps.append(new)
        return Unknown(cause=TimeoutError("no answer"))

    monkeypatch.setattr(Interleaved, "swap", lost)
    with pytest.raises(icefloe.CommitStateUnknown):
        table.delete("id = 1", retries=5)
    assert len(swaps) == 1


def test_a_conflict_that_stays_is_not_run_again(table: Table, pointers: Interleaved) -> None:
    cat = Catalog(pointers, ENV)
    cat.drop_table("db.t")
    cat.create_table("db.t", schema="id bigint, city string")
    with pytest.raises(icefloe.ConflictError) as raised:
        table.delete("id = 1", retries=5)
    assert "runs" not in raised.value.context


def readers() -> dict[str, Any]:
    return {"reader": rows(1).to_reader(), "stream": Stream(rows(1)), "batches": iter(rows(1).to_batches())}


class Stream:
    """A stream of another library, which can be exported once."""

    def __init__(self, table: pa.Table) -> None:
        self._reader = table.to_reader()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._reader.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("kind", readers())
def test_rows_that_can_be_read_only_once_are_refused_with_retries(table: Table, kind: str) -> None:
    before = table.metadata_location
    for change in (
        lambda: table.append(readers()[kind], retries=1),
        lambda: table.append(readers()[kind], schema_mode="merge", retries=1),
        lambda: table.overwrite(readers()[kind], overwrite_all=True, retries=1),
        lambda: table.overwrite_partitions(readers()[kind], retries=1),
        lambda: table.upsert(readers()[kind], on=["id"], retries=1),
        lambda: table.merge(readers()[kind], on=["id"]).when_matched_update_all().execute(retries=1),
    ):
        with pytest.raises(icefloe.InputError, match="may be readable only once") as raised:
            change()
        assert "pyarrow.table(rows)" in raised.value.next_step
    assert table.refresh().metadata_location == before


def test_a_stream_without_retries_is_read_once_whatever_the_table_says(
    table: Table, pointers: Interleaved, rival: Callable[[str], Callable[[], object]]
) -> None:
    table.set_properties({KEY: "5"})
    assert table.append(rows(4).to_reader()).rows_added == 1
    assert table.append(rows(5).to_reader(), retries=0).rows_added == 1
    pointers.rivals = [rival("id = 2")]
    with pytest.raises(icefloe.ConflictError):
        table.upsert(rows(1).to_reader(), on=["id"])
    assert ids(table) == [1, 3, 4, 5]


def test_tables_and_frames_can_be_read_again(table: Table) -> None:
    arrow = rows(1)
    for source in (arrow, arrow.to_batches()[0], arrow.to_pandas(), pl.from_arrow(arrow), pd.DataFrame()):
        assert is_repeatable(source)
    assert table.upsert(arrow.to_pandas(), on=["id"], retries=2).runs == 1


@pytest.mark.parametrize("retries", [-1, True, 1.5, "3"])
def test_a_number_of_retries_that_makes_no_sense_is_refused(table: Table, retries: Any) -> None:
    with pytest.raises(icefloe.InputError, match="retries must be a whole number"):
        table.delete("id = 1", retries=retries)


def test_a_merge_in_a_transaction_takes_no_retries(table: Table) -> None:
    with table.transaction() as work, pytest.raises(icefloe.InputError, match="transaction"):
        work.merge(rows(1), on=["id"]).when_matched_delete().execute(retries=1)


def test_results_show_more_than_one_run(table: Table) -> None:
    result = table.delete("id = 1")
    assert (result.runs, result.as_dict()["runs"]) == (1, 1)
    assert "runs" not in repr(result)
    assert "3 runs" in repr(replace(result, runs=3))
