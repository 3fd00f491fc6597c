"""The page on the conformance kit lists every rule and every case, and other pages link to it."""

from __future__ import annotations

import json
import re
from importlib import import_module
from typing import Any

import pytest

from conformance_kit.answers import INVALID, KIT, VALID
from docs.test_code_blocks import REPO
from support.conformance import check_v4

make_kit: Any = import_module("make_kit")
PAGE = (REPO / "docs" / "conformance.md").read_text(encoding="utf-8")


def listed(name: str) -> list[str]:
    """The first column of a list of the page."""
    part = PAGE.partition(f"<!-- {name} -->")[2].partition("<!-- end -->")[0]
    return re.findall(r"^\| `([a-z0-9-]+)` \|", part, re.MULTILINE)


def test_the_page_lists_the_cases_of_the_folder() -> None:
    assert listed("valid") == VALID
    assert listed("invalid") == INVALID


def test_the_page_lists_the_rules_of_the_checker() -> None:
    assert listed("rules") == list(check_v4.RULES)


def test_the_lists_are_those_that_the_script_writes() -> None:
    assert make_kit.filled(PAGE) == PAGE


def test_an_invalid_case_is_listed_with_its_rule() -> None:
    for name in INVALID:
        case = json.loads((KIT / "invalid" / name / "case.json").read_text(encoding="utf-8"))
        assert f"| `{name}` | `{case['rule']}` | {case['level']} | {case['text']} |" in PAGE


@pytest.mark.parametrize("page", ["README.md", "docs/version-4.md", "docs/architecture.md", "docs/development.md"])
def test_other_pages_link_to_the_kit(page: str) -> None:
    assert "conformance.md)" in (REPO / page).read_text(encoding="utf-8")
