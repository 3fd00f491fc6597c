"""Tables that other programs changed between two appends: new schemas and specs, keys that icefloe does not know."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icefloe.catalogs.catalog import Swapped
from icefloe.codecs.json.table_metadata import encode_metadata
from icefloe.errors import InputError
from icefloe.model.evolution.schema_history import add_schema
from icefloe.model.evolution.schema_update import update_of
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.spec_evolution import PartitionUpdate
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import LONG, STRING, Field, Struct
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from support.metadata_documents import metadata_json
from support.tables import VERSIONS, new_catalog

NOTE = {"x-note": {"by": ["another", None, True], "digits": 12}}


def put(table: Table, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Make a changed metadata file the current one, as another program would."""
    base = pointer_of(table).load()
    document = change(metadata_json(base.pointer))
    after = f"{base.pointer.removesuffix('.metadata.json')}-changed.metadata.json"
    path_of(after).write_text(json.dumps(document))
    swapped = pointer_of(table).catalog.swap(pointer_of(table).identifier, base.pointer, after)
    assert isinstance(swapped, Swapped)


def path_of(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def evolve(table: Table, change: Callable[[TableMetadata], TableMetadata]) -> None:
    changed = change(pointer_of(table).load().metadata)
    put(table, lambda _: json.loads(encode_metadata(changed)))


def stored(table: Table) -> dict[str, Any]:
    found: dict[str, Any] = metadata_json(pointer_of(table).load().pointer)
    return found


def ids(table: Table, where: str | None = None) -> list[int]:
    return sorted(table.scan(where).to_arrow()["id"].to_pylist())


def by_region(folder: Path, version: int) -> Table:
    table = new_catalog(folder).create_table(
        "db.t", schema="id bigint, region string", partition_by=["region", "bucket(4, id)"], format_version=version
    )
    table.append(pa.table({"id": [1, 2, 3], "region": ["north", "south", None]}))
    return table


def without_region(metadata: TableMetadata) -> TableMetadata:
    changed = PartitionUpdate(metadata=metadata).remove("region").apply()
    return add_schema(changed, update_of(changed).drop_column("region").apply().schema)


def only_current_schema(document: dict[str, Any]) -> dict[str, Any]:
    current = [s for s in document["schemas"] if s["schema-id"] == document["current-schema-id"]]
    snapshots = [{**snapshot, "schema-id": document["current-schema-id"]} for snapshot in document["snapshots"]]
    return {**document, "schemas": current, "snapshots": snapshots}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_table_lives_on_without_a_column_that_a_former_spec_needs(tmp_path, version):
    table = by_region(tmp_path, version)

    evolve(table, without_region)
    table.append(pa.table({"id": [4]}))

    assert table.scan().to_arrow().column_names == ["id"]
    assert ids(table) == [1, 2, 3, 4]
    assert ids(table, "id > 2") == [3, 4]
    assert table.delete("id = 1").rows_deleted == 1
    assert table.upsert(pa.table({"id": [2, 5]}), on=["id"]).rows_added >= 1
    assert ids(table) == [2, 3, 4, 5]
    with pytest.raises(InputError, match="no column 'region'"):
        table.scan("region = 'north'").to_arrow()


def test_a_table_is_read_and_grows_even_when_no_schema_tells_the_type_of_a_former_partition_value(tmp_path):
    table = by_region(tmp_path, 2)

    evolve(table, without_region)
    put(table, only_current_schema)
    table.append(pa.table({"id": [4]}))

    assert ids(table) == [1, 2, 3, 4]
    assert ids(table, "id > 2") == [3, 4]


def noted(document: dict[str, Any]) -> dict[str, Any]:
    """A note at every level of a metadata file."""

    def each(values: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**value, **NOTE} for value in values]

    schemas = [{**schema, "fields": each(schema["fields"])} for schema in document["schemas"]]
    for schema in schemas:
        inner = schema["fields"][1]["type"]
        schema["fields"][1]["type"] = {**inner, "fields": each(inner["fields"]), **NOTE}
    specs = [{**spec, "fields": each(spec["fields"])} for spec in document["partition-specs"]]
    implied = {"main": {"snapshot-id": document["current-snapshot-id"], "type": "branch"}}  # as version 1 leaves it out
    return {
        **document,
        "schemas": each(schemas),
        "partition-specs": each(specs),
        "sort-orders": each(document["sort-orders"]),
        "snapshots": each(document["snapshots"]),
        "refs": {name: {**ref, **NOTE} for name, ref in document.get("refs", implied).items()},
        **NOTE,
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_keys_that_icefloe_does_not_know_survive_an_append_at_every_level(tmp_path, version):
    table = new_catalog(tmp_path).create_table(
        "db.t", schema="id bigint, s struct<x: int>", partition_by=["bucket(4, id)"], format_version=version
    )
    rows = pa.table({"id": [1], "s": [{"x": 1}]})
    table.append(rows)
    put(table, noted)
    before = stored(table)

    table.append(rows)

    after = stored(table)
    for key in ("x-note", "schemas", "partition-specs", "sort-orders"):
        assert after[key] == before[key], key
    assert after["snapshots"][:1] == before["snapshots"]
    assert after["snapshots"][0]["x-note"] == NOTE["x-note"]
    assert after["refs"]["main"]["x-note"] == NOTE["x-note"]
    assert after["refs"]["main"]["snapshot-id"] == after["current-snapshot-id"] != before["current-snapshot-id"]
    assert ids(table) == [1, 1]


def test_rows_without_a_column_are_stored_with_its_write_default(tmp_path):
    inner = Struct((Field(4, "x", LONG, write_default=7),))
    schema = Schema(
        fields=(Field(1, "id", LONG, True), Field(2, "note", STRING, True, write_default="none"), Field(3, "s", inner))
    )
    table = new_catalog(tmp_path).create_table("db.t", schema=schema, format_version=4)

    table.append(pa.table({"id": [1], "s": pa.array([{}], pa.struct([]))}))
    table.append(pa.RecordBatchReader.from_batches(pa.schema({"id": pa.int64()}), [pa.record_batch({"id": [2]})]))

    rows = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    assert rows == [{"id": 1, "note": "none", "s": {"x": 7}}, {"id": 2, "note": "none", "s": None}]
    assert ids(table, "note = 'none'") == [1, 2]
    with pytest.raises(InputError, match="required column id is missing"):
        table.append(pa.table({"note": ["a"]}))


@pytest.mark.parametrize("version", VERSIONS)
def test_lists_and_structs_are_tested_for_null_in_scans_and_deletes(tmp_path, version):
    table = new_catalog(tmp_path).create_table(
        "db.t", schema="id bigint, tags array<string>, s struct<x: int>", format_version=version
    )
    table.append(
        pa.table({"id": [1, 2, 3], "tags": [["a"], [], None], "s": [{"x": 1}, {"x": None}, None]}).cast(
            pa.schema({"id": pa.int64(), "tags": pa.list_(pa.string()), "s": pa.struct({"x": pa.int32()})})
        )
    )
    table.append(pa.table({"id": [4]}))

    assert ids(table, "tags IS NULL") == [3, 4]
    assert ids(table, "tags IS NOT NULL AND s.x IS NULL") == [2]
    assert ids(table, "s IS NULL") == [3, 4]
    assert table.scan("s IS NOT NULL", columns=["id"]).to_arrow().to_pylist() == [{"id": 1}, {"id": 2}]
    assert table.delete("tags IS NULL").rows_deleted == 2
    assert ids(table) == [1, 2]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_branch_is_read_with_the_columns_of_now_and_a_tag_with_those_of_its_time(tmp_path: Path, version: int):
    table = by_region(tmp_path, version)
    table.branch("dev")
    table.tag("then")
    with table.update_schema() as schema:
        schema.rename_column("region", "area")
    assert table.at(branch="dev").scan("area = 'north'").to_arrow().to_pylist() == [{"id": 1, "area": "north"}]
    assert table.at(tag="then").scan("region = 'north'").to_arrow().to_pylist() == [{"id": 1, "region": "north"}]
    table.delete("area = 'north'", branch="dev")
    assert table.at(branch="dev").scan(columns=["area"]).count() == 2
