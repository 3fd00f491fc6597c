"""Assigns deletes to the data files that they apply to (spec: Scan Planning; V4 proposal).

A deletion vector names its data file, so one lookup by location serves all files. Delete files apply to older files of
their partition, and equality deletes of an unpartitioned spec to all older files. Position delete files do not apply to
a data file with a deletion vector, as the vector contains their positions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.context import ManifestContext
from icefloe.deletes.matching import Matches, match_equalities, match_positions
from icefloe.deletes.partition_keys import Ints, Mask, partition_codes
from icefloe.errors import FormatError, UnsupportedError
from icefloe.model.entries import ContentType, Measure, of_type, partition_key, put, stat
from icefloe.model.location_columns import index_of, undecided

_VECTOR_COLUMNS = {  # of a data file: the columns of its deletion vector
    "dv_location": "location",
    "dv_offset": "dv_offset",
    "dv_size_in_bytes": "dv_size_in_bytes",
    "dv_cardinality": "record_count",
    "dv_manifest": "manifest",
    "dv_ordinal": "ordinal",
}
DELETE_NUMBERS = pa.field("deletes", pa.list_(pa.int32()))  # of a data file: its delete files, as row numbers


class DeleteOutcome(IntEnum):
    """Whether a delete applies to planned data files, and why not."""

    APPLIES = 0
    NO_FILE = 1  # no planned data file has its partition and a lower sequence number, and is named by it
    NO_ROW = 2  # statistics show that it deletes no row of these files


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """Data files with their deletes: vectors in columns ``dv_*``, delete files as row numbers of ``files``."""

    data: pa.Table
    files: pa.Table  # delete files that apply to any of the data files, position deletes first
    outcomes: pa.Array  # of every delete row, as DeleteOutcome


def attach_deletes(data: pa.Table, deletes: pa.Table, context: ManifestContext) -> Attached:
    """The data rows with the deletes that apply to each.

    Both tables are entry tables with a column ``manifest``; ``deletes`` holds live delete rows of the snapshot.
    """
    deletes, used = respell_targets(deletes, data, context.location)
    is_vector = pc.is_valid(deletes["dv_offset"])
    data = attach_vectors(data, deletes.filter(is_vector))
    outcomes = np.full(deletes.num_rows, int(DeleteOutcome.NO_FILE), np.int8)
    outcomes[_mask(pc.and_(is_vector, used))] = int(DeleteOutcome.APPLIES)
    numbers = np.flatnonzero(_mask(pc.invert(is_vector)))
    if len(numbers) == 0 or data.num_rows == 0:
        return Attached(data=without_delete_files(data), files=deletes.slice(0, 0), outcomes=pa.array(outcomes))
    files = deletes.take(pa.array(numbers))
    matches = _match_files(data, files, context)
    outcomes[numbers[matches.in_range]] = int(DeleteOutcome.NO_ROW)
    applied = np.unique(matches.deletes)
    outcomes[numbers[applied]] = int(DeleteOutcome.APPLIES)
    files, lists = _delete_numbers(files, matches, applied, data.num_rows)
    return Attached(data=data.append_column(DELETE_NUMBERS, lists), files=files, outcomes=pa.array(outcomes))


def without_delete_files(data: pa.Table) -> pa.Table:
    """The data rows with an empty list of delete files each."""
    none = pa.array([[]], DELETE_NUMBERS.type).take(pa.array(np.zeros(data.num_rows, np.int64)))
    return data.append_column(DELETE_NUMBERS, none)


def respell_targets(deletes: pa.Table, data: pa.Table, table_location: str) -> tuple[pa.Table, pa.Array]:
    """Delete rows with the names of data files spelled as in ``data``, and which of the rows name one of these files.

    FormatError if it is not certain whether one names such a file: deleted rows would reappear. Most deletes name a
    file that is not planned, or that was removed.
    """
    named = deletes["referenced_file"]
    if named.null_count == len(named) or data.num_rows == 0:
        return deletes, pa.array(np.zeros(deletes.num_rows, np.bool_))
    index = index_of(named, data["location"], table_location)
    others = named.filter(index.is_null())
    if (pair := undecided(others, data["location"], table_location)) is not None:
        row = deletes.slice(pc.index(named, pair[0]).as_py(), 1)
        location = row["location"][0].as_py()
        raise FormatError(
            f"delete file {location}: it deletes rows of {pair[0]}, which may be another spelling of the data file"
            f" {pair[1]}; correct the location in the manifest, or remove the delete file",
            location=location,
        )
    return put(deletes, "referenced_file", pc.coalesce(pc.take(data["location"], index), named)), index.is_valid()


def attach_vectors(data: pa.Table, vectors: pa.Table) -> pa.Table:
    """The data rows with the deletion vector of each, in columns ``dv_*``; null where a file has none."""
    data = data.drop_columns([name for name in _VECTOR_COLUMNS if name in data.column_names])
    targets = vectors["referenced_file"].combine_chunks()
    if len(pc.unique(targets)) < len(targets):
        counts = pc.value_counts(targets)
        repeated = counts.filter(pc.greater(counts.field("counts"), 1))[0]
        raise FormatError(f"data file {repeated['values'].as_py()} has two live deletion vectors")
    index = pc.index_in(data["location"], value_set=targets)
    for name, source in _VECTOR_COLUMNS.items():
        data = data.append_column(name, vectors[source].take(index))
    vector_numbers = pc.take(vectors["sequence_number"], index)
    wrong = pc.index(pc.fill_null(pc.greater(data["sequence_number"], vector_numbers), False), True).as_py()
    if wrong >= 0:
        location = data["location"][wrong].as_py()
        raise FormatError(f"data file {location} is newer than its deletion vector", location=location)
    return data


def _match_files(data: pa.Table, files: pa.Table, context: ManifestContext) -> Matches:
    """Pairs of a data file and a delete file that applies to it, by the rules of each kind of delete."""
    equality = _mask(of_type(files, ContentType.EQUALITY_DELETES))
    unpartitioned = equality & _is_unpartitioned(files, context)
    _check_partition_values(files, equality & ~unpartitioned, context)
    codes = partition_codes([data, files], context)
    one_partition = [np.zeros(data.num_rows, np.int64), np.zeros(files.num_rows, np.int64)]
    all_data, without_vector = np.arange(data.num_rows), np.flatnonzero(_mask(pc.is_null(data["dv_location"])))
    pairs = []
    for kind, data_rows, (data_codes, file_codes) in (
        (~equality, without_vector, codes),
        (equality & ~unpartitioned, all_data, codes),
        (unpartitioned, all_data, one_partition),
    ):
        file_rows = np.flatnonzero(kind)
        if len(file_rows) == 0 or len(data_rows) == 0:
            continue
        chosen_data, chosen_files = _take(data, data_rows), _take(files, file_rows)
        partitions = data_codes[data_rows], file_codes[file_rows]
        if equality[file_rows[0]]:
            matches = match_equalities(chosen_data, chosen_files, partitions, context)
        else:
            matches = match_positions(chosen_data, chosen_files, partitions, context.location)
        pairs.append((data_rows[matches.data], file_rows[matches.deletes], file_rows[matches.in_range]))
    in_range = np.zeros(files.num_rows, np.bool_)
    for _, _, rows in pairs:
        in_range[rows] = True
    none = np.empty(0, np.int64)
    return Matches(
        np.concatenate([none, *(pair[0] for pair in pairs)]),
        np.concatenate([none, *(pair[1] for pair in pairs)]),
        in_range,
    )


def _take(table: pa.Table, rows: Ints) -> pa.Table:
    return table if len(rows) == table.num_rows else table.take(pa.array(rows))


def _mask(condition: pa.ChunkedArray) -> Mask:
    mask: Mask = np.asarray(condition.to_numpy(), np.bool_)
    return mask


def _is_unpartitioned(files: pa.Table, context: ManifestContext) -> Mask:
    """Which rows have a spec without partition fields, or with void fields only."""
    return _in_specs(files, (spec.spec_id for spec in context.specs.values() if not spec.is_partitioned))


def _in_specs(files: pa.Table, spec_ids: Iterable[int]) -> Mask:
    return _mask(pc.is_in(files["partition_spec_id"], value_set=pa.array(list(spec_ids), pa.int32())))


def _check_partition_values(files: pa.Table, partitioned: Mask, context: ManifestContext) -> None:
    """Refuse equality deletes whose partition values cannot be read: they would apply to other partitions too."""
    unreadable = {
        spec.spec_id: field
        for spec in context.specs.values()
        for field in spec.fields
        if not field.is_void and field.field_id in context.untyped
        if stat(Measure.VALUES, partition_key(field.field_id)) not in files.column_names
    }
    wrong = np.flatnonzero(partitioned & _in_specs(files, unreadable))
    if len(wrong) > 0:
        row = files.slice(int(wrong[0]), 1)
        field, location = unreadable[row["partition_spec_id"][0].as_py()], row["location"][0].as_py()
        raise UnsupportedError(
            f"equality delete file {location}: it belongs to a partition by {field.name!r}, whose transform"
            f" {field.transform!r} is unknown",
            location=location,
        )


def _delete_numbers(files: pa.Table, matches: Matches, applied: Ints, size: int) -> tuple[pa.Table, pa.Array]:
    """The delete files that apply, position deletes and older ones first, and the list of them for each data file."""
    chosen = files.take(pa.array(applied))
    order = pc.sort_indices(chosen, [("content_type", "ascending"), ("sequence_number", "ascending")]).to_numpy()
    position = np.empty(files.num_rows, np.int64)
    position[applied[order]] = np.arange(len(order))
    numbers = position[matches.deletes]
    by_data = np.lexsort((numbers, matches.data))
    ends = np.concatenate([[0], np.cumsum(np.bincount(matches.data, minlength=size))])
    lists = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(numbers[by_data], pa.int32()))
    return chosen.take(pa.array(order)), lists
