"""Which deletes apply to which data files (spec: Scan Planning; V4 proposal).

A deletion vector names its data file, so matching is one lookup by location for all files at once. Kinds of deletes
that are not applied yet are refused by name: a scan that ignored them would return deleted rows.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import FormatError, UnsupportedError
from icefloe.model.entries import ContentType, of_type

ATTACHED = {
    "dv_location": "location",
    "dv_offset": "dv_offset",
    "dv_size_in_bytes": "dv_size_in_bytes",
    "dv_cardinality": "record_count",
    "dv_manifest": "manifest",
    "dv_ordinal": "ordinal",
}


def attach_vectors(data: pa.Table, deletes: pa.Table) -> pa.Table:
    """The data rows with the deletion vector of each, in columns ``dv_*``; null where a file has none.

    Both tables are entry tables with a column ``manifest``; ``deletes`` holds live delete rows of the snapshot.
    """
    check_supported(deletes)
    data = data.drop_columns([name for name in ATTACHED if name in data.column_names])
    targets = deletes["referenced_file"].combine_chunks()
    if len(pc.unique(targets)) < len(targets):
        twice = pc.value_counts(targets).filter(pc.greater(pc.value_counts(targets).field("counts"), 1))[0]
        raise FormatError(f"data file {twice['values'].as_py()} has two live deletion vectors")
    found = pc.index_in(data["location"], value_set=targets)
    for name, source in ATTACHED.items():
        data = data.append_column(name, deletes[source].take(found))
    seen = pc.take(deletes["sequence_number"], found)
    late = pc.index(pc.fill_null(pc.greater(data["sequence_number"], seen), False), True).as_py()
    if late >= 0:
        location = data["location"][late].as_py()
        raise FormatError(f"data file {location} is newer than its deletion vector", location=location)
    return data


def check_supported(deletes: pa.Table) -> None:
    """Refuse delete files of kinds that are not applied yet."""
    equality = deletes.filter(of_type(deletes, ContentType.EQUALITY_DELETES))
    if equality.num_rows > 0:
        raise UnsupportedError(
            f"equality delete file {equality['location'][0].as_py()}: equality deletes are not applied yet;"
            " compact the table with the program that wrote them",
            location=equality["location"][0].as_py(),
        )
    files = deletes.filter(pc.is_null(deletes["dv_offset"]))
    if files.num_rows > 0:
        raise UnsupportedError(
            f"position delete file {files['location'][0].as_py()}: position delete files are not applied yet;"
            " compact the table with the program that wrote them",
            location=files["location"][0].as_py(),
        )
