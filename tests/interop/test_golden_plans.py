"""Plans of golden tables: the data files and delete files that pyiceberg plans, or that the specification asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import StaticTable

from icefloe.codecs.manifest.context import manifest_context
from icefloe.formats.read.file_read import FileRead
from icefloe.formats.read.reader import read_file
from icefloe.model.entries import DELETES, MANIFESTS, ContentType, concat
from icefloe.model.schema.schema import Schema
from icefloe.scan.tasks import Plan
from icefloe.tree.root import read_live_leaf, read_root
from icefloe.tree.store import ManifestCache, ManifestStore
from interop.golden import TABLES, Relative, has_root, metadata_files, metadata_of, plan_of
from interop.test_golden_tables import by_duckdb, rows
from support.delete_matching import applies, may_equal, may_name

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("golden_folder")]

Pairs = dict[str, set[str]]  # delete files by data file


def planned(plan: Plan) -> Pairs:
    deletes = plan.deletes["location"].to_pylist()
    tasks = plan.tasks.select(["location", "deletes", "dv_location"]).to_pylist()
    return {
        task["location"]: {deletes[n] for n in task["deletes"]}
        | ({task["dv_location"]} if task["dv_location"] is not None else set())
        for task in tasks
    }


def by_pyiceberg(file: str) -> Pairs:
    tasks = StaticTable.from_metadata(file).scan().plan_files()
    return {task.file.file_path: {delete.file_path for delete in task.delete_files} for task in tasks}


def by_the_rules(file: str) -> Pairs:
    """Every live data file with every live delete file that applies to it, tried one by one."""
    metadata = metadata_of(file)
    store = ManifestStore(Relative(), manifest_context(metadata), ManifestCache())
    root = read_root(store, metadata.current_snapshot)
    leaves = [read_live_leaf(store, root, leaf) for leaf in root.leaves(*MANIFESTS)]
    entries = concat([root.rows(ContentType.DATA, *DELETES), *leaves]).to_pylist()
    specs = {spec.spec_id: spec for spec in metadata.specs}
    found: Pairs = {row["location"]: set() for row in entries if row["content_type"] == ContentType.DATA}
    for data in entries:
        for delete in entries:
            if data["content_type"] != ContentType.DATA or delete["content_type"] == ContentType.DATA:
                continue
            is_equality = delete["content_type"] == ContentType.EQUALITY_DELETES
            reaches = may_equal(data, delete) if is_equality else may_name(delete, data["location"])
            if applies(data, delete, specs) and reaches:
                found[data["location"]].add(delete["location"])
    return found


@pytest.mark.parametrize("table", TABLES)
def test_files_and_deletes_are_those_of_the_rules(table: str) -> None:
    complete = [
        file for file in metadata_files(table) if has_root(metadata_of(file).current_snapshot)
    ]  # of some older ones the manifests are gone
    assert metadata_files(table)[-1] in complete
    for file in complete:
        assert planned(plan_of(metadata_of(file))) == by_the_rules(file), file


@pytest.mark.parametrize("table", [table for table in TABLES if not table.startswith("equality_deletes")])
def test_files_and_deletes_are_those_of_pyiceberg(table: str) -> None:
    file = metadata_files(table)[-1]
    found = planned(plan_of(metadata_of(file)))
    assert len(found) > 0
    assert found == by_pyiceberg(file)


@pytest.mark.parametrize("table", [table for table in TABLES if table.startswith("equality_deletes")])
def test_tables_with_equality_deletes_have_some_that_apply(table: str) -> None:
    file = metadata_files(table)[-1]
    plan = plan_of(metadata_of(file))
    assert ContentType.EQUALITY_DELETES in plan.deletes["content_type"].to_pylist()
    assert all(Path(location).exists() for location in plan.deletes["location"].to_pylist())
    with pytest.raises(ValueError, match="equality"):
        by_pyiceberg(file)


def live_rows_of(plan: Plan) -> list[str]:
    """The rows of a plan, its equality deletes applied row by row."""
    found = []
    deletes = plan.deletes.to_pylist()
    for task in plan.tasks.select(["location", "deletes"]).to_pylist():
        tests = []
        for delete in (deletes[number] for number in task["deletes"]):
            assert delete["content_type"] == ContentType.EQUALITY_DELETES
            compared = Schema(fields=tuple(plan.table_schema.by_id[i] for i in delete["equality_ids"]))
            gone = {tuple(row.values()) for row in content(delete["location"], compared)}
            tests.append(([field.name for field in compared.fields], gone))
        for row in content(task["location"], plan.schema):
            if not any(tuple(row[name] for name in names) in gone for names, gone in tests):
                found.append(repr(tuple(row.values())))
    return sorted(found)


def content(location: str, schema: Schema) -> list[dict[str, object]]:
    return [
        row for batch in read_file(Relative(), FileRead(location=location, schema=schema)) for row in batch.to_pylist()
    ]


@pytest.mark.parametrize("table", [table for table in TABLES if table.startswith("equality_deletes")])
def test_applying_the_planned_equality_deletes_gives_the_rows_of_duckdb(duck: Any, table: str) -> None:
    for file in metadata_files(table):
        if has_root(metadata_of(file).current_snapshot):
            assert live_rows_of(plan_of(metadata_of(file))) == rows(by_duckdb(duck, file)), file
