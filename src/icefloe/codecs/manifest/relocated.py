"""Manifests and manifest lists rewritten for a table that is relocated (spec: Manifests, Manifest Lists).

Only locations change, and what belongs to rewritten files: their sizes, and the path bounds and split offsets of
position delete files. Avro files are changed field by field, so all other values are the same bytes, statistics of
unknown columns among them. Parquet manifests of V4 are decoded and encoded with the new location.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.avro.rewritten_records import AvroRecords, read_records, with_field
from icefloe.codecs.manifest import field_ids as ids
from icefloe.codecs.manifest.avro_schemas import AvroFields, avro_fields
from icefloe.codecs.manifest.context import ManifestContext
from icefloe.codecs.manifest.manifests import decode_leaf, decode_root, encode_leaf, encode_root
from icefloe.codecs.manifest.parquet import open_manifest
from icefloe.codecs.manifest.parquet_v3 import holds_version_3_entries
from icefloe.errors import FormatError, UnsupportedError
from icefloe.limits import Limits
from icefloe.model.columns import one_array
from icefloe.model.entries import ContentType, Measure, column_key, put, stat
from icefloe.model.moved_locations import Moves
from icefloe.model.schema.metadata_columns import DELETE_FILE_PATH

_BOUNDS = ((ids.LOWER_BOUNDS, "lower_bounds", "lower_path"), (ids.UPPER_BOUNDS, "upper_bounds", "upper_path"))


# -- Avro


def relocated_manifest(data: bytes, moves: Moves, *, where: str, limits: Limits) -> bytes:
    """An Avro manifest with the new locations of its files."""
    records = read_records(data, where=where, limits=limits)
    top = avro_fields(records.schema)
    name = top.name(ids.DATA_FILE, "data_file")
    if name is None:
        raise FormatError(f"{where}: a manifest without data_file", location=where)
    index = list(top.by_name).index(name)
    files = _moved_files(records.rows.field(index), top.record(name), moves, where)
    return records.with_rows(with_field(records.rows, index, files)).encode()


def relocated_manifest_list(data: bytes, moves: Moves, *, where: str, limits: Limits) -> bytes:
    """An Avro manifest list with the new locations and sizes of its manifests."""
    records: AvroRecords = read_records(data, where=where, limits=limits)
    fields = avro_fields(records.schema)
    _check_not_encrypted(records.rows, fields, ids.MANIFEST_KEY_METADATA, where)
    path = _index(fields, ids.MANIFEST_PATH, "manifest_path")
    length = _index(fields, ids.MANIFEST_LENGTH, "manifest_length")
    if path is None or length is None:
        raise FormatError(f"{where}: a manifest list without manifest_path or manifest_length", location=where)
    old = records.rows.field(path)
    rows = with_field(records.rows, length, moves.sizes(old, records.rows.field(length)))
    return records.with_rows(with_field(rows, path, moves.moved(old))).encode()


def _moved_files(files: pa.StructArray, fields: AvroFields, moves: Moves, where: str) -> pa.StructArray:
    _check_not_encrypted(files, fields, ids.KEY_METADATA, where)
    location = _index(fields, ids.LOCATION, "file_path")
    size = _index(fields, ids.FILE_SIZE_IN_BYTES, "file_size_in_bytes")
    if location is None or size is None:
        raise FormatError(f"{where}: a manifest without file_path or file_size_in_bytes", location=where)
    old = files.field(location)
    place = moves.place(old)
    files = with_field(files, size, moves.sizes(old, files.field(size)))
    index = _index(fields, ids.REFERENCED_FILE, "referenced_data_file")
    referenced = pa.nulls(len(files), pa.string()) if index is None else moves.moved(files.field(index))
    if index is not None:
        files = with_field(files, index, referenced)
    offsets = _index(fields, ids.SPLIT_OFFSETS, "split_offsets")
    if offsets is not None and place.null_count < len(place):
        files = with_field(files, offsets, _without(files.field(offsets), place.is_valid()))
    for id_, name, column in _BOUNDS:
        paths = pc.coalesce(pc.take(one_array(moves.rewritten[column]), place), referenced)
        bounds = _index(fields, id_, name)
        if bounds is not None and paths.null_count < len(paths):
            files = with_field(files, bounds, _with_path_bounds(files.field(bounds), paths))
    return with_field(files, location, moves.moved(old))


def _index(fields: AvroFields, field_id: int, name: str) -> int | None:
    stored = fields.name(field_id, name)
    return None if stored is None else list(fields.by_name).index(stored)


def _check_not_encrypted(rows: pa.StructArray, fields: AvroFields, field_id: int, where: str) -> None:
    index = _index(fields, field_id, "key_metadata")
    if index is not None and rows.field(index).null_count < len(rows):
        raise _encrypted(where)


def _encrypted(where: str) -> UnsupportedError:
    return UnsupportedError(
        f"manifest {where} has files with key_metadata: encrypted files are not relocated. Rewrite the table without"
        " encryption first",
        location=where,
    )


def _without(lists: pa.Array, mask: pa.Array) -> pa.Array:
    """A column of lists, null where the mask is true."""
    kept = pc.if_else(mask, None, pa.array(np.arange(len(lists)), pa.int64()))
    return lists.take(kept)


def _with_path_bounds(pairs: pa.ListArray, bounds: pa.Array) -> pa.ListArray:
    """Pairs of field id and bound, with new bounds of the paths of position delete files where there are any."""
    flat, rows = pairs.flatten(), pc.list_parent_indices(pairs)
    new = pc.take(bounds.cast(pa.binary()), rows)
    replaced = pc.and_(pc.equal(flat.field(0), DELETE_FILE_PATH.id), new.is_valid())
    values = pc.if_else(replaced, new, flat.field(1).cast(pa.binary()))
    lengths = np.asarray(pc.fill_null(pairs.value_lengths(), 0))
    offsets = pa.array(np.concatenate(([0], np.cumsum(lengths))), pa.int32())
    mask = pairs.is_null() if pairs.null_count > 0 else None
    return pa.ListArray.from_arrays(offsets, with_field(flat, 1, values), type=pairs.type, mask=mask)


# -- Parquet


def needs_rewrite(rows: pa.Table, moves: Moves) -> bool:
    """Whether a Parquet manifest, decoded with the new location, names files at the old one or rewritten ones."""
    at_old = Moves(old=moves.old, new=moves.old, kept=moves.kept)
    return any(
        at_old.inner(rows[name]).null_count < rows.num_rows or moves.place(rows[name]).null_count < rows.num_rows
        for name in ("location", "referenced_file")
    )


def relocated_leaf(
    data: bytes, moves: Moves, context: ManifestContext, *, where: str, content: ContentType, spec_id: int
) -> bytes:
    """A V4 leaf with the new locations of its files; ``context`` has the new location."""
    if holds_version_3_entries(open_manifest(data, where=where), where=where):
        raise UnsupportedError(
            f"manifest {where} has version 3 entries in a Parquet file, which are not rewritten. Rewrite the manifests"
            " of the table and expire older snapshots first",
            location=where,
        )
    rows = decode_leaf(data, context, where=where, content=content, spec_id=spec_id)
    return encode_leaf(_moved_rows(rows, moves, where), context, content=content, spec_id=spec_id)


def relocated_root(data: bytes, moves: Moves, context: ManifestContext, *, where: str) -> bytes:
    """A V4 root with the new locations of its files and leaves; ``context`` has the new location."""
    rows = _moved_rows(decode_root(data, context, where=where), moves, where)
    return encode_root(rows, context, snapshot_id=0, parent_id=None, sequence_number=0)


def _moved_rows(rows: pa.Table, moves: Moves, where: str) -> pa.Table:
    if rows["key_metadata"].null_count < rows.num_rows:
        raise _encrypted(where)
    place = moves.place(rows["location"])
    sizes = moves.sizes(rows["location"], rows["file_size_in_bytes"])
    moved = put(rows, "file_size_in_bytes", sizes)
    moved = put(moved, "split_offsets", _without(one_array(rows["split_offsets"]), place.is_valid()))
    for measure, column in ((Measure.LOWER, "lower_path"), (Measure.UPPER, "upper_path")):
        name = stat(measure, column_key(DELETE_FILE_PATH.id))
        if name in rows.column_names:
            bounds = pc.take(one_array(moves.rewritten[column]), place)
            moved = put(moved, name, pc.coalesce(bounds, one_array(rows[name])))
    for name in ("location", "referenced_file"):
        moved = put(moved, name, moves.moved(rows[name]))
    return moved


def at_location(context: ManifestContext, location: str) -> ManifestContext:
    """The context of a table's manifests at another location."""
    return replace(context, location=location)
