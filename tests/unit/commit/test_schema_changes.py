"""Changes of the schema as commits."""

from __future__ import annotations

import pytest

from support.tables import VERSIONS, new_catalog

pytestmark = pytest.mark.parametrize("version", VERSIONS)


def test_a_new_column_gets_the_next_id(tmp_path, version):
    table = new_catalog(tmp_path).create_table("db.t", schema="id bigint", format_version=version)
    with table.update_schema() as edit:
        edit.add_column("note", "string")
    assert [(column.id, column.name) for column in table.schema.fields] == [(1, "id"), (2, "note")]
    assert table.metadata.last_column_id == 2


def test_the_id_of_a_dropped_column_is_not_used_again(tmp_path, version):
    table = new_catalog(tmp_path).create_table("db.t", schema="id bigint, note string", format_version=version)
    with table.update_schema() as edit:
        edit.drop_column("note")
    with table.update_schema() as edit:
        edit.add_column("note", "string")
    assert [(column.id, column.name) for column in table.schema.fields] == [(1, "id"), (3, "note")]
