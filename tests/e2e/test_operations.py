"""What users do to tables, in every version: rows, branches, tags, staged snapshots, history."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe.commit.base import TablePointer
from icefloe.commit.loop import commit
from icefloe.commit.operations.append import Append
from icefloe.commit.operations.create_table import create_table, new_metadata
from icefloe.commit.operations.overwrite import OverwriteWhere
from icefloe.commit.operations.ref_updates import SetCurrentSnapshot, SetRef
from icefloe.commit.operations.snapshot_updates import SetStatistics
from icefloe.errors import AlreadyExists, ConflictError, InputError, NoSuchSnapshot
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.io.select import file_io
from icefloe.model.metadata.snapshots import Ref
from icefloe.model.metadata.statistics_files import StatisticsFile
from icefloe.model.partition.spec import UNPARTITIONED
from icefloe.model.text.ddl import parse_ddl
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from support.engine_work import write_entries
from support.tables import VERSIONS, new_catalog, pointers_of

pytestmark = pytest.mark.parametrize("version", VERSIONS)


@pytest.fixture
def table(tmp_path, version) -> Table:
    return new_catalog(tmp_path).create_table("db.t", schema="id bigint", format_version=version)


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids(table: Table, **where) -> list[int]:
    return sorted(table.at(**where).scan().to_arrow()["id"].to_pylist())


def test_a_commit_to_a_branch_leaves_main_alone(table):
    table.append(rows(1))
    table.append(rows(2), branch="dev", create_branch=True)
    table.delete("id = 1", branch="dev")
    table.upsert(rows(2, 3), on=["id"], branch="dev")
    assert ids(table) == [1]
    assert ids(table, branch="dev") == [2, 3]
    assert len(table.metadata.snapshot_log) == 1
    table.publish("dev")
    assert ids(table) == [2, 3]


def test_a_branch_that_main_has_left_behind_cannot_be_published(table):
    table.append(rows(1))
    table.append(rows(2), branch="dev", create_branch=True)
    table.append(rows(3))
    with pytest.raises(InputError, match="cannot be moved forward"):
        table.publish("dev")
    assert ids(table) == [1, 3]


def test_a_branch_of_an_empty_table_begins_empty(table):
    table.append(rows(1), branch="dev", create_branch=True)
    assert ids(table) == []
    assert ids(table, branch="dev") == [1]
    assert table.metadata.current_snapshot_id is None


def test_nothing_is_committed_to_a_tag(table, tmp_path):
    table.append(rows(1))
    table.tag("v1")
    before = sorted(tmp_path.rglob("*.parquet"))
    with pytest.raises(InputError, match="'v1' is a tag, which never moves"):
        table.append(rows(2), branch="v1")
    assert sorted(tmp_path.rglob("*.parquet")) == before
    assert ids(table, tag="v1") == [1]


def test_refs_are_made_once_and_removed(table):
    table.append(rows(1))
    table.branch("dev")
    with pytest.raises(InputError, match="branch 'dev' already exists"):
        table.tag("dev")
    table.remove_ref("dev")
    with pytest.raises(NoSuchSnapshot, match="dev"):
        table.remove_ref("dev")
    commit(pointer_of(table), SetRef(ref_name="keep", ref=Ref(snapshot_id=table.snapshots[0].snapshot_id, type="tag")))
    assert ids(table, tag="keep") == [1]


def test_a_tag_of_an_empty_table_is_refused(table):
    with pytest.raises(InputError, match="'v1' cannot be set: the table has no current snapshot; append rows first"):
        table.tag("v1")


def test_a_branch_of_an_empty_table_starts_with_an_empty_snapshot_and_can_be_published(table):
    # It was refused, so that write-audit-publish could not begin with the first rows of a table.
    result = table.branch("audit")
    assert table.metadata.current_snapshot_id is None
    assert [snapshot.snapshot_id for snapshot in table.snapshots] == [result.snapshot_id]
    assert (table.snapshots[0].parent_id, table.snapshots[0].operation) == (None, "append")
    assert ids(table, branch="audit") == ids(table) == []
    with pytest.raises(InputError, match="branch 'audit' already exists"):
        table.branch("audit")
    table.append(rows(1), branch="audit")
    table.delete("id = 1", branch="audit")
    table.append(rows(2), branch="audit")
    assert ids(table) == []
    assert table.verify(snapshots="all", files=True, rows=True).ok
    assert table.expire(older_than="2100-01-01T00:00:00+00:00").execute().snapshots == 3
    table.publish("audit")
    assert ids(table) == [2]
    assert table.verify(snapshots="all", files=True, rows=True).ok


def test_a_branch_starts_at_main_if_another_commit_has_made_its_first_snapshot(tmp_path, table):
    other = new_catalog(tmp_path).load_table("db.t")
    other.append(rows(1))
    table.branch("audit")
    assert (ids(table, branch="audit"), len(table.snapshots)) == ([1], 1)


@pytest.mark.parametrize("name", ["", "\ud800"])
def test_a_branch_of_an_empty_table_needs_a_good_name(table, name):
    with pytest.raises(InputError, match="name"):
        table.branch(name)
    assert table.refresh().snapshots == ()


BRANCH_WRITES = {
    "append": lambda to, **options: to.append(rows(9), **options),
    "append merging": lambda to, **options: to.append(rows(9), schema_mode="merge", **options),
    "delete": lambda to, **options: to.delete("id = 1", **options),
    "update": lambda to, **options: to.update({"id": "id + 10"}, **options),
    "upsert": lambda to, **options: to.upsert(rows(1, 9), on=["id"], **options),
    "overwrite": lambda to, **options: to.overwrite(rows(9), overwrite_all=True, **options),
    "overwrite partitions": lambda to, **options: to.overwrite_partitions(rows(9), **options),
    "merge": lambda to, **options: to.merge(rows(1), "t.id = s.id", **options).when_matched_delete().execute(),
}


@pytest.mark.parametrize("verb", BRANCH_WRITES)
def test_a_misspelled_branch_is_an_error_and_no_new_branch(table, tmp_path, verb):
    # Any name made a branch, so that rows meant for one were in another that nobody reads.
    table.append(rows(1))
    table.branch("audit")
    before, files = table.metadata_location, sorted(tmp_path.rglob("*.parquet"))
    with pytest.raises(NoSuchSnapshot, match="has no branch 'adit'; it has: main, audit") as caught:
        BRANCH_WRITES[verb](table, branch="adit")
    assert "t.branch('adit')" in caught.value.next_step
    with pytest.raises(NoSuchSnapshot, match="has no branch 'adit'"), table.transaction() as tx:
        BRANCH_WRITES[verb](tx, branch="adit")
    assert (table.refresh().metadata_location, sorted(tmp_path.rglob("*.parquet"))) == (before, files)
    BRANCH_WRITES[verb](table, branch="adit", create_branch=True)
    with table.transaction() as tx:
        BRANCH_WRITES[verb](tx, branch="other", create_branch=True)
    assert set(table.refs) == {"main", "audit", "adit", "other"}
    assert ids(table) == ids(table, branch="audit") == [1]
    assert ids(table, branch="adit") == ids(table, branch="other") != [1]


def test_files_are_added_to_branches_that_exist(table, tmp_path):
    table.append(rows(1))
    pq.write_table(rows(2), tmp_path / "old.parquet")
    for plan in (table.compact, table.rewrite_deletes):
        with pytest.raises(NoSuchSnapshot, match="has no branch 'adit'; it has: main"):
            plan(branch="adit")
    with pytest.raises(NoSuchSnapshot, match="has no branch 'adit'"):
        table.add_files(str(tmp_path / "old.parquet"), branch="adit")
    with table.transaction() as tx:
        tx.add_files(str(tmp_path / "old.parquet"), branch="adit", create_branch=True)
        with pytest.raises(NoSuchSnapshot, match="has no branch 'other'"):
            tx.scan(branch="other")
    assert (ids(table), ids(table, branch="adit")) == ([1], [1, 2])


def test_main_and_other_branches_are_set_to_snapshots(table):
    first, second = (table.append(rows(number)).snapshot_id for number in (1, 2))
    table.tag("v1", snapshot=first)
    table.rollback(snapshot=first)
    table.set_current_snapshot(second)  # it is in no history now, which rollback refuses
    assert ids(table) == [1, 2]
    table.set_current_snapshot(ref="v1")
    assert table.metadata.current_snapshot_id == first
    table.branch("audit", snapshot=first)
    table.append(rows(3), branch="audit")
    table.fast_forward("main", to="audit")
    assert ids(table) == [1, 3]
    table.fast_forward("copy", to="v1")
    assert ids(table, branch="copy") == [1]
    table.fast_forward("copy", to="main")
    assert ids(table, branch="copy") == [1, 3]
    table.append(rows(4), branch="copy")
    with pytest.raises(InputError, match="'copy' has snapshots that 'main' does not have"):
        table.fast_forward("copy", to="main")
    for arguments in ({}, {"snapshot": first, "ref": "v1"}):
        with pytest.raises(InputError, match="give either a snapshot id or"):
            table.set_current_snapshot(**arguments)
    for arguments in ({"snapshot": 5}, {"ref": "absent"}):
        with pytest.raises(NoSuchSnapshot, match=r"5|absent"):
            table.set_current_snapshot(**arguments)


def test_a_staged_snapshot_is_seen_when_it_is_published_and_only_once(table):
    table.append(rows(1))
    staged = table.append(rows(2), wap_id="w1")
    assert ids(table) == [1]
    assert ids(table, snapshot=staged.snapshot_id) == [1, 2]
    table.append(rows(3))
    table.cherry_pick(staged.snapshot_id)
    assert ids(table) == [1, 2, 3]
    published = table.metadata.current_snapshot
    assert published.summary["source-snapshot-id"] == str(staged.snapshot_id)
    assert published.summary["published-wap-id"] == "w1"
    with pytest.raises(InputError, match="already published"):
        table.cherry_pick(staged.snapshot_id)


def test_a_staged_snapshot_whose_parent_is_current_becomes_current_itself(table):
    table.append(rows(1))
    staged = table.append(rows(2), wap_id="w1")
    again = table.append(rows(9), wap_id="w1")
    table.cherry_pick(staged.snapshot_id)
    assert table.metadata.current_snapshot_id == staged.snapshot_id
    assert ids(table) == [1, 2]
    with pytest.raises(InputError, match="already published"):
        table.cherry_pick(again.snapshot_id)


def test_a_change_of_rows_is_not_picked_onto_rows_that_it_has_not_seen(table):
    """It was computed from rows as they were: one deleted meanwhile would come back."""
    table.append(rows(1, 2, 3))
    table.branch("dev")
    change = table.upsert(rows(3, 4), on=["id"], branch="dev")
    table.delete("id = 1")
    with pytest.raises(InputError, match="can only be published while its parent is the head of main"):
        table.cherry_pick(change.snapshot_id)
    assert ids(table) == [2, 3]


def test_rolling_back_and_setting_the_current_snapshot(table):
    first = table.append(rows(1)).snapshot_id
    second = table.append(rows(2)).snapshot_id
    table.rollback(snapshot=first)
    assert ids(table) == [1]
    with pytest.raises(InputError, match="not in the history of main"):
        table.rollback(snapshot=second)
    commit(pointer_of(table), SetCurrentSnapshot(snapshot_id=second))
    assert ids(table) == [1, 2]
    assert [entry.snapshot_id for entry in table.metadata.snapshot_log] == [first, second, first, second]
    with pytest.raises(InputError, match="say where to"):
        table.rollback()


def test_statistics_belong_to_snapshots(table):
    made = table.append(rows(1)).snapshot_id
    file = StatisticsFile(
        snapshot_id=made, statistics_path="file:///s.puffin", file_size_in_bytes=10, file_footer_size_in_bytes=5
    )
    commit(pointer_of(table), SetStatistics(files_of_snapshots=(file,)))
    assert table.metadata.statistics == (file,)


def test_old_metadata_files_go_when_the_table_asks_for_it(table):
    table.set_properties(
        {"write.metadata.previous-versions-max": "2", "write.metadata.delete-after-commit.enabled": "true"}
    )
    for number in range(4):
        table.append(rows(number))
    log = [entry.metadata_file for entry in table.metadata.metadata_log]
    folder = Path(table.metadata_location.removeprefix("file://")).parent
    assert len(log) == 2
    kept = {f"file://{path}" for path in folder.glob("*.metadata.json")}
    assert {table.metadata_location, *log} <= kept
    assert len(kept) <= 4  # the log had not been limited before the first two
    assert ids(table) == [0, 1, 2, 3]


def test_metadata_is_compressed_when_the_table_asks_for_it(tmp_path, version):
    cat = new_catalog(tmp_path)
    table = cat.create_table(
        "db.z", schema="id bigint", format_version=version, properties={"write.metadata.compression-codec": "gzip"}
    )
    table.append(rows(1))
    table.append(rows(2))
    path = Path(table.metadata_location.removeprefix("file://"))
    assert path.name.startswith("00002-")
    assert path.name.endswith(".gz.metadata.json")
    assert b'"format-version"' in gzip.decompress(path.read_bytes())
    assert all(entry.metadata_file.endswith(".gz.metadata.json") for entry in table.metadata.metadata_log)
    assert ids(cat.load_table("db.z")) == [1, 2]
    table.set_properties({"write.metadata.compression-codec": "none"})
    assert "gz" not in table.metadata_location
    assert ids(cat.load_table("db.z")) == [1, 2]


@pytest.mark.parametrize("level", ["serializable", "snapshot"])
@pytest.mark.parametrize("verb", ["delete", "merge"])
def test_isolation_is_what_the_table_says(table, verb, level):
    """With snapshot isolation an operation does not look at rows that came meanwhile."""
    table.append(rows(1, 2, 3))
    table.set_properties({f"write.{verb}.isolation-level": level, "commit.retry.min-wait-ms": "1"})
    late = table.transaction()
    if verb == "delete":
        late.delete("id = 3")
    else:
        late.upsert(rows(3), on=["id"])
    table.append(rows(3))
    if level == "serializable":
        with pytest.raises(ConflictError, match="may contain rows that this operation reads"):
            late.commit()
        assert ids(table) == [1, 2, 3, 3]
    else:
        late.commit()
        assert ids(table) == ([1, 2, 3] if verb == "delete" else [1, 2, 3, 3])


def test_an_overwrite_by_filter_from_rows(tmp_path, version):
    table = new_catalog(tmp_path).create_table(
        "db.p", schema="id bigint, city string", partition_by=["city"], format_version=version
    )
    table.append(pa.table({"id": [1, 2], "city": ["Oslo", "Rome"]}))
    added = write_entries(pointer_of(table).io, pa.table({"id": [9], "city": ["Oslo"]}), table.metadata)
    commit(pointer_of(table), OverwriteWhere(filter=parse_filter("city = 'Oslo'"), added=added))
    assert ids(table) == [2, 9]


def test_a_table_is_born_with_its_rows(tmp_path, version):
    cat = new_catalog(tmp_path)
    cat.create_namespace("db")
    place = f"file://{tmp_path}/born"
    io, schema = file_io(place), parse_ddl("id bigint")
    metadata = new_metadata(location=place, schema=schema, spec=UNPARTITIONED, properties={}, format_version=version)
    steps = (Append(added=write_entries(io, rows(1, 2), metadata)),)
    create_table(pointers_of(cat), ("db", "born"), io, metadata, steps=steps)
    table = Table(TablePointer(pointers_of(cat), ("db", "born"), io))
    assert ids(table) == [1, 2]
    assert table.metadata.metadata_log == ()
    table.append(rows(3))
    assert ids(table) == [1, 2, 3]
    before = sorted((tmp_path / "born").rglob("*.*"))
    steps = (Append(added=write_entries(io, rows(1, 2), metadata)),)
    with pytest.raises(AlreadyExists):
        create_table(pointers_of(cat), ("db", "born"), io, metadata, steps=steps)
    assert sorted((tmp_path / "born").rglob("*.*")) == before


def test_a_table_that_could_not_be_born_leaves_no_file_behind(tmp_path, version):
    """An error that nobody foresaw left the rows of a table that never was."""
    cat = new_catalog(tmp_path)
    cat.create_namespace("db")
    place = f"file://{tmp_path}/born"
    io, schema = file_io(place), parse_ddl("id bigint")
    metadata = new_metadata(location=place, schema=schema, spec=UNPARTITIONED, properties={}, format_version=version)

    class Broken(Append):
        def resolve(self, draft, work):
            raise TypeError("nobody foresaw this")

    good, bad = (write_entries(io, rows(n), metadata) for n in (1, 2))
    with pytest.raises(TypeError, match="foresaw"):
        create_table(pointers_of(cat), ("db", "born"), io, metadata, steps=(Append(added=good), Broken(added=bad)))
    assert sorted((tmp_path / "born").rglob("*.*")) == []
