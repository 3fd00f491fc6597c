"""What manifest codecs need of the table: types of columns and of partition values, specs, expression ids.

Manifests name columns and partition fields by id only; this value turns ids into types (spec: Manifests, Partitioning).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from icefloe.errors import FormatError
from icefloe.limits import DEFAULT, Limits
from icefloe.model.entries import StatKeys
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.spec import Expression, PartitionField, PartitionSpec, expression_ids
from icefloe.model.partition.transform_names import IDENTITY
from icefloe.model.schema.metadata_columns import DELETE_FILE_PATH, DELETE_POS
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import LONG, STRING, Type, is_primitive
from icefloe.transforms import parse_transform, transform_of

# Position delete files have bounds for these two.
RESERVED_TYPES: Mapping[int, Type] = {field.id: field.type for field in (DELETE_FILE_PATH, DELETE_POS)}


@dataclass(frozen=True, kw_only=True, eq=False)  # equal to itself only, so it is a cheap key of caches
class ManifestContext:
    """The part of a table's metadata that is needed to decode its manifests."""

    location: str
    format_version: int
    schema: Schema
    types: Mapping[int, Type]  # every column id of every schema
    specs: Mapping[int, PartitionSpec]
    partition_types: Mapping[int, Type]  # by partition field id; void and unknown transforms have none
    expressions: Mapping[int, int] = field(default_factory=dict)  # partition field id -> expression id (V4)
    virtual: Mapping[int, Expression] = field(default_factory=dict)  # expressions that partition nothing, by id (V4)
    limits: Limits = DEFAULT

    def spec(self, spec_id: int) -> PartitionSpec:
        """The spec of this id; FormatError if the table does not have it."""
        spec = self.specs.get(spec_id)
        if spec is None:
            raise FormatError(f"table {self.location}: no partition spec {spec_id}", location=self.location)
        return spec

    @cached_property
    def partition_fields(self) -> Mapping[int, PartitionField]:
        """Every partition field of every spec that has a value of known type, by field id."""
        return {i: f for i, f in self._valued.items() if i in self.partition_types}

    @cached_property
    def untyped(self) -> Mapping[int, PartitionField]:
        """The partition fields whose values have no known type: their column or their transform is unknown."""
        return {i: f for i, f in self._valued.items() if i not in self.partition_types}

    @cached_property
    def _valued(self) -> Mapping[int, PartitionField]:
        """Every partition field that has a value; version 1 keeps a removed one, void, under its id."""
        return {f.field_id: f for s in self.specs.values() for f in s.fields if not f.is_void}

    @cached_property
    def specs_with(self) -> Mapping[int, tuple[int, ...]]:
        """The ids of the specs in which a partition field has a value, by field id; includes fields of unknown type."""
        by_field: dict[int, list[int]] = {field_id: [] for field_id in self._valued}
        for spec in self.specs.values():
            for part in spec.fields:
                if not part.is_void:
                    by_field[part.field_id].append(spec.spec_id)
        return {field_id: tuple(spec_ids) for field_id, spec_ids in by_field.items()}

    def with_partition_types(self, inferred: Mapping[int, Type]) -> ManifestContext:
        """The context with the types of partition values that only a manifest records, by field id."""
        types = {i: type_ for i, type_ in inferred.items() if i in self.untyped}
        if len(types) == 0:
            return self
        columns = {
            self.untyped[i].source_id: type_ for i, type_ in types.items() if self.untyped[i].transform == IDENTITY
        }
        return replace(self, types={**columns, **self.types}, partition_types={**self.partition_types, **types})

    def with_types(self, types: Mapping[int, Type]) -> ManifestContext:
        """The context with the types of virtual columns that only a manifest records, by expression id."""
        return self if len(types) == 0 else replace(self, types={**types, **self.types})

    @cached_property
    def identity_sources(self) -> frozenset[int]:
        """The source columns of identity partitions, of all specs."""
        return frozenset(f.source_id for f in self.partition_fields.values() if f.transform == IDENTITY)

    @cached_property
    def shape(self) -> int:
        """A number that is the same for contexts in which a manifest decodes alike, within this process."""
        return hash(self._shape)

    @cached_property
    def fingerprint(self) -> str:
        """The same as text that is equal in other processes too."""
        return hashlib.sha256(repr(self._shape).encode()).hexdigest()

    @cached_property
    def _shape(self) -> tuple[object, ...]:
        types = tuple((i, self.column_type(i)) for i in sorted(self._measurable))
        specs = tuple((id_, spec.fields) for id_, spec in sorted(self.specs.items()))
        values = tuple(sorted(self.partition_types.items(), key=lambda item: item[0]))
        expressions = tuple(sorted(self.expressions.items()))
        return (self.location, types, specs, values, expressions, tuple(sorted(self.virtual)))

    def measured(self, wanted: StatKeys | None = None) -> frozenset[int]:
        """The ids of the columns that may have statistics, or of those among the wanted statistics keys."""
        if wanted is None:
            return self._measurable
        return self._measurable.intersection(key.id for key in wanted if not key.is_partition)

    @cached_property
    def _measurable(self) -> frozenset[int]:
        return frozenset(i for i in (*self.types, *RESERVED_TYPES) if self.column_type(i) is not None)

    def column_type(self, column_id: int) -> Type | None:
        """The primitive type of a column that may have bounds, reserved columns of delete files included."""
        type_ = self.types.get(column_id, RESERVED_TYPES.get(column_id))
        return type_ if type_ is not None and is_primitive(type_) else None


def manifest_context(metadata: TableMetadata, limits: Limits = DEFAULT) -> ManifestContext:
    """The context of a table's manifests."""
    fields = [part for spec in metadata.specs for part in spec.fields]
    expressions = expression_ids(fields, metadata.expressions)
    partitioning = frozenset(expressions.values())
    virtual = {e.expr_id: e for e in metadata.expressions if e.expr_id not in partitioning}
    types = {**_virtual_types(virtual.values(), metadata.types), **metadata.types}
    return ManifestContext(
        location=metadata.location,
        format_version=metadata.format_version,
        schema=metadata.schema,
        types=types,
        specs={spec.spec_id: spec for spec in metadata.specs},
        partition_types=partition_types(metadata.specs, types),
        expressions=expressions,
        virtual=virtual,
        limits=limits,
    )


def partition_types(specs: Iterable[PartitionSpec], types: Mapping[int, Type]) -> dict[int, Type]:
    """The types of partition values by partition field id, from the types of columns by their ids."""
    known = ((part.field_id, _result_type(part, types)) for spec in specs for part in spec.fields)
    return {field_id: type_ for field_id, type_ in known if type_ is not None}


def _virtual_types(expressions: Iterable[Expression], types: Mapping[int, Type]) -> dict[int, Type]:
    """The types of the values of expressions, by id, from the types of columns; not of unknown transforms."""
    found: dict[int, Type] = {}
    for expression in expressions:
        transform, source = parse_transform(expression.transform), types.get(expression.source_ids[0])
        if source is not None and len(expression.source_ids) == 1 and transform.accepts(source):
            found[expression.expr_id] = transform.result_type(source)
    return found


def _result_type(part: PartitionField, types: Mapping[int, Type]) -> Type | None:
    """The type of a field's values; none if it depends on a column that no schema has any more."""
    transform = transform_of(part)
    if part.is_void or not transform.is_known:
        return None
    if part.source_id in types:
        return transform.result_type(types[part.source_id])
    of_text, of_numbers = transform.result_type(STRING), transform.result_type(LONG)
    return of_text if of_text == of_numbers else None  # buckets and times are of one type whatever the column's
