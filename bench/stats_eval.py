"""Bench ``stats_eval``: which files a filter leaves out, decided from their statistics.

The entries have lower and upper bounds and null counts of 10 columns; the filter tests all of them. icefloe judges
all entries in one call over Arrow columns. pyiceberg judges its ``DataFile`` objects one by one, so it gets fewer of
them, with the same statistics as the first entries; both must decide alike on those. What is compared is the rate.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions.parser import parse as parse_for_pyiceberg
from pyiceberg.expressions.visitors import _InclusiveMetricsEvaluator
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema as PeerSchema
from pyiceberg.types import DoubleType, LongType, NestedField, StringType

from icefloe.expr.filter.bind import bind
from icefloe.expr.prune.stats_eval import Match, evaluate
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import DOUBLE, LONG, STRING, Field
from measure import Clock, Sample, median, spread
from report import Table

TITLE = "stats_eval: entries pruned by the statistics of 10 columns"
REPEATS = 5
ROWS_PER_FILE = 1000
WIDTH = 4  # of a text, in decimal digits
FILTER = (
    "a >= 300000 AND a < 900000 AND (b = 500000 OR c > 400000) AND d IS NOT NULL AND e != 7 AND f <= 990000"
    " AND x < 0.7 AND y >= 0.01 AND s >= '05' AND t < '99'"
)
LONGS, DOUBLES, TEXTS = "abcdef", "xy", "st"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How many entries to judge, and how many of them pyiceberg judges too."""

    entries: int = 1_000_000
    peer_entries: int = 20_000


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Judge the entries several times with both; samples by contender."""
    tell(f"stats_eval: making {sizes.entries:,} entries")
    table = make_entries(sizes.entries)
    files = peer_files(table.slice(0, sizes.peer_entries))
    bound = bind(parse_filter(FILTER), SCHEMA)
    judge = _InclusiveMetricsEvaluator(PEER_SCHEMA, parse_for_pyiceberg(FILTER))
    samples: dict[str, list[Sample]] = {"icefloe": [], "pyiceberg": []}
    for repeat in range(REPEATS):
        tell(f"stats_eval: round {repeat + 1} of {REPEATS}")
        start = Clock.now()
        answers = evaluate(bound, table)
        middle = Clock.now()
        kept = [judge.eval(file) for file in files]
        end = Clock.now()
        samples["icefloe"].append(_rated(start.until(middle), sizes.entries))
        samples["pyiceberg"].append(_rated(middle.until(end), len(files)))
    ours = pc.not_equal(answers.slice(0, len(files)), int(Match.NONE)).to_pylist()
    if ours != kept:
        raise RuntimeError(f"the two disagree about {sum(a != b for a, b in zip(ours, kept, strict=True))} files")
    return {"sizes": asdict(sizes), "samples": samples, "kept": sum(kept), "judged": len(files)}


def _rated(sample: Sample, entries: int) -> Sample:
    rate = entries / sample["wall_ms"] * 1000
    return {key: round(value, 3) for key, value in sample.items()} | {"entries_per_second": round(rate)}


# -- the same statistics for both

NAMES = (*LONGS, *DOUBLES, *TEXTS)
SCHEMA = Schema(
    fields=tuple(
        Field(i + 1, name, LONG if name in LONGS else DOUBLE if name in DOUBLES else STRING)
        for i, name in enumerate(NAMES)
    )
)
PEER_SCHEMA = PeerSchema(
    *(
        NestedField(i + 1, name, LongType() if name in LONGS else DoubleType() if name in DOUBLES else StringType())
        for i, name in enumerate(NAMES)
    )
)


def make_entries(size: int) -> pa.Table:
    """Entries with random bounds; every 50th column of an entry has no bounds."""
    random = np.random.default_rng(5)
    columns: dict[str, Any] = {"record_count": pa.array(np.full(size, ROWS_PER_FILE), pa.int64())}
    for number, name in enumerate(NAMES, start=1):
        low = random.integers(0, 1_000_000, size)
        high = low + random.integers(0, 100_000, size)
        unknown = random.random(size) < 0.02
        for side, values in (("lower", low), ("upper", high)):
            columns[f"{side}_bound:{number}"] = _bounds(name, values, unknown)
        columns[f"value_count:{number}"] = columns["record_count"]
        columns[f"null_value_count:{number}"] = pa.array(random.integers(0, 3, size))
        if name in DOUBLES:
            columns[f"nan_value_count:{number}"] = pa.array(np.zeros(size, np.int64))
    return pa.table(columns)


def _bounds(name: str, values: np.ndarray[Any, Any], unknown: np.ndarray[Any, Any]) -> pa.Array:
    if name in LONGS:
        return pa.array(values, mask=unknown)
    if name in DOUBLES:
        return pa.array(values / 1_000_000, mask=unknown)
    texts = pc.utf8_lpad(pa.array(values // 100, mask=unknown).cast(pa.string()), WIDTH, "0")
    return pc.binary_join_element_wise(texts, "abcdefgh", "-")


def peer_files(table: pa.Table) -> list[DataFile]:
    """The same statistics as pyiceberg's objects, bounds in bytes as manifests hold them."""
    rows = table.to_pylist()
    return [_peer_file(row) for row in rows]


def _peer_file(row: dict[str, Any]) -> DataFile:
    def measures(measure: str) -> dict[int, Any]:
        found = {i: row.get(f"{measure}:{i}") for i in range(1, len(NAMES) + 1)}
        return {i: value for i, value in found.items() if value is not None}

    return DataFile.from_args(
        record_count=row["record_count"],
        value_counts=measures("value_count"),
        null_value_counts=measures("null_value_count"),
        nan_value_counts=measures("nan_value_count"),
        lower_bounds={i: _stored(value) for i, value in measures("lower_bound").items()},
        upper_bounds={i: _stored(value) for i, value in measures("upper_bound").items()},
    )


def _stored(value: float | int | str) -> bytes:
    if isinstance(value, str):
        return value.encode()
    return struct.pack("<d" if isinstance(value, float) else "<q", value)


def tables(result: Mapping[str, Any]) -> list[Table]:
    """Rates of both and how they compare."""
    samples, sizes = result["samples"], result["sizes"]
    judged = {"icefloe": sizes["entries"], "pyiceberg": result["judged"]}
    base = median(samples["pyiceberg"], "entries_per_second")
    rows = [
        [
            name,
            f"{judged[name]:,}",
            spread(found, "wall_ms"),
            spread(found, "cpu_ms"),
            spread(found, "entries_per_second"),
            f"{median(found, 'entries_per_second') / base:,.0f}",
        ]
        for name, found in samples.items()
    ]
    note = (
        f"Filter: {FILTER}. Bounds, value counts and null counts of {len(NAMES)} columns. Both select the"
        f" same {result['kept']:,} of the {result['judged']:,} entries that both evaluate. pyiceberg decodes bounds"
        " during the evaluation; icefloe decodes them before, with the manifest."
    )
    columns = ("", "entries", "wall ms", "CPU ms", "entries per second", "times the rate")
    return [Table(title=f"Median of {REPEATS} rounds", columns=columns, rows=rows, note=note)]
