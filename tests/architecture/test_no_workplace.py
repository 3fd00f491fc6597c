"""The repository names no folder of one machine and no address of a package registry."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from architecture.source_tree import REPO, expect_none

# Joined from two texts, so that this file does not contain what it searches for.
FOLDERS = ("work", "root", "tmp/boot", "home/[a-z]+")
REGISTRIES = ("pypi", "pythonhosted", r"maven\.org", r"maven\.apache\.org/maven2", "/simple/", "repository/maven")
PATTERNS = (
    *(re.compile(rf"(?<![\w.~/-])/{folder}/") for folder in FOLDERS),
    re.compile("https?:/" + rf"/[^\s\"'<>)]*({'|'.join(REGISTRIES)})"),
    re.compile(r"--(extra-)?index" + r"-url|--find" + "-links"),
)


def workplace_traces(root: Path) -> list[str]:
    """List the lines of the repository's files that name a machine's folder or a registry."""
    problems = []
    for path in _files(root):
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:  # a binary file says nothing to a reader
            continue
        for number, line in enumerate(lines, 1):
            if any(pattern.search(line) for pattern in PATTERNS):
                problems.append(f"{path.relative_to(root).as_posix()}:{number}: {line.strip()[:120]}")
    return problems


def _files(root: Path) -> list[Path]:
    """List what git tracks or would track; without git, every file outside hidden folders."""
    git = shutil.which("git")
    if git is not None and (root / ".git").exists():
        command = [git, "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
        return sorted(root / name for name in names if name and (root / name).is_file())
    relative = ((path, path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    return sorted(path for path, name in relative if not any(part.startswith(".") for part in name.parts[:-1]))


def test_no_file_names_a_workplace() -> None:
    expect_none(workplace_traces(REPO))


@pytest.mark.parametrize(
    "line",
    [
        "path = '/" + "work/main'",
        "see /" + "root/jars",
        "cat /" + "tmp/boot/x",
        "cd /" + "home/me/icefloe",
        "url = 'https:/" + "/pypi.example/simple/'",
        "https:/" + "/repo1.maven" + ".org/maven2",
        "--extra-index" + "-url https:/" + "/x",
    ],
)
def test_a_trace_is_seen(tmp_path: Path, line: str) -> None:
    (tmp_path / "notes.md").write_text(f"fine\n{line}\n", encoding="utf-8")
    assert workplace_traces(tmp_path) == [f"notes.md:2: {line}"]


@pytest.mark.parametrize(
    "line", ["file:///warehouse/db/orders", "docs/work/plan.md", "https:/" + "/iceberg.apache.org/spec/"]
)
def test_an_ordinary_line_is_left_alone(tmp_path: Path, line: str) -> None:
    (tmp_path / "notes.md").write_text(f"{line}\n", encoding="utf-8")
    assert workplace_traces(tmp_path) == []
