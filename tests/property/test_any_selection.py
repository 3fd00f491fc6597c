"""Random selections of nested columns against the full read, of which Python keeps what was selected.

Tables have columns of any shape, in every file format. Between their files columns were renamed, moved, dropped, added
and promoted, at every depth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import icefloe
from icefloe.commit.draft import Work
from icefloe.commit.loop import commit
from icefloe.commit.operations.metadata_update import MetadataUpdate
from icefloe.formats.parquet import file as parquet_file
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.evolution.schema_history import add_schema
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import FLOAT, INT, LONG, Field, Struct, Type, children, fold_type, with_children
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from support import evolving_schemas as evolving

Paths = list[tuple[str, ...]]
Rows = list[dict[str, Any]]

SMALL = {
    "write.parquet.row-group-size-bytes": "60",
    "write.parquet.page-row-limit": "1",
    "write.orc.stripe-size-bytes": "1",
    "write.avro.block-size-bytes": "1",
}
NUMBERS = count()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSchema(MetadataUpdate):
    schema: Schema
    name: str = "another schema"

    def change(self, metadata: TableMetadata, moment: int, work: Work) -> TableMetadata:
        return add_schema(metadata, self.schema)


@pytest.mark.timeout(3 * 3600)
@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("version", [2, 4])
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_selection_is_the_full_read_less_what_was_not_selected(version: int, file_format: str, data: Any) -> None:
    table = drawn_table(data, version, file_format)
    names = data.draw(st.lists(st.sampled_from(list(table.schema.by_name)), min_size=1, max_size=5, unique=True))
    where = data.draw(st.none() | st.sampled_from(list(conditions(table.schema))))
    scan = table.scan(where, columns=[*names, "_pos"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_file, "MANY_BYTES", data.draw(st.sampled_from([0, parquet_file.MANY_BYTES])))
        found = scan.to_arrow()
    whole = table.scan(where, columns=[*table.scan().to_arrow().schema.names, "_pos"]).to_arrow()
    paths: Paths = [*(tuple(name.split(".")) for name in names), ("_pos",)]
    order = dict.fromkeys(path[0] for path in paths)
    schema = pa.schema([cut_field(whole.schema.field(name), paths) for name in order])
    assert found.to_pylist() == cut(whole.to_pylist(), schema)
    assert found.schema.equals(schema, check_metadata=True), f"{found.schema} for {names}"
    assert scan.count() == whole.num_rows


def drawn_table(data: Any, version: int, file_format: str) -> Table:
    """A table with a file of each schema that it had."""
    counter = count(1)
    properties = {"write.format.default": file_format, **(SMALL if data.draw(st.booleans()) else {})}
    catalog = icefloe.catalog("nested", uri="memory://")
    table = catalog.create_table(
        f"nested.t{next(NUMBERS)}",
        schema=Schema(fields=evolving.draw_fields(data.draw, lambda: next(counter), 3)),
        format_version=version,
        properties=properties,
    )
    append(data, table)
    for _ in range(data.draw(st.integers(0, 2))):
        first_new = table.metadata.last_column_id + 1
        ids = count(first_new)
        fields = evolving.evolve_fields(data.draw, table.schema.fields, lambda ids=ids: next(ids))
        fields = fields if version >= 3 else without_defaults(fields, first_new)
        commit(pointer_of(table), NewSchema(schema=Schema(fields=fields)))
        append(data, table)
    return table


def append(data: Any, table: Table) -> None:
    fields = table.schema.fields
    drawn = data.draw(evolving.rows_of(fields))
    rows = [evolving.named(row, Struct(fields)) for row in drawn]
    table.append(pa.Table.from_pylist(rows, schema=arrow_schema(table.schema)))


def without_defaults(fields: tuple[Field, ...], first_new: int) -> tuple[Field, ...]:
    """Fields as format version 2 has them: what comes later is optional, and null in older rows."""

    def changed(type_: Type, inner: tuple[Type, ...]) -> Type:
        return with_children(
            type_,
            tuple(
                replace(field, type=made, initial_default=None, required=field.required and field.id < first_new)
                for field, made in zip(children(type_), inner, strict=True)
            ),
        )

    return children(fold_type(Struct(fields), changed))


def conditions(schema: Schema) -> Iterator[str]:
    """Filters by any column and by any field of a struct."""
    for id_, name in schema.names.items():
        if ".element" not in name and ".key" not in name and ".value" not in name:
            yield f"{name} is null"
            yield f"{name} is not null"
            if schema.by_id[id_].type in (INT, LONG, FLOAT):
                yield f"{name} > 0"


def below(paths: Paths, name: str) -> Paths:
    return [path[1:] for path in paths if path[:1] == (name,)]


def cut_field(field: pa.Field, paths: Paths, name: str | None = None) -> pa.Field:
    """What a selection leaves of a field."""
    type_, rest = field.type, below(paths, field.name if name is None else name)
    if () in rest:
        return field
    if pa.types.is_struct(type_):
        return field.with_type(pa.struct([cut_field(each, rest) for each in type_ if below(rest, each.name) != []]))
    if pa.types.is_list(type_):
        return field.with_type(pa.list_(cut_field(type_.value_field, rest, "element")))
    if below(rest, "value") == []:
        return field  # no map without its keys and values
    return field.with_type(pa.map_(type_.key_field, cut_field(type_.item_field, rest, "value")))


def cut(rows: Rows, schema: pa.Schema) -> Rows:
    return [{field.name: cut_value(row[field.name], field.type) for field in schema} for row in rows]


def cut_value(value: Any, type_: pa.DataType) -> Any:
    """What a type that was cut shows of a value."""
    if value is None or not pa.types.is_nested(type_):
        return value
    if pa.types.is_struct(type_):
        return {field.name: cut_value(value[field.name], field.type) for field in type_}
    if pa.types.is_list(type_):
        return [cut_value(each, type_.value_type) for each in value]
    return [(key, cut_value(each, type_.item_type)) for key, each in value]
