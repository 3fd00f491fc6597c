"""A JVM with one compiler gets the room for compiled code that it has with two."""

from __future__ import annotations

from pathlib import Path

from architecture.source_tree import REPO, expect_none, write_tree

# Joined from two texts, so that this file does not contain what it searches for.
ONE_COMPILER = "Tiered" + "StopAtLevel"
ROOM = "ReservedCodeCacheSize"


def small_caches(root: Path) -> list[str]:
    """List lines that start a JVM with one compiler, which shrinks the room for compiled code to 48 MB."""
    return [
        f"{path.relative_to(root).as_posix()}:{number}: add -XX:{ROOM}=240m"
        for folder in ("bench", "conformance", "demo", "tests")
        for path in sorted((root / folder).rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if ONE_COMPILER in line and ROOM not in line
    ]


def test_every_jvm_with_one_compiler_has_room_for_compiled_code() -> None:
    """Scar: the demo ended in "CodeCache is full. Compiler has been disabled"."""
    expect_none(small_caches(REPO))


def test_a_small_cache_is_seen(tmp_path: Path) -> None:
    lines = f'A = "-XX:{ONE_COMPILER}=1"\nB = "-XX:{ONE_COMPILER}=1 -XX:{ROOM}=240m"\n'
    assert small_caches(write_tree(tmp_path, {"demo/a.py": lines})) == [f"demo/a.py:1: add -XX:{ROOM}=240m"]
