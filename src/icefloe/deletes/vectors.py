"""Deletion vectors of data files: reading them, and writing merged ones (spec: Row-level Deletes; V4 proposal).

A data file has at most one live deletion vector, so a new one always holds the positions of the old one too. All
vectors of a commit share one Puffin file.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.codecs.deletion_vector import decode_dv, encode_dv
from icefloe.codecs.places import Places
from icefloe.codecs.puffin import deletion_vector_blob, encode_puffin
from icefloe.env import CREATED_BY
from icefloe.errors import FormatError
from icefloe.io.file_io import FileIO
from icefloe.limits import DEFAULT, Limits
from icefloe.model.entries import ContentType, Status, concat, entries, stat, stat_keys


def load_vectors(io: FileIO, tasks: pa.Table, limits: Limits = DEFAULT) -> dict[str, BitMap64]:
    """The deleted positions of the planned files that have any, by data file location."""
    found: dict[str, BitMap64] = {}
    names = ("location", "record_count", "dv_location", "dv_offset", "dv_size_in_bytes", "dv_cardinality")
    for task in tasks.filter(pc.is_valid(tasks["dv_location"])).select(list(names)).to_pylist():
        where = f"deletion vector of {task['location']} in {task['dv_location']}"
        blob = io.read_range(task["dv_location"], task["dv_offset"], task["dv_size_in_bytes"])
        positions = decode_dv(blob, where=where, cardinality=task["dv_cardinality"], limits=limits)
        if len(positions) > 0 and positions.max() >= task["record_count"]:
            raise FormatError(
                f"{where}: position {positions.max()} is past the file's {task['record_count']} rows",
                location=task["dv_location"],
            )
        found[task["location"]] = positions
    return found


def write_vectors(
    io: FileIO,
    tasks: pa.Table,
    old: Mapping[str, BitMap64],
    deleted: Mapping[str, BitMap64],
    *,
    location: str,
    base: str | None = None,
) -> pa.Table:
    """Write the union of old and newly deleted positions of each file to one Puffin file; the entries to commit.

    ``tasks`` are the planned files, whose partition values the entries repeat. ``base`` is the location of a table
    that stores locations relative to itself; the Puffin file names data files as the table's manifests do.
    """
    places = Places(base)
    merged = {file: old.get(file, BitMap64()) | positions for file, positions in deleted.items()}
    payloads = {file: encode_dv(positions) for file, positions in merged.items()}
    blobs = [
        deletion_vector_blob(payloads[file], referenced_file=places.stored(file), cardinality=len(positions))
        for file, positions in merged.items()
    ]
    data, ranges = encode_puffin(blobs, CREATED_BY)
    io.write_new(location, data)
    rows: list[dict[str, object]] = [
        {
            "content_type": int(ContentType.POSITION_DELETES),
            "location": location,
            "file_format": "puffin",
            "status": int(Status.ADDED),
            "dv_offset": place.offset,
            "dv_size_in_bytes": place.length,
            "record_count": len(positions),
            "file_size_in_bytes": len(data),
            "referenced_file": file,
        }
        for (file, positions), place in zip(merged.items(), ranges, strict=True)
    ]
    return _with_partitions(entries(rows), tasks)


def _with_partitions(vectors: pa.Table, tasks: pa.Table) -> pa.Table:
    """The vector rows with the partition spec and values of their data files, counted over the deleted rows."""
    source = pc.index_in(vectors["referenced_file"], value_set=tasks["location"].combine_chunks())
    index = vectors.schema.get_field_index("partition_spec_id")
    vectors = vectors.set_column(index, vectors.schema.field(index), tasks["partition_spec_id"].take(source))
    for key in stat_keys(tasks):
        if key.startswith("p"):
            vectors = _with_partition(vectors, tasks, source, key)
    return concat([vectors])


def _with_partition(vectors: pa.Table, tasks: pa.Table, source: pa.ChunkedArray, key: str) -> pa.Table:
    rows = vectors["record_count"]
    for measure in ("lower_bound", "upper_bound"):
        name = stat(measure, key)
        vectors = vectors.append_column(tasks.schema.field(name), tasks[name].take(source))
    counted = tasks[stat("value_count", key)].take(source)
    vectors = vectors.append_column(stat("value_count", key), pc.if_else(pc.is_valid(counted), rows, None))
    for measure in ("null_value_count", "nan_value_count"):
        name = stat(measure, key)
        if name in tasks.column_names:
            # A partition value is the same for all rows of a file: all of them are null (or NaN), or none is.
            scaled = pc.if_else(pc.greater(tasks[name].take(source), 0), rows, pa.scalar(0, pa.int64()))
            vectors = vectors.append_column(name, scaled)
    return vectors
