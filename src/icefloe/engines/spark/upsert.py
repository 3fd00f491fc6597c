"""Upserts on Spark: the keys of a frame, and the rows of a table that have one of them.

Only keys are read to find the matches, and only in files whose range of keys meets that of the frame. A null key
equals nothing, as in SQL: such rows match none and are always added. The frame is evaluated once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from operator import and_

from pyroaring import BitMap64
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.storagelevel import StorageLevel

from icefloe.engines.engine import Keyed
from icefloe.engines.spark.conform import conformed, quoted
from icefloe.engines.spark.delete import positions
from icefloe.engines.spark.failures import translated
from icefloe.engines.spark.read import Positioned
from icefloe.errors import InputError
from icefloe.expr.nodes import ALWAYS_FALSE, Expr, Op, Predicate, conjunction
from icefloe.model.schema import Schema
from icefloe.model.types import DATE, INT, LONG, STRING, TIMESTAMP, TIMESTAMPTZ, Decimal, Field, is_primitive

_RANGED = frozenset({INT, LONG, DATE, TIMESTAMP, TIMESTAMPTZ, STRING})


@contextmanager
def keyed(frame: DataFrame, schema: Schema, on: Sequence[str]) -> Iterator[Keyed]:
    """A frame made to fit the table and kept, in memory or on disk, with proof that no key occurs twice in it.

    Two rows with one key are an error: which of them should win?
    """
    fields = _key_fields(schema, on)
    _check_given(frame, fields)
    kept = conformed(frame, schema).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        with translated():
            within = _range(kept, fields)
        yield Keyed(rows=kept, on=tuple(on), range=within)
    finally:
        kept.unpersist()


def find_keys(rows: Positioned, source: Keyed) -> dict[str, BitMap64]:
    """The positions, by file, of rows whose key is one of the source's."""
    wanted = _with_keys(source.rows, source.on).select(*(quoted(name) for name in source.on))
    with translated():
        return positions(rows.frame.join(wanted, on=list(source.on), how="left_semi"), rows.files)


def _key_fields(schema: Schema, on: Sequence[str]) -> tuple[Field, ...]:
    if len(on) == 0 or len(set(on)) < len(on):
        raise InputError(f"on={list(on)}: name one or more different key columns")
    fields = schema.select(tuple(on)).fields
    nested = [field.name for field in fields if not is_primitive(field.type)]
    if len(nested) > 0:
        raise InputError(f"column {nested[0]!r} is nested and cannot be a key", field=nested[0])
    return fields


def _check_given(frame: DataFrame, fields: tuple[Field, ...]) -> None:
    given = {name.lower() for name in frame.columns}
    missing = [field.name for field in fields if field.name.lower() not in given]
    if len(missing) > 0:
        raise InputError(f"the frame lacks the key column {', '.join(missing)}", field=missing[0])


def _with_keys(frame: DataFrame, on: Sequence[str]) -> DataFrame:
    """The rows none of whose keys is null."""
    return frame.where(reduce(and_, [F.col(quoted(name)).isNotNull() for name in on]))


def _range(frame: DataFrame, fields: tuple[Field, ...]) -> Expr:
    """A filter that every matching row satisfies, found in one pass with the check that each key occurs once."""
    columns = [F.col(quoted(field.name)) for field in fields]
    per_key = _with_keys(frame, [field.name for field in fields]).groupBy(*columns).agg(F.count("*").alias("__rows"))
    ranged = [i for i, field in enumerate(fields) if field.type in _RANGED or isinstance(field.type, Decimal)]
    ends = [end(columns[i]) for i in ranged for end in (F.min, F.max)]
    example = F.max_by(F.to_json(F.struct(*columns)), "__rows")
    most, key, *values = (
        column[0].as_py() for column in per_key.agg(F.max("__rows"), example, *ends).toArrow().columns
    )
    if most is None:
        return ALWAYS_FALSE
    if most > 1:
        raise InputError(f"{most} rows have the key {key}; keep one row per key", key=key)
    parts = []
    for i, low, high in zip(ranged, values[::2], values[1::2], strict=True):
        parts += [Predicate(Op.GE, fields[i].name, (low,)), Predicate(Op.LE, fields[i].name, (high,))]
    return conjunction(parts)
