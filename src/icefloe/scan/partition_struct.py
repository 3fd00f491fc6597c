"""The partition tuples of files of all specs, as one struct type (spec: Reserved Field IDs)."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.context import ManifestContext
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.entries import partition_key
from icefloe.model.schema.types import Field, Struct
from icefloe.scan.identity_columns import partition_value


def partition_struct(context: ManifestContext) -> Struct:
    """The partition fields of all specs; if two have the same name, the older one gets its id as a suffix."""
    fields: dict[str, Field] = {}
    for id_, part in sorted(context.partition_fields.items(), reverse=True):
        name = part.name if part.name not in fields else f"{part.name}_{id_}"
        fields[name] = Field(id_, name, context.partition_types[id_])
    return Struct(tuple(sorted(fields.values(), key=lambda field: field.id)))


def partition_tuples(tasks: pa.Table, type_: Struct) -> pa.StructArray:
    """The tuple of each file; fields that are not in its spec are null."""
    values = []
    for field in type_.fields:
        value, has_value = partition_value(tasks, partition_key(field.id), arrow_type(field.type))
        values.append(pc.if_else(has_value, value, None))
    return pa.StructArray.from_arrays(values, fields=list(arrow_type(type_)))
