"""Tables of versions 1 to 3 that go on in V4: nothing is written again, and nothing is lost (statements 57 to 63)."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from icefloe.codecs.manifest.context import manifest_context
from icefloe.codecs.manifest.manifest_list import encode_manifest_list
from icefloe.codecs.manifest.manifests import encode_leaf
from icefloe.commit.loop import commit
from icefloe.commit.operations.append import Append
from icefloe.commit.operations.overwrite import OverwriteFiles
from icefloe.commit.operations.property_updates import Upgrade
from icefloe.commit.operations.remove_files import RemoveFiles
from icefloe.commit.operations.rewrite import RewriteManifests
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.errors import ConflictError, InputError
from icefloe.model.entries import MANIFEST_COUNTS, MANIFESTS, ContentType, put
from icefloe.table.held_table import pointer_of
from icefloe.tree.file_changes import FileChanges
from icefloe.tree.root import read_root
from support.entry_tables import (
    ENV,
    LOCATION,
    World,
    at,
    audit,
    data,
    equality_deletes,
    new_world,
    position_deletes,
    rows,
    short,
    vector,
)
from support.metadata_documents import metadata_json
from support.tables import new_catalog, sorted_rows
from version_4.scenes import plain_rows

OLD = pytest.mark.parametrize("version", [1, 2, 3])
DATA, DV, EQUALITY, DATA_MANIFEST, DELETE_MANIFEST, MANIFEST_DV = range(6)
EXISTING, ADDED, DELETED = range(3)


def grown(version: int, **properties: str) -> World:
    """Two manifests: one whose first entry is DELETED, then two files, and one of one file."""
    world = new_world(version, **properties)
    world.commit(Append(added=rows(data("gone", rows=11), data("a", rows=5), data("b", "Rome", rows=7)), fast=True))
    world.commit(Append(added=rows(data("c", None, rows=3)), fast=True))
    world.commit(OverwriteFiles(changes=FileChanges(added=rows(), removed=world.tasks("gone")), read=world.head))
    return world


def plain_root(world: World) -> list[dict]:
    """The rows of the newest root as Parquet tells them."""
    return plain_rows(pa.BufferReader(world.io.read(world.head.root)))


def avro_files(world: World) -> dict[str, bytes]:
    return {file: world.io.read(file) for file in world.files() if file.endswith(".avro")}


def row_ids(world: World) -> dict[str, tuple[int, int]]:
    found = world.entries()
    kept = found.filter(pc.equal(found["content_type"], DATA))
    pairs = zip(kept["first_row_id"].to_pylist(), kept["sequence_number"].to_pylist(), strict=True)
    return dict(zip(map(short, kept["location"].to_pylist()), pairs, strict=True))


@OLD
def test_57_an_upgrade_writes_nothing_but_the_table_metadata(version):
    world = grown(version)
    before, files = world.metadata, world.files()
    held = [world.names(snapshot) for snapshot in before.snapshots]
    bytes_before = avro_files(world)

    world.table().upgrade(4)

    after = world.metadata
    assert world.files() - files == {world.base().pointer}
    assert (after.format_version, after.current_snapshot_id) == (4, before.current_snapshot_id)
    assert avro_files(world) == bytes_before
    assert [s.root for s in after.snapshots] == [s.root for s in before.snapshots]
    assert [world.names(snapshot) for snapshot in after.snapshots] == held
    document = metadata_json(world.io.read(world.base().pointer))
    assert all("root-manifest" not in s and s["manifest-list"].startswith("metadata/") for s in document["snapshots"])
    assert world.names() == ["a", "b", "c"]


@OLD
def test_57_the_branches_tags_and_logs_of_the_table_stay(version):
    world = grown(version)
    first = next(iter(world.metadata.snapshots)).snapshot_id
    world.table().tag("start", snapshot=first)
    world.table().branch("dev")
    before = world.metadata
    world.table().upgrade(4)
    after = world.metadata
    for name in ("refs", "snapshot_log", "schemas", "specs", "sort_orders", "properties", "location"):
        assert getattr(after, name) == getattr(before, name), name
    world.commit(Append(added=rows(data("d")), branch="dev"))
    assert world.names(after.snapshot(first)) == ["a", "b", "gone"]
    assert world.names() == ["a", "b", "c"]
    assert world.names(world.metadata.snapshot(world.metadata.ref("dev").snapshot_id)) == ["a", "b", "c", "d"]


@OLD
def test_58_the_first_commit_writes_one_root_with_a_row_for_each_old_manifest(version):
    world = grown(version)
    listed = read_root(world.base().store, world.head).entries
    before = avro_files(world)
    world.table().upgrade(4)
    files = world.files()

    world.commit(Append(added=rows(data("d", rows=2))))

    new = world.files() - files
    assert sorted(file.endswith(".parquet") for file in new) == [False, True]  # a root, and the table metadata
    assert avro_files(world) == before
    *old, added = plain_root(world)
    assert [f"{LOCATION}/{row['location']}" for row in old] == listed["location"].to_pylist()
    for row, was in zip(old, listed.to_pylist(), strict=True):
        assert (row["content_type"], row["file_format"]) == (DATA_MANIFEST, "avro")
        info = row["version_info"]
        assert (info["status"], info["snapshot_id"]) == (EXISTING, was["snapshot_id"])
        assert info["sequence_number"] == info["file_sequence_number"] == was["sequence_number"]
        assert row["manifest_stats"] == {field.name: was[field.name] for field in MANIFEST_COUNTS}
        stored = list(fastavro.reader(io.BytesIO(before[was["location"]])))
        assert (row["record_count"], row["file_size_in_bytes"]) == (len(stored), len(before[was["location"]]))
    assert (added["content_type"], added["version_info"]["status"]) == (DATA, ADDED)
    assert world.names() == ["a", "b", "c", "d"]
    audit(world)


@OLD
@pytest.mark.parametrize("many_snapshots", [False, True])
def test_58_the_first_root_is_the_same_in_the_process_that_wrote_the_manifests_and_in_a_new_one(
    version, many_snapshots
):
    # A process that remembered the rows of its manifest list wrote statistics and versions that a new process lacked.
    def first_root(*, new_process: bool) -> list[dict]:
        world = new_world(version)
        pointer = world.pointer()
        for steps in (
            [Append(added=rows(data("a", rows=5), data("b", "Rome", rows=7)), fast=True)],
            [Append(added=rows(data("c", None, rows=3)), fast=True)],
            [Upgrade(version=4)],
        ):
            commit(pointer, steps, ENV)
        pointer = world.pointer() if new_process else pointer
        more = [Append(added=rows(data(name)), fast=True) for name in ("d", "e")]
        commit(pointer, more if many_snapshots else more[:1], ENV)
        told = plain_root(world)
        for row in told:
            assert row["format_version"] == (version if row["content_type"] == DATA_MANIFEST else None)
            row["version_info"].pop("snapshot_id")
            (
                row.pop("location"),
                row.pop("file_size_in_bytes"),
            )
        return told

    assert first_root(new_process=False) == first_root(new_process=True)


def test_58_a_manifest_whose_list_states_a_wrong_size_gets_its_version_too():
    world = grown(2)
    base = world.base()
    listed = read_root(base.store, world.head).entries
    wrong = put(listed, "file_size_in_bytes", pa.array([10, 10**9], pa.int64()))
    world.io.inner.delete([world.head.root])
    world.io.inner.write_new(
        world.head.root,
        encode_manifest_list(wrong, manifest_context(base.metadata), snapshot_id=1, parent_id=None, sequence_number=3),
    )
    world.table().upgrade(4)
    world.commit(Append(added=rows(data("d"))))
    assert [row["format_version"] for row in plain_root(world)] == [2, 2, None]


def test_58_a_table_that_is_upgraded_in_a_transaction_goes_on_in_it():
    world = grown(2)
    steps = [Append(added=rows(data("d"))), Upgrade(version=4), Append(added=rows(data("e")))]
    world.commit(*steps)
    assert world.names() == ["a", "b", "c", "d", "e"]
    assert {row["format_version"] for row in plain_root(world) if row["content_type"] == DATA_MANIFEST} == {2}


@OLD
def test_58_partition_summaries_become_statistics_of_the_column(version):
    """The city column has id 2; a summary tells bounds, and of nulls whether there are none, only, or some."""
    world = grown(version)
    world.table().upgrade(4)
    world.commit(Append(added=rows(data("d", rows=2))))
    found = {row["record_count"]: row["content_stats"]["city"] for row in plain_root(world)[:-1]}
    of_three, of_one = found[3], found[1]
    assert (of_three["lower_bound"], of_three["upper_bound"], of_three["null_value_count"]) == ("Oslo", "Rome", 0)
    assert (of_one["lower_bound"], of_one["upper_bound"]) == (None, None)
    assert of_one["null_value_count"] == of_one["value_count"] == 3


def without_counts(world: World) -> None:
    """Make the newest manifest list one that does not count, as version 1 allows."""
    base = world.base()
    head = base.metadata.current_snapshot
    listed = base.store.root(head.root)
    for field in (*MANIFEST_COUNTS, pa.field("record_count", pa.int64())):
        listed = listed.set_column(
            listed.schema.get_field_index(field.name), field, pa.nulls(listed.num_rows, field.type)
        )
    context = replace(base.store.context, format_version=1)
    data_ = encode_manifest_list(listed, context, snapshot_id=1, parent_id=None, sequence_number=0)
    world.io.inner.delete([head.root])
    world.io.inner.write_new(head.root, data_)


@pytest.mark.parametrize("target", [2, 3, 4])
def test_58_counts_that_a_list_of_version_1_lacks_are_read_from_the_manifests(target):
    world, told = grown(1), grown(1)
    without_counts(world)
    for each in (world, told):
        each.table().upgrade(target)
        each.commit(Append(added=rows(data("d", rows=2)), fast=True))
    names = [field.name for field in MANIFEST_COUNTS] + ["record_count", "first_row_id", "lower_bound:p1000"]
    found, expected = (
        read_root(each.base().store, each.head).rows(ContentType.DATA_MANIFEST).select(names).to_pylist()
        for each in (world, told)
    )
    assert found == expected
    assert world.names() == ["a", "b", "c", "d"]
    audit(world)


@pytest.mark.parametrize("operation", ["remove", "rewrite"])
def test_58_other_first_commits_count_as_well(operation):
    world = grown(1)
    without_counts(world)
    world.table().upgrade(4)
    world.commit(RemoveFiles(locations=(at("c"),)) if operation == "remove" else RewriteManifests())
    assert world.names() == (["a", "b"] if operation == "remove" else ["a", "b", "c"])
    audit(world)


@OLD
def test_59_a_file_leaves_an_avro_leaf_by_the_ordinal_of_its_record(version):
    world = grown(version)
    leaf = world.tasks("b")["manifest"][0].as_py()
    stored = list(fastavro.reader(io.BytesIO(world.io.read(leaf))))
    places = {short(record["data_file"]["file_path"]): number for number, record in enumerate(stored)}
    assert [record["status"] for record in stored] == [DELETED, EXISTING, EXISTING]
    assert places == {"gone": 0, "a": 1, "b": 2}
    before = avro_files(world)
    world.table().upgrade(4)

    world.commit(RemoveFiles(locations=(at("b"),)))

    assert avro_files(world) == before
    root = read_root(world.base().store, world.head)
    assert {place: list(dead) for place, dead in root.dead.items()} == {leaf: [2]}
    (vector_row,) = (row for row in plain_root(world) if row["content_type"] == MANIFEST_DV)
    assert vector_row["referenced_file"] == leaf.removeprefix(f"{LOCATION}/")
    assert (vector_row["version_info"]["status"], vector_row["record_count"]) == (ADDED, 1)
    assert world.names() == ["a", "c"]
    world.commit(RemoveFiles(locations=(at("a"),)))
    assert world.names() == ["c"]
    world.commit(Append(added=rows(data("d"))))  # nothing in the leaf is live, so it goes
    assert leaf not in read_root(world.base().store, world.head).entries["location"].to_pylist()
    assert world.names() == ["c", "d"]
    audit(world)


def test_60_row_ids_and_sequence_numbers_of_version_3_are_what_they_were():
    world = grown(3)
    before = row_ids(world)
    assert None not in [first for first, _ in before.values()]
    next_id = world.metadata.next_row_id
    world.table().upgrade(4)
    assert row_ids(world) == before
    world.commit(Append(added=rows(data("d", rows=2))))
    assert row_ids(world) == {**before, "d": (next_id, world.head.sequence_number)}
    assert (world.head.first_row_id, world.head.added_rows) == (next_id, 2)
    world.commit(RemoveFiles(locations=(at("a"),)))
    left = {name: ids for name, ids in row_ids(world).items() if name in before}
    assert left == {name: before[name] for name in ("b", "c")}
    world.commit(RewriteManifests())
    assert {name: row_ids(world)[name] for name in left} == left
    audit(world)


@pytest.mark.parametrize("version", [1, 2])
def test_60_files_of_older_versions_get_row_ids_by_the_first_commit(version):
    world = grown(version)
    before = row_ids(world)
    assert {first for first, _ in before.values()} == {None}
    world.table().upgrade(4)
    assert row_ids(world) == before
    assert world.metadata.next_row_id == 0
    world.commit(RemoveFiles(locations=(at("a"),)))
    ids = row_ids(world)
    ranges = sorted((first, first + {"b": 7, "c": 3}[name]) for name, (first, _) in ids.items())
    assert ranges[0][1] <= ranges[1][0]
    assert world.head.first_row_id == 0
    assert world.metadata.next_row_id == world.head.added_rows == 15  # the leaf of a and b has 12, of which 5 are gone
    world.commit(Append(added=rows(data("d", rows=2))))
    assert {name: row_ids(world)[name] for name in ids} == ids
    assert row_ids(world)["d"][0] == 15
    audit(world)


PARTITIONINGS = [
    ("city", ["city = 'Oslo'", "city > 'P'", "city is null", "city is not null", "city in ('Rome', 'Bern')", "id = 5"]),
    ("truncate(1, city)", ["city = 'Oslo'", "city like 'O%'", "city < 'C'", "city is null"]),
    ("bucket(8, id)", ["id = 3", "id in (1, 2)", "id > 3"]),
    ("day(ts)", ["ts < '2025-06-02T00:00:00'", "ts = '2025-06-03T10:00:00'", "ts is null"]),
    ("share", ["share = 0.5", "share > 1e9", "share is null"]),
]


@pytest.mark.slow
@OLD
@pytest.mark.parametrize(("partition_by", "filters"), PARTITIONINGS, ids=[p[0] for p in PARTITIONINGS])
def test_61_leaves_are_pruned_as_by_the_partition_summaries(tmp_path, version, partition_by, filters):
    table = new_catalog(tmp_path).create_table(
        "db.t",
        schema="id bigint, city string, ts timestamp_ntz, share double",
        partition_by=[partition_by],
        format_version=version,
        properties={"commit.manifest-merge.enabled": "false"},
    )
    for number, (city, share) in enumerate(
        [("Oslo", 0.5), ("Rome", 2.0), (None, None), ("Bern", float("nan")), ("Oslo", -1.0), ("Ystad", 1e12)]
    ):
        ts = None if city is None else 1_748_736_000_000_000 + number * 86_400_000_000  # from 2025-06-01 on
        columns = {"id": pa.array([number], pa.int64()), "city": pa.array([city], pa.string())}
        columns |= {"ts": pa.array([ts], pa.timestamp("us")), "share": pa.array([share], pa.float64())}
        table.append(pa.table(columns))
    before = pruned(tmp_path, filters)
    assert any(skipped > 0 for _, _, skipped in before.values())
    table = new_catalog(tmp_path).load_table("db.t")
    table.upgrade(4)
    assert pruned(tmp_path, filters) == before
    with table.transaction() as change:
        change.append(pa.table({"id": pa.array([99], pa.int64()), "city": ["Oslo"]}))
    assert pruned(tmp_path, filters) == before


def pruned(folder: Path, filters: list[str]) -> dict[str, tuple[list[str], int, int]]:
    """For each filter the files of leaves that it leaves, and how many leaves were read and skipped.

    The table is opened anew, as a commit remembers more of its manifests than lists can tell.
    """
    table = new_catalog(folder).load_table("db.t")
    found = {}
    for text in filters:
        plan = table.scan(text).plan()
        listed = plan.tasks.filter(pc.is_valid(plan.tasks["manifest"]))
        found[text] = (sorted(listed["location"].to_pylist()), plan.manifests_read, plan.manifests_skipped)
    return found


def deletes_of(world: World) -> dict[str, tuple[list[str], str | None]]:
    """The delete files and the deletion vector that apply to each data file."""
    plan = world.plan()
    names = [short(location) for location in plan.deletes["location"].to_pylist()]
    return {
        short(task["location"]): (
            [names[i] for i in task["deletes"] or ()],
            None if task["dv_location"] is None else short(task["dv_location"]),
        )
        for task in plan.tasks.to_pylist()
    }


def with_position_deletes() -> World:
    world = new_world(2)
    world.commit(Append(added=rows(data("a"), data("b"))))
    world.commit(
        RowDelta(
            changes=FileChanges(added=rows(position_deletes("p1", "a"), position_deletes("p2", None))), read=world.head
        )
    )
    world.table().upgrade(4)
    return world


def test_62_position_deletes_of_version_2_go_on_to_apply_until_there_is_a_vector():
    world = with_position_deletes()
    expected = {"a": (["p1", "p2"], None), "b": (["p2"], None)}
    assert {name: (sorted(files), dv) for name, (files, dv) in deletes_of(world).items()} == expected
    world.commit(Append(added=rows(data("c"))))
    found = {name: (sorted(files), dv) for name, (files, dv) in deletes_of(world).items()}
    assert found == {**expected, "c": ([], None)}  # p2 is older than c
    delete_leaves = [row for row in plain_root(world) if row["content_type"] == DELETE_MANIFEST]
    assert [(row["file_format"], row["version_info"]["status"]) for row in delete_leaves] == [("avro", EXISTING)]

    world.commit(RowDelta(changes=FileChanges(added=rows(vector("v", "a", rows=3))), read=world.head))

    assert deletes_of(world) == {"a": ([], "v"), "b": (["p2"], None), "c": ([], None)}
    audit(world)


def test_62_a_position_delete_file_cannot_be_listed_in_a_v4_manifest():
    world = with_position_deletes()
    context = manifest_context(world.metadata)
    entry = rows({**position_deletes("p3", "a"), "status": ADDED})
    with pytest.raises(InputError):
        encode_leaf(entry, context, content=ContentType.DELETE_MANIFEST, spec_id=0)
    with pytest.raises(ConflictError, match="not by position delete files"):
        world.commit(RowDelta(changes=FileChanges(added=rows(position_deletes("p3", "a"))), read=world.head))


@OLD
def test_63_written_again_no_manifest_is_avro_and_the_rows_are_the_same(tmp_path, version):
    table = new_catalog(tmp_path).create_table(
        "db.t", schema="id bigint, city string", partition_by=["city"], format_version=version
    )
    for city in ("Oslo", "Rome", None):
        table.append(pa.table({"id": pa.array(range(4), pa.int64()), "city": pa.array([city] * 4, pa.string())}))
    table.delete("id = 1")
    table.upgrade(4)
    table.append(pa.table({"id": [9], "city": ["Bern"]}))
    before = sorted_rows(table.scan().to_arrow())
    result = table.rewrite_manifests().execute()
    assert result.operation == "replace"
    assert sorted_rows(table.scan().to_arrow()) == before
    base = pointer_of(table).load()
    root = read_root(base.store, base.metadata.current_snapshot)
    leaves = root.rows(*MANIFESTS)
    assert set(leaves["file_format"].to_pylist()) == {"parquet"}
    assert len(root.dead) == 0
    for location in leaves["location"].to_pylist():
        found = pq.ParquetFile(location.removeprefix("file://"))
        assert {row["version_info"]["status"] for row in found.read().to_pylist()} == {EXISTING}


def test_63_a_leaf_with_position_deletes_stays_avro_and_its_equality_deletes_apply():
    world = new_world(2)
    world.commit(Append(added=rows(data("a"), data("b", "Rome"))))
    world.commit(
        RowDelta(
            changes=FileChanges(added=rows(position_deletes("p", "a"), equality_deletes("e", "Rome"))), read=world.head
        )
    )
    world.table().upgrade(4)
    before = deletes_of(world)
    world.commit(RewriteManifests())
    assert deletes_of(world) == before == {"a": (["p"], None), "b": (["e"], None)}
    root = plain_root(world)
    assert {(row["content_type"], row["file_format"]) for row in root if row["content_type"] in (3, 4)} >= {
        (DATA_MANIFEST, "parquet"),
        (DELETE_MANIFEST, "avro"),
    }
    assert (DATA_MANIFEST, "avro") not in {(row["content_type"], row["file_format"]) for row in root}
    audit(world, folder=False)
