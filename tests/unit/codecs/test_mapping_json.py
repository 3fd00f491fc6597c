"""Name mappings as JSON text: the example of the spec, pyiceberg's text, and text made to break it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.table.name_mapping import parse_mapping_from_json

from icefloe.codecs.json.name_mapping import decode_mapping, encode_mapping
from icefloe.errors import CorruptFile, FormatError, LimitError
from icefloe.limits import Limits
from icefloe.model.schema.name_mapping import MappedField, NameMapping, mapping_of
from unit.model.evolving import SCHEMA

EXAMPLE = """
[ { "field-id": 1, "names": ["id", "record_id"] },
   { "field-id": 2, "names": ["data"] },
   { "field-id": 3, "names": ["location"], "fields": [
       { "field-id": 4, "names": ["latitude", "lat"] },
       { "field-id": 5, "names": ["longitude", "long"] }
     ] } ]
"""


def test_the_example_of_the_spec_is_read_and_written_back():
    mapping = decode_mapping(EXAMPLE)

    latitude = MappedField(names=("latitude", "lat"), field_id=4)
    assert mapping.fields[:2] == (
        MappedField(names=("id", "record_id"), field_id=1),
        MappedField(names=("data",), field_id=2),
    )
    assert mapping.fields[2].fields[0] == latitude
    assert json.loads(encode_mapping(mapping)) == json.loads(EXAMPLE)


def test_ids_names_and_inner_fields_may_be_absent():
    text = '[{"names": ["extra"]}, {"names": [], "field-id": 2}, {"names": ["n"], "field-id": null, "fields": null}]'

    mapping = decode_mapping(text)

    assert mapping.fields == (
        MappedField(names=("extra",)),
        MappedField(names=(), field_id=2),
        MappedField(names=("n",)),
    )
    assert encode_mapping(mapping) == '[{"names":["extra"]},{"field-id":2,"names":[]},{"names":["n"]}]'


def test_unknown_keys_and_repeated_names_do_no_harm():
    assert decode_mapping(b'[{"names": ["a", "b", "a"], "field-id": 1, "doc": 5}]') == NameMapping(
        fields=(MappedField(names=("a", "b"), field_id=1),)
    )


def test_pyiceberg_reads_and_writes_the_same_text():
    ours = mapping_of(SCHEMA)

    theirs = parse_mapping_from_json(encode_mapping(ours))

    assert decode_mapping(theirs.model_dump_json()) == ours


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "at: expected a list, got an object"),
        ("[5]", r"at\[0\]: expected an object, got 5"),
        ('[{"field-id": 1}]', r"at\[0\]: .*names"),
        ('[{"names": "a"}]', r"at\[0\].names: expected a list, got .a"),
        ('[{"names": [1]}]', r"at\[0\].names\[0\]: expected a string, got 1"),
        ('[{"names": [], "field-id": "1"}]', r"at\[0\].field-id: expected an int, got .1"),
        ('[{"names": [], "field-id": 2147483648}]', r"at\[0\].field-id: "),
        ('[{"names": ["a"], "fields": [{"names": []}, {}]}]', r"at\[0\].fields\[1\]: .*names"),
        ('[{"names": ["a"]}, {"names": ["a"]}]', "at: .*the name 'a' is given twice"),
        ('[{"names": ["a"], "field-id": 1}, {"names": ["b"], "field-id": 1}]', "at: .*the id 1 is given twice"),
    ],
)
def test_a_broken_mapping_names_the_field(text, message):
    with pytest.raises(FormatError, match=message):
        decode_mapping(text, path="at")


@pytest.mark.parametrize("text", ["", "[", "names", b"\xff", '[{"names": ["\ud800"]}]'])
def test_what_is_not_json_is_corrupt(text):
    with pytest.raises(CorruptFile, match="at: not JSON"):
        decode_mapping(text, path="at")


def nested(depth: int) -> str:
    return '[{"names":["x"],"fields":' * depth + "[]" + "}]" * depth


def test_fields_may_nest_up_to_the_limit():
    limits = Limits(type_depth=5)

    assert decode_mapping(nested(4), limits=limits).find(["x"] * 4) is not None
    with pytest.raises(LimitError, match=r"at\[0\]\.fields\[0\]\.fields.*nested too deeply"):
        decode_mapping(nested(5), path="at", limits=limits)


def test_a_very_deep_text_is_a_limit_error_and_no_crash():
    with pytest.raises(LimitError, match="nested too deeply"):
        decode_mapping(nested(200_000))


def test_a_text_beyond_the_limit_is_refused_before_it_is_read():
    with pytest.raises(LimitError, match="11 bytes, more than 10 allowed"):
        decode_mapping(" " * 11, limits=Limits(metadata_bytes=10))


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["names", "field-id", "fields"]), inner)
    ),
    max_leaves=10,
)


@given(JSON.map(json.dumps) | TEXTS | st.binary(max_size=20))
def test_any_text_is_a_mapping_or_a_format_error(text):
    try:
        mapping = decode_mapping(text)
    except FormatError:
        return
    assert decode_mapping(encode_mapping(mapping)) == mapping


@st.composite
def mappings(draw: st.DrawFn) -> NameMapping:
    ids = iter(range(1, 1_000))

    def fields(depth: int) -> tuple[MappedField, ...]:
        names = draw(st.lists(TEXTS, max_size=4, unique=True))
        cut = draw(st.integers(0, len(names)))
        groups = [group for group in (names[:cut], names[cut:]) if len(group) > 0]
        return tuple(
            MappedField(
                names=tuple(group),
                field_id=next(ids) if draw(st.booleans()) else None,
                fields=fields(depth - 1) if depth > 0 else (),
            )
            for group in groups
        )

    return NameMapping(fields=fields(2))


@given(mappings())
def test_a_mapping_is_written_and_read_back(mapping):
    assert decode_mapping(encode_mapping(mapping)) == mapping
