"""Schemas and partitioning as people write them: Spark SQL column lists, ``day(ts)``, Arrow and Spark schemas.

The text is that of Spark SQL: ``timestamp`` is an instant (the format's ``timestamptz``), ``timestamp_ntz`` is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa
from sqlglot import exp, parse_one
from sqlglot.errors import ParseError, SqlglotError

from icefloe.errors import FormatError, InputError
from icefloe.model.from_arrow import fields_from_arrow
from icefloe.model.partitioning import FIRST_PARTITION_FIELD_ID, PartitionField, PartitionSpec
from icefloe.model.schema import Schema, assign_ids, fresh_ids
from icefloe.model.spark_json import fields_from_spark_json, spark_schema_json, spark_type_json
from icefloe.model.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Decimal,
    Field,
    List,
    Map,
    Struct,
    Type,
    parse_type,
)

__all__ = ["as_schema", "parse_ddl", "parse_partition", "partition_spec", "spark_schema_json", "spark_type_json"]

_DEFAULT_DECIMAL = (10, 0)  # Spark's own

_NAMED: dict[exp.DataType.Type, Type] = {
    exp.DataType.Type.BOOLEAN: BOOLEAN,
    exp.DataType.Type.TINYINT: INT,
    exp.DataType.Type.SMALLINT: INT,
    exp.DataType.Type.INT: INT,
    exp.DataType.Type.BIGINT: LONG,
    exp.DataType.Type.FLOAT: FLOAT,
    exp.DataType.Type.DOUBLE: DOUBLE,
    exp.DataType.Type.DATE: DATE,
    exp.DataType.Type.TIME: TIME,
    exp.DataType.Type.TIMESTAMPTZ: TIMESTAMPTZ,
    exp.DataType.Type.TIMESTAMPLTZ: TIMESTAMPTZ,
    exp.DataType.Type.TIMESTAMPNTZ: TIMESTAMP,
    exp.DataType.Type.TEXT: STRING,
    exp.DataType.Type.VARCHAR: STRING,
    exp.DataType.Type.CHAR: STRING,
    exp.DataType.Type.UUID: UUID,
    exp.DataType.Type.BINARY: BINARY,
}
_FIXED = re.compile(r"\bfixed\s*[\[(]", re.IGNORECASE)

_TRANSFORMS = {
    "identity": "identity",
    **{name: name for name in ("year", "month", "day", "hour")},
    **{f"{name}s": name for name in ("year", "month", "day", "hour")},
    "bucket": "bucket",
    "truncate": "truncate",
    "void": "void",
}
_SUFFIXES = {"truncate": "trunc", "void": "null"}
_COLUMN = r"(?P<{0}>(?:`[^`]+`|\w+)(?:\.(?:`[^`]+`|\w+))*)"
_CALL = re.compile(r"(?P<name>\w+)\s*\(\s*(?:(?P<width>\d{1,9})\s*,\s*)?" + _COLUMN.format("source") + r"\s*\)")
_BARE = re.compile(_COLUMN.format("source"))


def parse_ddl(text: str) -> Schema:
    """The columns of a Spark SQL column list, with fresh ids.

    >>> str(parse_ddl("id bigint not null, tags array<string>").field("tags").type)
    'list<string>'
    """
    if _FIXED.search(text) is not None:
        raise InputError("type fixed has no spelling in Spark SQL; give an Arrow schema with binary(length)")
    try:
        parsed = parse_one(f"CREATE TABLE t ({text}\n)", read="spark")
    except ParseError as error:
        detail = error.errors[0] if len(error.errors) > 0 else {}
        near = f"{detail.get('start_context', '')[-30:]}{detail.get('highlight', '')}".removeprefix("CREATE TABLE t (")
        raise InputError(f"cannot read the columns {text!r}: near {near!r}", text=text) from error
    except (SqlglotError, RecursionError) as error:
        raise InputError(f"cannot read the columns {text!r}: {error}", text=text) from error
    columns = parsed.this.expressions if _is_column_list(parsed) else []
    if len(columns) == 0:
        raise InputError(f"{text!r} is not a list of columns such as 'id bigint not null, name string'", text=text)
    return _schema(tuple(_column(column, "") for column in columns))


def _is_column_list(parsed: exp.Expression) -> bool:
    return (
        isinstance(parsed, exp.Create)
        and isinstance(parsed.this, exp.Schema)
        and parsed.args.get("properties") is None
        and parsed.args.get("expression") is None
    )


def _schema(fields: tuple[Field, ...]) -> Schema:
    """A schema of fields that the caller gave: what breaks the format is the caller's mistake."""
    try:
        return Schema(fields=fresh_ids(fields))
    except FormatError as error:
        raise InputError(str(error), **error.context) from error


def _column(column: exp.Expression, parent: str) -> Field:
    if not isinstance(column, exp.ColumnDef) or column.args.get("kind") is None:
        raise InputError(f"{column.sql('spark')!r} is not a column with a type", text=column.sql("spark"))
    name = f"{parent}{column.name}"
    required, doc = False, None
    for constraint in column.args.get("constraints") or ():
        match constraint.args.get("kind"):
            case exp.NotNullColumnConstraint() as rule:
                required = rule.args.get("allow_null") is not True
            case exp.CommentColumnConstraint() as comment:
                doc = comment.name
            case _:
                raise InputError(f"column {name!r}: {constraint.sql('spark')!r} is not handled", field=name)
    return Field(0, column.name, _type(column.args["kind"], name), required, doc)


def _type(kind: exp.DataType, name: str) -> Type:
    inner = kind.expressions
    match kind.this:
        case exp.DataType.Type.STRUCT if len(inner) > 0:
            return Struct(tuple(_column(column, f"{name}.") for column in inner))
        case exp.DataType.Type.ARRAY if len(inner) == 1:
            return List(0, _type(inner[0], f"{name}.element"))
        case exp.DataType.Type.MAP if len(inner) == 2:
            return Map(0, _type(inner[0], f"{name}.key"), 0, _type(inner[1], f"{name}.value"))
        case exp.DataType.Type.DECIMAL if all(p.name.isdecimal() for p in inner) and len(inner) <= 2:
            precision, scale = (*(int(p.name) for p in inner), *_DEFAULT_DECIMAL[len(inner) :])
            return _decimal(precision, scale, name)
        case named if named in _NAMED:
            return _NAMED[named]
    raise InputError(f"column {name!r}: type {kind.sql('spark')} is not handled", field=name)


def _decimal(precision: int, scale: int, name: str) -> Type:
    try:
        return parse_type(str(Decimal(precision, scale)))
    except FormatError as error:
        raise InputError(f"column {name!r}: {error}", field=name) from error


def as_schema(value: object) -> Schema:
    """A schema from however the caller has it: Spark SQL text, Arrow, a Spark ``StructType``, or ours; with fresh ids.

    >>> as_schema(pa.schema({"id": pa.int64()})) == as_schema("id bigint")
    True
    """
    if isinstance(value, Schema):
        return assign_ids(value)
    if isinstance(value, str):
        return parse_ddl(value)
    if hasattr(value, "json") and hasattr(value, "fields"):
        return _schema(fields_from_spark_json(value.json()))
    if isinstance(value, pa.Schema) or hasattr(value, "__arrow_c_schema__"):
        return _schema(fields_from_arrow(pa.schema(value))[0])
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    raise InputError(f"cannot read a schema from {kind}: give Spark SQL text, an Arrow or a Spark schema", type=kind)


def parse_partition(text: str, schema: Schema) -> tuple[str, str]:
    """The transform, as the format spells it, and the source column of a partition text.

    >>> parse_partition("bucket(16, id)", parse_ddl("id bigint"))
    ('bucket[16]', 'id')
    """
    called = _CALL.fullmatch(text.strip())
    found = called if called is not None else _BARE.fullmatch(text.strip())
    if found is None:
        raise InputError(f"cannot read the partition {text!r}: write day(ts), bucket(16, id) or a column", text=text)
    source = found["source"].replace("`", "")
    schema.field(source)
    if called is None:
        return "identity", source
    transform = _TRANSFORMS.get(called["name"].lower())
    if transform is None:
        known = ", ".join(dict.fromkeys(_TRANSFORMS.values()))
        raise InputError(f"partition {text!r}: there is no transform {called['name']!r}; use one of {known}", text=text)
    return _with_width(transform, called["width"], text), source


def _with_width(transform: str, width: str | None, text: str) -> str:
    takes = transform in ("bucket", "truncate")
    if takes != (width is not None):
        rule = (
            f"{transform} takes a number first, as in {transform}(16, id)" if takes else f"{transform} takes a column"
        )
        raise InputError(f"partition {text!r}: {rule}", text=text)
    return transform if width is None else f"{transform}[{int(width)}]"


def partition_spec(
    texts: Iterable[str], schema: Schema, start_field_id: int = FIRST_PARTITION_FIELD_ID
) -> PartitionSpec:
    """The partition spec of some texts, with Iceberg's names for the fields (``ts_day``, ``id_bucket``).

    >>> [field.name for field in partition_spec(["day(ts)", "id"], parse_ddl("id bigint, ts timestamp")).fields]
    ['ts_day', 'id']
    """
    fields: list[PartitionField] = []
    for field_id, text in enumerate(texts, start_field_id):
        transform, source = parse_partition(text, schema)
        name = _partition_name(transform, source)
        if any(field.name == name for field in fields):
            raise InputError(f"partition {text!r}: there is a partition field {name!r} already", text=text)
        if transform != "identity" and name in schema.by_name:
            raise InputError(f"partition {text!r}: its name {name!r} is that of a column", text=text)
        fields.append(
            PartitionField(source_id=schema.field(source).id, field_id=field_id, name=name, transform=transform)
        )
    return PartitionSpec(fields=tuple(fields))


def _partition_name(transform: str, source: str) -> str:
    kind = transform.partition("[")[0]
    return source if kind == "identity" else f"{source}_{_SUFFIXES.get(kind, kind)}"
