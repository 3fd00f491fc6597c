"""Verbs about whole tables: list, create, describe, schema, upgrade, drop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from icefloe.cli.arguments import CreateCatalog, Execute, TableName, list_tables, pairs
from icefloe.cli.output import Listing, Record
from icefloe.cli.session import Session
from icefloe.lazy import LazyModule

if TYPE_CHECKING:
    import icefloe
    from icefloe.model.text import partition_text
else:  # they load pyarrow, which "icefloe --help" does not need
    partition_text = LazyModule("icefloe.model.text.partition_text")

_SCHEMA_COLUMNS = ("id", "name", "type", "required", "default", "doc")


def tables(
    session: Session,
    namespace: Annotated[str | None, typer.Argument(help="Only the tables of this namespace and those in it.")] = None,
) -> Listing:
    """List the tables of the catalog."""
    catalog = session.catalog()
    found = list_tables(catalog, catalog.list_namespaces() if namespace is None else [namespace])
    rows = [{"namespace": parent, "table": name} for parent, name in found]
    return Listing(columns=("namespace", "table"), rows=rows, note=f"{len(rows)} tables in catalog {catalog.name}")


def create(
    session: Session,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Name of the new table, such as db.orders.")],
    schema: Annotated[str, typer.Option(help='Columns, such as "id bigint, ts timestamp, note string".')],
    partition_by: Annotated[
        list[str] | None, typer.Option(help='Such as "day(ts)"; give it again for each field.')
    ] = None,
    sort_by: Annotated[list[str] | None, typer.Option(help='Such as "id desc"; give it again for each key.')] = None,
    format_version: Annotated[int | None, typer.Option(help="1 to 4.")] = None,
    location: Annotated[str | None, typer.Option(help="Folder of the table, if not in the warehouse.")] = None,
    property_: Annotated[
        list[str] | None, typer.Option("--property", metavar="NAME=VALUE", help="A table property.")
    ] = None,
    create_catalog: CreateCatalog = False,
) -> Record:
    """Create a table and its namespace."""
    created = session.catalog(create=create_catalog or None).create_table(
        table,
        schema=schema,
        partition_by=partition_by or (),
        sort_by=sort_by or (),
        format_version=format_version,
        location=location,
        properties=pairs(property_ or (), "--property"),
    )
    return Record(fields=described(created))


def describe(session: Session, table: TableName) -> Record:
    """Show what a table is: columns, partitioning, current snapshot, refs, figures and properties."""
    return Record(fields=described(session.table(table)))


def described(table: icefloe.Table) -> dict[str, Any]:
    """The facts about a table that people ask for first."""
    metadata = table.metadata
    current = metadata.current_snapshot
    totals = {} if current is None else current.summary
    return {
        "name": table.name,
        "location": table.location,
        "metadata": table.metadata_location,
        "uuid": str(metadata.table_uuid),
        "format_version": table.format_version,
        "columns": [
            f"{field.name} {field.type}{' not null' if field.required else ''}" for field in table.schema.fields
        ],
        "partitioned_by": [
            partition_text.term_text(field.transform, field.source_ids, table.schema) for field in table.spec.fields
        ],
        "sorted_by": [partition_text.sort_key_text(field, table.schema) for field in metadata.sort_order.fields],
        "snapshot": None if current is None else current.snapshot_id,
        "snapshots": len(metadata.snapshots),
        "refs": {name: f"{ref.type} at {ref.snapshot_id}" for name, ref in table.refs.items()},
        "rows": _number(totals.get("total-records")),
        "data_files": _number(totals.get("total-data-files")),
        "delete_files": _number(totals.get("total-delete-files")),
        "bytes": _number(totals.get("total-files-size")),
        "properties": dict(table.properties),
    }


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def schema(
    session: Session,
    table: TableName,
    history: Annotated[bool, typer.Option("--history", help="All schemas that the table has had.")] = False,
) -> Listing:
    """Show the columns of a table with their ids, fields of structs, lists and maps included."""
    metadata = session.table(table).metadata
    schemas = metadata.schemas if history else (metadata.schema,)
    rows = [
        {
            **({"schema_id": version.schema_id} if history else {}),
            "id": field.id,
            "name": version.names[field.id],
            "type": str(field.type),
            "required": field.required,
            "default": field.write_default,
            "doc": field.doc,
        }
        for version in schemas
        for field in version.by_id.values()
    ]
    return Listing(columns=(*(("schema_id",) if history else ()), *_SCHEMA_COLUMNS), rows=rows)


def upgrade(
    session: Session,
    table: TableName,
    version: Annotated[int, typer.Argument(help="The format version: 2 to 4.")],
    execute: Execute = False,
) -> Record:
    """Upgrade a table to a later format version. No file is rewritten, and there is no way back."""
    opened = session.table(table)
    if execute:
        return Record(fields=opened.upgrade(version).as_dict())
    before = opened.format_version
    return Record(
        fields={"table": opened.name, "format_version": before, "to": version, "executed": False},
        text=f"{opened.name} has format version {before}; --execute upgrades it to {version}, which cannot be undone",
    )


def drop(
    session: Session,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Name in the catalog.")],
    purge: Annotated[bool, typer.Option("--purge", help="Delete its files too.")] = False,
    execute: Execute = False,
) -> Record:
    """Remove a table from the catalog. With --purge its files are deleted as well."""
    catalog = session.catalog()
    if execute:
        result = catalog.drop_table(table, purge=purge)
        return Record(fields=result.as_dict(), text=repr(result))
    opened = catalog.load_table(table)
    what = "removes it from the catalog and deletes all files that it references" if purge else "removes its name only"
    return Record(
        fields={"table": opened.name, "location": opened.location, "purge": purge, "executed": False},
        text=f"{opened.name} at {opened.location}: --execute {what}",
    )
