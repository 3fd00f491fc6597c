"""Upserts on Spark: rows of a frame replace the rows of a table that have the same keys, and are added otherwise.

Only keys are read to find the matches, and only in files whose range of keys meets that of the frame. A null key
equals nothing, as in SQL: such rows are always added. The frame is evaluated once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_

import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.storagelevel import StorageLevel

from icefloe.engines.spark.conform import conformed, quoted
from icefloe.engines.spark.delete import positions
from icefloe.engines.spark.failures import translated
from icefloe.engines.spark.read import Source, rows_with_positions, survivors
from icefloe.engines.spark.session import capabilities
from icefloe.engines.spark.write import write
from icefloe.errors import InputError
from icefloe.expr.nodes import ALWAYS_TRUE, Expr, Op, Predicate, conjunction
from icefloe.io.file_io import FileIO
from icefloe.model.metadata import TableMetadata
from icefloe.model.schema import Schema
from icefloe.model.types import DATE, INT, LONG, STRING, TIMESTAMP, TIMESTAMPTZ, Decimal, Field, is_primitive
from icefloe.scan.tasks import Plan

_RANGED = frozenset({INT, LONG, DATE, TIMESTAMP, TIMESTAMPTZ, STRING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Upsert:
    """What a commit has to do: add ``entries`` and take out ``deleted`` positions or whole ``removed`` files."""

    entries: pa.Table
    deleted: Mapping[str, BitMap64]
    removed: tuple[str, ...]
    updated: int
    inserted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Keys:
    """What there is to know about the keys of a frame: how many rows have one, and a filter that keeps all matches."""

    rows: int
    within: Expr


def upsert(frame: DataFrame, *, on: Sequence[str], source: Source, metadata: TableMetadata, io: FileIO) -> Upsert:
    """Find the rows to replace and write the rows of the frame; ``source`` must return the whole schema of the table.

    Keys that occur twice in the frame are an error: which of the rows should win?
    """
    spark = frame.sparkSession
    capabilities(spark)
    fields = _key_fields(metadata.schema, on)
    _check_given(frame, fields)
    with translated(), _kept(conformed(frame, metadata.schema)) as incoming:
        total = incoming.count()
        keys = _measured(incoming, fields)
        deleted = _matches(incoming, fields, keys, source)
        removed = () if metadata.rules.deletion_vectors else tuple(deleted)
        rows = incoming if len(removed) == 0 else survivors(spark, source, deleted).unionByName(incoming)
        entries = write(rows, metadata=metadata, io=io)
    updated = sum(len(bitmap) for bitmap in deleted.values())
    return Upsert(
        entries=entries,
        deleted={} if len(removed) > 0 else deleted,
        removed=removed,
        updated=updated,
        inserted=total - updated,
    )


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


@contextmanager
def _kept(frame: DataFrame) -> Iterator[DataFrame]:
    """The frame with its rows kept, in memory or on disk, for as long as they are needed."""
    kept = frame.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield kept
    finally:
        kept.unpersist()


def _with_keys(incoming: DataFrame, fields: tuple[Field, ...]) -> DataFrame:
    """The rows none of whose keys is null."""
    return incoming.where(reduce(and_, [F.col(quoted(field.name)).isNotNull() for field in fields]))


def _measured(incoming: DataFrame, fields: tuple[Field, ...]) -> _Keys:
    """The range of the keys, found together with proof that each occurs once."""
    columns = [F.col(quoted(field.name)) for field in fields]
    per_key = _with_keys(incoming, fields).groupBy(*columns).agg(F.count("*").alias("__rows"))
    measures = [F.max("__rows"), F.sum("__rows"), F.max_by(F.to_json(F.struct(*columns)), "__rows")]
    ranged = [i for i, field in enumerate(fields) if field.type in _RANGED or isinstance(field.type, Decimal)]
    ends = [end(columns[i]) for i in ranged for end in (F.min, F.max)]
    most, rows, example, *values = per_key.agg(*measures, *ends).toArrow().columns
    if rows[0].as_py() is None:
        return _Keys(rows=0, within=ALWAYS_TRUE)
    if most[0].as_py() > 1:
        raise InputError(
            f"{most[0].as_py()} rows have the key {example[0].as_py()}; keep one row per key", key=example[0].as_py()
        )
    parts = []
    for i, low, high in zip(ranged, values[::2], values[1::2], strict=True):
        parts += [Predicate(Op.GE, fields[i].name, (low[0].as_py(),))]
        parts += [Predicate(Op.LE, fields[i].name, (high[0].as_py(),))]
    return _Keys(rows=rows[0].as_py(), within=conjunction(parts))


def _matches(incoming: DataFrame, fields: tuple[Field, ...], keys: _Keys, source: Source) -> dict[str, BitMap64]:
    """The positions of the table's rows whose keys the frame has."""
    if keys.rows == 0:
        return {}

    def plan(filter_: Expr) -> Plan:
        return source.plan(conjunction([filter_, keys.within]))

    names = [field.name for field in fields]
    narrow = replace(source, plan=plan, schema=source.schema.select(tuple(names)))
    rows = rows_with_positions(incoming.sparkSession, narrow)
    wanted = _with_keys(incoming, fields).select(*(quoted(name) for name in names))
    return positions(rows.frame.join(wanted, on=names, how="left_semi"), rows.files)
