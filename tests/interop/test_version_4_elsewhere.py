"""A version 4 table in the hands of programs that do not know it: refused with an error, never read wrongly."""

from __future__ import annotations

import pyarrow as pa
import pytest

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def table(catalog):
    table = catalog.create_table("db.version_4_elsewhere", schema="id bigint", format_version=4)
    table.append(pa.table({"id": [1, 2, 3]}))
    table.delete("id = 2")
    return table


SAYS = {
    "pyiceberg": "format-version",  # it knows 1, 2 and 3
    "duckdb": "manifest-list",
    "iceberg-rust": "did not match any variant of untagged enum TableMetadataEnum",
    "apache iceberg": "missing list: manifests",  # without a manifest list it looks for what version 1 has
}


@pytest.mark.parametrize("program", SAYS)
def test_a_program_that_does_not_know_version_4_says_so(program, table, readers):
    with pytest.raises(Exception, match=SAYS[program]):  # each program has errors of its own
        readers[program](table)
