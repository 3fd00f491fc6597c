"""Types of partition values that table metadata lacks, inferred from the values (spec: Partition Evolution).

A former partition column may be absent from every schema after another program has expired old schemas. Manifests
still contain its values, and their own schemas have the types, so they can be rewritten unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from icefloe.codecs.manifest.context import ManifestContext
from icefloe.errors import IcefloeError
from icefloe.model.arrow.schema_from_arrow import schema_from_arrow
from icefloe.model.entries import Measure, partition_key, stat
from icefloe.model.metadata.version_rules import VERSIONS
from icefloe.model.schema.types import INT, Type


def infer_types(columns: Mapping[str, pa.Array], context: ManifestContext) -> dict[int, Type]:
    """Infers the types of partition values that the table metadata lacks from statistics columns, by field id."""
    types: dict[int, Type] = {}
    for field_id in context.untyped:
        key = partition_key(field_id)
        if stat(Measure.VALUES, key) in columns:
            bounds = columns.get(stat(Measure.LOWER, key))
            type_ = INT if bounds is None else type_of_arrow(bounds.type)  # without bounds all values are null
            types |= {} if type_ is None else {field_id: type_}
    return types


def type_of_arrow(type_: pa.DataType) -> Type | None:
    """The type whose values Arrow holds so; none if there is no such type."""
    if isinstance(type_, pa.BaseExtensionType):
        type_ = type_.storage_type
    if pa.types.is_null(type_):
        return INT
    try:
        return schema_from_arrow(pa.schema([pa.field("value", type_)]), format_version=VERSIONS[-1]).fields[0].type
    except IcefloeError:
        return None
