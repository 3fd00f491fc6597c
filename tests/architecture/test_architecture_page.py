"""docs/architecture.md names every package and only files that exist, and no folder has too many modules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from architecture.source_tree import REPO, SRC, expect_none, write_tree

PAGE = REPO / "docs" / "architecture.md"
MOST_MODULES = 20
_PACKAGE_ROW = re.compile(r"^\| `([a-z_0-9/]+)` \|", re.MULTILINE)
_FILE = re.compile(r"`([a-z_0-9/]+\.py)`")
_NOT_PACKAGES = frozenset({"tests/architecture"})


def package_problems(page: str, root: Path) -> list[str]:
    """List packages that the page lacks, and rows of the page that are no package."""
    listed = _PACKAGE_ROW.findall(page)
    there = {path.parent.relative_to(root).as_posix() for path in root.rglob("__init__.py")} - {"."}
    lacking = [f"docs/architecture.md has no row for {name}" for name in sorted(there - set(listed))]
    return lacking + [
        f"docs/architecture.md lists {name}, which does not exist" for name in listed if name not in there
    ]


def file_problems(page: str, root: Path) -> list[str]:
    """List files that the page names and that do not exist."""
    names = {name for name in _FILE.findall(page) if not any(name.startswith(other) for other in _NOT_PACKAGES)}
    return [
        f"docs/architecture.md names {name}, which does not exist"
        for name in sorted(names)
        if not (root / name).is_file()
    ]


def crowded_folders(root: Path) -> list[str]:
    """List folders with more modules directly in them than the limit."""
    folders = {path.parent for path in root.rglob("*.py")}
    counts = {folder: sum(1 for path in folder.glob("*.py") if path.name != "__init__.py") for folder in folders}
    return [
        f"{folder.relative_to(root).as_posix()} has {count} modules; at most {MOST_MODULES}"
        for folder, count in sorted(counts.items())
        if count > MOST_MODULES
    ]


def test_the_page_lists_every_package() -> None:
    expect_none(package_problems(PAGE.read_text(encoding="utf-8"), SRC / "icefloe"))


def test_every_file_that_the_page_names_exists() -> None:
    expect_none(file_problems(PAGE.read_text(encoding="utf-8"), SRC / "icefloe"))


def test_no_folder_has_too_many_modules() -> None:
    expect_none(crowded_folders(SRC / "icefloe"))


@pytest.mark.parametrize(
    "question",
    [
        "retry loop",
        "conflict checks",
        "cherry-pick",
        "commit of `add_files`",
        "deletes applied when rows are read",
        "V4 thresholds",
        "a new partition transform",
        "a MERGE on Spark",
    ],
)
def test_the_page_answers_a_newcomers_question(question: str) -> None:
    answers = PAGE.read_text(encoding="utf-8").partition("## Where is it?")[2].partition("\n## ")[0].splitlines()
    (row,) = (line for line in answers if question in line)
    assert _FILE.search(row.rsplit(" | ", 1)[1]) is not None


def test_a_wrong_page_and_a_crowded_folder_are_seen(tmp_path: Path) -> None:
    many = {f"icefloe/model/m{number}.py": "" for number in range(MOST_MODULES + 1)}
    root = write_tree(tmp_path, many) / "icefloe"
    page = "| `codecs` | bytes |\n see `model/gone.py` and `model/m1.py`"
    assert package_problems(page, root) == [
        "docs/architecture.md has no row for model",
        "docs/architecture.md lists codecs, which does not exist",
    ]
    assert file_problems(page, root) == ["docs/architecture.md names model/gone.py, which does not exist"]
    assert crowded_folders(root) == [f"model has {MOST_MODULES + 1} modules; at most {MOST_MODULES}"]
