"""Table metadata that breaks a rule of the format which other readers do not mind; what is written keeps the rule."""

from __future__ import annotations

import pyarrow as pa
import pytest

from e2e.test_evolved_tables import put, stored
from support.tables import new_catalog

ROWS = pa.table({"id": [1, 2], "code": pa.array([b"ab", b"cd"], pa.binary(2))})


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_last_column_id_below_the_id_of_a_column_is_read_and_put_right(tmp_path, version):
    table = new_catalog(tmp_path).create_table("db.t", schema="id bigint, code fixed(2)", format_version=version)
    table.append(ROWS)
    put(table, lambda document: {**document, "last-column-id": 1})

    table = new_catalog(tmp_path).load_table("db.t")
    assert sorted(table.scan("id > 1").to_arrow()["code"].to_pylist()) == [b"cd"]
    table.append(ROWS)
    assert stored(table)["last-column-id"] == 2
    with table.update_schema() as update:
        update.add_column("later", "int")
    assert table.schema.field("later").id == 3
    assert stored(table)["last-column-id"] == 3
