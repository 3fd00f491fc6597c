"""Checks data files of other programs before a table adds them (spec: Column Projection; Partitioning).

The columns of a file must be columns of the table, by id or by name; required columns must have no nulls; and all rows
must belong to one partition. The footer proves most of this. Columns for which it does not are read; files without
statistics are read whole, once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import CorruptFile, FormatError, InputError
from icefloe.formats.importing.foreign_columns import Names, check_columns, lax_columns
from icefloe.formats.importing.stated_partitions import agrees, constant_of, stated, value_of
from icefloe.formats.parquet.field_ids import struct_ids
from icefloe.formats.parquet.file import ParquetFile
from icefloe.formats.read.align import Aligner
from icefloe.formats.read.data_file import StoredFile
from icefloe.formats.read.file_read import FileRead
from icefloe.formats.read.reader import open_file, read_file
from icefloe.formats.write.entries import WrittenFile
from icefloe.formats.write.measure import Measurer
from icefloe.formats.write.partition_values import PartitionColumn, folder, partition_fields, plain_values, split
from icefloe.io.file_io import FileIO
from icefloe.model.arrow.name_mapped import has_ids
from icefloe.model.entries import COUNTS, Measure, column_key, stat
from icefloe.model.partition.spec import PartitionSpec
from icefloe.model.schema.name_mapping import NameMapping
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import DOUBLE, FLOAT, Field

_ENDINGS = {".parquet": "parquet", ".parq": "parquet", ".orc": "orc", ".avro": "avro"}
_BEGINNINGS = {b"PAR1": "parquet", b"ORC": "orc", b"Obj\x01": "avro"}
_MAGIC_LENGTH = 4

Values = Mapping[int, object]  # partition values by partition field id


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportTarget:
    """The table that files are added to; ``known`` has all names of each field id."""

    schema: Schema
    spec: PartitionSpec
    mapping: NameMapping  # for files without ids
    known: Names


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A file that a table can add; ``by_name`` if it has no ids, so the table needs a name mapping."""

    file: WrittenFile
    by_name: bool


def format_of(io: FileIO, location: str) -> str:
    """The format of a data file, by the end of its name or else by its first bytes."""
    for ending, name in _ENDINGS.items():
        if location.lower().endswith(ending):
            return name
    begins = io.read_range(location, 0, min(_MAGIC_LENGTH, io.size(location)))
    for magic, name in _BEGINNINGS.items():
        if begins.startswith(magic):
            return name
    raise InputError(
        f"{location} is no Parquet, ORC or Avro file, judging by its name and first bytes", location=location
    )


def imported(
    io: FileIO,
    location: str,
    target: ImportTarget,
    *,
    file_format: str | None = None,
    stated_values: Mapping[str, object] | None = None,
) -> Imported | None:
    """Read what a table records of a file; none if the file has no rows. InputError if the table cannot add it.

    ``stated_values`` are partition values from the caller, by the name of the partition field or its column. They
    supply the columns that the file lacks. For a column that the file has, they must equal its values.
    """
    chosen = format_of(io, location) if file_format is None else file_format.lower()
    written = WrittenFile(location=location, size=io.size(location), file_format=chosen)
    try:
        with open_file(io, location, chosen, NameMapping()) as file:
            by_name = len(file.schema) > 0 and not has_ids(file.schema)
            if not by_name:
                opened = _OpenFile(io=io, target=target, file=file, stated_values=stated_values or {}, written=written)
                return _checked(opened, by_name=False)
        with open_file(io, location, chosen, target.mapping) as file:
            opened = _OpenFile(io=io, target=target, file=file, stated_values=stated_values or {}, written=written)
            return _checked(opened, by_name=True)
    except (CorruptFile, InputError):
        raise
    except FormatError as error:  # a file that readers would reject must not be added
        raise InputError(f"cannot add the file: {error}", **{"location": location, **error.context}) from error


def _checked(opened: _OpenFile, *, by_name: bool) -> Imported | None:
    mapping = opened.target.mapping if by_name else NameMapping()
    check_columns(opened.file.schema, opened.target.known, opened.written.location, mapping)
    file = opened.checked()
    return None if file is None else Imported(file=file, by_name=by_name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OpenFile:
    """An open file, the table that it is added to, and its measures so far."""

    io: FileIO
    target: ImportTarget
    file: StoredFile
    stated_values: Mapping[str, object]
    written: WrittenFile

    def checked(self) -> WrittenFile | None:
        """The file with its measures and partition; none if it has no rows."""
        columns, present = partition_fields(self.target.schema, self.target.spec), struct_ids(self.file.schema)
        lacking = [column for column in columns if column.field.source_id not in present]
        stated_by_id = {column.field.field_id: self._stated(column) for column in lacking}
        self._check_states_columns(present, columns)
        constants = {c.field.source_id: constant_of(stated_by_id[c.field.field_id], c) for c in lacking}
        wanted, stored = self.target.schema, self.file.schema
        stored = self.file.schema_for(wanted.fields) if isinstance(self.file, ParquetFile) else stored
        Aligner(stored, wanted, self.written.location, constants)  # refuses what cannot be read
        if self._row_count == 0:
            return None
        held = [column for column in columns if column.field.source_id in present]
        if isinstance(self.file, ParquetFile):
            stored_by_id, written = self._by_footer(held, constants), self._with_footer(self.file)
        else:
            stored_by_id, written = self._by_rows(held, constants)
        self._check_true(held, stored_by_id)
        values = {**stated_by_id, **stored_by_id}
        return replace(written, partition=tuple(values[column.field.field_id] for column in columns))

    @property
    def _row_count(self) -> int:
        return sum(group.rows for group in self.file.row_groups)

    def _stated(self, column: PartitionColumn) -> object:
        """The value of a partition field whose column the file lacks."""
        value, name = stated(column, self.stated_values), ".".join(column.path)
        if value is None:
            raise self._refused(
                f"the file lacks column {name!r}, by which the table is partitioned; state its value with partition=,"
                " or take it from the path with partition='hive'",
                name,
            )
        if not column.transform.is_identity:
            raise self._refused(
                f"the file lacks column {name!r}; the value of {column.transform} cannot replace it", name
            )
        return value_of(value[0], column)

    def _check_states_columns(self, present: frozenset[int], columns: Sequence[PartitionColumn]) -> None:
        """Refuse a path that states a column that neither the file nor a partition field has: it would be null."""
        used = {".".join(column.path) for column in columns} | {column.field.name for column in columns}
        for name in self.stated_values:
            column = self.target.schema.by_name.get(name)
            if name not in used and column is not None and column.id not in present:
                raise self._refused(
                    f"its path states column {name!r}, which the file lacks and the table is not partitioned by", name
                )

    def _with_footer(self, file: ParquetFile) -> WrittenFile:
        return replace(self.written, rows=self._row_count, footer=file.footer, labels=file.schema)

    def _by_footer(self, columns: Sequence[PartitionColumn], constants: Mapping[int, pa.Scalar]) -> Values:
        """Partition values from the statistics of row groups; columns whose statistics are not enough are read."""
        statistics = self.file.statistics(self.target.schema)
        proved = {column.field.field_id: _proved(column, statistics) for column in columns}
        values = {id_: value[0] for id_, value in proved.items() if value is not None}
        open_ = [column for column in columns if column.field.field_id not in values]
        lax = [
            column for column in lax_columns(self.file.schema, self.target.schema) if not _has_all(column, statistics)
        ]
        if len(open_) == 0 and len(lax) == 0:
            return values
        tops = {column.path[0] for column in open_} | {column.name for column in lax}
        wanted = Schema(fields=tuple(column for column in self.target.schema.fields if column.name in tops))
        seen = _Seen(tuple(open_))
        for rows in self._rows(wanted, constants):
            seen.add(rows, self.written.location)
        return {**values, **seen.values()}

    def _by_rows(
        self, columns: Sequence[PartitionColumn], constants: Mapping[int, pa.Scalar]
    ) -> tuple[Values, WrittenFile]:
        """Partition values and measures by reading the whole file."""
        seen, measurer = _Seen(tuple(columns)), Measurer(self.target.schema)
        for rows in self._rows(self.target.schema, constants):
            seen.add(rows, self.written.location)
            measurer.add(rows)
        present = struct_ids(self.file.schema)
        measures = {id_: measured for id_, measured in measurer.measures().items() if id_ in present}
        return seen.values(), replace(self.written, rows=self._row_count, measures=measures)

    def _rows(self, schema: Schema, constants: Mapping[int, pa.Scalar]) -> Iterator[pa.RecordBatch]:
        """Columns of all rows; the reader refuses nulls in required columns."""
        read = FileRead(
            location=self.written.location,
            file_format=self.written.file_format,
            schema=schema,
            constants=constants,
            mapping=self.target.mapping,
        )
        return read_file(self.io, read)

    def _check_true(self, columns: Sequence[PartitionColumn], values: Values) -> None:
        for column in columns:
            claim, value = stated(column, self.stated_values), values[column.field.field_id]
            if claim is not None and not agrees(claim[0], value, column):
                raise self._refused(
                    f"partition field {column.field.name!r} is said to be {claim[0]!r}, but its rows have"
                    f" {folder((value,), (column,))}",
                    column.field.name,
                )

    def _refused(self, why: str, field: str) -> InputError:
        return InputError(f"cannot add {self.written.location}: {why}", location=self.written.location, field=field)


def _proved(column: PartitionColumn, statistics: pa.Table | None) -> tuple[object] | None:
    """The one partition value of all rows, if bounds and counts prove it."""
    known = None if statistics is None else _Known.of(column.field.source_id, statistics)
    if known is None:
        return None
    if known.nulls == known.values:
        return (None,)
    if known.nulls > 0 or known.ends is None or (column.source in (FLOAT, DOUBLE) and known.nans != 0):
        return None
    values = set(plain_values(column.transform.apply(known.ends, column.source)))
    one_value = column.transform.preserves_order or len(set(plain_values(known.ends))) == 1
    return (values.pop(),) if len(values) == 1 and one_value else None


def _has_all(column: Field, statistics: pa.Table | None) -> bool:
    """Whether counts prove that a primitive column has no nulls."""
    known = None if statistics is None else _Known.of(column.id, statistics)
    return known is not None and known.nulls == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """The statistics of a column over all row groups; ``ends`` are all bounds, none if some are missing."""

    values: int
    nulls: int
    nans: int | None
    ends: pa.Array | None

    @staticmethod
    def of(id_: int, statistics: pa.Table) -> _Known | None:
        """None if the counts are not known."""
        key = column_key(id_)
        names = [stat(measure, key) for measure in COUNTS]
        if names[0] not in statistics.column_names:
            return None
        values, nulls = statistics[names[0]], statistics[names[1]]
        if values.null_count > 0 or nulls.null_count > 0:
            return None
        nans = statistics[names[2]] if names[2] in statistics.column_names else None
        lower, upper = stat(Measure.LOWER, key), stat(Measure.UPPER, key)
        ends: pa.Array | None = None
        if lower in statistics.column_names:
            filled = statistics.filter(pc.less(nulls, values))
            ends = pa.concat_arrays([filled[lower].combine_chunks(), filled[upper].combine_chunks()])
        return _Known(
            values=pc.sum(values).as_py() or 0,
            nulls=pc.sum(nulls).as_py() or 0,
            nans=None if nans is None or nans.null_count > 0 else pc.sum(nans).as_py(),
            ends=None if ends is None or ends.null_count > 0 else ends,
        )


class _Seen:
    """Finds the partition of all rows of a file."""

    def __init__(self, columns: tuple[PartitionColumn, ...]) -> None:
        self._columns = columns
        self._partition: tuple[object, ...] | None = None

    def add(self, rows: pa.RecordBatch, location: str) -> None:
        """Check more rows; InputError if they belong to another partition."""
        if len(self._columns) == 0:
            return
        for group in split(rows, self._columns):
            if self._partition is not None and group.partition != self._partition:
                both = " and ".join(
                    folder(partition, self._columns) for partition in (self._partition, group.partition)
                )
                raise InputError(
                    f"cannot add {location}: its rows belong to several partitions, such as {both}; write them to the"
                    " table instead, with append",
                    location=location,
                )
            self._partition = group.partition

    def values(self) -> Values:
        """The values by partition field id."""
        partition = self._partition if self._partition is not None else ()
        return {column.field.field_id: value for column, value in zip(self._columns, partition, strict=True)}
