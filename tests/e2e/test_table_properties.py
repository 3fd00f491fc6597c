"""Table properties as Spark and other programs set them: the format version, and words in any case."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import icefloe
from icefloe.errors import ConflictError, InputError, UnsupportedError
from icefloe.table.table import Table
from support.tables import VERSIONS, new_catalog

VERSION = "format-version"
TOLD = (
    "uuid",
    "snapshot-count",
    "current-snapshot-summary",
    "current-snapshot-id",
    "current-snapshot-timestamp-ms",
    "current-schema",
    "default-partition-spec",
    "default-sort-order",
)


def new_table(folder: Path, version: int = 2, **properties: str) -> Table:
    return new_catalog(folder).create_table("db.t", "id bigint", format_version=version, properties=properties)


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("target", VERSIONS)
def test_to_set_the_format_version_is_to_upgrade(tmp_path, version, target):
    """ALTER TABLE ... SET TBLPROPERTIES is how Spark upgrades; here it was stored as a word, and nothing happened."""
    table = new_table(tmp_path, version)
    table.append(rows(1))
    if target < version:
        with pytest.raises(InputError, match=f"has format version {version} and cannot go back to {target}"):
            table.set_properties({VERSION: str(target), "owner": "me"})
        assert (table.format_version, dict(table.properties)) == (version, {})
        return
    table.set_properties({VERSION: str(target), "owner": "me"})
    table.append(rows(2))
    seen = new_catalog(tmp_path).load_table("db.t")
    assert (seen.format_version, dict(seen.properties)) == (target, {"owner": "me"})
    assert ids(seen) == [1, 2]


def test_a_format_version_that_is_none_is_refused(tmp_path):
    table = new_table(tmp_path)
    with pytest.raises(InputError, match=r"format-version: expected .*, got 'three'"):
        table.set_properties({VERSION: "three"})
    with pytest.raises(UnsupportedError, match="5 is not one of"):
        table.set_properties({VERSION: "5"})
    with pytest.raises(InputError, match="both set and removed"):
        table.set_properties({VERSION: "3"}, remove=[VERSION])
    assert (table.format_version, dict(table.properties)) == (2, {})


def test_to_remove_the_format_version_changes_nothing(tmp_path):
    table = new_table(tmp_path)
    assert table.set_properties({}, remove=[VERSION]).attempts == 0
    assert table.set_properties({VERSION: "2"}).attempts == 0
    assert table.format_version == 2


def test_a_format_version_that_some_program_stored_goes_with_the_upgrade(tmp_path):
    table = new_table(tmp_path)
    catalog = SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/warehouse")
    path = Path(table.metadata_location.removeprefix("file://"))
    metadata = json.loads(path.read_text())
    path.write_text(json.dumps({**metadata, "properties": {VERSION: "3"}}))
    catalog.drop_table("db.t")
    table = new_catalog(tmp_path).register_table("db.t", f"file://{path}")
    assert dict(table.properties) == {VERSION: "3"}
    table.set_properties({VERSION: "3"})
    assert (table.format_version, dict(table.properties)) == (3, {})


def test_a_transaction_goes_on_in_the_version_that_it_sets(tmp_path):
    table = new_table(tmp_path)
    table.append(rows(1, 2))
    with table.transaction() as change:
        change.set_properties({VERSION: "3"})
        change.delete("id = 1")
    assert (table.format_version, ids(table)) == (3, [2])
    assert change.result is not None
    assert change.result.vectors_added == 1


@pytest.mark.parametrize("name", TOLD)
def test_names_that_tell_a_tables_state_are_no_properties(tmp_path, name):
    """Programs show a table's state under these names beside its properties; one that is stored would be believed."""
    table = new_table(tmp_path)
    with pytest.raises(InputError, match=f"property '{name}' shows the state"):
        table.set_properties({name: "1"})
    with pytest.raises(InputError, match=f"property '{name}' shows the state"):
        new_catalog(tmp_path).create_table("db.u", "id bigint", properties={name: "1"})
    with pytest.raises(InputError, match=f"property '{name}' shows the state"):
        new_catalog(tmp_path).replace_table("db.t", "x int", properties={name: "1"})
    assert table.set_properties({}, remove=[name]).attempts == 0


def test_a_property_chooses_the_version_of_a_new_table(tmp_path):
    catalog = new_catalog(tmp_path)
    table = catalog.create_table("db.t", "id bigint", properties={VERSION: "3", "owner": "me"})
    assert (table.format_version, dict(table.properties)) == (3, {"owner": "me"})
    same = catalog.create_table("db.same", "id bigint", format_version=3, properties={VERSION: "3"})
    assert (same.format_version, dict(same.properties)) == (3, {})
    with pytest.raises(InputError, match="format_version is 2, the property format-version 3; give one of them"):
        catalog.create_table("db.u", "id bigint", format_version=2, properties={VERSION: "3"})
    assert not catalog.table_exists("db.u")


def test_a_property_chooses_the_version_of_a_replaced_table(tmp_path):
    new_table(tmp_path)
    catalog = new_catalog(tmp_path)
    for asked in (3, 4):
        table = catalog.replace_table("db.t", "x int", properties={VERSION: str(asked)})
        assert (table.format_version, dict(table.properties)) == (asked, {})
    with pytest.raises(InputError, match="has format version 4 and cannot go back to 1"):
        catalog.replace_table("db.t", "x int", properties={VERSION: "1"})
    with pytest.raises(InputError, match="format_version is 3, the property format-version 4; give one of them"):
        catalog.replace_table("db.t", "x int", format_version=3, properties={VERSION: "4"})


def set_elsewhere(folder: Path, **properties: str) -> Table:
    """A table with properties that another program has set."""
    new_table(folder).append(rows(1, 2, 3))
    catalog = SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")
    with catalog.load_table("db.t").transaction() as change:
        change.set_properties(properties)
    return new_catalog(folder).load_table("db.t")


@pytest.mark.parametrize(("codec", "compressed"), [("GZIP", True), ("Gzip", True), ("NONE", False), ("None", False)])
def test_the_codec_of_metadata_is_taken_in_any_case(tmp_path, codec, compressed):
    """Java takes GZIP as gzip; here no commit to such a table succeeded."""
    table = set_elsewhere(tmp_path, **{"write.metadata.compression-codec": codec})
    table.append(rows(4))
    path = Path(table.metadata_location.removeprefix("file://"))
    assert path.name.endswith(".gz.metadata.json") == compressed
    data = path.read_bytes()
    assert json.loads(gzip.decompress(data) if compressed else data)["format-version"] == 2
    assert ids(new_catalog(tmp_path).load_table("db.t")) == [1, 2, 3, 4]


@pytest.mark.parametrize("kind", ["sqlite", "files"])
@pytest.mark.parametrize("version", VERSIONS)
def test_metadata_of_version_4_is_compressed_unless_the_table_asks_for_plain_files(tmp_path, kind, version):
    """At 1,000 snapshots each commit wrote 700 kB of metadata.json beside a root of 11 kB."""
    uri = f"sqlite:///{tmp_path}/c.db" if kind == "sqlite" else None
    cat = icefloe.catalog("lake", type=None if uri else "files", uri=uri, warehouse=f"file://{tmp_path}/warehouse")
    table = cat.create_table("db.t", schema="id bigint", format_version=version)
    table.append(rows(1))
    assert (".gz.metadata.json" in table.metadata_location) == (version == 4)
    table.set_properties({"write.metadata.compression-codec": "none"})
    table.append(rows(2))
    assert ".gz" not in table.metadata_location
    table.set_properties({}, remove=["write.metadata.compression-codec"])
    table.append(rows(3))
    assert (".gz.metadata.json" in table.metadata_location) == (version == 4)
    assert ids(cat.load_table("db.t")) == ids(icefloe.open_table(table.metadata_location)) == [1, 2, 3]


def test_versions_of_a_folder_are_compressed_as_the_version_before_them_asks(tmp_path):
    """With the new setting at once, a commit beside the change of the setting tried another name, and both won."""
    cat = icefloe.catalog("lake", type="files", warehouse=f"file://{tmp_path}/warehouse")
    table = cat.create_table("db.t", schema="id bigint")
    for codec in ("gzip", "none"):
        table.set_properties({"write.metadata.compression-codec": codec})
        table.append(rows(1))
    folder = tmp_path / "warehouse/db/t/metadata"
    versions = sorted(path.name for path in folder.glob("v*.json"))
    assert versions == [f"v{n}{'.gz' if n in (3, 4) else ''}.metadata.json" for n in range(1, 6)]
    for path in folder.glob("v*.json"):
        data = path.read_bytes()
        assert json.loads(gzip.decompress(data) if ".gz." in path.name else data)["format-version"] == 2
    assert ids(cat.load_table("db.t")) == [1, 1]
    assert ids(icefloe.open_table(table.location)) == [1, 1]


@pytest.mark.parametrize("mode", ["MERGE-ON-READ", "Copy-On-Write"])
def test_the_mode_of_changes_is_taken_in_any_case(tmp_path, mode):
    """Java takes MERGE-ON-READ as merge-on-read; here every delete from such a table failed."""
    properties = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
    table = set_elsewhere(tmp_path, **properties)
    files = 0 if mode == "Copy-On-Write" else 1
    assert table.delete("id = 1").delete_files_added == files
    assert table.update({"id": "9"}, where="id = 2").delete_files_added == files
    table.upsert(rows(3), on=["id"])
    assert ids(table) == [3, 9]


@pytest.mark.parametrize("level", ["SNAPSHOT", "Serializable"])
def test_isolation_is_taken_in_any_case(tmp_path, level):
    """Java takes SNAPSHOT as snapshot; here every delete from such a table failed."""
    table = set_elsewhere(tmp_path, **{"write.delete.isolation-level": level, "commit.retry.min-wait-ms": "1"})
    late = table.transaction()
    late.delete("id = 3")
    table.append(rows(3))
    if level == "SNAPSHOT":
        late.commit()
        assert ids(table) == [1, 2, 3]
    else:
        with pytest.raises(ConflictError):
            late.commit()
