"""V4 manifests: roots and leaves as Parquet, one schema for both (V4 proposal).

Columns are looked up by field id, so their names and their order in a file do not matter. Pages carry checksums.
Nothing is inherited and no deletion vector is applied here: rows are returned as they are stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icefloe.codecs.manifest.content_stats import (
    decode_measures,
    decode_stats,
    encode_stats,
    field_id,
    is_needed,
    struct_of,
)
from icefloe.codecs.manifest.context import ManifestContext
from icefloe.codecs.manifest.entry_checks import check_entries, refuse_row
from icefloe.codecs.manifest.field_ids import (
    CONTENT_ENTRY,
    CONTENT_STATS,
    DATA_FILE,
    DELETION_VECTOR,
    STATUS,
    VERSION_INFO,
    Group,
    Slot,
)
from icefloe.codecs.manifest.parquet_layout import Layout, Size, field_of, group_field, layout_of, with_short_footer
from icefloe.codecs.manifest.partition_values import check_null_partitions
from icefloe.codecs.manifest.utf8_checks import check_text
from icefloe.errors import FormatError, IcefloeError, InputError, LimitError, UnsupportedError, damaged
from icefloe.limits import DEFAULT
from icefloe.model.columns import one_array
from icefloe.model.entries import ENTRY, Columns, ContentType, StatKeys, column_key, columns_of, to_table
from icefloe.model.location_columns import has_name, relativized, resolved

FORMAT_VERSION = "4"
LOCATIONS = ("location", "referenced_file")
NEW_FILE = "new manifest"


# -- writing


def encode_parquet_manifest(
    entries: pa.Table, context: ManifestContext, *, content: Literal["root", "data", "delete"]
) -> bytes:
    """The bytes of a manifest with these rows, in this order."""
    columns = columns_of(entries)
    columns["sort_order_id"] = _order_of_data(columns)
    check_entries(columns, content=content, where=NEW_FILE, error=InputError)
    for name in LOCATIONS:
        columns[name] = relativized(columns[name], context.location)
    stats = encode_stats(columns, entries.num_rows, context)
    arrays: list[pa.Array] = []
    stored: list[int] = []
    for item in CONTENT_ENTRY:
        if item.id == CONTENT_STATS:
            array = None if stats is None else stats[1]
        elif isinstance(item, Group):
            array = _group(item, columns)
        else:
            array = _slot(item, columns)
        if array is not None:
            arrays.append(array)
            stored.append(item.id)
    size = next(size for size in Size if entries.num_rows <= size)
    layout = layout_of(tuple(stored), None if stats is None else stats[0], size)
    return _write(pa.Table.from_arrays(arrays, schema=layout.schema), layout, content)


def _order_of_data(columns: Columns) -> pa.Array:
    """Sort orders without those of equality deletes, which only manifests of v2 and v3 keep."""
    orders = columns["sort_order_id"]
    if orders.null_count == len(orders):
        return orders
    deletes = pc.equal(columns["content_type"], int(ContentType.EQUALITY_DELETES))
    return pc.if_else(deletes, None, orders) if deletes.true_count > 0 else orders


def _write(table: pa.Table, layout: Layout, content: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        table.schema,
        column_encoding=layout.packed,
        compression=layout.compressed,
        use_dictionary=False,
        write_statistics=False,
        store_schema=False,
        store_decimal_as_integer=True,
        write_page_checksum=True,
    ) as writer:
        if table.num_rows > 0:
            writer.write_table(table, row_group_size=table.num_rows)
        writer.add_key_value_metadata({"format-version": FORMAT_VERSION, "content": content})
    return with_short_footer(sink.getvalue().to_pybytes(), layout.column_count)


def _slot(slot: Slot, columns: Columns) -> pa.Array | None:
    """A column of a manifest; none if it is optional and no row has a value."""
    array = columns[slot.entry]
    if not slot.required and array.null_count == len(array):
        return None
    return _required(array, slot)


def _group(group: Group, columns: Columns) -> pa.Array | None:
    """A group of columns of a manifest; none if it is optional and no row has a value."""
    members = [columns[slot.entry] for slot in group.slots]
    type_ = group_field(group).type
    absent = None
    if group.id != VERSION_INFO and all(member.null_count == len(member) for member in members):
        return None
    if all(member.null_count > 0 for member in members):
        # Parquet refuses nulls in required members even below a null group, so those hold any value there.
        absent = pc.is_null(members[0])
        for member in members[1:]:
            absent = pc.and_(absent, pc.is_null(member))
        members = [pc.fill_null(m, 0) if s.required else m for s, m in zip(group.slots, members, strict=True)]
    arrays = [_required(m, s) for s, m in zip(group.slots, members, strict=True)]
    return struct_of(type_, arrays, absent)


def _required(array: pa.Array, slot: Slot) -> pa.Array:
    if slot.required and array.null_count > 0:
        row = pc.index(pc.is_null(array), True).as_py()
        raise InputError(f"entry {row}: {slot.entry} is null", field=slot.entry, row=row)
    return _typed(array, slot)


def _typed(array: pa.Array, slot: Slot) -> pa.Array:
    type_ = field_of(slot).type
    return array if array.type == type_ else array.cast(type_)


# -- reading


@contextmanager
def reading_manifest(where: str) -> Iterator[None]:
    """Reports whatever a damaged file makes the Parquet reader raise."""
    try:
        yield
    except IcefloeError:
        raise
    except Exception as error:
        raise damaged(error, f"{where}: not a readable Parquet manifest: {error}", location=where) from error


def open_manifest(data: bytes, *, where: str) -> pq.ParquetFile:
    """A manifest whose footer has been read."""
    with reading_manifest(where):
        file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True, pre_buffer=False)
        inflated = sum(file.metadata.row_group(group).total_byte_size for group in range(file.num_row_groups))
    limit = DEFAULT.inflated(len(data), DEFAULT.manifest_bytes)
    if inflated > limit:
        raise LimitError(f"{where}: {len(data)} bytes inflate to {inflated}, limit {limit}", location=where)
    return file


def decode_parquet_manifest(
    data: bytes | pq.ParquetFile,
    context: ManifestContext,
    *,
    where: str,
    content: tuple[str, ...],
    wanted: StatKeys | None = None,
) -> pa.Table:
    """All rows of a manifest whose content is one of ``content``, in file order.

    ``wanted`` are the statistics keys of the columns that are needed, none for all. Only these are read from the file,
    and partition values.
    """
    with reading_manifest(where):
        file = open_manifest(data, where=where) if isinstance(data, bytes) else data
        return _decode(file, context, where, content, wanted)


def parquet_manifest_names(
    file: pq.ParquetFile, context: ManifestContext, *, where: str, column: str, names: pa.Array
) -> bool:
    """Whether any row of a manifest, of any status, has one of these names in a column of locations."""
    (slot,) = (item for item in CONTENT_ENTRY if isinstance(item, Slot) and item.entry == column)
    with reading_manifest(where):
        paths = [field.name for field in file.schema_arrow if field_id(field, where) == slot.id]
        stored = file.read(columns=paths, use_threads=False)
    both = pa.concat_arrays([names, relativized(names, context.location)])
    if any(has_name(locations, both, column) for locations in stored.itercolumns()):
        return True
    return column == "location" and any(
        has_name(resolved(one_array(locations), context.location, where=where), names, column)
        for locations in stored.itercolumns()
    )


def _decode(
    file: pq.ParquetFile, context: ManifestContext, where: str, content: tuple[str, ...], wanted: StatKeys | None
) -> pa.Table:
    kind = _check_footer(file, context, where, content)
    schema = file.schema_arrow
    _check_layout(schema, {field_id(field, where): i for i, field in enumerate(schema)}, where)
    table = file.read(columns=_wanted_columns(file, schema, context, wanted, where), use_threads=False)
    check_text(table, where=where)
    stored = {field_id(field, where): one_array(table.column(i)) for i, field in enumerate(table.schema)}
    columns = _fixed_columns(stored, table.num_rows, where)
    columns |= _without_empty(columns)
    for name in LOCATIONS:
        columns[name] = resolved(columns[name], context.location, where=where)
    stats = stored.get(CONTENT_STATS)
    check_entries(columns, content=kind, where=where, error=FormatError, stats=stats)
    _check_specs(columns, context, where)
    known = decode_stats(stats, columns, context, where=where)

    def measures(owners: frozenset[int]) -> Mapping[str, pa.Array]:
        if wanted is None:
            return known
        keys = wanted | {column_key(owner) for owner in owners}
        paths = _wanted_columns(file, schema, context, keys, where)
        again = file.read(columns=paths, use_threads=False)
        others = {field_id(field, where): one_array(again.column(i)) for i, field in enumerate(again.schema)}
        return decode_measures(others.get(CONTENT_STATS), context, where=where)

    check_null_partitions(known, columns, context, measures, where=where)
    return to_table({**columns, **known}, table.num_rows)


def _without_empty(columns: Columns) -> dict[str, pa.Array]:
    """Locations and sizes, null where an inline vector has an empty location: it has no file, but needs a location.

    Any other location of an inline vector is kept as it is, but never opened and never deleted.
    """
    inline, names = columns["dv_inline_content"], ("location", "file_size_in_bytes")
    if inline.null_count == len(inline):
        return {}
    empty = pc.and_(pc.is_valid(inline), pc.fill_null(pc.equal(columns["location"], ""), False))
    return {name: pc.if_else(empty, pa.scalar(None, columns[name].type), columns[name]) for name in names}


def _wanted_columns(
    file: pq.ParquetFile, schema: pa.Schema, context: ManifestContext, wanted: StatKeys | None, where: str
) -> list[str] | None:
    """The Parquet columns to read, by path: all, or all except statistics that were not requested."""
    if wanted is None:
        return None
    keep: list[bool] = []
    for field in schema:
        if field_id(field, where) == CONTENT_STATS and pa.types.is_struct(field.type):
            for member in field.type:
                keep.extend([is_needed(member, context, wanted, where)] * _width(member.type))
        else:
            keep.extend([True] * _width(field.type))
    if len(keep) != file.metadata.num_columns:
        return None  # not the structure of a manifest: checked as a whole
    stored = file.metadata.schema
    return [stored.column(i).path for i, kept in enumerate(keep) if kept]


def _width(type_: pa.DataType) -> int:
    """How many Parquet columns hold values of a type."""
    return 1 if type_.num_fields == 0 else sum(_width(type_.field(i).type) for i in range(type_.num_fields))


def _check_footer(file: pq.ParquetFile, context: ManifestContext, where: str, content: tuple[str, ...]) -> str:
    """Checks the footer and returns the content kind that it names."""
    rows = file.metadata.num_rows
    if rows > context.limits.manifest_entries:
        raise LimitError(f"{where}: {rows} rows, limit {context.limits.manifest_entries}", location=where)
    known = file.metadata.metadata or {}
    version = known.get(b"format-version")
    kind: str = known.get(b"content", b"").decode(errors="replace")
    if version != FORMAT_VERSION.encode():
        raise FormatError(f"{where}: format-version is {version!r}, expected b'4'", location=where)
    if kind not in content:
        raise FormatError(f"{where}: content is {kind!r}, expected {' or '.join(content)}", location=where)
    return kind


def _check_layout(schema: pa.Schema, by_id: Mapping[int, int], where: str) -> None:
    """Refuse by name the layouts of Apache's drafts, which give the same ids other meanings."""
    if len(by_id) != len(schema):
        raise FormatError(f"{where}: two columns have the same field id", location=where)
    if DATA_FILE in by_id:
        raise UnsupportedError(f"{where}: a Parquet manifest with version 3 entries (Apache interim)", location=where)
    tracking = by_id.get(DELETION_VECTOR)
    if tracking is not None and pa.types.is_struct(schema.field(tracking).type):
        members = {field_id(member, where) for member in schema.field(tracking).type}
        if STATUS in members:
            raise UnsupportedError(f"{where}: a manifest in the layout of Apache's tracked files", location=where)
    if VERSION_INFO not in by_id:
        raise FormatError(f"{where}: no version_info (field id {VERSION_INFO})", location=where)


def _fixed_columns(stored: Mapping[int, pa.Array], length: int, where: str) -> dict[str, pa.Array]:
    columns: dict[str, pa.Array] = {}
    for item in CONTENT_ENTRY:
        if isinstance(item, Slot):
            columns[item.entry] = _stored_column(stored.get(item.id), item, length, where)
        elif item.id != CONTENT_STATS:
            columns |= _stored_group(stored.get(item.id), item, length, where)
    return columns


def _stored_group(array: pa.Array | None, group: Group, length: int, where: str) -> dict[str, pa.Array]:
    members: dict[int, pa.Array] = {}
    if array is not None:
        if not pa.types.is_struct(array.type):
            raise FormatError(f"{where}: {group.name} (field id {group.id}) is not a group", location=where)
        if group.id == VERSION_INFO and array.null_count > 0:
            refuse_row(pc.index(array.is_null(), True).as_py(), "version_info is null", where=where)
        members = {field_id(f, where): m for f, m in zip(array.type, array.flatten(), strict=True)}
    optional = group.id != VERSION_INFO  # members of an absent or null group are null whatever they require
    return {s.entry: _stored_column(members.get(s.id), s, length, where, optional=optional) for s in group.slots}


def _stored_column(array: pa.Array | None, slot: Slot, length: int, where: str, *, optional: bool = False) -> pa.Array:
    type_ = ENTRY.field(slot.entry).type
    if array is None:
        if slot.required and not optional:
            raise FormatError(f"{where}: {slot.name} (field id {slot.id}) is missing", location=where)
        return pa.nulls(length, type_)
    if slot.required and not optional and array.null_count > 0:
        refuse_row(pc.index(array.is_null(), True).as_py(), f"{slot.name} (field id {slot.id}) is null", where=where)
    if array.type == type_:
        return array
    try:
        if pa.types.is_integer(array.type) != pa.types.is_integer(type_):
            raise pa.ArrowTypeError("text is not parsed to a number, nor is a number printed")
        return array.cast(type_)
    except MemoryError:
        raise
    except pa.ArrowException as error:
        raise FormatError(
            f"{where}: {slot.name} (field id {slot.id}) is {array.type}, expected {type_}", location=where
        ) from error


def _check_specs(columns: Columns, context: ManifestContext, where: str) -> None:
    for spec_id in pc.unique(columns["partition_spec_id"]).to_pylist():
        if spec_id not in context.specs:
            row = pc.index(columns["partition_spec_id"], pa.scalar(spec_id, pa.int32())).as_py()
            refuse_row(row, f"names partition spec {spec_id}, which the table lacks", where=where)
