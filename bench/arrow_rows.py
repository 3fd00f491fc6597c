"""Rows like those of TPC-H's lineitem, made by numpy: sixteen columns, the same in every run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

PARTS = 200_000
SUPPLIERS = 10_000
PIECE = 1_000_000
_EPOCH_DAY = 8036  # 2 January 1992
_WORDS = ("carefully", "final", "deposits", "sleep", "quickly", "above", "the", "ironic", "accounts", "packages")
_MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
_INSTRUCTIONS = ("COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN")


def pieces(rows: int) -> Iterator[pa.Table]:
    """All rows, a million at a time."""
    for start in range(0, rows, PIECE):
        yield lineitem(start, min(PIECE, rows - start))


def lineitem(start: int, rows: int) -> pa.Table:
    """The rows from number ``start`` on."""
    dice = np.random.default_rng(start + 1)
    numbers = np.arange(start, start + rows, dtype=np.int64)
    quantity = dice.integers(1, 51, rows)
    shipped = _EPOCH_DAY + dice.integers(0, 2500, rows)
    comments = pa.array([" ".join(words) for words in dice.choice(_WORDS, (10_000, 4)).tolist()])
    texts = comments.take(pa.array(dice.integers(0, len(comments), rows)))
    order_numbers = pa.array(dice.integers(0, 10**9, rows)).cast(pa.string())
    return pa.table(
        {
            "l_orderkey": numbers // 4,
            "l_partkey": dice.integers(0, PARTS, rows),
            "l_suppkey": dice.integers(0, SUPPLIERS, rows),
            "l_linenumber": (numbers % 4 + 1).astype(np.int32),
            "l_quantity": quantity.astype(np.float64),
            "l_extendedprice": quantity * dice.random(rows) * 1900,
            "l_discount": dice.integers(0, 11, rows) / 100,
            "l_tax": dice.integers(0, 9, rows) / 100,
            "l_returnflag": _one_of(dice, ("A", "N", "R"), rows),
            "l_linestatus": _one_of(dice, ("F", "O"), rows),
            "l_shipdate": _dates(shipped),
            "l_commitdate": _dates(shipped + dice.integers(0, 60, rows)),
            "l_receiptdate": _dates(shipped + dice.integers(0, 30, rows)),
            "l_shipinstruct": _one_of(dice, _INSTRUCTIONS, rows),
            "l_shipmode": _one_of(dice, _MODES, rows),
            "l_comment": pc.binary_join_element_wise(texts, order_numbers, " "),
        }
    )


def _one_of(dice: np.random.Generator, values: tuple[str, ...], rows: int) -> pa.Array:
    return pa.array(values).take(pa.array(dice.integers(0, len(values), rows)))


def _dates(days: np.ndarray) -> pa.Array:
    return pa.array(days.astype(np.int32)).cast(pa.date32())
