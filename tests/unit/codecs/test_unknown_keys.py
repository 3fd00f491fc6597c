"""Keys of other programs and of versions to come survive a rewrite, wherever in the metadata they stand."""

from __future__ import annotations

import json
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.codecs.json.input import Extensible, Int, Record, decode_extensible
from icefloe.codecs.json.schema import schema_from_json, schema_to_json
from icefloe.codecs.json.table_metadata import decode_metadata, encode_metadata
from icefloe.model.partition.spec import PartitionField
from icefloe.model.schema.types import LONG, STRING, Field, List
from support.metadata_documents import WHERE, decode, document, encoded, plain, snapshot, value

NOTE = {"x-note": {"by": ["another", None, True], "n": 12}}
ELEMENT = {"type": "struct", "fields": [{"id": 4, "name": "s", "required": False, "type": "string", **NOTE}], **NOTE}
INNER = {"type": "list", "element-id": 3, "element": ELEMENT, "element-required": False, **NOTE}
MAP = {"type": "map", "key-id": 5, "key": "string", "value-id": 6, "value": INNER, "value-required": False, **NOTE}
FIELDS = [
    {"id": 1, "name": "x", "required": True, "type": "long", **NOTE},
    {"id": 2, "name": "m", "required": False, "type": MAP},
]
BLOB = {"type": "ndv", "snapshot-id": 7, "sequence-number": 1, "fields": [1], **NOTE}
SIZES = {"file-size-in-bytes": 9, "file-footer-size-in-bytes": 3}


def noted(version: int) -> dict[str, object]:
    """A document with an unknown key in every kind of object that may have one."""
    field = {"source-id": 1, "field-id": 1000, "transform": "bucket[4]", "name": "b", **NOTE}
    order = {"transform": "identity", "source-id": 1, "direction": "asc", "null-order": "nulls-first", **NOTE}
    expression = {
        "expr-id": 50,
        "expr": {"source-id": 1, "transform": "bucket[4]", "name": "b", **NOTE},
        "partition-field-id": 1000,
        **NOTE,
    }
    ref = {"snapshot-id": 7, "type": "branch", **NOTE}
    statistics = {"snapshot-id": 7, "statistics-path": "s3://b/s.puffin", **SIZES, "blob-metadata": [BLOB], **NOTE}
    partitions = {"snapshot-id": 7, "statistics-path": "s3://b/p.parquet", "file-size-in-bytes": 9, **NOTE}
    key = {"key-id": "k", "encrypted-key-metadata": "a2V5", **NOTE}
    changes = {
        "last_column_id": 50,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": FIELDS, **NOTE}],
        "partition_specs": [{"spec-id": 0, "fields": [field | ({"expr-id": 50} if version == 4 else {})], **NOTE}],
        "last_partition_id": 1000,
        "sort_orders": [{"order-id": 0, "fields": []}, {"order-id": 1, "fields": [order], **NOTE}],
        "refs": {"main": ref, "a.b[0]": {"snapshot-id": 7, "type": "tag", **NOTE}},
        "snapshots": [snapshot(7) | NOTE],
        "statistics": [statistics],
        "partition_statistics": [partitions],
        "next_row_id": 0 if version >= 3 else None,
        "encryption_keys": [key] if version >= 3 else None,
        "expressions": [expression] if version == 4 else None,
    }
    return document(version, **changes) | NOTE


@pytest.mark.parametrize("version", [2, 3, 4])
def test_unknown_keys_survive_at_every_level(version):
    original = noted(version)
    metadata = decode(original)

    # As values too, so that the snapshots are not merely copied.
    for written in (encoded(metadata), encoded(plain(metadata)), encoded(plain(decode(encoded(metadata))))):
        assert {key: written[key] for key in original} == original
    assert plain(decode(encoded(metadata))) == plain(metadata)


def test_unknown_keys_of_version_1_survive_in_its_single_schema_and_spec():
    column = {"id": 1, "name": "x", "required": True, "type": "long", **NOTE}
    field = {"source-id": 1, "field-id": 1000, "transform": "identity", "name": "x", **NOTE}
    original = {
        "format-version": 1,
        "location": "s3://b/t",
        "last-updated-ms": 10,
        "last-column-id": 1,
        "schema": {"type": "struct", "schema-id": 0, "fields": [column], **NOTE},
        "partition-spec": [field],
    }

    written = encoded(decode(original))

    assert {key: written[key] for key in original} == original
    assert written["schemas"] == [original["schema"]]


def test_unknown_keys_survive_commits_and_are_values_with_their_text():
    metadata = decode(noted(4))

    text = json.dumps(NOTE["x-note"], separators=(",", ":"))
    assert metadata.extra == NOTE
    assert metadata.schema.extra == metadata.spec.extra == metadata.refs["a.b[0]"].extra == (("x-note", text),)
    assert metadata.current_snapshot.extra == (("x-note", text),)
    after = encoded(metadata.with_snapshot(value(8)))
    assert after["snapshots"][0] == snapshot(7) | NOTE
    assert after["refs"]["main"] == {"snapshot-id": 8, "type": "branch"} | NOTE


def test_a_column_keeps_its_unknown_keys_and_those_of_its_type_when_it_changes():
    schema = schema_from_json({"type": "struct", "fields": FIELDS})
    renamed = replace(schema, fields=(schema.fields[0], replace(schema.fields[1], name="renamed")))

    def written(changed):
        return json.loads(json.dumps(decoded_schema(changed)))["fields"][1]

    assert written(renamed) == {**FIELDS[1], "name": "renamed"}
    # Where an object of the type is gone, so are its keys; nothing else happens.
    simple = replace(schema.fields[1], type=List(9, LONG))
    gone = written(replace(schema, fields=(schema.fields[0], simple)))
    assert gone["type"] == {"type": "list", "element-id": 9, "element": "long", "element-required": False, **NOTE}


def decoded_schema(schema):
    data = document(schemas=[], last_column_id=99)
    metadata = replace(decode(document(last_column_id=99)), schemas=(schema,))
    return data | encoded(metadata)["schemas"][0]


def test_numbers_of_unknown_keys_keep_every_digit():
    text = json.dumps(document(schemas="@")).replace(
        '"@"',
        '[{"type":"struct","schema-id":0,"x":{"a":1.50},"fields":'
        '[{"id":1,"name":"x","required":true,"type":"long","y":0.12345678901234567890123,"z":123456789012345678901}]}]',
    )

    written = encode_metadata(decode_metadata(text.encode(), where=WHERE)).decode()

    for part in ('"x":{"a":1.50}', '"y":0.12345678901234567890123', '"z":123456789012345678901'):
        assert part in written


@pytest.mark.parametrize(
    "number", ["1.10", "0.12345678901234567890123", "123456789012345678901234567890", "1e400", "9" * 5000]
)
def test_numbers_of_unknown_keys_at_the_top_keep_every_digit_too(number):
    text = json.dumps(document() | {"x": "@", "y": ["@"]}).replace('"@"', number)

    metadata = decode_metadata(text.encode(), where=WHERE)

    again = decode_metadata(encode_metadata(metadata), where=WHERE)
    for written in (encode_metadata(metadata).decode(), encode_metadata(plain(again)).decode()):
        assert f'"x":{number},"y":[{number}]' in written


def test_an_unknown_key_never_takes_the_place_of_a_known_one():
    field = Field(1, "a", STRING, extra=(("doc", '"theirs"'), ("name", '"b"'), ("id", "9")))

    schema = decode(document()).schema
    written = schema_to_json(replace(schema, fields=(replace(field, doc="ours"),)))["fields"][0]

    assert written == {"id": 1, "name": "a", "required": False, "type": "string", "doc": "ours"}


def test_partition_fields_without_unknown_keys_have_none():
    spec = {"spec-id": 0, "fields": [{"source-id": 1, "field-id": 1000, "name": "b", "transform": "void"}]}

    metadata = decode(document(partition_specs=[spec]) | NOTE)

    assert metadata.spec.fields == (PartitionField(source_id=1, field_id=1000, name="b", transform="void"),)


class Leaf(Extensible, frozen=True):
    number: Int | None = None


class Loose(Record, frozen=True):
    leaf: Leaf | None = None


class Tree(Extensible, frozen=True):
    leaf: Leaf | None = None
    many: list[Leaf] | None = None
    named: dict[str, Leaf] | None = None
    loose: Loose | None = None
    tree: Tree | None = None


_TREES = msgspec.json.Decoder(Tree)
KEYS = st.sampled_from(["x", "y", "number"])
LEAVES = st.dictionaries(KEYS, st.integers(0, 5), max_size=3)
TREES = st.recursive(
    st.just({}),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "leaf": LEAVES,
            "many": st.lists(LEAVES, max_size=2),
            "named": st.dictionaries(st.text(max_size=2), LEAVES, max_size=2),
            "tree": inner,
            "x": st.none() | st.just([{"number": 1}]),
        },
    ),
    max_leaves=4,
)


def keys_of(value: object, known: frozenset[str]) -> int:
    """How many keys of the objects are not known, counted without the codec."""
    if isinstance(value, list):
        return sum(keys_of(each, known) for each in value)
    if not isinstance(value, dict):
        return 0
    inner = sum(keys_of(each, known) for key, each in value.items() if key in known and key != "named")
    named = sum(keys_of(each, known) for each in value.get("named", {}).values())
    return inner + named + sum(key not in known for key in value)


@given(TREES)
def test_every_unknown_key_is_found_once_and_nothing_else_changes(tree):
    known = frozenset(Tree.__struct_encode_fields__) | frozenset(Leaf.__struct_encode_fields__)

    record, extras = decode_extensible(_TREES, json.dumps(tree).encode())

    assert sum(len(unknown) for unknown in extras.values()) == keys_of(tree, known)
    leaf = tree.get("leaf")
    assert record.leaf == (None if leaf is None else Leaf(number=leaf.get("number")))
