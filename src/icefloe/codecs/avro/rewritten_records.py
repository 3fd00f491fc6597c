"""Reads all fields of the records of an Avro file, to write it again with changed values (Avro specification).

Dates stay numbers, decimals stay bytes, and unknown fields are kept, so only the changed values differ in the new file.
Arrays and unions are read by the plain form of the schema (see ``file_schema``), whose fields have the order of the
file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from icefloe.codecs.avro.container import Container, read_container, write_container
from icefloe.codecs.avro.file_schema import PRIMITIVES, Plain, stored_schema
from icefloe.codecs.avro.projection import ColumnTree, Shape
from icefloe.errors import IcefloeError, UnsupportedError, damaged
from icefloe.limits import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroRecords:
    """The records of a file; fields are found by their index in the schema."""

    container: Container
    plain: Plain
    rows: pa.StructArray

    @property
    def schema(self) -> Mapping[str, Any]:
        """The schema of the file."""
        return self.container.schema

    def with_rows(self, rows: pa.StructArray) -> AvroRecords:
        """The same file with other values."""
        return replace(self, rows=rows)

    def encode(self) -> bytes:
        """The file, with the schema and the metadata that it was read with."""
        container = self.container
        return write_container(self.rows, self.plain, container.metadata, stored_schema=container.schema)


def read_records(data: bytes, *, where: str, limits: Limits) -> AvroRecords:
    """All records of a file; UnsupportedError if it has a type that could not be written back."""
    container = read_container(data, where=where, limits=limits)
    try:
        plain = stored_schema(container.schema, where=where, limits=limits).plain
        _check_unions(plain, where)
        tree = replace(container, schema=plain).rows(_shape(plain))
        return AvroRecords(container=container, plain=plain, rows=_assembled(tree, plain, container.count))
    except IcefloeError:
        raise
    except Exception as error:  # of any kind, for a damaged schema or value
        raise damaged(error, f"{where}: not a readable Avro file: {error!r}", location=where) from error


def with_field(rows: pa.StructArray, index: int, values: pa.Array) -> pa.StructArray:
    """A column of records with one field replaced; the field keeps its type."""
    children = [rows.field(place) for place in range(rows.type.num_fields)]
    children[index] = values.cast(children[index].type)
    mask = rows.is_null() if rows.null_count > 0 else None
    return pa.StructArray.from_arrays(children, fields=list(rows.type), mask=mask)


def _check_unions(plain: Plain, where: str) -> None:
    """Refuse optional types whose null is not the first branch: the encoder writes the usual order only."""
    match plain:
        case ["null", inner]:
            _check_unions(inner, where)
        case list():
            raise UnsupportedError(f"{where}: cannot rewrite an optional Avro type whose null is last", location=where)
        case {"fields": fields}:
            for field in fields:
                _check_unions(field["type"], where)
        case {"items": items}:
            _check_unions(items, where)


def _shape(plain: Plain) -> Shape:
    return {field["name"]: _wanted(field["type"]) for field in plain["fields"]}


def _wanted(plain: Plain) -> Any:
    is_record = isinstance(plain, dict) and plain["type"] == "record"
    return _shape(plain) if is_record else _arrow(plain)


def _arrow(plain: Plain) -> pa.DataType:
    match plain:
        case str():
            return PRIMITIVES[plain]
        case ["null", inner]:
            return _arrow(inner)
        case {"type": "record", "fields": fields}:
            return pa.struct([pa.field(field["name"], _arrow(field["type"])) for field in fields])
        case {"type": "array", "items": items}:
            return pa.list_(_arrow(items))
        case {"type": "fixed", "size": size}:
            return pa.binary(size)
        case {"type": str(name)}:
            return PRIMITIVES[name]
    raise UnsupportedError(f"Avro type {plain!r:.80} is not rewritten")


def _assembled(tree: ColumnTree, plain: Plain, count: int) -> pa.StructArray:
    """The columns of a record as one column."""
    if len(plain["fields"]) == 0:
        return pa.array([{}] * count, pa.struct([]))
    children = [
        _assembled(child, field["type"], count) if isinstance(child, dict) else child
        for field in plain["fields"]
        for child in [tree[field["name"]]]
    ]
    return pa.StructArray.from_arrays(children, names=[field["name"] for field in plain["fields"]])
