"""Batches that Java gave to a task, whose texts, lists and maps without values have no offsets."""

from __future__ import annotations

import pyarrow as pa

from icefloe.engines.spark.write.task_files import with_offsets

NOTHING = pa.py_buffer(b"")
ENTRY = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.list_(pa.string()))])


def without_values() -> pa.MapArray:
    """Two empty maps as Java writes them: neither their keys nor the lists of their values have offsets."""
    texts = pa.Array.from_buffers(pa.string(), 0, [None, NOTHING, NOTHING])
    lists = pa.Array.from_buffers(pa.list_(pa.string()), 0, [None, NOTHING], children=[texts])
    entries = pa.Array.from_buffers(ENTRY, 0, [None], children=[texts, lists])
    type_ = pa.map_(pa.string(), pa.list_(pa.string()))
    return pa.Array.from_buffers(type_, 2, [None, pa.py_buffer(bytes(12))], children=[entries])


def test_nested_columns_without_values_get_their_offsets() -> None:
    """Seen with the histories: a task crashed in ``nbytes`` of a batch whose maps were all empty."""
    maps = without_values()
    batch = pa.record_batch({"n": pa.array([1, 2]), "s": pa.StructArray.from_arrays([maps], ["m"]), "m": maps})
    [safe] = with_offsets([batch])
    assert safe.schema == batch.schema
    assert safe.to_pylist() == [{"n": n, "s": {"m": []}, "m": []} for n in (1, 2)]
    for column in (safe["m"], safe["s"].field(0)):
        for part in (column.keys, column.items, column.items.values):
            assert part.buffers()[1].size >= 4, "no offsets"


def test_other_batches_are_not_copied() -> None:
    batch = pa.record_batch({"l": pa.array([["a"], []]), "t": pa.array(["", None])})
    [same] = with_offsets([batch])
    assert same is batch
