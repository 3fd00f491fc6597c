"""Verbs about whole tables: tables, create, describe, schema, upgrade, drop."""

from __future__ import annotations

from pathlib import Path

import icefloe
from icefloe.cli.verb import ExitCode
from support.command_line import CommandLine


def test_tables_lists_the_tables_of_all_namespaces(run: CommandLine, orders: icefloe.Table) -> None:
    run.catalog().create_table("shop.eu.visits", schema="id bigint")
    expected = [
        {"namespace": "shop", "table": "shop.orders"},
        {"namespace": "shop.eu", "table": "shop.eu.visits"},
    ]
    assert run("tables", "-o", "json").json == expected
    assert run("tables", "shop.eu", "-o", "json").json == expected[1:]
    assert run("tables", "-o", "csv").out == "namespace,table\nshop,shop.orders\nshop.eu,shop.eu.visits\n"
    assert run("tables").lines[2:] == [
        "shop        shop.orders",
        "shop.eu     shop.eu.visits",
        "2 tables in catalog default",
    ]


def test_create_makes_the_table_that_describe_shows(run: CommandLine) -> None:
    made = run(
        "create", "shop.visits", "--schema", "id bigint not null, ts timestamp", "--partition-by", "day(ts)",
        "--partition-by", "bucket(4, id)", "--sort-by", "id desc", "--format-version", 3, "--property", "owner=me",
        "-o", "json",
    )  # fmt: skip
    assert made.code == ExitCode.OK
    described = run("describe", "shop.visits", "-o", "json").json
    assert described == made.json
    assert described["columns"] == ["id long not null", "ts timestamptz"]
    assert described["partitioned_by"] == ["day(ts)", "bucket(4, id)"]
    assert described["sorted_by"] == ["id desc nulls last"]
    assert (described["format_version"], described["snapshot"], described["rows"]) == (3, None, None)
    assert described["properties"] == {"owner": "me"}


def test_create_refuses_a_property_without_a_value(run: CommandLine) -> None:
    answer = run("create", "shop.visits", "--schema", "id bigint", "--property", "owner")
    assert answer.code == ExitCode.USAGE
    assert "--property owner: expected name=value" in answer.err


def test_describe_shows_figures_refs_and_properties_to_people(run: CommandLine, orders: icefloe.Table) -> None:
    orders.tag("v1")
    lines = run("describe", "shop.orders").lines
    current = orders.metadata.current_snapshot_id
    for line in (
        "name            shop.orders",
        "columns         id long not null",
        "                city string",
        "rows            4",
        f"refs            main = branch at {current}",
        f"                v1 = tag at {current}",
        "properties      owner = me",
    ):
        assert line in lines


def test_a_table_is_named_by_its_metadata_file_too(run: CommandLine, orders: icefloe.Table) -> None:
    by_file = run("describe", orders.metadata_location, "-o", "json", options=False).json
    assert by_file["uuid"] == run("describe", "shop.orders", "-o", "json").json["uuid"]


def test_schema_lists_nested_fields_and_former_schemas(run: CommandLine) -> None:
    table = run.catalog().create_table("shop.people", schema="id int, who struct<name: string>")
    with table.update_schema() as edit:
        edit.add_column("age", "int", doc="in years")
    columns = run("schema", "shop.people", "-o", "json").json
    assert [(row["id"], row["name"], row["type"], row["doc"]) for row in columns] == [
        (1, "id", "int", None),
        (2, "who", "struct<3: name: string>", None),
        (3, "who.name", "string", None),
        (4, "age", "int", "in years"),
    ]  # fmt: skip
    history = run("schema", "shop.people", "--history", "-o", "json").json
    assert [row["schema_id"] for row in history] == [0, 0, 0, 1, 1, 1, 1]
    assert run("schema", "shop.people").lines[0].split() == ["id", "name", "type", "required", "default", "doc"]


def test_upgrade_shows_its_plan_and_changes_nothing_without_execute(run: CommandLine) -> None:
    table = run.catalog().create_table("shop.old", schema="id bigint", format_version=2)
    plan = run("upgrade", "shop.old", 4)
    assert "has format version 2; --execute upgrades it to 4, which cannot be undone" in plan.out
    assert table.refresh().format_version == 2
    assert run("upgrade", "shop.old", 4, "--execute", "-o", "json").json["operation"] == "upgrade"
    assert table.refresh().format_version == 4


def test_drop_shows_its_plan_and_changes_nothing_without_execute(
    run: CommandLine, orders: icefloe.Table, tmp_path: Path
) -> None:
    assert "removes it from the catalog and deletes all files" in run("drop", "shop.orders", "--purge").out
    assert run.catalog().table_exists("shop.orders")
    assert run("drop", "shop.orders", "--purge", "--execute", "-o", "json").json["data_files"] == 3
    assert not run.catalog().table_exists("shop.orders")
    assert list((tmp_path / "wh").rglob("*.parquet")) == []
