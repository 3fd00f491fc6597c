"""Bench ``decoders``: data files read with the decoders written here, and with the libraries that they replace.

Avro: all rows, where fastavro makes dictionaries. Parquet: 1 row of 1,000 by a filter on a clustered column, where
Arrow reads whole row groups because it knows no pages. ORC: the same, where Arrow reads the whole file because it
reports no statistics of stripes. Manifests in Avro have a bench of their own, ``manifests``.
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

import icefloe
from measure import Clock, Sample, median, ratio, spread
from report import Table

TITLE = "decoders: data files read by the decoders written here"
REPEATS = 5
KEPT = 1_000  # one row of so many passes the filter
STRIPE_BYTES = 8 * 2**20  # so that the file has as many stripes as one of the default sizes, 64 MB in 512 MB
LIBRARIES = {"avro": "fastavro", "parquet": "pyarrow.dataset", "orc": "pyarrow.dataset"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How many rows the Avro file has, and how many each of the others."""

    avro_rows: int = 500_000
    rows: int = 4_000_000


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Read each file several times with both, in turns; samples by format and reader."""
    samples: dict[str, dict[str, list[Sample]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        cat = icefloe.catalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/wh")
        cat.create_namespace("db")
        for file_format, library in LIBRARIES.items():
            count = sizes.avro_rows if file_format == "avro" else sizes.rows
            tell(f"decoders: writing {count:,} rows as {file_format}")
            ours, theirs = _readers(_written(cat, file_format, count), Path(folder), file_format, count)
            if ours() != theirs():
                raise RuntimeError(f"{file_format}: the two read different rows")
            works = {"icefloe": ours, library: theirs}
            samples[file_format] = {name: [] for name in works}
            for repeat in range(REPEATS):
                for name in works if repeat % 2 == 0 else reversed(works):
                    samples[file_format][name].append(_timed(works[name]))
            tell(f"decoders: {file_format} read {REPEATS} times with each")
    return {"sizes": asdict(sizes), "samples": samples}


def _written(cat: Any, file_format: str, count: int) -> Any:
    draw = np.random.default_rng(1)
    rows = pa.table(
        {
            "id": pa.array(np.arange(count)),
            "price": pa.array(draw.random(count)),
            "part": pa.array(draw.integers(0, 200_000, count)),
            "day": pa.array(draw.integers(18_000, 21_000, count).astype(np.int32), pa.date32()),
            "note": pa.array(draw.integers(0, 2**40, count)).cast(pa.string()),
            "flag": pa.array(draw.integers(0, 3, count)).cast(pa.string()),
        }
    )
    properties = {"write.format.default": file_format, "write.orc.stripe-size-bytes": str(STRIPE_BYTES)}
    table = cat.create_table(f"db.{file_format}", schema=rows.schema, format_version=2, properties=properties)
    table.append(rows)
    return table


def _readers(table: Any, folder: Path, file_format: str, count: int) -> tuple[Callable[[], int], Callable[[], int]]:
    """How both count the rows that they read; a count that is the same shows that nothing was lost."""
    files = sorted(str(path) for path in (folder / "wh").rglob(f"*.{file_format}") if "data" in path.parts)
    if file_format == "avro":
        return lambda: table.scan().to_arrow().num_rows, lambda: sum(len(_records(path)) for path in files)
    first = count // 2
    last = first + count // KEPT
    wanted = (pc.field("id") >= first) & (pc.field("id") < last)
    return (
        lambda: table.scan(f"id >= {first} AND id < {last}").to_arrow().num_rows,
        lambda: ds.dataset(files, format=file_format).to_table(filter=wanted).num_rows,
    )


def _records(path: str) -> list[Any]:
    with open(path, "rb") as file:
        return list(fastavro.reader(file))


def _timed(work: Callable[[], object]) -> Sample:
    gc.collect()
    start = Clock.now()
    work()
    return {key: round(value, 3) for key, value in start.until(Clock.now()).items()}


def tables(result: Mapping[str, Any]) -> list[Table]:
    """A row for each format."""
    sizes, rows = result["sizes"], []
    for file_format, library in LIBRARIES.items():
        ours, theirs = (result["samples"][file_format][name] for name in ("icefloe", library))
        times = [spread(samples, key) for samples in (ours, theirs) for key in ("wall_ms", "cpu_ms")]
        ratios = [ratio(median(ours, key), median(theirs, key)) for key in ("wall_ms", "cpu_ms")]
        rows.append([f"{file_format}, {library}", *times, *ratios])
    return [
        Table(
            title=f"Median of {REPEATS} reads: below 1, icefloe needs less",
            columns=["", "wall ms", "CPU ms", "library wall ms", "library CPU ms", "wall ratio", "CPU ratio"],
            rows=rows,
            note=(
                f"Avro: all of {sizes['avro_rows']:,} rows of 6 columns, as Arrow columns and as dictionaries. Parquet"
                f" and ORC: 1 row of {KEPT:,} of {sizes['rows']:,}, by a range of the column in whose order they are."
                " The ORC file has stripes of 8 MB."
            ),
        )
    ]
