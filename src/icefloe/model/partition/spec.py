"""Partition specs: how rows are grouped into files (spec: Partitioning).

A spec refers to its columns by id and to its transforms by their text. ``icefloe.transforms`` computes transforms and
says which types they accept; the rules in this module need only names and ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from operator import attrgetter
from typing import TypeAlias

from icefloe.model.partition.transform_names import IDENTITY, TRANSFORM_NAMES, VOID
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Geography, Geometry, Unknown
from icefloe.model.text.text_checks import text_problem

FIRST_PARTITION_FIELD_ID = 1000
FIRST_ID_APART = 1 << 30  # far above all ids that tables count up to

Derivation: TypeAlias = tuple[tuple[int, ...], str]  # source columns and transform

_SUFFIXES = {transform.name: transform.suffix for transform in TRANSFORM_NAMES}
_TIMES = frozenset(transform.name for transform in TRANSFORM_NAMES if transform.is_time)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionField:
    """One value of the partition tuple: a transform of a source column, or of several (``other_source_ids``, v3).

    ``transform`` is the text of the spec (``identity``, ``day``, ``bucket[16]``); ``icefloe.transforms`` parses it.
    ``field_id`` identifies one value in all specs of a table. Where files have another id, which means other values in
    other specs, that is ``shared_id`` (see ``with_distinct_ids``). ``extra`` are unknown keys of its JSON object with
    their JSON texts.
    """

    source_id: int
    field_id: int
    name: str
    transform: str
    other_source_ids: tuple[int, ...] = ()
    extra: Unknown = ()
    shared_id: int | None = None

    @property
    def stored_id(self) -> int:
        """The id that metadata and manifests have for the field."""
        return self.field_id if self.shared_id is None else self.shared_id

    @property
    def source_ids(self) -> tuple[int, ...]:
        """All source columns in the order of the transform's arguments."""
        return (self.source_id, *self.other_source_ids)

    @property
    def derivation(self) -> Derivation:
        """Source columns and transform: fields with the same derivation have the same values."""
        return self.source_ids, self.transform

    @property
    def is_void(self) -> bool:
        """Whether the field was dropped and only keeps its position."""
        return self.transform == VOID


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSpec:
    """A numbered list of partition fields; empty means unpartitioned."""

    spec_id: int = 0
    fields: tuple[PartitionField, ...] = ()
    extra: Unknown = ()

    @property
    def is_partitioned(self) -> bool:
        """Whether any field groups rows; void fields do not."""
        return any(not field.is_void for field in self.fields)

    def field(self, name: str) -> PartitionField | None:
        """The field of this name, if there is one."""
        return next((field for field in self.fields if field.name == name), None)


UNPARTITIONED = PartitionSpec()


def partition_name(transform: str, *columns: str) -> str:
    """Iceberg's default name for a partition field of a new table.

    >>> partition_name("day", "ts"), partition_name("truncate[4]", "note"), partition_name("identity", "id")
    ('ts_day', 'note_trunc', 'id')
    """
    kind, source = transform.partition("[")[0], "_".join(columns)
    return source + _SUFFIXES.get(kind, f"_{kind}")


def added_name(transform: str, *columns: str) -> str:
    """Iceberg's default name for a field that is added later, which has the number of its transform.

    >>> added_name("day", "ts"), added_name("bucket[16]", "id"), added_name("truncate[4]", "note")
    ('ts_day', 'id_bucket_16', 'note_trunc_4')
    """
    number = transform.partition("[")[2].removesuffix("]")
    return partition_name(transform, *columns) + (f"_{number}" if number != "" else "")


def with_distinct_ids(specs: Iterable[PartitionSpec]) -> tuple[PartitionSpec, ...]:
    """The specs of a table with a different field id for each partition value, even if files use one id for several.

    Writers of version 1 started at id 1000 in every spec. The value of the oldest spec keeps the id, others get ids
    that no file has. Adding specs later does not change these ids.

    >>> a, b = (PartitionField(source_id=i, field_id=1000, name=f"c{i}", transform="identity") for i in (1, 2))
    >>> specs = with_distinct_ids([PartitionSpec(spec_id=0, fields=(a,)), PartitionSpec(spec_id=1, fields=(b,))])
    >>> [(field.field_id, field.stored_id) for spec in specs for field in spec.fields]
    [(1000, 1000), (1073741824, 1000)]
    """
    listed = tuple(specs)
    stored = {field.stored_id for spec in listed for field in spec.fields}
    free = (id_ for id_ in count(FIRST_ID_APART) if id_ not in stored)
    owners: dict[int, Derivation] = {}
    apart: dict[tuple[int, Derivation], int] = {}
    for spec in sorted(listed, key=attrgetter("spec_id")):
        for field in spec.fields:
            value = (field.stored_id, field.derivation)
            if not field.is_void and owners.setdefault(*value) != field.derivation and value not in apart:
                apart[value] = next(free)
    return tuple(replace(spec, fields=tuple(_apart(field, apart) for field in spec.fields)) for spec in listed)


def _apart(field: PartitionField, apart: Mapping[tuple[int, Derivation], int]) -> PartitionField:
    id_ = apart.get((field.stored_id, field.derivation))
    if id_ is None:
        return field if field.shared_id is None else replace(field, field_id=field.stored_id, shared_id=None)
    return replace(field, field_id=id_, shared_id=field.stored_id)


def same_partitioning(a: PartitionSpec, b: PartitionSpec) -> bool:
    """Whether two specs have the same fields, with the same ids, in the same order; spec ids are not compared."""
    return compatible(a, b) and [field.field_id for field in a.fields] == [field.field_id for field in b.fields]


def compatible(a: PartitionSpec, b: PartitionSpec) -> bool:
    """Whether two specs have fields of the same sources, transforms and names in the same order.

    Field ids are not compared: version 1 does not track them. Files written by one spec fit the other.
    """
    return [(*f.derivation, f.name) for f in a.fields] == [(*f.derivation, f.name) for f in b.fields]


def spec_problem(spec: PartitionSpec, schema: Schema) -> str | None:
    """Why a table of this schema cannot have the spec, from names and ids; ``None`` if it can.

    The source columns of void fields may be dropped.
    """
    ids = [field.stored_id for field in spec.fields]
    repeated = next((i for i in ids if ids.count(i) > 1), None)
    if repeated is not None:
        return f"two partition fields have id {repeated}"
    for position, field in enumerate(spec.fields):
        problem = name_problem(field, spec.fields[:position], schema)
        problem = source_problem(field, schema) if problem is None else problem
        if problem is not None:
            return f"partition field {field.name!r}: {problem}"
    return None


def name_problem(field: PartitionField, others: Iterable[PartitionField], schema: Schema) -> str | None:
    """Why a field cannot have its name beside other fields and the columns; ``None`` if it can.

    A field may have the name of a column only if it is that column (identity), or was (void).
    """
    if (problem := text_problem(field.name)) is not None:
        return f"its name: {problem}"
    if field.name == "":
        return "its name is empty"
    if any(other.name == field.name for other in others):
        return "there is another partition field of this name"
    column = schema.by_name.get(field.name)
    if column is None or (field.transform in (IDENTITY, VOID) and field.source_ids == (column.id,)):
        return None
    return "its name is that of a column; only the column itself may have it"


def source_problem(field: PartitionField, schema: Schema) -> str | None:
    """Why a field cannot have its source columns, without checks of transforms; ``None`` if it can."""
    if field.is_void:
        return None
    for source_id in field.source_ids:
        column = schema.by_id.get(source_id)
        if column is None:
            return f"there is no column of id {source_id}"
        name = schema.names[source_id]
        if isinstance(column.type, (Geometry, Geography)):
            return f"column {name!r} of type {column.type} cannot partition a table"
        if source_id not in schema.measured:
            return f"column {name!r} of type {column.type} is not a primitive outside of lists and maps"
    return None


def redundancy_problem(spec: PartitionSpec, former: PartitionSpec = UNPARTITIONED) -> str | None:
    """Which field of a spec is redundant because of another; ``None`` if none is.

    Redundant are the same value twice, and another time unit of the same column. Fields that ``former`` had already are
    allowed: other writers make such specs, and files were written with them.
    """
    known = {field.field_id for field in former.fields}
    for field in spec.fields:
        if field.field_id in known or field.is_void:
            continue
        for other in spec.fields:
            if other is not field and other.derivation == field.derivation:
                return f"partition field {field.name!r}: it has the same values as {other.name!r}"
            if other is not field and _are_times(field, other):
                reason = f"it is redundant beside {other.name!r}, another time unit of the same column"
                return f"partition field {field.name!r}: {reason}; keep only one of them"
    return None


def _are_times(a: PartitionField, b: PartitionField) -> bool:
    return a.source_ids == b.source_ids and {a.transform, b.transform} <= _TIMES


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """A derived value with an id from the id space of the columns, so that it can have statistics (V4 proposal).

    ``partition_field_id`` links it to a partition field; others that compute the same value use it too. Identity and
    void fields need none.
    """

    expr_id: int
    source_ids: tuple[int, ...]
    transform: str
    name: str
    partition_field_id: int | None = None
    extra: Unknown = ()

    @property
    def derivation(self) -> Derivation:
        """Source columns and transform, as for a partition field."""
        return self.source_ids, self.transform


def expressions_for(
    fields: Iterable[PartitionField], known: tuple[Expression, ...] = (), *, last_id: int
) -> tuple[Expression, ...]:
    """The known expressions, and the new ones that partition fields need (V4 proposal).

    A field uses the expression that is linked to it, or one with the same columns and transform. Without one it gets a
    new expression with the next id after ``last_id``, the highest id of columns and expressions. An expression without
    a link is linked to the field, unless the field has a ``shared_id``.
    """
    by_id = {e.expr_id: e for e in known}
    for field in fields:
        if field.transform in (IDENTITY, VOID):
            continue
        same = _expression_of(field, by_id.values())
        if same is None:
            last_id = max((last_id, *by_id)) + 1
            same = Expression(expr_id=last_id, source_ids=field.source_ids, transform=field.transform, name=field.name)
            by_id[last_id] = same
        if same.partition_field_id is None and field.shared_id is None:
            by_id[same.expr_id] = replace(same, partition_field_id=field.field_id)
    return tuple(by_id.values())


def expression_ids(fields: Iterable[PartitionField], expressions: Iterable[Expression]) -> dict[int, int]:
    """The expression id of each derived partition field, by field id; fields without an expression are omitted."""
    known = tuple(expressions)
    used = ((field, _expression_of(field, known)) for field in fields if field.transform not in (IDENTITY, VOID))
    return {field.field_id: expression.expr_id for field, expression in used if expression is not None}


def _expression_of(field: PartitionField, expressions: Iterable[Expression]) -> Expression | None:
    """The expression linked to a field, of the same value if several are, else any one of the same value."""
    same = [e for e in expressions if e.partition_field_id == field.field_id or e.derivation == field.derivation]
    return max(
        same, key=lambda e: (e.partition_field_id == field.field_id, e.derivation == field.derivation), default=None
    )
