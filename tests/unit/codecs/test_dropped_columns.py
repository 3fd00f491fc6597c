"""A column goes that only a former partition spec needs: metadata and manifests of every version stay readable."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pyarrow as pa
import pytest

from icefloe.codecs.json.table_metadata import decode_metadata, encode_metadata
from icefloe.codecs.manifest.context import manifest_context
from icefloe.codecs.manifest.manifests import decode_leaf, encode_leaf
from icefloe.expr.filter.bind import bind
from icefloe.expr.prune.stats_eval import Match, evaluate
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.entries import ContentType, entries, partition_key
from icefloe.model.evolution.schema_history import add_schema
from icefloe.model.evolution.schema_update import update_of
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.spec import PartitionField
from icefloe.model.partition.spec_evolution import PartitionUpdate
from icefloe.model.partition.spec_history import with_expressions
from icefloe.model.text.ddl import parse_ddl
from icefloe.model.text.partition_text import partition_spec
from support.manifests.sample import data_file, partition

VERSIONS = (1, 2, 3, 4)
WHERE = "file:///t/metadata/v1.metadata.json"


def partitioned(version: int) -> TableMetadata:
    schema = parse_ddl("id bigint, region string, ts timestamp")
    table = TableMetadata(
        format_version=version,
        table_uuid="fb072c92-a02b-11e9-ae9c-1bb7bc9eca94",
        location="file:///t",
        last_updated_ms=1,
        last_column_id=3,
        schemas=(schema,),
        specs=(partition_spec(["region", "day(ts)", "truncate(10, id)"], schema),),
        last_partition_id=1002,
    )
    return with_expressions(table) if table.rules.expressions else table


def evolved(table: TableMetadata) -> TableMetadata:
    """The table without two partition fields, then without their columns, as it is read back from its file."""
    changed = PartitionUpdate(metadata=table).remove("region").remove("day(ts)").apply()
    schema = update_of(changed).drop_column("region").drop_column("ts").apply().schema
    return decode_metadata(encode_metadata(add_schema(changed, schema)), where=WHERE)


def manifest(table: TableMetadata) -> bytes:
    """One file of the first spec; manifests of version 1 are written as those of version 2 here."""
    values = {1000: "north", 1001: dt.date(2017, 11, 16), 1002: 20}
    row = data_file(location="file:///t/data/0.parquet")
    for field_id, value in values.items():
        row |= partition(field_id, value)
    context = manifest_context(replace(table, format_version=max(table.format_version, 2)))
    types = {partition_key(i): arrow_type(type_) for i, type_ in context.partition_types.items()}
    return encode_leaf(entries([row], types), context, content=ContentType.DATA_MANIFEST, spec_id=0)


def tuple_of(files: pa.Table) -> list[object]:
    return [files[f"lower_bound:p{field_id}"][0].as_py() for field_id in (1000, 1001, 1002)]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_manifest_of_a_former_spec_is_read_pruned_and_written_again(version: int) -> None:
    before = partitioned(version)
    after = evolved(before)
    context = manifest_context(after)

    files = decode_leaf(manifest(before), context, where="here", content=ContentType.DATA_MANIFEST)

    assert tuple_of(files) == ["north", dt.date(2017, 11, 16), 20]
    for text, expected in (("id = 25", Match.SOME), ("id = 30", Match.NONE), ("id < 30", Match.ALL)):
        found = evaluate(bind(parse_filter(text), after.schema), files, partition_fields(after))
        assert found.to_pylist() == [int(expected)], text
    if version > 1:
        again = encode_leaf(files, context, content=ContentType.DATA_MANIFEST, spec_id=0)
        assert tuple_of(decode_leaf(again, context, where="here", content=ContentType.DATA_MANIFEST)) == tuple_of(files)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_specs_of_the_table_are_those_that_the_version_allows(version: int) -> None:
    after = evolved(partitioned(version))

    assert after.schema.by_name.keys() == {"id"}
    left = [(field.name, field.transform) for field in after.spec.fields]
    kept = ("id_trunc", "truncate[10]")
    assert left == ([("region", "void"), ("ts_day", "void"), kept] if version == 1 else [kept])
    assert [field.name for field in after.specs[0].fields] == ["region", "ts_day", "id_trunc"]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_manifest_is_read_even_when_no_schema_has_the_column_any_more(version: int) -> None:
    before = partitioned(version)
    after = evolved(before)
    forgotten = manifest_context(replace(after, schemas=(after.schema,)))

    files = decode_leaf(manifest(before), forgotten, where="here", content=ContentType.DATA_MANIFEST)

    assert files["lower_bound:p1002"].to_pylist() == [20]
    assert files["record_count"].to_pylist() == [10]


def partition_fields(table: TableMetadata) -> tuple[PartitionField, ...]:
    return tuple({field.field_id: field for spec in table.specs for field in spec.fields}.values())
