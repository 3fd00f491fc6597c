"""``changes()`` and Apache Iceberg's procedure ``create_changelog_view`` return the same rows.

Apache Iceberg refuses snapshots with delete files, so the histories are of appends and of copy-on-write.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from icefloe.scan.changes.plan import CHANGE_TYPE
from interop.iceberg_reads import CATALOG
from interop.plain_rows import as_texts
from support.people import COPY, SCHEMA, people

pytestmark = pytest.mark.interop


def changed_table(catalog, version: int):
    """Appends, updates, deletes, an overwrite and a rewrite of manifests, by copy-on-write."""
    modes = {f"write.{verb}.mode": COPY for verb in ("delete", "update", "merge")}
    table = catalog.create_table(
        f"db.changelog{version}", schema=SCHEMA, partition_by=["city"], format_version=version, properties=modes
    )
    table.append(people(1, 2, 3))
    table.append(people(4, 5, city="Rome"))
    table.update({"amount": "amount + 1"}, where="id in (2, 4)")
    table.delete("id = 3")
    table.rewrite_manifests().execute()
    table.overwrite(people(5, 6, city="Rome", amount=7), where="city = 'Rome'")
    table.append(people(7, city=None))
    return table


def texts(rows: pa.Table) -> list[str]:
    """The rows with their change types in capitals."""
    return as_texts({**row, CHANGE_TYPE: row[CHANGE_TYPE].upper()} for row in rows.to_pylist())


@pytest.mark.parametrize("version", [1, 2, 3])
def test_apache_iceberg_returns_the_same_changes(version, catalog, spark):
    table = changed_table(catalog, version)
    first, *_, last = (snapshot.snapshot_id for snapshot in table.snapshots)
    for options in ({}, {"start-snapshot-id": first, "end-snapshot-id": last}):
        since = options.get("start-snapshot-id")
        shown = ", ".join(f"'{name}', '{value}'" for name, value in options.items())
        given = "" if len(options) == 0 else f", options => map({shown})"
        for more, changes in (
            ("", table.changes(since)),
            (", identifier_columns => array('id')", table.changes(since, images=True, keys=["id"])),
        ):
            spark.sql(
                f"CALL {CATALOG}.system.create_changelog_view(table => '{table.name}', changelog_view => 'theirs'"
                f"{given}{more})"
            )
            theirs = texts(spark.table("theirs").toArrow())
            assert theirs == texts(changes.to_arrow())
            assert len(theirs) > 0
        spark.sql(
            f"CALL {CATALOG}.system.create_changelog_view(table => '{table.name}', changelog_view => 'theirs'{given},"
            " net_changes => true)"
        )
        columns = ["id", "city", "amount", CHANGE_TYPE]  # which of several snapshots made a net change is not said
        net = table.changes(since, net=True).to_arrow().select(columns)
        assert texts(spark.table("theirs").select(*columns).toArrow()) == texts(net)
