"""How Spark reads each planned file: alone, with joins that apply equality deletes, or by tasks in Python.

Spark's own Parquet reader reads most files. An equality delete file of a common form becomes the other side of a join.
Other files are read by this library inside of Spark's tasks, which takes several times as long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import IntEnum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.model.entries import ContentType, of_type
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Decimal,
    Field,
    Fixed,
    Type,
    is_primitive,
)
from icefloe.scan.tasks import Plan

Mask: TypeAlias = npt.NDArray[np.bool_]

_KEY_TYPES = frozenset(
    {BOOLEAN, INT, LONG, FLOAT, DOUBLE, STRING, BINARY, DATE, TIMESTAMP, TIMESTAMPTZ, UUID}
)  # that Spark compares as this library does


class Route(IntEnum):
    """How Spark reads a file."""

    NATIVE = 0  # by its own Parquet reader
    JOINED = 1  # by its own Parquet reader, followed by joins with equality deletes
    TASKS = 2  # by this library inside of tasks


def finds_columns(schemas: Iterable[Schema], current: Schema) -> bool:
    """Whether Spark's Parquet reader finds all columns of a table in its files; otherwise tasks read them.

    It finds columns by id, but looks their types up by the name in the file. That is wrong if a name has belonged to
    two columns, or a column has had several names and several types. It does not apply the initial defaults of structs,
    and of fields inside of structs, lists and maps. Schemas that the metadata no longer has are not known; there Spark
    fails on such a file.

    >>> first, renamed, widened = Field(1, "a", INT), Field(1, "b", INT), Field(1, "b", LONG)
    >>> finds_columns([Schema(fields=(first,)), Schema(fields=(renamed,))], Schema(fields=(renamed,)))
    True
    >>> finds_columns([Schema(fields=(first,)), Schema(fields=(widened,))], Schema(fields=(widened,)))
    False
    """
    owners: dict[str, int] = {}
    names: dict[int, set[str]] = {}
    types: dict[int, set[Type]] = {}
    for schema in schemas:
        for id_, name in schema.names.items():
            if owners.setdefault(name, id_) != id_:
                return False
            names.setdefault(id_, set()).add(name)
            if is_primitive(schema.by_id[id_].type):
                types.setdefault(id_, set()).add(schema.by_id[id_].type)
    if any(len(names[id_]) > 1 and len(types[id_]) > 1 for id_ in types):
        return False
    top = {field.id for field in current.fields}
    defaults = {id_: field.type for id_, field in current.by_id.items() if field.initial_default is not None}
    return all(id_ in top and is_primitive(type_) for id_, type_ in defaults.items())


def file_routes(plan: Plan, *, native: bool = True) -> npt.NDArray[np.int8]:
    """The route of each planned file, as far as metadata shows it: the footers of Parquet files are not read.

    ``native`` is true if Spark's Parquet reader finds the columns of the table (``finds_columns``).
    """
    if not native:
        return np.full(plan.files, Route.TASKS, np.int8)
    routes = np.zeros(plan.files, np.int8)
    lists = plan.tasks["deletes"].combine_chunks()
    owners, numbers = pc.list_parent_indices(lists).to_numpy(), pc.list_flatten(lists).to_numpy()
    if len(numbers) > 0:
        is_equality = np.asarray(of_type(plan.deletes, ContentType.EQUALITY_DELETES))
        by_tasks = is_equality & ~joinable(plan.deletes, plan.table_schema)
        routes[owners[is_equality[numbers]]] = Route.JOINED
        routes[owners[by_tasks[numbers]]] = Route.TASKS
    routes[~is_parquet(plan.tasks)] = Route.TASKS
    return routes


def is_parquet(files: pa.Table) -> Mask:
    """Which files are Parquet; a file without a stated format is."""
    mask: Mask = np.asarray(pc.equal(pc.utf8_lower(pc.fill_null(files["file_format"], "parquet")), "parquet"))
    return mask


def joinable(deletes: pa.Table, schema: Schema) -> Mask:
    """Which equality delete files Spark can join: Parquet files that compare top-level columns of the schema."""
    ids = deletes["equality_ids"].combine_chunks()
    owners, values = pc.list_parent_indices(ids).to_numpy(), pc.list_flatten(ids)
    mask: Mask = is_parquet(deletes) & np.asarray(pc.fill_null(pc.greater(pc.list_value_length(ids), 0), False))
    spellings = Counter(field.name.lower() for field in schema.fields)
    known = [field.id for field in schema.fields if spellings[field.name.lower()] == 1 and _is_comparable(field)]
    unknown = pc.invert(pc.is_in(values, value_set=pa.array(known, pa.int32())))
    mask[owners[np.asarray(unknown)]] = False
    return mask


def _is_comparable(field: Field) -> bool:
    return field.type in _KEY_TYPES or isinstance(field.type, (Decimal, Fixed))
