"""All metadata tables by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from icefloe.inspect.metadata_tables.file_tables import FILE_TABLES
from icefloe.inspect.metadata_tables.log_tables import LOG_TABLES
from icefloe.inspect.metadata_tables.manifest_tables import MANIFEST_TABLES
from icefloe.inspect.metadata_tables.partition_table import PARTITION_TABLES
from icefloe.inspect.metadata_tables.position_deletes import POSITION_TABLES
from icefloe.inspect.metadata_tables.table_shape import MetadataTable

METADATA_TABLES: Mapping[str, MetadataTable] = MappingProxyType(
    {**LOG_TABLES, **FILE_TABLES, **MANIFEST_TABLES, **PARTITION_TABLES, **POSITION_TABLES}
)
