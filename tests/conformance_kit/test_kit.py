"""icefloe reads every valid table of the conformance kit as the checker does, and refuses every invalid one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conformance_kit.answers import INVALID, KIT, VALID, content, open_case, read_everything
from icefloe.errors import IcefloeError

check_v4: Any = pytest.importorskip("check_v4")
make_kit: Any = pytest.importorskip("make_kit")

ABOUT_THE_CASE = ("case", "section", "text", "findings")


@pytest.mark.parametrize("name", VALID)
def test_a_valid_table_has_the_expected_content(name: str) -> None:
    expected = json.loads((KIT / "valid" / name / "expected.json").read_text(encoding="utf-8"))
    said = {key: expected.pop(key) for key in ABOUT_THE_CASE}
    assert said["case"] == name
    assert content(open_case(KIT / "valid" / name / "table")) == expected


@pytest.mark.parametrize("name", VALID)
def test_the_checker_finds_in_a_valid_table_what_the_case_says(name: str) -> None:
    expected = json.loads((KIT / "valid" / name / "expected.json").read_text(encoding="utf-8"))
    findings, table = check_v4.check(KIT / "valid" / name / "table")
    assert sorted({finding.rule for finding in findings}) == expected["findings"]
    assert {check_v4.RULES[rule][0] for rule in expected["findings"]} <= {"check"}
    assert check_v4.Contents(table).expected() == {k: v for k, v in expected.items() if k not in ABOUT_THE_CASE}


@pytest.mark.parametrize("name", INVALID)
def test_an_invalid_table_is_refused(name: str, tmp_path: Path) -> None:
    case = make_kit.unfold(KIT, name, tmp_path / "t")
    findings, _ = check_v4.check(tmp_path / "t")
    assert case["rule"] in {finding.rule for finding in findings}
    assert (case["level"], case["statement"]) == check_v4.RULES[case["rule"]]
    if case["level"] == "read":
        with pytest.raises(IcefloeError):
            read_everything(open_case(tmp_path / "t"))


def test_every_rule_has_an_invalid_case() -> None:
    broken = {
        json.loads((KIT / "invalid" / name / "case.json").read_text(encoding="utf-8"))["rule"] for name in INVALID
    }
    assert broken == set(check_v4.RULES)


def test_there_are_enough_cases() -> None:
    assert len(VALID) >= 50
    assert len(INVALID) >= 60
