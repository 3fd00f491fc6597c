"""Bench ``object_store``: an append, a removal and a plan on an object store, by requests and by wall time.

Tables lie in an S3 server (moto, in its own process) to whose answers 20 ms are added, about what a store far away or a
busy one takes. Requests are counted by the server. icefloe keeps its pointer in a SQLite catalog on local disk; Delta
Lake keeps it in the store, by a conditional put. The table object of a program is kept open, or opened for every step.
Files and snapshots of the table were written before, without the added time. The server needs some milliseconds for
each request itself and serves one at a time; that time is reported beside the others.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import deltalake
import numpy as np
import pyarrow as pa

import icefloe
from measure import Clock, Sample, median, spread
from questions.parts import number, times
from questions.slow_s3 import SlowS3, slow_s3
from report import Table

TITLE = "object_store: requests and latency"
QUESTION = (
    "Latency on an object store: requests and wall time of an append, a removal and a plan, beside v2, v3, Delta?"
)
OWN, V2, V3, DELTA = "icefloe v4", "icefloe v2", "icefloe v3", "delta-rs"
VERSIONS = {OWN: 4, V2: 2, V3: 3}
CONTENDERS = (*VERSIONS, DELTA)
STEPS = ("append", "removal", "plan")
STATES = ("open", "opened for it")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Commits before, samples of each step, rows of a commit, and milliseconds added to each request."""

    commits: int = 100
    repeats: int = 5
    rows: int = 1_000
    latency: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """What a program does with its table, and how it opens it."""

    opened: Callable[[], Any]
    append: Callable[[Any, pa.Table], object]
    removal: Callable[[Any, int], object]
    plan: Callable[[Any, int], int]


def rows_of(part: int, count: int) -> pa.Table:
    """The rows of one commit, all in one partition."""
    dice = np.random.default_rng(part)
    return pa.table(
        {
            "part": pa.repeat(pa.scalar(part, pa.int32()), count),
            "id": pa.array(np.arange(count, dtype=np.int64) + part * count),
            **{f"c{n}": pa.array(dice.random(count)) for n in range(8)},
        }
    )


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Every contender after the other, in a bucket of its own."""
    found = []
    with slow_s3() as server, tempfile.TemporaryDirectory(prefix="icefloe-bench-") as folder:
        for name in CONTENDERS:
            server.wait(0)
            tell(f"object_store: {sizes.commits} commits by {name}, then steps with {sizes.latency} ms added")
            steps = _delta(server) if name == DELTA else _icefloe(server, Path(folder), VERSIONS[name])
            found += [{"contender": name, **entry} for entry in _measured(server, steps, sizes)]
    return {"sizes": asdict(sizes), "steps": found}


def _icefloe(server: SlowS3, folder: Path, version: int) -> Steps:
    place = {"uri": f"sqlite:///{folder}/v{version}.db", "warehouse": f"s3://{server.new_bucket()}/wh"}

    def catalog() -> Any:
        return icefloe.catalog("bench", **place, properties=server.properties)

    def planned(table: Any, part: int) -> int:
        table.refresh()
        return int(table.scan(f"part = {part}").plan().files)

    schema = rows_of(0, 0).schema
    catalog().create_table("db.t", schema=schema, partition_by=["part"], format_version=version)
    return Steps(
        opened=lambda: catalog().load_table("db.t"),
        append=lambda table, rows: table.append(rows),
        removal=lambda table, part: table.delete(f"part = {part}"),
        plan=planned,
    )


def _delta(server: SlowS3) -> Steps:
    place, options = f"s3://{server.new_bucket()}/wh", server.delta_options
    schema = deltalake.Schema.from_arrow(rows_of(0, 0).schema)
    deltalake.DeltaTable.create(place, schema=schema, partition_by=["part"], storage_options=options)

    def planned(table: Any, part: int) -> int:
        table.update_incremental()
        return len(table.file_uris(partition_filters=[("part", "=", str(part))]))

    return Steps(
        opened=lambda: deltalake.DeltaTable(place, storage_options=options),
        append=lambda table, rows: deltalake.write_deltalake(table, rows, mode="append"),
        removal=lambda table, part: table.delete(f"part = {part}"),
        plan=planned,
    )


def _measured(server: SlowS3, steps: Steps, sizes: Sizes) -> list[dict[str, Any]]:
    table = steps.opened()
    for part in range(sizes.commits):
        steps.append(table, rows_of(part, sizes.rows))
    server.wait(sizes.latency)
    found, part, gone = [], sizes.commits, 0
    for state in STATES:
        samples: dict[str, list[Sample]] = {step: [] for step in STEPS}
        requests: dict[str, dict[str, int]] = {}
        for repeat in range(-1, sizes.repeats):
            for step in STEPS:
                work: Callable[[Any], object]
                if step == "append":
                    rows, part = rows_of(part, sizes.rows), part + 1
                    work = lambda each, rows=rows: steps.append(each, rows)  # noqa: E731
                elif step == "removal":
                    gone += 1
                    work = lambda each, at=gone: steps.removal(each, at)  # noqa: E731
                else:
                    work = lambda each: _one(steps.plan(each, 0))  # noqa: E731
                server.requests()
                before = Clock.now()
                work(steps.opened() if state == STATES[1] else table)
                time = before.until(Clock.now())
                asked = server.requests()
                if repeat >= 0:
                    counts = {"requests": float(sum(asked["requests"].values())), "served_ms": asked["served_ms"]}
                    samples[step].append({**time, **counts})
                    requests[step] = asked["requests"]
        found += [{"step": s, "state": state, "samples": samples[s], "kinds": requests[s]} for s in STEPS]
    return found


def _one(files: int) -> None:
    if files != 1:
        raise RuntimeError(f"planned {files} files, not 1")


def tables(result: Mapping[str, Any]) -> list[Table]:
    """One table: contenders of a step beside each other."""
    rows = []
    for state in STATES:
        for step in STEPS:
            for name in CONTENDERS:
                entry = _entry(result, name, step, state)
                samples = entry["samples"]
                kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(entry["kinds"].items()))
                rows.append(
                    [
                        f"{step}, table {state}: {name}",
                        number(median(samples, "requests")),
                        kinds if kinds != "" else "none",
                        spread(samples, "wall_ms"),
                        number(median(samples, "served_ms")),
                        f"{median(samples, 'cpu_ms'):.1f}",
                    ]
                )
    columns = ("step", "requests", "of the last one", "wall ms", "of these the server itself", "CPU ms")
    sizes = result["sizes"]
    note = (
        f"Median of {sizes['repeats']}. The table has {sizes['commits']} commits of one file with {sizes['rows']:,}"
        f" rows in one partition each. {sizes['latency']} ms are added to every request. An append writes one data"
        " file. A removal deletes one partition, which is one whole file. A plan finds the files of one partition,"
        " after both looked for new commits. icefloe has its pointer in SQLite on local disk,"
        " delta-rs in the store."
    )
    return [Table(title="Requests and wall time", columns=columns, rows=rows, note=note)]


def _entry(result: Mapping[str, Any], name: str, step: str, state: str) -> Mapping[str, Any]:
    return next(e for e in result["steps"] if (e["contender"], e["step"], e["state"]) == (name, step, state))


def answer(result: Mapping[str, Any]) -> str:
    """Requests and wall time of V4 beside the others."""
    texts = []
    for state in STATES:
        for step in STEPS:
            by_name = {name: _entry(result, name, step, state)["samples"] for name in CONTENDERS}
            own = by_name.pop(OWN)
            others = ", ".join(
                f"{name} {number(median(samples, 'requests'))} and {median(samples, 'wall_ms'):,.0f} ms"
                for name, samples in by_name.items()
            )
            share = times(median(own, "wall_ms"), median(by_name[V2], "wall_ms"))
            texts.append(
                f"{step}, table {state}: {number(median(own, 'requests'))} requests and {median(own, 'wall_ms'):,.0f}"
                " ms"
                f" ({share} times the time of v2; {others})"
            )
    sizes = result["sizes"]
    return (
        f"With {sizes['latency']} ms added to each request and {sizes['commits']} commits before, version 4 takes:"
        f" {'; '.join(texts)}. The pointer of icefloe is in a local catalog, that of delta-rs in the store; no removal"
        " or plan here reads a data file."
    )
