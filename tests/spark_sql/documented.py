"""The statement kinds of Apache Iceberg's documentation: what the tests find about them, and what docs/ says.

A page of statements names its kinds: the line ``-- [DROP TABLE]`` begins one. Tests in Python name theirs with
``documents``. A kind of which no statement is refused runs as it is. If a statement is refused, others of the kind do
the same, or the kind is not there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, TypeVar

from support.sql_pages import statements

PAGES = Path(__file__).parent / "documentation"
DOCS = Path(__file__).resolve().parents[2] / "docs" / "spark-sql.md"
HEADING = "## The statements of Apache Iceberg's documentation"

Outcome = Literal["runs", "otherwise", "missing"]
Kinds = dict[tuple[str, str], Outcome]  # by page and name
Test = TypeVar("Test", bound=Callable[..., None])

_KIND = re.compile(r"-- \[(.+)\]")
_ITEM = re.compile(r"`([^`]+)`")
_IN_PYTHON: Kinds = {}


def documents(page: str, *kinds: str, outcome: Outcome = "runs") -> Callable[[Test], Test]:
    """Say which kinds of a page a test checks."""

    def mark(test: Test) -> Test:
        _IN_PYTHON.update({(page, kind): outcome for kind in kinds})
        return test

    return mark


def checked_kinds() -> Kinds:
    """The kinds that the pages and the tests in Python check."""
    found: Kinds = dict(_IN_PYTHON)
    for page in sorted(PAGES.glob("*.sql")):
        for kind, outcome in page_kinds(page.read_text(encoding="utf-8")):
            assert (page.stem, kind) not in found, f"{page.stem}: {kind} is there twice"
            found[page.stem, kind] = outcome
    return found


def page_kinds(text: str) -> Iterator[tuple[str, Outcome]]:
    """The kinds of a page, each with its outcome."""
    begins = [
        (number, found[1]) for number, line in enumerate(text.splitlines(), 1) if (found := _KIND.fullmatch(line))
    ]
    found = list(statements(text))
    before = [statement for statement in found if statement.line < begins[0][0]]
    assert all(statement.error is None for statement in before), "a statement that is refused must belong to a kind"
    ends = [*(number for number, _ in begins[1:]), len(text)]
    for (begin, kind), end in zip(begins, ends, strict=True):
        errors = [statement.error for statement in found if begin < statement.line < end]
        assert len(errors) > 0, f"{kind}: no statement"
        refused = [error for error in errors if error is not None]
        yield kind, "runs" if len(refused) == 0 else "missing" if len(refused) == len(errors) else "otherwise"


def described_kinds(text: str) -> Kinds:
    """The kinds in the table of the documentation: the third column of a row says ``run``, ``no: why`` or how else."""
    table = text.split(HEADING, 1)[1].split("\n## ", 1)[0]
    found: Kinds = {}
    page = ""
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|") or cells[0] in ("page", "---"):
            continue
        page = page if cells[0] == "" else cells[0]
        outcome: Outcome = "runs" if cells[2] == "run" else "missing" if cells[2].startswith("no: ") else "otherwise"
        for kind in _ITEM.findall(cells[1]):
            assert (page, kind) not in found, f"{page}: {kind} is there twice"
            found[page, kind] = outcome
    return found
