"""Equality deletes on Spark: left anti joins of data files with delete files (spec: Equality Delete Files).

Spark reads delete files itself and broadcasts small ones. A data row is deleted if a delete row of a higher sequence
number equals it in all delete columns, null equal to null, and belongs to its partition or to all. Values are equal as
everywhere in this library: NaN equals NaN, and 0.0 differs from -0.0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import and_

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from icefloe.deletes.partition_keys import Ints, scopes
from icefloe.engines.spark.jvm_calls import static_call
from icefloe.engines.spark.read.file_index import Listing, relation
from icefloe.engines.spark.read.footers import NO_FOOTERS, Footers
from icefloe.engines.spark.read.inherited_columns import FileConstant, of_task
from icefloe.engines.spark.schema import struct_type
from icefloe.engines.spark.session import READ_SETTINGS
from icefloe.engines.spark.storage import HadoopStorage
from icefloe.errors import FormatError
from icefloe.expr.text.spark_sql import quoted
from icefloe.model.entries import ContentType, Measure, column_key, empty, of_type, parse_stat, stat
from icefloe.model.partition.spec import PartitionSpec
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import DOUBLE, FLOAT, Field
from icefloe.scan.routes import joinable

_NUMBER, _SCOPE = "_icefloe_number", "_icefloe_scope"
_DELETE_NUMBER, _DELETE_SCOPE = "_icefloe_delete_number", "_icefloe_delete_scope"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGroup:
    """Delete files that one join applies: they compare the same columns, in their partitions or everywhere."""

    fields: tuple[Field, ...]
    is_global: bool
    rows: Ints  # of the table of delete files


class EqualityDeletes:
    """The equality delete files of a snapshot that joins can apply.

    Footers are read of files whose entries do not show that they have all their delete columns.
    """

    def __init__(self, deletes: pa.Table, schema: Schema, specs: tuple[PartitionSpec, ...], footers: Footers) -> None:
        is_equality = np.asarray(of_type(deletes, ContentType.EQUALITY_DELETES))
        self.files = deletes.filter(pa.array(is_equality & joinable(deletes, schema)))
        self.is_complete = self.files.num_rows == int(is_equality.sum())  # whether joins apply all of them
        self._schema = schema
        self._specs = specs
        self._footers = footers

    @cached_property
    def groups(self) -> tuple[DeleteGroup, ...]:
        """The files by delete columns, those of unpartitioned specs apart."""
        everywhere = pa.array([spec.spec_id for spec in self._specs if not spec.is_partitioned], pa.int32())
        is_global = pc.is_in(self.files["partition_spec_id"], value_set=everywhere).to_pylist()
        rows: dict[tuple[frozenset[int], bool], list[int]] = {}
        for row, (ids, whole) in enumerate(zip(self.files["equality_ids"].to_pylist(), is_global, strict=True)):
            rows.setdefault((frozenset(ids), whole), []).append(row)
        return tuple(
            DeleteGroup(
                fields=tuple(field for field in self._schema.fields if field.id in ids),
                is_global=whole,
                rows=np.array(numbers, np.int64),
            )
            for (ids, whole), numbers in rows.items()
        )

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns that any of the files compares."""
        compared = {field.id for group in self.groups for field in group.fields}
        return tuple(field for field in self._schema.fields if field.id in compared)

    def constants(self) -> tuple[FileConstant, ...]:
        """What the joins need to know about a data file: its sequence number and its partition."""
        scope = StructField(_SCOPE, IntegerType(), True)
        number = of_task(_NUMBER, LongType(), "sequence_number")
        return number, FileConstant(field=scope, values=self._scopes)

    def apply(
        self, spark: SparkSession, rows: DataFrame, names: dict[int, str], location: str, hadoop: HadoopStorage
    ) -> DataFrame:
        """The rows that are not deleted; ``names`` are those of the delete columns in ``rows``, by field id."""
        for group in self.groups:
            deletes = self._rows(spark, group, location, hadoop)
            rows = rows.join(deletes, self._is_deleted(spark, group, names), "left_anti")
        return rows

    def _is_deleted(self, spark: SparkSession, group: DeleteGroup, names: dict[int, str]) -> Column:
        newer = F.col(_DELETE_NUMBER) > F.col(_NUMBER)
        conditions = [newer] if group.is_global else [newer, F.col(_DELETE_SCOPE) == F.col(_SCOPE)]
        for field in group.fields:
            ours, theirs = F.col(quoted(names[field.id])), F.col(_column(field).name)
            conditions.append(_bits(spark, ours, field).eqNullSafe(_bits(spark, theirs, field)))
        return reduce(and_, conditions)

    def _rows(self, spark: SparkSession, group: DeleteGroup, location: str, hadoop: HadoopStorage) -> DataFrame:
        """The rows of the delete files of a group, with their sequence number and partition."""
        files = self.files.take(pa.array(group.rows))

        def listed(_: Listing) -> pa.Table:
            self._check_columns(files, group)
            numbers = files["sequence_number"]
            columns = [hadoop.paths(files["location"]), files["file_size_in_bytes"], numbers, self._scopes(files)]
            return pa.table(columns, names=["location", "size", _DELETE_NUMBER, _DELETE_SCOPE])

        return relation(
            spark,
            listed,
            struct_type(Schema(fields=tuple(map(_column, group.fields)))),
            StructType().add(_DELETE_NUMBER, LongType()).add(_DELETE_SCOPE, IntegerType()),
            location=hadoop.path(location),
            size_bytes=pc.sum(files["file_size_in_bytes"], min_count=0).as_py(),
            settings=READ_SETTINGS,
            hadoop=hadoop.settings,
        )

    def _check_columns(self, files: pa.Table, group: DeleteGroup) -> None:
        """FormatError if a file lacks a delete column: Spark would read nulls and delete rows that have nulls."""
        is_certain = np.ones(files.num_rows, np.bool_)
        for field in group.fields:
            name = stat(Measure.VALUES, column_key(field.id))
            is_certain &= np.asarray(pc.is_valid(files[name])) if name in files.column_names else False
        locations = files["location"].filter(pa.array(~is_certain)).to_pylist()
        for location, columns in zip(locations, self._footers.of(locations), strict=True):
            missing = [field.id for field in group.fields if field.id not in columns]
            if len(missing) > 0:
                raise FormatError(
                    f"equality delete file {location} lacks its delete column {missing[0]}", location=location
                )

    def _scopes(self, files: pa.Table) -> pa.Array:
        """A number for the partition of each data or delete file; null if no delete file has the partition."""
        tables = [table.select([n for n in table.column_names if _is_partition(n)]) for table in (self.files, files)]
        codes = scopes(pa.concat_tables(tables, promote_options="permissive").combine_chunks())
        own, others = np.split(codes, [self.files.num_rows])
        first = np.full(int(codes.max(initial=0)) + 1, -1, np.int32)
        first[own[::-1]] = np.arange(len(own), dtype=np.int32)[::-1]
        numbers = first[others]
        return pa.array(numbers, pa.int32(), mask=numbers < 0)


def _is_partition(name: str) -> bool:
    column = parse_stat(name)
    if column is None:
        return name == "partition_spec_id"
    return column.key.is_partition and column.measure in (Measure.LOWER, Measure.NANS)


def _column(field: Field) -> Field:
    """A delete column under a name that no data file has; a delete file that lacks it is an error, so no defaults."""
    return replace(
        field, name=f"_icefloe_delete_{field.id}", required=False, initial_default=None, write_default=None, doc=None
    )


def _bits(spark: SparkSession, column: Column, field: Field) -> Column:
    """Floating-point numbers as their bits: in joins Spark holds 0.0 and -0.0 for equal."""
    if field.type == DOUBLE:
        return static_call(spark, "java.lang.Double", "doubleToLongBits", (column,), LongType())
    if field.type == FLOAT:
        return static_call(spark, "java.lang.Float", "floatToIntBits", (column,), IntegerType())
    return column


NO_EQUALITY_DELETES = EqualityDeletes(empty(), Schema(fields=()), (), NO_FOOTERS)
