"""Bench ``metadata_load``: what it costs to read a metadata file with many snapshots, and to commit one more.

All contenders read the same bytes in one process, in turns, so that whatever else the machine does hits all alike.
``icefloe, unknown keys`` reads the same table with a key of another program in every column, ref and sort order, which
is the slower path: nothing of what it does not know is lost.
"""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pyiceberg.table.metadata import TableMetadata as PeerMetadata
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.table.snapshots import Snapshot as PeerSnapshot
from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate, update_table_metadata

from icefloe.codecs.json.table_metadata import decode_metadata, encode_metadata
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.metadata.table_metadata import TableMetadata
from measure import Clock, Sample, median, ratio, spread
from report import Table

TITLE = "metadata_load: a metadata file with many snapshots"
LOCATION = "s3://warehouse/db/events"
WHERE = f"{LOCATION}/metadata/00001.metadata.json"
OWN, UNKNOWN, PEER = "icefloe", "icefloe, unknown keys", "pyiceberg"
CONTENDERS = (OWN, UNKNOWN, PEER)
STEPS = ("load", "add", "encode")
NEW_ID = 5
START_MS = 1_760_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much to do: the snapshots of the table, its columns, and how often each contender has its turn."""

    snapshots: int = 10_000
    columns: int = 20
    turns: int = 9


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Read, add a snapshot and write with every contender in turns; samples by contender and step."""
    plain = _document(sizes)
    texts = {OWN: _text(plain), UNKNOWN: _text(_with_unknown_keys(plain)), PEER: _text(plain)}
    tell(f"metadata_load: {len(texts[OWN]):,} bytes, {sizes.snapshots:,} snapshots, {sizes.turns} turns")
    samples: dict[str, dict[str, list[Sample]]] = {name: {step: [] for step in STEPS} for name in CONTENDERS}
    for turn in range(sizes.turns + 1):
        for name in CONTENDERS:
            taken = _peer_turn(texts[name], sizes) if name == PEER else _own_turn(texts[name], sizes)
            for step, sample in taken.items() if turn > 0 else ():  # the first turn warms caches
                samples[name][step].append({key: round(value, 4) for key, value in sample.items()})
    return {"sizes": asdict(sizes), "bytes": len(texts[OWN]), "samples": samples}


def _own_turn(data: bytes, sizes: Sizes) -> dict[str, Sample]:
    metadata, load = _timed(lambda: decode_metadata(data, where=WHERE))
    grown, add = _timed(lambda: _with_own_snapshot(metadata, sizes))
    _, encode = _timed(lambda: encode_metadata(grown))
    return {"load": load, "add": add, "encode": encode}


def _peer_turn(data: bytes, sizes: Sizes) -> dict[str, Sample]:
    metadata, load = _timed(lambda: TableMetadataUtil.parse_raw(data.decode()))
    grown, add = _timed(lambda: _with_peer_snapshot(metadata, sizes))
    _, encode = _timed(lambda: grown.model_dump_json().encode())
    return {"load": load, "add": add, "encode": encode}


def _timed(work: Callable[[], Any]) -> tuple[Any, Sample]:
    start = Clock.now()
    result = work()
    return result, start.until(Clock.now())


def _with_own_snapshot(metadata: TableMetadata, sizes: Sizes) -> TableMetadata:
    snapshot = Snapshot(
        snapshot_id=NEW_ID,
        parent_id=metadata.current_snapshot_id,
        sequence_number=sizes.snapshots + 1,
        timestamp_ms=START_MS + sizes.snapshots,
        root=f"{LOCATION}/metadata/snap-{NEW_ID}.avro",
        summary={"operation": "append"},
        schema_id=0,
    )
    return metadata.with_snapshot(snapshot, former_location=WHERE)


def _with_peer_snapshot(metadata: PeerMetadata, sizes: Sizes) -> PeerMetadata:
    snapshot = PeerSnapshot.model_validate(
        {
            "snapshot-id": NEW_ID,
            "parent-snapshot-id": metadata.current_snapshot_id,
            "sequence-number": sizes.snapshots + 1,
            "timestamp-ms": START_MS + sizes.snapshots,
            "manifest-list": f"{LOCATION}/metadata/snap-{NEW_ID}.avro",
            "summary": {"operation": "append"},
            "schema-id": 0,
        }
    )
    head = SetSnapshotRefUpdate.model_validate({"ref-name": "main", "type": "branch", "snapshot-id": NEW_ID})
    return update_table_metadata(metadata, (AddSnapshotUpdate(snapshot=snapshot), head), metadata_location=WHERE)


def _text(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def _document(sizes: Sizes) -> dict[str, Any]:
    """A table of version 2 after many appends, as Spark would leave it."""
    numbers = random.Random(sizes.snapshots)
    ids = [numbers.getrandbits(62) + 100 for _ in range(sizes.snapshots)]
    columns = [{"id": i, "name": f"column_{i}", "required": False, "type": "long"} for i in range(1, sizes.columns + 1)]
    files = (f"{LOCATION}/metadata/{i:05d}-{uuid.UUID(int=i)}.metadata.json" for i in range(100))
    return {
        "format-version": 2,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": LOCATION,
        "last-sequence-number": len(ids),
        "last-updated-ms": START_MS + len(ids),
        "last-column-id": sizes.columns,
        "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": columns}],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {"owner": "bench", "write.parquet.compression-codec": "zstd"},
        "current-snapshot-id": ids[-1],
        "refs": {"main": {"snapshot-id": ids[-1], "type": "branch"}},
        "snapshots": [_snapshot(ids, index) for index in range(len(ids))],
        "snapshot-log": [{"timestamp-ms": START_MS + i, "snapshot-id": each} for i, each in enumerate(ids)],
        "metadata-log": [{"timestamp-ms": START_MS + i, "metadata-file": file} for i, file in enumerate(files)],
    }


def _snapshot(ids: list[int], index: int) -> dict[str, Any]:
    parent = {"parent-snapshot-id": ids[index - 1]} if index > 0 else {}
    added = {"added-data-files": "1", "added-records": "1000", "added-files-size": "12345"}
    deletes = {f"total-{kind}": "0" for kind in ("delete-files", "position-deletes", "equality-deletes")}
    total = {"total-data-files": str(index), "total-records": str(index * 1000), "total-files-size": str(index * 12345)}
    return {
        "sequence-number": index + 1,
        "snapshot-id": ids[index],
        **parent,
        "timestamp-ms": START_MS + index,
        "summary": {"operation": "append", **added, "changed-partition-count": "1", **total, **deletes},
        "manifest-list": f"{LOCATION}/metadata/snap-{ids[index]}-1-{uuid.UUID(int=index)}.avro",
        "schema-id": 0,
    }


def _with_unknown_keys(document: Mapping[str, Any]) -> dict[str, Any]:
    note = {"x-note": {"by": "another program", "at": [1.50, None]}}
    schemas = [{**s, "fields": [{**field, **note} for field in s["fields"]]} for s in document["schemas"]]
    refs = {name: {**ref, **note} for name, ref in document["refs"].items()}
    return {**document, **note, "schemas": schemas, "refs": refs}


def tables(result: Mapping[str, Any]) -> list[Table]:
    """The cost of each step, and the loading time as a multiple of ours."""
    sizes, samples = result["sizes"], result["samples"]
    own = median(samples[OWN]["load"], "wall_ms")
    rows = [
        [
            name,
            *(spread(samples[name][step], "wall_ms") for step in STEPS),
            ratio(median(samples[name]["load"], "wall_ms"), own),
        ]
        for name in CONTENDERS
    ]
    note = (
        f"The file has {sizes['snapshots']:,} snapshots and {result['bytes']:,} bytes. Load decodes the bytes to"
        " table metadata and checks it. Add creates the metadata after one more append. Encode converts it to bytes."
        " icefloe keeps the JSON text of the snapshots and parses only the current one."
    )
    return [
        Table(
            title=f"Metadata of {sizes['snapshots']:,} snapshots, median of {sizes['turns']} turns, wall ms",
            columns=("", "load", "add a snapshot", "encode", "load, times icefloe's"),
            rows=rows,
            note=note,
        )
    ]
