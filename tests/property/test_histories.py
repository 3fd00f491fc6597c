"""Random histories of a table against a list of rows: every snapshot holds exactly what the model says, for ever."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tables import VERSIONS, new_catalog

SCHEMA = "id bigint, city string, amount double"
ARROW = pa.schema([("id", pa.int64()), ("city", pa.string()), ("amount", pa.float64())])
PARTITIONS = [[], ["bucket(3, id)"], ["city"], ["city", "bucket(2, id)"]]

IDS = st.integers(0, 12)
ROWS = st.lists(
    st.tuples(IDS, st.sampled_from(["Oslo", "Rome", "", None]), st.sampled_from([-1.0, 0.0, 2.5, None])), max_size=6
)
STEPS = st.one_of(
    st.tuples(st.just("append"), ROWS),
    st.tuples(st.just("upsert"), ROWS),
    st.tuples(st.just("delete below"), IDS),
    st.tuples(st.just("delete city"), st.sampled_from(["Oslo", "Rome", ""])),
    st.tuples(st.just("delete amount"), st.sampled_from([-1.0, 0.0, 2.5])),
)


def arrow(rows) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(ARROW.names, row, strict=True)) for row in rows], schema=ARROW)


def apply(table, model: list, step: tuple) -> list:
    """Do one step to the table and to the model; the model afterwards."""
    verb, what = step
    if verb == "append":
        table.append(arrow(what))
        return [*model, *what]
    if verb == "upsert":
        rows = list({row[0]: row for row in what}.values())
        table.upsert(arrow(rows), on=["id"])
        keys = {row[0] for row in rows}
        return [*(row for row in model if row[0] not in keys), *rows]
    if verb == "delete below":
        table.delete(f"id < {what}")
        return [row for row in model if not row[0] < what]
    if verb == "delete city":
        table.delete(f"city = '{what}'")
        return [row for row in model if row[1] != what]
    table.delete(f"amount >= {what}")
    return [row for row in model if row[2] is None or not row[2] >= what]


def found(scan) -> list[str]:
    return sorted(repr(tuple(row.values())) for row in scan.to_arrow().to_pylist())


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=settings().max_examples // 5, suppress_health_check=[HealthCheck.too_slow])
@given(steps=st.lists(STEPS, min_size=1, max_size=8), partition_by=st.sampled_from(PARTITIONS), limit=st.integers(1, 4))
def test_every_snapshot_of_a_random_history_is_what_the_model_says(version, steps, partition_by, limit):
    properties = {"commit.root.max-data-files": str(limit), "commit.root.max-dvs": str(limit)}
    with tempfile.TemporaryDirectory() as folder:
        table = new_catalog(Path(folder)).create_table(
            "db.t", schema=SCHEMA, partition_by=partition_by, format_version=version, properties=properties
        )
        model: list = []
        states = {}
        for step in steps:
            model = apply(table, model, step)
            if (head := table.metadata.current_snapshot_id) is not None:
                states[head] = sorted(map(repr, model))
            assert table.scan().count() == len(model)
        reader = new_catalog(Path(folder)).load_table("db.t")
        for snapshot_id, expected in states.items():
            assert found(reader.at(snapshot=snapshot_id).scan()) == expected
        for where in ("id = 3", "amount < 1.0", "city is null", "id > 4 and amount >= 0.0"):
            everything = reader.scan().to_arrow()
            direct = found(reader.scan(where))
            assert set(direct) <= set(found(reader.scan()))
            assert len(direct) == _count(everything, where)


def _count(rows: pa.Table, where: str) -> int:
    tests = {
        "id = 3": lambda r: r["id"] == 3,
        "amount < 1.0": lambda r: r["amount"] is not None and r["amount"] < 1.0,
        "city is null": lambda r: r["city"] is None,
        "id > 4 and amount >= 0.0": lambda r: r["id"] > 4 and r["amount"] is not None and r["amount"] >= 0.0,
    }
    return sum(tests[where](row) for row in rows.to_pylist())
