"""Bench ``random_keys``: a MERGE whose keys are random, beside one whose keys are those of recent rows.

Real tables on local disk, changed by the Arrow engine. With random keys (UUID, version 4) every file may contain every
key, so statistics skip nothing and nearly all files lose rows. With rising keys (as UUID, version 7) the changed rows
are in the newest files. Half of the rows of a MERGE exist, half are new.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import icefloe
from measure import Clock, Sample, check_same
from questions.parts import first_where, number, times
from report import Table
from thresholds_work import average

TITLE = "random_keys: MERGE with random UUID keys"
QUESTION = "What does a MERGE with random UUID keys touch and write, in version 4 beside 2 and 3?"
RANDOM, RISING = "random keys", "rising keys"
V2_COPY, V2, V3, V4 = "v2 copy-on-write", "v2 position deletes", "v3 deletion vectors", "v4 deletion vectors"
CONTENDERS: dict[str, tuple[int, str]] = {
    V2_COPY: (2, "copy-on-write"),
    V2: (2, "merge-on-read"),
    V3: (3, "merge-on-read"),
    V4: (4, "merge-on-read"),
}
FIGURES = (
    "files_read",
    "files_skipped",
    "files_added",
    "files_removed",
    "vectors_added",
    "metadata_files_written",
    "metadata_bytes_written",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Files of a table, rows of each, rows of a MERGE, and MERGEs that follow each other."""

    files: int = 100
    rows: int = 10_000
    source: int = 1_000
    merges: int = 5


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """The same MERGEs on every table."""
    found = []
    for keys in (RANDOM, RISING):
        counts: dict[str, object] = {}
        for name in CONTENDERS:
            tell(f"random_keys: {sizes.merges} merges of {sizes.source:,} rows, {keys}, {name}")
            with tempfile.TemporaryDirectory(prefix="icefloe-bench-") as folder:
                entry = _merges(Path(folder), keys, name, sizes)
            counts[name] = entry.pop("rows_after")
            found.append({"keys": keys, "contender": name, **entry})
        check_same(counts, "rows after the merges")
    return {"sizes": asdict(sizes), "merges": found}


def _keys(kind: str, file: int, sizes: Sizes) -> pa.Array:
    """The keys of one file: random ones, or such as rise from file to file."""
    dice = np.random.default_rng(file)
    tails = dice.integers(0, 2**63, (2, sizes.rows))
    if kind == RANDOM:
        return pa.array([f"{a:016x}{b:016x}" for a, b in zip(*tails.tolist(), strict=True)])
    first = file * sizes.rows
    return pa.array([f"{first + at:016x}{tail:016x}" for at, tail in enumerate(tails[0].tolist())])


def _rows(keys: pa.Array, version: int) -> pa.Table:
    dice = np.random.default_rng(version)
    count = len(keys)
    return pa.table(
        {
            "key": keys,
            "version": pa.repeat(pa.scalar(version, pa.int64()), count),
            "quantity": pa.array(dice.integers(1, 50, count)),
            "price": pa.array(dice.random(count) * 1000),
            "note": pa.array([f"order of customer {n}" for n in dice.integers(0, 10**6, count).tolist()], pa.string()),
        }
    )


def _source(kind: str, turn: int, sizes: Sizes) -> pa.Table:
    """The rows of a MERGE: half of the keys are in the table, anywhere or in its newest files."""
    dice = np.random.default_rng(1_000 + turn)
    half = sizes.source // 2
    among = sizes.files if kind == RANDOM else max(1, sizes.files // 20)
    files = sizes.files - 1 - dice.integers(0, among, half)
    places = dice.permutation(sizes.rows * among)[:half] % sizes.rows
    known: dict[int, list[str]] = {n: _keys(kind, n, sizes).to_pylist() for n in np.unique(files).tolist()}
    old = {known[file][place] for file, place in zip(files.tolist(), places.tolist(), strict=True)}
    new = _keys(kind, 10**6 + turn, Sizes(rows=sizes.source - half)).to_pylist()
    return _rows(pa.array(sorted({*old, *new})), turn + 1)


def _merges(folder: Path, keys: str, name: str, sizes: Sizes) -> dict[str, Any]:
    version, mode = CONTENDERS[name]
    cat = icefloe.catalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/wh")
    schema = _rows(pa.array([], pa.string()), 0).schema
    table = cat.create_table("db.t", schema=schema, format_version=version, properties={"write.merge.mode": mode})
    for file in range(sizes.files):
        table.append(_rows(_keys(keys, file, sizes), 0))
    samples: list[Sample] = []
    for turn in range(sizes.merges):
        source = _source(keys, turn, sizes)
        before, old = Clock.now(), _files(folder)
        merge = table.merge(source, on=["key"]).when_matched_update_all().when_not_matched_insert_all()
        result = merge.execute()
        sample = before.until(Clock.now())
        new = {path: size for path, size in _files(folder).items() if path not in old}
        sample |= {key: float(getattr(result, key)) for key in FIGURES}
        sample["data_files"] = float(sum("/data/" in path for path in new))
        sample["data_bytes"] = float(sum(size for path, size in new.items() if "/data/" in path))
        sample["manifest_bytes"] = float(
            sum(size for path, size in new.items() if "/metadata/" in path and not path.endswith(".json"))
        )
        samples.append(sample)
    before = Clock.now()
    count = table.scan().to_arrow().num_rows
    read = before.until(Clock.now())
    return {"merge": average(samples), "read": read, "rows_after": count}


def _files(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_size for path in (folder / "wh").rglob("*") if path.is_file()}


def tables(result: Mapping[str, Any]) -> list[Table]:
    """One table."""
    rows = []
    for entry in result["merges"]:
        merge: Sample = entry["merge"]
        rows.append(
            [
                f"{entry['keys']}, {entry['contender']}",
                f"{number(merge['files_read'])} of {number(merge['files_read'] + merge['files_skipped'])}",
                number(merge["files_removed"]),
                number(merge["vectors_added"]),
                number(merge["data_files"]),
                number(merge["data_bytes"]),
                number(merge["manifest_bytes"]),
                f"{merge['cpu_ms']:,.0f}",
                f"{merge['wall_ms']:,.0f}",
                f"{entry['read']['cpu_ms']:,.0f}",
            ]
        )
    columns = (
        "keys, table",
        "data files read",
        "removed",
        "vectors",
        "new files in the data folder",
        "their bytes",
        "manifests and lists, bytes",
        "CPU ms",
        "wall ms",
        "reading all rows after, CPU ms",
    )
    sizes = result["sizes"]
    note = (
        f"{sizes['files']} data files of {sizes['rows']:,} rows, one for each commit, not partitioned, on local disk;"
        f" Arrow engine. Medians of {sizes['merges']} MERGEs of {sizes['source']:,} rows that follow each"
        " other; half of"
        " their keys exist. Rising keys: the existing keys are in the newest twentieth of the files. New files in the"
        " data folder are data files, position delete files and Puffin files. Without metadata.json."
    )
    return [Table(title="MERGE by key", columns=columns, rows=rows, note=note)]


def answer(result: Mapping[str, Any]) -> str:
    """What random keys cost V4 beside the others."""
    own, three, two, copied = (
        first_where(result["merges"], keys=RANDOM, contender=name)["merge"] for name in (V4, V3, V2, V2_COPY)
    )
    rising = first_where(result["merges"], keys=RISING, contender=V4)["merge"]
    sizes = result["sizes"]
    total = own["files_read"] + own["files_skipped"]
    return (
        f"A MERGE of {sizes['source']:,} random keys into {sizes['files']} files of {sizes['rows']:,} rows reads"
        f" {number(own['files_read'])} of {number(total)} data files; statistics of the key skip the other"
        f" {number(own['files_skipped'])}. V4 writes {number(own['vectors_added'])} deletion vectors, and"
        f" {number(own['data_bytes'])} bytes of data and Puffin files; v3 writes"
        f" {times(three['data_bytes'], own['data_bytes'])} times these, v2"
        f" {times(two['data_bytes'], own['data_bytes'])} times with position deletes and"
        f" {times(copied['data_bytes'], own['data_bytes'])} times with copy-on-write. Manifests and lists take"
        f" {number(own['manifest_bytes'])} bytes in V4, {number(three['manifest_bytes'])} in v3 and"
        f" {number(two['manifest_bytes'])} in v2. With rising keys V4 reads {number(rising['files_read'])} files and"
        f" writes {number(rising['vectors_added'])} vectors ({rising['wall_ms']:,.0f} against"
        f" {own['wall_ms']:,.0f} ms)."
    )
