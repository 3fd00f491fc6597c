"""icefloe reads every valid table of the conformance kit as the checker does, and refuses every invalid one."""

from __future__ import annotations

import json
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from conformance_kit.answers import INVALID, KIT, VALID, content, open_case, read_everything
from icefloe.errors import IcefloeError
from icefloe.model.schema import types
from icefloe.transforms import parse_transform
from support.conformance import check_v4

pytestmark = pytest.mark.broken_tables

make_kit: Any = import_module("make_kit")

TOLERATED = {
    "last-column-id-below-a-column": "readers count the ids themselves, and the next commit states the right one",
    "last-column-id-below-an-expression": "the same",
    "old-vector-not-kept": "readers compare the trees of the snapshot and of its parent instead",
    "root-with-schema-key": "readers ignore the key",
}

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
    findings, table = check_v4.check(KIT / "valid" / name / "table", check_rows=True)
    assert sorted({finding.rule for finding in findings}) == expected["findings"]
    assert {check_v4.RULES[rule][0] for rule in expected["findings"]} <= {"check"}
    assert check_v4.Contents(table).expected() == {k: v for k, v in expected.items() if k not in ABOUT_THE_CASE}


@pytest.mark.parametrize("name", INVALID)
def test_an_invalid_table_is_refused(name: str, tmp_path: Path) -> None:
    case = make_kit.unfold(KIT, name, tmp_path / "t")
    findings, _ = check_v4.check(tmp_path / "t", check_rows=True)
    assert case["rule"] in {finding.rule for finding in findings}
    assert (case["level"], case["statement"]) == check_v4.RULES[case["rule"]]
    if case["level"] == "read":
        with pytest.raises(IcefloeError):
            read_everything(open_case(tmp_path / "t"))


@pytest.mark.parametrize("name", [name for name in INVALID if name not in TOLERATED])
def test_verify_finds_the_fault_if_the_table_can_be_opened(name: str, tmp_path: Path) -> None:
    case = make_kit.unfold(KIT, name, tmp_path / "t")
    try:
        result = open_case(tmp_path / "t").verify(files=True, rows=True)
    except IcefloeError:
        assert case["level"] == "read"
        return
    assert {finding.severity for finding in result.findings} & {"error", "warning"} != set()
    assert case["level"] == "check" or not result.ok


def test_rows_are_compared_with_statistics_if_they_are_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_kit.unfold(KIT, "lower-bound-of-a-file-too-high", tmp_path / "t")
    assert check_v4.main([str(tmp_path / "t")]) == 0
    assert check_v4.main(["--rows", str(tmp_path / "t")]) == 1
    assert "id 1: lower bound is 11, a row has 10" in capsys.readouterr().out


TIMES = [datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(2026, 11, 18, 5), datetime(1, 1, 1), None]
INPUTS = [
    (pa.array([-7, 0, 2**40, None]), types.LONG, ["bucket[16]", "truncate[10]"]),
    (pa.array(["", "Llanfair", "Ærøskøbing", None]), types.STRING, ["bucket[16]", "truncate[3]"]),
    (pa.array([b"", b"\x00\xff\x10", None]), types.BINARY, ["bucket[16]", "truncate[2]"]),
    (pa.array([-7, 123456, None], pa.int64()).cast(pa.decimal128(19, 0)), types.Decimal(19, 0), ["bucket[7]"]),
    (pa.array([1, -106, None]).cast(pa.decimal128(21, 2)), types.Decimal(21, 2), ["bucket[7]", "truncate[50]"]),
    (pa.array([t and t.date() for t in TIMES]), types.DATE, ["bucket[16]", "year", "month", "day"]),
    (pa.array(TIMES, pa.timestamp("us")), types.TIMESTAMP, ["bucket[16]", "year", "month", "day", "hour"]),
    (pa.array(TIMES[:2], pa.timestamp("ns")), types.TIMESTAMP_NS, ["bucket[16]", "year", "month", "day", "hour"]),
]


@pytest.mark.parametrize(("values", "type_", "transforms"), INPUTS, ids=lambda value: str(value)[:12])
def test_the_checker_computes_partition_values_as_icefloe_does(
    values: pa.Array, type_: Any, transforms: list[str]
) -> None:
    for name in transforms:
        expected = check_v4.plain_values(parse_transform(name).apply(values, type_))
        apply = check_v4.transform_of(name)
        found = [None if value is None else apply(value) for value in check_v4.plain_values(values)]
        assert all(map(check_v4.same_value, found, expected)), (name, found, expected)


def test_every_rule_has_an_invalid_case() -> None:
    broken = {
        json.loads((KIT / "invalid" / name / "case.json").read_text(encoding="utf-8"))["rule"] for name in INVALID
    }
    assert broken == set(check_v4.RULES)


def test_there_are_enough_cases() -> None:
    assert len(VALID) >= 50
    assert len(INVALID) >= 60


@pytest.mark.slow
def test_the_kit_is_written_again_without_a_difference(tmp_path: Path) -> None:
    make_kit.write_kit(tmp_path)
    assert list(make_kit.differences(KIT, tmp_path)) == []


def test_differences_between_kits_are_found_by_content(tmp_path: Path) -> None:
    for name in ("old", "new"):
        for case in ("empty-table", "append-two-files"):
            make_kit.write_files(make_kit.read_files(KIT / "valid" / case), tmp_path / name / "valid" / case)
    assert list(make_kit.differences(tmp_path / "old", tmp_path / "new")) == []
    (tmp_path / "new/valid/append-two-files/table/data/D1.parquet").unlink()
    (tmp_path / "old/valid/empty-table/expected.json").unlink()
    root = next((tmp_path / "new/valid/append-two-files/table/metadata").glob("root-*"))
    root.write_bytes(root.read_bytes()[:-1] + b"2")
    assert [line.rpartition("/")[2] for line in make_kit.differences(tmp_path / "old", tmp_path / "new")] == [
        "D1.parquet: is not written any more",
        f"{root.name}: differs",
        "expected.json: is new",
    ]
