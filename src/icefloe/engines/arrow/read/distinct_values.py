"""Sketches of the distinct values of columns, computed in this process (Puffin spec, apache-datasketches-theta-v1).

The threads that read files hash the values too. A value is hashed as its bytes in the format's single-value
serialization; empty texts and binaries have no hash, as in Apache DataSketches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.puffin.theta_sketch import SEED, Hashes, SketchBuilder, ThetaSketch
from icefloe.codecs.value.bounds import encode_bounds
from icefloe.engines.arrow.read.plan_reader import read_in_parallel
from icefloe.engines.work import ScanRequest
from icefloe.formats.read.file_read import FileRead
from icefloe.formats.read.reader import read_file
from icefloe.model.schema.types import BINARY, STRING, Field, Type
from icefloe.progress import Progress
from icefloe.transforms.murmur3_128 import hash_halves

_MAY_BE_EMPTY = (STRING, BINARY)


def distinct_sketches(
    scan: ScanRequest, columns: Mapping[tuple[str, ...], Field], progress: Progress
) -> dict[int, ThetaSketch]:
    """A sketch of each column of a scan, by field id; nulls are no values."""
    plan, io = scan.plan(), scan.io
    deleted = plan.deleted_rows(io)

    def parts(part: FileRead) -> Iterator[tuple[int, dict[int, ThetaSketch]]]:
        builders, rows = {field.id: SketchBuilder() for field in columns.values()}, 0
        for batch in read_file(io, replace(part, deletes=deleted.of(part.location))):
            for path, field in columns.items():
                builders[field.id].add(value_hashes(_values(batch, path), field.type))
            rows += batch.num_rows
        yield rows, {id_: builder.sketch() for id_, builder in builders.items()}

    merged = {field.id: SketchBuilder() for field in columns.values()}
    done, total = 0, int(pc.sum(plan.tasks["record_count"], min_count=0).as_py())
    for rows, sketches in read_in_parallel(plan, parts):
        for id_, sketch in sketches.items():
            merged[id_].add_sketch(sketch)
        done += rows
        progress(done, max(done, total), "rows read")
    return {id_: builder.sketch() for id_, builder in merged.items()}


def _values(batch: pa.RecordBatch, path: tuple[str, ...]) -> pa.Array:
    """The values of a column, or of a field of a struct, without nulls."""
    column = batch.column(path[0])
    return (column if len(path) == 1 else pc.struct_field(column, list(path[1:]))).drop_null()


def value_hashes(values: pa.Array, type_: Type) -> Hashes:
    """The hashes of values in sketches; ``values`` has no nulls."""
    stored = encode_bounds(values, type_)
    if type_ in _MAY_BE_EMPTY:
        stored = stored.filter(pc.greater(pc.binary_length(stored), 0))
    return hash_halves(stored, SEED) >> np.uint64(1)
