"""Tables at another location: every snapshot reads as before though the old folder is gone, and only locations change.

Other tests: a relocation that is interrupted (``test_relocate_crashes``), and Apache Iceberg on relocated tables
(``tests/interop/test_relocated_tables.py``).
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from icefloe.codecs.manifest.field_ids import DATA_FILE
from icefloe.codecs.puffin.puffin_file import Blob, encode_puffin, footer_bytes
from icefloe.commit.loop import commit
from icefloe.commit.operations.snapshot_updates import SetStatistics
from icefloe.errors import ConflictError, InputError, StorageError, UnsupportedError
from icefloe.maintenance.relocate.run_relocation import relocated_metadata
from icefloe.model.metadata.statistics_files import EncryptionKey, PartitionStatisticsFile, StatisticsFile
from icefloe.model.moved_locations import Moves
from icefloe.table.catalog import catalog
from icefloe.table.held_table import pointer_of
from icefloe.table.open import open_table
from icefloe.table.table import Table
from icefloe.tree.root import leaves_of, read_leaves, read_root
from support.compacted import contents, exists_in, made, rows, snapshots
from support.people import MERGE, new_table
from support.tables import VERSIONS, new_catalog, sorted_rows

CASES = [(version, history) for version in VERSIONS for history in ("mixed", "evolved") if exists_in(history, version)]
# Columns of entries that may differ: locations, and what belongs to rewritten files.
MAY_DIFFER = ("location", "referenced_file", "file_size_in_bytes", "split_offsets")
PATH_BOUNDS = ("lower_bound:2147483546", "upper_bound:2147483546")


def path_of(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def moved(table: Table, folder: Path, **options: object) -> Table:
    """The table after a relocation, opened again; the old folder is gone."""
    old = table.location
    result = table.relocate(f"{folder}/new place/t", **options).execute()  # type: ignore[arg-type]
    assert (result.former_location, result.location) == (old, f"file://{folder}/new place/t")
    assert table.location == result.location
    shutil.rmtree(path_of(old))
    return new_catalog(folder).load_table(table.name)


def check_sound(table: Table) -> None:
    assert table.verify(snapshots="all", files=True, rows=True).findings == ()


@pytest.mark.parametrize(("version", "history"), CASES)
def test_every_snapshot_reads_as_before_though_the_old_folder_is_gone(version, history, tmp_path):
    table = made(tmp_path, version, history, partitioned=True)
    table.tag("kept")
    table.branch("side")
    table.append(table.scan().to_arrow().slice(0, 1), branch="side")
    before, past, refs = contents(table), snapshots(table), table.refs
    table = moved(table, tmp_path)
    assert (contents(table), snapshots(table), table.refs) == (before, past, refs)
    check_sound(table)
    table.append(table.scan().to_arrow().slice(0, 1))
    table.delete("id = 31")
    assert len(contents(table)) in (len(before), len(before) + 1)
    check_sound(table)


def entries_of(table: Table) -> list[pa.Table]:
    """The rows of every root and every leaf, read from storage and as they are inherited."""
    base = pointer_of(open_table(table.metadata_location)).load()
    found: list[pa.Table] = []
    for snapshot in base.metadata.snapshots:
        root = read_root(base.store, snapshot)
        leaves = list(leaves_of(root.rows(3, 4)))  # type: ignore[arg-type]
        found += [root.entries, *read_leaves(base.store, leaves)]
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_only_locations_change_in_manifests_and_metadata(version, tmp_path):
    table = made(tmp_path, version, "evolved" if version == 1 else "mixed", partitioned=True)
    old, entries, metadata = table.location, entries_of(table), table.metadata
    table.relocate(f"{tmp_path}/b/t").execute()
    after = entries_of(table)
    assert len(after) == len(entries) > 3
    differing = {name for one in entries for name in one.column_names if name in (*MAY_DIFFER, *PATH_BOUNDS)}
    for one, other in zip(entries, after, strict=True):
        assert one.column_names == other.column_names
        for name in one.column_names:
            if name not in differing:
                assert one[name].equals(other[name]), name
        inner = [
            [text.removeprefix(f"{place}/data/") for text in part["location"].to_pylist() if "/data/" in text]
            for part, place in ((one, old), (other, table.location))
        ]
        kept = [text for text in inner[0] if "delete" not in text and "puffin" not in text]
        assert kept == [text for text in inner[1] if "delete" not in text and "puffin" not in text]
    moves = Moves(old=old, new=table.location)
    expected, found = relocated_metadata(metadata, moves), table.metadata
    for name in ("schemas", "specs", "refs", "properties", "snapshot_log", "last_updated_ms", "next_row_id"):
        assert getattr(found, name) == getattr(expected, name)
    assert found.table_uuid == metadata.table_uuid
    assert found.metadata_log == ()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_manifests_keep_their_header_and_every_other_value(version, tmp_path):
    fastavro = pytest.importorskip("fastavro")
    table = made(tmp_path, version, "deleted", partitioned=True)

    def files() -> list[tuple[object, dict[str, str], list[dict[str, object]]]]:
        base = pointer_of(table).load()
        leaves = [leaf for s in base.metadata.snapshots for leaf in leaves_of(read_root(base.store, s).rows(3, 4))]  # type: ignore[arg-type]
        found = []
        for leaf in leaves:
            with path_of(leaf.location).open("rb") as stream:
                reader = fastavro.reader(stream)
                found.append((reader.writer_schema, dict(reader.metadata), list(reader)))
        return found

    before = files()
    assert any(field.get("field-id") == DATA_FILE for field in before[0][0]["fields"])  # type: ignore[index]
    table.relocate(f"{tmp_path}/b/t").execute()
    for (schema, header, records), (new_schema, new_header, new_records) in zip(before, files(), strict=True):
        assert (schema, header) == (new_schema, new_header)
        for record in (*records, *new_records):
            for name in ("file_path", "file_size_in_bytes", "split_offsets", "referenced_data_file"):
                record["data_file"].pop(name, None)  # type: ignore[attr-defined]
            for name in ("lower_bounds", "upper_bounds"):
                pairs = record["data_file"][name] or []  # type: ignore[index]
                record["data_file"][name] = [p for p in pairs if p["key"] != 2147483546]  # type: ignore[index]
        assert records == new_records


def test_manifests_with_many_entries_are_rewritten(tmp_path):
    table = new_table(tmp_path, 2, MERGE, ("truncate(5, id)",))
    table.append(rows(0, 300))
    table.delete("id in (1, 100, 299)")
    before = contents(table)
    table = moved(table, tmp_path)
    assert contents(table) == before
    check_sound(table)


@pytest.mark.parametrize("file_format", ["orc", "avro", "parquet"])
def test_position_deletes_of_every_format_name_the_new_data_files(file_format, tmp_path):
    table = new_table(tmp_path, 2, MERGE, ("city",), write_format_default=file_format)
    table.append(rows(0, 20))
    table.append(rows(20, 40, "Rome"))
    table.delete("id in (3, 4, 25)")
    before = contents(table)
    plan = table.relocate(f"{tmp_path}/new place/t")
    assert plan.delete_files == 2
    table = moved(table, tmp_path)
    assert contents(table) == before
    assert len(before) == 37
    deletes = table.inspect.delete_files()
    assert all(f".{file_format}" in location for location in deletes["file_path"].to_pylist())
    check_sound(table)


def test_a_table_that_was_upgraded_keeps_its_older_manifests_and_deletes(tmp_path):
    table = made(tmp_path, 2, "mixed", partitioned=True)
    table.upgrade(3)
    table.delete("id = 31")
    table.upgrade(4)
    table.delete("id = 32")
    table.append(rows(100, 105))
    before, past = contents(table), snapshots(table)
    plan = table.relocate(f"{tmp_path}/new place/t")
    assert plan.manifests > 0
    assert plan.delete_files > 0
    table = moved(table, tmp_path)
    assert (contents(table), snapshots(table)) == (before, past)
    check_sound(table)


def test_a_table_of_version_4_is_mostly_a_copy(tmp_path):
    table = made(tmp_path, 4, "mixed", partitioned=True)
    plan = table.relocate(f"{tmp_path}/new place/t")
    assert (plan.manifests, plan.delete_files) == (0, 0)
    assert plan.copies.num_rows > 10


def test_only_the_heads_of_branches_and_tags_are_relocated_if_asked(tmp_path):
    table = made(tmp_path, 2, "deleted", partitioned=False)
    table.tag("first", snapshot=table.snapshots[0].snapshot_id)
    before, first = contents(table), sorted_rows(table.at(tag="first").scan().to_arrow())
    plan = table.relocate(f"{tmp_path}/new place/t", snapshots="current")
    assert (plan.snapshots, plan.dropped_snapshots) == (2, len(table.snapshots) - 2)
    assert f"{plan.dropped_snapshots} older snapshots are left behind" in repr(plan)
    table = moved(table, tmp_path, snapshots="current")
    assert len(table.snapshots) == 2
    assert (contents(table), sorted_rows(table.at(tag="first").scan().to_arrow())) == (before, first)
    check_sound(table)


def test_statistics_files_and_the_data_path_move_too(tmp_path):
    table = made(tmp_path, 2, "plain", partitioned=False)
    table.set_properties({"write.data.path": f"{table.location}/elsewhere", "comment": "data"})
    table.append(rows(200, 210))
    head = table.metadata.current_snapshot_id
    assert head is not None
    data = encode_puffin([Blob(type="note", data=b"hello")], "test")[0]
    paths = [f"{table.location}/metadata/{name}" for name in ("a.stats", "p.parquet")]
    for path in paths:
        pointer_of(table).io.write_new(path, data)
    statistics = StatisticsFile(
        snapshot_id=head,
        statistics_path=paths[0],
        file_size_in_bytes=len(data),
        file_footer_size_in_bytes=footer_bytes(data),
    )
    partitions = PartitionStatisticsFile(snapshot_id=head, statistics_path=paths[1], file_size_in_bytes=len(data))
    commit(pointer_of(table), SetStatistics(files_of_snapshots=(statistics, partitions)))
    before = contents(table)
    table = moved(table, tmp_path)
    (kept,), (kept_partitions,) = table.metadata.statistics, table.metadata.partition_statistics
    assert path_of(kept.statistics_path).read_bytes() == data
    assert path_of(kept_partitions.statistics_path).read_bytes() == data
    assert table.properties["write.data.path"] == f"{table.location}/elsewhere"
    assert table.properties["comment"] == "data"
    assert contents(table) == before


# -- copies by another program


def test_files_that_another_program_copied_are_checked_and_used(tmp_path):
    table = made(tmp_path, 2, "mixed", partitioned=True)
    before, old, new = contents(table), table.location, tmp_path / "new place" / "t"
    plan = table.relocate(str(new), copy=False)
    assert plan.copies.column_names == ["source", "target", "bytes"]
    with pytest.raises(InputError, match="are not at the new location yet"):
        plan.execute()
    shutil.copytree(path_of(old), new)  # with the old metadata
    result = plan.execute()
    assert (result.copied_files, result.present_files) == (0, plan.copies.num_rows)
    shutil.rmtree(path_of(old))
    table = new_catalog(tmp_path).load_table(table.name)
    assert contents(table) == before
    assert table.verify(snapshots="all", files=True).ok


@pytest.mark.parametrize("copy", [True, False])
def test_a_file_of_another_size_is_refused(copy, tmp_path):
    table = made(tmp_path, 2, "plain", partitioned=False)
    plan = table.relocate(f"{tmp_path}/b/t", copy=copy)
    target = path_of(plan.copies["target"][0].as_py())
    target.parent.mkdir(parents=True)
    target.write_bytes(b"broken")
    with pytest.raises(InputError, match=rf"{target.name} exists with another size"):
        plan.execute()
    assert table.refresh().location != f"file://{tmp_path}/b/t"


# -- concurrent commits


@pytest.mark.parametrize("version", VERSIONS)
def test_a_commit_after_the_plan_makes_it_stale_and_the_next_plan_copies_the_rest(version, tmp_path):
    table = made(tmp_path, version, "plain", partitioned=False)
    plan = table.relocate(f"{tmp_path}/b/t")
    new_catalog(tmp_path).load_table(table.name).append(rows(500, 501))
    with pytest.raises(ConflictError, match="plan again"):
        plan.execute()
    assert table.refresh().location == plan.former_location

    commits = iter([1])

    def rival(done: int, total: int, step: str) -> None:
        for _ in commits:
            new_catalog(tmp_path).load_table(table.name).append(rows(600, 601))

    plan = table.relocate(f"{tmp_path}/b/t")
    with pytest.raises(ConflictError, match="plan again"):
        plan.execute(progress=rival)
    assert table.refresh().location == plan.former_location
    before = contents(table)
    result = table.relocate(f"{tmp_path}/b/t").execute()
    assert (result.present_files > 0, result.copied_files) == (True, 1 if version < 4 else 2)
    assert contents(table) == before


def test_a_writer_that_began_before_a_relocation_must_begin_again(tmp_path):
    table = made(tmp_path, 2, "plain", partitioned=False)
    writer = new_catalog(tmp_path).load_table(table.name)
    tx = writer.transaction()
    tx.append(rows(700, 701))
    table.relocate(f"{tmp_path}/b/t").execute()
    with pytest.raises(ConflictError, match="was relocated"):
        tx.commit()
    assert table.refresh().scan("id >= 700").count() == 0
    writer.refresh()
    writer.append(rows(700, 701))
    assert table.refresh().scan("id >= 700").count() == 1
    check_sound(table)


# -- what is refused


def test_files_outside_the_table_are_refused_or_stay(tmp_path):
    table = made(tmp_path, 2, "plain", partitioned=False)
    table.set_properties({"write.data.path": f"file://{tmp_path}/lake"})
    table.append(rows(800, 810))
    outside = [text for text in table.scan().plan().tasks["location"].to_pylist() if "/lake/" in text]
    with pytest.raises(UnsupportedError, match=r"1 of its files are outside its location.*outside=") as caught:
        table.relocate(f"{tmp_path}/b/t")
    assert caught.value.context["location"] == outside[0]
    before = contents(table)
    plan = table.relocate(f"{tmp_path}/new place/t", outside="keep")
    assert plan.outside == tuple(outside)
    assert "leave 1 files outside" in repr(plan)
    table = moved(table, tmp_path, outside="keep")
    assert contents(table) == before
    assert outside[0] in table.scan().plan().tasks["location"].to_pylist()


def test_position_deletes_outside_the_table_cannot_stay(tmp_path):
    table = new_table(tmp_path, 2, MERGE, write_data_path=f"file://{tmp_path}/lake")
    table.append(rows(0, 10))
    table.delete("id = 3")
    with pytest.raises(UnsupportedError, match="contains locations of files in the table"):
        table.relocate(f"{tmp_path}/b/t", outside="keep")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("file:///", "whole disk or bucket"),
        ("s3://bucket", "whole disk or bucket"),
        ("{table}", "is its location already"),
        ("{path}/", "is its location already"),
        ("{table}/inner", "overlaps"),
        ("{table}/..", r"segment"),
        ("file://{folder}/b/../c", r"segment"),
        ("file://{folder}/b/%2e%2e/c", r"segment"),
        ("{parent}", "overlaps"),
        ("{linked}/inner", "overlaps"),
        ("{linked}", "is its location already"),
        ("{other}", "has the metadata of table db.other"),
        ("{stranger}", "has another table"),
        ("s3:/no-bucket", "one slash"),
        ("gopher://host/t", "no storage for scheme"),
        ("file://{folder}/a\0b", "NUL"),
    ],
)
def test_targets_that_would_mix_tables_or_escape_are_refused(target, message, tmp_path):
    table = made(tmp_path, 2, "plain", partitioned=False)
    cat = new_catalog(tmp_path)
    other = cat.create_table("db.other", schema="id bigint")
    stranger = catalog(f"x {tmp_path}", uri="memory://").create_table(
        "db.x", schema="id bigint", location=f"file://{tmp_path}/stranger"
    )
    (tmp_path / "linked").symlink_to(path_of(table.location))
    location = target.format(
        table=table.location,
        path=path_of(table.location),
        parent=table.location.rpartition("/")[0],
        folder=tmp_path,
        other=other.location,
        stranger=stranger.location,
        linked=tmp_path / "linked",
    )
    before, former = sorted(path for path in tmp_path.rglob("*")), table.location
    with pytest.raises((InputError, UnsupportedError, StorageError), match=message):
        table.relocate(location).execute()
    assert sorted(path for path in tmp_path.rglob("*")) == before
    assert table.refresh().metadata.location == former


def test_encrypted_tables_and_unknown_keys_with_locations_are_refused(tmp_path, monkeypatch):
    table = made(tmp_path, 3, "plain", partitioned=False)
    base = pointer_of(table).load()
    for change, message in (
        ({"encryption_keys": (EncryptionKey(key_id="k", encrypted_key_metadata="eA=="),)}, "encryption keys"),
        ({"extra": {"hint": {"path": f"{table.location}/x"}}}, "unknown keys of metadata contain its location"),
    ):
        changed = replace(base, metadata=replace(base.metadata, **change))
        monkeypatch.setattr(pointer_of(table), "load", lambda changed=changed: changed)
        with pytest.raises(UnsupportedError, match=message):
            table.relocate(f"{tmp_path}/b/t")


def test_a_catalog_that_names_locations_refuses_the_switch_but_not_the_copy(tmp_path):
    folders = catalog("folders", uri=f"file://{tmp_path}/wh")
    table = folders.create_table("db.t", schema="id bigint", data=pa.table({"id": [1, 2]}))
    with pytest.raises(UnsupportedError, match="switch=False"):
        table.relocate(f"{tmp_path}/b/t")
    result = table.relocate(f"{tmp_path}/b/t", switch=False).execute()
    assert not result.switched
    assert "register" in repr(result)
    assert table.refresh().location == result.former_location
    shutil.rmtree(path_of(result.former_location))
    copy = new_catalog(tmp_path).register_table("db.copy", result.metadata_location)
    assert (copy.location, copy.scan().count()) == (result.location, 2)
    check_sound(copy)


def test_a_table_can_go_to_other_storage_and_back(tmp_path):
    table = made(tmp_path, 2, "mixed", partitioned=True)
    before, past, home = contents(table), snapshots(table), table.location
    table.relocate("memory://away/t").execute()
    assert (contents(table), snapshots(table)) == (before, past)
    check_sound(table)
    names = set(table.inspect.manifests()["path"].to_pylist())
    shutil.rmtree(path_of(home))
    table.relocate(home).execute()
    assert (table.location, contents(table), snapshots(table)) == (home, before, past)
    check_sound(table)
    # Names do not grow with each relocation.
    assert {len(name) - len("memory://away/t") for name in names} == {
        len(name) - len(home) for name in table.inspect.manifests()["path"].to_pylist()
    }


def test_options_that_do_not_exist_are_refused(tmp_path):
    table = made(tmp_path, 2, "plain", partitioned=False)
    with pytest.raises(InputError, match="snapshots='some'"):
        table.relocate(f"{tmp_path}/b/t", snapshots="some")  # type: ignore[arg-type]
    assert pc.sum(table.relocate(f"{tmp_path}/b/t").copies["bytes"]).as_py() > 0
