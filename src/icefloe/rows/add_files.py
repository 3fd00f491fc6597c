"""Adds existing data files to a table without copying them (spec: Column Projection; Partitioning).

The files are not changed. They are checked first, so that they can be read. Then they belong to the table: its
maintenance may delete those below its location when no snapshot needs them any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Literal, TypeAlias

from icefloe.codecs.json.name_mapping import decode_mapping, encode_mapping
from icefloe.commit.base import Base
from icefloe.commit.draft import Update, draft_of
from icefloe.commit.operations.add_files import AddFiles, SetFirstNameMapping, known_files, spellings
from icefloe.errors import InputError, NoSuchFile
from icefloe.formats.importing.foreign_columns import known_names
from icefloe.formats.importing.foreign_file import Imported, ImportTarget, imported
from icefloe.formats.importing.stated_partitions import HIVE, hive_values
from icefloe.formats.write.entries import entries_of
from icefloe.formats.write.metrics import metrics_modes
from icefloe.formats.write.partition_values import partition_fields
from icefloe.io.file_io import FileIO
from icefloe.io.local import file_location
from icefloe.io.storage_locations import plain_location
from icefloe.model.locations import FILE
from icefloe.model.metadata.snapshots import MAIN
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.name_mapping import NAME_MAPPING_PROPERTY, mapping_of

Partition: TypeAlias = Mapping[str, object] | Literal["hive"] | None

_THREADS = 8  # footers are small, so most of the time is spent waiting


def add_files(
    base: Base,
    paths: str | Iterable[str],
    *,
    partition: Partition = None,
    file_format: str | None = None,
    branch: str = MAIN,
) -> tuple[Update, ...]:
    """The steps that add files; none if they have no rows. InputError names the first file that cannot be added."""
    metadata, io = base.metadata, base.store.io
    locations = _locations(io, [paths] if isinstance(paths, str) else list(paths))
    known = known_files(draft_of(base), branch, locations)
    if len(known) > 0:
        raise InputError(f"{known[0]} is in the table already", files=list(known[:20]))
    _check_partition(partition, metadata)
    text = metadata.properties.get(NAME_MAPPING_PROPERTY)
    mapping = mapping_of(metadata.schema) if text is None else decode_mapping(text)
    target = ImportTarget(
        schema=metadata.schema,
        spec=metadata.spec,
        mapping=mapping,
        known=known_names(metadata.schemas, mapping),
    )
    look = partial(_look, io, target, partition, file_format)
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="icefloe-import") as pool:
        with_rows = [file for file in pool.map(look, locations) if file is not None]
    if len(with_rows) == 0:
        return ()
    files = [checked.file for checked in with_rows]
    io.sync([file.location for file in files])  # another program wrote them, perhaps without a sync
    modes = metrics_modes(metadata.schema, metadata.properties)
    added = entries_of(files, schema=metadata.schema, spec=metadata.spec, modes=modes)
    steps: tuple[Update, ...] = ()
    if text is None and any(checked.by_name for checked in with_rows):
        text = encode_mapping(mapping)
        steps = (SetFirstNameMapping(mapping=text),)
    return (*steps, AddFiles(added=added, schema_id=metadata.current_schema_id, mapping=text, branch=branch))


def _look(
    io: FileIO, target: ImportTarget, partition: Partition, file_format: str | None, location: str
) -> Imported | None:
    values = hive_values(location) if partition == HIVE else partition
    return imported(io, location, target, file_format=file_format, stated_values=values)  # type: ignore[arg-type]  # no text


def _locations(io: FileIO, paths: list[str]) -> list[str]:
    """The files of these paths, and the data files in folders; InputError if a file is given twice."""
    locations: list[str] = []
    paths_by_location: dict[str, str] = {}
    for path in paths:
        for location in _files(io, path):
            if location in paths_by_location:
                first = paths_by_location[location]
                raise InputError(f"{location} is given twice: by {first!r} and {path!r}", location=location)
            paths_by_location.update(dict.fromkeys(spellings(location), path))
            locations.append(location)
    return locations


def _files(io: FileIO, path: str) -> list[str]:
    location = _usual(file_location(path))
    if not path.endswith("/") and io.exists(location):
        return [location]
    inside = sorted(info.location for info in io.list(location))
    if len(inside) == 0:
        raise NoSuchFile(f"there is no file at {location}, and none below it", location=location)
    return [file for file in inside if not _is_hidden(file[len(location) :])]


def _usual(location: str) -> str:
    """A file location as listings state it: with one slash between names, and without a host."""
    parsed = plain_location(location)
    if parsed.scheme != FILE or parsed.authority != "":
        return location
    path = "/" + "/".join(parsed.segments)
    return location if location == f"file:{path}" else f"file://{path}"


def _is_hidden(path: str) -> bool:
    """Whether the name of a file says that it is not a data file, such as Spark's ``_SUCCESS`` and ``.x.crc``."""
    return any(part.startswith((".", "_")) and "=" not in part for part in path.split("/"))


def _check_partition(partition: Partition, metadata: TableMetadata) -> None:
    """InputError if ``partition`` has values for columns that the table is not partitioned by."""
    if partition is None or partition == HIVE:
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
