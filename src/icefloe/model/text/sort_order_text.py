"""Sort orders as people write them: ``id``, ``ts desc nulls last``, ``bucket(16, id) asc`` (spec: Sorting)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from icefloe.errors import InputError
from icefloe.model.partition.sort_order import UNSORTED, Direction, NullOrder, SortField, SortOrder, order_problem
from icefloe.model.schema.schema import Schema
from icefloe.model.text.ddl import parse_partition, term_text
from icefloe.model.text.text_checks import listed

_KEY = re.compile(
    r"(?P<term>.+?)(?:\s+(?:asc|(?P<desc>desc)))?(?:\s+nulls\s+(?:(?P<first>first)|(?P<last>last)))?",
    re.IGNORECASE | re.DOTALL,
)
FIRST_ORDER_ID = 1


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
