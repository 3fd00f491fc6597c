"""Metadata that breaks the format is refused by the field that is wrong, and nothing in it crashes the reader."""

from __future__ import annotations

import contextlib
import gzip
import json
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icefloe.codecs.json.table_metadata import decode_metadata, encode_metadata
from icefloe.errors import CorruptFile, FormatError, LimitError, UnsupportedError
from icefloe.limits import Limits
from support.metadata_documents import WHERE, decode, document, schema, snapshot
from support.selection import examples

FIELD = {"source-id": 1, "field-id": 1000, "name": "a", "transform": "day"}
KEY = {"direction": "asc", "null-order": "nulls-first", "transform": "identity"}
REF = {"snapshot-id": 7, "type": "branch"}
STATISTICS = {
    "snapshot-id": 7,
    "statistics-path": "s3://b/s",
    "file-size-in-bytes": 1,
    "file-footer-size-in-bytes": 1,
    "blob-metadata": [],
}
BLOB = {"type": "ndv", "snapshot-id": 7, "sequence-number": 1, "fields": [1]}


def spec(*fields: object) -> dict[str, object]:
    return {"partition_specs": [{"spec-id": 0, "fields": list(fields)}]}


def order(**changes: object) -> dict[str, object]:
    return {"sort_orders": [{"order-id": 0, "fields": [{**KEY, "source-id": 1, **changes}]}]}


BROKEN = [
    ({"location": 5}, "location: expected a string, got 5"),
    ({"last_updated_ms": "now"}, 'last-updated-ms: expected a long, got "now"'),
    ({"last_updated_ms": 2**63}, "last-updated-ms: expected a long, got 9223372036854775808"),
    ({"last_updated_ms": 10**50}, "last-updated-ms: expected a long, got 1000000000"),
    ({"last_column_id": 1.5}, "last-column-id: expected an int of 0 or more, got 1.5"),
    ({"last_column_id": -1}, "last-column-id: expected an int of 0 or more, got -1"),
    ({"last_sequence_number": -1}, "last-sequence-number: expected a long of 0 or more, got -1"),
    ({"current_schema_id": 3}, "current-schema-id: there is no 3, only 0"),
    ({"default_spec_id": 3}, "default-spec-id: there is no 3"),
    ({"default_sort_order_id": 3}, "default-sort-order-id: there is no 3"),
    ({"current_snapshot_id": 3}, "current-snapshot-id: there is no snapshot 3"),
    ({"table_uuid": "NULL"}, "missing table-uuid"),
    ({"table_uuid": "9c12d441-03fe-4693-9a96"}, "table-uuid: expected a UUID, got .9c12d441-03fe-4693-9a96"),
    ({"table_uuid": ""}, "table-uuid: expected a UUID, got ..$"),
    ({"schemas": []}, "missing schemas"),
    ({"schemas": [{}]}, r"schemas\[0\]: missing type"),
    ({"schemas": [schema(), schema()]}, r"schemas\[1\].schema-id: 0 is also the id of schemas\[0\]"),
    ({"schemas": [schema(id="1")]}, r'schemas\[0\].fields\[0\].id: expected an int, got "1"'),
    ({"schemas": [schema(required="yes")]}, r'fields\[0\].required: expected a boolean, got "yes"'),
    ({"schemas": [schema(type=5)]}, r"fields\[0\].type: expected a string or an object, got 5"),
    ({"schemas": [schema(type={"type": "bag"})]}, r'type.type: expected "struct" or "list" or "map", got "bag"'),
    ({"schemas": [schema(type={"type": "list"})]}, r"schemas\[0\].fields\[0\].type: missing element-id"),
    (spec({"source-id": 1}), r"partition-specs\[0\].fields\[0\]: missing name"),
    (spec({"name": "a", "transform": "day"}), r"partition-specs\[0\].fields\[0\]: missing source-id"),
    (spec(FIELD, {**FIELD, "name": "b"}), r"specs\[0\].fields\[1\].field-id: 1000 is also the id of 'a'"),
    ({"partition_specs": [{"spec-id": 0, "fields": []}] * 2}, r"partition-specs\[1\].spec-id: 0 is also the id"),
    (order(direction="up"), r'sort-orders\[0\].fields\[0\].direction: expected "asc" or "desc", got "up"'),
    ({"sort_orders": [{"order-id": 0, "fields": [{"transform": "a"}]}]}, r"sort-orders\[0\].fields\[0\]: missing "),
    ({"sort_orders": [{"order-id": 0, "fields": []}] * 2}, r"sort-orders\[1\].order-id: 0 is also the id"),
    ({"properties": {"b": "", "a.b": 1}}, r'properties\["a.b"\]: expected a string, got 1'),
    ({"refs": {"main": {**REF, "type": "fork"}}}, r'refs\["main"\].type: expected "branch" or "tag", got "fork"'),
    ({"refs": {"main": {**REF, "type": "tag"}}}, r'refs\["main"\].type: expected "branch", got "tag"'),
    ({"refs": {"x": {**REF, "snapshot-id": 5}}}, r'refs\["x"\].snapshot-id: there is no snapshot 5'),
    ({"refs": {"x": {**REF, "min-snapshots-to-keep": 0}}}, r'refs\["x"\].min-snapshots-to-keep: expected an int of 1'),
    (
        {"refs": {"main": {**REF, "snapshot-id": 8}}, "snapshots": [snapshot(7), snapshot(8)]},
        "current-snapshot-id: 7, but branch main is at snapshot 8",
    ),
    ({"refs": {"main": REF}, "current_snapshot_id": -1}, "current-snapshot-id: none, but branch main is at snapshot 7"),
    ({"snapshots": {}}, "snapshots: expected a list, got an object"),
    ({"snapshots": [5]}, r"snapshots\[0\]: expected an object, got 5"),
    ({"snapshots": [snapshot(7), snapshot("8")]}, r'snapshots\[1\].snapshot-id: expected a long, got "8"'),
    (
        {"snapshots": [snapshot(3), snapshot(7), snapshot(3)]},
        r"snapshots\[2\].snapshot-id: 3 is also the id of snapshots\[0\]",
    ),
    ({"snapshots": [snapshot(7, manifest_list=None)]}, r"snapshots\[0\]: missing root-manifest or manifest-list"),
    ({"snapshots": [snapshot(7, timestamp_ms="x")]}, r'snapshots\[0\].timestamp-ms: expected a long, got "x"'),
    ({"snapshots": [snapshot(7, added_rows=-1)]}, r"snapshots\[0\].added-rows: expected a long of 0 or more, got -1"),
    ({"snapshots": [snapshot(7, summary={"a": None})]}, r'snapshots\[0\].summary\["a"\]: expected a string, got null'),
    ({"snapshot_log": [{"timestamp-ms": 1}]}, r"snapshot-log\[0\]: missing snapshot-id"),
    ({"snapshot_log": [{"timestamp-ms": 10**30, "snapshot-id": 7}]}, r"snapshot-log\[0\]: expected a long, got 1.0"),
    ({"metadata_log": [{"timestamp-ms": 1}]}, r"metadata-log\[0\]: missing metadata-file"),
    ({"statistics": [{**STATISTICS, "snapshot-id": "7a"}]}, r"statistics\[0\].snapshot-id: expected a long, or its"),
    ({"statistics": [{**STATISTICS, "snapshot-id": "9" * 19}]}, r"statistics\[0\].snapshot-id: expected a long"),
    (
        {"statistics": [{**STATISTICS, "file-size-in-bytes": -1}]},
        r"statistics\[0\].file-size-in-bytes: expected ",
    ),
    (
        {"statistics": [{**STATISTICS, "blob-metadata": [BLOB, {**BLOB, "fields": ["a"]}]}]},
        r'statistics\[0\].blob-metadata\[1\].fields\[0\]: expected an int, got "a"',
    ),
    ({"partition_statistics": [{}]}, r"partition-statistics\[0\]: missing snapshot-id"),
    ({"format_version": "2"}, 'format-version: expected an int, got "2"'),
    ({"format_version": None}, "missing format-version"),
]


@pytest.mark.parametrize(("change", "message"), BROKEN, ids=[m for _, m in BROKEN])
@pytest.mark.parametrize("unknown", [{}, {"x": 1}], ids=["", "unknown"])
def test_a_broken_field_is_named(change, message, unknown):
    text = json.dumps({**document(**change), **unknown}).replace('"NULL"', "null")

    with pytest.raises(FormatError, match=message) as caught:
        decode_metadata(text.encode(), where=WHERE)
    assert str(caught.value).startswith(WHERE)
    assert caught.value.context["location"] == WHERE


def test_wrong_values_are_shown_in_short():
    with pytest.raises(FormatError) as caught:
        decode(document(last_updated_ms="x" * 10**6))
    assert len(str(caught.value)) < 200


def test_columns_that_are_gone_from_every_schema_may_be_named_by_specs_and_orders():
    gone = {**FIELD, "source-id": 99, "transform": "some[new]"}
    metadata = decode(document(partition_specs=[{"spec-id": 0, "fields": [gone]}], **order(**{"source-id": 98})))

    assert metadata.spec.fields[0].source_id == 99
    assert metadata.sort_orders[0].fields[0].source_id == 98


def test_the_last_of_two_equal_keys_counts():
    text = json.dumps(document())[:-1] + ', "last-updated-ms": 11, "last-updated-ms": 12}'

    assert decode_metadata(text.encode(), where=WHERE).last_updated_ms == 12


@pytest.mark.parametrize("key", ["doc", "summary", "x-unknown"])
def test_text_that_is_not_utf_8_is_refused_even_where_it_stays_unread(key):
    schemas = [schema(doc="@" if key == "doc" else "")]
    summary = {"a": "@" if key == "summary" else ""}
    given = document(schemas=schemas, snapshots=[snapshot(3, summary=summary), snapshot(7)])
    text = json.dumps(given | ({key: "@"} if key == "x-unknown" else {})).encode().replace(b"@", b"\xff")

    with pytest.raises(CorruptFile, match="is not UTF-8"):
        decode_metadata(text, where=WHERE)


@pytest.mark.parametrize("place", ["top", "field", "snapshot", "type"])
@pytest.mark.parametrize("depth", [300, 900, 990, 2_000, 100_000])
def test_unknown_keys_nested_at_any_depth_are_kept_or_refused(place, depth):
    deep = "[" * depth + "]" * depth
    if place == "type":
        deep = '{"type":"list","element-id":2,"element":"long","element-required":false,"x":' + deep + "}"
    given = {
        "top": document() | {"x": "@"},
        "field": document(schemas=[schema(x="@")]),
        "snapshot": document(snapshots=[snapshot(7, x="@")]),
        "type": document(schemas=[schema(type="@")], last_column_id=2),
    }
    text = json.dumps(given[place]).replace('"@"', deep).encode()

    with contextlib.suppress(LimitError):
        assert deep.encode() in encode_metadata(decode_metadata(text, where=WHERE))


@pytest.mark.parametrize(
    "data", [b"", b"{", b"not json", b"[]", b"null", b'"x"', b"\xff\xfe", b'{"a": \xff}', b"[" * 10**6]
)
def test_what_is_not_an_object_of_json_is_a_format_error(data):
    with pytest.raises(FormatError):
        decode_metadata(data, where=WHERE)


def test_a_key_nested_too_deeply_is_a_format_error():
    deep = json.dumps(document()).encode()[:-1] + b', "x": ' + b"[" * 10**5 + b"]" * 10**5 + b"}"

    with pytest.raises(FormatError):
        decode_metadata(deep, where=WHERE)


@pytest.mark.parametrize("depth", [11, 5_000])
def test_types_nested_deeper_than_the_limit_are_refused(depth):
    inner = '"long"'
    for _ in range(depth):
        inner = '{"type":"list","element-id":1,"element":' + inner + ',"element-required":false}'
    fields = '[{"id":9,"name":"x","required":false,"type":' + inner + "}]"
    text = json.dumps(document(schemas="@")).replace('"@"', '[{"type":"struct","schema-id":0,"fields":' + fields + "}]")

    with pytest.raises(LimitError):
        decode_metadata(text.encode(), where=WHERE, limits=Limits(type_depth=10))


def test_a_gzip_bomb_is_refused_without_inflating_it():
    bomb = gzip.compress(bytes(50_000_000))

    tracemalloc.start()
    try:
        with pytest.raises(LimitError, match="1000 bytes"):
            decode_metadata(bomb, where=WHERE, limits=Limits(metadata_bytes=1000))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_metadata_larger_than_the_limit_is_refused():
    with pytest.raises(LimitError, match="100 bytes"):
        decode(document(), limits=Limits(metadata_bytes=100))


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-9], lambda b: b[:40], lambda b: b + b"x", lambda b: b[:20] + b"\0" + b[21:]]
)
def test_damaged_gzip_is_a_corrupt_file(damage):
    with pytest.raises(CorruptFile, match="gzip"):
        decode_metadata(damage(gzip.compress(json.dumps(document()).encode())), where=WHERE)


def test_two_columns_of_one_name_are_named():
    field = {"id": 1, "name": "x", "required": True, "type": "long"}
    schemas = [{"type": "struct", "schema-id": 0, "fields": [field, {**field, "id": 2}]}]

    with pytest.raises(FormatError, match=r"schemas\[0\]: .*named 'x'"):
        decode(document(schemas=schemas))


@settings(max_examples=examples(300))
@given(st.data())
def test_changed_bytes_never_crash(data):
    text = bytearray(json.dumps(document(4)).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(FormatError, UnsupportedError):
        metadata = decode_metadata(bytes(text), where=WHERE)
        list(metadata.snapshots)
        encode_metadata(metadata)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=examples(200))
@given(st.sampled_from(sorted(document(4))), json_values)
def test_a_value_of_any_type_never_crashes(key, anything):
    text = json.dumps({**document(4), key: anything}).encode()
    with contextlib.suppress(FormatError, UnsupportedError):
        metadata = decode_metadata(text, where=WHERE)
        list(metadata.snapshots)
        encode_metadata(metadata)
