"""Records from JSON: what errors say, and how unknown keys are told from known ones."""

from __future__ import annotations

import json
from typing import Any, Literal

import msgspec
import pytest

from icefloe.codecs.json.input import (
    Count,
    Extensible,
    Int,
    Long,
    Record,
    Uuid,
    convert_extensible,
    convert_json,
    decode_extensible,
    decode_json,
    in_file,
    with_unknown,
)
from icefloe.codecs.json.record_shapes import holds_records, shown
from icefloe.errors import CorruptFile, FormatError, LimitError


class Square(Extensible, frozen=True, tag="square"):
    side: Int


class Circle(Extensible, frozen=True, tag="circle"):
    radius: Count


class Drawing(Extensible, frozen=True):
    made_at: Long | None = None
    id: Uuid | None = None
    kind: Literal["sketch", "plan"] = "plan"
    scale: float = 1.0
    open: bool = False
    shape: str | Square | Circle | None = None
    shapes: list[Square | Circle] | None = None
    layers: dict[str, Square] | None = None
    notes: dict[str, str] | None = None
    pairs: list[list[Int]] | None = None
    anything: Any = None


DRAWING = msgspec.json.Decoder(Drawing)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "at: expected an object, got a list"),
        (None, "at: expected an object, got null"),
        ({"made-at": "x"}, 'at.made-at: expected a long, got "x"'),
        ({"made-at": True}, "at.made-at: expected a long, got true"),
        ({"made-at": 1.5}, "at.made-at: expected a long, got 1.5"),
        ({"made-at": 2**63}, "at.made-at: expected a long, got 9223372036854775808"),
        ({"id": "12"}, 'at.id: expected a UUID, got "12"'),
        ({"kind": "x"}, 'at.kind: expected "sketch" or "plan", got "x"'),
        ({"kind": 5}, 'at.kind: expected "sketch" or "plan", got 5'),
        ({"scale": "1"}, 'at.scale: expected a number, got "1"'),
        ({"open": 1}, "at.open: expected a boolean, got 1"),
        ({"shape": 5}, "at.shape: expected a string or an object, got 5"),
        ({"shape": {}}, "at.shape: missing type"),
        ({"shape": {"type": "line"}}, 'at.shape.type: expected "square" or "circle", got "line"'),
        ({"shape": {"type": 5}}, 'at.shape.type: expected "square" or "circle", got 5'),
        ({"shape": {"type": "circle", "radius": -1}}, "at.shape.radius: expected a long of 0 or more, got -1"),
        ({"shapes": {}}, "at.shapes: expected a list, got an object"),
        ({"shapes": [{"type": "square", "side": 1}, 7]}, "at.shapes[1]: expected an object, got 7"),
        ({"shapes": [{"type": "square"}]}, "at.shapes[0]: missing side"),
        ({"layers": {"a": {"type": "square", "side": 1}, "b.c": 5}}, 'at.layers["b.c"]: expected an object, got 5'),
        ({"layers": {"a": {"side": {}}}}, 'at.layers["a"].side: expected an int, got an object'),
        ({"notes": {"a": "", "b": None}}, 'at.notes["b"]: expected a string, got null'),
        ({"pairs": [[1], [2, "3"]]}, 'at.pairs[1][1]: expected an int, got "3"'),
    ],
)
@pytest.mark.parametrize("unknown", [{}, {"x": 1}], ids=["", "unknown"])
def test_what_does_not_fit_is_named_with_what_was_expected_and_what_stands_there(value, message, unknown):
    given = {**value, **unknown} if isinstance(value, dict) else value

    with pytest.raises(FormatError) as decoded:
        decode_extensible(DRAWING, json.dumps(given).encode(), "at")
    with pytest.raises(FormatError) as converted:
        convert_extensible(given, Drawing, "at")
    assert str(decoded.value) == str(converted.value) == message
    assert decoded.value.context["field"].startswith(message.partition(": ")[0])


def test_without_a_path_the_message_starts_with_the_field():
    with pytest.raises(FormatError, match=r'^made-at: expected a long, got "x"$'):
        decode_json(DRAWING, b'{"made-at": "x"}')
    with pytest.raises(FormatError, match=r"^expected an object, got 5$"):
        convert_json(5, Drawing)


@pytest.mark.parametrize("text", ["1e999", "1" + "0" * 5000])
def test_a_number_beyond_all_bounds_is_a_format_error(text):
    with pytest.raises(FormatError, match="out of range"):
        decode_json(DRAWING, f'{{"anything": {text}}}'.encode())
    with pytest.raises(FormatError, match="made-at"):
        decode_json(DRAWING, f'{{"made-at": {text}}}'.encode())


@pytest.mark.parametrize("data", [b"", b"{", b'{"made-at": "x"', b'{"made-at": "x", "id": }', b'{"kind": "\xff"}'])
def test_text_that_is_damaged_is_corrupt_even_behind_a_misfit(data):
    with pytest.raises(CorruptFile, match="not JSON"):
        decode_extensible(DRAWING, data)


@pytest.mark.parametrize("key", ["x", "shape", "anything", "layers"])
def test_deep_nesting_is_a_limit_error(key):
    text = b'{"' + key.encode() + b'": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"

    with pytest.raises(LimitError, match="nested too deeply"):
        decode_extensible(DRAWING, text)


def test_unknown_keys_are_collected_by_the_path_of_their_object():
    value = {
        "shape": {"type": "square", "side": 1, "x": 1},
        "layers": {"a.b": {"type": "square", "side": 1, "y": [1.50]}},
        "notes": {"x": "known, for a map has all keys"},
        "anything": {"x": "known, for anything may stand here"},
        "z": None,
    }
    text = json.dumps(value).replace("1.5", "1.50").encode()

    record, extras = decode_extensible(DRAWING, text, "at")

    assert extras == {
        "at": (("z", "null"),),
        "at.shape": (("x", "1"),),
        'at.layers["a.b"]': (("y", "[1.50]"),),
    }
    assert record == decode_extensible(DRAWING, msgspec.json.encode(record))[0]
    assert record.anything == {"x": "known, for anything may stand here"}
    assert value["shape"] == {"type": "square", "side": 1, "x": 1}, "the given value must not change"
    assert convert_extensible(value, Drawing, "at")[1].keys() == extras.keys()


def test_a_document_without_unknown_keys_has_no_extras():
    record, extras = decode_extensible(DRAWING, b'{"open": true}')

    assert record == Drawing(open=True)
    assert len(extras) == 0


class Plain(Record, frozen=True):
    number: Int


def test_only_extensible_records_keep_what_they_do_not_know():
    assert decode_json(msgspec.json.Decoder(Plain), b'{"number": 1, "x": 2}') == Plain(number=1)
    assert holds_records(list[Square])
    assert holds_records(dict[str, Square | None])
    assert not holds_records(list[Plain])
    assert not holds_records(list[msgspec.Raw])


def test_known_keys_are_never_replaced_by_unknown_ones():
    assert with_unknown({"a": 1}, ()) == {"a": 1}
    written = with_unknown({"a": 1}, (("a", "2"), ("b", "[1.50]")))
    assert msgspec.json.encode(written) == b'{"a":1,"b":[1.50]}'


def test_long_values_are_cut():
    assert shown("x" * 100) == '"' + "x" * 36 + "..."
    assert len(shown(10**100)) == 40
    assert shown({"a": 1}) == "an object"


def test_an_error_names_its_file_once():
    error = in_file(FormatError("a: b", field="a"), "s3://b/f")

    assert str(error) == "s3://b/f: a: b"
    assert error.context == {"field": "a", "location": "s3://b/f"}
    assert in_file(error, "s3://b/f") is error
