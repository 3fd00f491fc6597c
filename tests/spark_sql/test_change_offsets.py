"""The offsets of streams of changes, without Spark: the Arrow engine reads what each batch asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icefloe.engines.choose import engine_for
from icefloe.errors import InputError, NoSuchSnapshot
from icefloe.model.metadata.snapshots import MAIN, Operation
from icefloe.spark_sql.streams.calls import offset_of
from icefloe.spark_sql.streams.changes import ChangeOffset, StreamChanges
from icefloe.spark_sql.streams.files import StreamOffset
from icefloe.spark_sql.streams.history import StreamHistory
from icefloe.spark_sql.streams.options import stream_options
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from support.people import COPY, EACH_MODE, MERGE, new_table, people

FILES, ROWS, SNAPSHOTS = (f"streaming-max-{what}-per-micro-batch" for what in ("files", "rows", "snapshots"))
NOT_STARTED = ChangeOffset()
Row = tuple[Any, ...]


def changes(table: Table, branch: str = MAIN, **options: str) -> StreamChanges:
    """What a stream sees of a table in its newest state."""
    base = pointer_of(table.refresh()).held()
    ref = base.metadata.refs.get(branch)
    head = None if ref is None else base.metadata.snapshot(ref.snapshot_id)
    history = StreamHistory(base=base, schema=base.metadata.schema, head=head)
    return StreamChanges(history=history, options=stream_options(options, of_changes=True))


def batch(stream: StreamChanges, start: ChangeOffset, end: ChangeOffset) -> list[Row]:
    read: pa.RecordBatchReader = engine_for(None).read_changes(stream.request(start, end))
    return in_order(read.read_all())


def in_order(rows: pa.Table) -> list[Row]:
    return sorted((tuple(row.values()) for row in rows.to_pylist()), key=repr)


def run(stream: StreamChanges, start: ChangeOffset = NOT_STARTED) -> tuple[list[list[Row]], ChangeOffset]:
    """The rows of every batch from an offset on, and the last offset; offsets pass through JSON, as in checkpoints."""
    batches = []
    while True:
        end = stream.latest(start, is_unlimited=False)
        if end is None or msgspec.json.encode(end) == msgspec.json.encode(start):
            return batches, start
        end = msgspec.json.decode(msgspec.json.encode(end), type=ChangeOffset)
        batches.append(batch(stream, start, end))
        assert batch(stream, start, end) == batches[-1]  # as after a restart
        start = end


def in_one(batches: list[list[Row]]) -> list[Row]:
    return sorted((row for rows in batches for row in rows), key=repr)


def history(table: Table, first: int = 10) -> None:
    """Snapshots of every kind: appends, an update, deletes, a rewrite of files, and upserts."""
    table.append(people(first, first + 1, first + 2, first + 3))
    table.update({"amount": "amount + 1"}, where=f"id in ({first}, {first + 1})")
    table.delete(f"id = {first + 2}")
    table.compact(options={"rewrite-all": "true"}).execute()
    table.upsert(people(first + 1, first + 3, first + 9, amount=7), on=["id"])
    if table.metadata.format_version > 1:
        table.upsert(people(first, first + 3, amount=8), on=["id"], deletes="equality")
    table.delete(f"id = {first + 3}")
    table.append(people(first + 5))


@pytest.mark.parametrize("mode", EACH_MODE)
def test_the_batches_are_the_changes_of_the_history(mode: tuple[int, str], tmp_path: Path) -> None:
    table = new_table(tmp_path, *mode)
    history(table)
    assert Operation.REPLACE in {snapshot.operation for snapshot in table.snapshots}
    for options in ({}, {SNAPSHOTS: "1"}, {SNAPSHOTS: "2"}, {FILES: "2"}, {ROWS: "1"}, {ROWS: "6"}):
        batches, end = run(changes(table, **options))
        assert in_one(batches) == in_order(table.changes().to_arrow())
        assert end.snapshot_id == table.metadata.current_snapshot_id
    middle = end
    history(table, first=30)
    more, _ = run(changes(table, **{SNAPSHOTS: "3"}), middle)
    assert in_one([*batches, *more]) == in_order(table.changes().to_arrow())  # with the ordinals of one range
    paired, _ = run(changes(table, images="true", keys="id", **{"start-snapshot-id": str(middle.snapshot_id)}))
    expected = table.changes(middle.snapshot_id, images=True, keys=["id"]).to_arrow()
    assert in_one(paired) == in_order(expected)


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_restarts_at_any_commit_give_each_change_once(data: st.DataObject, tmp_path_factory: Any) -> None:
    """Commits, and batches of any size between them: every batch is of whole snapshots, and none is read twice."""
    version, mode = data.draw(st.sampled_from([(2, COPY), (2, MERGE), (4, MERGE)]))
    table = new_table(tmp_path_factory.mktemp("t"), version, mode)
    table.append(people(1, 2, 3))
    steps = {
        "append": lambda: table.append(people(*data.draw(st.lists(st.integers(4, 9), min_size=1, unique=True)))),
        "update": lambda: table.update({"amount": "amount + 1"}, where="id < 4"),
        "delete": lambda: table.delete(f"id = {data.draw(st.integers(1, 9))}"),
        "equality": lambda: table.upsert(people(1, 5, amount=4), on=["id"], deletes="equality"),
        "compact": lambda: table.compact(options={"rewrite-all": "true"}).execute(),
    }
    offset, batches = ChangeOffset(), []
    for name in data.draw(st.lists(st.sampled_from(sorted(steps)), min_size=1, max_size=6)):
        steps[name]()
        if data.draw(st.booleans()):
            limits = data.draw(st.dictionaries(st.sampled_from([FILES, ROWS, SNAPSHOTS]), st.integers(1, 5)))
            more, offset = run(changes(table, **{limit: str(value) for limit, value in limits.items()}), offset)
            batches += more
    more, _ = run(changes(table), offset)
    assert in_one([*batches, *more]) == in_order(table.changes().to_arrow())
    by_snapshot = [row[-1] for rows in [*batches, *more] for row in {row[-1]: row for row in rows}.values()]
    assert len(by_snapshot) == len(set(by_snapshot))


def test_limits_are_numbers_of_whole_snapshots(tmp_path: Path) -> None:
    table = new_table(tmp_path, 4)
    for n in range(4):
        table.append(people(n, n + 10))
    sizes = {}
    for option, limit in ((SNAPSHOTS, "2"), (SNAPSHOTS, "9"), (FILES, "3"), (ROWS, "4"), (ROWS, "1")):
        sizes[option, limit] = [len(rows) for rows in run(changes(table, **{option: limit}))[0]]
    assert sizes == {
        (SNAPSHOTS, "2"): [4, 4],
        (SNAPSHOTS, "9"): [8],
        (FILES, "3"): [6, 2],
        (ROWS, "4"): [4, 4],
        (ROWS, "1"): [2, 2, 2, 2],
    }
    stream = changes(table, **{SNAPSHOTS: "1"})
    end = stream.latest(ChangeOffset(), is_unlimited=True)
    assert end is not None
    assert end.snapshot_id == table.metadata.current_snapshot_id
    first = table.snapshots[0].snapshot_id
    bounded = stream.up_to(first).latest(ChangeOffset(), is_unlimited=False)
    assert bounded is not None
    assert bounded.snapshot_id == first


def test_a_stream_starts_where_its_options_say(tmp_path: Path) -> None:
    table = new_table(tmp_path, 2)
    assert run(changes(table)) == ([], ChangeOffset())
    first = table.append(people(1)).snapshot_id
    second = table.append(people(2)).snapshot_id
    table.branch("audit", snapshot=first)
    table.append(people(9), branch="audit")
    time = table.metadata.snapshot(second).timestamp_ms

    def ids(stream: StreamChanges) -> list[int]:
        return [row[0] for row in in_one(run(stream)[0])]

    assert ids(changes(table)) == [1, 2]
    assert ids(changes(table, **{"stream-from": "all"})) == [1, 2]
    assert ids(changes(table, **{"start-snapshot-id": str(first)})) == [2]
    assert ids(changes(table, **{"stream-from-timestamp": "1"})) == [1, 2]
    assert ids(changes(table, **{"stream-from-timestamp": str(time + 1)})) == []
    assert ids(changes(table, branch="audit")) == [1, 9]
    _, latest = run(changes(table, **{"stream-from": "latest"}))
    table.append(people(3))
    assert [row[0] for row in in_one(run(changes(table), latest)[0])] == [3]


def test_history_that_is_gone_ends_a_stream_by_name(tmp_path: Path) -> None:
    table = new_table(tmp_path, 2)
    first = table.append(people(1)).snapshot_id
    _, early = run(changes(table))
    second = table.append(people(2)).snapshot_id
    _, late = run(changes(table))
    table.rollback(snapshot=first)
    with pytest.raises(NoSuchSnapshot, match=f"does not contain snapshot {second}"):
        run(changes(table), late)
    third = table.append(people(3)).snapshot_id
    table.expire(snapshots=[first, second]).execute()
    with pytest.raises(NoSuchSnapshot, match=f"snapshot {first}, up to which the stream has read, has expired"):
        run(changes(table), early)
    with pytest.raises(NoSuchSnapshot, match=f"not all changes are known; .*start-snapshot-id={third}"):
        run(changes(table))
    with pytest.raises(NoSuchSnapshot, match=f"give a later time, or .*start-snapshot-id={third}"):
        run(changes(table, **{"stream-from-timestamp": "1"}))


def test_options_and_offsets_of_the_other_kind_of_stream_are_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path, 2)
    table.append(people(1))
    for option in ("readChangeFeed", "images", "keys", SNAPSHOTS):
        with pytest.raises(InputError, match=rf"option {option}: .*demo\.db\.t\.changes"):
            stream_options({option: "true"})
    stream_options({"readChangeFeed": "false"})
    for option in ("streaming-skip-delete-snapshots", "streaming-skip-overwrite-snapshots"):
        with pytest.raises(InputError, match=rf"option {option}: .*_change_type"):
            changes(table, **{option: "true"})
    with pytest.raises(InputError, match="images=true too"):
        changes(table, keys="id")
    with pytest.raises(InputError, match="name the key columns"):
        changes(table, images="true", keys="id,")
    with pytest.raises(InputError, match="give keys"):
        run(changes(table, images="true"))
    _, offset = run(changes(table))
    text = msgspec.json.encode(offset).decode()
    assert offset_of(text, ChangeOffset) == offset
    with pytest.raises(InputError, match="checkpoints of their own"):
        offset_of(text, StreamOffset)
    with pytest.raises(InputError, match="checkpoints of their own"):
        offset_of(msgspec.json.encode(StreamOffset(position=1)).decode(), ChangeOffset)


def test_a_stream_keeps_its_columns_and_refuses_another_type(tmp_path: Path) -> None:
    table = new_table(tmp_path, 2, schema="id int, note string")
    row = {"id": pa.array([1], pa.int32()), "note": ["a"]}
    table.append(pa.table(row))
    stream = changes(table)
    with table.update_schema() as schema:
        schema.add_column("more", "string")
    table.append(pa.table({**row, "more": ["m"]}))
    now = changes(table)
    kept = StreamChanges(
        history=StreamHistory(base=now.history.base, schema=stream.history.schema, head=now.history.head),
        options=now.options,
    )
    assert [len(row) for row in in_one(run(kept)[0])] == [5, 5]
    with table.update_schema() as schema:
        schema.update_column("id", type="bigint")
    widened = changes(table).history.base
    kept = StreamChanges(
        history=StreamHistory(base=widened, schema=stream.history.schema, head=now.history.head), options=now.options
    )
    with pytest.raises(InputError, match="column 'id' is long now"):
        run(kept)
