"""The page on verifying lists every rule with its severity, every invariant, and every finding of health."""

from __future__ import annotations

import re

from docs.test_code_blocks import REPO
from icefloe.maintenance.verify.findings import CONSEQUENCES, Rule
from icefloe.table.table import Table

PAGE = (REPO / "docs" / "verifying.md").read_text(encoding="utf-8")
ROW = re.compile(
    r"^\| `(?P<rule>[a-z-]+)` \| (?P<severity>error|warning|info) \|.*\| (?P<invariants>[I0-9, ]*)\|$", re.MULTILINE
)


def test_the_table_lists_every_rule_with_its_severity() -> None:
    listed = {found["rule"]: found["severity"] for found in ROW.finditer(PAGE)}
    assert listed == {rule.value: CONSEQUENCES[rule].severity.value for rule in Rule}


def test_every_invariant_is_covered_by_a_rule() -> None:
    covered = {name for found in ROW.finditer(PAGE) for name in re.findall(r"I\d+", found["invariants"])}
    explained = set(re.findall(r"^- (I\d+): ", PAGE, re.M))
    assert covered == explained == {f"I{number}" for number in range(1, 12)}


def test_the_commands_of_the_page_exist() -> None:
    named = set(re.findall(r"\bt\.(\w+)\(", PAGE))
    assert {name for name in named if not hasattr(Table, name)} == set()
