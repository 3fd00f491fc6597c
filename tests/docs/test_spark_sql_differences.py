"""The page on Spark SQL lists the differences from Apache Iceberg that the pages of statements mark, and no others."""

from __future__ import annotations

import re

from docs.test_code_blocks import REPO
from support.sql_pages import PAGES, statements

HEADING = "## Differences from Apache Iceberg\n"
ROW = re.compile(r"^\| `(?P<key>[a-z0-9-]+)` \|(?P<cells>.*)\|$", re.MULTILINE)
COLUMNS = 4  # beside the key


def listed() -> dict[str, list[str]]:
    """Map the keys of the table to the other cells of their rows."""
    text = (REPO / "docs" / "spark-sql.md").read_text(encoding="utf-8")
    section = text.split(HEADING, 1)[1].split("\n## ", 1)[0]
    return {row["key"]: [cell.strip() for cell in row["cells"].split(" | ")] for row in ROW.finditer(section)}


def marked() -> set[str]:
    """The keys of the differences that pages mark."""
    texts = (page.read_text(encoding="utf-8") for page in PAGES)
    differences = (statement.difference for text in texts for statement in statements(text))
    return {difference.key for difference in differences if difference is not None}


def test_every_difference_that_a_page_marks_is_listed_and_none_besides() -> None:
    assert len(marked()) > 0
    assert set(listed()) == marked()


def test_every_listed_difference_says_what_both_do_and_why() -> None:
    for key, cells in listed().items():
        assert len(cells) == COLUMNS, key
        assert all(cell != "" for cell in cells), key
