"""The current state of a Delta table as a folder of data files, by the library deltalake (Delta protocol).

The log lists the live files and the partition values of each: partition columns are not in the files, and folder names
need not state them. The version is read once, so later changes of the Delta table have no effect. Deletion vectors
become masks of rows. Tables with column mapping have other names in their files than in their schema and are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from icefloe.errors import InputError, NoSuchFile, UnsupportedError
from icefloe.formats.importing.folder import ImportedFolder
from icefloe.io.file_io import FileIO
from icefloe.io.local import local_path
from icefloe.lazy import load_optional
from icefloe.model.locations import FILE, S3, is_absolute, parse_location

DELTA = "delta"
# Properties of the imported table.
SOURCE_LOCATION = "icefloe.import.delta.location"
SOURCE_VERSION = "icefloe.import.delta.version"
SOURCE_ID = "icefloe.import.delta.table-id"

_MAPPING_MODE = "delta.columnMapping.mode"
_OPTIONS = {
    "s3.access-key-id": "AWS_ACCESS_KEY_ID",
    "s3.secret-access-key": "AWS_SECRET_ACCESS_KEY",
    "s3.session-token": "AWS_SESSION_TOKEN",
    "s3.region": "AWS_REGION",
    "s3.endpoint": "AWS_ENDPOINT_URL",
}


def look_into_delta(
    io: FileIO, folder: str, properties: Mapping[str, str], version: int | None = None
) -> ImportedFolder:
    """The live files of a Delta table at a version, by default the newest; InputError if there is no such table."""
    table = _opened(folder, properties, version)
    _check_columns(table, folder)
    actions = pa.table(table.get_add_actions(flatten=False))
    files = tuple(_location(path, folder) for path in actions["path"].to_pylist())
    names = tuple(table.metadata().partition_columns)
    values = actions["partition"].to_pylist() if len(names) > 0 else [{} for _ in files]
    schema = pa.schema([field.remove_metadata() for field in pa.schema(table.schema().to_arrow())])
    return ImportedFolder(
        io=io,
        location=folder,
        files=files,
        file_format="parquet",
        schema=schema,
        partition_columns=names,
        stated=dict(zip(files, values, strict=True)),
        kept_rows=_kept_rows(table, folder),
        properties={
            SOURCE_LOCATION: folder,
            SOURCE_VERSION: str(table.version()),
            SOURCE_ID: str(table.metadata().id),
        },
    )


def _opened(folder: str, properties: Mapping[str, str], version: int | None) -> Any:
    library = load_optional("deltalake", needed_by="the import of a Delta table")
    parsed = parse_location(folder)
    if parsed.scheme != FILE and parsed.scheme not in S3:
        raise UnsupportedError(
            f"{folder}: Delta tables are imported from a local disk or from S3, not from {parsed.scheme}",
            location=folder,
        )
    options = {_OPTIONS[name]: value for name, value in properties.items() if name in _OPTIONS}
    if options.get("AWS_ENDPOINT_URL", "").startswith("http://"):
        options["AWS_ALLOW_HTTP"] = "true"
    place = local_path(folder) if parsed.scheme == FILE else folder
    try:
        return library.DeltaTable(place, version=version, storage_options=options if len(options) > 0 else None)
    except library.exceptions.TableNotFoundError as error:
        raise NoSuchFile(f"there is no Delta table at {folder}: {error}", location=folder) from error
    except library.exceptions.DeltaError as error:
        raise InputError(f"cannot read the Delta table at {folder}: {error}", location=folder) from error


def _check_columns(table: Any, folder: str) -> None:
    mode = table.metadata().configuration.get(_MAPPING_MODE, "none")
    if mode != "none":
        raise UnsupportedError(
            f"the Delta table at {folder} has {_MAPPING_MODE}={mode}: its files have other column names than its"
            " schema. Write it without column mapping first: ALTER TABLE ... SET TBLPROPERTIES"
            f" ('{_MAPPING_MODE}' = 'none')",
            location=folder,
            feature="column mapping",
        )


def _location(path: str, folder: str) -> str:
    """The location of a file: a path in the log is percent-encoded, and relative unless the table is a clone."""
    plain = unquote(path)
    return plain if is_absolute(plain) else f"{folder.rstrip('/')}/{plain}"


def _kept_rows(table: Any, folder: str) -> dict[str, pa.Array]:
    """The rows that deletion vectors leave in each file that has one."""
    vectors = pa.table(table.deletion_vectors())
    names = vectors["filepath"].to_pylist()
    locations = [_reported(name, folder) for name in names]
    return {location: pa.array(vectors["selection_vector"][row].values) for row, location in enumerate(locations)}


def _reported(name: str, folder: str) -> str:
    """The location of a file that deltalake reports as a URI or, on a local disk, as a path."""
    if parse_location(folder).scheme != FILE:
        return unquote(name)
    path = name if name.startswith("/") else local_path(unquote(name))
    return f"file://{path}"
