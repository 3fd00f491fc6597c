"""Roots and leaves of every version. Reading detects the encoding from the first bytes; writing chooses it by version.

A v1-v3 manifest list is a root and a v1-v3 manifest is a leaf, so callers never ask which version they read.
"""

from __future__ import annotations

from typing import Literal

import pyarrow as pa

from icefloe.codecs.avro.block_index import HEADER_BYTES, Fetch, read_header
from icefloe.codecs.avro.container import read_container
from icefloe.codecs.manifest.avro import decode_manifest, encode_manifest
from icefloe.codecs.manifest.context import ManifestContext
from icefloe.codecs.manifest.manifest_list import decode_manifest_list, encode_manifest_list
from icefloe.codecs.manifest.parquet import (
    decode_parquet_manifest,
    encode_parquet_manifest,
    open_manifest,
    parquet_manifest_names,
)
from icefloe.codecs.manifest.parquet_v3 import decode_parquet_entries, holds_version_3_entries
from icefloe.codecs.manifest.v3_entries import stated_version
from icefloe.codecs.manifest.value_sizes import average_sizes
from icefloe.errors import CorruptFile, LimitError
from icefloe.model.entries import ContentType, Measure, StatKeys, known_measures, stat, stat_columns, with_stats
from icefloe.model.location_columns import compared_names
from icefloe.model.metadata.version_rules import rules
from icefloe.model.schema.types import has_value_sizes

AVRO_MAGIC = b"Obj\x01"
PARQUET_MAGIC = b"PAR1"
_V4_MEASURES = (Measure.TIGHT, Measure.AVERAGE_SIZE)
_FEW_NAMES = 16  # each name costs one search through a whole Avro file


def decode_root(data: bytes, context: ManifestContext, *, where: str) -> pa.Table:
    """All rows of a snapshot's root, as stored; ``where`` is the location that errors name."""
    if _is_parquet(data, context, where):
        return decode_parquet_manifest(data, context, where=where, content=("root",))
    return decode_manifest_list(data, context, where=where)


def decode_leaf(
    data: bytes,
    context: ManifestContext,
    *,
    where: str,
    content: ContentType,
    spec_id: int | None = None,
    wanted: StatKeys | None = None,
) -> pa.Table:
    """All rows of a data manifest, or of a delete manifest, as stored and in file order.

    ``spec_id`` is the partition spec in its root row; rows of V4 have their own. ``wanted`` are the statistics keys of
    the columns that are needed, none for all; there may be more.
    """
    if not _is_parquet(data, context, where):
        return decode_manifest(data, context, where=where, content=content, spec_id=spec_id, wanted=wanted)
    file = open_manifest(data, where=where)
    if holds_version_3_entries(file, where=where):
        return decode_parquet_entries(file, context, where=where, content=content, spec_id=spec_id, wanted=wanted)
    names = ("delete", "deletes") if content is ContentType.DELETE_MANIFEST else ("data",)
    return decode_parquet_manifest(file, context, where=where, content=names, wanted=wanted)


def leaf_names(data: bytes, context: ManifestContext, *, where: str, column: str, names: pa.Array) -> bool:
    """Whether a leaf may contain one of these locations; true also if a fast check cannot decide.

    Names in ``referenced_file`` are compared by the names of files. For Parquet, only that column is decoded. For
    Avro, the raw bytes are searched: locations are stored as UTF-8.
    """
    if _is_parquet(data, context, where):
        file = open_manifest(data, where=where)
        if holds_version_3_entries(file, where=where):
            return True
        return parquet_manifest_names(file, context, where=where, column=column, names=names)
    if len(names) > _FEW_NAMES:
        return True
    container = read_container(data, where=where, limits=context.limits)
    texts = compared_names(names, column).to_pylist()
    return any(name.encode() in block.data for name in texts for block in container.blocks)


def avro_leaf_version(fetch: Fetch, size: int, *, where: str) -> int | None:
    """The format version in the header of an Avro leaf, which alone is read; none if the leaf is not Avro."""
    begin = fetch(0, min(HEADER_BYTES, size))
    if not begin.startswith(AVRO_MAGIC):
        return None
    header = read_header(lambda offset, n: begin if n <= len(begin) else fetch(offset, n), size, where)
    stated = {key: value.decode(errors="replace") for key, value in header.metadata.items()}
    return stated_version(stated, where=where)


def encode_root(
    entries: pa.Table,
    context: ManifestContext,
    *,
    snapshot_id: int,
    parent_id: int | None,
    sequence_number: int,
    first_row_id: int | None = None,
) -> bytes:
    """The root of a snapshot: a manifest list before V4, where all rows must be manifests."""
    if rules(context.format_version).root_holds_files:
        return encode_parquet_manifest(entries, context, content="root")
    return encode_manifest_list(
        entries,
        context,
        snapshot_id=snapshot_id,
        parent_id=parent_id,
        sequence_number=sequence_number,
        first_row_id=first_row_id,
    )


def encode_leaf(entries: pa.Table, context: ManifestContext, *, content: ContentType, spec_id: int) -> bytes:
    """A manifest of data files, or of delete files, that were written with one partition spec."""
    if rules(context.format_version).root_holds_files:
        name: Literal["delete", "data"] = "delete" if content is ContentType.DELETE_MANIFEST else "data"
        return encode_parquet_manifest(entries, context, content=name)
    return encode_manifest(entries, context, content=content, spec_id=spec_id)


def with_stored_sizes(entries: pa.Table, context: ManifestContext) -> pa.Table:
    """The entries with the sizes that manifests of this table's version record.

    V4 records average sizes of values instead of sizes of columns; older versions record neither these nor whether
    bounds are tight.
    """
    if not rules(context.format_version).content_entries:
        return with_stats(entries, lambda column: column.measure not in _V4_MEASURES)
    keys = [column.key for column in stat_columns(entries).values() if column.measure is Measure.COLUMN_SIZE]
    if len(keys) == 0:
        return entries
    columns = dict(zip(entries.column_names, entries.itercolumns(), strict=True))
    for key in keys:
        type_ = context.column_type(key.id)
        average = None if type_ is None or not has_value_sizes(type_) else average_sizes(known_measures(columns, key))
        del columns[stat(Measure.COLUMN_SIZE, key)]
        columns |= {} if average is None else {stat(Measure.AVERAGE_SIZE, key): average}
    return pa.table(columns)


def extension(context: ManifestContext) -> str:
    """The file name extension of the manifests that this table's version writes, which is also their format."""
    return "parquet" if rules(context.format_version).root_holds_files else "avro"


def _is_parquet(data: bytes, context: ManifestContext, where: str) -> bool:
    if len(data) > context.limits.manifest_bytes:
        limit = context.limits.manifest_bytes
        raise LimitError(f"{where}: {len(data)} bytes, more than the limit of {limit} for a manifest", location=where)
    magic = data[:4]
    if magic not in (AVRO_MAGIC, PARQUET_MAGIC):
        raise CorruptFile(f"{where}: the file is neither Avro nor Parquet", location=where)
    return magic == PARQUET_MAGIC
