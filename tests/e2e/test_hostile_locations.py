"""Locations in metadata that lead elsewhere: nothing outside the table is opened or deleted because of them.

Each case is written as the location of a file of some kind: a data file, a delete file, a manifest, a statistics file
and so on. Then the table is read, checked, compacted, erased from and cleaned up, and at last purged. ``hostile_scene``
has the locations, and the watch on what is touched outside. ``ICEFLOE_LONG=1`` tries each location in each place.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hostile_scene import CASES, LATER, PLACES, SECRET_ROW, Scene, add, give_history, plant, rows

from icefloe.commit.loop import commit
from icefloe.commit.operations.remove_files import RemoveFiles
from icefloe.errors import IcefloeError, InputError, UnsupportedError
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from support.crashes import LONG

pytestmark = [pytest.mark.slow, pytest.mark.broken_tables]

ALL_PLACES = [(version, place) for version, places in PLACES.items() for place in places]
MEETINGS = 4  # the places that each location is tried in, unless all are
PLANTED = [
    (version, place, case)
    for number, case in enumerate(CASES)
    for offset, (version, place) in enumerate(ALL_PLACES)
    if LONG or (offset - 5 * number) % len(ALL_PLACES) < MEETINGS
]


@pytest.fixture(params=[2, 4], ids=["v2", "v4"])
def scene(tmp_path: Path, request: pytest.FixtureRequest) -> Scene:
    return Scene(tmp_path, request.param)


def read(scene: Scene) -> None:
    with contextlib.suppress(IcefloeError):
        assert SECRET_ROW not in scene.fresh().scan().to_arrow()["id"].to_pylist()


def expire(scene: Scene, location: str) -> None:
    with contextlib.suppress(IcefloeError):
        commit(pointer_of(scene.fresh()), RemoveFiles(locations=(location,)))
    with contextlib.suppress(IcefloeError):
        scene.fresh().expire(older_than=LATER).execute()


def remove_orphans(scene: Scene, location: str) -> None:
    with contextlib.suppress(IcefloeError):
        scene.fresh().remove_orphans(max_share=1.0).execute()
    with contextlib.suppress(IcefloeError):
        scene.fresh().remove_orphans(location=location, max_share=1.0).execute()


def maintain(scene: Scene) -> None:
    """All that reads or rewrites files; what it refuses, it refuses by an error of its own."""
    actions: tuple[Callable[[Table], object], ...] = (
        lambda table: table.verify(snapshots="all", files=True, rows=True),
        lambda table: table.compact(options={"rewrite-all": True}).execute(),
        lambda table: table.rewrite_deletes().execute(),
        lambda table: table.erase("id = 5 or id = 9").execute(),
        lambda table: table.rewrite_manifests().execute(),
        lambda table: table.maintain(orphans=True).execute(),
    )
    for act in actions:
        with contextlib.suppress(IcefloeError):
            act(scene.fresh())


def purge(scene: Scene) -> None:
    with contextlib.suppress(IcefloeError):
        scene.fresh_catalog().drop_table("db.t", purge=True)


def test_there_are_enough_cases():
    assert len(set(CASES)) == len(CASES) >= 60


def test_the_watch_sees_what_is_opened_and_deleted_outside(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 2)
    with pytest.raises(AssertionError, match="open of"), scene.watched():
        (scene.path / "data/folder/secret.parquet").read_bytes()
    with pytest.raises(AssertionError, match="remove of"), scene.watched():
        (scene.path / "data/folder/secret.parquet").unlink()
    (tmp_path / "other").mkdir()
    other = Scene(tmp_path / "other", 2)
    with other.watched():
        (other.path / "data/file.parquet").unlink()


@pytest.mark.parametrize("case", CASES)
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


@pytest.mark.parametrize("case", CASES)
def test_a_purge_of_a_table_that_names_a_hostile_location_touches_nothing_outside(scene: Scene, case: str) -> None:
    add(scene, scene.text(case))
    with scene.watched():
        purge(scene)


@pytest.mark.parametrize(("version", "place", "case"), PLANTED)
def test_no_action_touches_anything_outside_wherever_metadata_names_it(
    tmp_path: Path, version: int, place: str, case: str
) -> None:
    scene = Scene(tmp_path, version)
    give_history(scene)
    location = scene.text(case)
    plant(scene, place, location)
    with scene.watched():
        read(scene)
        maintain(scene)
        remove_orphans(scene, location)
        expire(scene, location)
        read(scene)
        remove_orphans(scene, location)
        purge(scene)
    assert scene.other.refresh().scan().count() == 1


@pytest.mark.parametrize(("version", "place"), ALL_PLACES)
def test_a_location_that_is_planted_is_what_the_table_names(tmp_path: Path, version: int, place: str) -> None:
    """Else the other tests would prove nothing."""
    scene = Scene(tmp_path, version)
    give_history(scene)
    location = scene.text("file://{s}/secret.parquet")
    plant(scene, place, location)
    found = scene.fresh().verify(snapshots="all", files=True).findings
    assert any("secret.parquet" in str(finding) for finding in found)


@pytest.mark.parametrize(
    "act", [lambda io, at: io.read(at), lambda io, at: io.size(at), lambda io, at: io.arrow_path(at)]
)
@pytest.mark.parametrize("name", ["data/folder/secret.parquet", "data/file.parquet", "up/o/data/secret.parquet"])
def test_links_that_lead_out_of_the_allowed_roots_are_not_read(
    tmp_path: Path, name: str, act: Callable[[object, str], object]
) -> None:
    scene = Scene(tmp_path, 2)
    with scene.watched(), pytest.raises(InputError, match="refused to read"):
        act(pointer_of(scene.table).load().store.io, f"{scene.table.location}/{name}")


def test_a_live_file_that_is_also_reached_by_a_link_is_not_deleted(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 2)
    (live,) = scene.table.scan().plan().tasks["location"].to_pylist()
    (scene.path / "data/again").symlink_to(scene.path / "data")
    alias = live.replace("/data/", "/data/again/")
    assert add(scene, alias)
    commit(pointer_of(scene.table), RemoveFiles(locations=(alias,)))
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
    base = pointer_of(scene.table).load()
    pointer_of(scene.table).remember(base.pointer, replace(base.metadata, location=location))
    with scene.watched():
        for plan in (scene.table.expire, scene.table.remove_orphans):
            with pytest.raises(InputError, match="a whole disk or bucket"):
                plan()
