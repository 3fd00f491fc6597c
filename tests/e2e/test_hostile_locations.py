"""Locations in metadata that lead elsewhere: nothing outside the table is opened or deleted because of them.

Each case is committed as the location of a data file. Then the table is read, the file is removed and its snapshot
expires, orphans are removed, and the table is purged. An audit hook sees every file that Python opens or deletes. What
Arrow opens it does not see, so files outside have a row that must never be read.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe.commit.loop import commit
from icefloe.commit.operations.append import Append
from icefloe.commit.operations.remove_files import RemoveFiles
from icefloe.env import SYSTEM
from icefloe.errors import IcefloeError, InputError, UnsupportedError
from icefloe.model.entries import put
from icefloe.table.catalog import Catalog, catalog
from icefloe.table.table import Table
from support.engine_work import write_entries
from support.selection import every

pytestmark = pytest.mark.slow

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
_NAMES = {"open": 1, "os.remove": 1, "os.rmdir": 1, "os.truncate": 1, "os.rename": 2, "os.link": 2, "os.symlink": 2}


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if len(_WATCHED) > 0 and event in _NAMES:
        for path in arguments[: _NAMES[event]]:
            if isinstance(path, (str, bytes)):
                _EVENTS.append((event, os.fsdecode(path)))


sys.addaudithook(_hook)


class Scene:
    """A table, another one beside it, and files outside that nobody may touch."""

    def __init__(self, folder: Path, version: int) -> None:
        self.folder = folder
        self.catalog = self._catalog()
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

    def _catalog(self) -> Catalog:
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
        table = self._catalog().load_table("db.t")
        return Table(table._pointer, replace(SYSTEM, now_ms=lambda: SYSTEM.now_ms() + 10 * DAY_MS))

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Nothing outside of the table is opened, changed or deleted meanwhile."""
        _EVENTS.clear()
        _WATCHED.append(str(self.folder))
        try:
            yield
        finally:
            _WATCHED.clear()
        inside, all_of_it = os.path.realpath(self.path), os.path.realpath(self.folder)
        for event, path in list(_EVENTS):
            # Removing a link removes the link; opening it opens what it leads to.
            parent, name = os.path.split(path)
            real = os.path.realpath(path) if event == "open" else os.path.join(os.path.realpath(parent), name)
            is_ours = not real.startswith((f"{all_of_it}/", "/etc/passwd", "/proc/self/environ"))
            assert is_ours or f"{real}/".startswith(f"{inside}/"), f"{event} of {path}"
        assert self.outside() >= self.before, "a file outside of the table is gone"


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


@pytest.fixture(params=[2, 4], ids=["v2", "v4"])
def scene(tmp_path: Path, request: pytest.FixtureRequest) -> Scene:
    return Scene(tmp_path, request.param)


def add(scene: Scene, location: str) -> bool:
    """Commit a data file of this location, as another program may have done; whether it was accepted."""
    table = scene.table
    entries = write_entries(table._pointer.io, rows(SECRET_ROW), table.metadata)
    (own,) = entries["location"].to_pylist()
    table._pointer.io.delete([own])
    try:
        commit(table._pointer, Append(added=put(entries, "location", location)))
    except IcefloeError:
        return False
    return True


def read(scene: Scene) -> None:
    with contextlib.suppress(IcefloeError):
        assert SECRET_ROW not in scene.fresh().scan().to_arrow()["id"].to_pylist()


def expire(scene: Scene, location: str) -> None:
    with contextlib.suppress(IcefloeError):
        commit(scene.fresh()._pointer, RemoveFiles(locations=(location,)))
    with contextlib.suppress(IcefloeError):
        scene.fresh().expire(older_than=LATER).execute()


def remove_orphans(scene: Scene, location: str) -> None:
    with contextlib.suppress(IcefloeError):
        scene.fresh().remove_orphans(max_share=1.0).execute()
    with contextlib.suppress(IcefloeError):
        scene.fresh().remove_orphans(location=location, max_share=1.0).execute()


def purge(scene: Scene) -> None:
    with contextlib.suppress(IcefloeError):
        scene._catalog().drop_table("db.t", purge=True)


def test_there_are_enough_cases():
    assert len(set(CASES)) == len(CASES) >= 60


def test_the_watch_sees_what_is_opened_and_deleted_outside(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 2)
    with pytest.raises(AssertionError, match="open of"), scene.watched():
        (scene.path / "data/folder/secret.parquet").read_bytes()
    with pytest.raises(AssertionError, match="remove of"), scene.watched():
        (scene.path / "data/folder/secret.parquet").unlink()
    other = Scene(tmp_path / "other", 2)
    with other.watched():
        (other.path / "data/file.parquet").unlink()


@pytest.mark.parametrize("case", every(4, CASES))
def test_nothing_outside_is_touched_by_a_hostile_location(scene: Scene, case: str) -> None:
    location = scene.text(case)
    with scene.watched():
        if add(scene, location):
            read(scene)
            remove_orphans(scene, location)
            expire(scene, location)
            read(scene)
            remove_orphans(scene, location)
        purge(scene)
    assert scene.other.refresh().scan().count() == 1


@pytest.mark.parametrize("case", every(4, CASES))
def test_a_purge_of_a_table_that_names_a_hostile_location_touches_nothing_outside(scene: Scene, case: str) -> None:
    add(scene, scene.text(case))
    with scene.watched():
        purge(scene)


@pytest.mark.parametrize(
    "act", [lambda io, at: io.read(at), lambda io, at: io.size(at), lambda io, at: io.arrow_path(at)]
)
@pytest.mark.parametrize("name", ["data/folder/secret.parquet", "data/file.parquet", "up/o/data/secret.parquet"])
def test_links_that_lead_out_of_the_allowed_roots_are_not_read(
    tmp_path: Path, name: str, act: Callable[[object, str], object]
) -> None:
    scene = Scene(tmp_path, 2)
    with scene.watched(), pytest.raises(InputError, match="refused to read"):
        act(scene.table._pointer.load().store.io, f"{scene.table.location}/{name}")


def test_a_live_file_that_is_also_reached_by_a_link_is_not_deleted(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 2)
    (live,) = scene.table.scan().plan().tasks["location"].to_pylist()
    (scene.path / "data/again").symlink_to(scene.path / "data")
    alias = live.replace("/data/", "/data/again/")
    assert add(scene, alias)
    commit(scene.table._pointer, RemoveFiles(locations=(alias,)))
    result = scene.fresh().expire(older_than=LATER).execute()
    assert result.left == (alias,)
    assert scene.fresh().scan().count() == 1


def test_a_file_that_is_referenced_only_by_way_of_a_link_is_no_orphan(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 2)
    (live,) = scene.table.scan().plan().tasks["location"].to_pylist()
    (scene.path / "data/again").symlink_to(scene.path / "data")
    pq.write_table(rows(5), live.removeprefix("file://").replace(".parquet", "x.parquet"))
    assert add(scene, live.replace("/data/", "/data/again/").replace(".parquet", "x.parquet"))
    with pytest.raises(UnsupportedError, match="linked folder"):
        scene.fresh().remove_orphans(max_share=1.0)
    scene.table.append(rows(3))
    scene.table.delete("id = 3")
    with pytest.raises(UnsupportedError, match="linked folder"):
        scene.fresh().expire(older_than=LATER)


@pytest.mark.parametrize("location", ["s3://bucket", "s3://bucket/", "file:///", "/"])
def test_a_whole_disk_or_bucket_is_never_a_table_to_delete_from(tmp_path: Path, location: str) -> None:
    scene = Scene(tmp_path, 2)
    base = scene.table._pointer.load()
    scene.table._pointer._last = replace(base, metadata=replace(base.metadata, location=location))
    with scene.watched():
        for plan in (scene.table.expire, scene.table.remove_orphans):
            with pytest.raises(InputError, match="a whole disk or bucket"):
                plan()
