"""The property ``allowed-roots`` of ``open_table``: files elsewhere are neither read nor written, nor quoted."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefloe
from icefloe.errors import FormatError, IcefloeError, InputError
from icefloe.table.table import Table

SECRET = b"root:$6$salt$hash:19000:0:99999:7:::\n" * 200


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A table in a folder that also has a file elsewhere."""
    lake = icefloe.catalog("lake", uri=f"file://{tmp_path}/wh")
    table = lake.create_table("db.t", schema="id bigint")
    table.append(pa.table({"id": [1]}))
    (tmp_path / "other").mkdir()
    pq.write_table(pa.table({"id": [2]}), tmp_path / "other/a.parquet")
    table.add_files([f"{tmp_path}/other/a.parquet"])
    return tmp_path / "wh/db/t"


def opened(folder: Path, roots: str | None, place: str = "") -> Table:
    properties = None if roots is None else {"allowed-roots": roots}
    return icefloe.open_table(f"{folder}{place}", properties=properties)


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("by_file", [True, False])
def test_files_are_read_only_in_the_table_and_below_the_roots(folder: Path, by_file: bool) -> None:
    """The property was ignored."""
    place = "/metadata/v3.metadata.json" if by_file else ""
    other = f"{folder.parents[2]}/other"
    assert ids(opened(folder, None, place)) == [1, 2]
    assert ids(opened(folder, other, place)) == [1, 2]
    for roots in ("", f"{other}/more", f"{folder.parents[2]}/oth"):
        with pytest.raises(InputError, match=r"refused to read .*other/a\.parquet"):
            ids(opened(folder, roots, place))


def test_a_data_path_outside_of_the_roots_is_not_written(folder: Path) -> None:
    path = folder.parents[2] / "data"
    opened(folder, None).set_properties({"write.data.path": f"file://{path}"})
    with pytest.raises(InputError, match="refused to"):
        opened(folder, "").append(pa.table({"id": [3]}))
    assert not path.exists()
    opened(folder, str(path)).append(pa.table({"id": [3]}))
    assert len(list(path.iterdir())) == 1


@pytest.mark.parametrize("by_file", [True, False])
def test_metadata_behind_a_link_that_leads_out_is_not_read(folder: Path, by_file: bool) -> None:
    metadata = folder / "metadata/v3.metadata.json"
    away = folder.parents[2] / "other/v3.metadata.json"
    metadata.rename(away)
    metadata.symlink_to(away)
    place = "/metadata/v3.metadata.json" if by_file else ""
    assert ids(opened(folder, None, place)) == [1, 2]
    with pytest.raises(InputError, match="refused to read"):
        opened(folder, "", place)


def test_a_location_that_only_the_metadata_states_must_be_below_a_root(folder: Path) -> None:
    alone = folder.parents[2] / "alone.metadata.json"
    alone.write_bytes((folder / "metadata/v3.metadata.json").read_bytes())
    assert ids(opened(alone, None)) == [1, 2]
    assert ids(opened(alone, str(folder.parents[2]))) == [1, 2]
    with pytest.raises(InputError, match="below none of the allowed roots"):
        opened(alone, "")


@pytest.mark.broken_tables
@pytest.mark.parametrize("version", [2, 4])
@pytest.mark.parametrize("kind", ["metadata", "root", "data"])
def test_errors_do_not_quote_a_file_that_is_something_else(tmp_path: Path, version: int, kind: str) -> None:
    lake = icefloe.catalog("lake", uri=f"file://{tmp_path}/wh")
    table = lake.create_table("db.t", schema="id bigint", format_version=version)
    table.append(pa.table({"id": [1]}))
    snapshot = table.metadata.current_snapshot
    assert snapshot is not None
    (data,) = table.scan().plan().tasks["location"].to_pylist()
    location = {"metadata": table.metadata_location, "root": snapshot.root, "data": data}[kind]
    Path(str(location).removeprefix("file://")).write_bytes(SECRET)
    with pytest.raises(IcefloeError) as caught:
        ids(opened(tmp_path / "wh/db/t", None))
    assert isinstance(caught.value, FormatError)
    for text in ("$6$", "salt", SECRET[:4].hex()):
        assert text not in str(caught.value).replace(str(location), "")
