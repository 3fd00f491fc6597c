"""Where a V4 table is: locations below it are relative, so its folder can be moved and copied (statement 70)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefloe
from icefloe.codecs.puffin.puffin_file import decode_puffin_footer, deletion_vector_blob, encode_puffin
from icefloe.commit.loop import commit
from icefloe.commit.operations.append import Append
from icefloe.commit.operations.snapshot_updates import SetStatistics
from icefloe.errors import FormatError, UnsupportedError
from icefloe.model.entries import put
from icefloe.model.metadata.statistics_files import PartitionStatisticsFile, StatisticsFile
from icefloe.table.catalog import Catalog
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.testing.check import check_table
from support.engine_work import write_entries
from support.metadata_documents import metadata_json
from support.statistics_files import read_blob
from support.tables import new_catalog, sorted_rows

ROWS = pa.table({"id": pa.array(range(6), pa.int64()), "city": ["Oslo", "Oslo", "Rome", "Rome", None, None]})
SETTINGS = {"commit.root.max-data-files": "0", "commit.root.max-dvs": "0", "write.manifest-dv.inline-max-bytes": "0"}


def changed(catalog: Catalog, version: int = 4) -> Table:
    """A table with leaves, deletion vectors, manifest deletion vectors in Puffin files, and files in its root."""
    table = catalog.create_table(
        "db.t", schema="id bigint, city string", partition_by=["city"], format_version=version, properties=SETTINGS
    )
    table.append(ROWS)
    table.delete("id in (0, 2)")
    table.delete("id = 4")
    table.remove_files([file for file in files(table) if "city=Rome" in file])
    table.set_properties({"commit.root.max-data-files": "1000", "commit.root.max-dvs": "1000"})
    table.append(pa.table({"id": [7, 8], "city": ["Rome", "Rome"]}))
    table.delete("id = 8")
    base = f"{table.location}/metadata"
    head = table.metadata.current_snapshot_id
    stats = StatisticsFile(
        snapshot_id=head, statistics_path=f"{base}/s.puffin", file_size_in_bytes=9, file_footer_size_in_bytes=5
    )
    parts = PartitionStatisticsFile(snapshot_id=head, statistics_path=f"{base}/p.parquet", file_size_in_bytes=9)
    commit(pointer_of(table), SetStatistics(files_of_snapshots=(stats, parts)))
    return table


def files(table: Table) -> list[str]:
    return sorted(table.scan().plan().tasks["location"].to_pylist())


def rows(table: Table) -> list[tuple[object, ...]]:
    return sorted_rows(table.scan().to_arrow())


EXPECTED = [(1, "Oslo"), (5, None), (7, "Rome")]


def folder_of(table: Table) -> Path:
    return Path(table.location.removeprefix("file://"))


def metadata_of(table: Table) -> Path:
    return Path(table.metadata_location.removeprefix("file://"))


def texts(value: object) -> list[str]:
    """All texts anywhere in a JSON value or a row."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for each in value.values() for text in texts(each)]
    return [text for each in value for text in texts(each)] if isinstance(value, list) else []


def test_70_no_metadata_of_the_table_says_where_the_table_is(tmp_path):
    """Not its metadata files, no root, no leaf, and no vector of a leaf; footers of vectors of data files do."""
    table = changed(new_catalog(tmp_path))
    folder = folder_of(table)
    newest = metadata_json(metadata_of(table))
    assert "location" not in newest
    names = {file.name for file in (folder / "metadata").iterdir()}
    stored = [snapshot["root-manifest"] for snapshot in newest["snapshots"]]
    stored += [entry["metadata-file"] for entry in newest["metadata-log"]]
    assert all(place.startswith("metadata/") and place[9:] in names for place in stored)
    assert newest["statistics"][0]["statistics-path"] == "metadata/s.puffin"
    assert newest["partition-statistics"][0]["statistics-path"] == "metadata/p.parquet"
    kinds = set()
    for file in [f for f in folder.rglob("*") if f.is_file()]:
        kinds.add((file.parent.name if file.parent.name == "metadata" else "data", file.suffix))
        if file.suffix == ".json":
            assert not any(str(tmp_path) in text for text in texts(metadata_json(file)))
        elif file.parent.name == "metadata" and file.suffix == ".parquet":
            assert not any(str(tmp_path) in text for text in texts(pq.read_table(file).to_pylist()))
        elif file.suffix == ".puffin" and file.parent.name == "metadata":
            assert all((folder / place).exists() and place.startswith("metadata/") for place in named_in(file))
        elif file.suffix == ".puffin":
            assert all(place.startswith(f"file://{folder}/data/") for place in named_in(file))
    assert kinds >= {("metadata", ".puffin"), ("data", ".puffin")}


def named_in(puffin: Path) -> list[str]:
    """The files that the footer of a Puffin file names."""
    blobs = decode_puffin_footer(puffin.read_bytes(), where=puffin.name).blobs
    assert len(blobs) > 0
    return [blob.properties["referenced-data-file"] for blob in blobs]


def with_vectors(catalog: Catalog, version: int) -> Table:
    """A table of two data files, both with rows deleted by vectors in one Puffin file."""
    table = catalog.create_table("db.v", schema="id bigint, city string", partition_by=["city"], format_version=version)
    table.append(ROWS.slice(0, 4))
    table.delete("id in (0, 2)")
    return table


def puffins(table: Table) -> list[Path]:
    return sorted((folder_of(table) / "data").rglob("*.puffin"), key=lambda file: file.stat().st_mtime_ns)


@pytest.mark.parametrize("version", [3, 4])
def test_70_footers_name_data_files_by_absolute_locations(tmp_path, version):
    """pyiceberg matches vectors with data files by these names, and the paths of data files it knows are absolute."""
    table = with_vectors(new_catalog(tmp_path), version)
    (puffin,) = puffins(table)
    assert sorted(named_in(puffin)) == files(table)
    assert check_table(table) == []


@pytest.mark.parametrize("keep", [True, False], ids=["copied", "moved"])
def test_70_vectors_apply_in_a_moved_table_whose_footers_name_its_former_place(tmp_path, keep):
    """The entry of a vector says which data file it belongs to; the footer is for other programs."""
    table = with_vectors(new_catalog(tmp_path), 4)
    name, former, place = metadata_of(table).name, table.location, tmp_path / "elsewhere" / "t"
    (shutil.copytree if keep else shutil.move)(folder_of(table), place)
    copy = new_catalog(tmp_path).register_table("db.copy", f"file://{place}/metadata/{name}")
    assert rows(copy) == [(1, "Oslo"), (3, "Rome")]
    assert check_table(copy) == []
    copy.append(ROWS.slice(4))
    copy.delete("id in (3, 5)")
    assert rows(copy) == [(1, "Oslo"), (4, None)]
    assert check_table(copy) == []
    old, new = puffins(copy)
    assert all(file.startswith(former) for file in named_in(old))
    assert all(file.startswith(f"file://{place}/") for file in named_in(new))


@pytest.mark.broken_tables
@pytest.mark.parametrize("name", ["data/relative.parquet", "s3://elsewhere/a.parquet", ""])
def test_70_a_vector_applies_whatever_its_footer_names(tmp_path, name):
    """Tables from before had relative names there."""
    table = with_vectors(new_catalog(tmp_path), 4)
    (puffin,) = puffins(table)
    data = puffin.read_bytes()
    blobs = [
        deletion_vector_blob(read_blob(data, blob), referenced_file=name, cardinality=1)
        for blob in decode_puffin_footer(data, where="v").blobs
    ]
    puffin.write_bytes(encode_puffin(blobs, None)[0])
    assert rows(new_catalog(tmp_path).load_table("db.v")) == [(1, "Oslo"), (3, "Rome")]


@pytest.mark.slow
@pytest.mark.parametrize("keep", [True, False], ids=["copied", "moved"])
def test_70_a_copied_table_reads_at_its_new_place(tmp_path, keep):
    table = changed(new_catalog(tmp_path))
    name, history = metadata_of(table).name, [snapshot.snapshot_id for snapshot in table.snapshots]
    then = [sorted_rows(table.at(snapshot=number).scan().to_arrow()) for number in history]
    place = tmp_path / "elsewhere" / "new name"
    (shutil.copytree if keep else shutil.move)(folder_of(table), place)
    copy = icefloe.open_table(str(place / "metadata" / name))
    assert (copy.location, rows(copy)) == (f"file://{place}", EXPECTED)
    assert [sorted_rows(copy.at(snapshot=number).scan().to_arrow()) for number in history] == then
    assert all(file.startswith(f"file://{place}/") for file in files(copy))
    log = copy.metadata.metadata_log
    assert all(Path(entry.metadata_file.removeprefix(f"file://{place}/")).name in _names(place) for entry in log)
    assert copy.metadata.statistics[0].statistics_path == f"file://{place}/metadata/s.puffin"
    assert copy.metadata.partition_statistics[0].statistics_path == f"file://{place}/metadata/p.parquet"


def _names(place: Path) -> set[str]:
    return {file.name for file in (place / "metadata").iterdir()}


def test_70_a_registered_copy_and_its_original_change_apart_from_each_other(tmp_path):
    catalog = new_catalog(tmp_path)
    table = changed(catalog)
    place = tmp_path / "copy"
    shutil.copytree(folder_of(table), place)
    copy = catalog.register_table("db.copy", f"file://{place}/metadata/{metadata_of(table).name}")
    copy.delete("id = 1")  # a deletion vector of a file in a leaf whose own vector is in a Puffin file
    copy.append(pa.table({"id": [9], "city": ["Oslo"]}))
    table.append(pa.table({"id": [10], "city": ["Oslo"]}))
    shutil.rmtree(folder_of(table) / "data")
    assert rows(catalog.load_table("db.copy")) == [(5, None), (7, "Rome"), (9, "Oslo")]
    assert "location" not in metadata_json(metadata_of(copy))


def test_70_a_folder_of_a_catalog_of_folders_may_be_copied_and_renamed(tmp_path):
    catalog = icefloe.catalog("lake", uri=f"file://{tmp_path}/wh")
    table = changed(catalog)
    folder = folder_of(table)
    shutil.copytree(folder, tmp_path / "copy")
    folder.rename(folder.parent / "renamed")
    copy = icefloe.open_table(str(tmp_path / "copy"))
    copy.append(pa.table({"id": [9], "city": ["Oslo"]}))
    assert (catalog.table_exists("db.t"), catalog.list_tables("db")) == (False, ["db.renamed"])
    renamed = catalog.load_table("db.renamed")
    assert rows(renamed) == EXPECTED
    renamed.delete("id = 5")
    assert rows(renamed) == [(1, "Oslo"), (7, "Rome")]
    assert rows(icefloe.open_table(str(tmp_path / "copy"))) == [(1, "Oslo"), (5, None), (7, "Rome"), (9, "Oslo")]
    catalog.drop_table("db.renamed", purge=True)
    assert (tmp_path / "copy" / "data").exists()


def stating(table: Table, location: str | None = None) -> Path:
    """The newest metadata file, which now states a location, as other programs write it."""
    path = metadata_of(table)
    document = metadata_json(path)
    path.write_text(json.dumps({**document, "location": table.location if location is None else location}))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("keep", [True, False], ids=["copied", "moved"])
def test_70_a_copy_is_read_where_it_is_though_it_states_another_place(tmp_path, keep):
    catalog = new_catalog(tmp_path)
    table = changed(catalog)
    path = stating(table)
    place = tmp_path / "copy"
    (shutil.copytree if keep else shutil.move)(folder_of(table), place)
    moved = place / "metadata" / path.name
    copy = icefloe.open_table(str(moved))
    assert (copy.location, rows(copy)) == (f"file://{place}", EXPECTED)
    assert all(file.startswith(f"file://{place}/") for file in files(copy))
    registered = catalog.register_table("db.copy", f"file://{moved}")
    assert metadata_of(registered) != moved
    assert "location" not in metadata_json(metadata_of(registered))
    assert registered.metadata.metadata_log[-1].metadata_file == f"file://{moved}"
    registered.append(pa.table({"id": [9], "city": ["Oslo"]}))
    assert rows(new_catalog(tmp_path).load_table("db.copy")) == sorted([*EXPECTED, (9, "Oslo")], key=repr)


def test_70_a_place_that_is_stated_and_true_goes_on_being_stated(tmp_path):
    catalog = new_catalog(tmp_path)
    stating(changed(catalog))
    table = new_catalog(tmp_path).load_table("db.t")
    table.append(pa.table({"id": [9], "city": ["Oslo"]}))
    assert metadata_json(metadata_of(table))["location"] == table.location
    link = tmp_path / "link"
    link.symlink_to(folder_of(table))
    assert rows(icefloe.open_table(str(link / "metadata" / metadata_of(table).name))) == rows(table)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_70_a_copy_of_an_older_version_is_refused_and_not_read_from_the_original(tmp_path, version):
    catalog = new_catalog(tmp_path)
    table = catalog.create_table("db.t", schema="id bigint, city string", format_version=version)
    table.append(ROWS)
    place = tmp_path / "copy"
    shutil.copytree(folder_of(table), place)
    copied = str(place / "metadata" / metadata_of(table).name)
    with pytest.raises(UnsupportedError, match="absolute locations") as refused:
        icefloe.open_table(copied)
    assert table.location in str(refused.value)
    assert str(place) in str(refused.value)
    with pytest.raises(UnsupportedError, match="absolute locations"):
        catalog.register_table("db.copy", f"file://{copied}")
    assert not catalog.table_exists("db.copy")
    assert icefloe.open_table(copied, table_location=table.location).scan().count() == 6  # told to read the original
    assert (
        catalog.register_table("db.copy", f"file://{copied}", table_location=table.location).location == table.location
    )


@pytest.mark.parametrize("version", [1, 2, 3])
def test_70_an_upgraded_table_can_be_copied_once_nothing_names_files_by_absolute_locations(tmp_path, version):
    catalog = new_catalog(tmp_path)
    table = catalog.create_table("db.t", schema="id bigint, city string", format_version=version)
    table.append(ROWS)
    table.upgrade(4)
    table.append(ROWS)
    assert metadata_json(metadata_of(table))["location"] == table.location

    def copied(name: str) -> Table:
        shutil.copytree(folder_of(table), tmp_path / name)
        return icefloe.open_table(str(tmp_path / name / "metadata" / metadata_of(table).name))

    with pytest.raises(UnsupportedError, match="still names"):
        copied("one")
    table.rewrite_manifests().execute()
    with pytest.raises(UnsupportedError, match="still names"):
        copied("two")  # its older snapshots do
    head = table.metadata.current_snapshot_id
    others = [snapshot.snapshot_id for snapshot in table.snapshots if snapshot.snapshot_id != head]
    table.expire(snapshots=others, clean=False).execute()
    copy = copied("three")
    shutil.rmtree(folder_of(table))
    assert copy.scan().count() == 12


def test_70_a_file_outside_of_the_table_stays_where_it_is(tmp_path):
    """Its location is absolute, in the original and in the copy."""
    table = changed(new_catalog(tmp_path))
    base = pointer_of(table).load()
    entry = write_entries(base.store.io, pa.table({"id": [9], "city": ["Oslo"]}), base.metadata)
    outside = tmp_path / "outside.parquet"
    shutil.move(entry["location"][0].as_py().removeprefix("file://"), outside)
    commit(pointer_of(table), Append(added=put(entry, "location", f"file://{outside}")))
    place = tmp_path / "copy"
    shutil.copytree(folder_of(table), place)
    copy = icefloe.open_table(str(place / "metadata" / metadata_of(table).name))
    assert rows(copy) == sorted([*EXPECTED, (9, "Oslo")], key=repr)
    assert f"file://{outside}" in files(copy)


def test_70_metadata_that_lies_anywhere_must_state_where_the_table_is(tmp_path):
    table = changed(new_catalog(tmp_path))
    lonely = tmp_path / "00009-x.metadata.json"
    shutil.copy(metadata_of(table), lonely)
    with pytest.raises(FormatError, match="location"):
        icefloe.open_table(str(lonely))
    assert rows(icefloe.open_table(str(lonely), table_location=str(folder_of(table)))) == EXPECTED
