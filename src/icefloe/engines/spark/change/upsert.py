"""Upserts on Spark: the keys of a frame, and the rows of a table that have one of them.

Only keys are read to find the matches, and only in files whose range of keys meets that of the frame. A null key
equals nothing, as in SQL: such rows match none and are always added. The frame is evaluated once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import reduce
from operator import and_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.storagelevel import StorageLevel

from icefloe.engines.engine import Keyed, Matched
from icefloe.engines.spark.change.delete import positions
from icefloe.engines.spark.failures import translated
from icefloe.engines.spark.read.read import Positioned
from icefloe.engines.spark.write.conform import conformed, quoted
from icefloe.errors import InputError
from icefloe.expr.filter.nodes import ALWAYS_FALSE, Expr, Op, Predicate, conjunction
from icefloe.model.schema.metadata_columns import ROW_ID
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import DATE, INT, LONG, STRING, TIMESTAMP, TIMESTAMPTZ, Decimal, Field, is_primitive

_RANGED = frozenset({INT, LONG, DATE, TIMESTAMP, TIMESTAMPTZ, STRING})


@contextmanager
def keyed(frame: DataFrame, schema: Schema, on: Sequence[str]) -> Iterator[Keyed]:
    """A frame made to fit the table and kept, in memory or on disk, with proof that no key occurs twice in it.

    Two rows with one key are an error: which of them should win?
    """
    fields = _key_fields(schema, on)
    _check_given(frame, fields)
    with ExitStack() as held:
        kept = _kept(conformed(frame, schema), held)
        with translated():
            within = _range(kept, fields)
        yield Keyed(rows=kept, on=tuple(on), range=within, held=held)


def _kept(frame: DataFrame, held: ExitStack) -> DataFrame:
    """The frame, evaluated once and kept in memory or on disk until ``held`` lets go."""
    kept = frame.persist(StorageLevel.MEMORY_AND_DISK)
    held.callback(kept.unpersist)
    return kept


def find_keys(rows: Positioned, source: Keyed) -> Matched:
    """The positions, by file, of rows whose key is one of the source's."""
    with translated():
        return Matched(positions=positions(_matches(rows, source), rows.files), rows=source.rows)


def find_keys_and_ids(rows: Positioned, source: Keyed, *, settled: int) -> Matched:
    """The same, and the source with the ids of those rows as ``_row_id``; only ids below ``settled`` are final."""
    id_ = F.col(ROW_ID.name)
    with translated():
        found = _matches(rows, source).withColumn(ROW_ID.name, F.when(id_ < settled, id_))
        kept = _kept(found, source.held)
        at = positions(kept, rows.files)
        if len(at) == 0 or kept.select(F.max(id_)).toArrow().column(0)[0].as_py() is None:
            return Matched(positions=at, rows=source.rows)
    # A row may replace several; it goes on as the oldest of them.
    ids = kept.groupBy(*(F.col(quoted(name)) for name in source.on)).agg(F.min(id_).alias(ROW_ID.name))
    joined = source.rows.join(ids, on=list(source.on), how="left")
    return Matched(positions=at, rows=joined, lineage=(ROW_ID,))


def _matches(rows: Positioned, source: Keyed) -> DataFrame:
    wanted = _with_keys(source.rows, source.on).select(*(quoted(name) for name in source.on))
    return rows.frame.join(wanted, on=list(source.on), how="left_semi")


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
