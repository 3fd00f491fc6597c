"""V4 manifests: roots and leaves as Parquet, one schema for both (V4 proposal).

Columns are found by field id, so their names and their order in a file do not matter. Pages carry checksums. Nothing
is inherited and no deletion vector is applied here: rows come out as they are stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icefloe.codecs.content_stats import decode_stats, encode_stats, field_id, with_id
from icefloe.codecs.context import ManifestContext
from icefloe.codecs.entry_checks import check_entries
from icefloe.codecs.entry_columns import columns_of, relativized, resolved, single, to_table
from icefloe.codecs.field_ids import (
    CONTENT_ENTRY,
    CONTENT_STATS,
    DATA_FILE,
    DELETION_VECTOR,
    STATUS,
    VERSION_INFO,
    Group,
    Slot,
)
from icefloe.errors import CorruptFile, FormatError, IcefloeError, InputError, LimitError, UnsupportedError
from icefloe.model.entries import ENTRY

FORMAT_VERSION = "4"
LOCATIONS = ("location", "referenced_file")
NEW_FILE = "new manifest"


# -- writing


def encode_parquet_manifest(
    entries: pa.Table, context: ManifestContext, *, content: Literal["root", "data", "delete"]
) -> bytes:
    """The bytes of a manifest with these rows, in this order."""
    columns = columns_of(entries)
    check_entries(columns, content=content, where=NEW_FILE, error=InputError)
    for name in LOCATIONS:
        columns[name] = relativized(columns[name], context.location)
    length = entries.num_rows
    fields: list[pa.Field] = []
    arrays: list[pa.Array] = []
    for item in CONTENT_ENTRY:
        found = _column(item, columns, length, context)
        if found is not None:
            fields.append(found[0])
            arrays.append(found[1])
    return _write(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), content)


def _write(table: pa.Table, content: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        table.schema,
        compression="zstd",
        use_dictionary=False,
        write_statistics=False,
        store_schema=False,
        store_decimal_as_integer=True,
        write_page_checksum=True,
    ) as writer:
        if table.num_rows > 0:
            writer.write_table(table, row_group_size=table.num_rows)
        writer.add_key_value_metadata({"format-version": FORMAT_VERSION, "content": content})
    return bytes(sink.getvalue().to_pybytes())


def _column(
    item: Slot | Group, columns: Mapping[str, pa.Array], length: int, context: ManifestContext
) -> tuple[pa.Field, pa.Array] | None:
    if item.id == CONTENT_STATS:
        return encode_stats(columns, length, context)
    if isinstance(item, Group):
        return _group(item, columns)
    return _field(item), _required(columns[item.entry], item)


def _group(group: Group, columns: Mapping[str, pa.Array]) -> tuple[pa.Field, pa.Array]:
    members = [columns[slot.entry] for slot in group.slots]
    field = _group_field(group)
    absent = None
    if all(member.null_count > 0 for member in members):
        # Parquet refuses nulls in required members even below a null group, so those hold any value there.
        absent = pc.is_null(members[0])
        for member in members[1:]:
            absent = pc.and_(absent, pc.is_null(member))
        members = [pc.fill_null(m, 0) if s.required else m for s, m in zip(group.slots, members, strict=True)]
    arrays = [_typed(_required(m, s), s) for s, m in zip(group.slots, members, strict=True)]
    return field, pa.StructArray.from_arrays(arrays, fields=list(field.type), mask=absent)


def _required(array: pa.Array, slot: Slot) -> pa.Array:
    if slot.required and array.null_count > 0:
        row = pc.index(pc.is_null(array), True).as_py()
        raise InputError(f"entry {row}: {slot.entry} is null", field=slot.entry, row=row)
    return _typed(array, slot)


def _typed(array: pa.Array, slot: Slot) -> pa.Array:
    type_ = _field(slot).type
    return array if array.type == type_ else array.cast(type_)


@cache
def _field(slot: Slot) -> pa.Field:
    type_ = ENTRY.field(slot.entry).type
    if slot.element_id is not None:
        type_ = pa.list_(with_id("element", type_.value_type, slot.element_id, required=True))
    return with_id(slot.name, type_, slot.id, required=slot.required)


@cache
def _group_field(group: Group) -> pa.Field:
    return with_id(group.name, pa.struct([_field(slot) for slot in group.slots]), group.id)


# -- reading


def decode_parquet_manifest(data: bytes, context: ManifestContext, *, where: str, content: tuple[str, ...]) -> pa.Table:
    """All rows of a manifest whose content is one of ``content``, in file order."""
    try:
        return _decode(data, context, where, content)
    except IcefloeError:
        raise
    except Exception as error:  # whatever a damaged file makes the Parquet reader do
        raise CorruptFile(f"{where}: not a readable Parquet manifest: {error}", location=where) from error


def _decode(data: bytes, context: ManifestContext, where: str, content: tuple[str, ...]) -> pa.Table:
    file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True, pre_buffer=False)
    found = _check_footer(file, context, where, content)
    by_id = {field_id(field, where): i for i, field in enumerate(file.schema_arrow)}
    _check_layout(file.schema_arrow, by_id, where)
    table = file.read(use_threads=False)
    stored = {id_: single(table.column(i)) for id_, i in by_id.items()}
    columns = _fixed_columns(stored, table.num_rows, where)
    for name in LOCATIONS:
        columns[name] = resolved(columns[name], context.location, where=where)
    check_entries(columns, content=found, where=where, error=FormatError)
    _check_specs(columns, context, where)
    stats = decode_stats(stored.get(CONTENT_STATS), columns, context, where=where)
    return to_table({**columns, **stats}, table.num_rows)


def _check_footer(file: pq.ParquetFile, context: ManifestContext, where: str, content: tuple[str, ...]) -> str:
    """The content kind that the file names."""
    rows = file.metadata.num_rows
    if rows > context.limits.manifest_entries:
        raise LimitError(f"{where}: {rows} rows, limit {context.limits.manifest_entries}", location=where)
    known = file.metadata.metadata or {}
    version = known.get(b"format-version")
    found: str = known.get(b"content", b"").decode(errors="replace")
    if version != FORMAT_VERSION.encode():
        raise FormatError(f"{where}: format-version is {version!r}, expected b'4'", location=where)
    if found not in content:
        raise FormatError(f"{where}: content is {found!r}, expected {' or '.join(content)}", location=where)
    return found


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
            raise FormatError(f"{where}: version_info is null in {array.null_count} rows", location=where)
        members = {field_id(f, where): m for f, m in zip(array.type, array.flatten(), strict=True)}
    optional = group.id != VERSION_INFO  # members of an absent or null group are null whatever they require
    return {s.entry: _stored_column(members.get(s.id), s, length, where, optional=optional) for s in group.slots}


def _stored_column(array: pa.Array | None, slot: Slot, length: int, where: str, *, optional: bool = False) -> pa.Array:
    type_ = ENTRY.field(slot.entry).type
    if slot.required and not optional and (array is None or array.null_count > 0):
        raise FormatError(f"{where}: {slot.name} (field id {slot.id}) is missing or null", location=where)
    if array is None:
        return pa.nulls(length, type_)
    if array.type == type_:
        return array
    try:
        return array.cast(type_)
    except pa.ArrowException as error:
        raise FormatError(
            f"{where}: {slot.name} (field id {slot.id}) is {array.type}, expected {type_}", location=where
        ) from error


def _check_specs(columns: Mapping[str, pa.Array], context: ManifestContext, where: str) -> None:
    for spec_id in pc.unique(columns["partition_spec_id"]).to_pylist():
        if spec_id not in context.specs:
            raise FormatError(f"{where}: names partition spec {spec_id}, which the table lacks", location=where)
