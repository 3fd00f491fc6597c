"""Verbs that change rows: append, import, delete."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from icefloe.cli.arguments import CreateCatalog, Execute, OnSpark, TableName
from icefloe.cli.output import Record
from icefloe.cli.session import Session
from icefloe.cli.verbs.tables import described
from icefloe.errors import InputError, NoSuchFile
from icefloe.lazy import LazyModule

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import dataset

    from icefloe.engines import choose
    from icefloe.model.arrow import arrow_types
else:
    choose = LazyModule("icefloe.engines.choose")
    pa = LazyModule("pyarrow")
    arrow_types = LazyModule("icefloe.model.arrow.arrow_types")
    dataset = LazyModule("pyarrow.dataset")

_FORMATS = {".parquet": "parquet", ".orc": "orc", ".csv": "csv", ".json": "json", ".jsonl": "json", ".arrow": "ipc"}
_TEXTS = frozenset({"csv", "json"})
_BRANCH = Annotated[str, typer.Option("--branch", help="Branch to change.")]


def append(
    session: Session,
    table: TableName,
    files: Annotated[list[Path], typer.Argument(help="Files with rows: Parquet, ORC, CSV, JSON lines or Arrow IPC.")],
    branch: _BRANCH = "main",
    merge_schema: Annotated[bool, typer.Option("--merge-schema", help="Add columns that the table lacks.")] = False,
    idempotency_key: Annotated[str | None, typer.Option(help="Append once, however often this is run.")] = None,
) -> Record:
    """Add the rows of files to a table, as one commit. The files are read and not changed."""
    opened = session.table(table)
    try:
        result = opened.append(
            _reader(files, arrow_types.arrow_schema(opened.schema)),
            branch=branch,
            schema_mode="merge" if merge_schema else "strict",
            idempotency_key=idempotency_key,
        )
    except pa.ArrowInvalid as error:
        raise InputError(f"the rows of {', '.join(file.name for file in files[:3])} cannot be read: {error}") from error
    return Record(fields=result.as_dict(), text=repr(result))


class ImportMode(StrEnum):
    """What becomes of imported files."""

    REFERENCE = "reference"
    REWRITE = "rewrite"


def import_folder(
    session: Session,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Name of the new table.")],
    folder: Annotated[str, typer.Argument(help="Folder of Parquet, ORC or Avro files; year=2026/... too.")],
    mode: Annotated[
        ImportMode, typer.Option(help="Use the files where they are, or write their rows to new files.")
    ] = (ImportMode.REFERENCE),
    partition_by: Annotated[list[str] | None, typer.Option(help="Instead of the columns of the paths.")] = None,
    format_version: Annotated[int | None, typer.Option(help="1 to 4.")] = None,
    delta: Annotated[bool, typer.Option("--delta", help="The folder is a Delta table.")] = False,
    delta_version: Annotated[int | None, typer.Option(help="Version of the Delta table, if not the newest.")] = None,
    create_catalog: CreateCatalog = False,
) -> Record:
    """Create a table from a folder of data files, or from a Delta table."""
    created = session.catalog(create=create_catalog or None).import_table(
        table,
        folder,
        mode=mode.value,
        format="delta" if delta else None,
        version=delta_version,
        partition_by=partition_by,
        format_version=format_version,
    )
    return Record(fields=described(created))


def _reader(files: list[Path], table_schema: Any) -> Any:
    """The rows of files of one format, as a stream; the values of text files get the types of the table's columns."""
    missing = [file for file in files if not file.is_file()]
    if len(missing) > 0:
        raise NoSuchFile(f"there is no file {missing[0]}", location=str(missing[0]), next_step="Check the path.")
    formats = {_FORMATS.get(file.suffix.lower()) for file in files}
    if len(formats) != 1 or None in formats:
        names = ", ".join(file.name for file in files[:3])
        raise InputError(f"{names}: give files of one format, with one of the suffixes {', '.join(_FORMATS)}")
    form, paths = formats.pop(), [str(file) for file in files]
    rows = dataset.dataset(paths, format=form)
    if form in _TEXTS:
        known = frozenset(table_schema.names)
        fields = [
            pa.field(field.name, table_schema.field(field.name).type) if field.name in known else field
            for field in rows.schema
        ]
        rows = dataset.dataset(paths, format=form, schema=pa.schema(fields))
    return rows.scanner().to_reader()


def delete(
    session: Session,
    table: TableName,
    where: Annotated[str, typer.Argument(metavar="FILTER", help='The rows to delete, such as "id = 5".')],
    branch: _BRANCH = "main",
    on_spark: OnSpark = False,
    execute: Execute = False,
) -> Record:
    """Delete the rows that match a filter, as one commit."""
    opened, spark = session.table(table), session.spark(on_spark)
    if execute:
        result = opened.delete(where, branch=branch, spark=spark)
        return Record(fields=result.as_dict(), text=repr(result))
    condition = choose.engine_for(spark).condition(where, opened.schema)
    chosen = opened.at(branch=None if branch == "main" else branch).scan(condition.filter)
    rows, plan = chosen.count() if spark is None else chosen.to_spark(spark).where(where).count(), chosen.plan()
    return Record(
        fields={"table": opened.name, "rows": rows, "files": plan.files, "executed": False},
        text=f"{rows:,} rows of {opened.name} match, in at most {plan.files:,} data files; --execute deletes them",
    )
