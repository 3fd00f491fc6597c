"""Maintenance of icefloe and of Apache Iceberg on the same tables: each reads what the other leaves."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from icefloe.table.table import Table
from interop.iceberg_reads import CATALOG, check_every_snapshot
from support.people import MERGE, SCHEMA, people, rows_of

pytestmark = pytest.mark.interop

FUTURE = "2100-01-01T00:00:00+00:00"
MODES = {f"write.{verb}.mode": MERGE for verb in ("delete", "update", "merge")}


def neglected(catalog, name: str, version: int) -> Table:
    """Many small files, deletes of every kind that the version has, a tag and a branch."""
    table = catalog.create_table(
        f"db.{name}_{version}", schema=SCHEMA, partition_by=["city"], format_version=version, properties=MODES
    )
    for number in range(6):
        table.append(people(*range(number * 4, number * 4 + 4), city=("Oslo", "Rome")[number % 2]))
    table.tag("before")
    table.delete("id in (1, 5, 6)")
    table.update({"amount": "amount + 1"}, where="id > 15")
    table.branch("side")
    table.append(people(100, city="Side"), branch="side")
    if version == 2:
        table.upsert(people(2, 3, 200, amount=9), on=["id", "city"], deletes="equality")
    return table


ACTIONS: dict[str, Callable[[Table], object]] = {
    "rewrite deletes": lambda table: table.rewrite_deletes().execute(),
    "compact": lambda table: table.compact(options={"min-input-files": "2"}).execute(),
    "compact sorted": lambda table: table.compact(
        strategy="sort", sort_by=["id desc"], options={"rewrite-all": "true"}
    ).execute(),
    "compact in z-order": lambda table: table.compact(
        strategy="zorder", zorder_by=["id", "amount"], options={"rewrite-all": "true"}
    ).execute(),
    "rewrite manifests": lambda table: table.rewrite_manifests().execute(),
    "expire": lambda table: table.expire(older_than=FUTURE).execute(),
    "remove orphans": lambda table: table.remove_orphans().execute(),
    "maintain": lambda table: table.maintain().execute(),
    "erase": lambda table: table.erase("id = 3").execute(),
}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_apache_iceberg_reads_tables_after_each_action(version, catalog, spark):
    table = neglected(catalog, "maintained", version)
    check_every_snapshot(spark, table)
    for name, action in ACTIONS.items():
        before = rows_of(table)
        action(table)
        table.refresh()
        assert rows_of(table) == [row for row in before if name != "erase" or row[0] != 3], name
        check_every_snapshot(spark, table)
    assert table.verify(snapshots="all", files=True, rows=True).ok


THEIRS = (
    "rewrite_data_files(table => '{table}', options => map('min-input-files', '2'))",
    "rewrite_position_delete_files(table => '{table}', options => map('rewrite-all', 'true'))",
    "rewrite_manifests(table => '{table}')",
    "expire_snapshots(table => '{table}', older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1)",
)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_tables_are_read_after_each_procedure_of_apache_iceberg(version, catalog, spark):
    table = neglected(catalog, "by_iceberg", version)
    before = rows_of(table)
    for procedure in THEIRS:
        spark.sql(f"CALL {CATALOG}.system.{procedure.format(table=table.name)}")
        assert rows_of(table.refresh()) == before, procedure
        assert table.at(tag="before").scan().count() == 24
        assert table.at(branch="side").scan("city = 'Side'").count() == 1
        check_every_snapshot(spark, table)
    assert table.verify(snapshots="all", files=True).ok
    table.append(pa.table(people(300)))
    table.compact(options={"rewrite-all": "true"}).execute()
    assert rows_of(table.refresh()) == sorted([*before, (300, "Oslo", 1)], key=repr)
    check_every_snapshot(spark, table)
