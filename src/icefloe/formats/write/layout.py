"""The schema and settings that writers of all formats need (spec: Appendix A).

Settings of one format are read from the properties by its writer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from icefloe.formats.write.measure import Paths, float_paths, sized_paths
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.metadata.properties import TARGET_FILE_SIZE
from icefloe.model.schema.schema import Schema, derived


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How files are written: ``rows`` is the Arrow schema of the batches that a writer gets, ids included."""

    schema: Schema
    rows: pa.Schema
    floats: Paths  # the path of each column that may hold NaN, by field id
    sized: Paths  # the path of each column whose values have different sizes, by field id
    properties: Mapping[str, str]
    target_bytes: int  # of a finished file


def layout(schema: Schema, properties: Mapping[str, str], *, target_bytes: int | None = None) -> Layout:
    """The layout for a schema and the properties of a table."""
    target = TARGET_FILE_SIZE.of(properties) if target_bytes is None else target_bytes
    return Layout(
        schema=schema,
        rows=arrow_schema(schema),
        floats=derived(schema, "floats", float_paths),
        sized=derived(schema, "sized", sized_paths),
        properties=properties,
        target_bytes=target,
    )
