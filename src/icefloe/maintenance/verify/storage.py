"""Checks of a table's files: that they exist, have the recorded size, and are named as the format version requires.

(spec: File System Operations; V4 proposal)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icefloe.codecs.json.table_metadata import inflated_metadata
from icefloe.codecs.manifest.field_ids import LOCATION, REFERENCED_FILE
from icefloe.codecs.manifest.manifests import PARQUET_MAGIC
from icefloe.codecs.puffin.deletion_vector import decode_dv
from icefloe.codecs.puffin.puffin_file import DELETION_VECTOR, PuffinFooter, decode_puffin_footer
from icefloe.deletes.position_files import read_positions
from icefloe.engines.file_sets import may_be_orphan
from icefloe.errors import IcefloeError, NotFound
from icefloe.formats.parquet.pages import Checksums
from icefloe.io.file_io import FileIO
from icefloe.limits import DEFAULT, Limits
from icefloe.maintenance.verify.findings import Finding, Rule, Severity, broken, finding, problem_of
from icefloe.model.arrow.conform import FIELD_ID
from icefloe.model.columns import one_array
from icefloe.model.entries import ContentType, of_type
from icefloe.model.location_columns import inner_paths, is_among, relativized
from icefloe.model.locations import is_absolute
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.metadata.version_rules import rules

_SHOWN_FILES = 3


class NamedKind(StrEnum):
    """What a file is that metadata names."""

    METADATA = "metadata file"
    LOGGED = "former metadata file"
    STATISTICS = "statistics file"
    MANIFEST = "manifest"
    DATA = "data file"
    DELETES = "delete file"


_KINDS = {  # by content type
    ContentType.DATA: NamedKind.DATA,
    ContentType.POSITION_DELETES: NamedKind.DELETES,
    ContentType.EQUALITY_DELETES: NamedKind.DELETES,
    ContentType.DATA_MANIFEST: NamedKind.MANIFEST,
    ContentType.DELETE_MANIFEST: NamedKind.MANIFEST,
    ContentType.MANIFEST_DV: NamedKind.MANIFEST,
}
_KIND_NAMES = pa.array([_KINDS[kind].value for kind in sorted(ContentType)], pa.string())
_NOT_NEEDED = (NamedKind.LOGGED, NamedKind.STATISTICS)  # by readers of rows

NAMED = pa.schema(
    [
        pa.field("location", pa.string()),
        pa.field("size", pa.int64()),  # null if not recorded
        pa.field("by", pa.string()),  # the file that names it, and the row there
        pa.field("row", pa.int64()),
        pa.field("kind", pa.string()),
    ]
)


def named(rows: pa.Table, by: str | pa.ChunkedArray) -> pa.Table:
    """The files that entry rows name; the location of an inline vector is not its file."""
    rows = rows.append_column("by", pa.repeat(by, rows.num_rows) if isinstance(by, str) else by)
    rows = rows.filter(pc.and_(pc.is_valid(rows["location"]), pc.is_null(rows["dv_inline_content"])))
    rows = rows.append_column("kind", _KIND_NAMES.take(rows["content_type"].combine_chunks()))
    columns = ["location", "file_size_in_bytes", "by", "ordinal", "kind"]
    return rows.select(columns).rename_columns(NAMED.names).cast(NAMED)


def named_by(by: str, locations: Iterable[str], kind: NamedKind, sizes: Iterable[int] | None = None) -> pa.Table:
    """The files that a file names, with their sizes if it states them."""
    files = pa.array(list(locations), pa.string())
    count = len(files)
    unknown = pa.nulls(count, pa.int64())
    stated = unknown if sizes is None else pa.array(list(sizes), pa.int64())
    return pa.table([files, stated, pa.repeat(by, count), unknown, pa.repeat(kind.value, count)], schema=NAMED)


def check_named(io: FileIO, listing: pa.Table, files: pa.Table) -> Iterator[Finding]:
    """Report files that are missing or have another size than recorded; ``listing`` has the files of the folder."""
    measures = [("by", "first"), ("row", "first"), ("kind", "first")]
    first = files.group_by(["location", "size"], use_threads=False).aggregate(measures)
    place = pc.index_in(first["location"], value_set=listing["location"].combine_chunks())
    first = first.append_column("listed_size", listing["size"].take(place.combine_chunks()))
    wrong = pc.or_kleene(pc.is_null(first["listed_size"]), pc.not_equal(first["listed_size"], first["size"]))
    for row in first.filter(pc.fill_null(wrong, False)).to_pylist():
        size: int | str = row["listed_size"] if row["listed_size"] is not None else _size_of(io, row["location"])
        if isinstance(size, str):
            message = f"{row['location']} {size}"
        elif row["size"] is not None and size != row["size"]:
            message = f"{row['location']} has {size} bytes, not {row['size']}"
        else:
            continue
        yield _missing(row, message)


def _missing(row: Mapping[str, Any], message: str) -> Finding:
    kind, remedy = NamedKind(row["kind_first"]), None
    if kind is NamedKind.DATA:
        remedy = f"restore the file; if its rows are lost for good, t.remove_files([{row['location']!r}])"
    if kind is NamedKind.LOGGED:
        remedy = "no reader needs it; it leaves the log with later commits, for example t.expire()"
    if kind is NamedKind.STATISTICS:
        remedy = (
            "no reader of rows needs it; t.analyze(snapshot=...) or t.analyze_partitions(snapshot=...) writes it again,"
            " t.expire() removes it with its snapshot"
        )
    severity = Severity.WARNING if kind in _NOT_NEEDED else Severity.ERROR
    return finding(
        rule=Rule.FILES,
        location=row["by_first"],
        row=row["row_first"],
        message=message,
        severity=severity,
        remedy=remedy,
    )


def _size_of(io: FileIO, location: str) -> int | str:
    """The size of a file that may be outside of the table, or why it is unknown."""
    try:
        return io.size(location)
    except NotFound:
        return "is missing"
    except IcefloeError as error:
        return f"cannot be looked up: {problem_of(error)}"


def check_unreferenced(listing: pa.Table, files: pa.Table, table_location: str) -> Iterator[Finding]:
    """Report the files in the table's folder that are not among those that metadata names."""
    folder = table_location.rstrip("/")
    other = pc.invert(may_be_orphan(one_array(listing["location"]), folder, folder))
    known = pc.or_(is_among(listing["location"], files["location"], table_location), other)
    others = listing.filter(pc.invert(known))
    if others.num_rows == 0:
        return
    names = ", ".join(others["location"].slice(0, _SHOWN_FILES).to_pylist())
    message = f"{others.num_rows} files of {pc.sum(others['size']).as_py()} bytes are in no snapshot, such as {names}"
    yield finding(rule=Rule.UNREFERENCED, location=table_location, message=message)


class _Uuid(msgspec.Struct, rename="kebab"):
    """The part of a metadata file that says which table it is of."""

    table_uuid: str | None = None


def check_log(
    io: FileIO, metadata: TableMetadata, where: str, logged: Iterable[str], limits: Limits
) -> Iterator[Finding]:
    """Check that former metadata files are of the same table; whether they exist is checked with all other files."""
    for location in logged:
        try:
            data = io.read(location, limits.metadata_bytes)
            uuid = msgspec.json.decode(inflated_metadata(data, limits), type=_Uuid).table_uuid
        except NotFound:
            continue
        except (IcefloeError, msgspec.MsgspecError) as error:
            message = f"a former metadata file cannot be read: {problem_of(error)}"
            yield finding(rule=Rule.READABLE, location=location, message=message, severity=Severity.WARNING)
            continue
        if uuid is not None and metadata.table_uuid not in ("", uuid):
            message = f"{location} is of the table {uuid}, this one is {metadata.table_uuid}"
            yield finding(rule=Rule.TABLE_UUID, location=where, message=message)


class Vectors:
    """Checks deletion vectors of data files and of manifests; each is read once, even if several snapshots have it."""

    def __init__(self, io: FileIO, table_location: str) -> None:
        self._io = io
        self._table = table_location
        self._seen: set[tuple[str, int, str]] = set()
        self._footers: dict[str, PuffinFooter | None] = {}

    def check(self, rows: pa.Table, where: str, sizes: Mapping[str, int]) -> Iterator[Finding]:
        """The vectors in Puffin files among entry rows; ``sizes`` are the numbers of rows of what they belong to."""
        kinds = of_type(rows, ContentType.POSITION_DELETES, ContentType.MANIFEST_DV)
        rows = rows.filter(pc.and_(kinds, pc.is_valid(rows["dv_offset"])))
        names = ["location", "dv_offset", "dv_size_in_bytes", "referenced_file", "record_count", "ordinal"]
        for row in rows.select(names).to_pylist():
            key = (row["location"], row["dv_offset"], row["referenced_file"])
            if key not in self._seen:
                self._seen.add(key)
                for message in self._problems(row, sizes.get(row["referenced_file"])):
                    yield finding(rule=Rule.DELETION_VECTORS, location=where, row=row["ordinal"], message=message)

    def _problems(self, row: Mapping[str, Any], size: int | None) -> Iterator[str]:
        where = row["location"]
        try:
            blob = self._io.read_range(where, row["dv_offset"], row["dv_size_in_bytes"])
            positions = decode_dv(blob, where=where, cardinality=row["record_count"])
            footer = self._footer(where)
        except IcefloeError as error:
            yield problem_of(error)
            return
        if size is not None and len(positions) > 0 and positions.max() >= size:
            yield f"{where}: position {positions.max()} is past the {size} rows of {row['referenced_file']}"
        if footer is None:
            return
        mine = [blob for blob in footer.blobs if blob.location.offset == row["dv_offset"]]
        if len(mine) != 1 or mine[0].location.length != row["dv_size_in_bytes"]:
            yield f"{where}: no blob of {row['dv_size_in_bytes']} bytes at {row['dv_offset']}"
            return
        if mine[0].type != DELETION_VECTOR:
            yield f"{where}: the blob at {row['dv_offset']} is of type {mine[0].type}, not {DELETION_VECTOR}"
        named_file = mine[0].properties.get("referenced-data-file", "")
        if not self._names(named_file, row["referenced_file"]):
            yield f"{where}: the blob at {row['dv_offset']} is for {named_file}, its entry for {row['referenced_file']}"
        if mine[0].properties.get("cardinality") != str(row["record_count"]):
            yield f"{where}: the blob at {row['dv_offset']} has another cardinality than {row['record_count']}"

    def _names(self, named_file: str, file: str) -> bool:
        """Whether a footer names a file. If the table was moved, the footer has the old location of the file."""
        files = pa.array([file])
        inner = inner_paths(files, self._table)[0].as_py()
        moved = inner is not None and is_absolute(named_file) and named_file.endswith(f"/{inner}")
        return moved or is_among(pa.array([named_file]), files, self._table)[0].as_py() is True

    def _footer(self, location: str) -> PuffinFooter | None:
        """The footer of a Puffin file, once: a file whose footer is broken raises the first time only."""
        if location not in self._footers:
            self._footers[location] = None
            self._footers[location] = decode_puffin_footer(
                self._io.read(location, DEFAULT.manifest_bytes), where=location
            )
        return self._footers[location]


class PositionFiles:
    """Checks position delete files; each is read once, even if several snapshots have it."""

    def __init__(self, io: FileIO, table_location: str) -> None:
        self._io = io
        self._table = table_location
        self._seen: set[str] = set()

    def check(self, rows: pa.Table, where: str, sizes: Mapping[str, int | None]) -> Iterator[Finding]:
        """The position delete files among entry rows; ``sizes`` are the numbers of rows of the data files."""
        kind = of_type(rows, ContentType.POSITION_DELETES)
        rows = rows.filter(pc.and_(kind, pc.is_null(rows["dv_offset"])))
        for row in rows.select(["location", "file_format", "ordinal"]).to_pylist():
            if row["location"] not in self._seen:
                self._seen.add(row["location"])
                for message in self._problems(row, sizes):
                    yield finding(rule=Rule.POSITION_DELETES, location=where, row=row["ordinal"], message=message)

    def _problems(self, row: Mapping[str, Any], sizes: Mapping[str, int | None]) -> Iterator[str]:
        where = row["location"]
        try:
            kind = row["file_format"]
            positions_by_file = read_positions(self._io, where, kind, sizes, self._table, Checksums())
        except IcefloeError as error:
            yield problem_of(error)
            return
        for file, positions in positions_by_file.items():
            size = sizes[file]
            if size is not None and positions.max() >= size:
                yield f"{where}: position {positions.max()} is past the {size} rows of {file}"


def check_stored_locations(data: bytes, where: str, table_location: str) -> Iterator[Finding]:
    """Check that a V4 manifest stores locations under the table relative to it."""
    if not data.startswith(PARQUET_MAGIC):
        return
    file = pq.ParquetFile(pa.BufferReader(data))
    ids = {(field.metadata or {}).get(FIELD_ID): field.name for field in file.schema_arrow}
    names = [ids[str(id_).encode()] for id_ in (LOCATION, REFERENCED_FILE) if str(id_).encode() in ids]
    stored = file.read(columns=names)
    for name in names:
        locations = one_array(stored[name])
        absolute = pc.not_equal(locations, relativized(locations, table_location))
        message = f"{name} lies under the table, so it must be relative to it"
        yield from broken(Rule.LOCATIONS, where, absolute, message)


def check_stored_roots(data: bytes, where: str, table_location: str, limits: Limits) -> Iterator[Finding]:
    """Locations of roots in the bytes of a metadata file: relative under a table of V4, absolute before."""
    document = msgspec.json.decode(inflated_metadata(data, limits))
    relative = rules(document["format-version"]).relative_locations
    for snapshot in document.get("snapshots") or ():
        root, former = snapshot.get("root-manifest"), snapshot.get("manifest-list")
        name = f"snapshot {snapshot.get('snapshot-id')}"
        if root is not None and root.startswith(f"{table_location}/"):
            message = f"{name}: root-manifest lies under the table, so it must be relative to it"
            yield finding(rule=Rule.LOCATIONS, location=where, message=message)
        if former is not None and not relative and not is_absolute(former):
            yield finding(rule=Rule.LOCATIONS, location=where, message=f"{name}: manifest-list is not absolute")
