"""What the Spark engine supports."""

from __future__ import annotations

from icefloe.engines.capabilities import Capabilities, RowOperation
from icefloe.model.schema.types import TIMESTAMP_NS, TIMESTAMPTZ_NS, Geography, Geometry, Variant

SPARK = Capabilities(
    engine="Spark",
    applies_equality_deletes=False,
    applies_initial_defaults=False,
    refused={
        RowOperation.UPDATE: "update is not done on Spark yet; do it in this process, without a Spark session",
        RowOperation.MERGE: "merge of a Spark DataFrame is not supported yet; give Arrow data, such as df.toArrow()",
        RowOperation.EQUALITY_DELETES: (
            "equality deletes are not written on Spark yet; upsert with deletes='position'"
        ),
        RowOperation.SCHEMA_MERGE: "schema_mode='merge' takes Arrow data; for a DataFrame, change the schema first",
    },
    refused_types=(Variant, Geometry, Geography, TIMESTAMP_NS, TIMESTAMPTZ_NS),
)
