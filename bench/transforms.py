"""Bench ``transforms``: partition transforms of whole columns, beside those of pyiceberg, which are written in Rust.

Both get the same Arrow arrays and take turns, so that whatever else the machine does hits both alike. Every result is
compared before anything is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyiceberg.transforms as theirs
import pyiceberg.types as their_types

from icefloe.model.schema.types import LONG, STRING, TIMESTAMP, Type
from icefloe.transforms import parse_transform
from measure import Clock, Sample, median, ratio, spread
from report import Table

TITLE = "transforms: partition values of whole columns"
CONTENDERS = ("icefloe", "pyiceberg")
LONGEST = 32
FIRST, LAST = 0, 2_000_000_000_000_000  # 1970 and 2033, in microseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much to do: the values of numeric columns and of text columns, and how often each is transformed."""

    longs: int = 10_000_000
    strings: int = 2_000_000
    rounds: int = 5


@dataclass(frozen=True, slots=True)
class _Case:
    """A transform of a column, by both contenders."""

    transform: str
    column: str
    source: Type
    their_source: their_types.IcebergType

    def calls(self, array: pa.Array) -> dict[str, Callable[[], pa.Array]]:
        ours = parse_transform(self.transform)
        other = theirs.parse_transform(self.transform).pyarrow_transform(self.their_source)
        return {"icefloe": lambda: ours.apply(array, self.source), "pyiceberg": lambda: other(array)}

    def __str__(self) -> str:
        return f"{self.transform} of {self.column}"


_NUMBERS = ("longs", LONG, their_types.LongType())
_TEXTS = ("strings", STRING, their_types.StringType())
_TIMES = ("timestamps", TIMESTAMP, their_types.TimestampType())
CASES = [
    *(_Case(transform, *_NUMBERS) for transform in ("bucket[16]", "bucket[100]", "truncate[10]", "truncate[1024]")),
    *(_Case(transform, *_TEXTS) for transform in ("bucket[16]", "bucket[100]", "truncate[8]")),
    *(_Case(transform, *_TIMES) for transform in ("year", "month", "day", "hour", "bucket[16]")),
]


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Transform every column with both contenders in turns; samples by case and contender."""
    columns = _columns(sizes)
    samples = {str(case): _measure(case, columns[case.column], sizes.rounds, tell) for case in CASES}
    return {"sizes": asdict(sizes), "samples": samples}


def _columns(sizes: Sizes) -> dict[str, pa.Array]:
    draw = np.random.default_rng(1)
    lengths = draw.integers(0, LONGEST, sizes.strings, endpoint=True)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    letters = draw.integers(ord("a"), ord("z"), offsets[-1], np.uint8, endpoint=True)
    return {
        "longs": pa.array(draw.integers(-(2**62), 2**62, sizes.longs)),
        "timestamps": pa.array(draw.integers(FIRST, LAST, sizes.longs)).view(pa.timestamp("us")),
        "strings": pa.StringArray.from_buffers(sizes.strings, pa.py_buffer(offsets), pa.py_buffer(letters)),
    }


def _measure(case: _Case, array: pa.Array, rounds: int, tell: Callable[[str], None]) -> dict[str, list[Sample]]:
    calls = case.calls(array)
    found = {name: call() for name, call in calls.items()}
    if not found["icefloe"].equals(found["pyiceberg"].cast(found["icefloe"].type)):
        raise RuntimeError(f"{case}: the results differ")
    del found
    samples: dict[str, list[Sample]] = {name: [] for name in CONTENDERS}
    for turn in range(rounds):
        for name in CONTENDERS if turn % 2 == 0 else CONTENDERS[::-1]:
            start = Clock.now()
            calls[name]()
            sample = start.until(Clock.now())
            sample["per_second"] = len(array) / sample["wall_ms"] * 1000
            samples[name].append({key: round(value, 3) for key, value in sample.items()})
    tell(f"transforms: {case}, {len(array):,} values, {rounds} rounds")
    return samples


def tables(result: Mapping[str, Any]) -> list[Table]:
    """Times, throughput and how they compare, a row for every case."""
    sizes, rows = result["sizes"], []
    for case, samples in result["samples"].items():
        ours, other = (samples[name] for name in CONTENDERS)
        speeds = [median(found, "per_second") for found in (ours, other)]
        cells = [spread(ours, "wall_ms"), spread(other, "wall_ms"), *(f"{speed / 1e6:,.0f}" for speed in speeds)]
        rows.append([case, *cells, ratio(*speeds), ratio(median(ours, "cpu_ms"), median(other, "cpu_ms"))])
    columns = ["", *(f"{name} wall ms" for name in CONTENDERS), *(f"{name} million/s" for name in CONTENDERS)]
    note = (
        f"{sizes['longs']:,} longs of the full range, {sizes['longs']:,} timestamps from 1970 to 2033 and"
        f" {sizes['strings']:,} strings of 0 to {LONGEST} letters. The results are equal. Both use one thread."
    )
    return [
        Table(
            title=f"Throughput, median of {sizes['rounds']} rounds: above 1, icefloe is faster",
            columns=[*columns, "throughput ratio", "CPU ratio"],
            rows=rows,
            note=note,
        )
    ]
