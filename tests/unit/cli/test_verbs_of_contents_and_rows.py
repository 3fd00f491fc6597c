"""Verbs that look into a table, and verbs that change its rows."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefloe
from icefloe.cli.verb import ExitCode
from support.command_line import CommandLine


def test_scan_prints_rows_in_every_form(run: CommandLine, orders: icefloe.Table) -> None:
    assert run("scan", "shop.orders", "city = 'Rome' and id < 4", "-o", "json").json == [
        {"id": 2, "city": "Rome", "amount": "2.00"}
    ]
    assert run("scan", "shop.orders", "id in (1, 3)", "--columns", "id, amount", "-o", "csv").lines == [
        "id,amount",
        "3,",
        "1,1.50",
    ]
    assert run("scan", "shop.orders", "id = 3").lines == ["id   city   amount", "──────────────────", " 3   Oslo"]
    assert run("scan", "shop.orders", "--count").out == "4\n"
    assert run("scan", "shop.orders", "id > 99", "-o", "json").json == []


def test_scan_reads_older_snapshots_tags_and_times(run: CommandLine, orders: icefloe.Table) -> None:
    first = orders.snapshots[0].snapshot_id
    orders.tag("v1", snapshot=first)
    for point in (["--snapshot", first], ["--tag", "v1"]):
        assert run("scan", "shop.orders", "--count", *point, "-o", "json").json == {"rows": 3}


def test_scan_refuses_a_negative_limit(run: CommandLine, orders: icefloe.Table) -> None:
    assert run("scan", "shop.orders", "--limit", -1).code == ExitCode.USAGE


def test_explain_says_why_files_are_skipped(run: CommandLine, orders: icefloe.Table) -> None:
    assert "file skipped" not in run("explain", "shop.orders").out
    assert "partition: city = 'Oslo'" in run("explain", "shop.orders", "city = 'Oslo'").out
    trace = run("explain", "shop.orders", "city = 'Oslo'", "-o", "json").json
    assert sorted(row["decision"] for row in trace if row["kind"] == "file") == ["kept", "skipped", "skipped"]


def test_tree_draws_text_mermaid_svg_and_json(run: CommandLine, orders: icefloe.Table, tmp_path: Path) -> None:
    text = run("tree", "shop.orders").out
    assert text.strip() == str(orders.refresh().at().outline())
    flowchart = run("tree", "shop.orders", "--form", "mermaid").out
    assert flowchart.startswith("flowchart LR\n")
    assert flowchart.count("-->") == 4  # the root, and three data files
    image = tmp_path / "tree.svg"
    assert run("tree", "shop.orders", "--form", "svg", "--file", image).out == f"wrote {image}\n"
    drawn = ET.parse(image).getroot()
    assert len(drawn.findall("{http://www.w3.org/2000/svg}text")) == 5
    node = run("tree", "shop.orders", "-o", "json").json
    assert (node["kind"], len(node["children"][0]["children"])) == ("metadata", 3)


def test_append_adds_rows_of_csv_json_and_parquet_files(
    run: CommandLine, orders: icefloe.Table, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("id,city,amount\n10,Oslo,7.25\n")
    (tmp_path / "b.jsonl").write_text('{"id": 11, "city": "Rome"}\n')
    pq.write_table(pa.table({"id": [12], "city": ["Rome"]}), tmp_path / "c.parquet")
    for name in ("a.csv", "b.jsonl", "c.parquet"):
        assert run("append", "shop.orders", tmp_path / name, "-o", "json").json["rows_added"] == 1
    added = orders.refresh().scan("id >= 10").to_arrow().sort_by("id").to_pylist()
    assert [(row["id"], row["city"], str(row["amount"])) for row in added] == [
        (10, "Oslo", "7.25"),
        (11, "Rome", "None"),
        (12, "Rome", "None"),
    ]


def test_append_with_a_key_happens_once(run: CommandLine, orders: icefloe.Table, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,city\n10,Oslo\n")
    first, second = (run("append", "shop.orders", tmp_path / "a.csv", "--idempotency-key", "load-7") for _ in range(2))
    assert "+1 files (1 rows" in first.out
    assert "already committed" in second.out
    assert orders.refresh().scan().count() == 5


def test_append_refuses_files_that_it_cannot_read(run: CommandLine, orders: icefloe.Table, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("id\n1\n")
    (tmp_path / "bad.csv").write_text("id,city\nten,Oslo\n")
    missing = run("append", "shop.orders", tmp_path / "b.csv")
    assert (missing.code, "there is no file" in missing.err) == (ExitCode.ERROR, True)
    other = run("append", "shop.orders", tmp_path / "a.txt")
    assert (other.code, "give files of one format" in other.err) == (ExitCode.USAGE, True)
    bad = run("append", "shop.orders", tmp_path / "bad.csv")
    assert (bad.code, "the rows of bad.csv cannot be read" in bad.err) == (ExitCode.USAGE, True)
    assert orders.refresh().scan().count() == 4


def test_delete_shows_its_plan_and_changes_nothing_without_execute(run: CommandLine, orders: icefloe.Table) -> None:
    plan = run("delete", "shop.orders", "city = 'Oslo'")
    assert plan.out == "2 rows of shop.orders match, in at most 1 data files; --execute deletes them\n"
    assert orders.refresh().scan().count() == 4
    assert run("delete", "shop.orders", "city = 'Oslo'", "--execute", "-o", "json").json["rows_deleted"] == 2
    assert orders.refresh().scan().count() == 2


def test_import_uses_the_files_of_a_folder(run: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "visits/year=2026").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "visits/year=2026/part-0.parquet")
    answer = run("import", "shop.visits", tmp_path / "visits", "-o", "json")
    assert (answer.code, answer.json["partitioned_by"]) == (ExitCode.OK, ["year"])
    assert run.catalog().load_table("shop.visits").scan("year = 2026").count() == 2
    again = run("import", "shop.visits", tmp_path / "visits")
    assert (again.code, "shop.visits" in again.err) == (ExitCode.ERROR, True)
    assert run("import", "shop.other", tmp_path / "absent").code == ExitCode.ERROR


def test_import_takes_a_version_of_a_delta_table(run: CommandLine, tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(tmp_path / "sales", pa.table({"id": [1, 2, 3]}))
    deltalake.DeltaTable(tmp_path / "sales").delete("id = 2")
    assert run("import", "shop.sales", tmp_path / "sales", "--delta").code == ExitCode.OK
    first = run("import", "shop.first", tmp_path / "sales", "--delta", "--delta-version", "0", "-o", "json")
    assert first.code == ExitCode.OK
    catalog = run.catalog()
    assert [catalog.load_table(name).scan().count() for name in ("shop.sales", "shop.first")] == [2, 3]
    plain = run("import", "shop.plain", tmp_path / "sales")
    assert (plain.code, "Delta" in plain.err) == (ExitCode.USAGE, True)
