"""Bench ``change_detection``: three ways to show in a root which entries of a leaf a snapshot removed.

1. Compare roots: the root has one vector of all removed entries; the change is the difference to the parent's vector.
2. State and change: the root has the vector of what was removed before, and one of what this snapshot removed. The
   state is inline, or in a Puffin file that each commit writes again.
3. Old and new: the root has the new vector of all removed entries, and the old one with status DELETED. icefloe does
   this.

Roots of all three are made by hand and encoded by the real codec. The reader here is the same small one for all, so
that times compare; what it finds for the third is compared with what the library finds. The second table is about the
proposal's scenario of a leaf that loses its last entries.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.codecs.manifest.manifests import decode_leaf, decode_root, encode_root
from icefloe.codecs.puffin.deletion_vector import decode_dv
from icefloe.model.entries import ContentType, Status, concat, entries, of_type, put
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.tree.snapshot_changes import snapshot_changes
from measure import Clock, Sample, check_same
from questions.parts import Row, context_of, first_where, number, some_positions, times, vector_row, write_leaves
from report import Table
from synthetic import LOCATION, SNAPSHOT_ID, Bed, leaf_name, leaf_rows, new_bed
from thresholds_work import STILL, average

TITLE = "change_detection: which entries a snapshot removed, from its root"
QUESTION = "The three encodings of change detection: bytes in the root, files opened, time?"
COMPARE, STATE_INLINE, STATE_FILE, BOTH = (
    "1 compare roots",
    "2 state and change, inline",
    "2 state in a file, change inline",
    "3 old and new",
)
ENCODINGS = (COMPARE, STATE_INLINE, STATE_FILE, BOTH)
CASES = ((0, 1), (100, 1), (1_000, 1), (1_000, 100), (5_000, 1), (5_000, 1_000))  # dead before, removed now
TOUCHED = (1, 10)
NEW_ID = SNAPSHOT_ID + 1
PARENT, ROOT, STATE = (f"{LOCATION}/metadata/{name}" for name in ("root-1.parquet", "root-2.parquet", "state.puffin"))
COLUMNS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Leaves of the table, files of a leaf, and how often a change is read."""

    leaves: int = 20
    per_leaf: int = 10_000
    repeats: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What was removed from each leaf before, and what the snapshot removes."""

    before: Mapping[str, BitMap64]
    now: Mapping[str, BitMap64]


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Every encoding of every case, and the scenario of the last entries."""
    bed = new_bed(4, COLUMNS, STILL)
    context = context_of(bed)
    leaves = leaf_rows(context, sizes.leaves, sizes.per_leaf, COLUMNS)
    bed.install(leaves, sizes.leaves * sizes.per_leaf)
    write_leaves(bed, max(TOUCHED), sizes.per_leaf)
    found = []
    for touched in TOUCHED:
        for dead, removed in CASES:
            if touched > sizes.leaves or dead + removed > sizes.per_leaf:
                continue
            tell(f"change_detection: {removed:,} removed after {dead:,}, in each of {touched} leaves")
            case = _case([leaf_name(context, n) for n in range(touched)], dead, removed, sizes.per_leaf)
            read = {name: _measured(bed, leaves, case, name, sizes) for name in ENCODINGS}
            check_same({name: entry.pop("changed") for name, entry in read.items()}, "files that were removed")
            found += [
                {"encoding": name, "touched": touched, "dead": dead, "removed": removed, **entry}
                for name, entry in read.items()
            ]
    tell("change_detection: the last entries of a leaf")
    return {"sizes": asdict(sizes), "changes": found, "last": _last_entries(bed, leaves, sizes)}


def _case(touched: Sequence[str], dead: int, removed: int, per_leaf: int) -> Case:
    dice = np.random.default_rng(dead + removed)
    before, now = {}, {}
    for leaf in touched:
        chosen = dice.permutation(some_positions(dice, per_leaf, dead + removed))
        before[leaf], now[leaf] = BitMap64(chosen[:dead]), BitMap64(chosen[dead:])
    return Case(before=before, now=now)


def _vectors(positions: Mapping[str, BitMap64], status: Status, snapshot_id: int) -> list[Row]:
    return [vector_row(leaf, dead, status, snapshot_id) for leaf, dead in positions.items() if len(dead) > 0]


def _rows(case: Case, encoding: str) -> tuple[list[Row], bytes]:
    """The vectors in the root of one encoding, and the bytes of a file beside it."""
    together = {leaf: case.before[leaf] | now for leaf, now in case.now.items()}
    if encoding == COMPARE:
        return _vectors(together, Status.ADDED, NEW_ID), b""
    if encoding == BOTH:
        return [*_vectors(case.before, Status.DELETED, NEW_ID), *_vectors(together, Status.ADDED, NEW_ID)], b""
    state, change = _vectors(case.before, Status.EXISTING, SNAPSHOT_ID), _vectors(case.now, Status.ADDED, NEW_ID)
    if encoding == STATE_INLINE:
        return [*state, *change], b""
    data = bytearray(b"PFA1")
    for row in state:
        blob = row.pop("dv_inline_content")
        row |= {"location": STATE, "dv_offset": len(data), "dv_size_in_bytes": len(blob), "file_size_in_bytes": 10**6}
        data += blob
    return [*state, *change], bytes(data) if len(state) > 0 else b""


def _encoded(bed: Bed, leaves: pa.Table, vectors: list[Row]) -> bytes:
    rows = concat([leaves, entries(vectors)]) if len(vectors) > 0 else leaves
    rows = put(rows, "ordinal", pa.array(np.arange(rows.num_rows), pa.int64()))
    return encode_root(rows, context_of(bed), snapshot_id=NEW_ID, parent_id=SNAPSHOT_ID, sequence_number=2)


def _measured(bed: Bed, leaves: pa.Table, case: Case, encoding: str, sizes: Sizes) -> dict[str, Any]:
    """Write the root of an encoding and that of its parent, then read what changed."""
    vectors, puffin = _rows(case, encoding)
    files = {PARENT: _encoded(bed, leaves, _vectors(case.before, Status.EXISTING, SNAPSHOT_ID))}
    files |= {ROOT: _encoded(bed, leaves, vectors), STATE: puffin}
    bed.io.delete([location for location in files if bed.io.inner.exists(location)])
    bed.io.write_many(list(files.items()))
    samples: list[Sample] = []
    for _ in range(sizes.repeats + 1):
        gc.collect()
        bed.io.reset()
        before = Clock.now()
        changed = _changed(bed, encoding)
        time = before.until(Clock.now())
        read = {call.location for call in bed.io.calls}
        samples.append({**time, "files_read": len(read), "bytes_read": bed.io.volume("read", "read_range")})
    if encoding == BOTH:
        check_same({"here": changed, "library": _by_library(bed)}, "files that were removed")
    later = {leaf: case.before[leaf] | now for leaf, now in case.now.items()}
    quiet = _vectors(later, Status.EXISTING, NEW_ID) if encoding in (COMPARE, BOTH) else vectors
    return {
        "changed": changed,
        "root_bytes": len(files[ROOT]),
        "file_bytes": len(puffin),
        "next_root_bytes": len(_encoded(bed, leaves, quiet)),
        "read": average(samples[1:]),
    }


def _changed(bed: Bed, encoding: str) -> list[str]:
    """The files that the snapshot removed, by their names."""
    vectors = _read_vectors(bed, ROOT)
    if encoding == COMPARE:
        old = _positions(_read_vectors(bed, PARENT), Status.EXISTING)
        removed = {leaf: dead - old.get(leaf, BitMap64()) for leaf, dead in _positions(vectors, Status.ADDED).items()}
    elif encoding == BOTH:
        old = _positions(vectors, Status.DELETED)
        removed = {leaf: dead - old.get(leaf, BitMap64()) for leaf, dead in _positions(vectors, Status.ADDED).items()}
    else:
        removed = _positions(vectors, Status.ADDED)
    found: list[str] = []
    for leaf, dead in removed.items():
        data, context = bed.io.read(leaf), context_of_root(bed)
        rows = decode_leaf(data, context, where=leaf, content=ContentType.DATA_MANIFEST, spec_id=0, wanted=frozenset())
        found += rows["location"].take(pa.array(dead.to_array())).to_pylist()
    return sorted(found)


def context_of_root(bed: Bed) -> Any:
    """The context of the table; its metadata is cached."""
    return bed.pointer.load().store.context


def _read_vectors(bed: Bed, root: str) -> pa.Table:
    rows = decode_root(bed.io.read(root), context_of_root(bed), where=root)
    return rows.filter(of_type(rows, ContentType.MANIFEST_DV))


def _positions(vectors: pa.Table, status: Status) -> dict[str, BitMap64]:
    chosen = vectors.filter(pc.equal(vectors["status"], int(status)))
    pairs = zip(chosen["referenced_file"].to_pylist(), chosen["dv_inline_content"].to_pylist(), strict=True)
    return {leaf: decode_dv(blob, where=leaf, cardinality=None) for leaf, blob in pairs}


def _by_library(bed: Bed) -> list[str]:
    base = bed.opened().load()
    head = base.metadata.current_snapshot
    if head is None:
        raise RuntimeError("the table has no snapshot")
    snapshot: Snapshot = replace(head, snapshot_id=NEW_ID, parent_id=SNAPSHOT_ID, sequence_number=2, root=ROOT)
    changes = snapshot_changes(base.store, base.metadata, snapshot, frozenset())
    removed = changes.filter(pc.equal(changes["status"], int(Status.DELETED)))
    return sorted(removed["location"].to_pylist())


def _last_entries(bed: Bed, leaves: pa.Table, sizes: Sizes) -> list[dict[str, Any]]:
    """Root bytes when a leaf of which seven in ten entries are dead loses the others."""
    context, found = context_of(bed), []
    leaf, others = leaf_name(context, 0), leaves.slice(1)
    first = leaves.slice(0, 1)
    gone = put(put(first, "status", int(Status.DELETED)), "snapshot_id", NEW_ID)
    dice = np.random.default_rng(7)
    for count in (10, 1_000, sizes.per_leaf):
        everything = BitMap64(np.arange(count))
        dead = BitMap64(some_positions(dice, count, count * 7 // 10))
        rest = everything - dead
        ways = {
            "leaf kept, full vector added, old one DELETED": (
                first,
                [
                    vector_row(leaf, dead, Status.DELETED, NEW_ID),
                    vector_row(leaf, everything, Status.ADDED, NEW_ID),
                ],
            ),
            "option 1: leaf and its vector DELETED": (gone, [vector_row(leaf, dead, Status.DELETED, NEW_ID)]),
            "option 2: leaf DELETED, vector of the others added": (
                gone,
                [vector_row(leaf, rest, Status.ADDED, NEW_ID)],
            ),
        }
        for name, (row, vectors) in ways.items():
            size = len(_encoded(bed, concat([row, others]), vectors))
            blobs = sum(len(vector["dv_inline_content"]) for vector in vectors)
            found.append({"way": name, "entries": count, "root_bytes": size, "blob_bytes": blobs})
    return found


def tables(result: Mapping[str, Any]) -> list[Table]:
    """The three encodings, and the last entries of a leaf."""
    return [_encodings(result), _last(result)]


def _encodings(result: Mapping[str, Any]) -> Table:
    rows = [
        [
            f"{e['removed']:,} after {e['dead']:,}, {e['touched']} leaves: {e['encoding']}",
            number(e["root_bytes"]),
            number(e["file_bytes"]),
            number(e["next_root_bytes"]),
            number(e["read"]["files_read"]),
            number(e["read"]["bytes_read"]),
            f"{e['read']['cpu_ms']:.1f}",
        ]
        for e in result["changes"]
    ]
    columns = (
        "entries removed from each leaf",
        "bytes of the root",
        "bytes beside it",
        "root of the next commit",
        "files opened",
        "bytes read",
        "CPU ms",
    )
    sizes = result["sizes"]
    note = (
        f"A root of {sizes['leaves']} leaves of {sizes['per_leaf']:,} files, statistics of {COLUMNS} columns; entries"
        " at random positions. Files opened, bytes read and CPU are those to name the removed files, which needs the"
        f" leaves too; median of {sizes['repeats']}, nothing cached. The next commit changes nothing here, and keeps"
        " state and change apart."
    )
    return Table(title="Three encodings", columns=columns, rows=rows, note=note)


def _last(result: Mapping[str, Any]) -> Table:
    rows = [
        [f"{e['entries']:,} entries: {e['way']}", number(e["root_bytes"]), number(e["blob_bytes"])]
        for e in result["last"]
    ]
    columns = ("leaf", "bytes of the root", "bytes of the vectors")
    note = (
        "Seven in ten entries of the leaf are dead, and the snapshot removes the others. The first way is what icefloe"
        " writes; the two options are those of the proposal's page on change detection, which icefloe reads."
    )
    return Table(title="A leaf that loses its last entries", columns=columns, rows=rows, note=note)


def answer(result: Mapping[str, Any]) -> str:
    """Bytes and files of the encodings in the heaviest case with one leaf."""
    mine = [e for e in result["changes"] if e["touched"] == min(TOUCHED)]
    heavy = max(mine, key=lambda e: (e["dead"], e["removed"]))
    by_name = {
        name: first_where(mine, encoding=name, dead=heavy["dead"], removed=heavy["removed"]) for name in ENCODINGS
    }
    compare, inline, apart, both = (by_name[name] for name in ENCODINGS)
    smallest = min(by_name.values(), key=lambda e: e["root_bytes"] + e["file_bytes"])["encoding"]
    last = {e["way"]: e for e in result["last"] if e["entries"] == result["sizes"]["per_leaf"]}
    own, *options = last.values()
    return (
        f"When {heavy['removed']:,} entries are removed from one leaf of {result['sizes']['per_leaf']:,} that lost"
        f" {heavy['dead']:,} before: comparing roots takes a root of {number(compare['root_bytes'])} bytes and opens"
        f" {number(compare['read']['files_read'])} files; state and change inline take {number(inline['root_bytes'])}"
        f" bytes and {number(inline['read']['files_read'])} files; the state in a file takes"
        f" {number(apart['root_bytes'])} bytes in the root, {number(apart['file_bytes'])} beside it, and every commit"
        f" that removes entries again writes that file too; old and new, which icefloe writes, take"
        f" {number(both['root_bytes'])} bytes and open {number(both['read']['files_read'])} files, but only for one"
        f" snapshot: the next root has {number(both['next_root_bytes'])} bytes against"
        f" {number(inline['next_root_bytes'])}. The fewest bytes of this commit has: {smallest}. The last entries of a"
        f" leaf of {own['entries']:,} take {number(own['root_bytes'])} bytes as icefloe writes them, and"
        f" {number(options[0]['root_bytes'])} and {number(options[1]['root_bytes'])} bytes with the two options"
        f" ({times(own['root_bytes'], min(o['root_bytes'] for o in options))} times the smaller one)."
    )
