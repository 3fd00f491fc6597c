"""Schemas as text: column lists in Spark SQL, with spellings for what Spark lacks (spec: Schemas and Data Types).

``timestamp`` is an instant as in Spark (the format's ``timestamptz``) and ``timestamp_ntz`` is not. Types that Spark
lacks have the format's own names: ``uuid``, ``fixed(16)``, ``timestamp_ns``, ``timestamptz_ns``. Elements of arrays and
values of maps may be ``NOT NULL``. The text describes new columns, so one ``DEFAULT`` is both their defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from icefloe.errors import FormatError, InputError
from icefloe.limits import DEFAULT
from icefloe.model.arrow.schema_from_arrow import fields_from_arrow
from icefloe.model.metadata.version_rules import DEFAULT_FORMAT_VERSION
from icefloe.model.schema import types as iceberg
from icefloe.model.schema.schema import Schema, assign_ids, fresh_ids
from icefloe.model.schema.schema_rules import check_schema
from icefloe.model.text.spark_schema_json import fields_from_spark_json
from icefloe.model.text.sql_literals import take_literal
from icefloe.model.text.sql_tokens import Token, Tokens

_TYPES: Mapping[str, iceberg.Type] = {
    "boolean": iceberg.BOOLEAN,
    "int": iceberg.INT,
    "bigint": iceberg.LONG,
    "float": iceberg.FLOAT,
    "double": iceberg.DOUBLE,
    "date": iceberg.DATE,
    "time": iceberg.TIME,
    "timestamp_ntz": iceberg.TIMESTAMP,
    "timestamp": iceberg.TIMESTAMPTZ,
    "timestamp_ns": iceberg.TIMESTAMP_NS,
    "timestamptz_ns": iceberg.TIMESTAMPTZ_NS,
    "string": iceberg.STRING,
    "uuid": iceberg.UUID,
    "binary": iceberg.BINARY,
    "void": iceberg.UNKNOWN,
    "variant": iceberg.VARIANT,
}
_ALIASES: Mapping[str, iceberg.Type] = {
    **dict.fromkeys(("tinyint", "byte", "smallint", "short", "integer"), iceberg.INT),
    "bool": iceberg.BOOLEAN,
    "long": iceberg.LONG,
    "real": iceberg.FLOAT,
    "text": iceberg.STRING,
    "timestamp_ltz": iceberg.TIMESTAMPTZ,
    "timestamptz": iceberg.TIMESTAMPTZ,
    "unknown": iceberg.UNKNOWN,
}
_KNOWN = (*_TYPES, "decimal(p, s)", "fixed(n)", "geometry", "geography", "array<>", "map<>", "struct<>")
_DEFAULT_DECIMAL = (10, 0)  # Spark's own
_MICROSECONDS = 6
SRIDS = {4326: iceberg.DEFAULT_CRS, 3857: "EPSG:3857", 0: "SRID:0"}  # Spark's numbers of reference systems


def parse_ddl(text: str) -> Schema:
    """The columns of a Spark SQL column list, with fresh ids.

    >>> str(parse_ddl("id bigint not null, tags array<string>").field("tags").type)
    'list<string>'
    """
    return numbered(_Reading(Tokens(text, "the columns")).all_columns())


def numbered(fields: tuple[iceberg.Field, ...]) -> Schema:
    """A schema of fields from the caller, with fresh ids; InputError if they break the format."""
    try:
        return Schema(fields=fresh_ids(fields))
    except FormatError as error:
        raise InputError(str(error), **error.context) from error


class _Reading:
    """Parses one column list; ``name`` is always the full name of the column, for errors."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    def all_columns(self) -> tuple[iceberg.Field, ...]:
        columns = self._columns("", 0)
        self._tokens.end()
        return columns

    def _columns(self, parent: str, depth: int) -> tuple[iceberg.Field, ...]:
        columns = [self._column(parent, depth)]
        while self._tokens.skip(","):
            columns.append(self._column(parent, depth))
        return tuple(columns)

    def _column(self, parent: str, depth: int) -> iceberg.Field:
        token = self._tokens.take()
        if token.kind not in ("word", "name"):
            raise self._tokens.wrong("a column such as 'id bigint not null'", token)
        name = f"{parent}{token.text}"
        if depth > 0:
            self._tokens.skip(":")
        return self._with_options(iceberg.Field(0, token.text, self._type(name, depth)), name)

    def _with_options(self, field: iceberg.Field, name: str) -> iceberg.Field:
        tokens, options = self._tokens, dict[str, Any]()
        while (option := tokens.peek()).key in ("not", "null", "comment", "default"):
            tokens.take()
            if option.key == "not":
                tokens.expect("null")
            kind = "null" if option.key == "not" else option.key
            if kind in options:
                raise InputError(f"column {name!r}: {kind.upper()} is given twice", field=name)
            if kind == "comment":
                options[kind] = self._string()
            else:
                options[kind] = option.key == "not" if kind == "null" else take_literal(tokens, field.type, name)
        default = options.get("default")
        return iceberg.Field(
            *(field.id, field.name, field.type, options.get("null", False), options.get("comment")),
            initial_default=default,
            write_default=default,
        )

    def _string(self) -> str:
        token = self._tokens.take()
        if token.kind != "text":
            raise self._tokens.wrong("a string in quotes", token)
        return token.text

    def _type(self, name: str, depth: int) -> iceberg.Type:
        if depth > DEFAULT.type_depth:
            raise InputError(f"types are nested deeper than {DEFAULT.type_depth}", field=name)
        token = self._tokens.take()
        if token.kind != "word":
            raise self._tokens.wrong("a type", token)
        match token.key:
            case "struct":
                return self._struct(name, depth)
            case "array":
                self._tokens.expect("<")
                element, required = self._slot(f"{name}.element", depth)
                self._tokens.expect(">")
                return iceberg.List(0, element, required)
            case "map":
                self._tokens.expect("<")
                key, _ = self._slot(f"{name}.key", depth)
                self._tokens.expect(",")
                value, required = self._slot(f"{name}.value", depth)
                self._tokens.expect(">")
                return iceberg.Map(0, key, 0, value, required)
        return self._leaf(token, name)

    def _struct(self, name: str, depth: int) -> iceberg.Struct:
        self._tokens.expect("<")
        if self._tokens.skip(">"):
            return iceberg.Struct(())
        fields = self._columns(f"{name}.", depth + 1)
        self._tokens.expect(">")
        return iceberg.Struct(fields)

    def _slot(self, name: str, depth: int) -> tuple[iceberg.Type, bool]:
        return self._type(name, depth + 1), self._tokens.skip("not", "null")

    def _leaf(self, token: Token, name: str) -> iceberg.Type:
        parameters = self._parameters()
        numbers = [int(text) for text in parameters if text.isdecimal() and len(text) < 10]
        are_numbers = len(numbers) == len(parameters)
        match token.key:
            case "decimal" | "dec" | "numeric" if are_numbers and len(parameters) <= 2:
                precision, scale = (*numbers, *_DEFAULT_DECIMAL[len(parameters) :])
                return _parsed(f"decimal({precision}, {scale})", name)
            case "fixed" if are_numbers and len(parameters) == 1:
                return iceberg.Fixed(numbers[0])
            case "char" | "character" | "varchar" if are_numbers and len(parameters) == 1:
                return iceberg.STRING
            case "time" if are_numbers and len(parameters) == 1 and numbers[0] <= _MICROSECONDS:
                return iceberg.TIME
            case "geometry" | "geography" if len(parameters) > 0:
                crs = (
                    SRIDS.get(numbers[0], parameters[0])
                    if parameters[0].isdecimal() and len(numbers) > 0
                    else parameters[0]
                )
                return _parsed(f"{token.key}({', '.join((crs, *parameters[1:]))})", name)
            case "geometry" | "geography":
                return iceberg.parse_type(token.key)
            case known if known in _TYPES and len(parameters) == 0:
                return _TYPES[known]
            case known if known in _ALIASES and len(parameters) == 0:
                return _ALIASES[known]
        shown = f"{token.text}({', '.join(parameters)})" if len(parameters) > 0 else token.text
        raise InputError(f"column {name!r}: there is no type {shown}; known are {', '.join(_KNOWN)}", field=name)

    def _parameters(self) -> list[str]:
        """The parameters in brackets after the name of a type."""
        tokens = self._tokens
        opened = tokens.peek().key
        if opened not in ("(", "["):
            return []
        parameters: list[str] = []
        while tokens.take().key in (opened, ","):
            token = tokens.take()
            if token.kind not in ("number", "text", "word"):
                raise tokens.wrong("a parameter", token)
            parameters.append(token.text)
            if tokens.peek().key in (")", "]"):
                tokens.take()
                return parameters
        raise tokens.wrong("a closing bracket")


def _parsed(text: str, name: str) -> iceberg.Type:
    try:
        return iceberg.parse_type(text)
    except FormatError as error:
        raise InputError(f"column {name!r}: {error}", field=name) from error


def as_schema(value: object, *, format_version: int = DEFAULT_FORMAT_VERSION) -> Schema:
    """A schema from however the caller has it, with fresh ids, checked to be one that a new table may have.

    Taken are Spark SQL text, Arrow schemas, a Spark ``StructType`` or its JSON (text or parsed), and schemas of ours.

    >>> as_schema(pa.schema({"id": pa.int64()})) == as_schema("id bigint")
    True
    """
    schema = _read(value, format_version)
    check_schema(schema, format_version)
    return schema


def _read(value: object, format_version: int) -> Schema:
    if isinstance(value, Schema):
        return assign_ids(value)
    if isinstance(value, dict) or (isinstance(value, str) and value.lstrip().startswith("{")):
        return numbered(fields_from_spark_json(value))
    if isinstance(value, str):
        return parse_ddl(value)
    if hasattr(value, "json") and hasattr(value, "fields"):
        return numbered(fields_from_spark_json(value.json()))
    if isinstance(value, pa.Schema) or hasattr(value, "__arrow_c_schema__"):
        arrow = value if isinstance(value, pa.Schema) else pa.schema(value)
        return numbered(fields_from_arrow(arrow, format_version=format_version)[0])
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    raise InputError(f"cannot read a schema from {kind}: give Spark SQL text, an Arrow or a Spark schema", type=kind)
