"""Bench ``colocated``: the deletion vector in an entry of its own, or in the entry of its data file.

The proposal keeps them apart; icefloe writes that. The other way is simulated here: data entries get a group with the
location, offset, size and cardinality of their vector. A small writer of this module encodes the manifests of both
ways, so that bytes compare. The plan of the colocated way reads the added columns with their leaf, and no delete leaf.
Its row delta must replace the entry of the data file, with all statistics: the old one is marked in a manifest deletion
vector and the new one goes to the root, as the files of an overwrite do. Its times are those of that commit, without
the added columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icefloe.commit.operations.overwrite import OverwriteFiles
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.model.entries import ContentType
from icefloe.tree.file_changes import FileChanges
from measure import Sample
from questions.affinity import AFFINITY, ROOT, bed_of
from questions.parts import committed, context_of, first_where, leafy_bed, number, plan_samples, some_positions, times
from report import Table
from synthetic import LOCATION, Bed, Ints, data_files, leaf_name, tasks_of, vectors
from thresholds_work import UPKEEP, History, Player

TITLE = "colocated: deletion vectors in entries of their own, or in those of their data files"
QUESTION = "Separate against colocated vectors: bytes, time of a plan and of a row delta?"
SEPARATE, IN_ROOT, COLOCATED = "separate, in delete leaves", "separate, in the root", "colocated"
WAYS = (SEPARATE, IN_ROOT, COLOCATED)
FIELD_ID = b"PARQUET:field_id"
COLUMNS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Data leaves, files of each, vectors for each of them, files of a row delta, row deltas of a history, repeats."""

    leaves: int = 10
    per_leaf: int = 5_000
    vectors: int = 1_000
    delta: int = 20
    commits: int = 60
    repeats: int = 3


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """The same vectors in each way: plans, one row delta, and a history of them."""
    dice = np.random.default_rng(1)
    targets = [some_positions(dice, sizes.per_leaf, sizes.vectors) + n * sizes.per_leaf for n in range(sizes.leaves)]
    trees = []
    for way in WAYS:
        tell(f"colocated: plans of {sizes.leaves} leaves with {sizes.vectors:,} vectors each, {way}")
        bed = _bed(way, targets, sizes)
        size = _manifest_bytes(bed)
        files = sizes.leaves * sizes.per_leaf
        trees.append({"way": way, **size, **plan_samples(bed, int(targets[0][0]), files, sizes.repeats)})
    deltas = []
    for where in ("one leaf", "anywhere"):
        tell(f"colocated: row deltas of {sizes.delta} files, {where}")
        deltas += [{"where": where, "way": way, **_delta(way, where, sizes)} for way in (IN_ROOT, COLOCATED)]
    histories = []
    for way in (IN_ROOT, COLOCATED):
        tell(f"colocated: a history of {sizes.commits} row deltas, {way}")
        histories.append({"way": way, **_history(way, sizes)})
    return {"sizes": asdict(sizes), "trees": trees, "deltas": deltas, "histories": histories}


# -- the writer of both ways


def written(table: pa.Table, content: str) -> bytes:
    """A manifest, from the columns of its Parquet file: settings that need nothing but the schema."""
    sink = pa.BufferOutputStream()
    settings: dict[str, Any] = {"use_dictionary": False, "write_statistics": False, "store_schema": False}
    with pq.ParquetWriter(sink, table.schema, compression="zstd", **settings) as writer:
        writer.write_table(table, row_group_size=max(1, table.num_rows))
        writer.add_key_value_metadata({"format-version": "4", "content": content})
    return bytes(sink.getvalue().to_pybytes())


def stored(data: bytes) -> pa.Table:
    """The columns of a manifest as its Parquet file has them, with their field ids."""
    return pq.ParquetFile(pa.BufferReader(data)).read()


def with_vectors(table: pa.Table, has: npt.NDArray[np.bool_]) -> pa.Table:
    """The columns with a group for the vectors of some rows, as one Puffin file for all of them would have them."""
    count = table.num_rows
    values = {
        "location": pa.repeat(pa.scalar("data/00000001-00009e37.puffin"), count),
        "offset": pa.array(4 + 56 * np.cumsum(has), pa.int64()),
        "size_in_bytes": pa.repeat(pa.scalar(56, pa.int64()), count),
        "cardinality": pa.repeat(pa.scalar(10, pa.int64()), count),
    }
    fields = [
        pa.field(name, array.type, metadata={FIELD_ID: str(9_901 + place)})
        for place, (name, array) in enumerate(values.items())
    ]
    group = pa.StructArray.from_arrays(list(values.values()), fields=fields, mask=pa.array(~has))
    return table.append_column(pa.field("vector", group.type, metadata={FIELD_ID: "9900"}), group)


def _bed(way: str, targets: list[Ints], sizes: Sizes) -> Bed:
    """The table in one of the ways, all its leaves written by this module's writer."""
    if way == COLOCATED:
        bed = leafy_bed(sizes.leaves, sizes.per_leaf, COLUMNS)
    else:
        bed = bed_of(AFFINITY if way == SEPARATE else ROOT, targets, sizes.leaves, sizes.per_leaf)
    context = context_of(bed)
    of_leaf = {leaf_name(context, place): mine for place, mine in enumerate(targets)} if way == COLOCATED else {}
    for info in [info for info in bed.io.list(LOCATION) if info.location.endswith("-m0.parquet")]:
        table = stored(bed.io.inner.read(info.location))
        mine = of_leaf.get(info.location)
        if mine is not None:
            table = with_vectors(table, np.isin(np.arange(table.num_rows), mine % sizes.per_leaf))
        kind = "data" if table["content_type"][0].as_py() == int(ContentType.DATA) else "delete"
        bed.io.delete([info.location])
        bed.io.write_new(info.location, written(table, kind))
    return bed


def _manifest_bytes(bed: Bed) -> dict[str, int]:
    """The bytes of data leaves, delete leaves and the root, all by the same writer."""
    found = {"data_leaf_bytes": 0, "delete_leaf_bytes": 0, "root_bytes": 0}
    for info in bed.io.list(LOCATION):
        name = info.location.rsplit("/", 1)[-1]
        if name.startswith("root-"):
            found["root_bytes"] += len(written(stored(bed.io.inner.read(info.location)), "root"))
        elif name.endswith("-m0.parquet"):
            found["delete_leaf_bytes" if "-de1e-" in name else "data_leaf_bytes"] += info.size
    return found


# -- row deltas


def _delta(way: str, where: str, sizes: Sizes) -> dict[str, Any]:
    """Delete rows of files that have no vector yet, in leaves of the table."""
    bed = leafy_bed(sizes.leaves, sizes.per_leaf, COLUMNS)
    among = sizes.per_leaf if where == "one leaf" else sizes.leaves * sizes.per_leaf
    chosen = some_positions(np.random.default_rng(2), among, sizes.delta)

    def delta(fresh: Bed) -> RowDelta | OverwriteFiles:
        return _update(way, fresh, chosen, tasks_of(context_of(fresh), chosen, sizes.per_leaf), 1)

    sample, after = committed(bed, delta, sizes.repeats, cold=True)
    return {"commit": sample, "root_bytes": root_bytes(after, way)}


def _update(way: str, bed: Bed, chosen: Ints, tasks: pa.Table, batch: int) -> RowDelta | OverwriteFiles:
    if way != COLOCATED:
        replaced = tasks.filter(pc.is_valid(tasks["dv_location"]))
        changes = FileChanges(added=vectors(LOCATION, chosen, batch), revectored=replaced)
        return RowDelta(changes=changes, read=bed.head)
    entries = pa.concat_tables([data_files(LOCATION, n, 1, bed.columns) for n in chosen.tolist()])
    return OverwriteFiles(changes=FileChanges(added=entries, removed=tasks), read=bed.head)


def root_bytes(bed: Bed, way: str) -> int:
    """The root of the head by this module's writer; colocated, its data entries have vectors."""
    head = bed.head
    if head is None or head.root is None:
        raise RuntimeError("the table has no root")
    table = stored(bed.io.inner.read(head.root))
    if way == COLOCATED:
        table = with_vectors(table, np.asarray(pc.equal(table["content_type"], int(ContentType.DATA))))
    return len(written(table, "root"))


class ColocatedPlayer(Player):
    """Row deltas replace the entries of their data files."""

    def _delta(self, history: History) -> Any:
        targets = np.sort(self.dice.choice(self.live, min(max(1, history.files // 2), len(self.live)), replace=False))
        return _update(COLOCATED, self.bed, targets, self._tasks(targets), self.batch)


def _history(way: str, sizes: Sizes) -> dict[str, Any]:
    """Row deltas of random files, with the library's thresholds; bytes by this module's writer are those of roots."""
    bed = leafy_bed(sizes.leaves, sizes.per_leaf, COLUMNS)
    bed.set({}, remove=tuple(UPKEEP))
    kind = ColocatedPlayer if way == COLOCATED else Player
    player = kind(bed, np.arange(sizes.leaves * sizes.per_leaf, dtype=np.int64))
    history = History(commits=sizes.commits, files=2 * sizes.delta, removals=0, deltas=10)
    return {**player.play(history, 3), "root_bytes": root_bytes(bed, way)}


# -- tables


def tables(result: Mapping[str, Any]) -> list[Table]:
    """Trees with their plans, single row deltas, histories."""
    return [_trees(result), _deltas(result), _histories(result)]


def _trees(result: Mapping[str, Any]) -> Table:
    rows = []
    for tree in result["trees"]:
        sizes = [tree[key] for key in ("root_bytes", "data_leaf_bytes", "delete_leaf_bytes")]
        cells = [number(value) for value in (*sizes, sum(sizes))]
        for key in ("one", "all"):
            sample: Sample = tree[key]
            cells += [number(sample["files_read"]), number(sample["bytes_read"]), f"{sample['cpu_ms']:.1f}"]
        rows.append([tree["way"], *cells])
    columns = (
        "vectors",
        "root, bytes",
        "data leaves",
        "delete leaves",
        "together",
        "plan of one file: files read",
        "bytes read",
        "CPU ms",
        "plan of all: files read",
        "bytes read",
        "CPU ms",
    )
    sizes = result["sizes"]
    note = (
        f"{sizes['leaves']} data leaves of {sizes['per_leaf']:,} files; {sizes['vectors']:,} files of each have a"
        f" vector. Statistics of {COLUMNS} columns. All manifests are encoded by the writer of this bench (plain, zstd)"
        " except the root that plans read. The one file has a vector and is found by a column that rises with the"
        f" files. Median of {sizes['repeats']}, nothing cached. The colocated way is simulated."
    )
    return Table(title="Trees and plans", columns=columns, rows=rows, note=note)


def _deltas(result: Mapping[str, Any]) -> Table:
    rows = [
        [
            f"{delta['where']}: {delta['way']}",
            number(delta["commit"]["files"]),
            number(delta["root_bytes"]),
            number(delta["commit"]["bytes"]),
            f"{delta['commit']['cpu_ms']:.1f}",
        ]
        for delta in result["deltas"]
    ]
    columns = ("files", "files written", "root, by this writer", "bytes, by the library", "CPU ms")
    note = (
        f"A row delta of {result['sizes']['delta']} files that had no vector, all in one leaf or in any. Bytes of the"
        " library do not have the added columns of the colocated way. The Puffin file is not counted."
    )
    return Table(title="One row delta", columns=columns, rows=rows, note=note)


def _histories(result: Mapping[str, Any]) -> Table:
    rows = []
    for entry in result["histories"]:
        commits, plans = entry["commits"], entry["plans"]
        rows.append(
            [
                entry["way"],
                number(commits["bytes"]),
                f"{commits['cpu_ms']:.1f}",
                number(entry["root_bytes"]),
                number(entry["leaves"]),
                number(plans["bytes_read"]),
                f"{plans['cpu_ms']:.1f}",
                number(plans["all_bytes_read"]),
                f"{plans['all_cpu_ms']:.1f}",
            ]
        )
    columns = (
        "vectors",
        "bytes of a commit",
        "CPU ms",
        "root at the end, by this writer",
        "leaves at the end",
        "plan of one file: bytes read",
        "CPU ms",
        "plan of all: bytes read",
        "CPU ms",
    )
    sizes = result["sizes"]
    note = (
        f"{sizes['commits']} row deltas of {sizes['delta']} random files each, with the library's thresholds. Commit"
        " figures are means, by the library's writer and without metadata.json; plans run three times."
    )
    return Table(title="A history of row deltas", columns=columns, rows=rows, note=note)


def answer(result: Mapping[str, Any]) -> str:
    """What colocation saves in plans and costs in row deltas."""
    own, near = (first_where(result["trees"], way=way) for way in (SEPARATE, COLOCATED))
    one, other = (first_where(result["deltas"], way=way, where="anywhere") for way in (IN_ROOT, COLOCATED))
    kept, moved = (first_where(result["histories"], way=way) for way in (IN_ROOT, COLOCATED))
    keys = ("root_bytes", "data_leaf_bytes", "delete_leaf_bytes")
    all_own, all_near = (sum(tree[key] for key in keys) for tree in (own, near))
    sizes = result["sizes"]
    return (
        f"With vectors for {sizes['vectors']:,} of the {sizes['per_leaf']:,} files of each of {sizes['leaves']} leaves,"
        f" colocated manifests have {times(all_near, all_own)} times the bytes of separate ones with"
        " affinity. A plan of"
        f" one file reads {number(near['one']['files_read'])} files and {number(near['one']['bytes_read'])}"
        " bytes instead"
        f" of {number(own['one']['files_read'])} and {number(own['one']['bytes_read'])}; a plan of all files reads"
        f" {number(near['all']['files_read'])} files instead of {number(own['all']['files_read'])}, with"
        f" {times(near['all']['cpu_ms'], own['all']['cpu_ms'])} times the CPU. A row delta of {sizes['delta']} random"
        f" files makes a root of {number(other['root_bytes'])} bytes colocated and"
        f" {number(one['root_bytes'])} separate,"
        f" as the colocated one repeats the statistics of the files. Over {sizes['commits']} such row deltas a"
        f" commit writes {times(moved['commits']['bytes'], kept['commits']['bytes'])} times the bytes and takes"
        f" {times(moved['commits']['cpu_ms'], kept['commits']['cpu_ms'])} times the CPU colocated. The colocated way is"
        " simulated."
    )
