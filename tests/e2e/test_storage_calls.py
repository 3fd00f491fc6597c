"""How much storage a commit touches: the promise of V4, counted."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icefloe.io.local import LocalFileIO
from icefloe.table.table import Table
from icefloe.testing.counting_io import CountingFileIO
from support.tables import new_catalog, reopened


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def counted(folder, version: int, **properties: str) -> tuple[Table, CountingFileIO]:
    """A table whose every storage call is on record."""
    catalog = new_catalog(folder)
    table = catalog.create_table("db.t", schema="id bigint", format_version=version, properties=properties)
    io = CountingFileIO(LocalFileIO())
    return reopened(table, io), io


def metadata_files(io: CountingFileIO) -> list[str]:
    """Names of files written under metadata, but for metadata.json itself."""
    written = [call.location.rsplit("/", 1)[-1] for call in io.calls if call.verb == "write_new"]
    return [name for name in written if not name.endswith(".metadata.json")]


def leafy(folder, leaves: int) -> tuple[Table, CountingFileIO]:
    """A V4 table of leaves with two files each, which nobody merges, and room for one more file in its root."""
    table, io = counted(folder, 4, **{"commit.root.max-data-files": "2", "commit.manifest-merge.enabled": "false"})
    for n in range(2 * leaves + 1):
        table.append(rows(10 * n))
    assert table.scan().plan().manifests_read == leaves
    return table, io


@pytest.mark.parametrize("leaves", [1, 10])
def test_a_v4_append_of_one_file_writes_exactly_the_root(tmp_path, leaves):  # V4 statement 9
    table, io = leafy(tmp_path, leaves)
    io.reset()
    result = table.append(rows(7))
    (name,) = metadata_files(io)
    assert name.startswith("root-")
    assert result.metadata_files_written == 1
    assert io.count("write_new") == 2  # the root and metadata.json; the data file goes through Arrow


def test_a_v4_append_into_a_roomy_root_writes_exactly_the_root(tmp_path):
    table, io = counted(tmp_path, 4)
    for n in range(5):
        io.reset()
        result = table.append(rows(n))
        (name,) = metadata_files(io)
        assert name.startswith("root-")
        assert name.endswith(".parquet")
        assert result.metadata_files_written == 1
        assert io.count("delete") == 0


@pytest.mark.parametrize("leaves", [1, 10])
def test_a_v4_removal_from_a_leaf_writes_exactly_the_root(tmp_path, leaves):  # V4 statement 26
    table, io = leafy(tmp_path, leaves)
    plan = table.scan("id = 0").plan()
    assert plan.tasks["manifest"][0].as_py() is not None
    (doomed,) = plan.tasks["location"].to_pylist()
    io.reset()
    table.remove_files([doomed])
    (name,) = metadata_files(io)
    assert name.startswith("root-")
    assert 0 not in table.scan().to_arrow()["id"].to_pylist()


def test_a_v4_delete_of_whole_files_reads_no_data_and_writes_one_metadata_file(tmp_path):
    table, io = leafy(tmp_path, 3)
    io.reset()
    table.delete("id = 10")
    assert len(metadata_files(io)) == 1
    assert io.count("arrow_path") == 0


def test_no_leaf_is_written_or_changed_by_a_removal(tmp_path):  # V4 statement 11
    table, _ = leafy(tmp_path, 3)
    folder = tmp_path / "warehouse/db/t/metadata"
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.glob("*-m*.parquet")}
    table.delete("id = 0 or id = 20")
    after = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.glob("*-m*.parquet")}
    assert before == after
    assert len(before) > 0


def test_a_v2_append_writes_a_manifest_and_a_list(tmp_path):
    table, io = counted(tmp_path, 2)
    table.append(rows(1))
    io.reset()
    table.append(rows(2))
    manifest, manifest_list = sorted(metadata_files(io), key=lambda name: name.startswith("snap-"))
    assert manifest.endswith("-m0.avro")
    assert manifest_list.startswith("snap-")


def test_a_handle_reads_nothing_back_for_its_next_commit(tmp_path):
    table, io = counted(tmp_path, 4)
    table.append(rows(1))
    io.reset()
    table.append(rows(2))
    assert io.count("read", "read_range") == 0
