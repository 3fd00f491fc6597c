"""Bench ``manifests``: Avro manifests decoded and encoded, with statistics of 10 columns.

icefloe and pyiceberg read the same file of many records in each block, as icefloe and Apache Iceberg write them;
fastavro reads it too, into dictionaries. Each gives what its planner works on: icefloe an entry table, pyiceberg
``ManifestEntry`` objects. Encoding starts from the same form. What is compared is the rate.
"""

from __future__ import annotations

import gc
import io
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import ManifestContent, ManifestEntry, ManifestFile, write_manifest
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema as PeerSchema
from pyiceberg.types import LongType, NestedField, StringType

from icefloe.codecs.manifest.avro import decode_manifest, encode_manifest
from icefloe.codecs.manifest.context import ManifestContext
from icefloe.model.entries import ENTRY, ContentType, Measure, StatKeys, column_key
from icefloe.model.partition.spec import UNPARTITIONED
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import LONG, STRING, Field
from measure import Clock, Sample, median, spread
from report import Table

TITLE = "manifests: Avro manifests decoded and encoded"
REPEATS = 5
COLUMNS, TEXTS = 10, 4
SNAPSHOT_ID = 8123456789012345678


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How many entries the manifest has, and how many of them the slower programs read and write."""

    entries: int = 50_000
    peer_entries: int = 5_000


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Decode and encode several times with each; samples by work and contender."""
    tell(f"manifests: making {sizes.entries:,} entries")
    entries = make_entries(sizes.entries)
    whole, part = encode(entries), encode(entries.slice(0, sizes.peer_entries))
    one = frozenset({column_key(1)})
    with tempfile.TemporaryDirectory() as folder:
        peer = Peer(Path(folder), part)
        contenders: dict[str, tuple[Callable[[], object], int]] = {
            "decode: icefloe": (lambda: decode(whole), sizes.entries),
            "decode: icefloe, statistics of 1 column": (lambda: decode(whole, one), sizes.entries),
            "decode: fastavro": (lambda: list(fastavro.reader(io.BytesIO(part))), sizes.peer_entries),
            "decode: pyiceberg": (peer.read, sizes.peer_entries),
            "encode: icefloe": (lambda: encode(entries), sizes.entries),
            "encode: fastavro": (lambda: encode_by_fastavro(part), sizes.peer_entries),
            "encode: pyiceberg": (peer.write, sizes.peer_entries),
        }
        samples: dict[str, list[Sample]] = {name: [] for name in contenders}
        for repeat in range(REPEATS):
            tell(f"manifests: round {repeat + 1} of {REPEATS}")
            for name, (work, count) in contenders.items():
                samples[name].append(_timed(work, count))
        ours, theirs = decode(part)["location"].to_pylist(), [entry.data_file.file_path for entry in peer.read()]
    if ours != theirs:
        raise RuntimeError("the two read different files")
    return {"sizes": asdict(sizes), "samples": samples, "bytes_per_entry": round(len(whole) / sizes.entries)}


def _timed(work: Callable[[], object], count: int) -> Sample:
    gc.collect()
    start = Clock.now()
    work()
    sample = start.until(Clock.now())
    rate = count / sample["cpu_ms"] * 1000
    return {key: round(value, 3) for key, value in sample.items()} | {
        "entries": count,
        "entries_per_second": round(rate),
    }


# -- the same entries for all

FIELDS = tuple(Field(i + 1, f"c{i}", STRING if i >= COLUMNS - TEXTS else LONG) for i in range(COLUMNS))
PEER_SCHEMA = PeerSchema(*(NestedField(f.id, f.name, StringType() if f.type == STRING else LongType()) for f in FIELDS))
CONTEXT = ManifestContext(
    location="file:///wh/t",
    format_version=2,
    schema=Schema(fields=FIELDS),
    types={field.id: field.type for field in FIELDS},
    specs={0: UNPARTITIONED},
    partition_types={},
)


def make_entries(size: int) -> pa.Table:
    """Entries of data files with sizes, counts and bounds of every column."""
    random = np.random.default_rng(1)
    names = random.integers(0, 1 << 60, size)
    paths = [f"s3://bucket/warehouse/db/t/data/day={n % 30}/part-{n:08d}-{x:x}.parquet" for n, x in enumerate(names)]
    fixed: dict[str, object] = {
        "content_type": 0,
        "file_format": "parquet",
        "status": 1,
        "snapshot_id": SNAPSHOT_ID,
        "partition_spec_id": 0,
        "sort_order_id": 0,
    }
    columns = {f.name: pa.repeat(pa.scalar(fixed.get(f.name), f.type), size) for f in ENTRY}
    columns["location"] = pa.array(paths)
    columns["record_count"] = pa.array(random.integers(1, 10**6, size))
    columns["file_size_in_bytes"] = pa.array(random.integers(1, 10**9, size))
    columns["split_offsets"] = pa.array([[4]] * size, pa.list_(pa.int64()))
    for field in FIELDS:
        columns[f"{Measure.COLUMN_SIZE}:{field.id}"] = pa.array(random.integers(0, 10**7, size))
        columns[f"value_count:{field.id}"] = columns["record_count"]
        columns[f"null_value_count:{field.id}"] = pa.array(random.integers(0, 100, size))
        low = random.integers(0, 10**12, size)
        for side, values in (("lower", low), ("upper", low + 10**6)):
            texts = pa.array(values).cast(pa.string())
            columns[f"{side}_bound:{field.id}"] = texts if field.type == STRING else pa.array(values)
    return pa.table(columns)


def encode(entries: pa.Table) -> bytes:
    return encode_manifest(entries, CONTEXT, content=ContentType.DATA_MANIFEST, spec_id=0)


def decode(data: bytes, wanted: StatKeys | None = None) -> pa.Table:
    return decode_manifest(data, CONTEXT, where="bench", wanted=wanted)


def encode_by_fastavro(data: bytes) -> bytes:
    """The records of a file, written again."""
    reader = fastavro.reader(io.BytesIO(data))
    sink = io.BytesIO()
    fastavro.writer(sink, reader.writer_schema, list(reader), codec="deflate")
    return sink.getvalue()


class Peer:
    """The same manifest as pyiceberg sees it."""

    def __init__(self, folder: Path, data: bytes) -> None:
        self._io = PyArrowFileIO()
        self._folder = folder
        path = folder / "m.avro"
        path.write_bytes(data)
        self._file = ManifestFile.from_args(
            manifest_path=f"file://{path}",
            manifest_length=len(data),
            partition_spec_id=0,
            content=ManifestContent.DATA,
            sequence_number=1,
            min_sequence_number=1,
            added_snapshot_id=SNAPSHOT_ID,
        )
        self._entries = self.read()

    def read(self) -> list[ManifestEntry]:
        return self._file.fetch_manifest_entry(self._io)

    def write(self) -> None:
        output = self._io.new_output(f"file://{self._folder}/written.avro")
        with write_manifest(2, UNPARTITIONED_PARTITION_SPEC, PEER_SCHEMA, output, SNAPSHOT_ID, "deflate") as writer:
            for entry in self._entries:
                writer.add_entry(entry)


def tables(result: Mapping[str, Any]) -> list[Table]:
    """Rates of all, and how they compare with pyiceberg's."""
    samples = result["samples"]
    rows = []
    for name, found in samples.items():
        base = median(samples[f"{name.partition(':')[0]}: pyiceberg"], "entries_per_second")
        rate = median(found, "entries_per_second")
        rows.append(
            [
                name,
                f"{found[0]['entries']:,.0f}",
                spread(found, "wall_ms"),
                spread(found, "entries_per_second"),
                f"{rate / base:,.1f}",
            ]
        )
    note = (
        f"Rates are per second of CPU. Column sizes, value counts, null counts and bounds of {COLUMNS} columns,"
        f" {result['bytes_per_entry']} bytes for each entry, deflate. fastavro decodes to dictionaries. Its encoding"
        " rate includes reading them."
    )
    columns = ("", "entries", "wall ms", "entries per second", "times pyiceberg's rate")
    return [Table(title=f"Median of {REPEATS} rounds", columns=columns, rows=rows, note=note)]
