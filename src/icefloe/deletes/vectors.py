"""Reads and writes deletion vectors of data files (spec: Row-level Deletes; V4 proposal).

A data file has at most one live deletion vector, so a new vector also contains the positions of the old one. All
vectors of a commit are stored in one Puffin file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.codecs.puffin.deletion_vector import decode_dv, encode_dv
from icefloe.codecs.puffin.puffin_file import deletion_vector_blob, encode_puffin
from icefloe.env import CREATED_BY
from icefloe.errors import LimitError
from icefloe.io.file_io import FileIO
from icefloe.limits import DEFAULT, Limits
from icefloe.model.entries import BOUNDS, ContentType, Measure, StatKey, Status, concat, entries, put, stat, stat_keys

_READ = ("location", "dv_location", "dv_offset", "dv_size_in_bytes", "dv_cardinality")
MAX_READ_BYTES = 4 * 1024 * 1024


def load_vectors(io: FileIO, tasks: pa.Table, limits: Limits = DEFAULT) -> dict[str, BitMap64]:
    """The deleted positions of the planned files that have any, by data file location.

    A vector may contain positions past the end of its file; they are included and match no row.
    """
    by_file: dict[str, BitMap64] = {}
    rows = tasks.filter(pc.is_valid(tasks["dv_location"])).select(list(_READ))
    rows = rows.sort_by([("dv_location", "ascending"), ("dv_offset", "ascending")])
    for run in _runs(rows.to_pylist()):
        start = run[0]["dv_offset"]
        if _end(run[-1]) - start > max(limits.deletion_vector_bytes, MAX_READ_BYTES):
            raise LimitError(
                f"{run[0]['dv_location']}: a deletion vector of {_end(run[-1]) - start} bytes at {start}, limit"
                f" {limits.deletion_vector_bytes}",
                location=run[0]["dv_location"],
            )
        data = io.read_range(run[0]["dv_location"], start, _end(run[-1]) - start)
        for task in run:
            blob = data if len(run) == 1 else data[task["dv_offset"] - start : _end(task) - start]
            by_file[task["location"]] = _decoded(blob, task, limits)
    return by_file


def _runs(tasks: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Groups of vectors that are stored next to each other in a file, to be read with one request."""
    run: list[dict[str, Any]] = []
    for task in tasks:
        adjacent = len(run) > 0 and task["dv_location"] == run[0]["dv_location"] and task["dv_offset"] == _end(run[-1])
        if len(run) > 0 and (not adjacent or _end(task) - run[0]["dv_offset"] > MAX_READ_BYTES):
            yield run
            run = []
        run.append(task)
    if len(run) > 0:
        yield run


def _end(task: Mapping[str, Any]) -> int:
    return int(task["dv_offset"] + task["dv_size_in_bytes"])


def _decoded(blob: bytes, task: Mapping[str, Any], limits: Limits) -> BitMap64:
    where = f"deletion vector of {task['location']} in {task['dv_location']}"
    return decode_dv(blob, where=where, cardinality=task["dv_cardinality"], limits=limits)


def write_vectors(
    io: FileIO,
    tasks: pa.Table,
    old: Mapping[str, BitMap64],
    deleted: Mapping[str, BitMap64],
    *,
    location: str,
) -> pa.Table:
    """Write the union of old and newly deleted positions of each file to one Puffin file; the entries to commit.

    ``tasks`` are the planned files, whose partition values the entries repeat. The footer names data files by absolute
    locations in all versions: other programs match vectors by them. Readers here go by the entry alone (decision 021).
    """
    merged = {file: old.get(file, BitMap64()) | positions for file, positions in deleted.items()}
    payloads = {file: encode_dv(positions) for file, positions in merged.items()}
    blobs = [
        deletion_vector_blob(payloads[file], referenced_file=file, cardinality=len(positions))
        for file, positions in merged.items()
    ]
    data, locations = encode_puffin(blobs, CREATED_BY)
    io.write_new(location, data)
    rows: list[dict[str, object]] = [
        {
            "content_type": int(ContentType.POSITION_DELETES),
            "location": location,
            "file_format": "puffin",
            "status": int(Status.ADDED),
            "dv_offset": blob.offset,
            "dv_size_in_bytes": blob.length,
            "record_count": len(positions),
            "file_size_in_bytes": len(data),
            "referenced_file": file,
        }
        for (file, positions), blob in zip(merged.items(), locations, strict=True)
    ]
    vectors = entries(rows)
    source = pc.index_in(vectors["referenced_file"], value_set=tasks["location"].combine_chunks())
    return with_partitions(vectors, tasks, source)


def with_partitions(deletes: pa.Table, tasks: pa.Table, source: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Delete entries with the partition spec and values of data files; value counts are those of the deleted rows.

    ``source`` is for each entry the row of ``tasks`` from which they are taken.
    """
    deletes = put(deletes, "partition_spec_id", tasks["partition_spec_id"].take(source))
    for key in stat_keys(tasks):
        if key.is_partition:
            deletes = _with_partition(deletes, tasks, source, key)
    return concat([deletes])


def _with_partition(vectors: pa.Table, tasks: pa.Table, source: pa.Array | pa.ChunkedArray, key: StatKey) -> pa.Table:
    rows = vectors["record_count"]
    for measure in BOUNDS:
        name = stat(measure, key)
        vectors = vectors.append_column(tasks.schema.field(name), tasks[name].take(source))
    counted = tasks[stat(Measure.VALUES, key)].take(source)
    vectors = vectors.append_column(stat(Measure.VALUES, key), pc.if_else(pc.is_valid(counted), rows, None))
    for measure in (Measure.NULLS, Measure.NANS):
        name = stat(measure, key)
        if name in tasks.column_names:
            # All rows of a file have the same partition value: all are null (or NaN), or none is.
            scaled = pc.if_else(pc.greater(tasks[name].take(source), 0), rows, pa.scalar(0, pa.int64()))
            vectors = vectors.append_column(name, scaled)
    return vectors
