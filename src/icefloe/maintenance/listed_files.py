"""The files that storage lists in a table's folder, as columns, and which of them may be orphans."""

from __future__ import annotations

from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.stage import METADATA_FOLDER
from icefloe.io.file_io import FileIO
from icefloe.maintenance.deletions import journal_folder
from icefloe.maintenance.reachable import Kind

SCHEMA = pa.schema(
    [
        pa.field("location", pa.string()),
        pa.field("kind", pa.string()),  # a guess by the name
        pa.field("bytes", pa.int64()),
        pa.field("modified_ms", pa.int64()),
    ]
)
OTHER = "other"
METADATA_NAME = r"\.metadata\.json(\.gz)?$"
_BATCH = 10_000  # listed files that are held as objects
# Files of other programs: a segment that begins with a dot or an underscore and is not a partition such as _day=1.
_HIDDEN = r"/[._][^/=]*(/|$)"
_TEMPORARY = r"/\.[^/]*\.[0-9a-f]{32}\.tmp$"  # of this library, from a writer that died
_HINT = r"/version-hint\.text$"


def list_files(io: FileIO, folder: str) -> pa.Table:
    """All files in a folder as columns."""
    parts, files = [SCHEMA.empty_table()], io.list(folder)
    while len(infos := list(islice(files, _BATCH))) > 0:
        locations = pa.array([info.location for info in infos], pa.string())
        sizes = pa.array([info.size for info in infos], pa.int64())
        times = pa.array([info.modified_ms for info in infos], pa.int64())
        parts.append(pa.table([locations, _kinds(locations), sizes, times], schema=SCHEMA))
    return pa.concat_tables(parts)


def _kinds(locations: pa.Array) -> pa.Array:
    """A guess of the kind of each file by its name."""
    in_metadata = pc.match_substring(locations, f"/{METADATA_FOLDER}/")
    rules = (
        (pc.match_substring_regex(locations, METADATA_NAME), Kind.METADATA.value),
        (pc.match_substring_regex(locations, _TEMPORARY), "temporary"),
        (pc.and_(in_metadata, pc.match_substring_regex(locations, r"\.(avro|parquet)$")), Kind.MANIFEST.value),
        (pc.and_(in_metadata, pc.match_substring_regex(locations, r"\.(puffin|stats)$")), Kind.STATISTICS.value),
        (pc.match_substring_regex(locations, r"(\.puffin|-deletes\.[a-z]+)$"), Kind.DELETES.value),
        (pc.match_substring_regex(locations, r"\.(parquet|orc|avro)$"), Kind.DATA.value),
    )
    conditions = pc.make_struct(*(rule for rule, _ in rules), field_names=[str(n) for n in range(len(rules))])
    return pc.case_when(conditions, *(pa.scalar(kind) for _, kind in rules), pa.scalar(OTHER))


def may_be_orphan(locations: pa.Array, table_location: str, folder: str) -> pa.Array:
    """Which files may be orphans: not the journals, the version hint, and hidden files of other programs."""
    inner = pc.binary_replace_slice(locations, 0, len(folder.encode()), "")
    hidden = pc.and_(pc.match_substring_regex(inner, _HIDDEN), pc.invert(pc.match_substring_regex(inner, _TEMPORARY)))
    journals = pc.starts_with(locations, f"{journal_folder(table_location)}/")
    hints = pc.match_substring_regex(locations, _HINT)
    return pc.invert(pc.or_(pc.or_(hidden, journals), hints))
