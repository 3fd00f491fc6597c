"""Schemas and partitioning as people write them: Spark SQL column lists, ``day(ts)``, Arrow and Spark schemas.

The text is that of Spark SQL: ``timestamp`` is an instant (the format's ``timestamptz``), ``timestamp_ntz`` is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa

from icefloe.errors import InputError
from icefloe.model.arrow.schema_from_arrow import fields_from_arrow
from icefloe.model.metadata.version_rules import DEFAULT_FORMAT_VERSION
from icefloe.model.partition.spec import FIRST_PARTITION_FIELD_ID, PartitionField, PartitionSpec, partition_name
from icefloe.model.partition.transform_names import IDENTITY, TRANSFORM_NAMES, TransformName
from icefloe.model.schema.rules import check_schema
from icefloe.model.schema.schema import Schema, assign_ids
from icefloe.model.text.column_list import format_ddl, numbered, parse_ddl
from icefloe.model.text.spark_schema_json import fields_from_spark_json, spark_schema_json, spark_type_json
from icefloe.model.text.text_checks import listed

__all__ = [
    "as_schema",
    "format_ddl",
    "parse_ddl",
    "parse_partition",
    "partition_spec",
    "spark_schema_json",
    "spark_type_json",
]

_SYNONYMS = {"date": "day", "date_hour": "hour"}  # further spellings of Apache Iceberg's DDL
_TRANSFORMS = {spelling: names for names in TRANSFORM_NAMES for spelling in (names.name, names.function)}
_MAX_WIDTH = (1 << 31) - 1  # of an int
_COLUMN = r"(?P<{0}>(?:`[^`]+`|\w+)(?:\.(?:`[^`]+`|\w+))*)"
_NEXT = r"(?:\s*,\s*(?:`[^`]+`|\w+)(?:\.(?:`[^`]+`|\w+))*)*"
_CALL = re.compile(
    r"(?P<name>\w+)\s*\(\s*(?:(?P<width>\d+)\s*,\s*)?(?P<sources>" + _COLUMN.format("source") + _NEXT + r")\s*\)"
)
_SOURCE = re.compile(r"(?:`[^`]+`|\w+)(?:\.(?:`[^`]+`|\w+))*")
_NUMBER = re.compile(r"[0-9]+")
_BARE = re.compile(_COLUMN.format("source"))


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


def parse_partition(text: str, schema: Schema) -> tuple[str, tuple[str, ...]]:
    """The transform, in the spelling of the format, and the source columns of a partition text.

    >>> parse_partition("bucket(16, id)", parse_ddl("id bigint"))
    ('bucket[16]', ('id',))
    >>> parse_partition("bucket(16, id, city)", parse_ddl("id bigint, city string"))
    ('bucket[16]', ('id', 'city'))

    The number may come last, as in Apache Iceberg.

    >>> parse_partition("truncate(id, 2)", parse_ddl("id bigint"))
    ('truncate[2]', ('id',))
    """
    called = _CALL.fullmatch(text.strip())
    match = called if called is not None else _BARE.fullmatch(text.strip())
    if match is None:
        stated = " That is how metadata writes a transform, without its column." if "[" in text else ""
        raise InputError(
            f"cannot read the partition {text!r}: write day(ts), bucket(16, id) or a column.{stated}", text=text
        )
    columns = match["source"] if called is None else called["sources"]
    sources = [part.strip().replace("`", "") for part in _SOURCE.findall(columns)]
    width = None if called is None else called["width"]
    if width is None and len(sources) > 1 and _NUMBER.fullmatch(sources[-1]) and sources[-1] not in schema.by_name:
        *sources, width = sources
    for source in sources:
        schema.field(source)
    if called is None:
        return IDENTITY, tuple(sources)
    name = called["name"].lower()
    transform = _TRANSFORMS.get(_SYNONYMS.get(name, name))
    if transform is None:
        known = ", ".join(transform.name for transform in TRANSFORM_NAMES)
        raise InputError(f"partition {text!r}: there is no transform {called['name']!r}; use one of {known}", text=text)
    return _with_width(transform, width, text), tuple(sources)


def term_text(transform: str, source_ids: Iterable[int], schema: Schema) -> str:
    """A partition field or a sort key as people write it; sources that the schema no longer has are shown by their id.

    >>> schema = parse_ddl("id bigint, ts timestamp")
    >>> term_text("bucket[16]", [schema.field("id").id], schema), term_text("identity", [2], schema)
    ('bucket(16, id)', 'ts')
    """
    sources = ", ".join(schema.names.get(source_id, f"field {source_id}") for source_id in source_ids)
    if transform == IDENTITY:
        return sources
    name, _, width = transform.removesuffix("]").partition("[")
    return f"{name}({sources})" if width == "" else f"{name}({width}, {sources})"


def _with_width(transform: TransformName, width: str | None, text: str) -> str:
    name = transform.name
    if transform.is_sized != (width is not None):
        rule = f"takes a number first, as in {name}(16, id)" if transform.is_sized else "takes a column"
        raise InputError(f"partition {text!r}: {name} {rule}", text=text)
    if width is None:
        return name
    if len(width.lstrip("0")) not in range(1, 11) or int(width) > _MAX_WIDTH:
        what = "number of buckets" if name == "bucket" else f"width of {name}"
        raise InputError(f"partition {text!r}: the {what} is 1 to {_MAX_WIDTH}, not {width}", text=text)
    return f"{name}[{int(width)}]"


def partition_spec(
    texts: Iterable[str], schema: Schema, start_field_id: int = FIRST_PARTITION_FIELD_ID
) -> PartitionSpec:
    """The partition spec of some texts, with Iceberg's names for the fields (``ts_day``, ``id_bucket``).

    >>> [field.name for field in partition_spec(["day(ts)", "id"], parse_ddl("id bigint, ts timestamp")).fields]
    ['ts_day', 'id']
    """
    fields: list[PartitionField] = []
    for field_id, text in enumerate(listed(texts, "partition_by"), start_field_id):
        transform, sources = parse_partition(text, schema)
        name = partition_name(transform, *sources)
        if any(field.name == name for field in fields):
            raise InputError(f"partition {text!r}: there is a partition field {name!r} already", text=text)
        if transform != IDENTITY and name in schema.by_name:
            raise InputError(f"partition {text!r}: its name {name!r} is that of a column", text=text)
        source_id, *others = (schema.field(source).id for source in sources)
        fields.append(
            PartitionField(
                source_id=source_id,
                other_source_ids=tuple(others),
                field_id=field_id,
                name=name,
                transform=transform,
            )
        )
    return PartitionSpec(fields=tuple(fields))
