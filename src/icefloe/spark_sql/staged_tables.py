"""Tables created and replaced by the definitions that Spark states; definition and rows become one commit.

Spark first stages the definition, then writes rows to the staged table, then commits it. The commit to the catalog is
made by the write, because it has the rows; Spark's own commit makes it only if there was no write.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from icefloe.catalogs.names import dotted
from icefloe.errors import AlreadyExists, InputError, NoSuchTable, UnsupportedError
from icefloe.model.metadata.properties import FILE_FORMAT, FORMAT_VERSION
from icefloe.model.schema.schema import Schema
from icefloe.model.text.ddl import as_schema
from icefloe.rows.target import AS_TABLE, WriteSettings
from icefloe.spark_sql.descriptions import PROVIDER, SHOWN, capabilities, schema_json
from icefloe.spark_sql.kept import Kept
from icefloe.spark_sql.messages import (
    AbortStaged,
    CommitStaged,
    Definition,
    PartitionTransform,
    StageTable,
    TableDescription,
)
from icefloe.spark_sql.options.write_options import write_options
from icefloe.spark_sql.table_loads import TableLoads
from icefloe.table.catalog import Catalog

_KEPT = 64
_PREFIX = "staged "
_PROVIDERS = (PROVIDER, "iceberg", "parquet")  # saveAsTable without a format says parquet
# Properties by which Spark states something else than a property of the table.
_OF_SPARK = frozenset({*SHOWN, "external", "is_managed_location", "table_type"})
_OPTION_PREFIX = "option."
# Names that Apache Iceberg shows as properties, or takes for commands, and what does the same here.
_STATE = {
    "sort-order": "CALL system.write_ordered_by",
    "identifier-fields": "CALL system.set_identifier_fields",
    "current-snapshot-id": "CALL system.set_current_snapshot",
    "cherry-pick-snapshot-id": "CALL system.cherrypick_snapshot",
    "format": f"the property {FILE_FORMAT.name}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Staged:
    call: StageTable
    commit: Callable[[Any, WriteSettings], None]  # with rows or None


class StagedTables:
    """The staged tables of a catalog, by their handles."""

    def __init__(self, name: str, catalog: Catalog, loads: TableLoads) -> None:
        self._name = name
        self._catalog = catalog
        self._loads = loads
        self._staged: Kept[str, _Staged] = Kept(_KEPT)

    def stage(self, call: StageTable) -> TableDescription:
        """Check the definition, and describe the table that it will make."""
        exists = self._catalog.table_exists(call.identifier)
        if exists and call.mode == "create":
            raise AlreadyExists(f"there is a table {dotted(call.identifier)} already")
        if not exists and call.mode == "replace":
            raise NoSuchTable(f"there is no table {dotted(call.identifier)}")
        check_provider(call)
        handle = f"{_PREFIX}{uuid.uuid4().hex}"
        make = replace if exists else create
        self._staged.put(handle, _Staged(call=call, commit=partial(make, self._catalog, call)))
        version = format_version(call)
        columns = as_schema(
            json.loads(call.schema), format_version=FORMAT_VERSION.default if version is None else version
        )
        return TableDescription(
            handle=handle,
            id=None,
            name=".".join((self._name, *call.identifier)),
            schema=schema_json(columns),
            metadata_columns=schema_json(Schema(fields=())),
            partitioning=call.partitioning,
            properties=call.properties,
            size_bytes=0,
            rows=0,
            capabilities=capabilities(call.properties),
        )

    def is_staged(self, handle: str) -> bool:
        """Whether a handle is that of a staged table."""
        return handle.startswith(_PREFIX)

    def write(self, handle: str, rows: Any, options: Mapping[str, str] | None = None) -> None:
        """Create or replace the table with its rows, as one commit."""
        staged = self._staged.get(handle)
        if staged is None:
            raise InputError("the staged table was committed or aborted; run the statement again")
        self._staged.pop(handle)
        staged.commit(rows, AS_TABLE if options is None else _settings(staged.call, rows, options))
        self._loads.forget(staged.call.identifier)

    def commit(self, call: CommitStaged) -> None:
        """Create or replace the table without rows, unless a write has done it."""
        if self._staged.get(call.handle) is not None:
            self.write(call.handle, None)

    def abort(self, call: AbortStaged) -> None:
        """Forget a staged table, of which nothing is stored."""
        self._staged.pop(call.handle)


def _settings(call: Definition, rows: Any, options: Mapping[str, str]) -> WriteSettings:
    """The settings of the first write of a table."""
    found = write_options(options, call.properties, lambda name: rows.sparkSession.conf.get(name, None))
    if found.branch is not None:
        raise InputError(
            f"option branch={found.branch}: a table is created and replaced in its branch main", ref=found.branch
        )
    return found.settings


def create(catalog: Catalog, call: Definition, rows: Any = None, settings: WriteSettings = AS_TABLE) -> None:
    """Create a table, with its first rows if there are any, as one commit."""
    definition, location = _definition(call), call.properties.get("location")
    catalog._writing(settings).create_table(call.identifier, **definition, location=location, data=rows)


def replace(catalog: Catalog, call: Definition, rows: Any = None, settings: WriteSettings = AS_TABLE) -> None:
    """Replace the columns, the partitioning and the rows of a table, as one commit; its history stays."""
    definition = _definition(call)
    if "location" in call.properties:
        raise UnsupportedError("REPLACE TABLE cannot change the location of a table; leave LOCATION out")
    catalog._writing(settings).replace_table(call.identifier, **definition, data=rows)


def _definition(call: Definition) -> dict[str, Any]:
    """What a definition states about a new table, without its location."""
    check_provider(call)
    return {
        "schema": json.loads(call.schema),
        "partition_by": [partition_text(transform) for transform in call.partitioning],
        "properties": stored_properties(call.properties),
        "format_version": format_version(call),
    }


def check_provider(call: Definition) -> None:
    """UnsupportedError if the statement names another format in USING."""
    provider = call.properties.get("provider", PROVIDER)
    if provider.lower() not in _PROVIDERS:
        raise UnsupportedError(
            f"USING {provider} is not supported: the catalog has Iceberg tables; write USING {PROVIDER}, or leave it"
            f" out, and choose the format of data files by the table property {FILE_FORMAT.name}",
            feature=f"USING {provider}",
        )


def format_version(call: Definition) -> int | None:
    """The format version that a definition states, if it states one."""
    return FORMAT_VERSION.of(call.properties) if FORMAT_VERSION.name in call.properties else None


def stored_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties of CREATE TABLE that the table stores; Spark repeats options with a prefix.

    >>> stored_properties({"provider": "icefloe", "owner": "me", "option.a": "1"})
    {'owner': 'me'}
    """
    check_settable_in_sql(properties)
    return {
        name: value
        for name, value in properties.items()
        if name not in _OF_SPARK and name != FORMAT_VERSION.name and not name.startswith(_OPTION_PREFIX)
    }


def check_settable_in_sql(names: Iterable[str]) -> None:
    """InputError for a name that shows the state of a table, and is not a property that can be set."""
    for name in names:
        if name.lower() in _STATE:
            raise InputError(
                f"property {name!r} shows the state of a table and cannot be set; use {_STATE[name.lower()]}",
                property=name,
            )


def partition_text(transform: PartitionTransform) -> str:
    """A transform as the text of a partition.

    >>> partition_text(PartitionTransform(transform="bucket", columns=(("a b",),), numbers=("4",)))
    'bucket(4, `a b`)'
    """
    if len(transform.columns) != 1:
        raise UnsupportedError(f"PARTITIONED BY {transform.text}: a transform takes one column", feature="transforms")
    column = ".".join(f"`{part}`" for part in transform.columns[0])
    if transform.transform == "identity":
        return column
    return f"{transform.transform}({', '.join((*transform.numbers, column))})"
