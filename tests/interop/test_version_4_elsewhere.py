"""A version 4 table in the hands of programs that do not know it: refused with an error, never read wrongly.

The files below it are those of version 3, so that a copy of its metadata in version 3 is read by all.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from icefloe.commit.loop import commit
from icefloe.commit.operations.append import Append
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.model.entries import ContentType, Status, put
from icefloe.table.held_table import pointer_of
from icefloe.tree.file_changes import FileChanges
from icefloe.tree.root import read_root

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


def copied_to_version_3(table, catalog, name):
    """A version 3 table of the same data files and the same deletion vectors, as programs get it that know no more."""
    copy = catalog.create_table(name, schema="id bigint", format_version=3)
    base = pointer_of(table).load()
    root = read_root(base.store, base.metadata.current_snapshot)
    data, vectors = (_new(root.rows(kind)) for kind in (ContentType.DATA, ContentType.POSITION_DELETES))
    commit(pointer_of(copy), Append(added=data))
    commit(pointer_of(copy), RowDelta(changes=FileChanges(added=vectors), read=copy.metadata.current_snapshot))
    return copy


def _new(rows: pa.Table) -> pa.Table:
    """Entries to add: the commit gives them their numbers."""
    for name in ("snapshot_id", "sequence_number", "file_sequence_number", "first_row_id"):
        rows = put(rows, name, pa.nulls(rows.num_rows, rows.schema.field(name).type))
    return put(rows, "status", int(Status.ADDED))


def test_programs_that_know_version_3_apply_the_vectors_in_a_copy_of_the_metadata(catalog, readers):
    """pyiceberg matches vectors with data files by the names in the Puffin footer, and showed the deleted rows."""
    table = catalog.create_table("db.served_4", schema="id bigint", format_version=4)
    table.append(pa.table({"id": [1, 2, 3]}))
    table.append(pa.table({"id": [4, 5, 6]}))
    table.delete("id in (2, 6)")
    copy = copied_to_version_3(table, catalog, "db.served_3")
    found = {name: sorted(read(copy)["id"].to_pylist()) for name, read in readers.items()}
    assert found == {name: [1, 3, 4, 5] for name in readers}
