"""The jar helper, with a Maven that the test plays itself, and once with the real one."""

from __future__ import annotations

import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.jars import ICEBERG, S3A, SQLITE, Artifact, JarUnavailable, fetch, fetch_with_dependencies


def play_maven(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> None:
    folder.mkdir()
    (folder / "mvn").write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (folder / "mvn").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_a_missing_maven_is_said_with_the_jar_and_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JarUnavailable, match=r"sqlite-jdbc:3\.50\.3\.0.*Maven is not installed") as raised:
        fetch(SQLITE, tmp_path / "jars")
    assert str(tmp_path / "jars") in str(raised.value)


def test_a_jar_is_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    script = f'echo "$@" >> {log}; for a in "$@"; do case "$a" in -DoutputDirectory=*) out="${{a#*=}}";; esac; done\n'
    play_maven(monkeypatch, tmp_path / "bin", f"{script} echo jar > $out/{SQLITE.file_name}")
    with ThreadPoolExecutor(2) as pool:  # as the processes do in which tests run side by side
        paths = set(pool.map(lambda _: fetch(SQLITE, tmp_path / "jars"), range(4)))
    assert paths == {tmp_path / "jars" / SQLITE.file_name}
    assert len(log.read_text().splitlines()) == 1
    assert f"-Dartifact={SQLITE.coordinates}" in log.read_text()
    assert [path.name for path in (tmp_path / "jars").iterdir()] == [SQLITE.file_name]


def test_jars_with_what_they_depend_on_are_fetched_once_into_their_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    script = f'cat pom.xml >> {log}; for a in "$@"; do case "$a" in -DoutputDirectory=*) out="${{a#*=}}";; esac; done\n'
    play_maven(monkeypatch, tmp_path / "bin", f"{script} mkdir $out; echo > $out/{S3A[0].file_name}; echo > $out/a.jar")
    paths = fetch_with_dependencies(S3A, tmp_path / "jars")
    assert [path.name for path in paths] == ["a.jar", S3A[0].file_name]
    assert fetch_with_dependencies(S3A, tmp_path / "jars") == paths
    (project,) = log.read_text().splitlines()
    assert project.count("<artifactId>bundle</artifactId>") == len(S3A)  # left out everywhere
    assert [path.name for path in (tmp_path / "jars").iterdir()] == ["hadoop-aws-3.4.2"]


@pytest.mark.parametrize("script", ["echo no network; exit 1", "exit 0"])
def test_a_failed_fetch_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    play_maven(monkeypatch, tmp_path / "bin", script)
    with pytest.raises(JarUnavailable, match="Maven could not fetch"):
        fetch(SQLITE, tmp_path / "jars")
    with pytest.raises(JarUnavailable, match="Maven could not fetch"):
        fetch_with_dependencies(S3A, tmp_path / "jars")
    assert list((tmp_path / "jars").iterdir()) == []


@pytest.mark.interop
@pytest.mark.parametrize("artifact", [ICEBERG, SQLITE], ids=lambda artifact: artifact.name)
def test_maven_fetches_a_whole_jar(artifact: Artifact) -> None:
    assert zipfile.ZipFile(fetch(artifact)).testzip() is None
