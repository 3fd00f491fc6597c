"""Parquet manifests with the entries of version 3, which Apache Iceberg 1.12 writes in its interim version 4.

The table is as in version 3, manifest list included; only the manifests are Parquet files, with the columns and field
ids of a v3 manifest and maps for statistics (spec: Manifests). They are read here and never written.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from icefloe.codecs.avro.projection import split_pairs
from icefloe.codecs.manifest import field_ids as ids
from icefloe.codecs.manifest.content_stats import field_id
from icefloe.codecs.manifest.context import ManifestContext
from icefloe.codecs.manifest.field_ids import ENTRY_FIELDS, FILE_FIELDS, MEASURE_MAPS, MeasureMap, Slot
from icefloe.codecs.manifest.utf8_checks import check_text
from icefloe.codecs.manifest.v3_entries import Facts, StoredRows, check_tuple, entry_table, facts_of
from icefloe.errors import FormatError, IcefloeError, LimitError, damaged
from icefloe.model.columns import one_array
from icefloe.model.entries import ContentType, StatKeys

ById = Mapping[int, pa.Array]


def holds_version_3_entries(file: pq.ParquetFile, *, where: str) -> bool:
    """Whether a Parquet manifest has a data_file column, which V4 content entries do not have."""
    try:
        columns = file.schema_arrow
        return any(pa.types.is_struct(column.type) and field_id(column, where) == ids.DATA_FILE for column in columns)
    except IcefloeError:
        return False  # a column without an id; the decoder of V4 manifests reports it
    except Exception as error:  # whatever a damaged file makes the Parquet reader do
        raise damaged(error, f"{where}: not a readable Parquet manifest: {error}", location=where) from error


def decode_parquet_entries(
    file: pq.ParquetFile,
    context: ManifestContext,
    *,
    where: str,
    content: ContentType | None,
    spec_id: int | None = None,
    wanted: StatKeys | None = None,
) -> pa.Table:
    """All rows of a manifest, in file order; ``content``, ``spec_id`` and ``wanted`` as for an Avro manifest."""
    try:
        rows = file.metadata.num_rows
        if rows > context.limits.manifest_entries:
            raise LimitError(f"{where}: {rows} rows, limit {context.limits.manifest_entries}", location=where)
        known = {key.decode(): value.decode() for key, value in (file.metadata.metadata or {}).items()}
        facts = facts_of(known, context, where=where, content=content, spec_id=spec_id)
        table = file.read(use_threads=False)
        check_text(table, where=where)
        top = _by_id(table, where)
        stored = _stored(top, facts, context, rows, wanted, where)
        return entry_table(stored, facts, context, where=where)
    except IcefloeError:
        raise
    except Exception as error:  # whatever a damaged file makes the Parquet reader do
        raise damaged(error, f"{where}: not a readable Parquet manifest: {error!r:.200}", location=where) from error


def _by_id(table: pa.Table, where: str) -> dict[int, pa.Array]:
    return {field_id(field, where): one_array(table.column(i)) for i, field in enumerate(table.schema)}


def _members(array: pa.Array | None, name: str, where: str) -> dict[int, pa.Array]:
    if array is None or not pa.types.is_struct(array.type):
        raise FormatError(f"{where}: {name} is missing or not a group", location=where)
    return {field_id(field, where): child for field, child in zip(array.type, array.flatten(), strict=True)}


def _stored(
    top: ById, facts: Facts, context: ManifestContext, length: int, wanted: StatKeys | None, where: str
) -> StoredRows:
    file = _members(top.get(ids.DATA_FILE), "data_file", where)
    parts = {p.stored_id: p.field_id for p in facts.spec.fields if p.field_id in context.partition_types}
    tuple_ = _members(file.get(ids.PARTITION), "partition", where) if len(parts) > 0 else {}
    if (held := file.get(ids.PARTITION)) is not None:
        check_tuple([(field_id(field, where), field.name) for field in held.type], facts, where=where)
    keys = context.measured(wanted)
    return StoredRows(
        length=length,
        plain=_plain(top, ENTRY_FIELDS) | _plain(file, FILE_FIELDS),
        partition={parts[id_]: values for id_, values in tuple_.items() if id_ in parts},
        measures={shape: _by_key(file[shape.id], shape, keys) for shape in MEASURE_MAPS if shape.id in file},
    )


def _plain(stored: ById, slots: tuple[Slot, ...]) -> dict[str, pa.Array]:
    return {slot.entry: stored[slot.id].cast(slot.type) for slot in slots if slot.id in stored}


def _by_key(maps: pa.Array, shape: MeasureMap, keys: frozenset[int]) -> dict[int, pa.Array]:
    """Splits a Parquet map into one column for each wanted key."""
    if not pa.types.is_map(maps.type):
        raise FormatError(f"{shape.name} (field id {shape.id}) is {maps.type}, expected a map", field=shape.name)
    pairs = pa.StructArray.from_arrays([maps.keys, maps.items], names=["key", "value"])
    lists = pa.ListArray.from_arrays(maps.offsets, pairs).cast(shape.arrow)
    return {key: values for key, values in split_pairs(lists).items() if key in keys}
