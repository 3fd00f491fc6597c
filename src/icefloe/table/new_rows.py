"""Rows that are committed together with the definition of their table: those of a new table, or of a replaced one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from icefloe import rows
from icefloe.codecs.manifest.context import manifest_context
from icefloe.commit.base import Base, TablePointer
from icefloe.commit.draft import Update
from icefloe.commit.operations.replace_definition import ReplaceDefinition
from icefloe.engines.choose import engine_for
from icefloe.env import Env
from icefloe.errors import InputError, UnsupportedError
from icefloe.expr.filter.nodes import ALWAYS_TRUE
from icefloe.formats.importing.folder import ImportedFolder
from icefloe.formats.importing.stated_partitions import HIVE, StatedByFile
from icefloe.io.file_io import FileIO
from icefloe.model.metadata.properties import FORMAT_VERSION
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.schema import Schema
from icefloe.rows.add_files import Partition
from icefloe.table.transaction import Transaction
from icefloe.tree.store import ManifestCache, ManifestStore

ImportMode: TypeAlias = Literal["reference", "rewrite"]


def first_rows(
    metadata: TableMetadata, io: FileIO, data: Any, env: Env, settings: rows.WriteSettings = rows.AS_TABLE
) -> tuple[Update, ...]:
    """Write the first rows of a table that does not exist yet; returns the steps that add them."""
    return rows.append(data).prepared(_target(metadata, io, env, settings)).steps


def import_steps(
    metadata: TableMetadata, io: FileIO, folder: ImportedFolder, *, mode: ImportMode, spark: Any, env: Env
) -> tuple[Update, ...]:
    """The steps that give the files of a folder, or their rows, to a table that does not exist yet."""
    if folder.stated is not None and spark is not None:
        raise UnsupportedError(
            f"spark=: the Delta table at {folder.location} is imported in this process; leave it out", feature="spark"
        )
    if mode == "reference":
        _check_all_live(folder)
        added = rows.add_files(folder.files, partition=_partition(folder), file_format=folder.file_format)
        return added.prepared(_target(metadata, io, env)).steps
    if mode != "rewrite":
        raise InputError(f"import_table: mode={mode!r}: give 'reference' or 'rewrite'")
    return first_rows(metadata, io, engine_for(spark).read_folder(folder, metadata.schema), env)


def _partition(folder: ImportedFolder) -> Partition:
    if len(folder.partition_columns) == 0:
        return None
    return HIVE if folder.stated is None else StatedByFile(values=folder.stated)


def _check_all_live(folder: ImportedFolder) -> None:
    """UnsupportedError if files have deleted rows, which would come back if the table used the files."""
    for file in folder.kept_rows:
        raise UnsupportedError(
            f"{len(folder.kept_rows)} files of the Delta table at {folder.location} have deletion vectors, first"
            f" {file}. Import it with mode='rewrite', or run REORG TABLE ... APPLY (PURGE) on the Delta table first",
            location=file,
            feature="deletion vectors",
        )


def _target(metadata: TableMetadata, io: FileIO, env: Env, settings: rows.WriteSettings = rows.AS_TABLE) -> rows.Target:
    """A table that does not exist yet."""
    store = ManifestStore(io, manifest_context(metadata), ManifestCache())
    return rows.Target(base=Base(pointer="", metadata=metadata, store=store), env=env, settings=settings)


def replace_all(
    pointer: TablePointer,
    env: Env,
    schema: Schema,
    *,
    partition_by: Sequence[str],
    sort_by: Sequence[str],
    properties: dict[str, str],
    format_version: int | None,
    data: Any,
    settings: rows.WriteSettings = rows.AS_TABLE,
) -> None:
    """Replace the definition and all rows of a table, as one commit."""
    version = {} if format_version is None else {FORMAT_VERSION.name: str(format_version)}
    with Transaction(pointer, env, settings=settings) as transaction:
        if len(properties) + len(version) > 0:
            transaction.set_properties({**properties, **version})
        transaction._add(
            ReplaceDefinition(
                schema=schema,
                partition_by=tuple(partition_by),
                sort_by=tuple(sort_by),
                read=transaction.metadata,
            )
        )
        if data is None:
            transaction.delete(ALWAYS_TRUE)
        else:
            transaction.overwrite(data, overwrite_all=True)
