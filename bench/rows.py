"""Bench ``rows``: reading about one gigabyte of Parquet in this process, whole, in part, and with 1 % of it deleted.

All contenders read the same files: plain pyarrow.dataset and polars as files, icefloe and pyiceberg as the table that
icefloe wrote. Then 1 % of the rows is deleted on branches, once by position delete files, once by equality deletes and
once by deletion vectors. The contenders take turns, and every turn is a process of its own: what one of them keeps of
its memory, which may be all there is, is gone before the next one begins.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import icefloe
from arrow_rows import SUPPLIERS, lineitem, pieces
from icefloe.commit.loop import commit
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.deletes.equality_writer import write_equality_deletes
from icefloe.table.held_table import pointer_of
from icefloe.tree.file_changes import FileChanges
from measure import Sample, median, ratio, spread
from report import Table
from workers import Worker

TITLE = "rows: reading one gigabyte without a JVM"
CONTENDERS = ("icefloe", "pyarrow", "pyiceberg", "polars")
QUESTIONS = ("all columns", "3 of 16 columns", "1 % filter", "one order in a thousand")
DELETED = ("position deletes", "equality deletes", "deletion vectors")
DELETE = f"l_suppkey < {SUPPLIERS // 100}"  # 1 % of the rows, spread over all files
UNABLE = {("equality deletes", "pyiceberg"), ("equality deletes", "polars")}  # both refuse such a table
WHOLE = QUESTIONS[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much to do: rows of the table, bytes of a file, runs that count and runs before those."""

    rows: int = 30_000_000
    file_mb: int = 128
    runs: int = 7
    warm_up: int = 1


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Write, delete on branches, read everything with every contender; samples by question and contender."""
    with tempfile.TemporaryDirectory(prefix="icefloe-bench-") as folder:
        tell(f"rows: writing {sizes.rows:,} rows, and deleting 1 % of them three times")
        files = make(Path(folder), sizes)
        asked = [("", question) for question in QUESTIONS] + [(deleted, WHOLE) for deleted in DELETED]
        samples = {}
        for deleted, question in asked:
            what = deleted or question
            tell(f"rows: {what}")
            samples[what] = _measure(folder, deleted, question, sizes)
    return {"sizes": asdict(sizes), "files": files, "samples": samples}


def make(folder: Path, sizes: Sizes) -> dict[str, int]:
    """The table, with a branch for each kind of delete; how many files it has, and their bytes."""
    cat = icefloe.catalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/wh")
    schema = lineitem(0, 1).schema
    properties = {
        "write.target-file-size-bytes": str(sizes.file_mb * 1024 * 1024),
        "write.delete.mode": "merge-on-read",
    }
    table = cat.create_table("db.lineitem", schema=schema, format_version=2, properties=properties)
    batches = (batch for piece in pieces(sizes.rows) for batch in piece.to_batches())
    table.append(pa.RecordBatchReader.from_batches(schema, batches))
    for branch in DELETED:
        table.branch(branch)
    table.delete(DELETE, branch=DELETED[0])
    _delete_by_equality(table)
    table.upgrade(3)
    table.delete(DELETE, branch=DELETED[2])
    tasks = table.scan().plan().tasks
    heads = {name: ref.snapshot_id for name, ref in table.metadata.refs.items()}
    data = tasks["location"].to_pylist()
    told = {"metadata": table.metadata_location, "heads": heads, "files": data}
    (folder / "table.json").write_text(json.dumps(told), encoding="utf-8")
    return {"count": len(data), "bytes": sum(tasks["file_size_in_bytes"].to_pylist())}


def _delete_by_equality(table: Any) -> None:
    """The same rows once more, told by order and line number: one delete file with 1 % as many rows as the table."""
    base, key = pointer_of(table).load(), ("l_orderkey", "l_linenumber")
    keys = table.scan(DELETE, columns=key).to_arrow()
    fields = tuple(base.metadata.schema.by_name[name] for name in key)
    added = write_equality_deletes(base.store.io, keys, fields, metadata=base.metadata)
    commit(
        pointer_of(table),
        RowDelta(changes=FileChanges(added=added), read=base.metadata.current_snapshot, branch=DELETED[1]),
    )


def _measure(folder: str, deleted: str, question: str, sizes: Sizes) -> dict[str, list[Sample]]:
    able = [name for name in CONTENDERS if (deleted, name) not in UNABLE]
    samples: dict[str, list[Sample]] = {name: [] for name in able}
    for number in range(sizes.runs):
        shift = number % len(able)
        for name in able[shift:] + able[:shift]:
            worker = Worker("rows_worker.py", name, folder, question, deleted)
            try:
                samples[name] += worker.run(sizes.warm_up + 1)[sizes.warm_up :]
            finally:
                worker.stop()
    _check(samples, deleted)
    return samples


def _check(samples: Mapping[str, list[Sample]], deleted: str) -> None:
    """Contenders that do not find the same rows are not worth timing; plain files still have the deleted ones."""
    found = {name: runs[0]["rows"] for name, runs in samples.items() if deleted == "" or name != "pyarrow"}
    if len(set(found.values())) > 1:
        raise RuntimeError(f"{deleted}: the contenders do not find the same number of rows: {found}")


def tables(result: Mapping[str, Any]) -> list[Table]:
    """Times, throughput as ratios, and memory."""
    sizes, samples, files = result["sizes"], result["samples"], result["files"]
    title = (
        f"{sizes['rows']:,} rows of 16 columns in {files['count']} files of {files['bytes'] / 1e6:,.0f} MB together,"
        f" median of {sizes['runs']} runs"
    )
    return [
        _table(samples, f"Wall ms: {title}", lambda runs: spread(runs, "wall_ms")),
        _table(samples, f"CPU ms: {title}", lambda runs: spread(runs, "cpu_ms")),
        _table(samples, "Peak memory of the process, MB", lambda runs: f"{max(s['peak_mb'] for s in runs):,.0f}"),
        _ratios(samples),
    ]


def _table(samples: Mapping[str, Any], title: str, cell: Callable[[list[Sample]], str]) -> Table:
    rows = [[what, *(cell(s[name]) if name in s else "refused" for name in CONTENDERS)] for what, s in samples.items()]
    return Table(title=title, columns=("", *CONTENDERS), rows=rows)


def _ratios(samples: Mapping[str, Any]) -> Table:
    rows = []
    for what, found in samples.items():
        cells = []
        for key in ("wall_ms", "cpu_ms"):
            own = median(found["icefloe"], key)
            cells += [ratio(median(found[peer], key), own) if peer in found else "-" for peer in CONTENDERS[1:]]
        rows.append([what, *cells])
    columns = ("", *CONTENDERS[1:], *(f"{name}, CPU" for name in CONTENDERS[1:]))
    note = (
        "Every result is one Arrow table (polars: one DataFrame). pyarrow.dataset does not support deletes: it reads"
        " all rows of the same files. polars reads the files, or the table if it has deletes. The equality deletes"
        " delete 1 % of the rows by two columns."
    )
    return Table(
        title="Throughput of icefloe as a multiple: above 1, icefloe is faster", columns=columns, rows=rows, note=note
    )
