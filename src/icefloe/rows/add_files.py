"""Adds existing data files to a table without copying them (spec: Column Projection; Partitioning).

The files are not changed. They are checked first, so that they can be read. Then they belong to the table: its
maintenance may delete those below its location when no snapshot needs them any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, TypeAlias

from icefloe.codecs.json.name_mapping import decode_mapping, encode_mapping
from icefloe.commit.draft import draft_of
from icefloe.commit.operations.add_files import AddFiles, SetFirstNameMapping, known_files
from icefloe.engines.choose import engine_for
from icefloe.errors import InputError
from icefloe.formats.importing.folder import THREADS, data_files
from icefloe.formats.importing.foreign_columns import known_names
from icefloe.formats.importing.foreign_file import Imported, ImportTarget, imported
from icefloe.formats.importing.stated_partitions import HIVE, StatedByFile, hive_values
from icefloe.formats.write.entries import entries_of
from icefloe.formats.write.metrics import metrics_modes
from icefloe.formats.write.partition_values import partition_fields
from icefloe.model.metadata.snapshots import Operation
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.name_mapping import NAME_MAPPING_PROPERTY, mapping_of
from icefloe.rows.prepared import Prepared, RowChange
from icefloe.rows.target import Target

Partition: TypeAlias = Mapping[str, object] | Literal["hive"] | StatedByFile | None


def add_files(paths: str | Iterable[str], *, partition: Partition = None, file_format: str | None = None) -> RowChange:
    """Add files; nothing happens if they have no rows. InputError names the first file that cannot be added."""
    locations = [paths] if isinstance(paths, str) else list(paths)
    return RowChange(
        engine=engine_for(None), prepare=lambda target: _add_files(target, locations, partition, file_format)
    )


def _add_files(target: Target, paths: list[str], partition: Partition, file_format: str | None) -> Prepared:
    metadata, io = target.metadata, target.io
    locations = data_files(io, paths)
    known = known_files(draft_of(target.base), target.branch, locations)
    if len(known) > 0:
        raise InputError(f"{known[0]} is in the table already", files=list(known[:20]))
    _check_partition(partition, metadata)
    text = metadata.properties.get(NAME_MAPPING_PROPERTY)
    mapping = mapping_of(metadata.schema) if text is None else decode_mapping(text)
    expected = ImportTarget(
        schema=metadata.schema,
        spec=metadata.spec,
        mapping=mapping,
        known=known_names(metadata.schemas, mapping),
    )

    def look(location: str) -> Imported | None:
        stated = _values(partition, location)
        return imported(io, location, expected, file_format=file_format, stated_values=stated)

    with ThreadPoolExecutor(THREADS, thread_name_prefix="icefloe-import") as pool:
        with_rows = [file for file in pool.map(look, locations) if file is not None]
    if len(with_rows) == 0:
        return Prepared(operation=Operation.APPEND)
    files = [checked.file for checked in with_rows]
    io.sync([file.location for file in files])  # another program wrote them, perhaps without a sync
    modes = metrics_modes(metadata.schema, metadata.properties)
    added = entries_of(files, schema=metadata.schema, spec=metadata.spec, modes=modes)
    first_mapping = None
    if text is None and any(checked.by_name for checked in with_rows):
        text = encode_mapping(mapping)
        first_mapping = SetFirstNameMapping(mapping=text)
    update = AddFiles(added=added, schema_id=metadata.current_schema_id, mapping=text, branch=target.branch)
    return Prepared(operation=Operation.APPEND, update=update, table_change=first_mapping)


def _values(partition: Partition, location: str) -> Mapping[str, object] | None:
    if isinstance(partition, StatedByFile):
        return partition.values[location]
    return hive_values(location) if isinstance(partition, str) else partition


def _check_partition(partition: Partition, metadata: TableMetadata) -> None:
    """InputError if ``partition`` has values for columns that the table is not partitioned by."""
    if partition is None or partition == HIVE or isinstance(partition, StatedByFile):
        return
    if isinstance(partition, str):
        raise InputError(f"partition={partition!r}: give 'hive', or values by name such as {{'region': 'eu'}}")
    columns = partition_fields(metadata.schema, metadata.spec)
    names = {column.field.name for column in columns}
    names |= {".".join(column.path) for column in columns if column.transform.is_identity}
    for name in partition:
        if name not in names:
            known = ", ".join(sorted(names)) if len(names) > 0 else "nothing"
            raise InputError(f"partition: the table is not partitioned by {name!r}, but by {known}", field=name)
