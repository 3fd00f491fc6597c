"""How locations name paths of the local disk, and the corners of listing and deleting there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icefloe.errors import InputError, NoSuchFile, StorageError
from icefloe.io.local import LocalFileIO, file_location, local_path


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("/a/b", "/a/b"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("file://localhost/a/b", "/a/b"),
        ("FILE:///a/b", "/a/b"),
        ("file:///a b/c%20d", "/a b/c%20d"),
        ("file:///a/100%/x?y#z", "/a/100%/x?y#z"),
        ("file:///a/雪", "/a/雪"),
        ("file:///a//b", "/a//b"),
        ("file:///a/..b/.c./d...", "/a/..b/.c./d..."),
        ("/a/file:/b", "/a/file:/b"),
    ],
)
def test_a_location_names_its_path_literally(location: str, path: str) -> None:
    assert local_path(location) == path


@pytest.mark.parametrize(
    "location",
    [
        "",
        "a/b",
        "file:a/b",
        "file://",
        "file://host/a",
        "file:///a/../b",
        "/a/./b",
        "/..",
        "/a/..",
        "file:///a\0b",
        "s3://bucket/x",
        "~/x",
    ],
)
def test_what_is_no_local_location_is_refused(location: str) -> None:
    with pytest.raises(InputError):
        local_path(location)


PARTS = st.text(min_size=1, max_size=20).filter(lambda part: part not in (".", "..") and not set(part) & {"/", "\0"})


@settings(max_examples=50)
@given(st.lists(PARTS, min_size=1, max_size=5))
def test_every_spelling_of_a_location_names_one_path(parts: list[str]) -> None:
    path = "/" + "/".join(parts)
    assert local_path(path) == local_path(f"file:{path}") == local_path(f"file://{path}") == path


def test_a_path_becomes_a_location(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/someone")
    assert file_location("wh/x/") == f"file://{tmp_path}/wh/x"
    assert file_location("/a/../b c") == "file:///b c"
    assert file_location("~/wh") == "file:///home/someone/wh"
    assert file_location("file:/wh/") == "file:/wh"
    assert file_location("s3://bucket/wh/") == "s3://bucket/wh"


def test_deleting_goes_on_after_a_failure(tmp_path: Path) -> None:
    io = LocalFileIO()
    io.write_many([(f"{tmp_path}/a", b""), (f"{tmp_path}/folder/x", b""), (f"{tmp_path}/b", b"")])
    with pytest.raises(StorageError, match="1 of 3 files") as caught:
        io.delete([f"{tmp_path}/a", f"{tmp_path}/folder", f"{tmp_path}/b"])
    assert caught.value.context["locations"] == (f"{tmp_path}/folder",)
    assert [file.location for file in io.list(str(tmp_path))] == [f"{tmp_path}/folder/x"]


def test_a_listing_does_not_follow_links_to_folders(tmp_path: Path) -> None:
    io = LocalFileIO()
    io.write_many([(f"{tmp_path}/outside/secret", b""), (f"{tmp_path}/t/a", b"")])
    os.symlink(tmp_path / "outside", tmp_path / "t" / "link")
    os.symlink(tmp_path / "t", tmp_path / "t" / "loop")
    os.symlink(tmp_path / "nowhere", tmp_path / "t" / "broken")
    assert [file.location for file in io.list(f"{tmp_path}/t")] == [f"{tmp_path}/t/a"]


def test_a_listing_of_a_file_is_empty(tmp_path: Path) -> None:
    io = LocalFileIO()
    io.write_new(f"{tmp_path}/a", b"")
    assert list(io.list(f"{tmp_path}/a")) == []


def test_a_file_used_as_a_folder_is_told_apart(tmp_path: Path) -> None:
    io = LocalFileIO()
    io.write_new(f"{tmp_path}/a", b"")
    with pytest.raises(NoSuchFile):
        io.read(f"{tmp_path}/a/b")
    with pytest.raises(StorageError, match="Not a directory"):
        io.write_new(f"{tmp_path}/a/b", b"")


def test_reading_a_folder_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="directory"):
        LocalFileIO().read(str(tmp_path))
