"""Bench ``checksums``: what checksums of pages cost, when they are written and when they are compared.

The same work is done with and without them, in turns in one process. icefloe always writes them and compares them in
``verify(rows=True)``; the other cases exist here only. Spark writes and reads plain Parquet files, with the settings of
its own reader and writer.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import icefloe
from append_worker import rows
from icefloe.formats.parquet.file import open_parquet
from icefloe.formats.parquet.pages import Checksums
from icefloe.formats.parquet.writer import ParquetOptions, parquet_options
from icefloe.formats.write.layout import Layout
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table as IcefloeTable
from lineitem import drain, lineitem
from measure import Sample, Work, in_turns, median, ratio, spread
from report import Table
from spark_session import start

TITLE = "checksums: of the pages of Parquet files"
WITH, WITHOUT = "with checksums", "without"
_WRITE, _COMPARE = "parquet.page.write-checksum.enabled", "parquet.page.verify-checksum.enabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Rows on Arrow and on Spark, and how often each is written and read."""

    rows: int = 1_000_000
    spark_rows: int = 3_000_000
    runs: int = 15


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Samples by work and contender."""
    found: dict[str, dict[str, list[Sample]]] = {}
    with tempfile.TemporaryDirectory(prefix="icefloe-bench-") as folder:
        for name, works in _arrow(Path(folder), sizes.rows).items():
            tell(f"checksums: {name}")
            found[name] = in_turns(works, sizes.runs, warm_up=2, process=0)
        tell("checksums: Spark starts")
        session = start(Path(folder))
        process = int(session._jvm.java.lang.ProcessHandle.current().pid())
        for name, works in _spark(session, Path(folder), sizes.spark_rows).items():
            tell(f"checksums: {name}")
            found[name] = in_turns(works, sizes.runs, warm_up=2, process=process)
        session.stop()
    return {"sizes": asdict(sizes), "samples": found}


def _arrow(folder: Path, many: int) -> dict[str, dict[str, Work]]:
    data, cat = rows(many), icefloe.catalog("b", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}/wh")
    tables = {
        name: cat.create_table(f"db.t{number}", schema=data.schema, format_version=4)
        for number, name in enumerate((WITH, WITHOUT))
    }

    def without(layout: Layout) -> ParquetOptions:
        options = parquet_options(layout)
        return replace(options, settings={**options.settings, "write_page_checksum": False})

    def append_without() -> None:
        with patch("icefloe.formats.parquet.writer.parquet_options", without):
            tables[WITHOUT].append(data)

    stored = cat.create_table("db.stored", schema=data.schema, format_version=4)
    stored.append(data)
    return {
        "append on Arrow": {
            WITH: (lambda: tables[WITH].append(data), lambda: _emptied(tables[WITH])),
            WITHOUT: (append_without, lambda: _emptied(tables[WITHOUT])),
        },
        "read on Arrow": {
            WITH: (lambda: _read(stored, Checksums()), lambda: None),
            WITHOUT: (lambda: _read(stored, None), lambda: None),
        },
    }


def _emptied(table: IcefloeTable) -> None:
    """Free the disk of what was written."""
    for path in Path(table.location.removeprefix("file://"), "data").iterdir():
        path.write_bytes(b"")


def _read(table: IcefloeTable, checksums: Checksums | None) -> None:
    for location in table.scan().plan().tasks["location"].to_pylist():
        with open_parquet(pointer_of(table).io, location, checksums=checksums) as file:
            for group in file.row_groups:
                for _ in file.read(group, table.schema.fields, 1024 * 1024):
                    pass


def _spark(session: Any, folder: Path, many: int) -> dict[str, dict[str, Work]]:
    frame = lineitem(session, many, 2).cache()
    frame.count()
    stored, numbers = str(folder / "stored"), count()
    frame.write.option(_WRITE, "true").parquet(stored)
    last = [""]

    def write(flag: str) -> None:
        last[0] = str(folder / f"written{next(numbers)}")
        frame.write.option(_WRITE, flag).parquet(last[0])

    def read(flag: str) -> None:
        drain(session.read.option(_COMPARE, flag).parquet(stored))

    return {
        "write on Spark": {
            WITH: (lambda: write("true"), lambda: shutil.rmtree(last[0])),
            WITHOUT: (lambda: write("false"), lambda: shutil.rmtree(last[0])),
        },
        "read on Spark": {
            WITH: (lambda: read("true"), lambda: None),
            WITHOUT: (lambda: read("false"), lambda: None),
        },
    }


def tables(result: Mapping[str, Any]) -> list[Table]:
    """CPU and wall time of each work, and the ratios."""
    cells = []
    for name, samples in result["samples"].items():
        ratios = [ratio(median(samples[WITH], key), median(samples[WITHOUT], key)) for key in ("cpu_ms", "wall_ms")]
        cells.append([name, *(spread(samples[one], "cpu_ms") for one in (WITH, WITHOUT)), *ratios])
    sizes = result["sizes"]
    note = (
        f"Arrow: an append of {sizes['rows']:,} rows of 10 columns, and a read of the file. Spark:"
        f" {sizes['spark_rows']:,} rows of 16 columns as plain Parquet. Median of {sizes['runs']} runs in turns; CPU of"
        " Python and the JVM."
    )
    columns = ("", "CPU ms with", "CPU ms without", "CPU with / without", "wall with / without")
    return [Table(title="With checksums of pages, and without", columns=columns, rows=cells, note=note)]
