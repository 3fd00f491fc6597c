"""Filters on metadata columns such as ``_file`` and ``_row_id`` (spec: Reserved Field IDs).

Statistics know nothing of these columns. Conditions on the file, the spec and the partition are evaluated for all
planned files at once. Readers evaluate the others on rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.expr.filter.batch_filter import evaluate_rows
from icefloe.expr.filter.filter_columns import filter_columns
from icefloe.expr.filter.nodes import (
    ALWAYS_TRUE,
    Bound,
    BoundPredicate,
    Expr,
    Predicate,
    conjunction,
    conjuncts,
    leaves,
)
from icefloe.model.schema.metadata_columns import FILE, PARTITION_ID, SPEC_ID, is_metadata_column
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Struct
from icefloe.scan.partition_values import partition_tuples
from icefloe.scan.tasks import MetadataFilter
from icefloe.scan.trace import Decision, Kind, filter_text

_REASON = "metadata columns"


def tested_metadata_columns(filter_: Expr, schema: Schema) -> tuple[str, ...]:
    """The metadata columns that a filter tests; a column of the table with such a name is none.

    >>> from icefloe.expr.filter.nodes import Op
    >>> tested_metadata_columns(Predicate(Op.EQ, "_partition.day", (1,)), Schema(fields=()))
    ('_partition',)
    """
    return tuple(dict.fromkeys(_metadata_columns(filter_, schema)))


def _metadata_columns(filter_: Expr, schema: Schema) -> Iterator[str]:
    for leaf in leaves(filter_):
        if isinstance(leaf, Predicate) and leaf.column not in schema.by_name:
            name = leaf.column.partition(".")[0]
            if is_metadata_column(name) and name not in schema.by_name:
                yield name


def split_filter(filter_: Expr, schema: Schema) -> tuple[Expr, Expr]:
    """The conjuncts that test columns of the table only, and the others."""
    parts = conjuncts(filter_)
    is_other = [len(tested_metadata_columns(part, schema)) > 0 for part in parts]
    on_table = conjunction(part for part, other in zip(parts, is_other, strict=True) if not other)
    return on_table, conjunction(part for part, other in zip(parts, is_other, strict=True) if other)


def matching_files(tasks: pa.Table, filter_: Bound, schema: Schema) -> tuple[pa.Array, Bound]:
    """Which planned files a filter on metadata columns selects, and the condition that remains for their rows.

    ``schema`` has the columns that the filter tests.
    """
    columns = {FILE.name: tasks["location"].combine_chunks(), SPEC_ID.name: tasks["partition_spec_id"].combine_chunks()}
    known = {FILE.id, SPEC_ID.id}
    for field in schema.fields:
        if field.id == PARTITION_ID and isinstance(field.type, Struct):
            columns[field.name] = partition_tuples(tasks, field.type)
            known |= {field.id, *(part.id for part in field.type.fields)}
    parts = cast(tuple[Bound, ...], conjuncts(filter_))
    on_files = [part for part in parts if all(leaf.field_id in known for leaf in _predicates(part))]
    selected: pa.Array = pa.repeat(True, tasks.num_rows)
    for part in on_files:
        selected = pc.and_(selected, pc.fill_null(evaluate_rows(part, pa.record_batch(columns)), False))
    remaining = conjunction(part for part in parts if part not in on_files)
    return selected, cast(Bound, remaining)


def _predicates(filter_: Bound) -> Iterator[BoundPredicate]:
    return (leaf for leaf in leaves(filter_) if isinstance(leaf, BoundPredicate))


def row_filter(remaining: Bound, schema: Schema) -> MetadataFilter | None:
    """The condition for readers; none if all rows of the selected files match."""
    if remaining == ALWAYS_TRUE:
        return None
    return MetadataFilter(filter=remaining, columns=filter_columns(remaining, schema))


def with_skipped_files(trace: pa.Table, locations: pa.ChunkedArray, filter_: Expr) -> pa.Table:
    """The trace of a plan in which these files are skipped by a filter on metadata columns."""
    is_skipped = pc.and_(pc.equal(trace["kind"], Kind.FILE), pc.is_in(trace["location"], value_set=locations))
    changes = {"decision": Decision.SKIPPED, "reason": _REASON, "conjunct": filter_text(filter_)}
    for name, text in changes.items():
        column = pc.if_else(is_skipped, text, trace[name])
        trace = trace.set_column(trace.schema.get_field_index(name), trace.schema.field(name), column)
    return trace
