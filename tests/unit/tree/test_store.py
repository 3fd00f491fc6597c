from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest

from icefloe.codecs.manifest.context import ManifestContext
from icefloe.codecs.manifest.manifests import encode_leaf
from icefloe.errors import FormatError, NoSuchFile
from icefloe.io.memory import MemoryFileIO
from icefloe.model.entries import ContentType, StatKey, column_key, stat_keys
from icefloe.model.schema.types import LONG
from icefloe.testing.counting_io import CountingFileIO
from icefloe.tree.disk_cache import DiskCache
from icefloe.tree.store import LeafRequest, ManifestCache, ManifestStore, held_bytes
from support.manifests.sample import IDS, column_stats, context, data_file, mixed_partition, table
from support.metadata_tree import stored_leaf

V2 = context(2)
LEAF = "memory://wh/m0.avro"
ID, NAME = column_key(IDS["id"]), column_key(IDS["name"])


def leaf_bytes(count: int = 60) -> bytes:
    rows = [data_file(n, **column_stats("id", n, n), **column_stats("name", f"{n}", f"{n}")) for n in range(count)]
    return encode_leaf(table(rows), V2, content=ContentType.DATA_MANIFEST, spec_id=0)


def storage(**files: bytes) -> CountingFileIO:
    io = CountingFileIO(MemoryFileIO())
    for name, data in files.items():
        io.write_new(f"memory://wh/{name}.avro", data)
    return io


def store_of(
    io: CountingFileIO, *, cache: ManifestCache | None = None, disk: DiskCache | None = None, at: ManifestContext = V2
) -> ManifestStore:
    return ManifestStore(io, at, ManifestCache() if cache is None else cache, disk)


def reads(io: CountingFileIO) -> int:
    return io.count("read")


def keys(rows: pa.Table) -> set[StatKey]:
    return set(stat_keys(rows))


def test_a_leaf_is_read_once() -> None:
    io = storage(m0=leaf_bytes())
    store = store_of(io)
    assert stored_leaf(store, LEAF) is stored_leaf(store, LEAF)
    assert reads(io) == 1


def test_a_leaf_with_more_statistics_serves_who_needs_fewer() -> None:
    io = storage(m0=leaf_bytes())
    store = store_of(io)
    assert keys(stored_leaf(store, LEAF)) == {ID, NAME}
    assert keys(stored_leaf(store, LEAF, wanted=frozenset({ID}))) == {ID, NAME}
    assert reads(io) == 1


def test_a_leaf_with_fewer_statistics_is_read_again_and_then_has_both() -> None:
    io = storage(m0=leaf_bytes())
    store = store_of(io)
    assert keys(stored_leaf(store, LEAF, wanted=frozenset({ID}))) == {ID}
    assert keys(stored_leaf(store, LEAF, wanted=frozenset())) == {ID}
    assert reads(io) == 1
    assert keys(stored_leaf(store, LEAF, wanted=frozenset({NAME}))) == {ID, NAME}
    assert keys(stored_leaf(store, LEAF, wanted=frozenset({ID, NAME}))) == {ID, NAME}
    assert reads(io) == 2


def test_another_shape_of_the_table_is_another_entry() -> None:
    io = storage(m0=leaf_bytes())
    cache = ManifestCache()
    one = store_of(io, cache=cache)
    stored_leaf(one, LEAF)
    promoted = replace(V2, types={**V2.types, IDS["small"]: LONG})
    assert promoted.schema.schema_id == V2.schema.schema_id
    stored_leaf(one.with_context(promoted), LEAF)
    assert reads(io) == 2
    stored_leaf(one.with_context(replace(V2)), LEAF)
    assert reads(io) == 2


def without_header(data: bytes) -> bytes:
    """A manifest whose file metadata says neither its partition spec nor its kind."""
    reader = fastavro.reader(BytesIO(data))
    records = list(reader)
    kept = {"format-version": reader.metadata["format-version"]}
    changed = BytesIO()
    fastavro.writer(changed, json.loads(reader.metadata["avro.schema"]), records, metadata=kept)
    return changed.getvalue()


@pytest.mark.parametrize("on_disk", [False, True])
def test_what_a_caller_says_of_a_leaf_does_not_decide_for_the_next_caller(tmp_path: Path, on_disk: bool) -> None:
    rows = table([data_file(n, **mixed_partition()) for n in range(3)])
    data = without_header(encode_leaf(rows, V2, content=ContentType.DATA_MANIFEST, spec_id=1))
    io = storage(m0=data)
    store = store_of(io, disk=DiskCache(str(tmp_path)) if on_disk else None)
    size = len(data)
    assert stored_leaf(store, LEAF, size=size)["partition_spec_id"].to_pylist() == [0, 0, 0]
    found = stored_leaf(store, LEAF, spec_id=1, size=size)
    assert found["partition_spec_id"].to_pylist() == [1, 1, 1]
    assert found["lower_bound:p1002"].to_pylist() == [3, 3, 3]
    with pytest.raises(FormatError, match="content 0 does not belong in a manifest of deletes"):
        stored_leaf(store, LEAF, content=ContentType.DELETE_MANIFEST, spec_id=1, size=size)
    again = store_of(io, disk=DiskCache(str(tmp_path)) if on_disk else None)
    assert stored_leaf(again, LEAF, spec_id=1, size=size).equals(found)


def test_the_least_recently_used_leaf_goes_first() -> None:
    io = storage(m0=leaf_bytes(), m1=leaf_bytes(), m2=leaf_bytes())
    size = held_bytes(stored_leaf(store_of(io), LEAF))
    store = store_of(io, cache=ManifestCache(2 * size + 100))
    for number in (0, 1, 0, 2, 0, 1):
        stored_leaf(store, f"memory://wh/m{number}.avro")
    assert reads(io) == 1 + 4


def test_deleted_manifests_are_dropped() -> None:
    io = storage(m0=leaf_bytes(), m1=leaf_bytes())
    store = store_of(io)
    sizes = [held_bytes(stored_leaf(store, f"memory://wh/m{n}.avro")) for n in range(2)]
    assert store.cache.held_bytes == sum(sizes)
    store.cache.forget(pa.chunked_array([[LEAF, "memory://wh/other"]]))
    assert store.cache.held_bytes == sizes[1]
    stored_leaf(store, LEAF)
    assert reads(io) == 3


MEASURED = """
import gc, sys
import pyarrow as pa
from icefloe.tree.store import ManifestCache
def resident():
    with open("/proc/self/statm") as sizes:
        return int(sizes.read().split()[1]) * 4096
columns, cache = int(sys.argv[1]), ManifestCache()
def put(first, count):
    for n in range(first, first + count):
        schema = pa.schema([pa.field(f"lower_bound:{c}", pa.int64()) for c in range(columns)])
        cache.put((f"m{n}", 0, None), pa.table([pa.array([n, n], pa.int64()) for _ in range(columns)], schema=schema))
put(0, 100)  # memory that every process takes
gc.collect()
counted, before = cache.held_bytes, resident()
put(1_000, 1_000)
print((cache.held_bytes - counted) / (resident() - before))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="measures the memory of a process")
@pytest.mark.parametrize("columns", [40, 130])
def test_the_cache_counts_the_memory_that_small_manifests_take(columns: int) -> None:
    """It counted the buffers alone, a few percent of it: a process with many small manifests grew without a limit."""
    done = subprocess.run([sys.executable, "-c", MEASURED, str(columns)], capture_output=True, text=True, check=True)
    assert 0.6 < float(done.stdout) < 1.7, done.stdout


def test_several_leaves_come_in_order_and_errors_where_they_belong() -> None:
    io = storage(**{f"m{n}": leaf_bytes(50 + n) for n in range(7)})
    store = store_of(io)
    requests = [LeafRequest(location=f"memory://wh/m{n}.avro", content=ContentType.DATA_MANIFEST) for n in range(7)]
    assert [rows.num_rows for rows in store.leaves(requests)] == list(range(50, 57))
    assert [rows.num_rows for rows in store.leaves(requests)] == list(range(50, 57))
    assert reads(io) == 7
    absent = LeafRequest(location="memory://wh/x.avro", content=ContentType.DATA_MANIFEST)
    found = store_of(io).leaves([*requests[:2], absent, *requests[2:]])
    assert [next(found).num_rows, next(found).num_rows] == [50, 51]
    with pytest.raises(NoSuchFile):
        next(found)


def test_who_stops_early_waits_for_no_more_than_what_has_begun() -> None:
    io = storage(**{f"m{n}": leaf_bytes() for n in range(30)})
    requests = [LeafRequest(location=f"memory://wh/m{n}.avro", content=ContentType.DATA_MANIFEST) for n in range(30)]
    found = store_of(io).leaves(requests)
    next(found)
    found.close()  # type: ignore[attr-defined]  # a generator
    assert reads(io) <= 6
