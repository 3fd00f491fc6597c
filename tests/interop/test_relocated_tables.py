"""Apache Iceberg reads tables that were relocated and whose old folder is gone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from interop.iceberg_reads import check_every_snapshot
from interop.test_maintenance_with_iceberg import neglected
from support.people import people, rows_of

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("version", [2, 3])
def test_apache_iceberg_reads_every_snapshot_of_a_relocated_table(version, catalog, spark, tmp_path):
    table = neglected(catalog, "relocated", version)
    before = rows_of(table)
    result = table.relocate(f"{tmp_path}/archive/t").execute()
    assert result.delete_files > 0
    shutil.rmtree(Path(result.former_location.removeprefix("file://")))
    assert rows_of(table) == before
    check_every_snapshot(spark, table)
    table.append(people(300, city="Rome"))
    table.delete("id = 9")
    check_every_snapshot(spark, table)
    assert table.verify(snapshots="all", files=True, rows=True).ok
