"""Bench ``bitmaps``: how many bytes a set of random positions takes, beside the figures of the V4 proposal.

The proposal's appendix compares a raw bitset, the same compressed by LZ4 and by ZSTD at level 3, and a Roaring bitmap.
Positions are drawn at random, several times, so figures differ a little between draws; what does not depend on the
draw (a Roaring bitmap with few positions) must be equal to the byte. The blob that icefloe stores is shown as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap, BitMap64

from icefloe.codecs.puffin.deletion_vector import encode_dv
from measure import Clock, median
from plot import Chart, Line
from report import Table

TITLE = "bitmaps: sizes of deletion vectors, compared with the proposal"
SIZES = (1_000, 10_000, 100_000, 1_000_000)
DENSITIES = (0.01, 0.05, 0.1, 0.2)
PROPOSAL: Mapping[str, tuple[tuple[int, ...], ...]] = {
    "LZ4": (
        (57, 383, 3_545, 32_713),
        (98, 920, 8_480, 75_451),
        (130, 1_155, 10_600, 108_987),
        (135, 1_264, 12_541, 125_493),
    ),
    "Roaring": (
        (36, 216, 2_024, 20_136),
        (116, 1_016, 10_024, 100_136),
        (216, 2_016, 15_340, 126_440),
        (416, 4_016, 16_408, 129_918),
    ),
    "ZSTD-3": (
        (46, 224, 1_826, 17_690),
        (93, 533, 4_727, 46_987),
        (97, 715, 6_599, 67_170),
        (129, 981, 9_227, 91_923),
    ),
    "raw bitset": (
        (123, 1_247, 12_485, 124_980),
        (123, 1_247, 12_494, 124_985),
        (123, 1_247, 12_500, 125_000),
        (125, 1_250, 12_500, 125_000),
    ),
}
OURS = "icefloe's blob"

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How often positions are drawn."""

    draws: int = 9


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Sizes and times of every method for every draw."""
    samples: list[dict[str, Any]] = []
    for density in DENSITIES:
        for size in SIZES:
            tell(f"bitmaps: {size:,} rows, density {density:g}")
            for draw in range(sizes.draws):
                positions = drawn(size, density, draw)
                for name, method in METHODS.items():
                    start = Clock.now()
                    length = method(positions)
                    time = round(start.until(Clock.now())["cpu_ms"], 4)
                    samples.append({"method": name, "density": density, "size": size, "bytes": length, "cpu_ms": time})
    return {"sizes": asdict(sizes), "samples": samples}


def drawn(size: int, density: float, draw: int) -> Positions:
    """Distinct positions below ``size``, in order."""
    dice = np.random.default_rng([draw, size, round(density * 100)])
    return np.sort(dice.choice(size, round(size * density), replace=False)).astype(np.int64)


def bitset(positions: Positions) -> bytes:
    """One bit for each row up to the last position, as Java's BitSet gives its bytes."""
    bits = np.zeros(int(positions[-1]) + 1, np.uint8)
    bits[positions] = 1
    return np.packbits(bits, bitorder="little").tobytes()


def _roaring(positions: Positions) -> int:
    found = BitMap(positions.astype(np.uint32))
    found.run_optimize()
    return len(found.serialize())


METHODS: Mapping[str, Callable[[Positions], int]] = {
    "LZ4": lambda p: len(pa.Codec("lz4_raw").compress(bitset(p), asbytes=True)),
    "Roaring": _roaring,
    "ZSTD-3": lambda p: len(pa.Codec("zstd", compression_level=3).compress(bitset(p), asbytes=True)),
    "raw bitset": lambda p: len(bitset(p)),
    OURS: lambda p: len(encode_dv(BitMap64(p))),
}


def _of(result: Mapping[str, Any], method: str, density: float, size: int) -> list[dict[str, Any]]:
    wanted = {"method": method, "density": density, "size": size}
    return [s for s in result["samples"] if all(s[key] == value for key, value in wanted.items())]


def tables(result: Mapping[str, Any]) -> list[Table]:
    """Bytes beside the proposal's, and what it takes to make them."""
    rows = []
    for method, figures in PROPOSAL.items():
        for density, theirs in zip(DENSITIES, figures, strict=True):
            mine = (median(_of(result, method, density, size), "bytes") for size in SIZES)
            cells = [
                f"{own:,.0f} / {their:,} {_difference(own, their)}" for own, their in zip(mine, theirs, strict=True)
            ]
            rows.append([f"{method}, {density:g}", *cells])
    columns = ["", *(f"{size:,} rows" for size in SIZES)]
    note = (
        f"Measured / proposal. Bytes, median of {result['sizes']['draws']} draws of random positions; '=' means the"
        " same number. Roaring is the portable 32-bit format. Compression applies to the raw bitset. LZ4 is the block"
        " format; small figures of the proposal are about 8 bytes larger, probably because of a header."
    )
    return [
        Table(title="Bytes by method, density and rows", columns=columns, rows=rows, note=note),
        _blobs(result),
    ]


def _difference(mine: float, theirs: float) -> str:
    return "=" if mine == theirs else f"({(mine / theirs - 1) * 100:+.1f} %)"


def _blobs(result: Mapping[str, Any]) -> Table:
    rows = []
    for density in DENSITIES:
        cells = []
        for size in SIZES:
            found = _of(result, OURS, density, size)
            more = median(found, "bytes") - median(_of(result, "Roaring", density, size), "bytes")
            cells.append(f"{median(found, 'bytes'):,.0f} ({more:+,.0f}), {median(found, 'cpu_ms'):.2f} ms")
        rows.append([f"density {density:g}", *cells])
    columns = ["", *(f"{size:,} rows" for size in SIZES)]
    note = (
        "The blob that the root stores for a leaf with this number of rows: deletion-vector-v1, a 64-bit Roaring bitmap"
        " with length, magic number and checksum. Bytes (difference to the 32-bit bitmap), and CPU to encode it."
    )
    return Table(title="The blob that icefloe stores", columns=columns, rows=rows, note=note)


def plots(result: Mapping[str, Any]) -> list[Chart]:
    """Bytes for each position over the density, at a million rows."""
    largest = SIZES[-1]
    lines = [
        Line(name=name, points=[(d, median(_of(result, name, d, largest), "bytes") / (largest * d)) for d in DENSITIES])
        for name in METHODS
    ]
    theirs = [
        Line(
            name=f"{name}, proposal",
            points=[(d, row[-1] / (largest * d)) for d, row in zip(DENSITIES, figures, strict=True)],
            dash=1,
            colour=number,
        )
        for number, (name, figures) in enumerate(PROPOSAL.items())
    ]
    return [
        Chart(
            name="bitmaps",
            title=f"Bytes for each removed row, {largest:,} rows",
            x="share of rows removed",
            y="bytes for each removed row",
            lines=[*lines, *theirs],
            log_x=True,
            log_y=True,
        )
    ]
