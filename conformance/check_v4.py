"""Checks a table of format version 4 (proposal: "Iceberg Single File Commits") and lists what its snapshots contain.

    python check_v4.py <table folder or metadata.json>              findings; exit code 1 if there are any
    python check_v4.py --expected <table folder or metadata.json>   the content of every snapshot, as JSON
    python check_v4.py --rows <table folder or metadata.json>       findings, those that need the rows of files too
    python check_v4.py --rules                                      the rules

The program is one file. It needs Python 3.11, pyarrow and pyroaring, and shares no code with any implementation. It is
written from the text of the proposal, and from the specification of version 3 where the proposal refers to it: row
lineage, deletion vectors, matching of deletes. A finding names a rule of ``RULES``. Rules of level ``read`` must be
enforced by every reader. Rules of level ``check`` are obligations of writers that a reader need not notice.
"""

from __future__ import annotations

import argparse
import datetime
import gzip
import json
import math
import operator
import re
import struct
import sys
import uuid
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap, BitMap64

DATA, DV, EQUALITY, DATA_MANIFEST, DELETE_MANIFEST, MANIFEST_DV = range(6)
EXISTING, ADDED, DELETED = range(3)
KINDS = ("data", "deletion-vector", "equality-deletes", "data-manifest", "delete-manifest", "manifest-vector")
READ, CHECK = "read", "check"
RULES: dict[str, tuple[str, str]] = {
    "format-version": (READ, "The metadata file is JSON of format version 4."),
    "snapshot-references": (READ, "Snapshot ids are unique; the current snapshot and every ref name one of them."),
    "metadata-ids": (READ, "The current schema, default partition spec and default sort order are in the metadata."),
    "schema-of-snapshot": (CHECK, "schema-id of a snapshot names a schema of the table."),
    "summary": (
        CHECK,
        "operation and the counts in the summary of a snapshot are those of its tree; absent is unknown.",
    ),
    "one-root": (READ, "Every snapshot has exactly one root manifest."),
    "no-manifest-list": (CHECK, "Manifest lists are no longer used or written."),
    "expressions": (READ, "Columns and expressions share one id space, in which every id is unique."),
    "expression-links": (CHECK, "Each transform of a partition spec, except identity, links to its expression."),
    "last-column-id": (CHECK, "last-column-id is not below the id of a column or of an expression."),
    "manifest-file": (READ, "A manifest is a Parquet file that can be read."),
    "manifest-keys": (READ, "A manifest has the keys format-version and content, which is data, delete or root."),
    "removed-keys": (CHECK, "The serialized schema and partition spec are removed from the keys of a manifest."),
    "field-ids": (READ, "Columns of a manifest have the ids and types of the content entry structure."),
    "statistics-type": (READ, "Bounds have the type of their column or expression, and counts are of type long."),
    "content-type": (READ, "A root has entries of types 0 to 5, a data leaf of type 0, a delete leaf of 1 and 2."),
    "status": (READ, "version_info is set, and its status is 0 (EXISTING), 1 (ADDED) or 2 (DELETED)."),
    "sequence-inherited": (READ, "A sequence number may be null only if the status is ADDED."),
    "sequence-of-manifest": (READ, "sequence_number equals file_sequence_number for manifests."),
    "location": (READ, "location is required, except for an inline vector, and a relative one stays in the table."),
    "file-size": (READ, "file_size_in_bytes must be defined if location is defined."),
    "file-format": (READ, "file_format is avro, orc or parquet; puffin for vectors; avro or parquet for manifests."),
    "record-count": (READ, "record_count is required and not negative."),
    "partition-spec": (READ, "partition_spec_id is required and names a partition spec of the table."),
    "partition-values": (
        READ,
        "A file has the value of each partition field in its statistics; counts confirm a null.",
    ),
    "partition-bounds": (CHECK, "The value of an identity partition is both bounds; an expression has no other upper."),
    "vector-struct": (READ, "deletion_vector must be defined for types 1 and 5, and null for all others."),
    "vector-place": (READ, "A vector has offset and size_in_bytes; one of a manifest may be inline instead."),
    "inline-data-vector": (READ, "Deletion vectors of data files are in Puffin files, never inline."),
    "referenced-file": (READ, "A vector names its file in referenced_file, which is null for types 0, 2 and 3."),
    "manifest-stats": (READ, "manifest_stats must be set for types 3 and 4, and null for all others."),
    "equality-ids": (READ, "equality_ids are required for equality deletes, and null for all others."),
    "equality-columns": (READ, "equality_ids are ids of columns of the table."),
    "sort-order": (READ, "sort_order_id can only be set for data files."),
    "known-sort-order": (CHECK, "sort_order_id names a sort order of the table."),
    "split-offsets": (READ, "split_offsets must be sorted ascending."),
    "first-row-id": (READ, "first_row_id is for data files and data manifests only."),
    "unique-location": (READ, "A live file or manifest is listed once."),
    "one-manifest-vector": (READ, "There is at most one live manifest deletion vector for a leaf."),
    "one-data-vector": (READ, "There is at most one live deletion vector for a data file."),
    "vector-target": (READ, "A manifest deletion vector applies to a manifest of the same root."),
    "affinity": (READ, "A delete manifest is affiliated to one data manifest of the same root, or to none."),
    "affinity-scope": (CHECK, "Vectors in an affiliated delete manifest belong to files of its data manifest."),
    "vector-bytes": (READ, "A vector is a deletion-vector-v1 blob: length, magic, bitmaps, CRC-32."),
    "vector-cardinality": (READ, "record_count of a vector is its cardinality."),
    "vector-position": (READ, "Positions of a manifest deletion vector are ordinals of rows of its leaf."),
    "vector-of-dead-row": (CHECK, "A manifest deletion vector removes entries that were live."),
    "vector-age": (CHECK, "A deletion vector of a data file is not older than the file."),
    "vector-partition": (CHECK, "A deletion vector has the partition spec and the partition values of its data file."),
    "puffin-blob": (CHECK, "offset and size_in_bytes are those of a blob in the footer of the Puffin file."),
    "puffin-properties": (CHECK, "The footer says of a vector: its type, its file, its cardinality, no compression."),
    "leaf-rows": (READ, "record_count of a manifest is the number of its rows."),
    "leaf-counts": (CHECK, "manifest_stats counts the entries of the manifest by status, and their rows."),
    "leaf-statistics": (CHECK, "A manifest entry has the aggregated statistics of its content, never narrower."),
    "leaf-spec": (CHECK, "Entries of a leaf have the partition spec of the leaf."),
    "deleted-without-parent": (CHECK, "DELETED entries are for snapshots with a parent."),
    "deleted-entry": (CHECK, "A DELETED entry was live in the parent, has this snapshot's id, and lives once."),
    "carried-status": (CHECK, "Entries that were in the parent are EXISTING; what the snapshot changed is not."),
    "carried-values": (CHECK, "Entries that were in the parent keep snapshot, sequence numbers, row ids and counts."),
    "added-entry": (CHECK, "An ADDED entry has the id and the file sequence number of this snapshot."),
    "compaction": (CHECK, "New entries are not combined with existing ones into one manifest."),
    "leaf-deleted": (CHECK, "A leaf is not deleted as a whole; its entries are removed by a vector."),
    "vector-grows": (CHECK, "A new vector of a leaf contains the positions of the old one."),
    "changes": (CHECK, "The changes that the root records are the changes from the parent."),
    "orphan-vector": (CHECK, "A data file is removed together with its deletion vector."),
    "sequence-order": (CHECK, "Sequence numbers grow from parent to child, up to last-sequence-number."),
    "row-ids": (CHECK, "Every live data file has a first row id, and no two files share row ids."),
    "row-id-range": (CHECK, "New row ids are from first-row-id on, added-rows of them, all below next-row-id."),
    "files": (CHECK, "Every file exists, has the stated size and can be read; with --rows also its pages."),
    "rows": (CHECK, "A data file has record_count rows."),
    "bounds": (CHECK, "With --rows: bounds and counts of a data file are those of its rows."),
    "partition-of-rows": (
        CHECK,
        "With --rows: partition values are the transforms of all rows of the file, never cut.",
    ),
}


class Broken(Exception):
    """Ends the check of a snapshot; the finding is in the report."""


@dataclass(frozen=True)
class Finding:
    """A rule that a file breaks."""

    rule: str
    file: str
    message: str
    row: int | None = None

    def __str__(self) -> str:
        row = "" if self.row is None else f" row {self.row}:"
        return f"{self.rule} ({RULES[self.rule][0]}): {self.file}:{row} {self.message}"


@dataclass
class Report:
    """Findings in order, each once."""

    findings: dict[Finding, None] = field(default_factory=dict)

    def add(self, rule: str, file: str, message: str, row: int | None = None) -> None:
        self.findings.setdefault(Finding(rule, file, f"{message} [{RULES[rule][1]}]", row))

    def stop(self, rule: str, file: str, message: str, row: int | None = None) -> Broken:
        self.add(rule, file, message, row)
        return Broken(message)


# -- files


class Files:
    """The files of a table by place: relative to the table if they are inside it, absolute otherwise."""

    def __init__(self, folder: Path, location: str | None, read: Callable[[str], bytes] | None = None) -> None:
        self.folder, self._read = folder, read
        self.bases = [_plain(base) for base in (location, str(folder)) if base is not None]

    def place(self, stored: str) -> str:
        """A stored location as a place; ValueError if it is relative and leaves the table."""
        plain = _plain(stored)
        for base in self.bases:
            if plain.startswith(base + "/"):
                return plain[len(base) + 1 :]
        if not plain.startswith("/") and "://" not in plain and any(s in ("", ".", "..") for s in stored.split("/")):
            raise ValueError(f"{stored!r} is not a plain relative location")
        return plain

    def read(self, place: str) -> bytes:
        if self._read is not None:
            return self._read(place)
        return self._path(place).read_bytes()

    def size(self, place: str) -> int:
        return len(self._read(place)) if self._read is not None else self._path(place).stat().st_size

    def is_reachable(self, place: str) -> bool:
        return self._read is not None or "://" not in place

    def _path(self, place: str) -> Path:
        return self.folder / place  # an absolute place replaces the folder


def _plain(location: str) -> str:
    """A location without the spellings of local files: ``file:/a``, ``file:///a`` and ``/a`` are the same."""
    if re.match(r"file:/", location):
        location = "/" + location[5:].lstrip("/")
    return location.rstrip("/")


# -- Avro, for the manifest lists and manifests of versions 1 to 3


class Avro:
    """Decodes the records of an Avro file; a record becomes a dict by field id."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.named = data, 0, {}  # type: ignore[var-annotated]

    def records(self) -> tuple[dict[str, bytes], list[dict[int, Any]]]:
        if self._take(4) != b"Obj\x01":
            raise ValueError("not an Avro file")
        keys = self._value({"type": "map", "values": "bytes"})
        schema, codec, sync = json.loads(keys["avro.schema"]), keys.get("avro.codec", b"null"), self._take(16)
        records: list[dict[int, Any]] = []
        while self.at < len(self.data):
            count, block = self._long(), self._take(self._long())
            inner = Avro(block if codec == b"null" else zlib.decompress(block, wbits=-15))
            inner.named = self.named
            records += [inner._value(schema) for _ in range(count)]
            if self._take(16) != sync:
                raise ValueError("a block of the Avro file does not end with the sync marker")
        return keys, records

    def _take(self, count: int) -> bytes:
        taken = self.data[self.at : self.at + count]
        if len(taken) < count:
            raise ValueError("the Avro file is cut short")
        self.at += count
        return taken

    def _long(self) -> int:
        value = shift = 0
        while True:
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)

    def _items(self, read: Callable[[], Any]) -> Iterator[Any]:
        while (count := self._long()) != 0:
            if count < 0:
                self._long()
            for _ in range(abs(count)):
                yield read()

    def _value(self, schema: Any) -> Any:
        if isinstance(schema, list):
            return self._value(schema[self._long()])
        kind = schema if isinstance(schema, str) else schema["type"]
        if isinstance(kind, (dict, list)):
            return self._value(kind)
        if kind in self.named:
            return self._value(self.named[kind])
        if kind in ("record", "fixed", "enum"):
            self.named[schema["name"]] = schema
        if kind == "record":
            return {f.get("field-id", f["name"]): self._value(f["type"]) for f in schema["fields"]}
        if kind == "array":
            return list(self._items(lambda: self._value(schema["items"])))
        if kind == "map":
            return dict(self._items(lambda: (self._take(self._long()).decode(), self._value(schema["values"]))))
        return self._simple(kind, schema)

    def _simple(self, kind: str, schema: Any) -> Any:
        logical = schema.get("logicalType") if isinstance(schema, dict) else None
        if kind in ("int", "long", "enum"):
            value = self._long()
            return Temporal(logical, value) if logical in _AVRO_TIMES else value
        if kind in ("bytes", "string", "fixed"):
            raw = self._take(schema["size"] if kind == "fixed" else self._long())
            if logical == "decimal":
                return Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-schema.get("scale", 0))
            return raw.decode() if kind == "string" else str(uuid.UUID(bytes=raw)) if logical == "uuid" else raw
        if kind in ("float", "double"):
            return struct.unpack("<f" if kind == "float" else "<d", self._take(4 if kind == "float" else 8))[0]
        return self._take(1) == b"\x01" if kind == "boolean" else None


@dataclass(frozen=True, order=True)
class Temporal:
    """A date or time as its number, since years may be beyond those of Python."""

    unit: str
    number: int

    def __str__(self) -> str:
        try:
            if self.unit in ("date", "date32[day]"):
                return (datetime.date(1970, 1, 1) + datetime.timedelta(days=self.number)).isoformat()
            if "timestamp" in self.unit and "us" in self.unit.replace("micros", "us"):
                zone = "+00:00" if "tz" in self.unit else ""
                start = datetime.datetime(1970, 1, 1)
                return (start + datetime.timedelta(microseconds=self.number)).isoformat() + zone
        except OverflowError:
            pass
        return str(self.number)


_AVRO_TIMES = ("date", "time-micros", "timestamp-micros")


# -- deletion vectors


def vector_positions(blob: bytes) -> BitMap64:
    """The positions of a deletion-vector-v1 blob; ValueError if its bytes are damaged."""
    if len(blob) < 20 or struct.unpack(">I", blob[:4])[0] != len(blob) - 8:
        raise ValueError("the length of the vector is wrong")
    if blob[4:8] != b"\xd1\xd3\x39\x64":
        raise ValueError(f"the vector cannot begin with {blob[4:8].hex()}")
    if struct.unpack(">I", blob[-4:])[0] != zlib.crc32(blob[4:-4]):
        raise ValueError("the checksum of the vector is wrong")
    body, at, last = blob[8:-4], 8, -1
    positions = BitMap64()
    for _ in range(struct.unpack("<Q", body[:8])[0]):
        (key,) = struct.unpack("<I", body[at : at + 4])
        length = _bitmap_length(body, at + 4)
        if key <= last or at + 4 + length > len(body):
            raise ValueError("the bitmaps of the vector are damaged")
        inner = BitMap.deserialize(body[at + 4 : at + 4 + length])
        positions |= BitMap64([key << 32 | position for position in inner])
        at, last = at + 4 + length, key
    if at != len(body):
        raise ValueError("the vector has bytes behind its bitmaps")
    return positions


def _bitmap_length(data: bytes, start: int) -> int:
    """The length of a 32-bit Roaring bitmap in the portable format."""
    (cookie,) = struct.unpack_from("<I", data, start)
    at, runs = start + 4, b""
    if cookie & 0xFFFF == 12347:
        count = (cookie >> 16) + 1
        runs = data[at : at + (count + 7) // 8]
        at += len(runs)
    elif cookie == 12346:
        (count,) = struct.unpack_from("<I", data, at)
        at += 4
    else:
        raise ValueError("not a Roaring bitmap")
    sizes = [struct.unpack_from("<H", data, at + 4 * n + 2)[0] + 1 for n in range(count)]
    at += 4 * count + (4 * count if cookie == 12346 or count >= 4 else 0)
    for number, size in enumerate(sizes):
        if number // 8 < len(runs) and runs[number // 8] >> number % 8 & 1:
            at += 2 + 4 * struct.unpack_from("<H", data, at)[0]
        else:
            at += 2 * size if size <= 4096 else 8192
    return int(at - start)


def puffin_blobs(data: bytes) -> list[dict[str, Any]]:
    """The blobs that the footer of a Puffin file lists."""
    if data[:4] != b"PFA1" or data[-4:] != b"PFA1":
        raise ValueError("not a Puffin file")
    (size,) = struct.unpack("<I", data[-12:-8])
    blobs: list[dict[str, Any]] = json.loads(data[-12 - size : -12])["blobs"]
    return blobs


# -- manifests

_INT, _LONG, _STRING, _BINARY = "int", "long", "string", "binary"
_INFO = {0: ("status", _INT), 1: ("snapshot_id", _LONG), 3: ("sequence_number", _LONG)}
_INFO |= {4: ("file_sequence_number", _LONG)}
_VECTOR = {144: ("offset", _LONG), 145: ("size_in_bytes", _LONG), 146: ("inline_content", _BINARY)}
_COUNTS = {504: "added_files_count", 505: "existing_files_count", 506: "deleted_files_count"}
_COUNTS |= {512: "added_rows_count", 513: "existing_rows_count", 514: "deleted_rows_count", 516: "min_sequence_number"}
_STATS = {id_: (name, _INT if id_ < 512 else _LONG) for id_, name in _COUNTS.items()}
COLUMNS: dict[int, tuple[str, Any]] = {
    134: ("content_type", _INT),
    100: ("location", _STRING),
    101: ("file_format", _STRING),
    5: ("version_info", _INFO),
    147: ("deletion_vector", _VECTOR),
    148: ("partition_spec_id", _INT),
    140: ("sort_order_id", _INT),
    103: ("record_count", _LONG),
    104: ("file_size_in_bytes", _LONG),
    521: ("manifest_stats", _STATS),
    143: ("referenced_file", _STRING),
    131: ("key_metadata", _BINARY),
    132: ("split_offsets", [_LONG]),
    135: ("equality_ids", [_INT]),
    142: ("first_row_id", _LONG),
}
CONTENT_STATS, REQUIRED = 149, (134, 101, 5, 148, 103)
# Statistics of the column or expression n: a struct with id 10000 + 200 n, whose members have the ids that follow it.
MEASURES = {1: "lower", 2: "upper", 3: "tight", 4: "values", 5: "nulls", 6: "nans"}
Row = dict[str, Any]


def _id(column: pa.Field) -> int | None:
    text = (column.metadata or {}).get(b"PARQUET:field_id")
    return None if text is None else int(text)


def _has_type(type_: pa.DataType, expected: Any) -> bool:
    if isinstance(expected, list):
        return pa.types.is_list(type_) and _has_type(type_.value_type, expected[0])
    checks = {_INT: pa.types.is_int32, _LONG: pa.types.is_int64, _BINARY: pa.types.is_binary}
    return bool(checks.get(expected, pa.types.is_string)(type_))


def plain_values(array: pa.Array) -> list[Any]:
    """Values that can be compared: dates and times as numbers, UUIDs as bytes."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    type_ = array.type
    if not pa.types.is_temporal(type_):
        return list(array.to_pylist())
    numbers = array.cast(pa.int32() if type_.bit_width == 32 else pa.int64()).to_pylist()
    return [None if number is None else Temporal(str(type_), number) for number in numbers]


Types = Mapping[int, set[str]]  # of columns and expressions by id, with those that a column had before


def _is_stored_as(type_: pa.DataType, expected: str) -> bool:
    """Whether a bound of a column may have this type: that of the column, or one that may be promoted to it."""
    if isinstance(type_, pa.BaseExtensionType):
        type_ = type_.storage_type
    base, _, size = expected.replace(" ", "").rstrip("])").replace("(", "[").partition("[")
    if base in ("unknown", "variant"):
        return True
    if base in ("geometry", "geography"):
        return bool(pa.types.is_struct(type_) or pa.types.is_binary(type_))
    if base == "decimal":
        precision, scale = map(int, size.split(","))
        return bool(pa.types.is_decimal(type_) and type_.precision <= precision and type_.scale == scale)
    if base == "fixed":
        return bool(type_ == pa.binary(int(size)))
    if base == "timestamptz" or base == "timestamptz_ns":
        return pa.types.is_date(type_) or (pa.types.is_timestamp(type_) and type_.tz is not None)
    return type_ in _STORED_AS[base]


_STORED_AS: dict[str, tuple[pa.DataType, ...]] = {
    "boolean": (pa.bool_(),),
    "int": (pa.int32(),),
    "long": (pa.int64(), pa.int32()),
    "float": (pa.float32(),),
    "double": (pa.float64(), pa.float32()),
    "date": (pa.date32(),),
    "day": (pa.date32(), pa.int32()),  # of the transform: the specification has both
    "time": (pa.time64("us"),),
    "timestamp": (pa.timestamp("us"), pa.date32()),
    "timestamp_ns": (pa.timestamp("ns"), pa.timestamp("us"), pa.date32()),
    "string": (pa.string(), pa.large_string()),
    "uuid": (pa.binary(16),),
    "binary": (pa.binary(), pa.large_binary()),
}


class Manifest:
    """The rows of a V4 manifest as stored, by the names of the proposal."""

    def __init__(self, data: bytes, file: str, contents: tuple[str, ...], report: Report, types: Types) -> None:
        self.file, self.report, self.types = file, report, types
        try:
            parquet = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
            table = parquet.read(use_threads=False)
        except Exception as error:  # a damaged file may cause any error of the Parquet reader
            raise report.stop("manifest-file", file, f"cannot be read: {error}") from error
        keys = {k.decode(): v.decode(errors="replace") for k, v in (parquet.metadata.metadata or {}).items()}
        self.content = keys.get("content", "")
        if keys.get("format-version") != "4":
            raise report.stop("manifest-keys", file, f"format-version is {keys.get('format-version')!r}, expected '4'")
        if self.content not in contents:
            raise report.stop("manifest-keys", file, f"content is {self.content!r}, expected {' or '.join(contents)}")
        for key in ("schema", "partition-spec"):
            if key in keys:
                report.add("removed-keys", file, f"the key {key} is written")
        self.rows: list[Row] = [{"row": number, "stats": {}} for number in range(table.num_rows)]
        self._read(table)

    def _read(self, table: pa.Table) -> None:
        ids = [_id(column) for column in table.schema]
        if None in ids or len(set(ids)) < len(ids):
            raise self.report.stop("field-ids", self.file, "a column has no field id, or the id of another one")
        by_id = {id_: table.column(number).combine_chunks() for number, id_ in enumerate(ids)}
        missing = [COLUMNS[id_][0] for id_ in REQUIRED if id_ not in by_id]
        if missing:
            raise self.report.stop("field-ids", self.file, f"there is no {', '.join(missing)}")
        for id_, (name, type_) in COLUMNS.items():
            array = by_id.get(id_)
            if isinstance(type_, dict):
                self._read_group(name, array, type_)
            else:
                self._put(name, array, type_)
        if 102 in by_id:
            self.report.add("field-ids", self.file, "the partition tuple (102) is removed in version 4")
        if CONTENT_STATS in by_id:
            self._read_stats(by_id[CONTENT_STATS])

    def _read_group(self, name: str, array: pa.Array | None, members: Mapping[int, tuple[str, Any]]) -> None:
        if array is not None and not pa.types.is_struct(array.type):
            raise self.report.stop("field-ids", self.file, f"{name} is {array.type}, not a struct")
        for row, there in zip(self.rows, [False] * len(self.rows) if array is None else array.is_valid(), strict=True):
            row[name] = bool(there) if isinstance(there, bool) else there.as_py()
        children = {} if array is None else dict(zip(map(_id, array.type), array.flatten(), strict=True))
        for id_, (member, type_) in members.items():
            self._put(member, children.get(id_), type_)

    def _put(self, name: str, array: pa.Array | None, type_: Any) -> None:
        if array is not None and not _has_type(array.type, type_):
            raise self.report.stop("field-ids", self.file, f"{name} is {array.type}, expected {type_}")
        for row, value in zip(self.rows, [None] * len(self.rows) if array is None else array.to_pylist(), strict=True):
            row[name] = value

    def _read_stats(self, stats: pa.Array) -> None:
        for owner, struct_ in zip(stats.type, stats.flatten(), strict=True):
            base = _id(owner)
            if base is None or base < 10_000 or base % 200 != 0 or not pa.types.is_struct(struct_.type):
                continue
            for member, array in zip(struct_.type, struct_.flatten(), strict=True):
                measure = MEASURES.get((_id(member) or 0) - base)
                if measure is None:
                    continue
                self._check_type((base - 10_000) // 200, measure, array.type)
                if not pa.types.is_nested(array.type):
                    for row, value in zip(self.rows, plain_values(array), strict=True):
                        row["stats"].setdefault((base - 10_000) // 200, {})[measure] = value

    def _check_type(self, owner: int, measure: str, type_: pa.DataType) -> None:
        if measure in ("lower", "upper"):
            known = self.types.get(owner, set())
            is_right = len(known) == 0 or any(_is_stored_as(type_, expected) for expected in known)
            expected = " or ".join(sorted(known))
        else:
            expected = "boolean" if measure == "tight" else "long"
            is_right = type_ == (pa.bool_() if measure == "tight" else pa.int64())
        if not is_right:
            message = f"{measure} of id {owner} is {type_}, expected {expected}"
            raise self.report.stop("statistics-type", self.file, message)


# -- rules for one row

ALLOWED = {"root": range(6), "data": (DATA,), "delete": (DV, EQUALITY), "deletes": (DV, EQUALITY)}


def broken_row_rules(row: Row, content: str) -> Iterator[tuple[str, str]]:
    """The rules that a row of a V4 manifest breaks by itself."""
    kind, located = row["content_type"], row["location"] is not None
    vector, manifest = kind in (DV, MANIFEST_DV), kind in (DATA_MANIFEST, DELETE_MANIFEST)
    inline = row["inline_content"] is not None
    if kind not in ALLOWED[content]:
        yield "content-type", f"content_type is {kind}, in a manifest of content {content}"
    if not row["version_info"] or row["status"] not in (EXISTING, ADDED, DELETED):
        yield "status", f"status is {row['status']}"
    numbers = row["sequence_number"], row["file_sequence_number"]
    if None in numbers and row["status"] in (EXISTING, DELETED):
        yield "sequence-inherited", "a sequence number is null"
    if manifest and None not in numbers and numbers[0] != numbers[1]:
        yield "sequence-of-manifest", f"sequence numbers are {numbers[0]} and {numbers[1]}"
    if not located and not (kind == MANIFEST_DV and inline):
        yield "location", "location is null"
    if (located and row["file_size_in_bytes"] is None) or (row["file_size_in_bytes"] or 0) < 0:
        yield "file-size", f"file_size_in_bytes is {row['file_size_in_bytes']}"
    formats = ("puffin",) if vector else ("avro", "parquet") if manifest else ("avro", "orc", "parquet")
    if row["file_format"] not in formats:
        yield "file-format", f"file_format is {row['file_format']}"
    if row["record_count"] is None or row["record_count"] < 0:
        yield "record-count", f"record_count is {row['record_count']}"
    if row["deletion_vector"] and not vector and any(row[name] is not None for name, _ in _VECTOR.values()):
        yield "vector-struct", "deletion_vector is set"
    if vector:
        yield from _broken_vector_rules(row, inline)
    elif row["referenced_file"] is not None and kind != DELETE_MANIFEST:
        yield "referenced-file", "referenced_file is set"
    counts = [row[name] for name in _COUNTS.values()]
    if None in counts if manifest else any(count is not None for count in counts):
        yield "manifest-stats", "manifest_stats is incomplete" if manifest else "manifest_stats is set"
    if (row["equality_ids"] is not None) != (kind == EQUALITY):
        yield "equality-ids", "equality_ids is set" if kind != EQUALITY else "equality_ids is null"
    if row["sort_order_id"] is not None and kind != DATA:
        yield "sort-order", "sort_order_id is set"
    offsets = row["split_offsets"]
    if offsets is not None and offsets != sorted(set(offsets)):
        yield "split-offsets", f"split_offsets are {offsets}"
    if row["first_row_id"] is not None and kind not in (DATA, DATA_MANIFEST):
        yield "first-row-id", "first_row_id is set"


def _broken_vector_rules(row: Row, inline: bool) -> Iterator[tuple[str, str]]:
    offset, size = row["offset"], row["size_in_bytes"]
    if not row["deletion_vector"]:
        yield "vector-struct", "deletion_vector is null"
    elif row["content_type"] == DV and inline:
        yield "inline-data-vector", "inline_content is set"
    elif (offset is None) != (size is None) or (offset is None) != inline or min(offset or 0, size or 0) < 0:
        yield (
            "vector-place",
            f"offset is {offset}, size_in_bytes is {size}, inline_content is {'' if inline else 'un'}set",
        )
    if row["referenced_file"] is None:
        yield "referenced-file", "referenced_file is null"


# -- trees


_NAMED_IDS = (
    ("current-schema-id", "schemas", "schema-id"),
    ("default-spec-id", "partition-specs", "spec-id"),
    ("default-sort-order-id", "sort-orders", "order-id"),
)


@dataclass(frozen=True)
class PartitionField:
    """A field of a partition spec; ``owner`` is the id of the column or expression whose statistics have its value."""

    name: str
    id: int
    owner: int | None  # none for void, whose values are null
    transform: str
    sources: tuple[int, ...]


@dataclass
class Tree:
    """A snapshot: the rows of its root and leaves with inherited values, and what is live."""

    snapshot: dict[str, Any]
    place: str
    is_list: bool
    rows: list[Row]
    leaves: dict[str, list[Row]] = field(default_factory=dict)  # by place, all rows of any status
    vectors: dict[str, BitMap64] = field(default_factory=dict)  # live ones, by the place of their leaf
    old_vectors: dict[str, BitMap64] = field(default_factory=dict)  # DELETED ones
    live: dict[tuple[Any, ...], tuple[Row, str | None]] = field(default_factory=dict)  # files, with their leaf

    @property
    def id(self) -> int:
        return int(self.snapshot["snapshot-id"])

    def manifests(self) -> list[Row]:
        return [row for row in self.rows if row["content_type"] in (DATA_MANIFEST, DELETE_MANIFEST)]

    def of(self, kind: int) -> Iterator[tuple[Row, str | None]]:
        return ((row, leaf) for row, leaf in self.live.values() if row["content_type"] == kind)


def key_of(row: Row) -> tuple[Any, ...]:
    """What identifies a file: vectors share a file and differ in their offset."""
    return row["content_type"], row["place"], row["offset"]


def is_live(row: Row) -> bool:
    return bool(row["status"] != DELETED)


class Table:
    """A table: its metadata, and the trees of its snapshots."""

    def __init__(
        self,
        metadata: Path,
        report: Report,
        *,
        read: Callable[[str], bytes] | None = None,
        location: str | None = None,
        check_files: bool = True,
        check_rows: bool = False,
    ) -> None:
        self.report, self.check_files, self.file = report, check_files, metadata.name
        self.check_rows = check_rows
        raw = metadata.read_bytes() if read is None else read(f"metadata/{metadata.name}")
        try:
            self.metadata = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
        except (ValueError, EOFError, OSError, zlib.error) as error:
            raise report.stop("format-version", self.file, f"not JSON: {error}") from error
        version = self.metadata.get("format-version")
        if version != 4:
            raise report.stop("format-version", self.file, f"format-version is {version}")
        self.files = Files(metadata.absolute().parent.parent, self.metadata.get("location", location), read)
        self.snapshots = {s["snapshot-id"]: s for s in self.metadata.get("snapshots") or []}
        self.specs = self._specs()
        self.types = self._types()
        self._stored: dict[str, list[Row]] = {}
        self._checked: dict[str, bool] = {}
        self._check_metadata()
        self.trees: dict[int, Tree] = {}
        for snapshot in self.snapshots.values():
            try:
                self.trees[snapshot["snapshot-id"]] = self._tree(snapshot)
            except Broken:
                continue
        for tree in self.trees.values():
            History(self, tree).check()

    # -- metadata

    def _check_metadata(self) -> None:
        m, add = self.metadata, self.report.add
        current = m.get("current-snapshot-id")
        if len(self.snapshots) < len(m.get("snapshots") or []):
            add("snapshot-references", self.file, "two snapshots have the same id")
        named = {f"ref {name}": ref["snapshot-id"] for name, ref in (m.get("refs") or {}).items()}
        if current not in (None, -1):
            named["current-snapshot-id"] = current
        for name, id_ in named.items():
            if id_ not in self.snapshots:
                add("snapshot-references", self.file, f"{name} is {id_}, which is no snapshot")
        if named.get("ref main", current) != current and current in self.snapshots:
            add("snapshot-references", self.file, "branch main is not at the current snapshot")
        columns = {id_ for schema in m["schemas"] for id_ in _columns(schema)}
        expressions = [expression["expr-id"] for expression in m.get("expressions") or []]
        for id_, count in Counter(expressions).items():
            if count > 1 or id_ in columns:
                add("expressions", self.file, f"the id {id_} of an expression is used twice")
        if max(columns | set(expressions), default=0) > m.get("last-column-id", 0):
            message = f"last-column-id is {m.get('last-column-id')}, the id {max(columns | set(expressions))} is used"
            add("last-column-id", self.file, message)
        for key, kind, name in _NAMED_IDS:
            if m.get(key) not in {each[name] for each in m.get(kind) or []}:
                add("metadata-ids", self.file, f"{key} is {m.get(key)}, which is not in {kind}")
        for snapshot in self.snapshots.values():
            self._check_numbers(snapshot)

    def _check_numbers(self, snapshot: Mapping[str, Any]) -> None:
        id_, parent = snapshot["snapshot-id"], self.snapshots.get(snapshot.get("parent-snapshot-id"))
        schemas = {schema.get("schema-id", 0) for schema in self.metadata["schemas"]}
        if snapshot.get("schema-id") not in (None, *schemas):
            self.report.add("schema-of-snapshot", self.file, f"snapshot {id_} has schema {snapshot['schema-id']}")
        number, last = snapshot.get("sequence-number", 0), self.metadata.get("last-sequence-number", 0)
        before = -1 if parent is None or "root-manifest" not in snapshot else parent.get("sequence-number", 0)
        if number > last or number <= before:
            self.report.add("sequence-order", self.file, f"snapshot {id_} has sequence number {number}")
        if "root-manifest" not in snapshot:
            return
        first, added = snapshot.get("first-row-id"), snapshot.get("added-rows")
        if first is None or added is None:
            self.report.add("row-id-range", self.file, f"snapshot {id_} has no first-row-id or no added-rows")
        elif first + added > self.metadata.get("next-row-id", 0):
            self.report.add("row-id-range", self.file, f"snapshot {id_} ends at {first + added}, after next-row-id")
        elif parent is not None and first < (parent.get("first-row-id") or 0) + (parent.get("added-rows") or 0):
            self.report.add("row-id-range", self.file, f"snapshot {id_} starts at {first}, in the ids of its parent")

    def _specs(self) -> dict[int, list[PartitionField]]:
        expressions = {e["expr-id"]: e for e in self.metadata.get("expressions") or []}
        by_field = {_partition_field_id(e): id_ for id_, e in expressions.items()}
        columns = {i: name for schema in self.metadata["schemas"] for i, (name, _) in _columns(schema).items()}
        specs: dict[int, list[PartitionField]] = {}
        for spec in self.metadata["partition-specs"]:
            fields = specs.setdefault(spec["spec-id"], [])
            for number, stored in enumerate(spec["fields"]):
                link = stored.get("expr-id", by_field.get(stored.get("field-id")))
                inner = expressions[link]["expr"] if link in expressions else {}
                bare = {"source-id": link, "transform": "identity", "name": columns.get(link)}
                whole = {**(inner if link in expressions else bare if "transform" not in stored else {}), **stored}
                transform = whole.get("transform", "identity")
                owner = whole.get("source-id") if transform == "identity" else None if transform == "void" else link
                if transform not in ("identity", "void") and link not in expressions:
                    self.report.add("expression-links", self.file, f"{transform} of spec {spec['spec-id']} has none")
                linked = _partition_field_id(expressions[link]) if link in expressions else None
                id_ = whole.get("field-id", linked if linked is not None else 1000 + number)
                sources = tuple(whole.get("source-ids") or [whole["source-id"]] if transform != "void" else ())
                fields.append(PartitionField(str(whole.get("name")), id_, owner, transform, sources))
        return specs

    def _types(self) -> Types:
        types: dict[int, set[str]] = {}
        for schema in self.metadata["schemas"]:
            for id_, (_, type_) in _columns(schema).items():
                types.setdefault(id_, set()).update([type_] if isinstance(type_, str) else [])
        for expression in self.metadata.get("expressions") or []:
            inner = expression["expr"]
            sources = inner.get("source-ids") or [inner.get("source-id")]
            types[expression["expr-id"]] = _result_types(inner.get("transform", ""), types.get(sources[0], set()))
        return types

    # -- roots and leaves

    def _tree(self, snapshot: dict[str, Any]) -> Tree:
        roots = [snapshot[key] for key in ("root-manifest", "manifest-list") if snapshot.get(key) is not None]
        where = f"{self.file}: snapshot {snapshot['snapshot-id']}"
        try:
            places = sorted({self.files.place(root) for root in roots})
        except ValueError as error:
            raise self.report.stop("location", where, str(error)) from error
        if len(places) != 1:
            raise self.report.stop("one-root", where, f"it has {len(places)} root manifests")
        (place,) = places
        data = self._read(place, where)
        is_list = data[:4] == b"Obj\x01"
        rows = self._listed(data, place, snapshot) if is_list else self._manifest(data, place, ("root",))
        parent = self.trees.get(snapshot.get("parent-snapshot-id", -1))
        if is_list and parent is not None and not parent.is_list:
            self.report.add("no-manifest-list", place, "the parent of the snapshot has a root manifest")
        tree = Tree(snapshot, place, is_list, [dict(row) for row in rows])
        first = None if is_list else snapshot.get("first-row-id")
        _inherit(tree.rows, snapshot["snapshot-id"], snapshot.get("sequence-number", 0), first)
        if not is_list:
            self._check_root(tree)
        self._read_leaves(tree)
        return tree

    def _read(self, place: str, where: str) -> bytes:
        try:
            return self.files.read(place)
        except (OSError, KeyError) as error:
            raise self.report.stop("files", where, f"{place} cannot be read: {error}") from error

    def _manifest(self, data: bytes, place: str, contents: tuple[str, ...]) -> list[Row]:
        manifest = Manifest(data, place, contents, self.report, self.types)
        count = len(self.report.findings)
        for row in manifest.rows:
            for rule, message in broken_row_rules(row, manifest.content):
                self.report.add(rule, place, message, row["row"])
            if row["partition_spec_id"] not in self.specs:
                self.report.add("partition-spec", place, f"spec {row['partition_spec_id']} is unknown", row["row"])
            elif row["content_type"] in (DATA, DV, EQUALITY):
                for message in _missing_partition_values(row, self.specs[row["partition_spec_id"]]):
                    self.report.add("partition-values", place, message, row["row"])
            if not set(row["equality_ids"] or ()) <= set(self.types):
                message = f"equality_ids are {row['equality_ids']}, not all of them columns"
                self.report.add("equality-columns", place, message, row["row"])
            for name, target in (("location", "place"), ("referenced_file", "target")):
                try:
                    row[target] = None if row[name] is None else self.files.place(row[name])
                except ValueError as error:
                    self.report.add("location", place, str(error), row["row"])
        if len(self.report.findings) > count:
            raise Broken(place)
        return manifest.rows

    def _listed(self, data: bytes, place: str, snapshot: Mapping[str, Any]) -> list[Row]:
        """The rows of a manifest list as rows of a root (proposal: how manifest list fields map)."""
        rows = []
        for number, entry in enumerate(self._avro(data, place)[1]):
            sequence, by = entry.get(515) or 0, entry.get(503)
            rows.append(
                _empty_row(number)
                | {name: entry.get(id_) for id_, name in _COUNTS.items()}
                | {"content_type": DATA_MANIFEST + (entry.get(517) or 0), "file_format": "avro"}
                | {"location": entry[500], "place": self.files.place(entry[500]), "file_size_in_bytes": entry[501]}
                | {"status": ADDED if by == snapshot["snapshot-id"] else EXISTING, "snapshot_id": by}
                | {"sequence_number": sequence, "file_sequence_number": sequence}
                | {"partition_spec_id": entry[502], "first_row_id": entry.get(520)}
            )
        return rows

    def _avro(self, data: bytes, place: str) -> tuple[dict[str, bytes], list[dict[int, Any]]]:
        try:
            return Avro(data).records()
        except (ValueError, KeyError, IndexError, zlib.error, struct.error) as error:
            raise self.report.stop("manifest-file", place, f"cannot be read as Avro: {error}") from error

    def leaf(self, tree: Tree, row: Row) -> list[Row]:
        """All rows of a leaf with inherited values."""
        place = row["place"]
        if place not in tree.leaves:
            if place not in self._stored:
                data = self._read(place, tree.place)
                if data[:4] == b"Obj\x01":
                    self._stored[place] = self._old_leaf(data, place, row["partition_spec_id"])
                else:
                    contents = ("data",) if row["content_type"] == DATA_MANIFEST else ("delete", "deletes")
                    self._stored[place] = self._manifest(data, place, contents)
            rows = tree.leaves[place] = [dict(stored) for stored in self._stored[place]]
            _inherit(rows, row["snapshot_id"], row["sequence_number"], row["first_row_id"])
        return tree.leaves[place]

    def _old_leaf(self, data: bytes, place: str, spec_id: int) -> list[Row]:
        """The rows of a manifest of versions 1 to 3 (proposal: how manifest entry fields map)."""
        rows = []
        for number, entry in enumerate(self._avro(data, place)[1]):
            file = entry[2]
            target = file.get(143)
            rows.append(
                _empty_row(number)
                | {name: entry.get(id_) for id_, (name, _) in _INFO.items()}
                | {"content_type": file.get(134) or 0, "location": file[100], "place": self.files.place(file[100])}
                | {"file_format": str(file[101]).lower(), "file_size_in_bytes": file[104]}
                | {"record_count": None if file[103] < 0 else file[103]}  # some older writers did not know it
                | {"partition_spec_id": spec_id, "partition": file.get(102) or {}}
                | {"first_row_id": file.get(142), "equality_ids": file.get(135)}
                | {
                    "offset": file.get(144),
                    "size_in_bytes": file.get(145),
                    "deletion_vector": file.get(144) is not None,
                }
                | {"referenced_file": target, "target": None if target is None else self.files.place(target)}
            )
        return rows

    def _check_root(self, tree: Tree) -> None:
        """The rules between the rows of a root."""
        count, add = len(self.report.findings), self.report.add
        live = [row for row in tree.rows if is_live(row)]
        seen: set[Any] = set()
        for row in live:
            kind = row["content_type"]
            keys = {DV: "one-data-vector", MANIFEST_DV: "one-manifest-vector"}
            key = (kind, row["target"]) if kind in keys else row["place"]
            if key in seen:
                place = row["target"] if kind in keys else row["place"]
                add(keys.get(kind, "unique-location"), tree.place, f"another live row is for {place}", row["row"])
            seen.add(key)
        manifests = {row["place"] for row in tree.manifests()}
        data_leaves = {row["place"] for row in live if row["content_type"] == DATA_MANIFEST}
        for row in live:
            if row["content_type"] == MANIFEST_DV and row["target"] not in manifests:
                add("vector-target", tree.place, f"{row['target']} is not in this root", row["row"])
            if row["content_type"] == DELETE_MANIFEST and row["target"] not in (None, *data_leaves):
                add("affinity", tree.place, f"{row['target']} is no live data manifest of this root", row["row"])
        if len(self.report.findings) > count:
            raise Broken(tree.place)

    def _read_leaves(self, tree: Tree) -> None:
        for row in tree.rows:
            if row["content_type"] == MANIFEST_DV:
                (tree.vectors if is_live(row) else tree.old_vectors)[row["target"]] = self.positions(tree, row)
        for row in tree.rows:
            if is_live(row) and row["content_type"] in (DATA, DV, EQUALITY):
                tree.live[key_of(row)] = (row, None)
        for leaf in tree.manifests():
            if not is_live(leaf):
                continue
            rows = self.leaf(tree, leaf)
            self._check_leaf(tree, leaf, rows)
            dead = tree.vectors.get(leaf["place"], BitMap64())
            for row in rows:
                if is_live(row) and row["row"] not in dead:
                    if key_of(row) in tree.live:
                        self.report.add("unique-location", leaf["place"], f"{row['place']} is listed twice", row["row"])
                    tree.live[key_of(row)] = (row, leaf["place"])
        self._check_live(tree)

    def positions(self, tree: Tree, row: Row) -> BitMap64:
        """The positions of a vector, of a data file or of a manifest."""
        blob = row["inline_content"]
        if blob is None:
            data = self._read(row["place"], tree.place)
            blob = data[row["offset"] : row["offset"] + row["size_in_bytes"]]
            if self.check_files:
                self._check_blob(row, _blobs(data))
        try:
            found = vector_positions(blob)
        except (ValueError, struct.error) as error:
            raise self.report.stop("vector-bytes", tree.place, str(error), row["row"]) from error
        if len(found) != row["record_count"]:
            message = f"the vector has {len(found)} positions, record_count is {row['record_count']}"
            raise self.report.stop("vector-cardinality", tree.place, message, row["row"])
        if row["content_type"] == MANIFEST_DV and len(found) > 0:
            leaf = next((leaf for leaf in tree.manifests() if leaf["place"] == row["target"]), None)
            length = None if leaf is None else len(self.leaf(tree, leaf))
            if length is not None and found.max() >= length:
                message = f"position {found.max()}, the manifest has {length} rows"
                raise self.report.stop("vector-position", tree.place, message, row["row"])
        return found

    def _check_blob(self, row: Row, blobs: list[dict[str, Any]]) -> None:
        """What the footer of a Puffin file says of a vector."""
        place = row["offset"], row["size_in_bytes"]
        said = next((blob for blob in blobs if (blob.get("offset"), blob.get("length")) == place), None)
        if said is None:
            self.report.add("puffin-blob", row["place"], f"no blob at {row['offset']} in the footer")
            return
        properties = said.get("properties") or {}
        file = _plain(properties.get("referenced-data-file", ""))
        for is_right, message in (
            (said.get("type") == "deletion-vector-v1", f"the type is {said.get('type')}"),
            (said.get("compression-codec") is None, f"the vector is compressed by {said.get('compression-codec')}"),
            ((said.get("snapshot-id"), said.get("sequence-number")) == (-1, -1), "snapshot and sequence are not -1"),
            (
                properties.get("cardinality") == str(row["record_count"]),
                f"cardinality: {properties.get('cardinality')}",
            ),
            (f"/{file}".endswith(f"/{row['target']}"), f"referenced-data-file is {file!r}, not {row['target']}"),
        ):
            if not is_right:
                self.report.add("puffin-properties", row["place"], f"blob at {row['offset']}: {message}")

    def _check_leaf(self, tree: Tree, leaf: Row, rows: list[Row]) -> None:
        add, is_old = self.report.add, leaf["file_format"] == "avro"
        if leaf["record_count"] not in (None, len(rows)) and not is_old:
            message = f"{leaf['place']} has {len(rows)} rows, record_count is {leaf['record_count']}"
            raise self.report.stop("leaf-rows", tree.place, message, leaf["row"])
        for position in tree.vectors.get(leaf["place"], ()):
            if not is_live(rows[position]):
                add("vector-of-dead-row", tree.place, f"row {position} of {leaf['place']} is DELETED", leaf["row"])
        if is_old:
            return
        for row in rows:
            if row["partition_spec_id"] != leaf["partition_spec_id"]:
                add("leaf-spec", leaf["place"], f"spec {row['partition_spec_id']} in a leaf of another", row["row"])
        expected: Counter[str] = Counter(dict.fromkeys(_COUNTS.values(), 0))
        for row in rows:
            name = ("existing", "added", "deleted")[row["status"]]
            expected.update({f"{name}_files_count": 1, f"{name}_rows_count": row["record_count"]})
        live = [row["sequence_number"] for row in rows if is_live(row)]
        expected["min_sequence_number"] = min(live, default=leaf["min_sequence_number"])
        for name in _COUNTS.values():
            if leaf[name] != expected[name]:
                add("leaf-counts", tree.place, f"{name} is {leaf[name]}, counted {expected[name]}", leaf["row"])
        for message in _narrow_statistics(leaf, [row for row in rows if is_live(row)]):
            add("leaf-statistics", tree.place, message, leaf["row"])

    def _check_live(self, tree: Tree) -> None:
        """The rules between the live files of a snapshot."""
        add = self.report.add
        files = {row["place"]: leaf for row, leaf in tree.of(DATA)}
        data = {row["place"]: row for row, _ in tree.of(DATA)}
        self._check_values(tree)
        affinity = {leaf["place"]: leaf["target"] for leaf in tree.manifests() if not tree.is_list}
        vectors: dict[str, int] = {}
        for row, leaf in tree.of(DV):
            if not row["deletion_vector"]:
                continue  # a position delete file of version 2
            if row["target"] in vectors:
                add("one-data-vector", leaf or tree.place, f"another live row is for {row['target']}", row["row"])
            vectors[row["target"]] = row["row"]
            if row["target"] not in files:
                add("orphan-vector", leaf or tree.place, f"{row['target']} is not live", row["row"])
            elif leaf is not None and affinity.get(leaf) not in (None, files[row["target"]]):
                add("affinity-scope", leaf, f"{row['target']} is not in {affinity[leaf]}", row["row"])
            if row["target"] in data:
                self._check_vector_of(data[row["target"]], row, leaf or tree.place)
            if self.check_files and self.files.is_reachable(row["place"]):
                self.positions(tree, row)
        if not tree.is_list and tree.snapshot.get("first-row-id") is not None:
            self._check_row_ids(tree)
        if self.check_files:
            for row, _ in tree.live.values():
                self._check_file(row, tree.place)
            for row in tree.manifests():
                self._check_file(row, tree.place)

    def _check_values(self, tree: Tree) -> None:
        """Partition values and sort orders of live files."""
        orders = {order["order-id"] for order in self.metadata.get("sort-orders") or []}
        for row, leaf in tree.live.values():
            where = leaf or tree.place
            if row["sort_order_id"] not in (None, *orders):
                self.report.add("known-sort-order", where, f"sort_order_id is {row['sort_order_id']}", row["row"])
            for part in () if "partition" in row else self.specs[row["partition_spec_id"] or 0]:
                stats = row["stats"].get(part.owner, {})
                lower, upper = stats.get("lower"), stats.get("upper")
                is_both = part.transform == "identity" or upper is not None
                if is_both and (not same_value(lower, upper) or stats.get("tight") is False):
                    message = f"partition field {part.name} has the bounds {lower!r} and {upper!r}"
                    cut = ", which are cut" if stats.get("tight") is False else ""
                    self.report.add("partition-bounds", where, message + cut, row["row"])

    def _check_vector_of(self, data: Row, vector: Row, where: str) -> None:
        if vector["sequence_number"] < data["sequence_number"]:
            message = f"sequence_number is {vector['sequence_number']}, {data['place']} has {data['sequence_number']}"
            self.report.add("vector-age", where, message, vector["row"])
        ids, values = (
            [vector["partition_spec_id"], data["partition_spec_id"]],
            [self.tuple_of(r) for r in (vector, data)],
        )
        if ids[0] != ids[1] or not all(map(same_value, *values)):
            message = f"spec {ids[0]} and {values[0]}, {data['place']} has spec {ids[1]} and {values[1]}"
            self.report.add("vector-partition", where, message, vector["row"])

    def tuple_of(self, row: Row) -> list[Any]:
        """The partition values of a file: of its own, before version 4, or those in its statistics."""
        values = []
        for part in self.specs[row["partition_spec_id"] or 0]:
            if "partition" in row:
                values.append(row["partition"].get(part.id))
                continue
            stats = row["stats"].get(part.owner, {})
            is_nan = stats.get("lower") is None and (stats.get("nans") or 0) > 0
            values.append(math.nan if is_nan else stats.get("lower"))
        return values

    def _check_row_ids(self, tree: Tree) -> None:
        end, next_id = 0, self.metadata.get("next-row-id", 0)
        ranges = [(row["first_row_id"], row["record_count"] or 0, row["place"]) for row, _ in tree.of(DATA)]
        for first, count, place in sorted(ranges, key=lambda r: (r[0] is None, r[0] or 0, r[1])):
            if first is None:
                self.report.add("row-ids", tree.place, f"{place} has no first row id")
            elif first < end:
                self.report.add("row-ids", tree.place, f"{place} has row id {first}, which another file has")
            elif first + count > next_id:
                self.report.add("row-id-range", tree.place, f"{place} has row ids up to {first + count}")
            end = max(end, (first or 0) + count)

    def _check_file(self, row: Row, where: str) -> None:
        place = row["place"]
        if place in self._checked or not self.files.is_reachable(place):
            return
        self._checked[place] = True
        try:
            size = self.files.size(place)
        except (OSError, KeyError):
            self.report.add("files", where, f"{place} does not exist", row["row"])
            return
        if size != row["file_size_in_bytes"]:
            message = f"{place} has {size} bytes, file_size_in_bytes is {row['file_size_in_bytes']}"
            self.report.add("files", where, message, row["row"])
        elif row["content_type"] == DATA and row["file_format"] == "parquet" and row["record_count"] is not None:
            try:
                count = pq.read_metadata(pa.BufferReader(self.files.read(place))).num_rows
            except Exception as error:  # a damaged file may cause any error of the Parquet reader
                self.report.add("files", where, f"{place} cannot be read: {error}", row["row"])
                return
            if count != row["record_count"]:
                message = f"{place} has {count} rows, record_count is {row['record_count']}"
                self.report.add("rows", where, message, row["row"])
            elif self.check_rows:
                self._check_rows(row, where)

    def _check_rows(self, row: Row, where: str) -> None:
        place = row["place"]
        shapes = {id_ for id_, types in self.types.items() if any(type_.startswith("geo") for type_ in types)}
        parts = list(zip(self.specs[row["partition_spec_id"] or 0], self.tuple_of(row), strict=True))
        try:
            source = pa.BufferReader(self.files.read(place))
            table = pq.ParquetFile(source, page_checksum_verification=True).read(use_threads=False)
        except Exception as error:  # a damaged file may cause any error of the Parquet reader
            self.report.add("files", where, f"{place} cannot be read: {error}", row["row"])
            return
        for rule, message in broken_by_rows(row, parts, shapes, table):
            self.report.add(rule, where, f"{place}: {message}", row["row"])


def _blobs(data: bytes) -> list[dict[str, Any]]:
    try:
        return puffin_blobs(data)
    except (ValueError, KeyError, struct.error):
        return []


def _empty_row(number: int) -> Row:
    names = [name for name, _ in (*COLUMNS.values(), *_INFO.values(), *_VECTOR.values(), *_STATS.values())]
    groups = dict.fromkeys(("version_info", "deletion_vector", "manifest_stats"), False)
    return dict.fromkeys((*names, "place", "target")) | groups | {"row": number, "stats": {}}


def _columns(schema: Mapping[str, Any]) -> dict[int, tuple[str, Any]]:
    """The columns of a schema at any depth, by id: name and type."""
    found: dict[int, tuple[str, Any]] = {}
    pending: list[Any] = [schema]
    while pending:
        type_ = pending.pop()
        if not isinstance(type_, dict):
            continue
        for inner in type_.get("fields", ()):
            found[inner["id"]] = inner["name"], inner["type"]
            pending.append(inner["type"])
        for part in ("element", "key", "value"):
            if f"{part}-id" in type_:
                found[type_[f"{part}-id"]] = part, type_[part]
                pending.append(type_[part])
    return found


def _result_types(transform: str, sources: set[str]) -> set[str]:
    """The types that results of a transform may have; none if they are not known."""
    name = transform.partition("[")[0]
    if name in ("identity", "truncate"):
        return sources
    return {"day"} if name == "day" else {"int"} if name in ("bucket", "year", "month", "hour") else set()


def _partition_field_id(expression: Mapping[str, Any]) -> int | None:
    inside = expression["expr"].get("partition-field-id")
    number: int | None = expression.get("partition-field-id", inside)
    return number


def _inherit(rows: list[Row], snapshot_id: int | None, sequence: int, first_row_id: int | None) -> None:
    """Fill in nulls from the snapshot of a root, or from the root row of a leaf."""
    next_id = first_row_id
    for row in rows:
        if row["snapshot_id"] is None:
            row["snapshot_id"] = snapshot_id
        for name in ("sequence_number", "file_sequence_number"):
            if row[name] is None and (row["status"] == ADDED or sequence == 0):
                row[name] = sequence
        if row["content_type"] not in (DATA, DATA_MANIFEST) or not is_live(row):
            continue
        if row["first_row_id"] is None and next_id is not None:
            count = row["record_count"] if row["content_type"] == DATA else None
            count = count if count is not None else (row["added_rows_count"] or 0) + (row["existing_rows_count"] or 0)
            row["first_row_id"], next_id = next_id, next_id + count


def _narrow_statistics(leaf: Row, rows: list[Row]) -> Iterator[str]:
    """Where the statistics of a manifest do not cover those of its live rows."""
    for owner, total in leaf["stats"].items():
        parts = [row["stats"].get(owner, {}) for row in rows]
        for name in ("values", "nulls", "nans"):
            counts = [part.get(name) for part in parts]
            if total.get(name) is not None and None not in counts and total[name] != sum(counts):
                yield f"id {owner}: {name} {total[name]}, the entries have {sum(counts)}"
        for name, is_outside in (("lower", operator.gt), ("upper", operator.lt)):
            for part in parts if total.get(name) is not None else ():
                bound = part.get(name) if name == "lower" or part.get(name) is not None else part.get("lower")
                has_values = part.get("values") is None or part["values"] > sum(
                    part.get(n) or 0 for n in ("nulls", "nans")
                )
                if bound is None and has_values and part.get("values") != 0:
                    yield f"id {owner}: {name} bound {total[name]}, but an entry has none"
                elif bound is not None and is_outside(_rank(total[name]), _rank(bound)):
                    yield f"id {owner}: {name} bound {total[name]}, but an entry has {bound}"


def _missing_partition_values(row: Row, fields: list[PartitionField]) -> Iterator[str]:
    """The partition fields whose value is not in the statistics of a file, or is null where counts say otherwise."""
    for part in fields:
        if part.owner is None:
            continue
        stats = row["stats"].get(part.owner)
        if stats is None:
            yield f"there is no value of partition field {part.name}"
            continue
        total = row["record_count"] if stats.get("values") is None else stats["values"]
        nulls, nans = stats.get("nulls"), stats.get("nans")
        if stats.get("lower") is not None or (nans is not None and nans == total):
            continue
        if stats.get("upper") is not None or nulls not in (None, total):
            yield f"partition field {part.name} has no lower bound, and is not null: {stats}"
        source = row["stats"].get(part.sources[0], {}) if part.transform != "identity" else {}
        values = row["record_count"] if source.get("values") is None else source["values"]
        if source.get("lower") is not None or (source.get("nulls") is not None and source["nulls"] < values):
            yield f"partition field {part.name} is null, its column has values: {source}"


def same_value(one: Any, other: Any) -> bool:
    """Whether two partition values are equal, one of which may be from an Avro manifest."""
    if one is None or other is None:
        return one is other
    if isinstance(one, Temporal) != isinstance(other, Temporal):  # the result of day is a date or a number
        one, other = (value.number if isinstance(value, Temporal) else value for value in (one, other))
    if isinstance(one, str) != isinstance(other, str):
        one, other = (uuid.UUID(value).bytes if isinstance(value, str) else value for value in (one, other))
    if isinstance(one, float) and math.isnan(one):
        return isinstance(other, float) and math.isnan(other)
    return bool(_rank(one) == _rank(other))


def _rank(bound: Any) -> Any:
    """What a bound is compared by: dates as times, since the column may have been promoted since the entry."""
    if not isinstance(bound, Temporal):
        return bound
    return bound.number * (86_400_000_000_000 if "date" in bound.unit else 1 if "ns" in bound.unit else 1_000)


# -- rows of data files


def broken_by_rows(
    row: Row, parts: list[tuple[PartitionField, Any]], shapes: set[int], table: pa.Table
) -> Iterator[tuple[str, str]]:
    """The rules that the entry of a Parquet file breaks, by its rows; bounds of ``shapes`` are boxes."""
    columns = dict(_leaf_columns(table))
    for owner, stats in row["stats"].items():
        if owner in columns and owner not in shapes:
            yield from (("bounds", f"id {owner}: {message}") for message in _wrong_statistics(stats, columns[owner]))
    for part, said in parts:
        apply = transform_of(part.transform)
        source = columns.get(part.sources[0]) if len(part.sources) == 1 else None
        if apply is None or source is None:
            continue
        found = [None if value is None else apply(value) for value in source.values]
        wrong = next((value for value in found if not same_value(value, said)), said)
        if not same_value(wrong, said):
            yield "partition-of-rows", f"partition field {part.name} is {said!r}, a row has {wrong!r}"


@dataclass(frozen=True)
class Column:
    """The different values of a column, and counts of all."""

    values: list[Any]
    rows: int
    nulls: int
    nans: int


def _leaf_columns(table: pa.Table) -> Iterator[tuple[int, Column]]:
    """The columns of a file, those of structs included, by field id."""
    pending = [(field, table.column(number)) for number, field in enumerate(table.schema)]
    while pending:
        field, array = pending.pop()
        array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
        if pa.types.is_struct(field.type):
            pending += zip(field.type, array.flatten(), strict=True)
        elif _id(field) is not None and not pa.types.is_nested(field.type):
            storage = array.storage if isinstance(array, pa.ExtensionArray) else array
            values = plain_values(storage.unique())
            is_float = pa.types.is_floating(storage.type)
            nans = sum(math.isnan(value) for value in storage.drop_null().to_pylist()) if is_float else 0
            yield int(_id(field) or 0), Column(values, len(array), array.null_count, nans)


def _wrong_statistics(stats: Mapping[str, Any], column: Column) -> Iterator[str]:
    for name, count in (("values", column.rows), ("nulls", column.nulls), ("nans", column.nans)):
        if stats.get(name) not in (None, count):
            yield f"{name} is {stats[name]}, counted {count}"
    ranks = {_rank(v): v for v in column.values if v is not None and not (isinstance(v, float) and math.isnan(v))}
    if len(ranks) == 0:
        return
    for name, value in (("lower", ranks[min(ranks)]), ("upper", ranks[max(ranks)])):
        bound = stats.get(name)
        if bound is None:
            continue
        if _rank(bound) > _rank(value) if name == "lower" else _rank(bound) < _rank(value):
            yield f"{name} bound is {bound!r}, a row has {value!r}"
        elif stats.get("tight") is True and not same_value(bound, value):
            yield f"{name} bound is {bound!r}, which is not tight: rows have {value!r}"


def transform_of(text: str) -> Callable[[Any], Any] | None:
    """A partition transform of one value that is not null; none if it is not known."""
    name, _, size = text.rstrip("]").partition("[")
    if name == "identity":
        return lambda value: value
    if name == "bucket":
        return lambda value: (murmur3(_hashed(value)) & 0x7FFFFFFF) % int(size)
    if name == "truncate":
        return lambda value: _truncated(value, int(size))
    if name in ("year", "month", "day", "hour"):
        return lambda value: _period(value, name)
    return None


def _truncated(value: Any, width: int) -> Any:
    if isinstance(value, (str, bytes)):
        return value[:width]
    if isinstance(value, Decimal):
        unscaled = int(value.scaleb(-int(value.as_tuple().exponent)))
        return Decimal(unscaled - unscaled % width).scaleb(int(value.as_tuple().exponent))
    return value - value % width


def _period(value: Temporal, name: str) -> int:
    seconds, _ = divmod(_rank(value), 1_000_000_000)
    if name == "hour":
        return int(seconds // 3600)
    days = int(seconds // 86400)
    if name == "day":
        return days
    years = 400 * (days // 146_097)  # so that dates far away are within those of Python
    date = datetime.date(1970, 1, 1) + datetime.timedelta(days=days % 146_097)
    return years + date.year - 1970 if name == "year" else 12 * (years + date.year - 1970) + date.month - 1


def _hashed(value: Any) -> bytes:
    """The bytes of a value that bucket hashes."""
    if isinstance(value, Temporal):
        value = value.number // 1_000 if "ns" in value.unit else value.number
    if isinstance(value, int):
        return struct.pack("<q", value)
    if isinstance(value, Decimal):
        unscaled = int(value.scaleb(-int(value.as_tuple().exponent)))
        length = ((unscaled if unscaled >= 0 else ~unscaled).bit_length() + 8) // 8
        return unscaled.to_bytes(length, "big", signed=True)
    return value.encode() if isinstance(value, str) else bytes(value)


def murmur3(data: bytes) -> int:
    """The 32-bit Murmur3 hash, x86 variant, with seed 0."""
    mask, result = 0xFFFFFFFF, 0

    def mixed(word: int) -> int:
        word = word * 0xCC9E2D51 & mask
        return (word << 15 | word >> 17) * 0x1B873593 & mask

    whole = len(data) // 4 * 4
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        result ^= mixed(word)
        result = (result << 13 | result >> 19) & mask
        result = (result * 5 + 0xE6546B64) & mask
    if whole < len(data):
        result ^= mixed(int.from_bytes(data[whole:], "little"))
    result ^= len(data)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        result = (result ^ result >> shift) * factor & mask
    return result


# -- a snapshot and its parent


class History:
    """The rules between the root of a snapshot and that of its parent."""

    def __init__(self, table: Table, tree: Tree) -> None:
        self.table, self.tree, self.report = table, tree, table.report
        self.parent = table.trees.get(tree.snapshot.get("parent-snapshot-id", -1))

    def check(self) -> None:
        tree, add = self.tree, self.report.add
        if tree.is_list:
            return
        number = tree.snapshot.get("sequence-number", 0)
        for row in tree.rows:
            if row["status"] == DELETED and tree.snapshot.get("parent-snapshot-id") is None:
                add("deleted-without-parent", tree.place, "the snapshot has no parent", row["row"])
            if row["status"] == DELETED and row["snapshot_id"] != tree.id:
                add("deleted-entry", tree.place, f"snapshot_id is {row['snapshot_id']}", row["row"])
            if row["status"] == ADDED and row["snapshot_id"] != tree.id:
                add("added-entry", tree.place, f"snapshot_id is {row['snapshot_id']}", row["row"])
            elif row["status"] == ADDED and row["file_sequence_number"] != number:
                message = f"file_sequence_number is {row['file_sequence_number']}, the snapshot has {number}"
                add("added-entry", tree.place, message, row["row"])
            if row["content_type"] in (DATA_MANIFEST, DELETE_MANIFEST) and row["status"] == DELETED:
                add("leaf-deleted", tree.place, f"{row['place']} is DELETED", row["row"])
        for row, leaf in tree.live.values():
            if (row["sequence_number"] or 0) > number:
                add("sequence-order", leaf or tree.place, f"sequence_number is {row['sequence_number']}", row["row"])
        self._check_summary()
        if self.parent is None and tree.snapshot.get("parent-snapshot-id") is not None:
            return  # the parent has expired, or cannot be read
        self._check_files(set() if self.parent is None else set(self.parent.live))
        self._check_leaves()
        self._check_vectors()
        self._check_changes()

    def _check_files(self, before: set[tuple[Any, ...]]) -> None:
        """Files of the root, and files that are in this snapshot and in its parent."""
        tree, add = self.tree, self.report.add
        for row in tree.rows:
            if row["content_type"] > EQUALITY:
                continue
            if row["status"] == DELETED and key_of(row) not in before:
                add("deleted-entry", tree.place, f"{row['place']} was not live in the parent", row["row"])
            elif row["status"] == ADDED and key_of(row) in before:
                add("carried-status", tree.place, f"{row['place']} is ADDED, it was live in the parent", row["row"])
            elif row["status"] == EXISTING and key_of(row) not in before:
                add("carried-status", tree.place, f"{row['place']} is EXISTING, it was not in the parent", row["row"])
        for key in before & set(tree.live):
            (was, _), (row, leaf) = self.parent.live[key], tree.live[key]  # type: ignore[union-attr]
            for name in ("snapshot_id", "sequence_number", "file_sequence_number", "first_row_id", "record_count"):
                if was[name] is not None and row[name] != was[name]:
                    message = f"{row['place']}: {name} is {row[name]}, it was {was[name]}"
                    add("carried-values", leaf or tree.place, message, row["row"])
        first, added = tree.snapshot.get("first-row-id"), tree.snapshot.get("added-rows")
        for row, leaf in tree.of(DATA):
            start = row["first_row_id"]
            if key_of(row) in before or first is None or added is None or start is None:
                continue
            if not first <= start <= first + added - row["record_count"]:
                message = f"{row['place']} starts at {start}, not in {first} + {added}"
                add("row-id-range", leaf or tree.place, message, row["row"])

    def _check_leaves(self) -> None:
        tree, add = self.tree, self.report.add
        before = (
            {} if self.parent is None else {leaf["place"]: leaf for leaf in self.parent.manifests() if is_live(leaf)}
        )
        for leaf in tree.manifests():
            was = before.get(leaf["place"])
            if was is None:
                self._check_new_leaf(leaf)
                continue
            if leaf["status"] == ADDED:
                add("carried-status", tree.place, f"{leaf['place']} is ADDED, it was live in the parent", leaf["row"])
            names = ["sequence_number", "file_sequence_number", "first_row_id"]
            if leaf["file_format"] != "avro":
                names += ["record_count", "file_size_in_bytes", *_COUNTS.values()]
            if is_live(leaf):
                names.append("snapshot_id")
            for name in names:
                if was[name] is not None and leaf[name] != was[name]:
                    message = f"{leaf['place']}: {name} is {leaf[name]}, it was {was[name]}"
                    add("carried-values", tree.place, message, leaf["row"])

    def _check_new_leaf(self, leaf: Row) -> None:
        """A leaf that the parent did not have: all of its entries are new, or all are old."""
        tree, add = self.tree, self.report.add
        if not is_live(leaf):
            add("deleted-entry", tree.place, f"{leaf['place']} was not live in the parent", leaf["row"])
            return
        old = set() if self.parent is None else set(self.parent.live)
        kinds = {(row["status"], key_of(row) in old) for row in tree.leaves[leaf["place"]] if is_live(row)}
        if (ADDED, True) in kinds:
            add("carried-status", leaf["place"], "an entry of the parent is ADDED")
        has_new = any(not known for _, known in kinds) or (ADDED, True) in kinds
        if has_new and (leaf["status"] == EXISTING or any(known for _, known in kinds)):
            add("compaction", tree.place, f"{leaf['place']} combines new and existing entries", leaf["row"])
        elif leaf["status"] == ADDED and not has_new:
            add("carried-status", tree.place, f"{leaf['place']} is ADDED, all its entries are old", leaf["row"])
        elif (EXISTING, False) in kinds:
            add("carried-status", leaf["place"], "a new entry is EXISTING")

    def _check_vectors(self) -> None:
        tree, add = self.tree, self.report.add
        before = {} if self.parent is None else self.parent.vectors
        for row in tree.rows:
            if row["content_type"] != MANIFEST_DV:
                continue
            leaf, old = row["target"], before.get(row["target"])
            if row["status"] == DELETED and tree.old_vectors[leaf] != old:
                add("deleted-entry", tree.place, f"the vector of {leaf} was not live in the parent", row["row"])
            elif row["status"] == ADDED and tree.vectors[leaf] == old:
                add("carried-status", tree.place, f"the vector of {leaf} is ADDED, it was in the parent", row["row"])
            elif row["status"] == EXISTING and tree.vectors[leaf] != old:
                add("carried-status", tree.place, f"the vector of {leaf} is EXISTING, it is new", row["row"])
        listed = {leaf["place"] for leaf in tree.manifests() if is_live(leaf)}
        for leaf, old in before.items():
            if leaf in listed and len(old - tree.vectors.get(leaf, BitMap64())) > 0:
                add("vector-grows", tree.place, f"the vector of {leaf} lacks positions that it had")

    def _check_summary(self) -> None:
        """The counts of the summary, as far as it has them."""
        tree, summary = self.tree, self.tree.snapshot.get("summary") or {}
        where = f"{self.table.file}: snapshot {tree.id}"
        counts = _totals([row for row, _ in tree.live.values()])
        operation = summary.get("operation")
        if operation not in ("append", "replace", "overwrite", "delete"):
            self.report.add("summary", where, f"operation is {operation}")
        if self.parent is not None or tree.snapshot.get("parent-snapshot-id") is None:
            before = {} if self.parent is None else self.parent.live
            added = _totals([row for key, (row, _) in tree.live.items() if key not in before])
            removed = _totals([row for key, (row, _) in before.items() if key not in tree.live])
            counts |= {f"added{name[5:]}": added[name] for name in added}
            counts |= {f"deleted{name[5:]}": removed[name] for name in ("total-data-files", "total-records")}
            names = ("total-files-size", "total-delete-files", "total-position-deletes", "total-equality-deletes")
            counts |= {f"removed{name[5:]}": removed[name] for name in names}
            if operation == "append" and removed["total-data-files"] != 0:
                self.report.add("summary", where, "operation is append, and data files were removed")
            if operation == "delete" and added["total-data-files"] != 0:
                self.report.add("summary", where, "operation is delete, and data files were added")
        for name, count in counts.items():
            said = summary.get(name)
            if count is not None and said is not None and said != str(count):
                self.report.add("summary", where, f"{name} is {said}, counted {count}")

    def _check_changes(self) -> None:
        before = set() if self.parent is None else set(self.parent.live)
        try:
            added, removed = recorded_changes(self.table, self.tree)
        except Broken:
            return
        after = set(self.tree.live)
        pairs = ("added", added, after - before), ("removed", removed, before - after)
        for name, recorded, actual in pairs:
            for key in sorted(recorded ^ actual, key=repr):
                message = f"{key[1]} is {name}" + (", not recorded" if key in actual else " by the root only")
                self.report.add("changes", self.tree.place, message)


def _totals(rows: list[Row]) -> dict[str, int | None]:
    """The counts of a summary for some files; none if the record count of one is not known."""

    def records(kind: int) -> int | None:
        counts = [row["record_count"] for row in rows if row["content_type"] == kind]
        return None if None in counts else sum(counts)

    data = sum(row["content_type"] == DATA for row in rows)
    return {
        "total-data-files": data,
        "total-delete-files": len(rows) - data,
        "total-records": records(DATA),
        "total-position-deletes": records(DV),
        "total-equality-deletes": records(EQUALITY),
        # Vectors share files, so each counts with its own bytes.
        "total-files-size": sum(row["size_in_bytes"] or row["file_size_in_bytes"] or 0 for row in rows),
    }


def recorded_changes(table: Table, tree: Tree) -> tuple[set[tuple[Any, ...]], set[tuple[Any, ...]]]:
    """The files that a snapshot added and removed, by its own root and the leaves that it touched."""
    added: set[tuple[Any, ...]] = set()
    removed: set[tuple[Any, ...]] = set()
    for row in tree.rows:
        if row["content_type"] <= EQUALITY and row["status"] != EXISTING:
            (added if row["status"] == ADDED else removed).add(key_of(row))
    new = {row["target"] for row in tree.rows if row["content_type"] == MANIFEST_DV and row["status"] == ADDED}
    none, moved = BitMap64(), set(tree.live)
    for leaf in tree.manifests():
        place = leaf["place"]
        before, after = tree.old_vectors.get(place, none), tree.vectors.get(place, none)
        if leaf["status"] == ADDED:
            for row in table.leaf(tree, leaf):
                if row["snapshot_id"] == tree.id and row["status"] != EXISTING and row["row"] not in after:
                    (added if row["status"] == ADDED else removed).add(key_of(row))
        elif leaf["status"] == DELETED and place not in new:  # what was live in it, unless it moved elsewhere
            rows = (row for row in table.leaf(tree, leaf) if is_live(row) and row["row"] not in before)
            removed |= {key_of(row) for row in rows} - moved
        elif place in new or place in tree.old_vectors:
            for row in table.leaf(tree, leaf):
                if is_live(row) and row["row"] in after - before:
                    removed.add(key_of(row))
                elif is_live(row) and row["row"] in before - after:
                    added.add(key_of(row))
    return added, removed


# -- what a table contains

ROW_ID, LAST_UPDATED, FILE_PATH, FILE_POSITION = 2147483540, 2147483539, 2147483546, 2147483545


class Contents:
    """The content of the snapshots of a table, as JSON."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._columns: dict[str, tuple[int, dict[int | None, list[Any]]]] = {}

    def expected(self) -> dict[str, Any]:
        refs = self.table.metadata.get("refs") or {}
        return {
            "current-snapshot-id": self.table.metadata.get("current-snapshot-id"),
            "refs": {name: ref["snapshot-id"] for name, ref in sorted(refs.items())},
            "next-row-id": self.table.metadata.get("next-row-id"),
            "snapshots": [self._snapshot(tree) for tree in self.table.trees.values()],
        }

    def _snapshot(self, tree: Tree) -> dict[str, Any]:
        added, removed = recorded_changes(self.table, tree)
        files = [self._data_file(tree, row) for row, _ in tree.of(DATA)]
        deletes = [self._delete(tree, row) for kind in (DV, EQUALITY) for row, _ in tree.of(kind)]
        return {
            "snapshot-id": tree.id,
            "parent-snapshot-id": tree.snapshot.get("parent-snapshot-id"),
            "sequence-number": tree.snapshot.get("sequence-number", 0),
            "operation": (tree.snapshot.get("summary") or {}).get("operation"),
            "row-count": sum(file["record-count"] - len(file["deleted-positions"]) for file in files),
            "data-files": sorted(files, key=lambda file: file["location"]),
            "deletes": sorted(deletes, key=lambda delete: (delete["location"], delete.get("offset", 0))),
            "changes": {"added": sorted(map(_name, added)), "removed": sorted(map(_name, removed))},
        }

    def _common(self, row: Row) -> dict[str, Any]:
        fields = self.table.specs[row["partition_spec_id"] or 0]
        return {
            "location": row["place"],
            "record-count": row["record_count"],
            "snapshot-id": row["snapshot_id"],
            "sequence-number": row["sequence_number"],
            "file-sequence-number": row["file_sequence_number"],
            "spec-id": row["partition_spec_id"] or 0,
            "partition": dict(zip((f.name for f in fields), map(_json_value, self.table.tuple_of(row)), strict=True)),
        }

    def _data_file(self, tree: Tree, row: Row) -> dict[str, Any]:
        deleted = sorted(self._deleted(tree, row))
        live = sorted(set(range(row["record_count"])) - set(deleted))
        _, columns = self._read(row["place"])
        ids, updated = (columns.get(id_, [None] * row["record_count"]) for id_ in (ROW_ID, LAST_UPDATED))
        first = row["first_row_id"]
        row_ids = [(first or 0) + n if ids[n] is None else ids[n] for n in live]
        numbers = [row["sequence_number"] if updated[n] is None else updated[n] for n in live]
        return self._common(row) | {
            "first-row-id": first,
            "deleted-positions": deleted,
            "row-ids": None if first is None else row_ids,
            "last-updated-sequence-numbers": None if first is None else numbers,
        }

    def _delete(self, tree: Tree, row: Row) -> dict[str, Any]:
        is_vector = bool(row["deletion_vector"])
        kind = KINDS[row["content_type"]] if is_vector or row["content_type"] != DV else "position-deletes"
        found = {"kind": kind, **self._common(row)}
        if is_vector:
            positions = list(self.table.positions(tree, row))
            found |= {"offset": row["offset"], "referenced-file": row["target"], "positions": positions}
        return found

    def _deleted(self, tree: Tree, row: Row) -> set[int]:
        """The deleted positions of a data file, by vectors, position deletes and equality deletes."""
        found: set[int] = set()
        has_vector, number = False, row["sequence_number"]
        for delete, _ in tree.of(DV):
            if delete["deletion_vector"] and delete["target"] == row["place"] and number <= delete["sequence_number"]:
                has_vector = True
                found.update(self.table.positions(tree, delete))
        for delete, _ in () if has_vector else tree.of(DV):
            if not delete["deletion_vector"] and number <= delete["sequence_number"]:
                columns = self._read(delete["place"])[1]
                pairs = zip(columns[FILE_PATH], columns[FILE_POSITION], strict=True)
                found.update(at for path, at in pairs if self.table.files.place(path) == row["place"])
        for delete, _ in tree.of(EQUALITY):
            if number < delete["sequence_number"] and self._matches(row, delete):
                keys = set(zip(*(self._read(delete["place"])[1][id_] for id_ in delete["equality_ids"]), strict=True))
                count, columns = self._read(row["place"])
                own = (columns.get(id_, [None] * count) for id_ in delete["equality_ids"])
                found.update(at for at, key in enumerate(zip(*own, strict=True)) if key in keys)
        return found

    def _matches(self, row: Row, delete: Row) -> bool:
        """Whether an equality delete is of the same partition, or of none."""
        if len(self.table.specs[delete["partition_spec_id"] or 0]) == 0:
            return True
        same = row["partition_spec_id"] == delete["partition_spec_id"]
        return same and all(map(same_value, self.table.tuple_of(row), self.table.tuple_of(delete)))

    def _read(self, place: str) -> tuple[int, dict[int | None, list[Any]]]:
        """The number of rows of a Parquet file, and its columns by field id."""
        if place not in self._columns:
            table = pq.ParquetFile(pa.BufferReader(self.table.files.read(place))).read(use_threads=False)
            columns = {_id(f): plain_values(table.column(n)) for n, f in enumerate(table.schema)}
            self._columns[place] = table.num_rows, columns
        return self._columns[place]


def _name(key: tuple[Any, ...]) -> str:
    return f"{key[1]}" if key[2] is None else f"{key[1]}#{key[2]}"


def _json_value(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (Temporal, Decimal)):
        return str(value)
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


# -- the program


def newest_metadata(place: Path) -> Path:
    """The metadata file of a table folder, or the file itself."""
    if place.is_file():
        return place
    found = [*(place / "metadata").glob("*.metadata.json"), *(place / "metadata").glob("*.metadata.json.gz")]
    if len(found) == 0:
        raise SystemExit(f"there is no metadata file in {place / 'metadata'}")
    return max(found, key=metadata_number)


def metadata_number(file: Path) -> tuple[int, str]:
    """The key that sorts metadata files: the number in the name, then the name."""
    return int("0" + "".join(re.findall(r"^v?(\d+)", file.name))), file.name


def check(
    place: Path,
    *,
    read: Callable[[str], bytes] | None = None,
    location: str | None = None,
    check_files: bool = True,
    check_rows: bool = False,
) -> tuple[list[Finding], Table | None]:
    """The findings in a table, and the table if its metadata can be read.

    ``read`` reads a file by its place, for tables that are not in a folder; ``location`` is then that of the table.
    Without ``check_files`` data files are not opened. With ``check_rows`` their rows are compared with their entries.
    """
    report = Report()
    table = None
    try:
        metadata = newest_metadata(place) if read is None else place
        options = {"check_files": check_files, "check_rows": check_rows}
        table = Table(metadata, report, read=read, location=location, **options)
    except Broken:
        pass
    except (KeyError, TypeError, AttributeError) as error:
        report.add("format-version", place.name, f"the metadata lacks {error}")
    return list(report.findings), table


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Check a table of format version 4.")
    parser.add_argument("table", nargs="?", type=Path, help="the folder of a table, or its metadata file")
    parser.add_argument("--expected", action="store_true", help="print the content of every snapshot, as JSON")
    parser.add_argument("--rows", action="store_true", help="compare the rows of data files with their statistics")
    parser.add_argument("--rules", action="store_true", help="print the rules")
    options = parser.parse_args(arguments)
    if options.rules or options.table is None:
        for name, (level, statement) in RULES.items():
            print(f"{name} ({level}): {statement}")
        return 0
    findings, table = check(options.table, check_rows=options.rows)
    if options.expected and table is not None:
        print(json.dumps(Contents(table).expected(), indent=1))
    for finding in findings:
        print(finding, file=sys.stderr if options.expected else sys.stdout)
    if not options.expected:
        count = 0 if table is None else len(table.trees)
        print(f"{options.table}: {count} snapshots, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
