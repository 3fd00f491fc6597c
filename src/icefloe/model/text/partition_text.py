"""Partition fields and sort keys as text: ``bucket(16, id)``, ``ts desc nulls last`` (spec: Partitioning, Sorting)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from icefloe.errors import InputError
from icefloe.model.partition.sort_order import UNSORTED, Direction, NullOrder, SortField, SortOrder, order_problem
from icefloe.model.partition.spec import FIRST_PARTITION_FIELD_ID, PartitionField, PartitionSpec, partition_name
from icefloe.model.partition.transform_names import IDENTITY, TRANSFORM_NAMES, TransformName
from icefloe.model.schema.schema import Schema
from icefloe.model.text.text_checks import listed

_SYNONYMS = {"date": "day", "date_hour": "hour"}  # further spellings of Apache Iceberg's DDL
_TRANSFORMS = {spelling: names for names in TRANSFORM_NAMES for spelling in (names.name, names.function)}
_MAX_WIDTH = (1 << 31) - 1  # of an int
_COLUMN = re.compile(r"(?:`[^`]+`|\w+)(?:\.(?:`[^`]+`|\w+))*")
_COLUMNS = rf"{_COLUMN.pattern}(?:\s*,\s*{_COLUMN.pattern})*"
_CALL = re.compile(rf"(?P<name>\w+)\s*\(\s*(?:(?P<width>\d+)\s*,\s*)?(?P<sources>{_COLUMNS})\s*\)")
_NUMBER = re.compile(r"[0-9]+")
_KEY = re.compile(
    r"(?P<term>.+?)(?:\s+(?:asc|(?P<desc>desc)))?(?:\s+nulls\s+(?:(?P<first>first)|(?P<last>last)))?",
    re.IGNORECASE | re.DOTALL,
)
FIRST_ORDER_ID = 1


def parse_partition(text: str, schema: Schema) -> tuple[str, tuple[str, ...]]:
    """The transform, in the spelling of the format, and the source columns of a partition text.

    >>> from icefloe.model.text.ddl import parse_ddl
    >>> parse_partition("bucket(16, id)", parse_ddl("id bigint"))
    ('bucket[16]', ('id',))
    >>> parse_partition("bucket(16, id, city)", parse_ddl("id bigint, city string"))
    ('bucket[16]', ('id', 'city'))

    The number may come last, as in Apache Iceberg.

    >>> parse_partition("truncate(id, 2)", parse_ddl("id bigint"))
    ('truncate[2]', ('id',))
    """
    called = _CALL.fullmatch(text.strip())
    if called is None and _COLUMN.fullmatch(text.strip()) is None:
        hint = " That is how metadata writes a transform, without its column." if "[" in text else ""
        raise InputError(
            f"cannot read the partition {text!r}: write day(ts), bucket(16, id) or a column.{hint}", text=text
        )
    columns = text if called is None else called["sources"]
    sources = [column.replace("`", "") for column in _COLUMN.findall(columns)]
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

    >>> from icefloe.model.text.ddl import parse_ddl
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

    >>> from icefloe.model.text.ddl import parse_ddl
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


def sort_order(texts: Iterable[str], schema: Schema) -> SortOrder:
    """The sort order of some texts; without texts it is "unsorted".

    Keys are ascending unless they say ``desc``. Nulls come first in ascending keys and last in descending ones.

    >>> from icefloe.model.text.ddl import parse_ddl
    >>> order = sort_order(["ts desc", "bucket(16, id)"], parse_ddl("id bigint, ts timestamp"))
    >>> [(f.transform, f.direction, f.null_order) for f in order.fields]
    [('identity', 'desc', 'nulls-last'), ('bucket[16]', 'asc', 'nulls-first')]
    """
    fields = tuple(sort_field(text, schema) for text in listed(texts, "sort_by"))
    if len(fields) == 0:
        return UNSORTED
    order = SortOrder(order_id=FIRST_ORDER_ID, fields=fields)
    problem = order_problem(order, schema)
    if problem is not None:
        raise InputError(problem)
    return order


def sort_field(text: str, schema: Schema) -> SortField:
    """One key of a sort order."""
    match = _KEY.fullmatch(text.strip())
    if match is None:
        raise InputError("a sort key is empty; write a column, 'ts desc nulls last' or 'bucket(16, id)'", text=text)
    try:
        transform, (source, *others) = parse_partition(match["term"], schema)
    except InputError as error:
        raise InputError(f"sort key {text!r}: {error}", **{**error.context, "text": text}) from error
    if len(others) > 0:
        raise InputError(f"sort key {text!r}: transforms of several columns cannot be sorted by", text=text)
    direction: Direction = "asc" if match["desc"] is None else "desc"
    has_nulls_first = match["last"] is None if direction == "asc" else match["first"] is not None
    null_order: NullOrder = "nulls-first" if has_nulls_first else "nulls-last"
    return SortField(source_id=schema.field(source).id, transform=transform, direction=direction, null_order=null_order)


def sort_key_text(field: SortField, schema: Schema) -> str:
    """One key of a sort order as people write it.

    >>> from icefloe.model.text.ddl import parse_ddl
    >>> schema = parse_ddl("id bigint, ts timestamp")
    >>> sort_key_text(sort_field("bucket(4, id) desc", schema), schema)
    'bucket(4, id) desc nulls last'
    """
    term = term_text(field.transform, field.source_ids, schema)
    return f"{term} {field.direction} {field.null_order.replace('-', ' ')}"
