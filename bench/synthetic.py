"""Tables whose data files do not exist: entries made from numbers, for benches that look at metadata only.

Column ``c0`` rises from file to file, as ids and times do, so it says where a file is; the others are all over the
place. A ``Bed`` is such a table with a FileIO that counts. Leaves that nobody opens need not exist either: their rows
in the root are made from the row of one that does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.catalogs.memory import MemoryCatalog
from icefloe.codecs.json.table_metadata import encode_metadata
from icefloe.codecs.manifest.context import ManifestContext, manifest_context
from icefloe.codecs.manifest.manifest_summary import manifest_row
from icefloe.codecs.manifest.manifests import encode_leaf, encode_root, extension
from icefloe.commit.base import Base, TablePointer
from icefloe.commit.draft import Update
from icefloe.commit.loop import commit
from icefloe.commit.operations.create_table import create_table, new_metadata
from icefloe.commit.operations.property_updates import SetProperties
from icefloe.commit.operations.snapshot_updates import ExpireSnapshots
from icefloe.expr.prune.stats_eval import Match
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.io.memory import MemoryFileIO
from icefloe.model.entries import ENTRY, ContentType, Status, concat, put
from icefloe.model.metadata.retention import ExpirePolicy
from icefloe.model.metadata.snapshots import Operation, Snapshot
from icefloe.model.metadata.version_rules import rules
from icefloe.model.text.ddl import parse_ddl
from icefloe.model.text.partition_text import partition_spec
from icefloe.scan.plan import plan_scan
from icefloe.scan.tasks import TASK, Plan
from icefloe.testing.counting_io import CountingFileIO
from measure import Clock, Sample

NAME = ("db", "t")
LOCATION = "memory://wh/t"
ROWS = 1000  # of each data file
KINDS = ("bigint", "string", "double", "timestamp")
PARTITIONS = 100
MOST = 10**12  # of bounds
POSITION = "c0"  # the column that rises
SNAPSHOT_ID = 4_000_000_000_000_000_001

Ints = npt.NDArray[np.int64]


def ddl(columns: int) -> str:
    """The schema: a partition column, the rising one, and others of several kinds; all have statistics."""
    others = (f"c{i} {KINDS[i % len(KINDS)]}" for i in range(1, columns - 1))
    return ", ".join(["part int", f"{POSITION} bigint", *others])


def names_of(location: str, numbers: Ints) -> pa.Array:
    """The locations of data files, as long as real ones are."""
    made = [f"{location}/data/part={n % PARTITIONS}/{n:08d}-{n * 2_654_435_761 % 2**32:08x}.parquet" for n in numbers]
    return pa.array(made, pa.string())


def data_files(location: str, start: int, count: int, columns: int) -> pa.Table:
    """The entries of new data files ``start`` and following, with all statistics."""
    numbers = np.arange(start, start + count, dtype=np.int64)
    dice = np.random.default_rng(start)
    found = _fixed(count, content_type=int(ContentType.DATA), file_format="parquet", record_count=ROWS)
    found["location"] = names_of(location, numbers)
    found["file_size_in_bytes"] = pa.array(dice.integers(10**6, 10**8, count))
    part = pa.array(numbers % PARTITIONS, pa.int32())
    found |= _stats("p1000", part, part) | _stats("1", part, part)
    found |= _stats("2", pa.array(numbers * ROWS), pa.array(numbers * ROWS + ROWS - 1))
    for column in range(1, columns - 1):
        lower = dice.integers(0, MOST, count)
        upper = lower + dice.integers(0, MOST, count)
        found |= _column_stats(column, lower, upper, dice.integers(0, 100, count), dice)
    return pa.table(found)


def _fixed(count: int, **values: object) -> dict[str, pa.Array]:
    """All columns of entries, null but for those with one value for all rows."""
    given = {"status": int(Status.ADDED), "partition_spec_id": 0, **values}
    return {
        field.name: pa.repeat(pa.scalar(given[field.name], field.type), count)
        if field.name in given
        else pa.nulls(count, field.type)
        for field in ENTRY
    }


def _stats(key: str, lower: pa.Array, upper: pa.Array) -> dict[str, pa.Array]:
    rows, none = (pa.repeat(pa.scalar(n, pa.int64()), len(lower)) for n in (ROWS, 0))
    names = ("lower_bound", "upper_bound", "value_count", "null_value_count")
    tight = {} if key.startswith("p") else {f"tight_bounds:{key}": pa.repeat(True, len(lower))}
    return tight | {f"{name}:{key}": values for name, values in zip(names, (lower, upper, rows, none), strict=True)}


def _column_stats(column: int, lower: Ints, upper: Ints, nulls: Ints, dice: np.random.Generator) -> dict[str, pa.Array]:
    """The statistics of a column that is no position, from numbers."""
    kind, key, count = KINDS[column % len(KINDS)], str(column + 2), len(lower)
    more = {f"null_value_count:{key}": pa.array(nulls)}
    match kind:
        case "string":
            ends = [pc.utf8_lpad(pa.array(v).cast(pa.string()), 16, "u") for v in (lower, upper)]
            more[f"avg_value_size_in_bytes:{key}"] = pa.array(dice.integers(8, 40, count), pa.int32())
        case "double":
            ends = [pa.array(v / 1000.0) for v in (lower, upper)]
            more[f"nan_value_count:{key}"] = pa.repeat(pa.scalar(0, pa.int64()), count)
        case "timestamp":
            ends = [pa.array(v * 1000).cast(pa.timestamp("us", "UTC")) for v in (lower, upper)]
        case _:
            ends = [pa.array(lower), pa.array(upper)]
    return _stats(key, *ends) | more


def vectors(location: str, targets: Ints, batch: int) -> pa.Table:
    """The entries of new deletion vectors of these data files, all in one Puffin file."""
    count = len(targets)
    fixed = {"file_format": "puffin", "record_count": 10, "file_size_in_bytes": 60 * count, "dv_size_in_bytes": 56}
    found = _fixed(count, content_type=int(ContentType.POSITION_DELETES), **fixed)
    found["location"] = pa.repeat(pa.scalar(f"{location}/data/{batch:08d}-{batch * 40_503 % 2**32:08x}.puffin"), count)
    found["dv_offset"] = pa.array(4 + 56 * np.arange(count, dtype=np.int64))
    found["referenced_file"] = names_of(location, targets)
    part = pa.array(targets % PARTITIONS, pa.int32())
    return pa.table(found | _stats("p1000", part, part))


def leaf_rows(context: ManifestContext, count: int, per_leaf: int, columns: int, first: int = 0) -> pa.Table:
    """Root rows of ``count`` data leaves, each with the files after those of the leaf before it."""
    sample = data_files(context.location, first * per_leaf, min(per_leaf, 2_000), columns)
    size = len(encode_leaf(sample, context, content=ContentType.DATA_MANIFEST, spec_id=0)) * per_leaf // sample.num_rows
    one = manifest_row(
        sample,
        context,
        location="",
        size=size,
        content=ContentType.DATA_MANIFEST,
        status=Status.EXISTING,
        snapshot_id=SNAPSHOT_ID,
        sequence_number=1,
        first_row_id=0 if rules(context.format_version).row_lineage else None,
    )
    numbers = np.arange(first, first + count, dtype=np.int64)
    rows = one.take(pa.array(np.zeros(count, np.int64)))
    made: dict[str, Any] = {
        "location": pa.array([leaf_name(context, n) for n in numbers.tolist()], pa.string()),
        "lower_bound:2": pa.array(numbers * per_leaf * ROWS),
        "upper_bound:2": pa.array((numbers + 1) * per_leaf * ROWS - 1),
    }
    if rules(context.format_version).row_lineage:
        made["first_row_id"] = pa.array(numbers * per_leaf * ROWS)
    fixed = {"record_count": per_leaf, "existing_files_count": per_leaf, "existing_rows_count": per_leaf * ROWS}
    # Bounds of a leaf are near the ends, but differ from leaf to leaf, or compression would make too little of them.
    dice = np.random.default_rng(first)
    for column in range(1, columns - 1):
        lower = dice.integers(0, MOST // per_leaf + 2, count)
        upper = 2 * MOST - dice.integers(0, MOST // per_leaf + 2, count)
        nulls = dice.integers(per_leaf * 45, per_leaf * 55, count)
        made |= {
            name: v for name, v in _column_stats(column, lower, upper, nulls, dice).items() if name in rows.column_names
        }
        made[f"value_count:{column + 2}"] = per_leaf * ROWS
    for name, values in {**made, **fixed, "added_files_count": 0, "added_rows_count": 0}.items():
        rows = put(rows, name, values)
    return rows


def leaf_name(context: ManifestContext, number: int) -> str:
    """Where such a leaf is, or would be."""
    name = f"{number:08x}-5eaf-4000-8000-{number * 2_654_435_761 % 2**48:012x}-m0.{extension(context)}"
    return f"{context.location}/metadata/{name}"


def leaf_file(context: ManifestContext, number: int, per_leaf: int, columns: int) -> bytes:
    """The file of a leaf: its rows were there before the root that names it, so they have numbers of their own."""
    rows = data_files(context.location, number * per_leaf, per_leaf, columns)
    numbers: dict[str, object] = {"snapshot_id": SNAPSHOT_ID, "sequence_number": 1, "file_sequence_number": 1}
    if rules(context.format_version).row_lineage:
        numbers["first_row_id"] = pa.array((np.arange(per_leaf, dtype=np.int64) + number * per_leaf) * ROWS)
    for name, value in {**numbers, "status": int(Status.EXISTING)}.items():
        rows = put(rows, name, value)
    return encode_leaf(rows, context, content=ContentType.DATA_MANIFEST, spec_id=0)


def task_of(context: ManifestContext, number: int, per_leaf: int) -> pa.Table:
    """A data file as a plan gives it: with the leaf it stands in, and its row there."""
    return tasks_of(context, np.array([number], np.int64), per_leaf)


def tasks_of(context: ManifestContext, numbers: Ints, per_leaf: int) -> pa.Table:
    """Data files as a plan gives them: with the leaves that list them, and their rows there."""
    count, (leaves, places) = len(numbers), np.unique(numbers // per_leaf, return_inverse=True)
    fixed: dict[str, object] = {
        "file_format": "parquet",
        "file_size_in_bytes": 10**7,
        "record_count": ROWS,
        "partition_spec_id": 0,
        "sequence_number": 1,
        "match": int(Match.ALL),
    }
    known: dict[str, pa.Array] = {
        "location": names_of(context.location, numbers),
        "manifest": pa.array([leaf_name(context, n) for n in leaves.tolist()], pa.string()).take(pa.array(places)),
        "ordinal": pa.array(numbers % per_leaf),
        "deletes": pa.array([[]] * count, TASK.field("deletes").type),
    }
    if rules(context.format_version).row_lineage:
        known["first_row_id"] = pa.array(numbers * ROWS)
    for field in TASK:
        if field.name not in known:
            value = pa.scalar(fixed.get(field.name), field.type)
            known[field.name] = pa.repeat(value, count)
    return pa.table([known[field.name] for field in TASK], schema=TASK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a call took, and the files it wrote or read by kind."""

    time: Sample
    written: Mapping[str, int]  # files by kind
    bytes_written: Mapping[str, int]
    files_read: int
    bytes_read: int

    def sample(self) -> Sample:
        """The figures of metadata besides metadata.json."""
        files = {kind: n for kind, n in self.written.items() if kind != "json"}
        size = {kind: n for kind, n in self.bytes_written.items() if kind != "json"}
        return {
            **{key: round(value, 3) for key, value in self.time.items()},
            "files": sum(files.values()),
            "bytes": sum(size.values()),
            "leaves": files.get("leaf", 0),
            "root_bytes": size.get("root", 0),
            "json_files": self.written.get("json", 0),
            "json_bytes": self.bytes_written.get("json", 0),
            "files_read": self.files_read,
            "bytes_read": self.bytes_read,
        }


def kind_of(location: str) -> str:
    """What a metadata file is, by its name."""
    name = location.rsplit("/", 1)[-1]
    if name.endswith(".metadata.json"):
        return "json"
    if name.endswith(".puffin"):
        return "puffin"
    return "root" if name.startswith(("root-", "snap-")) else "leaf"


class Bed:
    """A table in a catalog in memory; files too unless another FileIO is given."""

    def __init__(self, io: CountingFileIO, catalog: MemoryCatalog, columns: int) -> None:
        self.io = io
        self.catalog = catalog
        self.columns = columns
        self.pointer = self.opened()

    def opened(self) -> TablePointer:
        """The table as a program sees it that has nothing cached."""
        return TablePointer(self.catalog, NAME, self.io)

    @property
    def base(self) -> Base:
        return self.pointer.load()

    @property
    def head(self) -> Snapshot | None:
        return self.base.metadata.current_snapshot

    def commit(self, update: Update, *, cold: bool = False) -> Cost:
        """Land an update through the real loop; ``cold`` by a program that has cached nothing but the metadata."""
        pointer = self.opened() if cold else self.pointer
        pointer.load()
        return self._measured(lambda: commit(pointer, update))[0]

    def plan(self, where: str, *, cold: bool = True) -> tuple[Cost, Plan]:
        """Plan a scan; ``cold`` by a program that has cached nothing but the metadata."""
        base = (self.opened() if cold else self.pointer).load()
        chosen, wanted = base.metadata.current_snapshot, parse_filter(where)
        return self._measured(lambda: plan_scan(base.store, base.metadata, chosen, filter=wanted))

    def _measured(self, work: Callable[[], Any]) -> tuple[Cost, Any]:
        self.io.reset()
        before = Clock.now()
        answer = work()
        time = before.until(Clock.now())
        written: dict[str, int] = {}
        size: dict[str, int] = {}
        for call in self.io.calls:
            if call.verb == "write_new":
                kind = kind_of(call.location)
                written[kind] = written.get(kind, 0) + 1
                size[kind] = size.get(kind, 0) + call.size
        cost = Cost(
            time=time,
            written=written,
            bytes_written=size,
            files_read=self.io.count("read", "read_range"),
            bytes_read=self.io.volume("read", "read_range"),
        )
        return cost, answer

    def set(self, properties: Mapping[str, str], remove: Sequence[str] = ()) -> None:
        """Set table properties, and remove others."""
        gone = tuple(name for name in remove if name not in properties)
        commit(self.pointer, SetProperties(updates=dict(properties), removals=gone))

    def forget_history(self) -> None:
        """Drop old snapshots and their roots, so that a long run needs no memory for them."""
        metadata = self.base.metadata
        old = [s for s in metadata.snapshots if s.snapshot_id != metadata.current_snapshot_id]
        if len(old) > 0:
            ids = frozenset(s.snapshot_id for s in old)
            policy = ExpirePolicy(now_ms=metadata.last_updated_ms, snapshot_ids=ids)
            commit(self.pointer, ExpireSnapshots(policy=policy, snapshot_ids=ids))
            self.io.delete([s.root for s in old if s.root is not None])
        now = self.pointer.load().pointer
        stale = [i.location for i in self.io.list(LOCATION) if kind_of(i.location) == "json" and i.location != now]
        self.io.delete(stale)

    def copy(self) -> Bed:
        """Another table with the same files."""
        files = MemoryFileIO()
        for info in self.io.list(LOCATION):
            files.write_new(info.location, self.io.inner.read(info.location))
        catalog = new_catalog()
        catalog.register(NAME, self.pointer.load().pointer)
        return Bed(CountingFileIO(files), catalog, self.columns)

    def install(self, rows: pa.Table, files: int) -> None:
        """Make a root of these rows the table's first, as if ``files`` data files had been added."""
        base = self.base
        context, lineage = manifest_context(base.metadata), base.metadata.rules.row_lineage
        root = f"{base.metadata.location}/metadata/root-{SNAPSHOT_ID}-1-synthetic.{extension(context)}"
        rows = put(concat([rows]), "ordinal", pa.array(np.arange(rows.num_rows), pa.int64()))
        data = encode_root(rows, context, snapshot_id=SNAPSHOT_ID, parent_id=None, sequence_number=1)
        snapshot = Snapshot(
            snapshot_id=SNAPSHOT_ID,
            sequence_number=1,
            timestamp_ms=base.metadata.last_updated_ms,
            root=root,
            summary=_summary(files),
            schema_id=base.metadata.current_schema_id,
            first_row_id=0 if lineage else None,
            added_rows=files * ROWS if lineage else None,
        )
        metadata = base.metadata.with_snapshot(snapshot)
        pointer = f"{base.metadata.location}/metadata/00001-synthetic.metadata.json"
        self.io.write_many([(root, data), (pointer, encode_metadata(metadata))])
        self.catalog.swap(NAME, base.pointer, pointer)


def _summary(files: int) -> Any:
    return {"operation": str(Operation.APPEND), "total-data-files": str(files), "total-records": str(files * ROWS)}


def new_catalog() -> MemoryCatalog:
    found = MemoryCatalog("bench", warehouse="memory://wh")
    found.create_namespace(NAME[:-1])
    return found


def new_bed(version: int, columns: int, properties: Mapping[str, str] | None = None) -> Bed:
    """An empty table partitioned by ``part``, with so many columns."""
    io, catalog = CountingFileIO(MemoryFileIO()), new_catalog()
    schema = parse_ddl(ddl(columns))
    metadata = new_metadata(
        location=LOCATION,
        schema=schema,
        spec=partition_spec(["part"], schema),
        properties={} if properties is None else dict(properties),
        format_version=version,
    )
    create_table(catalog, NAME, io, replace(metadata, last_updated_ms=0))
    return Bed(io, catalog, columns)


def equals(numbers: Sequence[int]) -> str:
    """A filter that exactly these data files have rows for."""
    values = ", ".join(str(n * ROWS + 7) for n in numbers)
    return f"{POSITION} = {values}" if len(numbers) == 1 else f"{POSITION} in ({values})"
