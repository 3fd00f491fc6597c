"""Statistics of expressions that partition nothing (V4 proposal).

Such an expression is a virtual column: its id is from the id space of columns, and its statistics are those of a column
with that id. Where they are not recorded, they follow from the statistics of the source column: a transform that keeps
the order of values has the transformed bounds, any other one only where all values of the source are equal.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.context import ManifestContext
from icefloe.codecs.value.inferred_types import type_of_arrow
from icefloe.model.entries import BOUNDS, Columns, Measure, column_key, stat
from icefloe.model.schema.types import Type, is_primitive
from icefloe.transforms import parse_transform


def unknown_types(columns: Columns, context: ManifestContext) -> dict[int, Type]:
    """The types of virtual columns whose transform is unknown, from their recorded bounds, by expression id."""
    types: dict[int, Type] = {}
    for id_ in context.virtual.keys() - context.types.keys():
        bounds = columns.get(stat(Measure.LOWER, column_key(id_)))
        type_ = None if bounds is None else type_of_arrow(bounds.type)
        types |= {} if type_ is None or not is_primitive(type_) else {id_: type_}
    return types


def derived_measures(expr_id: int, columns: Columns, context: ManifestContext) -> dict[Measure, pa.Array]:
    """The measures of a virtual column that follow from those of its source column."""
    expression = context.virtual[expr_id]
    source_id, transform = expression.source_ids[0], parse_transform(expression.transform)
    source = context.column_type(source_id)
    if len(expression.source_ids) > 1 or source is None or transform.is_void or not transform.accepts(source):
        return {}
    key = column_key(source_id)
    known = {m: columns[stat(m, key)] for m in (*BOUNDS, Measure.TIGHT) if stat(m, key) in columns}
    counts = (Measure.VALUES, Measure.NULLS)  # a transform is null where its source is
    measures = {m: columns[stat(m, key)] for m in counts if stat(m, key) in columns}
    if not all(bound in known for bound in BOUNDS):
        return measures
    lower, upper = (transform.apply(known[bound], source) for bound in BOUNDS)
    tight = known.get(Measure.TIGHT, pa.nulls(len(lower), pa.bool_()))
    if not transform.preserves_order:
        constant = pc.and_(pc.equal(known[Measure.LOWER], known[Measure.UPPER]), pc.fill_null(tight, False))
        constant = pc.fill_null(constant, False)
        lower, upper = pc.if_else(constant, lower, None), pc.if_else(constant, upper, None)
        tight = pc.if_else(constant, True, None)
    tight = pc.if_else(pc.fill_null(tight, False), True, None)  # cut bounds may or may not have exact results
    return {**measures, Measure.LOWER: lower, Measure.UPPER: upper, Measure.TIGHT: tight}
