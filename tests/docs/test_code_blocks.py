"""The examples of README.md and docs/ run: every block that opens with ```` ```python run ```` is executed.

The blocks of one page run in order and share their names, in an empty folder that is also the home folder, so that
an example may open the default catalog. Doctests of the sources are collected by pytest itself.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.servers.spark import spark  # noqa: F401  # the fixture

REPO = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python run[ \t]*\n(?P<code>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


def pages(root: Path) -> list[Path]:
    """List the pages that hold examples to run."""
    found = [path for path in [root / "README.md", *sorted((root / "docs").rglob("*.md"))] if path.exists()]
    return [path for path in found if BLOCK.search(path.read_text(encoding="utf-8")) is not None]


def run_page(page: Path) -> int:
    """Run the blocks of a page and return how many there were; an error names the page and its line."""
    text = page.read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": "__main__"}
    blocks = list(BLOCK.finditer(text))
    for block in blocks:
        before = text[: block.start("code")].count("\n")
        exec(compile("\n" * before + block["code"], str(page), "exec"), names)
    return len(blocks)


def is_on_spark(page: Path) -> bool:
    """Whether the examples of a page need a Spark session."""
    return any("SparkSession" in block["code"] for block in BLOCK.finditer(page.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", [page for page in pages(REPO) if is_on_spark(page)], ids=lambda page: page.stem)
def test_the_examples_of_a_page_run_on_spark(
    page: Path,
    spark: SparkSession,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert run_page(page) > 0


@pytest.mark.parametrize(
    "page", [page for page in pages(REPO) if not is_on_spark(page)], ids=lambda page: page.relative_to(REPO).as_posix()
)
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert run_page(page) > 0


def test_a_wrong_example_is_seen_at_its_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Words.\n\n```python run\nx = 1\n```\n\n```python run\nassert x == 2\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError) as raised:
        run_page(page)
    assert (raised.traceback[-1].path, raised.traceback[-1].lineno + 1) == (page, 8)


def test_other_blocks_are_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nraise SystemExit\n```\n\n```bash\nexit 1\n```\n", encoding="utf-8")
    assert run_page(page) == 0
