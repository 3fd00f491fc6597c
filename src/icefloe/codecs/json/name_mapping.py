"""Name mappings as JSON text, the value of a table property (spec: Appendix C, Name Mapping Serialization)."""

from __future__ import annotations

import msgspec

from icefloe.codecs.json.input import Int, Record, decode_json
from icefloe.codecs.json.record_shapes import join
from icefloe.errors import FormatError, LimitError
from icefloe.limits import DEFAULT, Limits
from icefloe.model.schema.name_mapping import NAME_MAPPING_PROPERTY, MappedField, NameMapping


class MappedFieldRecord(Record, frozen=True, kw_only=True):
    """A field mapping; only ``names`` must be there, and it may be empty."""

    field_id: Int | None = None
    names: list[str]
    fields: list[MappedFieldRecord] | None = None


_DECODER = msgspec.json.Decoder(list[MappedFieldRecord])


def decode_mapping(text: str | bytes, *, path: str = NAME_MAPPING_PROPERTY, limits: Limits = DEFAULT) -> NameMapping:
    """The mapping of a JSON text; ``path`` is its position in the document, for errors.

    >>> decode_mapping('[{"field-id": 1, "names": ["id", "record_id"]}]').by_name["id"].field_id
    1
    """
    # A lone surrogate becomes bytes that are no UTF-8, which the decoder reports like any other damage.
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if len(data) > limits.metadata_bytes:
        raise LimitError(f"{path}: {len(data)} bytes, more than {limits.metadata_bytes} allowed", field=path)
    records = decode_json(_DECODER, data, path)
    fields = _fields(records, path, limits.type_depth)
    try:
        return NameMapping(fields=fields)
    except FormatError as error:
        raise FormatError(f"{path}: {error}", **{**error.context, "field": path}) from error


def _fields(records: list[MappedFieldRecord], path: str, depth: int) -> tuple[MappedField, ...]:
    if depth <= 0:
        raise LimitError(f"{path}: fields are nested too deeply", field=path)
    return tuple(
        MappedField(
            names=tuple(dict.fromkeys(record.names)),  # the names are a set, though JSON has none
            field_id=record.field_id,
            fields=() if record.fields is None else _fields(record.fields, join(f"{path}[{i}]", "fields"), depth - 1),
        )
        for i, record in enumerate(records)
    )


def encode_mapping(mapping: NameMapping) -> str:
    """The JSON text of a mapping.

    >>> encode_mapping(NameMapping(fields=(MappedField(names=("id",), field_id=1),)))
    '[{"field-id":1,"names":["id"]}]'
    """
    return msgspec.json.encode([_record(field) for field in mapping.fields]).decode()


def _record(field: MappedField) -> MappedFieldRecord:
    inner = None if len(field.fields) == 0 else [_record(child) for child in field.fields]
    return MappedFieldRecord(field_id=field.field_id, names=list(field.names), fields=inner)
