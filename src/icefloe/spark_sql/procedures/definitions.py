"""Procedures of CALL about branches, tags, partition fields, write order, identifier fields and versions."""

from __future__ import annotations

from collections.abc import Callable

from icefloe.errors import InputError
from icefloe.spark_sql.options.ref_options import RefKind, set_ref
from icefloe.spark_sql.options.session_names import columns, terms
from icefloe.spark_sql.procedures.shape import Arguments, Row
from icefloe.table.table import Table


def set_ref_of(kind: RefKind) -> Callable[[Table, Arguments], list[Row]]:
    """The procedure that creates or replaces a branch or tag."""
    return lambda table, arguments: [set_ref(table, kind, arguments)]


def drop_ref(kind: str) -> Callable[[Table, Arguments], list[Row]]:
    """The procedure that drops a branch or tag."""

    def run(table: Table, arguments: Arguments) -> list[Row]:
        name = arguments[kind]
        ref = table.metadata.ref(name)
        if ref.type != kind:
            raise InputError(f"{name!r} is a {ref.type}, not a {kind}", ref=name)
        table.remove_ref(name)
        return [(name, ref.snapshot_id)]

    return run


def upgrade(table: Table, arguments: Arguments) -> list[Row]:
    """Upgrade the format version; the row has the versions before and after."""
    before = table.format_version
    table.upgrade(int(arguments["format_version"]))
    return [(before, table.refresh().format_version)]


def _spec(table: Table) -> list[Row]:
    return [(field.name, field.transform) for field in table.refresh().spec.fields if not field.is_void]


def _term(table: Table, text: str) -> str:
    """A partition field with its columns as the table spells them."""
    return terms([text], table.schema)[0]


def _field(table: Table, text: str) -> str:
    """A partition field of the table, by its name or by its transform and column."""
    return text if table.spec.field(text) is not None or "(" not in text else _term(table, text)


def add_partition_field(table: Table, arguments: Arguments) -> list[Row]:
    """Partition new files by a further field; the rows are the fields of the partition spec."""
    with table.update_partitioning() as edit:
        edit.add(_term(table, arguments["field"]), arguments.get("name"))
    return _spec(table)


def drop_partition_field(table: Table, arguments: Arguments) -> list[Row]:
    """Do not partition new files by a field any more; the rows are the fields of the partition spec."""
    with table.update_partitioning() as edit:
        edit.remove(_field(table, arguments["field"]))
    return _spec(table)


def replace_partition_field(table: Table, arguments: Arguments) -> list[Row]:
    """Partition new files by another field; the rows are the fields of the partition spec."""
    with table.update_partitioning() as edit:
        edit.remove(_field(table, arguments["field"]))
        edit.add(_term(table, arguments["with"]), arguments.get("name"))
    return _spec(table)


def write_ordered_by(table: Table, arguments: Arguments) -> list[Row]:
    """Sort new files by some keys; the row has the id of the sort order."""
    table.set_sort_order(*terms(arguments["order"], table.refresh().schema))
    return [(table.refresh().metadata.sort_order.order_id,)]


def set_identifier_fields(table: Table, arguments: Arguments) -> list[Row]:
    """Set the identifier fields of the schema; the rows are their names."""
    with table.update_schema() as edit:
        edit.set_identifiers(*columns(arguments["fields"], table.schema))
    schema = table.refresh().schema
    return [(schema.names[field_id],) for field_id in sorted(schema.identifier_field_ids)]
