"""A table whose metadata names hostile locations, and a watch on what is opened and deleted outside of it.

An audit hook sees every file that Python opens or deletes, and every folder that it lists. It does not see what Arrow
opens: each location for which Arrow gets a path counts as opened.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icefloe.catalogs.catalog import Swapped
from icefloe.codecs.manifest.manifests import decode_leaf, decode_root, encode_leaf, encode_root
from icefloe.commit.base import Base
from icefloe.commit.loop import commit
from icefloe.commit.operations.append import Append
from icefloe.env import SYSTEM
from icefloe.errors import IcefloeError
from icefloe.io.local import LocalFileIO, local_path
from icefloe.model.entries import MANIFESTS, ContentType, live, of_type, put
from icefloe.table.catalog import Catalog, catalog
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.tree.root import Leaf, read_root
from support.engine_work import write_entries
from support.metadata_documents import metadata_json

SECRET_ROW = 666
DAY_MS = 86_400_000
LATER = "2100-01-01T00:00:00+00:00"
# {t}: the folder of the table, {o}: that of another table beside it, {s}: a folder outside of the warehouse.
CASES = (
    "file://{s}/secret.parquet",
    "{s}/secret.parquet",
    "file:{s}/secret.parquet",
    "FILE://{s}/secret.parquet",
    "file://localhost{s}/secret.parquet",
    "file://LOCALHOST{s}/secret.parquet",
    "file:///{s}/secret.parquet",
    "file://{o}/data/secret.parquet",
    "{o}/data/secret.parquet",
    "file://{t}/../o/data/secret.parquet",
    "file://{t}/data/../../o/data/secret.parquet",
    "{t}/../o/data/secret.parquet",
    "file:{t}/data/../../o/data/secret.parquet",
    "file://{t}/./../o/data/secret.parquet",
    "file://{t}/data/./secret.parquet",
    "file://{t}//../o/data/secret.parquet",
    "file://{t}/data//..//..//o/data/secret.parquet",
    "file://{t}/data/%2e%2e/%2e%2e/o/data/secret.parquet",
    "file://{t}/data/%2E%2E/%2E%2E/o/data/secret.parquet",
    "file://{t}/.%2e/o/data/secret.parquet",
    "file://{t}/%2e./o/data/secret.parquet",
    "file://{t}/%252e%252e/o/data/secret.parquet",
    "file://{t}/..%2fo%2fdata%2fsecret.parquet",
    "file://{t}/%2e%2e%2fo%2fdata%2fsecret.parquet",
    "file://{t}/..%5co%5cdata%5csecret.parquet",
    "file://{t}/..\\o\\data\\secret.parquet",
    "file://{t}\\..\\o\\data\\secret.parquet",
    "file://{t}/..;/o/data/secret.parquet",
    "file://{t}/\uff0e\uff0e/o/data/secret.parquet",
    "file://{t}/..\u2215o/data/secret.parquet",
    "file://{t}/.. /o/data/secret.parquet",
    "file://{t}2/data/secret.parquet",
    "file://{t}-old/data/secret.parquet",
    "file://{t}.secret.parquet",
    "file://{t}?/../o/data/secret.parquet",
    "file://{t}#/../o/data/secret.parquet",
    "file://{t}\0/../o/data/secret.parquet",
    "file://{t}/data/a\0b.parquet",
    "file://{t}/data/\n/../../../o/data/secret.parquet",
    " file://{s}/secret.parquet",
    "file://{s}/secret.parquet ",
    "file://evil{t}/data/secret.parquet",
    "file://user:word@host{s}/secret.parquet",
    "file://127.0.0.1{s}/secret.parquet",
    "file://[::1]{s}/secret.parquet",
    "s3://bucket{t}/data/secret.parquet",
    "s3a://bucket/secret.parquet",
    "gs://bucket/secret.parquet",
    "abfss://c@a.dfs.core.windows.net/secret.parquet",
    "hdfs://nn1{t}/data/secret.parquet",
    "http://127.0.0.1:9/secret.parquet",
    "https://127.0.0.1:9/secret.parquet",
    "ftp://127.0.0.1:9/secret.parquet",
    "memory://wh/t/data/secret.parquet",
    "jar:file://{s}/secret.parquet",
    "data:,secret",
    "../o/data/secret.parquet",
    "data/../../o/data/secret.parquet",
    "./../o/data/secret.parquet",
    "~/secret.parquet",
    "file://~/secret.parquet",
    "..",
    ".",
    "/",
    "file:///",
    "file:///etc/passwd",
    "/proc/self/environ",
    "file://{t}",
    "file://{t}/",
    "file://{t}/data",
    "file://{t}/metadata",
    "file://{w}/catalog.db",
    "file://{o}/metadata",
    "file://{t}/data/folder/secret.parquet",  # a link to a folder outside
    "file://{t}/data/folder/../secret.parquet",
    "file://{t}/data/other/secret.parquet",  # a link to the data of the other table
    "file://{t}/data/twice/secret.parquet",  # a link to a link
    "file://{t}/up/o/data/secret.parquet",  # a link to the folder above
    "file://{t}/data/file.parquet",  # a link to a file outside
    "file:{t}/data/folder/secret.parquet",
    "{t}/data//folder//secret.parquet",
)

_EVENTS: list[tuple[str, str]] = []
_WATCHED: list[str] = []  # events are recorded while there is a folder here
_ONE_PATH = ("open", "os.remove", "os.rmdir", "os.truncate", "os.scandir", "os.listdir")
_NAMES = {**dict.fromkeys(_ONE_PATH, 1), "os.rename": 2, "os.link": 2, "os.symlink": 2}
_LISTS = ("os.scandir", "os.listdir")
_FOLLOW_LINKS = ("open", *_LISTS)


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if len(_WATCHED) > 0 and event in _NAMES:
        for path in arguments[: _NAMES[event]]:
            if isinstance(path, (str, bytes)):
                _EVENTS.append((event, os.fsdecode(path)))


sys.addaudithook(_hook)


_ARROW_PATH = LocalFileIO.arrow_path


def _watched_path(io: LocalFileIO, location: str) -> tuple[Any, str]:
    """What Arrow gets the path of counts as opened."""
    files, path = _ARROW_PATH(io, location)
    _hook("open", (path,))
    return files, path


class Scene:
    """A table, another one beside it, and files outside that nobody may touch."""

    def __init__(self, folder: Path, version: int) -> None:
        self.folder = folder
        self.catalog = self.fresh_catalog()
        self.other = self.catalog.create_table("db.o", "id bigint")
        self.table = self.catalog.create_table("db.t", "id bigint", format_version=version)
        self.table.append(rows(1))
        self.other.append(rows(2))
        self.path = Path(self.table.location.removeprefix("file://"))
        (folder / "outside").mkdir()
        for place in (folder / "outside", Path(self.other.location.removeprefix("file://")) / "data"):
            pq.write_table(rows(SECRET_ROW), place / "secret.parquet")
        for place in (Path(f"{self.path}2/data"), Path(f"{self.path}-old/data")):
            place.mkdir(parents=True)
            pq.write_table(rows(SECRET_ROW), place / "secret.parquet")
        pq.write_table(rows(SECRET_ROW), f"{self.path}.secret.parquet")
        (self.path / "data/folder").symlink_to(folder / "outside")
        (self.path / "data/twice").symlink_to(self.path / "data/folder")
        (self.path / "data/other").symlink_to(Path(self.other.location.removeprefix("file://")) / "data")
        (self.path / "data/file.parquet").symlink_to(folder / "outside/secret.parquet")
        (self.path / "up").symlink_to(self.path.parent)
        self.before = self.outside()

    def fresh_catalog(self) -> Catalog:
        settings = {"allowed-roots": f"file://{self.folder}/warehouse/db/t"}
        place = f"file://{self.folder}/warehouse"
        return catalog("x", uri=f"sqlite:///{self.folder}/catalog.db", warehouse=place, properties=settings)

    def outside(self) -> set[str]:
        """All files that are not the table's, by real path."""
        found = (path for path in self.folder.rglob("*") if path.is_file() and not path.is_symlink())
        return {str(path) for path in found if not str(path).startswith(f"{self.path}/")}

    def text(self, case: str) -> str:
        return case.format(
            t=self.path, o=self.other.location.removeprefix("file://"), s=self.folder / "outside", w=self.folder
        )

    def fresh(self) -> Table:
        """The table as a new process opens it, whose clock is ten days ahead."""
        table = self.fresh_catalog().load_table("db.t")
        return Table(pointer_of(table), replace(SYSTEM, now_ms=lambda: SYSTEM.now_ms() + 10 * DAY_MS))

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Nothing outside of the table is opened, changed or deleted meanwhile."""
        _EVENTS.clear()
        _WATCHED.append(str(self.folder))
        try:
            with patch.object(LocalFileIO, "arrow_path", _watched_path):
                yield
        finally:
            _WATCHED.clear()
        inside, all_of_it = os.path.realpath(self.path), os.path.realpath(self.folder)
        for event, path in list(_EVENTS):
            # Removing a link removes the link; opening it opens what it leads to.
            parent, name = os.path.split(path)
            follows = event in _FOLLOW_LINKS
            real = os.path.realpath(path) if follows else os.path.join(os.path.realpath(parent), name)
            is_elsewhere = not real.startswith((f"{all_of_it}/", "/etc/passwd", "/proc/self/environ"))
            is_outer = event in _LISTS and f"{inside}/".startswith(f"{real.rstrip('/')}/")
            assert (is_elsewhere and not is_outer) or f"{real}/".startswith(f"{inside}/"), f"{event} of {path}"
        assert self.outside() >= self.before, "a file outside of the table is gone"


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def add(scene: Scene, location: str) -> bool:
    """Commit a data file of this location, as another program may have done; whether it was accepted."""
    table = scene.table
    entries = write_entries(pointer_of(table).io, rows(SECRET_ROW), table.metadata)
    (own,) = entries["location"].to_pylist()
    pointer_of(table).io.delete([own])
    try:
        commit(pointer_of(table), Append(added=put(entries, "location", location)))
    except IcefloeError:
        return False
    return True


DATA, MANIFEST, ROOT, LOG = "data file", "manifest", "root", "metadata log"
STATISTICS, PARTITION_STATISTICS = "statistics", "partition statistics"
POSITIONS, EQUALITY, DELETE_MANIFEST = "position deletes", "equality deletes", "delete manifest"
MANIFEST_VECTOR, LISTED_MANIFEST = "manifest vector", "manifest without a list"
_ENTRIES = {
    DATA: ContentType.DATA,
    POSITIONS: ContentType.POSITION_DELETES,
    EQUALITY: ContentType.EQUALITY_DELETES,
    MANIFEST: ContentType.DATA_MANIFEST,
    DELETE_MANIFEST: ContentType.DELETE_MANIFEST,
    MANIFEST_VECTOR: ContentType.MANIFEST_DV,
}
_ANY_VERSION = (DATA, MANIFEST, ROOT, LOG, STATISTICS, PARTITION_STATISTICS)
_WITH_DELETES = (POSITIONS, EQUALITY, DELETE_MANIFEST)
# The places of a location in the metadata of each format version.
PLACES = {
    1: (*_ANY_VERSION, LISTED_MANIFEST),
    2: (*_ANY_VERSION, *_WITH_DELETES),
    3: (*_ANY_VERSION, *_WITH_DELETES),
    4: (*_ANY_VERSION, *_WITH_DELETES, MANIFEST_VECTOR),
}
_DEEP = {
    "commit.root.max-data-files": "0",
    "commit.root.max-dvs": "0",
    "commit.leaf.max-dead-percent": "100",
    "commit.leaf.min-dead-rows": "1000",
    "write.manifest-dv.inline-max-bytes": "0",
    "write.delete.mode": "merge-on-read",
}


def give_history(scene: Scene) -> None:
    """Give the table all that its version can name: manifests of data and of deletes, and manifest vectors."""
    table = scene.table
    table.set_properties(_DEEP if table.metadata.rules.sequence_numbers else {})
    table.append(rows(5, 6, 7))
    table.append(rows(8, 9))
    if table.metadata.rules.sequence_numbers:
        table.delete("id = 5")
        table.upsert(rows(6), on=["id"], deletes="equality")
        table.remove_files(table.scan("id = 8").plan().tasks["location"].to_pylist())


def plant(scene: Scene, place: str, location: str) -> None:
    """Write metadata that names a location, as a hostile program does."""
    base = pointer_of(scene.fresh()).load()
    if place in _ENTRIES:
        _plant_entry(base, _ENTRIES[place], location)
    else:
        _plant_in_metadata(base, place, location, scene)


def _plant_entry(base: Base, content: ContentType, location: str) -> None:
    """Change the location of the last entry of a kind, in the root of the newest snapshot or in a leaf."""
    snapshot, context = base.metadata.current_snapshot, base.store.context
    assert snapshot is not None
    where = snapshot.root_location
    root = decode_root(base.store.io.read(where), context, where=where)
    if content in (*MANIFESTS, ContentType.MANIFEST_DV):
        root = _with_location(root, content, location)
    else:
        leaf, entries = next(_leaves_with(base, content))
        data = encode_leaf(
            _with_location(entries, content, location), context, content=leaf.content, spec_id=leaf.spec_id
        )
        Path(local_path(leaf.location)).write_bytes(data)
        sizes = pc.if_else(pc.equal(root["location"], leaf.location), len(data), root["file_size_in_bytes"])
        root = put(root, "file_size_in_bytes", sizes)
    data = encode_root(
        root,
        context,
        snapshot_id=snapshot.snapshot_id,
        parent_id=snapshot.parent_id,
        sequence_number=snapshot.sequence_number,
        first_row_id=snapshot.first_row_id,
    )
    Path(local_path(where)).write_bytes(data)


def _leaves_with(base: Base, content: ContentType) -> Iterator[tuple[Leaf, pa.Table]]:
    snapshot = base.metadata.current_snapshot
    for leaf in reversed(read_root(base.store, snapshot).leaves(*MANIFESTS)):
        data = base.store.io.read(leaf.location)
        entries = decode_leaf(data, base.store.context, where=leaf.location, content=leaf.content, spec_id=leaf.spec_id)
        if pc.any(pc.and_(of_type(entries, content), live(entries))).as_py() is True:
            yield leaf, entries


def _with_location(entries: pa.Table, content: ContentType, location: str) -> pa.Table:
    """The entries with another location of the last live one of a kind."""
    chosen = pc.and_(of_type(entries, content), live(entries)).to_pylist()
    last = max(number for number, is_chosen in enumerate(chosen) if is_chosen)
    locations = entries["location"].to_pylist()
    return put(entries, "location", pa.array([*locations[:last], location, *locations[last + 1 :]], pa.string()))


def _plant_in_metadata(base: Base, place: str, location: str, scene: Scene) -> None:
    """Write a metadata file that names a location, and let the catalog point to it."""
    document = metadata_json(base.pointer)
    newest = document["snapshots"][-1]
    measure = {"snapshot-id": newest["snapshot-id"], "statistics-path": location, "file-size-in-bytes": 100}
    if place == ROOT:
        newest["root-manifest" if "root-manifest" in newest else "manifest-list"] = location
    elif place == LISTED_MANIFEST:
        del newest["manifest-list"]
        newest["manifests"] = [location]
    elif place == LOG:
        document["metadata-log"][0]["metadata-file"] = location
    elif place == STATISTICS:
        document["statistics"] = [{**measure, "file-footer-size-in-bytes": 10, "blob-metadata": []}]
    else:
        document["partition-statistics"] = [measure]
    pointer = f"{base.pointer.rpartition('/')[0]}/00099-{uuid.uuid4()}.metadata.json"
    Path(local_path(pointer)).write_text(json.dumps(document))
    table = pointer_of(scene.table)
    swapped = table.catalog.swap(table.identifier, table.catalog.load(table.identifier), pointer)
    assert isinstance(swapped, Swapped)
