"""Procedures of CALL about partition fields, write order, identifier fields and versions."""

from __future__ import annotations

from icefloe.spark_sql.options.session_names import columns, terms
from icefloe.spark_sql.procedures.procedure import Int, Row, procedure
from icefloe.table.table import Table

_FIELDS = "field string, transform string"


@procedure(_FIELDS)
def add_partition_field(table: Table, field: str, name: str | None = None) -> list[Row]:
    """Partition new files by a further field."""
    with table.update_partitioning() as edit:
        edit.add(_term(table, field), name)
    return _partition_fields(table)


@procedure(_FIELDS)
def drop_partition_field(table: Table, field: str) -> list[Row]:
    """Do not partition new files by a field any more."""
    with table.update_partitioning() as edit:
        edit.remove(_present(table, field))
    return _partition_fields(table)


@procedure(_FIELDS)
def replace_partition_field(table: Table, field: str, with_: str, name: str | None = None) -> list[Row]:
    """Partition new files by another field instead of one."""
    with table.update_partitioning() as edit:
        edit.remove(_present(table, field))
        edit.add(_term(table, with_), name)
    return _partition_fields(table)


@procedure("sort_order_id int")
def write_ordered_by(table: Table, order: list[str]) -> list[Row]:
    """Sort the rows of new files."""
    table.set_sort_order(*terms(order, table.refresh().schema))
    return [(table.refresh().metadata.sort_order.order_id,)]


@procedure("field string")
def set_identifier_fields(table: Table, fields: list[str]) -> list[Row]:
    """Say which columns identify a row."""
    with table.update_schema() as edit:
        edit.set_identifiers(*columns(fields, table.schema))
    schema = table.refresh().schema
    return [(schema.names[field_id],) for field_id in sorted(schema.identifier_field_ids)]


@procedure("previous_format_version int, current_format_version int")
def upgrade(table: Table, format_version: Int) -> list[Row]:
    """Upgrade a table to a newer format version."""
    before = table.format_version
    table.upgrade(format_version)
    return [(before, table.refresh().format_version)]


def _partition_fields(table: Table) -> list[Row]:
    return [(field.name, field.transform) for field in table.refresh().spec.fields if not field.is_void]


def _term(table: Table, text: str) -> str:
    """A partition field with its columns as the table spells them."""
    return terms([text], table.schema)[0]


def _present(table: Table, text: str) -> str:
    """A partition field of the table, by its name or by its transform and column."""
    return text if table.spec.field(text) is not None or "(" not in text else _term(table, text)
