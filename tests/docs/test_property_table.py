"""The properties that pages list are those that icefloe acts on, with their true defaults."""

from __future__ import annotations

import re

import pytest

from docs.test_code_blocks import REPO
from icefloe.model.metadata import properties
from icefloe.model.metadata.properties import Property

KNOWN = {value.name: value for value in vars(properties).values() if isinstance(value, Property)}
LINE = re.compile(r"^\| `(?P<name>[a-z0-9.-]+\.[a-z0-9.-]+)` \| (?P<default>[^|]+) \|", re.MULTILINE)


def listed(page: str) -> dict[str, str]:
    """Map the properties of a page's table to their defaults."""
    text = (REPO / "docs" / page).read_text(encoding="utf-8")
    return {found["name"]: found["default"].strip() for found in LINE.finditer(text)}


@pytest.mark.parametrize("page", ["version-4.md", "writing.md"])
def test_listed_properties_exist_and_have_the_listed_defaults(page: str) -> None:
    found = listed(page)
    assert len(found) > 5
    assert {name: str(KNOWN[name].default).lower() for name in found} == found


def test_the_page_on_version_4_lists_every_property_of_its_upkeep() -> None:
    kinds = ("commit.root.", "commit.leaf.", "commit.manifest", "commit.upkeep.", "write.manifest-dv.")
    assert {name for name in KNOWN if name.startswith(kinds)} == set(listed("version-4.md"))
