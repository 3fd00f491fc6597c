"""Table metadata that breaks a rule of the format which other readers do not mind; what is written keeps the rule."""

from __future__ import annotations

from typing import Any

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


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("fixed[ 2 ]", "fixed[2]"),
        ("fixed[2 ]", "fixed[2]"),
        ("FIXED[2]", "fixed[2]"),
        ("decimal( 9 , 2 )", "decimal(9, 2)"),
        ("Decimal(9,2)", "decimal(9, 2)"),
        ("LONG", "long"),
        ("geometry( EPSG:4326 )", "geometry(EPSG:4326)"),
    ],
)
def test_white_space_and_capitals_in_the_name_of_a_type_mean_nothing(tmp_path, written, read):
    table = new_catalog(tmp_path).create_table("db.t", schema="id bigint, code fixed(2)", format_version=3)

    def respell(document: dict[str, Any]) -> dict[str, Any]:
        for schema in document["schemas"]:
            schema["fields"][1]["type"] = written
        return document

    put(table, respell)
    table = new_catalog(tmp_path).load_table("db.t")
    assert str(table.schema.field("code").type) == read
    table.append(pa.table({"id": [1]}))
    assert stored(table)["schemas"][0]["fields"][1]["type"].replace(" ", "") == read.replace(" ", "")
