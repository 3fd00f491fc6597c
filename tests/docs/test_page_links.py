"""Pages point only to files that are there, and to headings that those have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.test_code_blocks import REPO

LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
CODE = re.compile(r"^```.*?^```[ \t]*$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
PAGES = [REPO / "README.md", REPO / "CHANGELOG.md", *sorted((REPO / "docs").rglob("*.md"))]


def broken_links(page: Path) -> list[str]:
    """List the links of a page that lead nowhere; those to other sites are not followed."""
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    problems = []
    for link in LINK.finditer(text):
        place, _, heading = link["target"].partition("#")
        if "://" in place or place.startswith("mailto:"):
            continue
        target = (page.parent / place).resolve() if len(place) > 0 else page
        if not target.exists():
            problems.append(f"{page.name}: {link['target']} is not there")
        elif len(heading) > 0 and heading not in _headings(target):
            problems.append(f"{page.name}: {target.name} has no heading {heading}")
    return problems


def _headings(page: Path) -> set[str]:
    lines = [
        line.lstrip("#").strip().lower() for line in page.read_text(encoding="utf-8").splitlines() if line[:1] == "#"
    ]
    return {re.sub(r"[^\w\- ]", "", line).replace(" ", "-") for line in lines}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(REPO).as_posix())
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    assert broken_links(page) == []


def test_a_link_to_nothing_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One way\n[a](other.md) [b](#one-way) [c](#two) `[d](x.md)` [e](https://x.org/y)\n", encoding="utf-8"
    )
    assert broken_links(page) == ["page.md: other.md is not there", "page.md: page.md has no heading two"]
