"""The verbs of a catalog on real tables: dropping with and without files, registering, opening without a catalog."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import icefloe
from icefloe.codecs.json.table_metadata import inflated_metadata
from icefloe.errors import (
    AlreadyExists,
    CorruptFile,
    FormatError,
    InputError,
    NoSuchFile,
    NoSuchTable,
    UnsupportedError,
)
from icefloe.limits import DEFAULT
from icefloe.table.catalog import Catalog
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from support.shared_files import shared
from support.tables import VERSIONS, new_catalog, pointers_of

pytestmark = pytest.mark.slow

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


@pytest.fixture(params=["sqlite", "files"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    warehouse = f"file://{tmp_path}/warehouse"
    if request.param == "files":
        return icefloe.catalog("lake", type="files", warehouse=warehouse)
    return icefloe.catalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=warehouse)


def changed(catalog: Catalog, name: str = "db.t", version: int = 2, **properties: str) -> Table:
    """A table with a history: files that came, left and were partly deleted."""
    table = catalog.create_table(name, schema="id bigint", format_version=version, properties=properties)
    for start in (0, 10, 20):
        table.append(pa.table({"id": pa.array([start + 1, start + 2], pa.int64())}))
    table.delete("id = 11")
    table.delete("id in (21, 22)")
    return table


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_purged_table_leaves_no_file(catalog: Catalog, tmp_path: Path, version: int) -> None:
    table = changed(catalog, version=version)
    folder = Path(table.location.removeprefix("file://"))
    data = len(list(folder.glob("data/*.parquet")))
    metadata = len(list(folder.glob("metadata/*.metadata.json")))
    result = catalog.drop_table("db.t", purge=True)
    assert not catalog.table_exists("db.t")
    assert files(folder) == []
    assert (result.purged, result.data_files, result.left, result.failed) == (True, data, (), ())
    assert result.metadata_files in (metadata, metadata + 1)  # one more where the catalog keeps the last one aside
    assert result.manifests >= 5


def test_a_dropped_table_keeps_its_files_and_can_come_back(catalog: Catalog) -> None:
    table = changed(catalog)
    before = ids(table)
    dropped = catalog.drop_table("db.t")
    assert not dropped.purged
    assert not catalog.table_exists("db.t")
    assert dropped.metadata_location is not None
    back = catalog.register_table("db.t", dropped.metadata_location)
    assert ids(back) == before
    back.append(ROWS)
    assert len(ids(catalog.load_table("db.t"))) == len(before) + 3


def test_purging_spares_files_outside_the_location(catalog: Catalog, tmp_path: Path) -> None:
    table = changed(catalog)
    path = Path(table.metadata_location.removeprefix("file://"))
    outside = tmp_path / "stats.puffin"
    outside.write_bytes(b"kept")
    document = json.loads(path.read_bytes())
    document["statistics"] = [
        {
            "snapshot-id": table.metadata.current_snapshot_id,
            "statistics-path": f"file://{outside}",
            "file-size-in-bytes": 4,
            "file-footer-size-in-bytes": 1,
            "blob-metadata": [],
        }
    ]
    path.write_text(json.dumps(document))
    result = catalog.drop_table("db.t", purge=True)
    assert result.left == (f"file://{outside}",)
    assert outside.read_bytes() == b"kept"


def test_a_table_with_two_names_is_not_purged(tmp_path: Path) -> None:
    """The other name was left without its files, in the same catalog or in another one of the same database."""
    place = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    here, there = icefloe.catalog("here", **place), icefloe.catalog("there", **place)
    before = ids(table := changed(here))
    here.register_table("db.copy", table.metadata_location).append(ROWS)
    there.register_table("db.t", table.metadata_location.removeprefix("file://"))
    with pytest.raises(InputError, match=r"also known as db\.copy, db\.t of catalog there,.* without purge"):
        here.drop_table("db.t", purge=True)
    assert here.drop_table("db.copy").purged is False
    with pytest.raises(InputError, match=r"also known as db\.t of catalog there"):
        here.drop_table("db.t", purge=True)
    there.drop_table("db.t")
    assert ids(here.load_table("db.t")) == before
    assert here.drop_table("db.t", purge=True).purged


def test_a_name_that_a_table_gets_while_it_is_purged_spares_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was registered after the look for other names and before the drop, and lost its files."""
    catalog = icefloe.catalog(str(tmp_path), uri="memory://")
    before = ids(table := changed(catalog))
    pointers = pointer_of(table).catalog
    drop = pointers.drop

    def register_and_drop(identifier: tuple[str, ...]) -> str | None:
        pointers.register("db.copy", table.metadata_location)
        return drop(identifier)

    monkeypatch.setattr(pointers, "drop", register_and_drop)
    assert catalog.drop_table("db.t", purge=True).purged is False
    assert ids(catalog.load_table("db.copy")) == before


def test_a_neighbour_in_the_same_folder_stops_no_purge(tmp_path: Path) -> None:
    """Another table that was put there names other files, and one whose metadata is gone names none."""
    place = f"{tmp_path}/warehouse/both"
    catalog = icefloe.catalog("lake", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/warehouse")
    first, second, third = (catalog.create_table(f"db.{n}", schema="id bigint", location=place) for n in "abc")
    first.append(ROWS)
    second.append(ROWS)
    Path(third.metadata_location.removeprefix("file://")).unlink()
    assert catalog.drop_table("db.a", purge=True).data_files == 1
    assert ids(second) == [1, 2, 3]


def test_purging_deletes_no_stranger(catalog: Catalog) -> None:
    table = changed(catalog)
    folder = Path(table.location.removeprefix("file://"))
    (folder / "data" / "notes.txt").write_text("mine")
    (folder / "data" / "other.parquet").write_text("another table's")
    catalog.drop_table("db.t", purge=True)
    left = [path.name for path in files(folder)]
    assert left == ["notes.txt", "other.parquet"]


def test_a_table_without_garbage_collection_is_not_purged(catalog: Catalog) -> None:
    table = changed(catalog, **{"gc.enabled": "FALSE"})
    before = ids(table)
    with pytest.raises(InputError, match=r"gc\.enabled=false"):
        catalog.drop_table("db.t", purge=True)
    assert ids(catalog.load_table("db.t")) == before
    assert catalog.drop_table("db.t").purged is False


def test_a_table_that_cannot_be_read_is_not_purged(catalog: Catalog) -> None:
    table = changed(catalog)
    root = table.snapshots[0].root_location
    Path(root.removeprefix("file://")).unlink()
    with pytest.raises(NoSuchFile):
        catalog.drop_table("db.t", purge=True)
    assert catalog.table_exists("db.t")


def test_a_file_that_cannot_be_deleted_is_named(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    table = changed(catalog)
    stuck = table.snapshots[-1].root_location
    folder = Path(table.location.removeprefix("file://"))
    real = pointer_of(table).io.delete

    def delete(locations: list[str]) -> None:
        real([location for location in locations if location != stuck])
        if stuck in locations:
            raise icefloe.errors.StorageError("busy", locations=(stuck,))

    monkeypatch.setattr(pointer_of(table).io, "delete", delete)
    result = catalog.drop_table("db.t", purge=True)
    assert result.failed == (stuck,)
    assert [path.name for path in files(folder)] == [stuck.rsplit("/", 1)[-1]]


def test_a_table_is_renamed_where_the_catalog_can(catalog: Catalog) -> None:
    before = ids(changed(catalog))
    if pointers_of(catalog).names_locations:
        with pytest.raises(UnsupportedError, match="rename"):
            catalog.rename_table("db.t", "db.u")
        assert ids(catalog.load_table("db.t")) == before
        return
    assert ids(catalog.rename_table("db.t", "db.u")) == before
    assert (catalog.table_exists("db.t"), catalog.table_exists("db.u")) == (False, True)


def test_only_a_metadata_file_is_registered(catalog: Catalog, tmp_path: Path) -> None:
    (tmp_path / "x.metadata.json").write_text("[]")
    with pytest.raises(FormatError):
        catalog.register_table("db.t", f"file://{tmp_path}/x.metadata.json")
    with pytest.raises(NoSuchFile):
        catalog.register_table("db.t", f"file://{tmp_path}/y.metadata.json")
    changed(catalog)
    with pytest.raises(AlreadyExists):
        catalog.register_table("db.t", catalog.load_table("db.t").metadata_location)


def test_a_namespace_is_never_hidden_by_a_table_of_its_name(catalog: Catalog) -> None:
    """In a catalog of folders the table was made, and then nobody could list the namespace or make a table in it."""
    before = ids(changed(catalog, "db.ns.t"))
    if pointers_of(catalog).names_locations:
        with pytest.raises(AlreadyExists, match=r"namespace db\.ns"):
            catalog.create_table("db.ns", schema="id bigint")
        assert not catalog.table_exists("db.ns")
    else:
        catalog.create_table("db.ns", schema="id bigint")
    assert (catalog.list_namespaces("db"), catalog.list_tables("db.ns")) == (["db.ns"], ["db.ns.t"])
    assert ids(catalog.load_table("db.ns.t")) == before
    catalog.create_table("db.ns.u", schema="id bigint")


def test_tables_are_opened_by_the_names_that_are_listed(catalog: Catalog) -> None:
    """A table whose own name holds a dot was listed like one of a namespace below, which was not there."""
    names = [("db", "t"), ("db", "t.v1"), ("db", "a`b"), ("db", "`q`"), ("db", "...")]
    for name in names:
        catalog.create_table(name, schema="id bigint", properties={"called": name[-1]})
    listed = catalog.list_tables("db")
    assert "db.t" in listed
    assert sorted(catalog.load_table(name).properties["called"] for name in listed) == sorted(n[-1] for n in names)
    for name in listed:
        catalog.drop_table(name)
    assert catalog.list_tables("db") == []


def test_a_name_that_no_folder_can_have_is_refused_before_anything_is_written(catalog: Catalog, tmp_path: Path) -> None:
    """Such tables were made, and then refused every append, which left its data file behind."""
    metadata = changed(catalog).metadata_location
    known = files(tmp_path / "warehouse")
    for name in (("db", ".."), ("db", "."), "db.`..`", ("db", "half \ud800"), "db.\udfff", "\udfff.t"):
        with pytest.raises(InputError, match=r"cannot be called|surrogate"):
            catalog.create_table(name, schema="id bigint")
        with pytest.raises(InputError, match=r"cannot be called|surrogate"):
            catalog.register_table(name, metadata)
    assert files(tmp_path / "warehouse") == known


def test_properties_to_remove_are_given_as_a_list(catalog: Catalog) -> None:
    """A text was taken letter by letter, so nothing was removed and nobody was told."""
    table = changed(catalog, owner="ann")
    with pytest.raises(InputError, match=r"\['owner'\]"):
        table.set_properties({}, remove="owner")
    with pytest.raises(InputError, match=r"\['owner'\]"), table.transaction() as tx:
        tx.set_properties({}, remove="owner")
    assert table.properties["owner"] == "ann"
    table.set_properties({}, remove=iter(["owner"]))
    assert "owner" not in table.properties


def test_namespaces_are_made_listed_and_dropped(catalog: Catalog) -> None:
    catalog.create_namespace("a.b")
    assert (catalog.list_namespaces(), catalog.list_namespaces("a")) == (["a"], ["a.b"])
    if not pointers_of(catalog).names_locations:
        catalog.set_namespace_properties("a.b", {"owner": "ann"})
        assert catalog.namespace_properties("a.b") == {"owner": "ann"}
    catalog.drop_namespace("a.b")
    assert not catalog.namespace_exists("a.b")


def test_a_catalog_of_folders_chooses_the_place(tmp_path: Path) -> None:
    catalog = icefloe.catalog("lake", uri=f"file://{tmp_path}")
    with pytest.raises(InputError, match="can only be at"):
        catalog.create_table("db.t", schema="id bigint", location=f"file://{tmp_path}/elsewhere")
    table = catalog.create_table("db.t", schema="id bigint", location=f"{tmp_path}/db/t/")
    assert table.location == f"file://{tmp_path}/db/t"


def test_a_purged_folder_can_be_used_again(tmp_path: Path) -> None:
    catalog = icefloe.catalog("lake", uri=f"file://{tmp_path}")
    changed(catalog)
    catalog.drop_table("db.t", purge=True)
    assert catalog.list_tables("db") == []
    assert ids(changed(catalog)) != []
    catalog.drop_table("db.t", purge=True)
    catalog.drop_namespace("db")
    assert not (tmp_path / "db").exists()


@pytest.mark.parametrize("spelled", [str, lambda path: f"file://{path}/", lambda path: f"file:{path}"])
def test_a_folder_is_opened_and_changed(tmp_path: Path, spelled: Callable[[Path], str]) -> None:
    catalog = icefloe.catalog("lake", uri=f"file://{tmp_path}")
    changed(catalog)
    table = icefloe.open_table(spelled(tmp_path / "db" / "t"))
    assert table.name == "t"
    table.append(ROWS)
    assert table.metadata_location.endswith("/v7.metadata.json")
    assert ids(table) == ids(catalog.load_table("db.t"))


def test_a_metadata_file_is_opened_for_reading_only(catalog: Catalog) -> None:
    table = changed(catalog)
    before = ids(table)
    pinned = icefloe.open_table(table.metadata_location)
    table.append(ROWS)
    assert (pinned.name, ids(pinned)) == ("t", before)
    folder = Path(table.location.removeprefix("file://"))
    known = files(folder)
    with pytest.raises(UnsupportedError, match="can only be read"):
        pinned.append(ROWS)
    assert files(folder) == known


def test_a_folder_without_a_table_is_told(tmp_path: Path) -> None:
    with pytest.raises(NoSuchTable, match="no table with versioned metadata"):
        icefloe.open_table(str(tmp_path))
    with pytest.raises(NoSuchFile):
        icefloe.open_table(f"{tmp_path}/v1.metadata.json")


def test_a_version_that_does_not_parse_is_corrupt_and_named(tmp_path: Path) -> None:
    catalog = icefloe.catalog("lake", uri=f"file://{tmp_path}")
    changed(catalog)
    broken = tmp_path / "db" / "t" / "metadata" / "v7.metadata.json"
    for content in (b"", b"{", gzip.compress(b"{}")[:-3]):
        broken.write_bytes(content)
        with pytest.raises(FormatError, match=r"v7\.metadata\.json"):
            catalog.load_table("db.t")
        with pytest.raises((CorruptFile, FormatError), match=r"v7\.metadata\.json"):
            icefloe.open_table(str(tmp_path / "db" / "t"))


@pytest.mark.parametrize("name", ["partition_bigint", "hive_partitioned_table", "iceberg/lineitem_iceberg"])
def test_folders_that_others_wrote_are_opened(tmp_path: Path, name: str) -> None:
    source = shared(f"golden/tables/{name}")
    folder = Path(shutil.copytree(source, tmp_path / "wh" / "db" / "t"))
    hint = (folder / "metadata" / "version-hint.text").read_text().strip()
    assert icefloe.open_table(str(folder)).metadata_location.endswith(f"/v{hint}.metadata.json")
    catalog = icefloe.catalog("lake", type="hadoop", warehouse=str(tmp_path / "wh"))
    assert catalog.list_tables("db") == ["db.t"]
    assert catalog.load_table("db.t").snapshots != ()


@pytest.mark.broken_tables
@pytest.mark.parametrize("version", [1, 2, 3, 4])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"current-schema-id": 99}, "current-schema-id"),
        ({"default-sort-order-id": 99}, "default-sort-order-id"),
        ({"table-uuid": 5}, "table-uuid"),
        ({"last-updated-ms": None}, "last-updated-ms"),
    ],
)
def test_what_is_wrong_with_metadata_is_said_by_whoever_opens_it(
    tmp_path: Path, version: int, change: dict[str, object], said: str
) -> None:
    """Of versions 1 to 3 the message was that the table is at its location, and not at its location."""
    made = new_catalog(tmp_path).create_table("db.t", schema="id bigint", format_version=version)
    file = Path(made.metadata_location.removeprefix("file://"))
    document = {**json.loads(inflated_metadata(file.read_bytes(), DEFAULT)), **change}
    file.write_text(json.dumps({key: value for key, value in document.items() if value is not None}))
    with pytest.raises(FormatError, match=said) as opened:
        icefloe.open_table(str(file))
    with pytest.raises(FormatError, match=said):
        new_catalog(tmp_path).register_table("db.u", made.metadata_location)
    assert "not at" not in str(opened.value)
