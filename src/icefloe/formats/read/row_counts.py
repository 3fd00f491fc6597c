"""How many rows data files have, from the files themselves.

An entry may not say it: old imports of Avro files stored -1. A null ``record_count`` means such an unknown number.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.formats.read.reader import open_file
from icefloe.io.file_io import FileIO
from icefloe.model.entries import put
from icefloe.model.schema.name_mapping import NameMapping

_READERS = 8
_NO_IDS = NameMapping()  # rows are counted whatever columns are called


def row_count(io: FileIO, location: str, file_format: str | None) -> int:
    """How many rows a file has; of Parquet and ORC only the footer is read, of Avro the sizes of its blocks."""
    with open_file(io, location, file_format, _NO_IDS, alone=False) as file:
        return sum(piece.rows for piece in file.pieces)


def with_row_counts(io: FileIO, files: pa.Table) -> pa.Table:
    """Entries or tasks with the row count of every file; files without one in their entry are opened."""
    if files["record_count"].null_count == 0:
        return files
    places = np.flatnonzero(np.asarray(pc.is_null(files["record_count"])))
    unknown = files.select(["location", "file_format"]).take(pa.array(places))
    with ThreadPoolExecutor(_READERS, thread_name_prefix="icefloe-count") as pool:
        row_counts = pool.map(
            lambda location, kind: row_count(io, location, kind), *(column.to_pylist() for column in unknown.columns)
        )
        counts = np.asarray(pc.fill_null(files["record_count"], 0)).copy()
        counts[places] = list(row_counts)
    return put(files, "record_count", pa.array(counts, pa.int64()))
