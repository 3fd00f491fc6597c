"""Which deletes apply to which data files (spec: Scan Planning; V4 proposal).

A deletion vector names its data file, so matching is one lookup by location for all files at once. Delete files apply
to older files of their partition, and equality deletes of an unpartitioned spec to all older files. A data file with a
deletion vector has its position deletes in there, and needs no position delete file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.context import ManifestContext
from icefloe.deletes.equality_pruning import Mask
from icefloe.deletes.matching import Matches, match_equalities, match_positions
from icefloe.deletes.partition_keys import Ints, partition_codes
from icefloe.errors import FormatError, UnsupportedError
from icefloe.model.entries import ContentType, of_type, partition_key, put, stat
from icefloe.model.location_columns import index_of, undecided

ATTACHED = {
    "dv_location": "location",
    "dv_offset": "dv_offset",
    "dv_size_in_bytes": "dv_size_in_bytes",
    "dv_cardinality": "record_count",
    "dv_manifest": "manifest",
    "dv_ordinal": "ordinal",
}
LISTED = pa.field("deletes", pa.list_(pa.int32()))


class Fate(IntEnum):
    """What became of a delete row in a plan."""

    APPLIES = 0
    OUT_OF_REACH = 1  # no planned data file is in its partition, older, and named by it
    APART = 2  # statistics show that it deletes no row of the files within reach


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """Data files with their deletes: vectors in columns ``dv_*``, delete files as row numbers of ``files``."""

    data: pa.Table
    files: pa.Table  # delete files that apply to any of the data files, position deletes first
    fates: pa.Array  # of every delete row that was given


def attach_deletes(data: pa.Table, deletes: pa.Table, context: ManifestContext) -> Attached:
    """The data rows with the deletes that apply to each.

    Both tables are entry tables with a column ``manifest``; ``deletes`` holds live delete rows of the snapshot.
    """
    deletes, used = respell_targets(deletes, data, context.location)
    is_vector = pc.is_valid(deletes["dv_offset"])
    data = attach_vectors(data, deletes.filter(is_vector))
    fates = np.full(deletes.num_rows, int(Fate.OUT_OF_REACH), np.int8)
    fates[_mask(pc.and_(is_vector, used))] = int(Fate.APPLIES)
    numbers = np.flatnonzero(_mask(pc.invert(is_vector)))
    if len(numbers) == 0 or data.num_rows == 0:
        empty = pa.array([[]] * 1, LISTED.type).take(pa.array(np.zeros(data.num_rows, np.int64)))
        return Attached(data=data.append_column(LISTED, empty), files=deletes.slice(0, 0), fates=pa.array(fates))
    files = deletes.take(pa.array(numbers))
    matches = _match_files(data, files, context)
    fates[numbers[matches.reached]] = int(Fate.APART)
    applied = np.unique(matches.deletes)
    fates[numbers[applied]] = int(Fate.APPLIES)
    files, lists = _listed(files, matches, applied, data.num_rows)
    return Attached(data=data.append_column(LISTED, lists), files=files, fates=pa.array(fates))


def respell_targets(deletes: pa.Table, data: pa.Table, table_location: str) -> tuple[pa.Table, pa.Array]:
    """Delete rows that name the data files of ``data`` in the spelling that these have there, and which rows do.

    FormatError if it is not certain whether one names such a file: rows that it deletes would come back. Most deletes
    name a file that is not planned, or that was removed.
    """
    named = deletes["referenced_file"]
    if named.null_count == len(named) or data.num_rows == 0:
        return deletes, pa.array(np.zeros(deletes.num_rows, np.bool_))
    place = index_of(named, data["location"], table_location)
    others = named.filter(place.is_null())
    if (pair := undecided(others, data["location"], table_location)) is not None:
        row = deletes.slice(pc.index(named, pair[0]).as_py(), 1)
        location = row["location"][0].as_py()
        raise FormatError(
            f"delete file {location}: it deletes rows of {pair[0]}, which may be another spelling of the data file"
            f" {pair[1]}; mend the location in the manifest, or remove the delete file",
            location=location,
        )
    return put(deletes, "referenced_file", pc.coalesce(pc.take(data["location"], place), named)), place.is_valid()


def attach_vectors(data: pa.Table, vectors: pa.Table) -> pa.Table:
    """The data rows with the deletion vector of each, in columns ``dv_*``; null where a file has none."""
    data = data.drop_columns([name for name in ATTACHED if name in data.column_names])
    targets = vectors["referenced_file"].combine_chunks()
    if len(pc.unique(targets)) < len(targets):
        twice = pc.value_counts(targets).filter(pc.greater(pc.value_counts(targets).field("counts"), 1))[0]
        raise FormatError(f"data file {twice['values'].as_py()} has two live deletion vectors")
    found = pc.index_in(data["location"], value_set=targets)
    for name, source in ATTACHED.items():
        data = data.append_column(name, vectors[source].take(found))
    seen = pc.take(vectors["sequence_number"], found)
    late = pc.index(pc.fill_null(pc.greater(data["sequence_number"], seen), False), True).as_py()
    if late >= 0:
        location = data["location"][late].as_py()
        raise FormatError(f"data file {location} is newer than its deletion vector", location=location)
    return data


def _match_files(data: pa.Table, files: pa.Table, context: ManifestContext) -> Matches:
    """Pairs of data files and delete files, by the rules of each kind."""
    equality = _mask(of_type(files, ContentType.EQUALITY_DELETES))
    everywhere = equality & _is_global(files, context)
    _check_tuples(files, equality & ~everywhere, context)
    of_data, of_files = partition_codes([data, files], context)
    without_vector = np.flatnonzero(_mask(pc.is_null(data["dv_location"])))
    one = np.zeros(data.num_rows, np.int64), np.zeros(files.num_rows, np.int64)
    parts = []
    for chosen, rows, groups in (
        (~equality, without_vector, (of_data, of_files)),
        (equality & ~everywhere, np.arange(data.num_rows), (of_data, of_files)),
        (everywhere, np.arange(data.num_rows), one),
    ):
        mine = np.flatnonzero(chosen)
        if len(mine) == 0 or len(rows) == 0:
            continue
        some, theirs = _rows(data, rows), _rows(files, mine)
        codes = groups[0][rows], groups[1][mine]
        if equality[mine[0]]:
            found = match_equalities(some, theirs, codes, context)
        else:
            found = match_positions(some, theirs, codes, context.location)
        parts.append((rows[found.data], mine[found.deletes], mine[found.reached]))
    reached = np.zeros(files.num_rows, np.bool_)
    for _, _, within in parts:
        reached[within] = True
    nothing = np.empty(0, np.int64)
    return Matches(
        np.concatenate([nothing, *(part[0] for part in parts)]),
        np.concatenate([nothing, *(part[1] for part in parts)]),
        reached,
    )


def _rows(table: pa.Table, rows: Ints) -> pa.Table:
    return table if len(rows) == table.num_rows else table.take(pa.array(rows))


def _mask(condition: pa.ChunkedArray) -> Mask:
    found: Mask = np.asarray(condition.to_numpy(), np.bool_)
    return found


def _is_global(files: pa.Table, context: ManifestContext) -> Mask:
    """Which rows are of a spec that does not partition, fields that were dropped aside."""
    return _in_specs(files, (spec.spec_id for spec in context.specs.values() if not spec.is_partitioned))


def _in_specs(files: pa.Table, spec_ids: Iterable[int]) -> Mask:
    return _mask(pc.is_in(files["partition_spec_id"], value_set=pa.array(list(spec_ids), pa.int32())))


def _check_tuples(files: pa.Table, scoped: Mask, context: ManifestContext) -> None:
    """Refuse equality deletes of partitions whose values cannot be read: they would delete rows of others."""
    unread = {
        spec.spec_id: field
        for spec in context.specs.values()
        for field in spec.fields
        if not field.is_void and field.field_id in context.lost
        if stat("value_count", partition_key(field.field_id)) not in files.column_names
    }
    wrong = np.flatnonzero(scoped & _in_specs(files, unread))
    if len(wrong) > 0:
        row = files.slice(int(wrong[0]), 1)
        field, location = unread[row["partition_spec_id"][0].as_py()], row["location"][0].as_py()
        raise UnsupportedError(
            f"equality delete file {location}: it belongs to a partition by {field.name!r}, whose transform"
            f" {field.transform!r} is not known",
            location=location,
        )


def _listed(files: pa.Table, matches: Matches, applied: Ints, size: int) -> tuple[pa.Table, pa.Array]:
    """The delete files that apply, position deletes and older ones first, and their numbers for each data file."""
    kept = files.take(pa.array(applied))
    order = pc.sort_indices(kept, [("content_type", "ascending"), ("sequence_number", "ascending")]).to_numpy()
    place = np.empty(files.num_rows, np.int64)
    place[applied[order]] = np.arange(len(order))
    numbers = place[matches.deletes]
    by_data = np.lexsort((numbers, matches.data))
    ends = np.concatenate([[0], np.cumsum(np.bincount(matches.data, minlength=size))])
    lists = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(numbers[by_data], pa.int32()))
    return kept.take(pa.array(order)), lists
