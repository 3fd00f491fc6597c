"""``verify(rows=True)`` on Spark: tasks read the data files, and the findings are those of this process."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe.table.table import Table
from support.selection import thorough
from support.tables import new_catalog

pytestmark = pytest.mark.spark


def new_table(folder: Path, version: int) -> Table:
    """A partitioned, sorted table of six files with deleted rows."""
    table = new_catalog(folder).create_table(
        "db.t",
        "id bigint, city string, x double",
        format_version=version,
        partition_by=["city"],
        sort_by=["id"],
        properties={"write.delete.mode": "merge-on-read"},
    )
    for number in range(3):
        ids = list(range(number * 10, number * 10 + 4))
        table.append(pa.table({"id": ids, "city": ["Oslo", "Rome"] * 2, "x": [1.0, float("nan"), None, 2.0]}))
    table.delete("id in (1, 12)")
    return table


@pytest.mark.parametrize("version", [4, thorough(2), 3])
def test_findings_of_tasks_are_those_of_this_process(spark, tmp_path, version):
    table = new_table(tmp_path, version)
    table.append(spark.sql("SELECT 50L id, 'Bern' city, 1.0D x"))
    here, there = (table.verify(rows=True, files=True, spark=where) for where in (None, spark))
    assert (there.findings, there.checked) == (here.findings, here.checked) == ((), here.checked)
    assert (there.checked.data_files, there.checked.rows, there.checked.rows_without_checksums) == (7, 13, 0)
    paths = [Path(location.removeprefix("file://")) for location in table.scan().plan().tasks["location"].to_pylist()]
    rows = pq.ParquetFile(paths[0]).read()
    pq.write_table(rows.slice(0, 1), paths[0])  # fewer rows, other counts
    rows = pq.ParquetFile(paths[1]).read()
    changed = rows.set_column(0, rows.schema.field("id"), pa.array([900, 5], pa.int64()))  # bounds and order
    pq.write_table(changed, paths[1])
    paths[2].write_bytes(b"PAR1")
    here, there = (new_catalog(tmp_path).load_table("db.t").verify(rows=True, spark=where) for where in (None, spark))
    assert [str(found) for found in there.findings] == [str(found) for found in here.findings]
    assert {"record-counts", "bounds", "sort-order", "readable"} <= {str(found.rule) for found in there.findings}
    assert there.checked == here.checked
